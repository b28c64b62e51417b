"""Message compression: gzip and deflate (zlib), bounded when it is undone (PROTOCOL-HTTP2, "Message-Encoding")."""

import zlib
from collections.abc import Callable

from tandemmq.common.grpc_transport.rpc.status import CallFailure, Status

IDENTITY = b"identity"
ACCEPTED = b"identity,deflate,gzip"
"""grpc-accept-encoding of ours."""
_WINDOW_BITS = {b"gzip": 31, b"deflate": 15}
"""For zlib: 31 asks for gzip's header, 15 for zlib's own."""


def known(encoding: bytes) -> bool:
    """Whether messages of this grpc-encoding can be read."""
    return encoding == IDENTITY or encoding in _WINDOW_BITS


def compressor(encoding: bytes) -> Callable[[bytes], bytes]:
    """What makes messages of an encoding ("gzip", "deflate")."""
    bits = _WINDOW_BITS[encoding]

    def compress(message: bytes) -> bytes:
        stream = zlib.compressobj(wbits=bits)
        return stream.compress(message) + stream.flush()

    return compress


def decompress(encoding: bytes, message: bytes, limit: int) -> bytes:
    """The message as it was, of at most `limit` bytes. Raises CallFailure."""
    bits = _WINDOW_BITS.get(encoding)
    if bits is None:
        raise CallFailure(Status.INTERNAL, "a compressed message in a call without grpc-encoding")
    stream = zlib.decompressobj(wbits=bits)
    try:
        plain = stream.decompress(message, limit + 1)
    except zlib.error:
        raise CallFailure(Status.INTERNAL, "a message that cannot be decompressed") from None
    if len(plain) > limit:
        details = f"Received message larger than max ({len(plain)} or more vs. {limit})"
        raise CallFailure(Status.RESOURCE_EXHAUSTED, details)
    if not stream.eof or stream.unused_data:
        raise CallFailure(Status.INTERNAL, "a message that cannot be decompressed")
    return plain
