"""Kernels that gather the fields of records into columns: offsets and bytes as Arrow has them.

A field is a *span*: where it begins in the buffer and how many bytes it has, -1 where a record lacks it. Spans are
found for chosen rows, then gathered, so nothing is copied of records that nobody asked for. The Python side is
record_columns.py; the readable twins are decode_record, properties.decode, Host and encode_offset_id.
"""

import cython
from cython.cimports.libc.stdint import int32_t, int64_t, uint64_t
from cython.cimports.libc.string import memcpy
from cython.cimports.tandemmq.store.format.compiled.arrays import ints_to_fill, longs, longs_to_fill
from cython.cimports.tandemmq.store.format.compiled.memory import int_at, long_at, put_long, short_at, word_at
from cython.cimports.tandemmq.store.format.compiled.record_check import (
    BORN_V6,
    STORE_V6,
    V6_MORE,
    find_properties,
    is_v1,
)
from cython.cimports.tandemmq.store.format.compiled.text import equal, find_byte

BODY, PROPERTIES, TAGS = range(3)
"""Fields that spans_of finds."""

HOST_TEXT_MAX = 56
"""Bytes: ``[``, 39 characters of an IPv6 address, ``]:``, and a port that may be any int."""

MESSAGE_ID_MAX = 56

SCRATCH_WIDTH = 4
"""Longs that split_properties needs for each pair."""


@cython.cfunc
@cython.inline
@cython.exceptval(-1)
def chosen_of(address: cython.size_t, base: int64_t, rows: object, chosen: object, found: cython.pointer(Chosen)) -> cython.int:  # fmt: skip # noqa: E501
    """What a kernel works on."""
    found.numbers, found.rows = cython.NULL, cython.NULL
    found.count, found.base = 0, base
    found.data = cython.cast(At, address)
    found.numbers = longs(chosen)
    found.rows = cython.cast(cython.pointer(cython.const[Row]), longs(rows))
    found.count = len(chosen)
    return 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def row_of(chosen: cython.pointer(Chosen), number: int64_t) -> cython.pointer(cython.const[Row]):
    """A chosen row."""
    return chosen.rows + chosen.numbers[number]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def record_of(chosen: cython.pointer(Chosen), row: cython.pointer(cython.const[Row])) -> At:
    """Where the record of a row begins."""
    return chosen.data + (row.physical - chosen.base)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def body_field(at: At, sys_flag: int64_t) -> At:
    """Where BODYLENGTH stands in the record at ``at``."""
    return at + 84 + (V6_MORE if sys_flag & BORN_V6 else 0) + (V6_MORE if sys_flag & STORE_V6 else 0)


def spans_of(
    address: cython.size_t,
    base: int64_t,
    length: int64_t,
    rows: object,
    chosen: object,
    field: cython.int,
    at: object,
    size: object,
) -> None:
    """The spans of BODY, PROPERTIES or TAGS of the ``chosen`` rows.

    ``length``: of the buffer, whose first byte has the log offset ``base``. A body or properties string that is empty
    is there, with 0 bytes; empty TAGS are not.
    """
    wanted: Chosen
    chosen_of(address, base, rows, chosen, cython.address(wanted))
    at_of: cython.pointer(int64_t) = longs_to_fill(at)
    size_of: cython.pointer(int64_t) = longs_to_fill(size)
    number: int64_t
    row: cython.pointer(cython.const[Row])
    record: At
    body: At
    begin: At
    end: At
    found: Found
    with cython.nogil:
        for number in range(wanted.count):
            row = row_of(cython.address(wanted), number)
            record = record_of(cython.address(wanted), row)
            body = body_field(record, row.sys_flag) + 4
            if field == 0:
                at_of[number] = body - wanted.data
                size_of[number] = int_at(body - 4)
                continue
            begin = body + int_at(body - 4)
            begin += 3 + begin[0] if is_v1(int_at(record + 4)) else 4 + short_at(begin)
            end = record + row.size
            if field == 1:
                at_of[number] = begin - wanted.data
                size_of[number] = end - begin
            else:
                find_properties(begin, end, wanted.data + length, cython.address(found))
                at_of[number] = found.tags - wanted.data
                size_of[number] = found.tags_size if found.tags_size > 0 else -1


