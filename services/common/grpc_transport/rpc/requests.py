"""Header blocks of requests: constant bytes for a method, and a field or two for what differs."""

from collections.abc import Iterable

from tandemmq.common.grpc_transport.http2.headers import literal
from tandemmq.common.grpc_transport.rpc.metadata import encode_metadata
from tandemmq.common.grpc_transport.rpc.timeout import format_timeout

_POST = b"\x83"
_HTTP, _HTTPS = b"\x86", b"\x87"
"""Indexed fields of HPACK's static table (RFC 7541, appendix A)."""
_USER_AGENT = literal(b"user-agent", b"grpc-python-tandem/1")
_REST = literal(b"te", b"trailers") + literal(b"content-type", b"application/grpc") + _USER_AGENT
_IDENTITY = literal(b"grpc-accept-encoding", b"identity")


def head(path: str, authority: str, secure: bool) -> bytes:
    """What all requests to a method begin with. Raises ValueError for a path that no method has."""
    if not path.startswith("/") or not path.isprintable() or " " in path:
        raise ValueError(f"{path!r} is no method: it should read /package.Service/Method")
    scheme = _HTTPS if secure else _HTTP
    named = literal(b":path", path.encode()) + literal(b":authority", authority.encode("ascii"))
    return _POST + scheme + named + _REST + _IDENTITY


def extras(timeout: float | None, metadata: bytes) -> bytes:
    """What comes after it: `timeout` in seconds, and metadata that is encoded already."""
    return metadata if timeout is None else literal(b"grpc-timeout", format_timeout(timeout)) + metadata


def encoded(metadata: Iterable[tuple[str, str | bytes]] | None) -> bytes:
    """Metadata of a request as header fields. Raises TypeError, ValueError for what cannot be sent."""
    return encode_metadata(metadata) if metadata else b""
