"""The check of one record in kernels, and what is read from it. The twin of python_walker._check."""

from typing import Any

from tandemmq.store.format import record as layout
from tandemmq.store.format.compiled.jit import helper, isal_crc32
from tandemmq.store.format.compiled.memory import byte_at, int_at, long_at, raw_long_at, short_at
from tandemmq.store.format.compiled.text import find_byte, hash_more, signed
from tandemmq.store.format.crc import CRC_MASK
from tandemmq.store.format.walker import Stop

MAGIC_V1 = layout.MAGIC_V1 - (1 << 32)  # as int_at gives it
MAGIC_V2 = layout.MAGIC_V2 - (1 << 32)
_MAGIC_BLANK = layout.MAGIC_BLANK - (1 << 32)
_MIN_SIZE = layout.MIN_RECORD_SIZE
_CRC_SIZE = layout.CRC_PROPERTY_SIZE

GOOD = -1
_ZERO = int(Stop.ZERO)
_BLANK = int(Stop.BLANK)
_BAD_MAGIC = int(Stop.BAD_MAGIC)
_BAD_SIZE = int(Stop.BAD_SIZE)
_BAD_CRC = int(Stop.BAD_CRC)
_BAD_POSITION = int(Stop.BAD_POSITION)
_INCOMPLETE = int(Stop.INCOMPLETE)


def _name(text: bytes) -> int:
    return int.from_bytes(text, "little")


# Names with the 01 after them as little-endian numbers, compared with a mask of their length.
_TAGS, _KEYS, _FIVE = _name(b"TAGS\x01"), _name(b"KEYS\x01"), 0xFFFFFFFFFF
_DELAY, _SIX = _name(b"DELAY\x01"), 0xFFFFFFFFFFFF
_UNIQ_KEY = _name(b"UNIQ_KEY")
_CRC32 = _name(b"__CRC32#")


@helper
def crc31(at: int, size: int) -> int:
    """As crc.crc31."""
    return int(isal_crc32(0, at, size)) & CRC_MASK


@helper
def _has_crc_name(tail: int) -> bool:
    return bool(raw_long_at(tail) == _CRC32 and byte_at(tail + 8) == 1)


@helper
def _crc_digits_fit(at: int, size: int) -> bool:
    tail = at + size - _CRC_SIZE
    if byte_at(tail + _CRC_SIZE - 1) != 2:
        return False
    value = crc31(at, size - _CRC_SIZE)
    for digit in range(10):
        if byte_at(tail + 9 + digit) != 48 + value % 10:
            return False
        value //= 10
    return True


@helper
def meant_crc_property(at: int, size: int) -> bool:
    """As record_encoder.meant_crc_property."""
    tail = at + size - _CRC_SIZE
    if _has_crc_name(tail):
        return True
    changed = 0 if byte_at(tail + 8) == 1 else 1
    for place in range(8):
        changed += 0 if byte_at(tail + place) == (_CRC32 >> (8 * place)) & 0xFF else 1
    return changed <= 1 or _crc_digits_fit(at, size)


@helper
def crc_property_fits(at: int, size: int) -> bool:
    """As record_encoder.verify_crc_property; False without the property too."""
    return _has_crc_name(at + size - _CRC_SIZE) and _crc_digits_fit(at, size)


@helper
def _kind(at: int, end: int) -> int:
    """What the first 8 bytes say: GOOD, or why there is no record."""
    if end - at < 8:
        return _INCOMPLETE
    size = int_at(at)
    magic = int_at(at + 4)
    if size == 0 and magic == 0:
        return _ZERO
    if magic == _MAGIC_BLANK:
        return _BLANK
    if magic != MAGIC_V1 and magic != MAGIC_V2:
        return _BAD_MAGIC
    if size < _MIN_SIZE:
        return _BAD_SIZE
    return _INCOMPLETE if size > end - at else GOOD


