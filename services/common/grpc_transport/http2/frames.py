"""Frames of HTTP/2 (RFC 9113, sections 4 and 6): constants, and the bytes of those that a server sends.

Layout of every frame, big-endian::

    0        3      4       5                 9
    +--------+------+-------+-----------------+---------------- ...
    | length | type | flags | R | stream id   | payload (length bytes)
    +--------+------+-------+-----------------+---------------- ...
      24 bits  8      8       1   31 bits

Payloads::

    DATA           [pad length 8] data [padding]                        flags END_STREAM, PADDED
    HEADERS        [pad length 8] [E 1, dependency 31, weight 8] block [padding]
                                                                        flags END_STREAM, END_HEADERS, PADDED, PRIORITY
    PRIORITY       E 1, dependency 31, weight 8                         5 bytes
    RST_STREAM     error code 32                                        4 bytes
    SETTINGS       (identifier 16, value 32)*                           flag ACK: empty
    PUSH_PROMISE   never legal from a client
    PING           opaque 64                                            8 bytes; flag ACK
    GOAWAY         R 1, last stream id 31, error code 32, debug data
    WINDOW_UPDATE  R 1, increment 31                                    4 bytes
    CONTINUATION   block                                                flag END_HEADERS
"""

from collections.abc import Mapping
from enum import IntEnum
from struct import Struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What a client sends first (RFC 9113, section 3.4)."""

HEADER_SIZE = 9
MAX_WINDOW = (1 << 31) - 1
DEFAULT_WINDOW = 65_535
DEFAULT_FRAME_SIZE = 16_384
DEFAULT_TABLE_SIZE = 4096
NO_TABLE = b"\x20"
"""HPACK's "table size update" to 0 (RFC 7541, section 6.3)."""

# Plain integers, as they are compared for every frame.
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

END_STREAM = ACK = 0x1
END_HEADERS = 0x4
PADDED = 0x8
PRIORITIZED = 0x20


class Setting(IntEnum):
    """Identifiers of SETTINGS (RFC 9113, section 6.5.2)."""

    HEADER_TABLE_SIZE = 0x1
    ENABLE_PUSH = 0x2
    MAX_CONCURRENT_STREAMS = 0x3
    INITIAL_WINDOW_SIZE = 0x4
    MAX_FRAME_SIZE = 0x5
    MAX_HEADER_LIST_SIZE = 0x6


_HEADER = Struct(">IBI")
_SETTING = Struct(">HI")
_RESET = Struct(">IBII")
_GOAWAY = Struct(">IBIII")

pack_header = _HEADER.pack
"""`pack_header(length << 8 | type, flags, stream id)`: the nine bytes before a payload."""
unpack_header = _HEADER.unpack_from
"""`unpack_header(buffer, position)`: what `pack_header` packed."""
unpack_setting = _SETTING.unpack_from

SETTINGS_ACK = pack_header(SETTINGS, ACK, 0)


def settings(values: Mapping[Setting, int]) -> bytes:
    """A SETTINGS frame."""
    payload = b"".join(_SETTING.pack(identifier, value) for identifier, value in values.items())
    return pack_header(len(payload) << 8 | SETTINGS, 0, 0) + payload


def window_update(stream_id: int, increment: int) -> bytes:
    """Leave to send `increment` more bytes on a stream, or (0) on the connection."""
    return _RESET.pack(4 << 8 | WINDOW_UPDATE, 0, stream_id, increment)


def rst_stream(stream_id: int, code: int) -> bytes:
    """The end of a stream, by error or in time."""
    return _RESET.pack(4 << 8 | RST_STREAM, 0, stream_id, code)


def goaway(last_stream_id: int, code: int, reason: str = "") -> bytes:
    """No stream above `last_stream_id` will be answered; `reason` is for people."""
    debug = reason.encode()[:200]
    return _GOAWAY.pack((8 + len(debug)) << 8 | GOAWAY, 0, 0, last_stream_id, code) + debug


def ping(opaque: bytes, flags: int = 0) -> bytes:
    """A PING of eight bytes, or with flag ACK the answer to one."""
    return pack_header(8 << 8 | PING, flags, 0) + opaque


def header_frames(stream_id: int, block: bytes, end_stream: bool, max_frame_size: int) -> bytes:
    """A header block as HEADERS and as many CONTINUATION frames as it needs."""
    flags = END_STREAM if end_stream else 0
    if len(block) <= max_frame_size:
        return pack_header(len(block) << 8 | HEADERS, flags | END_HEADERS, stream_id) + block
    parts = [block[at : at + max_frame_size] for at in range(0, len(block), max_frame_size)]
    frames = [pack_header(len(parts[0]) << 8 | HEADERS, flags, stream_id), parts[0]]
    for part in parts[1:]:
        last = END_HEADERS if part is parts[-1] else 0
        frames += (pack_header(len(part) << 8 | CONTINUATION, last, stream_id), part)
    return b"".join(frames)
