"""Header blocks of answers: constant bytes for almost all of them."""

from collections.abc import Iterable
from functools import lru_cache

from tandemmq.common.grpc_transport.http2.headers import literal, status
from tandemmq.common.grpc_transport.http2.sender import Envelope
from tandemmq.common.grpc_transport.rpc.compression import ACCEPTED, IDENTITY
from tandemmq.common.grpc_transport.rpc.metadata import encode_metadata
from tandemmq.common.grpc_transport.rpc.status import Status

HEAD = status(200) + b"\x0f\x10\x10application/grpc"
"""`:status: 200`, `content-type: application/grpc` (a literal with the name from the static table)."""
TRAILERS_OK = literal(b"grpc-status", b"0")
OK = Envelope(HEAD, TRAILERS_OK)
"""Around the one message of almost every answer."""
DETAILS_LIMIT = 4096
"""Longest grpc-message, bytes before encoding: many peers take 8 KiB of header fields at most."""
_PLAIN = frozenset(range(0x20, 0x7F)) - {0x25}


def percent_encoded(text: str) -> bytes:
    """grpc-message: printable ASCII but the percent sign as it is, all else as %XX of its UTF-8 bytes."""
    raw = text.encode("utf-8", "replace")[:DETAILS_LIMIT].decode("utf-8", "ignore").encode()
    encoded = [bytes((byte,)) if byte in _PLAIN else b"%%%02X" % byte for byte in raw]
    for end in (0, -1):
        if encoded and encoded[end] == b" ":
            encoded[end] = b"%20"  # no field value begins or ends with white space
    return b"".join(encoded)


def trailers(code: int, details: str = "") -> bytes:
    """grpc-status and grpc-message."""
    return _trailers(code, details[:DETAILS_LIMIT])


@lru_cache(maxsize=64)
def _trailers(code: int, details: str) -> bytes:
    block = literal(b"grpc-status", str(code).encode())
    return block + literal(b"grpc-message", percent_encoded(details)) if details else block


def trailers_with(code: int, details: str, metadata: Iterable[tuple[str, str | bytes]]) -> bytes:
    """The same with trailing metadata. Raises TypeError, ValueError."""
    return trailers(code, details) + encode_metadata(metadata)


def head(encoding: bytes, metadata: Iterable[tuple[str, str | bytes]]) -> bytes:
    """The head of an answer with an encoding or initial metadata. Raises ValueError."""
    block = HEAD if encoding == IDENTITY else HEAD + literal(b"grpc-encoding", encoding)
    return block + encode_metadata(metadata)


def unsupported_encoding() -> bytes:
    """To be put before the trailers of a call whose encoding is unknown: what would be understood."""
    return literal(b"grpc-accept-encoding", ACCEPTED)


METADATA_TOO_LARGE = HEAD + trailers(Status.RESOURCE_EXHAUSTED, "received metadata larger than max")
"""Answers a request whose header list is over the limit."""


def plain(http_status: int, text: str) -> tuple[bytes, bytes]:
    """Head and body of an answer to what is no gRPC call, for people with a browser or curl."""
    body = text.encode()
    block = status(http_status) + literal(b"content-type", b"text/plain; charset=utf-8")
    return block + literal(b"content-length", str(len(body)).encode()), body
