"""Kernels that gather the fields of records into columns: offsets and bytes as Arrow has them.

A field is a *span*: where it begins in the buffer and how many bytes it has, -1 where a record lacks it. Spans are
found for chosen rows, then gathered, so nothing is copied of records that nobody asked for. The Python side is
record_columns.py; the readable twins are decode_record, properties.decode, Host and encode_offset_id.
"""

from typing import Any

from tandemmq.store.format.compiled.jit import helper, kernel
from tandemmq.store.format.compiled.memory import (
    byte_at,
    copy,
    int_at,
    long_at,
    put_byte,
    put_long,
    raw_long_at,
    short_at,
)
from tandemmq.store.format.compiled.records import MAGIC_V1, find_properties
from tandemmq.store.format.compiled.text import equal, find_byte
from tandemmq.store.format.compiled.walk import PHYSICAL, SIZE, SYS_FLAG
from tandemmq.store.format.sysflag import BORN_HOST_V6, STORE_HOST_V6

BODY, PROPERTIES, TAGS = range(3)
"""Fields that spans_of finds."""

HOST_TEXT_MAX = 56
"""Bytes: ``[``, 39 characters of an IPv6 address, ``]:``, and a port that may be any int."""

MESSAGE_ID_MAX = 56

# Columns of the scratch table of split_properties.
NAME_AT, NAME_SIZE, VALUE_AT, VALUE_SIZE = range(4)
SCRATCH_WIDTH = 4

_BORN_HOST_AT = 48
_MORE_FOR_V6 = 12
_SPACE = 0x20
_NAME_END, _VALUE_END = 1, 2
_MAPPED_PREFIX = 0x0000FFFF
_HEXTETS = 8


@helper
def _body_field(at: int, sys_flag: int) -> int:
    """Where BODYLENGTH stands in the record at ``at``."""
    return (
        at + 84 + (_MORE_FOR_V6 if sys_flag & BORN_HOST_V6 else 0) + (_MORE_FOR_V6 if sys_flag & STORE_HOST_V6 else 0)
    )


@kernel
def spans_of(address: int, base: int, length: int, rows: Any, chosen: Any, field: int, at: Any, size: Any) -> None:
    """The spans of BODY, PROPERTIES or TAGS of the ``chosen`` rows.

    ``length``: of the buffer, whose first byte has the log offset ``base``. A body or properties string that is empty
    is there, with 0 bytes; empty TAGS are not.
    """
    safe = address + length
    for number in range(chosen.size):
        row = chosen[number]
        record = address + rows[row, PHYSICAL] - base
        body = _body_field(record, rows[row, SYS_FLAG]) + 4
        body_size = int_at(body - 4)
        if field == BODY:
            at[number] = body - address
            size[number] = body_size
            continue
        topic = body + body_size
        if int_at(record + 4) == MAGIC_V1:
            topic += 1 + byte_at(topic)
        else:
            topic += 2 + short_at(topic)
        begin = topic + 2
        end = record + rows[row, SIZE]
        if field == PROPERTIES:
            at[number] = begin - address
            size[number] = end - begin
        else:
            found = find_properties(begin, end, safe)
            at[number] = found[0] - address
            size[number] = found[1] if found[1] > 0 else -1


@kernel
def renumber(address: int, length: int, least: int, offsets: Any) -> tuple[int, int]:
    """Replace PHYSICALOFFSET of records that stand one after the other by their place; the old ones go to ``offsets``.

    ``least``: bytes of the shortest record. Stops at what cannot be a record. Returns how many records there are, and
    where the last one ends.
    """
    count = at = 0
    while at + least <= length:
        size = int_at(address + at)
        if size < least or at + size > length:
            break
        offsets[count] = long_at(address + at + 28)
        put_long(address + at + 28, at)
        count += 1
        at += size
    return count, at


@kernel
def reconsume_times(address: int, base: int, rows: Any, chosen: Any, target: Any) -> None:
    """RECONSUMETIMES of the chosen rows."""
    for number in range(chosen.size):
        row = chosen[number]
        field = _body_field(address + rows[row, PHYSICAL] - base, rows[row, SYS_FLAG])
        target[number] = int_at(field - 12)  # before it PREPAREDTRANSACTIONOFFSET