def renumber(address: cython.size_t, length: int64_t, least: int64_t, offsets: object) -> tuple[int, int]:
    """Replace PHYSICALOFFSET of records that stand one after the other by their place; the old ones go to ``offsets``.

    ``least``: bytes of the shortest record. Stops at what cannot be a record. Returns how many records there are, and
    where the last one ends.
    """
    to: To = cython.cast(To, address)
    old: cython.pointer(int64_t) = longs_to_fill(offsets)
    count: int64_t = 0
    at: int64_t = 0
    size: int64_t
    with cython.nogil:
        while at + least <= length:
            size = int_at(to + at)
            if size < least or at + size > length:
                break
            old[count] = long_at(to + at + 28)
            put_long(to + at + 28, at)
            count += 1
            at += size
    return count, at


def reconsume_times(address: cython.size_t, base: int64_t, rows: object, chosen: object, target: object) -> None:
    """RECONSUMETIMES of the chosen rows."""
    wanted: Chosen
    chosen_of(address, base, rows, chosen, cython.address(wanted))
    times: cython.pointer(int32_t) = ints_to_fill(target)
    number: int64_t
    row: cython.pointer(cython.const[Row])
    with cython.nogil:
        for number in range(wanted.count):
            row = row_of(cython.address(wanted), number)
            # Before it PREPAREDTRANSACTIONOFFSET.
            times[number] = cython.cast(
                int32_t, int_at(body_field(record_of(cython.address(wanted), row), row.sys_flag) - 12)
            )


def gather(address: cython.size_t, at: object, size: object, offsets: object, target: cython.size_t) -> None:
    """Copy the spans one after the other to the address ``target``; a missing one has no bytes."""
    data: At = cython.cast(At, address)
    at_of: cython.pointer(cython.const[int64_t]) = longs(at)
    size_of: cython.pointer(cython.const[int64_t]) = longs(size)
    offset_of: cython.pointer(int32_t) = ints_to_fill(offsets)
    to: To = cython.cast(To, target)
    place: int64_t = 0
    number: int64_t
    count: int64_t = len(at)
    with cython.nogil:
        for number in range(count):
            offset_of[number] = cython.cast(int32_t, place)
            if size_of[number] > 0:
                memcpy(to + place, data + at_of[number], size_of[number])
                place += size_of[number]
        offset_of[count] = cython.cast(int32_t, place)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def add_piece(pieces: cython.pointer(Pieces), at: At, size: int64_t) -> cython.void:
    """Copy one piece behind the others."""
    pieces.offsets[pieces.count] = cython.cast(int32_t, pieces.size)
    memcpy(pieces.at + pieces.size, at, size)
    pieces.count += 1
    pieces.size += size


def split_keys(
    address: cython.size_t, length: int64_t, at: object, size: object, lists: object, offsets: object,
    target: cython.size_t,
) -> tuple[int, int]:  # fmt: skip
    """The pieces of each span between blanks, empty ones left out. Returns how many, and their bytes.

    ``lists``: the first piece of each span; ``offsets``: the first byte of each piece at ``target``.
    """
    data: At = cython.cast(At, address)
    at_of: cython.pointer(cython.const[int64_t]) = longs(at)
    size_of: cython.pointer(cython.const[int64_t]) = longs(size)
    list_of: cython.pointer(int32_t) = ints_to_fill(lists)
    pieces: Pieces
    pieces.offsets, pieces.at = ints_to_fill(offsets), cython.cast(To, target)
    pieces.count = pieces.size = 0
    number: int64_t
    begin: At
    end: At
    stop: At
    count: int64_t = len(at)
    with cython.nogil:
        for number in range(count):
            list_of[number] = cython.cast(int32_t, pieces.count)
            begin = data + at_of[number]
            end = begin + size_of[number]
            while begin < end:
                stop = find_byte(begin, end, data + length, SPACE)
                if stop > begin:
                    add_piece(cython.address(pieces), begin, stop - begin)
                begin = stop + 1
        list_of[count] = cython.cast(int32_t, pieces.count)
        pieces.offsets[pieces.count] = cython.cast(int32_t, pieces.size)
    return pieces.count, pieces.size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def same_name(pairs: cython.pointer(Pair), found: int64_t, name: At, size: int64_t) -> int64_t:
    """The pair that has this name already, ``found`` if none has."""
    pair: int64_t
    for pair in range(found):
        if pairs[pair].name_size == size and equal(pairs[pair].name, name, size):
            return pair
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def find_pairs(begin: At, end: At, safe: At, pairs: cython.pointer(Pair)) -> int64_t:
    """The pairs of one properties string, as properties.decode finds them; returns how many."""
    found: int64_t = 0
    names: uint64_t = 0  # a bit for each name that was seen: most have a bit of their own, and need not be looked for
    bit: uint64_t
    pair: int64_t
    stop: At
    middle: At
    while begin < end:
        stop = find_byte(begin, end, safe, VALUE_END)
        middle = find_byte(begin, stop, safe, NAME_END)
        if begin < middle and stop - middle > 1:
            bit = cython.cast(uint64_t, 1) << (
                cython.cast(uint64_t, (middle - begin) * 7 + begin[0] + 3 * (middle - 1)[0]) & 63
            )
            pair = same_name(pairs, found, begin, middle - begin) if names & bit else found
            names |= bit
            if pair == found:
                pairs[pair].name = begin
                pairs[pair].name_size = middle - begin
                found += 1
            pairs[pair].value = middle + 1
            pairs[pair].value_size = stop - middle - 1
        begin = stop + 1
    return found


