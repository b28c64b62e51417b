"""Whether the bytes at a place of the log are the record that a queue unit names.

Only the fields that say so are read, so that each pull can ask it of each record.
"""

from mmap import mmap
from struct import Struct

from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.format.java import tags_code
from tandemmq.store.format.record import MAGIC_V1, MAGIC_V2
from tandemmq.store.format.sysflag import BORN_HOST_V6, HOSTS_V6, STORE_HOST_V6

_HEAD = Struct(">iI4xi4xqqi44xI")
"""TOTALSIZE, MAGICCODE, QUEUEID, QUEUEOFFSET, PHYSICALOFFSET, SYSFLAG; BODYLENGTH with two IPv4 hosts."""
_MAGICS = frozenset({MAGIC_V1, MAGIC_V2})
_TAGS = b"TAGS\x01"
_END = 2
_MOST_SEEN = 4096
_seen: dict[int, bytes] = {}
"""By tags code: the property that has it, as it stands in a record."""


def behind_topic(
    data: ReadBuffer, at: int, topic: bytes, queue_id: int, queue_offset: int, physical_offset: int, size: int
) -> int:
    """Index in ``data`` after the topic of the record at index ``at``; -1 if it is not the record so named.

    ``size`` bytes from ``at`` on must be there.
    """
    found, magic, queue, number, physical, flags, body_size = _HEAD.unpack_from(data, at)
    if (found, queue, number, physical) != (size, queue_id, queue_offset, physical_offset) or magic not in _MAGICS:
        return -1
    end = at + size
    at += _HEAD.size
    if flags & HOSTS_V6:
        at += 12 * (flags & BORN_HOST_V6 != 0) + 12 * (flags & STORE_HOST_V6 != 0)
        body_size = int.from_bytes(data[at - 4 : at], "big")
    at += body_size + (1 if magic == MAGIC_V1 else 2)
    stop = at + len(topic)
    fits = stop <= end and data[at:stop] == topic and data[at - 1] == len(topic) & 0xFF
    return stop if fits else -1


def shows_tags_code(data: bytes | mmap, at: int, end: int, code: int) -> bool:
    """Whether a record whose properties are the bytes ``[at, end)`` has this tags code, as far as a glance can tell.

    A property whose name ends in TAGS can mislead it: whoever is told False decodes the record before he believes it.
    """
    if not code and data.find(_TAGS, at, end) < 0:
        return True
    known = _seen.get(code)
    if known is not None and data.find(known, at, end) >= 0:
        return True
    return _tags_code(data[at:end]) == code


def _tags_code(properties: bytes) -> int:
    """The code of the first tag; its property is remembered, so that the next record costs one search."""
    at = properties.find(_TAGS)
    if at < 0:
        return 0
    end = properties.find(_END, at)
    if end < 0:
        return tags_code(properties[at + len(_TAGS) :].decode(errors="replace"))
    code = tags_code(properties[at + len(_TAGS) : end].decode(errors="replace"))
    if len(_seen) >= _MOST_SEEN:
        _seen.clear()
    _seen[code] = properties[at : end + 1]
    return code
