"""HTTP/2 frames, HPACK blocks and gRPC messages from values, legal or not; apart from the transport, to check it.

Layouts: RFC 9113 section 4.1 and 6 (frames), RFC 7541 section 6 (header blocks), gRPC's PROTOCOL-HTTP2 (messages).
"""

import gzip
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from hpack.hpack import encode_integer
from hpack.huffman import HuffmanEncoder
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADER_SIZE = 9
WINDOW = 65_535
WINDOW_MAX = (1 << 31) - 1
FRAME_SIZE = 16_384
PROBE = "/tandemmq.test.Probe/"

Fields = Sequence[tuple[bytes, bytes]]


class Type(IntEnum):
    """Frame types; RFC 9113 section 6."""

    DATA = 0
    HEADERS = 1
    PRIORITY = 2
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class Code(IntEnum):
    """Error codes; RFC 9113 section 7."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    SETTINGS_TIMEOUT = 4
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    CONNECT_ERROR = 10
    ENHANCE_YOUR_CALM = 11
    INADEQUATE_SECURITY = 12
    HTTP_1_1_REQUIRED = 13


class Setting(IntEnum):
    """Settings; RFC 9113 section 6.5.2."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITY = 0x20


class Frame(NamedTuple):
    """One frame, its payload not taken apart."""

    type: int
    flags: int = 0
    stream: int = 0
    payload: bytes = b""

    def encode(self) -> bytes:
        return frame(self.type, self.flags, self.stream, self.payload)

    def __repr__(self) -> str:
        name = Type(self.type).name if self.type < len(Type) else f"type{self.type}"
        return f"{name}(flags={self.flags:#x}, stream={self.stream}, {self.payload.hex()})"


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"", *, length: int | None = None) -> bytes:
    """Any frame; ``length`` lies about the payload, a stream above 2^31 sets the reserved bit."""
    size = len(payload) if length is None else length
    return size.to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def padded(payload: bytes, padding: int | None) -> tuple[int, bytes]:
    """The flag and the payload of a frame with so many bytes of padding; None is no padding field at all."""
    return (0, payload) if padding is None else (PADDED, bytes((padding,)) + payload + bytes(padding))


def data(stream: int, body: bytes = b"", *, end: bool = False, padding: int | None = None) -> bytes:
    flags, payload = padded(body, padding)
    return frame(Type.DATA, flags | (END_STREAM if end else 0), stream, payload)


def headers(
    stream: int,
    block: bytes,
    *,
    end: bool = False,
    more: bool = False,
    padding: int | None = None,
    priority: bytes | None = None,
) -> bytes:
    """HEADERS with a block that is encoded already; ``more`` leaves END_HEADERS out, ``priority`` is five bytes."""
    flags, payload = padded((priority or b"") + block, padding)
    flags |= (END_STREAM if end else 0) | (0 if more else END_HEADERS) | (0 if priority is None else PRIORITY)
    return frame(Type.HEADERS, flags, stream, payload)


def continuation(stream: int, block: bytes, *, more: bool = False) -> bytes:
    return frame(Type.CONTINUATION, 0 if more else END_HEADERS, stream, block)


def split_headers(stream: int, block: bytes, cuts: Iterable[int], *, end: bool = False) -> list[bytes]:
    """HEADERS and CONTINUATIONs with the block cut at these places."""
    places = sorted({min(cut, len(block)) for cut in cuts})
    parts = [block[start:stop] for start, stop in zip([0, *places], [*places, len(block)], strict=True)]
    found = [headers(stream, parts[0], end=end, more=len(parts) > 1)]
    return found + [continuation(stream, part, more=at < len(parts) - 1) for at, part in enumerate(parts) if at]


def priority(stream: int, depends_on: int = 0, weight: int = 15) -> bytes:
    return frame(Type.PRIORITY, 0, stream, priority_field(depends_on, weight))


def priority_field(depends_on: int = 0, weight: int = 15) -> bytes:
    return depends_on.to_bytes(4) + bytes((weight,))


def rst_stream(stream: int, code: int = Code.CANCEL) -> bytes:
    return frame(Type.RST_STREAM, 0, stream, code.to_bytes(4))


