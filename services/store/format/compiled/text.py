"""Text in kernels: Java's String.hashCode over UTF-8 bytes, and comparing."""

from tandemmq.store.format.compiled.jit import helper
from tandemmq.store.format.compiled.memory import byte_at, raw_long_at

_NON_ASCII = -0x7F7F7F7F7F7F7F80  # 0x8080808080808080 as a signed long
_REPLACEMENT = 0xFFFD


@helper
def hash_more(at: int, size: int, value: int) -> int:
    """The hash of a text that hashed to ``value``, with ``size`` bytes of UTF-8 at ``at`` after it.

    Only the low 32 bits mean something.
    """
    end = at + size
    while at + 8 <= end:
        word = raw_long_at(at)
        if word & _NON_ASCII:
            return _hash_decoded(at, end, value)
        # Four at a time (31^4, 31^3, …): the multiplications need not wait for each other.
        value = (
            value * 923521
            + (word & 0x7F) * 29791
            + (word >> 8 & 0x7F) * 961
            + (word >> 16 & 0x7F) * 31
            + (word >> 24 & 0x7F)
        )
        value = (
            value * 923521
            + (word >> 32 & 0x7F) * 29791
            + (word >> 40 & 0x7F) * 961
            + (word >> 48 & 0x7F) * 31
            + (word >> 56 & 0x7F)
        )
        at += 8
    while at < end:
        byte = byte_at(at)
        if byte >= 0x80:
            return _hash_decoded(at, end, value)
        value = value * 31 + byte
        at += 1
    return value


@helper
def _continues(at: int, end: int) -> bool:
    return at < end and byte_at(at) & 0xC0 == 0x80


@helper
def _hash_decoded(at: int, end: int, value: int) -> int:
    """As hash_more, for any bytes: decodes to UTF-16, malformed sequences to U+FFFD as java.decode_utf8 does."""
    while at < end:
        first = byte_at(at)
        second = byte_at(at + 1) if at + 1 < end else 0
        unit = _REPLACEMENT
        size = 1
        if first < 0x80:
            unit = first
        elif 0xC2 <= first < 0xE0:
            if second & 0xC0 == 0x80:
                unit = (first & 0x1F) << 6 | second & 0x3F
                size = 2
        elif 0xE0 <= first < 0xF0:
            if second & 0xC0 == 0x80 and not (first == 0xE0 and second < 0xA0):
                size = 2
                if _continues(at + 2, end):
                    size = 3
                    point = (first & 0x0F) << 12 | (second & 0x3F) << 6 | byte_at(at + 2) & 0x3F
                    if not 0xD800 <= point < 0xE000:
                        unit = point
        elif 0xF0 <= first < 0xF5:
            below = first == 0xF0 and second < 0x90
            above = first == 0xF4 and second >= 0x90
            if second & 0xC0 == 0x80 and not below and not above:
                size = 2
                if _continues(at + 2, end):
                    size = 3
                    if _continues(at + 3, end):
                        size = 4
                        point = (first & 0x07) << 18 | (second & 0x3F) << 12
                        point |= (byte_at(at + 2) & 0x3F) << 6 | byte_at(at + 3) & 0x3F
                        value = value * 31 + (0xD7C0 + (point >> 10))
                        unit = 0xDC00 | point & 0x3FF
        value = value * 31 + unit
        at += size
    return value


@helper
def signed(value: int) -> int:
    """The low 32 bits as a signed int."""
    value &= 0xFFFFFFFF
    return value - 0x100000000 if value & 0x80000000 else value


@helper
def key_hash(value: int) -> int:
    """The index's hash of a text with hash ``value``: see java.index_hash."""
    value = signed(value)
    if value < 0:
        value = -value
    return 0 if value == 0x80000000 else value


@helper
def equal(one: int, other: int, size: int) -> bool:
    """Whether ``size`` bytes at both addresses are the same."""
    at = 0
    while at + 8 <= size:
        if raw_long_at(one + at) != raw_long_at(other + at):
            return False
        at += 8
    while at < size:
        if byte_at(one + at) != byte_at(other + at):
            return False
        at += 1
    return True


@helper
def find_byte(at: int, end: int, safe: int, wanted: int) -> int:
    """The first address >= ``at`` that holds ``wanted``, ``end`` if none before it. May read on up to ``safe``."""
    pattern = wanted * 0x0101010101010101
    while at < end and at + 8 <= safe:
        other = raw_long_at(at) ^ pattern
        hit = (other - 0x0101010101010101) & ~other & _NON_ASCII
        if hit != 0:
            while byte_at(at) != wanted:
                at += 1
            return min(at, end)
        at += 8
    while at < end and byte_at(at) != wanted:
        at += 1
    return min(at, end)
