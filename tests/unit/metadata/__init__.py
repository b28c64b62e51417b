"""Tests of the metadata service without processes."""
