"""Connections of the remoting protocol over real sockets."""
