"""Tests of the name server without sockets."""
