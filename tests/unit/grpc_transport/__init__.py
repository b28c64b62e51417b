"""Unit tests of the gRPC transport: bytes in, bytes out."""