@kernel
def gather(address: int, at: Any, size: Any, offsets: Any, target: int) -> None:
    """Copy the spans one after the other to the address ``target``; a missing one has no bytes."""
    place = 0
    for number in range(at.size):
        offsets[number] = place
        if size[number] > 0:
            copy(target + place, address + at[number], size[number])
            place += size[number]
    offsets[at.size] = place


@kernel
def split_keys(address: int, length: int, at: Any, size: Any, lists: Any, offsets: Any, target: int) -> tuple[int, int]:
    """The pieces of each span between blanks, empty ones left out. Returns how many, and their bytes.

    ``lists``: the first piece of each span; ``offsets``: the first byte of each piece at ``target``.
    """
    safe = address + length
    pieces = place = 0
    for number in range(at.size):
        lists[number] = pieces
        begin = address + at[number]
        end = begin + size[number]
        while begin < end:
            stop = find_byte(begin, end, safe, _SPACE)
            if stop > begin:
                offsets[pieces] = place
                pieces += 1
                copy(target + place, begin, stop - begin)
                place += stop - begin
            begin = stop + 1
    lists[at.size] = pieces
    offsets[pieces] = place
    return pieces, place


@helper
def _same_name(scratch: Any, found: int, name: int, size: int) -> int:
    """The pair that has this name already, ``found`` if none has."""
    for pair in range(found):
        if scratch[pair, NAME_SIZE] == size and equal(scratch[pair, NAME_AT], name, size):
            return pair
    return found


@helper
def _pairs(begin: int, end: int, safe: int, scratch: Any) -> int:
    """The pairs of one properties string, as properties.decode finds them; returns how many."""
    found = 0
    names = 0  # a bit for each name that was seen: most have a bit of their own, and need not be looked for
    while begin < end:
        stop = find_byte(begin, end, safe, _VALUE_END)
        middle = find_byte(begin, stop, safe, _NAME_END)
        if begin < middle and middle + 1 < stop:
            size = middle - begin
            bit = 1 << (size * 7 + byte_at(begin) + 3 * byte_at(middle - 1) & 63)
            pair = _same_name(scratch, found, begin, size) if names & bit else found
            names |= bit
            if pair == found:
                scratch[pair, NAME_AT] = begin
                scratch[pair, NAME_SIZE] = size
                found += 1
            scratch[pair, VALUE_AT] = middle + 1
            scratch[pair, VALUE_SIZE] = stop - middle - 1
        begin = stop + 1
    return found


@kernel
def split_properties(
    address: int,
    length: int,
    at: Any,
    size: Any,
    maps: Any,
    name_offsets: Any,
    names: int,
    value_offsets: Any,
    values: int,
    scratch: Any,
) -> int:
    """The pairs of each properties string. Returns how many there are in all.

    ``maps``: the first pair of each string; ``names`` and ``values``: addresses for the bytes of both; ``scratch``:
    room for the pairs of the longest string.
    """
    safe = address + length
    pairs = name_place = value_place = 0
    for number in range(at.size):
        maps[number] = pairs
        begin = address + at[number]
        for pair in range(_pairs(begin, begin + size[number], safe, scratch)):
            name_offsets[pairs] = name_place
            value_offsets[pairs] = value_place
            pairs += 1
            copy(names + name_place, scratch[pair, NAME_AT], scratch[pair, NAME_SIZE])
            name_place += scratch[pair, NAME_SIZE]
            copy(values + value_place, scratch[pair, VALUE_AT], scratch[pair, VALUE_SIZE])
            value_place += scratch[pair, VALUE_SIZE]
    maps[at.size] = pairs
    name_offsets[pairs] = name_place
    value_offsets[pairs] = value_place
    return pairs


@helper
def _put_decimal(target: int, value: int) -> int:
    """Write a number; returns the address after it."""
    if value < 0:
        put_byte(target, 45)
        target += 1
        value = -value
    size = 1
    rest = value // 10
    while rest > 0:
        size += 1
        rest //= 10
    for place in range(target + size - 1, target - 1, -1):
        put_byte(place, 48 + value % 10)
        value //= 10
    return target + size


@helper
def _put_hex_digit(target: int, value: int, letters: int) -> int:
    put_byte(target, 48 + value if value < 10 else letters + value - 10)
    return target + 1