@helper
def _spans(at: int, stop: int) -> tuple[int, int, int]:
    """The addresses of body, topic and properties of the record from ``at`` to ``stop``; 0 if lengths do not add up."""
    sys_flag = int_at(at + 36)
    body = at + 88 + (12 if sys_flag & 16 else 0) + (12 if sys_flag & 32 else 0)
    if body > stop:
        return 0, 0, 0
    short = int_at(at + 4) == MAGIC_V1
    body_size = int_at(body - 4)
    topic = body + body_size + (1 if short else 2)
    if body_size < 0 or topic > stop:
        return 0, 0, 0
    topic_size = byte_at(topic - 1) if short else short_at(topic - 2)
    properties = topic + topic_size + 2
    if topic_size < 0 or properties > stop:
        return 0, 0, 0
    properties_size = short_at(properties - 2)
    if properties_size < 0 or properties + properties_size != stop:
        return 0, 0, 0
    return body, topic, properties


@helper
def check(at: int, end: int, physical: int, check_crc: bool, crc_property: bool) -> tuple[int, int, int]:
    """Why there is no whole record at ``at`` (a Stop), or GOOD; and the addresses of its topic and properties.

    The topic ends where the 2 bytes of PROPERTIESLENGTH begin.
    """
    stop = _kind(at, end)
    if stop != GOOD:
        return stop, 0, 0
    size = int_at(at)
    body, topic, properties = _spans(at, at + size)
    if body == 0:
        return _BAD_SIZE, 0, 0
    if long_at(at + 28) != physical:
        return _BAD_POSITION, 0, 0
    if check_crc:
        if crc_property:
            if not crc_property_fits(at, size):
                return _BAD_CRC, 0, 0
        else:
            body_size = int_at(body - 4)
            if body_size > 0 and crc31(body, body_size) != int_at(at + 8):
                return _BAD_CRC, 0, 0
            last = at + size - 1 if properties < at + size else properties - 3
            if last >= topic and byte_at(last) == 0:  # the end never reached the disk
                return _BAD_CRC, 0, 0
    return GOOD, topic, properties


@helper
def find_properties(at: int, end: int, safe: int) -> tuple[int, int, int, int, int, int, int, int]:
    """Address and size of the values of TAGS, KEYS, UNIQ_KEY and DELAY; size 0 where there is none or it is empty."""
    tags = tags_size = keys = keys_size = unique = unique_size = delay = delay_size = 0
    while at < end:
        stop = find_byte(at, end, safe, 2)
        size = stop - at
        # The shortest that matters is "TAGS" 01 and one character. Eight bytes may be read: a record begins 91 before.
        if size >= 6:
            word = raw_long_at(at) if at + 8 <= safe else raw_long_at(stop - 8) >> 8 * (8 - size)
            if word & _FIVE == _TAGS:
                tags, tags_size = at + 5, size - 5
            elif word & _FIVE == _KEYS:
                keys, keys_size = at + 5, size - 5
            elif size > 9 and word == _UNIQ_KEY and byte_at(at + 8) == 1:
                unique, unique_size = at + 9, size - 9
            elif size > 6 and word & _SIX == _DELAY:
                delay, delay_size = at + 6, size - 6
        at = stop + 1
    return tags, tags_size, keys, keys_size, unique, unique_size, delay, delay_size


@helper
def delay_level(at: int, size: int) -> int:
    """As unit.delay_level."""
    end = at + size
    if size > 1 and byte_at(at) == 43:
        at += 1
    level = 0
    while at < end:
        digit = byte_at(at) - 48
        if digit < 0 or digit > 9:
            return 0
        level = level * 10 + digit
        if level > 0x7FFFFFFF:
            return 0
        at += 1
    return level


@helper
def tags_code(
    found: tuple[int, int, int, int, int, int, int, int], scheduled: bool, store_timestamp: int, delays: Any
) -> int:
    """As unit.record_tags_code."""
    if scheduled and found[7] > 0:
        level = min(delay_level(found[6], found[7]), delays.size)
        if level > 0:
            return store_timestamp + delays[level - 1]
    return signed(hash_more(found[0], found[1], 0))
