"""What listens where no service of ours answers, as far as it says so: a web server, or a port of classic clients.

RocketMQ's users give the port that they know (listenPort), others that of the console. Neither speaks before it is
asked.
"""

import socket
from contextlib import suppress

_SECONDS = 2.0
"""Patience with each question."""
_MOST = 1 << 12
_HTTP = b"GET / HTTP/1.0\r\n\r\n"
_HEADER = b'{"code":0,"flag":0,"language":"OTHER","opaque":1,"version":0}'
_REMOTING = (4 + len(_HEADER)).to_bytes(4, "big") + len(_HEADER).to_bytes(4, "big") + _HEADER
"""A request of no kind: refused, whoever asks."""


def is_listening(address: str) -> bool:
    """Whether somebody accepts connections there."""
    try:
        with _connected(address, 10.0):
            return True
    except (OSError, UnicodeError):  # the second: a host that cannot be a name
        return False


def protocol_at(address: str) -> str:
    """What is spoken there, in words; empty if it cannot be told."""
    if _answer(address, _HTTP).startswith(b"HTTP/1."):
        return "a web server (such as the console)"
    if b'"opaque":1' in _answer(address, _REMOTING):
        return "a port for RocketMQ's classic clients"
    return ""


def _answer(address: str, question: bytes) -> bytes:
    """The first bytes of one; none if it did not come."""
    with suppress(OSError), _connected(address, _SECONDS) as connection:
        connection.sendall(question)
        return connection.recv(_MOST)
    return b""


def _connected(address: str, seconds: float) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.removeprefix("[").removesuffix("]"), int(port)), timeout=seconds)