@helper
def _put_hextet(target: int, value: int) -> int:
    """Write 16 bits without leading zeros."""
    shift = 12
    while shift > 0 and value >> shift == 0:
        shift -= 4
    while shift >= 0:
        target = _put_hex_digit(target, value >> shift & 15, 97)
        shift -= 4
    return target


@helper
def _longest_zeros(at: int) -> tuple[int, int]:
    """The first of the longest runs of zero hextets in an IPv6 address: begin and length."""
    best = best_size = begin = size = 0
    for hextet in range(_HEXTETS):
        if short_at(at + 2 * hextet) == 0:
            if size == 0:
                begin = hextet
            size += 1
            if size > best_size:
                best, best_size = begin, size
        else:
            size = 0
    return best, best_size


@helper
def _put_v6(target: int, at: int) -> int:
    """Write an IPv6 address as RFC 5952 has it: the longest run of two or more zeros is ``::``."""
    zeros, zeros_size = _longest_zeros(at)
    hextet = 0
    while hextet < _HEXTETS:
        if zeros_size > 1 and hextet == zeros:
            put_byte(target, 58)
            target += 1
            hextet += zeros_size
            if hextet == _HEXTETS:
                put_byte(target, 58)
                target += 1
        else:
            if hextet > 0:
                put_byte(target, 58)
                target += 1
            target = _put_hextet(target, short_at(at + 2 * hextet) & 0xFFFF)
            hextet += 1
    return target


@helper
def _is_mapped(at: int) -> bool:
    """Whether the IPv6 address is an IPv4 address in disguise (``::ffff:a.b.c.d``), which counts as IPv4."""
    return raw_long_at(at) == 0 and int_at(at + 8) == _MAPPED_PREFIX


@helper
def _put_host(target: int, at: int, v6: bool) -> int:
    port = at + (16 if v6 else 4)
    if v6 and _is_mapped(at):
        at += 12
        v6 = False
    if v6:
        put_byte(target, 91)
        target = _put_v6(target + 1, at)
        put_byte(target, 93)
        target += 1
    else:
        for part in range(4):
            if part > 0:
                put_byte(target, 46)
                target += 1
            target = _put_decimal(target, byte_at(at + part))
    put_byte(target, 58)
    return _put_decimal(target + 1, int_at(port))


@helper
def _store_host(record: int, sys_flag: int) -> int:
    return record + 64 + (_MORE_FOR_V6 if sys_flag & BORN_HOST_V6 else 0)


@kernel
def host_texts(address: int, base: int, rows: Any, chosen: Any, store: bool, offsets: Any, target: int) -> int:
    """BORNHOST, or with ``store`` STOREHOST, as ``str(Host)`` writes it. Returns how many bytes were written."""
    place = target
    for number in range(chosen.size):
        row = chosen[number]
        offsets[number] = place - target
        sys_flag = rows[row, SYS_FLAG]
        record = address + rows[row, PHYSICAL] - base
        if store:
            place = _put_host(place, _store_host(record, sys_flag), sys_flag & STORE_HOST_V6 != 0)
        else:
            place = _put_host(place, record + _BORN_HOST_AT, sys_flag & BORN_HOST_V6 != 0)
    offsets[chosen.size] = place - target
    return place - target


@kernel
def message_ids(address: int, base: int, rows: Any, chosen: Any, physical: Any, offsets: Any, target: int) -> int:
    """The offset id of each record, as encode_offset_id makes it. Returns how many bytes were written.

    ``physical``: the log offsets of the chosen rows.
    """
    place = target
    for number in range(chosen.size):
        row = chosen[number]
        offsets[number] = place - target
        sys_flag = rows[row, SYS_FLAG]
        host = _store_host(address + rows[row, PHYSICAL] - base, sys_flag)
        size = 8
        if sys_flag & STORE_HOST_V6:
            size = 20
            if _is_mapped(host):
                host += 12
                size = 8
        for at in range(host, host + size):
            place = _put_hex_digit(place, byte_at(at) >> 4, 65)
            place = _put_hex_digit(place, byte_at(at) & 15, 65)
        for shift in range(60, -4, -4):
            place = _put_hex_digit(place, physical[number] >> shift & 15, 65)
    offsets[chosen.size] = place - target
    return place - target
