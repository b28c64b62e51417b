"""Whether the bytes at a place of the log are the record that a queue unit names.

Only the fields that say so are read, so that each pull can ask it of each record.
"""

from functools import lru_cache
from struct import Struct

from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.format.java import tags_code
from tandemmq.store.format.record import MAGIC_V1, MAGIC_V2
from tandemmq.store.format.sysflag import BORN_HOST_V6, STORE_HOST_V6

_HEAD = Struct(">iI4xi4xqqi")
"""TOTALSIZE, MAGICCODE, QUEUEID, QUEUEOFFSET, PHYSICALOFFSET, SYSFLAG."""
_BODY_LENGTH_AT = 84  # with two IPv4 hosts
_MAGICS = frozenset({MAGIC_V1, MAGIC_V2})
_TAGS = b"TAGS\x01"
_END = 2


def behind_topic(
    data: ReadBuffer, at: int, topic: bytes, queue_id: int, queue_offset: int, physical_offset: int, size: int
) -> int:
    """Index in ``data`` behind the topic of the record at index ``at``; -1 if it is not the record so named.

    ``size`` bytes from ``at`` on must be there.
    """
    found, magic, queue, number, physical, flags = _HEAD.unpack_from(data, at)
    if (found, queue, number, physical) != (size, queue_id, queue_offset, physical_offset) or magic not in _MAGICS:
        return -1
    end = at + size
    at += _BODY_LENGTH_AT + 12 * (flags & BORN_HOST_V6 != 0) + 12 * (flags & STORE_HOST_V6 != 0)
    at += 4 + int.from_bytes(data[at : at + 4], "big")
    at += 1 if magic == MAGIC_V1 else 2
    stop = at + len(topic)
    fits = stop <= end and data[at:stop] == topic and data[at - 1] == len(topic) & 0xFF
    return stop if fits else -1


def probable_tags_code(data: bytes) -> int:
    """The tags code of a record that ends in the properties ``data``, as far as a glance can tell.

    A property whose name ends in TAGS can mislead it: whoever finds a difference decodes the record before he believes
    it.
    """
    at = data.find(_TAGS)
    if at < 0:
        return 0
    at += len(_TAGS)
    end = data.find(_END, at)
    return _code(data[at : end if end >= 0 else len(data)])


@lru_cache(maxsize=4096)
def _code(tag: bytes) -> int:
    return tags_code(tag.decode(errors="replace"))
