"""Frames of the remoting protocol: cut out of the bytes of a connection, and joined.

A frame, integers big-endian::

    int32  length              of everything after these 4 bytes
    uint8  serialization       of the header: 0 JSON, 1 ROCKETMQ
    uint24 header length
    header
    body                       the rest: length - 4 - header length bytes, often none

Java closes a connection whose frame is larger than 16 MiB or whose header is longer than its frame; so do we.
"""

import struct
from enum import IntEnum, unique
from typing import NamedTuple

from tandemmq.common.wire.remoting.errors import BadRemotingFrame, NotEncodable

FRAME_BYTES_MAX = 16 * 1024 * 1024
"""The largest length word that Java takes (`com.rocketmq.remoting.frameMaxLength`)."""

_HEADER_BYTES_MAX = 0xFF_FFFF
_PREFIX = struct.Struct(">II")
_LENGTH = struct.Struct(">I")


@unique
class Serialization(IntEnum):
    """How a frame's header is written; the sender chooses, for each frame."""

    JSON = 0
    ROCKETMQ = 1


class RemotingFrame(NamedTuple):
    """A frame as it came."""

    serialization: Serialization
    header: bytes
    body: bytes


def frame_size(data: bytes, at: int) -> int:
    """Bytes of the frame that begins at a place, as it says itself; 0 where not even that is there."""
    return _LENGTH.size + int(_LENGTH.unpack_from(data, at)[0]) if len(data) - at >= _LENGTH.size else 0


def encode_frame(serialization: Serialization, header: bytes, body: bytes | bytearray | memoryview = b"") -> bytes:
    """The bytes of a frame. Raises NotEncodable: nobody would read a frame as large as this."""
    return encode_head(serialization, header, len(body)) + body


def encode_head(serialization: Serialization, header: bytes, body_size: int) -> bytes:
    """The bytes of a frame before its body. Raises NotEncodable."""
    length = 4 + len(header) + body_size
    if length > FRAME_BYTES_MAX or len(header) > _HEADER_BYTES_MAX:
        raise NotEncodable(f"a frame of {length} bytes is larger than the {FRAME_BYTES_MAX} that peers read")
    return _PREFIX.pack(length, serialization << 24 | len(header)) + header


class RemotingFrameReader:
    """Cuts the frames out of a connection's bytes, which come in any pieces.

    It keeps what belongs to a frame that is not whole: never more than the largest frame and one piece.
    """

    def __init__(self, largest: int = FRAME_BYTES_MAX) -> None:
        """`largest`: the largest length word that is taken, in bytes."""
        self._largest = largest
        self._pieces: list[bytes] = []
        self._held = 0
        self._wanted = 8
        """Bytes that must be there before there is anything to do."""
        self._failed: BadRemotingFrame | None = None

    @property
    def incomplete(self) -> int:
        """Bytes that are held of a frame that has begun and not ended."""
        return self._held

    @property
    def missing(self) -> int:
        """Bytes of it that are to come, as far as that is known; 0: none has begun."""
        return self._wanted - self._held if self._held else 0

    def receive(self, data: bytes) -> list[RemotingFrame]:
        """The frames that are whole now, in their order.

        Raises:
            BadFrame: what follows is no frame. Frames before it, in the same bytes, are in the exception's `frames`.
        """
        if self._failed is not None:
            raise self._failed
        if self._held:
            self._pieces.append(data)
            self._held += len(data)
            if self._held < self._wanted:
                return []
            data = b"".join(self._pieces)
            self._pieces.clear()
        frames: list[RemotingFrame] = []
        position, end = 0, len(data)
        while end - position >= 8:
            length, word = _PREFIX.unpack_from(data, position)
            header_end = position + 8 + (word & _HEADER_BYTES_MAX)
            self._check(length, word, frames)
            stop = position + 4 + length
            if stop > end:
                self._wanted = 4 + length
                break
            frames.append(
                RemotingFrame(_SERIALIZATIONS[word >> 24], data[position + 8 : header_end], data[header_end:stop])
            )
            position = stop
        else:
            self._wanted = 8
        self._held = end - position
        if self._held:
            self._pieces.append(data[position:] if position else data)
        return frames

    def _check(self, length: int, word: int, before: list[RemotingFrame]) -> None:
        """Raise BadFrame for a prefix that begins no frame, and from now on."""
        if length > self._largest:
            said = f"a frame of {length} bytes; at most {self._largest} are taken"
        elif 4 + (word & _HEADER_BYTES_MAX) > length:
            said = f"a header of {word & _HEADER_BYTES_MAX} bytes in a frame of {length}"
        elif word >> 24 not in _SERIALIZATIONS:
            said = f"a header in the serialization {word >> 24}, which there is not"
        else:
            return
        self._pieces.clear()
        self._held = 0
        self._failed = BadRemotingFrame(said, before)
        raise self._failed


_SERIALIZATIONS = {int(one): one for one in Serialization}
