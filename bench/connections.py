"""Idle HTTP/2 connections, each of which has made one gRPC call: what they cost a server in memory."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from struct import Struct

from bench.model import Unavailable

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEAD = Struct(">BHBBI")
"""Length (8 + 16 bits), type, flags, stream."""
_DATA, _HEADERS, _SETTINGS, _ACK, _END_STREAM, _END_HEADERS = 0, 1, 4, 1, 1, 4
_SECONDS = 30.0


@contextmanager
def idle_connections(port: int, path: str, count: int) -> Iterator[None]:
    """Hold `count` connections to a port of this machine, after one call of `path` on each. Raises Unavailable."""
    with ExitStack() as stack:
        try:
            for _ in range(count):
                connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=_SECONDS))
                _call(connection, path)
        except OSError as error:
            raise Unavailable(f"{count} connections cannot be held: {error}") from None
        yield


def _call(connection: socket.socket, path: str) -> None:
    fields = {
        ":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost", "te": "trailers",
        "content-type": "application/grpc",
    }  # fmt: skip
    block = b"".join(b"\0" + _string(name) + _string(value) for name, value in fields.items())
    connection.sendall(
        _PREFACE
        + _frame(_SETTINGS, 0, 0)
        + _frame(_HEADERS, _END_HEADERS, 1, block)
        + _frame(_DATA, _END_STREAM, 1, bytes(5))
    )
    with connection.makefile("rb") as frames:
        while True:
            head = frames.read(_HEAD.size)
            if len(head) < _HEAD.size:
                raise Unavailable("a connection was closed before its call was answered")
            high, low, kind, flags, stream = _HEAD.unpack(head)
            frames.read(high << 16 | low)
            if kind == _SETTINGS and not flags & _ACK:
                connection.sendall(_frame(_SETTINGS, _ACK, 0))
            if stream and kind == _HEADERS and flags & _END_STREAM:
                return


def _string(text: str) -> bytes:
    """A literal of HPACK, not compressed; all of ours are shorter than 127 bytes (RFC 7541, 5.2)."""
    return bytes([len(text)]) + text.encode()


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return _HEAD.pack(len(payload) >> 16, len(payload) & 0xFFFF, kind, flags, stream) + payload
