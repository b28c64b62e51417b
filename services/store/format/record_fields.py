"""Single fields of a record where it lies, for those who need no more of it than that.

Nothing is checked: whether a record begins there, the caller knows or compares. Where the buffer ends before the field
does, some number comes, and no error.
"""

from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.format.record_encoder import MAGIC_BLANK, MAGIC_V1, MAGIC_V2

PREFIX_SIZE = 8
"""TOTALSIZE and MAGICCODE: so begin records and blanks. A record is one as soon as they are written."""
_MAGIC_AT = 4
QUEUE_OFFSET_AT = 20
PHYSICAL_OFFSET_AT = 28
SYS_FLAG_AT = 36
PLACED_SIZE = SYS_FLAG_AT
"""Bytes from TOTALSIZE to PHYSICALOFFSET: enough to tell a record from one of another place."""

_RECORD_MAGICS = tuple(magic.to_bytes(4, "big") for magic in (MAGIC_V1, MAGIC_V2))
_BLANK_MAGIC = MAGIC_BLANK.to_bytes(4, "big")


def size_at(buffer: ReadBuffer, at: int = 0) -> int:
    """TOTALSIZE, or the size of a blank; a negative one, as only damage leaves it, counts as very large."""
    return int.from_bytes(buffer[at : at + 4], "big")


def physical_offset_at(buffer: ReadBuffer, at: int = 0) -> int:
    """PHYSICALOFFSET."""
    begin = at + PHYSICAL_OFFSET_AT
    return int.from_bytes(buffer[begin : begin + 8], "big", signed=True)


def has_record_magic(buffer: ReadBuffer, at: int = 0) -> bool:
    """Whether MAGICCODE is that of a record."""
    return _magic(buffer, at) in _RECORD_MAGICS


def has_blank_magic(buffer: ReadBuffer, at: int = 0) -> bool:
    """Whether MAGICCODE is that of the blank at the end of a file."""
    return _magic(buffer, at) == _BLANK_MAGIC


def _magic(buffer: ReadBuffer, at: int) -> bytes:
    return bytes(buffer[at + _MAGIC_AT : at + PREFIX_SIZE])


def is_half(data: bytes) -> bool:
    """Whether ``data`` may be the first bytes of a record or blank that had not come to its end."""
    if len(data) < PREFIX_SIZE:
        return True
    return (has_record_magic(data) or has_blank_magic(data)) and len(data) < size_at(data)