def split_properties(
    address: cython.size_t,
    length: int64_t,
    at: object,
    size: object,
    maps: object,
    name_offsets: object,
    names: cython.size_t,
    value_offsets: object,
    values: cython.size_t,
    scratch: object,
) -> int:
    """The pairs of each properties string. Returns how many there are in all.

    ``maps``: the first pair of each string; ``names`` and ``values``: addresses for the bytes of both; ``scratch``:
    room for the pairs of the longest string.
    """
    data: At = cython.cast(At, address)
    at_of: cython.pointer(cython.const[int64_t]) = longs(at)
    size_of: cython.pointer(cython.const[int64_t]) = longs(size)
    map_of: cython.pointer(int32_t) = ints_to_fill(maps)
    pairs: cython.pointer(Pair) = cython.cast(cython.pointer(Pair), longs_to_fill(scratch))
    name: Pieces
    value: Pieces
    name.offsets, name.at = ints_to_fill(name_offsets), cython.cast(To, names)
    value.offsets, value.at = ints_to_fill(value_offsets), cython.cast(To, values)
    name.count = name.size = value.count = value.size = 0
    number: int64_t
    pair: int64_t
    begin: At
    count: int64_t = len(at)
    with cython.nogil:
        for number in range(count):
            map_of[number] = cython.cast(int32_t, name.count)
            begin = data + at_of[number]
            for pair in range(find_pairs(begin, begin + size_of[number], data + length, pairs)):
                add_piece(cython.address(name), pairs[pair].name, pairs[pair].name_size)
                add_piece(cython.address(value), pairs[pair].value, pairs[pair].value_size)
        map_of[count] = cython.cast(int32_t, name.count)
        name.offsets[name.count] = cython.cast(int32_t, name.size)
        value.offsets[value.count] = cython.cast(int32_t, value.size)
    return name.count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_decimal(to: To, value: int64_t) -> To:
    """Write a number; returns the address after it."""
    size: cython.int = 1
    place: cython.int
    rest: int64_t
    if value < 0:
        to[0] = 45
        to += 1
        value = -value
    rest = value // 10
    while rest > 0:
        size += 1
        rest //= 10
    for place in range(size):
        to[size - 1 - place] = cython.cast(cython.uchar, 48 + value % 10)
        value //= 10
    return to + size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def put_hex_digit(to: To, value: int64_t, letters: cython.int) -> To:
    """Write four bits."""
    to[0] = cython.cast(cython.uchar, 48 + value if value < 10 else letters + value - 10)
    return to + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_hextet(to: To, value: int64_t) -> To:
    """Write 16 bits without leading zeros."""
    shift: cython.int = 12
    while shift > 0 and value >> shift == 0:
        shift -= 4
    while shift >= 0:
        to = put_hex_digit(to, value >> shift & 15, 97)
        shift -= 4
    return to


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def longest_zeros(at: At, begin: cython.pointer(cython.int)) -> cython.int:
    """The length of the first of the longest runs of zero hextets in an IPv6 address, and where it begins."""
    best: cython.int = 0
    size: cython.int = 0
    hextet: cython.int
    begin[0] = 0
    for hextet in range(HEXTETS):
        if short_at(at + 2 * hextet) == 0:
            size += 1
            if size > best:
                best = size
                begin[0] = hextet - size + 1
        else:
            size = 0
    return best


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_v6(to: To, at: At) -> To:
    """Write an IPv6 address as RFC 5952 has it: the longest run of two or more zeros is ``::``."""
    zeros: cython.int = 0
    count: cython.int = longest_zeros(at, cython.address(zeros))
    hextet: cython.int = 0
    while hextet < HEXTETS:
        if count > 1 and hextet == zeros:
            to[0] = 58
            to += 1
            hextet += count
            if hextet == HEXTETS:
                to[0] = 58
                to += 1
        else:
            if hextet > 0:
                to[0] = 58
                to += 1
            to = put_hextet(to, short_at(at + 2 * hextet) & 0xFFFF)
            hextet += 1
    return to


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_mapped(at: At) -> cython.bint:
    """Whether the IPv6 address is an IPv4 address in disguise (``::ffff:a.b.c.d``), which counts as IPv4."""
    return word_at(at) == 0 and int_at(at + 8) == 0xFFFF


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_host(to: To, at: At, v6: cython.bint) -> To:
    """Write a host and port."""
    port: At = at + (16 if v6 else 4)
    part: cython.int
    if v6 and is_mapped(at):
        at += 12
        v6 = False
    if v6:
        to[0] = 91
        to = put_v6(to + 1, at)
        to[0] = 93
        to += 1
    else:
        for part in range(4):
            if part > 0:
                to[0] = 46
                to += 1
            to = put_decimal(to, at[part])
    to[0] = 58
    return put_decimal(to + 1, int_at(port))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def store_host(record: At, sys_flag: int64_t) -> At:
    """Where STOREHOST stands."""
    return record + 64 + (V6_MORE if sys_flag & BORN_V6 else 0)


