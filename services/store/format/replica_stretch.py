"""The file ``tandem.replica``: which stretch of a slave's log is being written at this moment (ours).

40 bytes, big-endian::

    0    4  "TMRP"
    4    4  version: 2 (version 1 had no checksum)
    8   16  boot id of the kernel
    24   8  beginning of the stretch, log offset
    32   4  its length in bytes; 0: nothing is being written, and begin says nothing
    36   4  CRC-32 of bytes 0 to 35; with length 0, of bytes 0 to 23

The writer stores begin (8 bytes at once), then length and checksum (8 bytes at once); when the stretch is written, the
second word becomes that of length 0. So after each store the file says one thing, and whatever else it holds is
damage.
"""

from struct import Struct
from typing import NamedTuple
from zlib import crc32

from tandemmq.store.format.errors import FormatError

BEGIN_AT, STATE_AT, SIZE = 24, 32, 40
VERSION = 2

_MAGIC = b"TMRP"
_HEADER = Struct(">4sI16s")
_STRETCH = Struct(">qI")
_STATE = Struct(">II")


class UnreadableMark(FormatError):
    """Not what a store has written: too short, of another version, or changed."""


class Mark(NamedTuple):
    """What the file says: log bytes ``[begin, end)`` are being written; none where both are equal."""

    boot: bytes
    begin: int
    end: int


class MarkWords:
    """The words of one boot's marks."""

    def __init__(self, boot: bytes) -> None:
        """``boot``: the kernel's boot id, 16 bytes."""
        header = _HEADER.pack(_MAGIC, VERSION, boot)
        self._seed = crc32(header)
        self.idle = _STATE.pack(0, self._seed)
        """Second word while nothing is being written."""
        self.fresh = header + bytes(8) + self.idle
        """The whole file, saying that nothing is being written."""

    def writing(self, begin: int, length: int) -> tuple[bytes, bytes]:
        """Both words, in the order in which they are stored, while ``length`` bytes from ``begin`` are written."""
        stretch = _STRETCH.pack(begin, length)
        return stretch[:8], _STATE.pack(length, crc32(stretch, self._seed))


def decode_mark(data: bytes) -> Mark:
    """Read the file. Raises UnreadableMark."""
    if len(data) != SIZE:
        raise UnreadableMark(f"it has {len(data):,} bytes, not {SIZE}")
    magic, version, boot = _HEADER.unpack_from(data)
    if magic != _MAGIC or version != VERSION:
        raise UnreadableMark(f"it is no mark of version {VERSION}")
    begin, _ = _STRETCH.unpack_from(data, BEGIN_AT)
    length, checksum = _STATE.unpack_from(data, STATE_AT)
    if checksum != crc32(data[: STATE_AT + 4] if length else data[:BEGIN_AT]):
        raise UnreadableMark("its checksum does not fit")
    return Mark(boot, begin, begin + length) if length else Mark(boot, 0, 0)