def settings(pairs: Iterable[tuple[int, int]] = (), *, ack: bool = False) -> bytes:
    payload = b"".join(key.to_bytes(2) + value.to_bytes(4) for key, value in pairs)
    return frame(Type.SETTINGS, ACK if ack else 0, 0, payload)


def push_promise(stream: int, promised: int, block: bytes) -> bytes:
    return frame(Type.PUSH_PROMISE, END_HEADERS, stream, promised.to_bytes(4) + block)


def ping(payload: bytes = b"12345678", *, ack: bool = False) -> bytes:
    return frame(Type.PING, ACK if ack else 0, 0, payload)


def goaway(last_stream: int = 0, code: int = Code.NO_ERROR, debug: bytes = b"") -> bytes:
    return frame(Type.GOAWAY, 0, 0, last_stream.to_bytes(4) + code.to_bytes(4) + debug)


def window_update(stream: int, increment: int) -> bytes:
    return frame(Type.WINDOW_UPDATE, 0, stream, increment.to_bytes(4))


# ------------------------------------------------------------------------------------------------- header blocks

_huffman = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH)


class Indexing(IntEnum):
    """The three literals of RFC 7541 section 6.2, by their first byte."""

    NONE = 0x00
    NEVER = 0x10
    INCREMENTAL = 0x40


@dataclass(frozen=True)
class Literal:
    """One literal field, its encoding chosen piece by piece; ``index`` names the field by the static table."""

    name: bytes
    value: bytes
    indexing: Indexing = Indexing.NONE
    huffman_name: bool = False
    huffman_value: bool = False
    index: int = 0

    def encode(self) -> bytes:
        prefix = encode_integer(self.index, 6 if self.indexing == Indexing.INCREMENTAL else 4)
        prefix[0] |= self.indexing
        name = b"" if self.index else string(self.name, huffman=self.huffman_name)
        return bytes(prefix) + name + string(self.value, huffman=self.huffman_value)


def string(text: bytes, *, huffman: bool = False) -> bytes:
    """A string literal; RFC 7541 section 5.2."""
    body = _huffman.encode(text) if huffman else text
    length = encode_integer(len(body), 7)
    length[0] |= 0x80 if huffman else 0
    return bytes(length) + body


def indexed(index: int) -> bytes:
    """An indexed field; RFC 7541 section 6.1."""
    prefix = encode_integer(index, 7)
    prefix[0] |= 0x80
    return bytes(prefix)


def table_size(size: int) -> bytes:
    """A dynamic table size update; RFC 7541 section 6.3."""
    prefix = encode_integer(size, 5)
    prefix[0] |= 0x20
    return bytes(prefix)


def literals(fields: Fields) -> bytes:
    """A block of plain literals without indexing."""
    return b"".join(Literal(name, value).encode() for name, value in fields)


# ------------------------------------------------------------------------------------------------- gRPC


def request_fields(method: str = "Echo", *more: tuple[bytes, bytes], timeout: bytes | None = None) -> Fields:
    """The header list of a call of the probe service, as gRPC's PROTOCOL-HTTP2 orders it."""
    path = method if method.startswith("/") else PROBE + method
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()), (b":authority", b"probe")]
    fields += [(b"te", b"trailers")] + ([(b"grpc-timeout", timeout)] if timeout is not None else [])
    return [*fields, (b"content-type", b"application/grpc"), *more]


def message(body: bytes, *, flag: int | None = None, zipped: bool = False, length: int | None = None) -> bytes:
    """One length-prefixed message; ``flag`` and ``length`` may lie."""
    content = gzip.compress(body, mtime=0) if zipped else body
    first = int(zipped) if flag is None else flag
    return bytes((first,)) + (len(content) if length is None else length).to_bytes(4) + content


def call(stream: int, *bodies: bytes, method: str = "Echo") -> bytes:
    """A whole call: HEADERS, one DATA frame per message, END_STREAM on the last frame."""
    found = headers(stream, literals(request_fields(method)), end=not bodies)
    last = len(bodies) - 1
    return found + b"".join(data(stream, message(body), end=at == last) for at, body in enumerate(bodies))


def hello(pairs: Iterable[tuple[int, int]] = ()) -> bytes:
    """What opens a connection: the preface and the client's settings."""
    return PREFACE + settings(pairs)