def host_texts(
    address: cython.size_t, base: int64_t, rows: object, chosen: object, store: cython.bint, offsets: object,
    target: cython.size_t,
) -> int:  # fmt: skip
    """BORNHOST, or with ``store`` STOREHOST, as ``str(Host)`` writes it. Returns how many bytes were written."""
    wanted: Chosen
    chosen_of(address, base, rows, chosen, cython.address(wanted))
    offset_of: cython.pointer(int32_t) = ints_to_fill(offsets)
    begin: To = cython.cast(To, target)
    to: To = begin
    number: int64_t
    row: cython.pointer(cython.const[Row])
    record: At
    with cython.nogil:
        for number in range(wanted.count):
            offset_of[number] = cython.cast(int32_t, to - begin)
            row = row_of(cython.address(wanted), number)
            record = record_of(cython.address(wanted), row)
            if store:
                to = put_host(to, store_host(record, row.sys_flag), row.sys_flag & STORE_V6 != 0)
            else:
                to = put_host(to, record + 48, row.sys_flag & BORN_V6 != 0)
        offset_of[wanted.count] = cython.cast(int32_t, to - begin)
    return to - begin


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put_message_id(to: To, host: At, v6: cython.bint, physical: int64_t) -> To:
    """Write an offset id."""
    size: cython.int = 20 if v6 else 8
    place: cython.int
    if v6 and is_mapped(host):
        host += 12
        size = 8
    for place in range(size):
        to = put_hex_digit(to, host[place] >> 4, 65)
        to = put_hex_digit(to, host[place] & 15, 65)
    for place in range(16):
        to = put_hex_digit(to, physical >> (60 - 4 * place) & 15, 65)
    return to


def message_ids(
    address: cython.size_t, base: int64_t, rows: object, chosen: object, physical: object, offsets: object,
    target: cython.size_t,
) -> int:  # fmt: skip
    """The offset id of each record, as encode_offset_id makes it. Returns how many bytes were written.

    ``physical``: the log offsets of the chosen rows.
    """
    wanted: Chosen
    chosen_of(address, base, rows, chosen, cython.address(wanted))
    physical_of: cython.pointer(cython.const[int64_t]) = longs(physical)
    offset_of: cython.pointer(int32_t) = ints_to_fill(offsets)
    begin: To = cython.cast(To, target)
    to: To = begin
    number: int64_t
    row: cython.pointer(cython.const[Row])
    with cython.nogil:
        for number in range(wanted.count):
            offset_of[number] = cython.cast(int32_t, to - begin)
            row = row_of(cython.address(wanted), number)
            to = put_message_id(
                to, store_host(record_of(cython.address(wanted), row), row.sys_flag), row.sys_flag & STORE_V6 != 0,
                physical_of[number],
            )  # fmt: skip
        offset_of[wanted.count] = cython.cast(int32_t, to - begin)
    return to - begin
