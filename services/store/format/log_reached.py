"""The file ``tandem.end``: how far the log of a running store has come (ours).

56 bytes, big-endian::

    0    4  "TMEN"
    4    4  version: 1
    8   16  boot id of the kernel
    24  16  a log offset (8), CRC-32 of bytes 0 to 23 and of the offset (4), zeros (4)
    40  16  another one, in the same way

The writer takes the two places in turn, so that one of them is whole when it is killed. The greater offset counts.
"""

from struct import Struct
from typing import NamedTuple
from zlib import crc32

from tandemmq.store.format.errors import FormatError

VERSION = 1
PLACES = (slice(24, 40), slice(40, 56))
SIZE = 56

_MAGIC = b"TMEN"
_HEADER = Struct(">4sI16s")
_PLACE = Struct(">qI4x")


class UnreadableReach(FormatError):
    """Not what a store has written: too short, of another version, or changed."""


class ReachedEnd(NamedTuple):
    """What the file says: the log had come to ``end`` when the machine ran as ``boot``; 0 says nothing."""

    boot: bytes
    end: int


class ReachWords:
    """The words of one boot."""

    def __init__(self, boot: bytes) -> None:
        """``boot``: the kernel's boot id, 16 bytes."""
        self._header = _HEADER.pack(_MAGIC, VERSION, boot)
        self._seed = crc32(self._header)

    def place(self, end: int) -> bytes:
        """The 16 bytes that say ``end``."""
        return _PLACE.pack(end, crc32(end.to_bytes(8, "big"), self._seed))

    def whole(self, end: int) -> bytes:
        """The whole file, saying ``end``."""
        return self._header + self.place(end) * len(PLACES)


def decode_reached(data: bytes) -> ReachedEnd:
    """Read the file. Raises UnreadableReach."""
    if len(data) != SIZE:
        raise UnreadableReach(f"it has {len(data):,} bytes, not {SIZE}")
    magic, version, boot = _HEADER.unpack_from(data)
    if magic != _MAGIC or version != VERSION:
        raise UnreadableReach(f"it is no end of a log of version {VERSION}")
    words = ReachWords(boot)
    ends = [end for end, _ in (_PLACE.unpack(data[place]) for place in PLACES)]
    whole = [end for end, place in zip(ends, PLACES, strict=True) if end >= 0 and words.place(end) == data[place]]
    if not whole:
        raise UnreadableReach("its checksums do not fit")
    return ReachedEnd(boot, max(whole))
