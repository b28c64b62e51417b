"""The kernels of the index: the keys of a walk, entries of index files, and the audit's look at them."""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING
from cython.cimports.libc.stdint import int32_t, int64_t, uint32_t
from cython.cimports.tandemmq.store.format.compiled.arrays import ints, ints_to_fill, longs, longs_to_fill
from cython.cimports.tandemmq.store.format.compiled.memory import int_at, long_at, put_int, put_long
from cython.cimports.tandemmq.store.format.compiled.text import hash_more, key_hash
from cython.cimports.tandemmq.store.format.compiled.walk_rows import TEXT_SIZE_BITS, TEXT_SIZE_MASK, parts_of

from tandemmq.store.format import index_layout

if [HEADER, SLOT, ENTRY] != [index_layout.HEADER_SIZE, index_layout.SLOT_SIZE, index_layout.ENTRY_SIZE]:
    raise ImportError("the compiled index was made for another layout of index files")


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def file_at(address: cython.size_t, slots: int64_t, room: int64_t) -> IndexFile:
    """An index file at an address."""
    file: IndexFile
    file.at = cython.cast(To, address)
    file.entries = file.at + HEADER + SLOT * slots
    file.slots = slots
    file.room = room
    return file


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def slot_of(hashed: int64_t, slots: int64_t) -> int64_t:
    """Never negative: what a file has may be damaged."""
    slot: int64_t = hashed % slots
    return slot + slots if slot < 0 else slot


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def good_entries(file: IndexFile, bound: int64_t) -> int64_t:
    """See index_layout.entries_before."""
    count: int64_t = min(max(int_at(file.at + 36), 1), file.room)
    before: int64_t = 0
    number: int64_t
    at: At
    hashed: int64_t
    physical: int64_t
    seconds: int64_t
    previous: int64_t
    for number in range(1, count):
        at = file.entries + ENTRY * number
        hashed, physical, seconds, previous = int_at(at), long_at(at + 4), int_at(at + 12), int_at(at + 16)
        if physical < before or physical >= bound or hashed < 0 or seconds < 0:
            return number
        if previous < 0 or previous >= number or (hashed | physical | seconds | previous) == 0:
            return number
        before = physical
    return max(count, 1)


def entries_before(address: cython.size_t, slots: int64_t, entries: int64_t, physical_offset: int64_t) -> int:
    """See index_layout.entries_before."""
    found: int64_t
    with cython.nogil:
        found = good_entries(file_at(address, slots, entries), physical_offset)
    return found


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def chained(file: IndexFile, count: int64_t) -> int64_t:
    """See index_layout.rebuild_chains."""
    used: int64_t = 0
    number: int64_t
    at: To
    slot: To
    previous: int64_t
    for number in range(file.slots):
        slot = file.at + HEADER + SLOT * number
        if int_at(slot) != 0:  # spares the holes of a sparse file
            put_int(slot, 0)
    for number in range(1, count):
        at = file.entries + ENTRY * number
        slot = file.at + HEADER + SLOT * slot_of(int_at(at), file.slots)
        previous = int_at(slot)
        put_int(at + 16, previous)
        put_int(slot, number)
        used += previous == 0
    return used


def rebuild_chains(address: cython.size_t, slots: int64_t, count: int64_t) -> int:
    """See index_layout.rebuild_chains."""
    used: int64_t
    with cython.nogil:
        used = chained(file_at(address, slots, count), count)
    return used


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def seconds_since(begin: int64_t, stored: int64_t) -> int64_t:
    """As an entry has them."""
    if begin <= 0 or stored <= begin:
        return 0
    return min((stored - begin) // 1000, cython.cast(int64_t, MAX_INT))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def put(file: cython.pointer(IndexFile), hashed: int64_t, physical: int64_t, stored: int64_t) -> cython.bint:
    """As index_layout.put_key."""
    head: To = file.at
    number: int64_t = max(int_at(head + 36), 1)
    if number >= file.room:
        return False
    slot: To = head + HEADER + SLOT * slot_of(hashed, file.slots)
    previous: int64_t = int_at(slot)
    if previous <= 0 or previous > number:
        previous = 0
    at: To = file.entries + ENTRY * number
    put_int(at, hashed)
    put_long(at + 4, physical)
    put_int(at + 12, seconds_since(long_at(head), stored))
    put_int(at + 16, previous)
    if number <= 1:
        put_long(head, stored)
        put_long(head + 16, physical)
    put_long(head + 8, stored)
    put_long(head + 24, physical)
    if previous == 0:
        put_int(head + 32, int_at(head + 32) + 1)
    put_int(head + 36, number + 1)
    put_int(slot, number)
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def take(keys: cython.pointer(Keys), hashed: int64_t, row: cython.pointer(Row)) -> cython.bint:
    """Put a key where it goes. False: the file is full."""
    if keys.file != cython.NULL:
        return put(keys.file, hashed, row.physical, row.stored)
    keys.hashes[keys.count] = cython.cast(int32_t, hashed)
    keys.physical[keys.count] = row.physical
    keys.times[keys.count] = row.stored
    keys.count += 1
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def take_row(data: At, row: cython.pointer(Row), topic: uint32_t, keys: cython.pointer(Keys)) -> int64_t:
    """Take the keys of a record: UNIQ_KEY, then each piece of KEYS. The key where the file was full, or -1."""
    key: int64_t = 0
    at: At
    end: At
    stop: At
    if row.unique != 0:
        if key >= keys.skip:
            at = data + (row.unique >> TEXT_SIZE_BITS)
            if not take(keys, key_hash(hash_more(at, row.unique & TEXT_SIZE_MASK, topic)), row):
                return key
        key += 1
    at = data + (row.keys >> TEXT_SIZE_BITS)
    end = at + (row.keys & TEXT_SIZE_MASK)
    while at < end:
        stop = at
        while stop < end and stop[0] != SPACE:
            stop += 1
        if stop > at:
            if key >= keys.skip and not take(keys, key_hash(hash_more(at, stop - at, topic)), row):
                return key
            key += 1
        at = stop + 1
    return -1


def index_rows(
    data: cython.size_t,
    memory: bytes,
    room: int64_t,
    address: cython.size_t,
    slots: int64_t,
    entries: int64_t,
    from_row: int64_t,
    from_key: int64_t,
    skip_below: int64_t,
) -> tuple[int, int]:
    """The index_into of walker.Walk: ``data`` is the address of the log's bytes, ``address`` that of the index file.

    ``memory`` and ``room`` are the walk's.
    """
    parts: Parts
    parts_of(PyBytes_AS_STRING(memory), room, cython.address(parts))
    file: IndexFile = file_at(address, slots, entries)
    keys: Keys
    keys.file = cython.address(file)
    keys.skip = from_key
    number: int64_t = from_row
    full: int64_t = -1
    row: cython.pointer(Row)
    with cython.nogil:
        while number < parts.result.rows:
            row = parts.rows + number
            if row.sys_flag & ROLLBACK != ROLLBACK and row.physical >= skip_below:
                full = take_row(
                    cython.cast(At, data), row, cython.cast(uint32_t, parts.groups[row.group].topic_hash),
                    cython.address(keys),
                )  # fmt: skip
                if full >= 0:
                    break
            keys.skip = 0
            number += 1
    return number, max(full, 0)


def most_keys(memory: bytes, room: int64_t) -> int:
    """At least as many as the records of a walk have."""
    parts: Parts
    parts_of(PyBytes_AS_STRING(memory), room, cython.address(parts))
    most: int64_t = 0
    number: int64_t
    for number in range(parts.result.rows):
        most += (parts.rows[number].unique != 0) + ((parts.rows[number].keys & TEXT_SIZE_MASK) + 1) // 2
    return most


def collect(data: cython.size_t, memory: bytes, room: int64_t, hashes: object, physical: object, times: object) -> int:
    """As index_rows, with arrays as its target; how many keys there are."""
    parts: Parts
    parts_of(PyBytes_AS_STRING(memory), room, cython.address(parts))
    keys: Keys
    keys.file = cython.NULL
    keys.skip = keys.count = 0
    keys.hashes, keys.physical, keys.times = ints_to_fill(hashes), longs_to_fill(physical), longs_to_fill(times)
    number: int64_t
    row: cython.pointer(Row)
    with cython.nogil:
        for number in range(parts.result.rows):
            row = parts.rows + number
            if row.sys_flag & ROLLBACK != ROLLBACK:
                take_row(
                    cython.cast(At, data), row, cython.cast(uint32_t, parts.groups[row.group].topic_hash),
                    cython.address(keys),
                )  # fmt: skip
    return keys.count


def put_entries(
    address: cython.size_t,
    slots: int64_t,
    hashes: object,
    physical: object,
    times: object,
    first_number: int64_t,
    begin: int64_t,
    newest: object,
    first_slot: int64_t,
) -> None:
    """See keys.put_entries; ``address`` is that of the file."""
    file: IndexFile = file_at(address, slots, 0)
    hash_of: cython.pointer(cython.const[int32_t]) = ints(hashes)
    physical_of: cython.pointer(cython.const[int64_t]) = longs(physical)
    time_of: cython.pointer(cython.const[int64_t]) = longs(times)
    newest_of: cython.pointer(int32_t) = ints_to_fill(newest)
    mine: int64_t = len(newest)
    count: int64_t = len(hashes)
    index: int64_t
    slot: int64_t
    at: To
    with cython.nogil:
        for index in range(count):
            slot = slot_of(hash_of[index], slots) - first_slot
            if slot < 0 or slot >= mine:
                continue
            at = file.entries + ENTRY * (first_number + index)
            put_int(at, hash_of[index])
            put_long(at + 4, physical_of[index])
            put_int(at + 12, seconds_since(begin, time_of[index]))
            put_int(at + 16, newest_of[slot])
            newest_of[slot] = cython.cast(int32_t, first_number + index)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def note(look: cython.pointer(Look), kind: cython.int, number: int64_t) -> cython.void:
    """One more entry of a kind."""
    if look.result[kind] < look.most_places:
        look.places[kind * look.most_places + look.result[kind]] = number
    look.result[kind] += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def look_at_slots(file: IndexFile, count: int64_t, live: cython.bint, look: cython.pointer(Look)) -> cython.void:
    """Note the newest entry of each slot; with ``live`` the newest below ``count``."""
    slot: int64_t
    number: int64_t
    before: int64_t
    for slot in range(file.slots):
        number = int_at(file.at + HEADER + SLOT * slot)
        while live and count <= number < file.room:
            before = int_at(file.entries + ENTRY * number + 16)
            number = before if before < number else 0
        if 0 < number < count:
            look.newest[slot] = cython.cast(int32_t, number)
            look.result[3] += 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def look_at_entries(file: IndexFile, count: int64_t, look: cython.pointer(Look)) -> cython.void:
    """Go through the entries from the newest on, and along the chains."""
    left: int64_t = DETOURS * count
    low: int64_t = cython.cast(int64_t, 1) << 62
    after: int64_t = low
    high: int64_t = -1
    number: int64_t = count - 1
    at: At
    hashed: int64_t
    physical: int64_t
    previous: int64_t
    before: int64_t
    slot: int64_t
    while number > 0:
        at = file.entries + ENTRY * number
        hashed, physical, previous = int_at(at), long_at(at + 4), int_at(at + 16)
        before = int_at(at + 12)  # seconds
        if (
            hashed < 0
            or physical < 0
            or before < 0
            or previous < 0
            or previous >= number
            or (hashed | physical | before | previous) == 0
        ):
            note(look, 1, number)
        if physical > after:
            note(look, 2, number + 1)
        after = physical
        low, high = min(low, physical), max(high, physical)
        if hashed >= 0:
            slot = hashed % file.slots
            while look.newest[slot] > number and left > 0:  # through an entry of another slot, as a search would go
                before = int_at(file.entries + ENTRY * look.newest[slot] + 16)
                look.newest[slot] = cython.cast(int32_t, before if 0 < before < look.newest[slot] else 0)
                left -= 1
            if look.newest[slot] == number:
                look.newest[slot] = cython.cast(int32_t, previous if 0 < previous < number else 0)
            else:
                note(look, 0, number)
        number -= 1
    look.result[4], look.result[5] = low, high


def look_at(
    address: cython.size_t,
    slots: int64_t,
    count: int64_t,
    entries: int64_t,
    live: cython.bint,
    newest: object,
    result: object,
    places: object,
) -> None:
    """See audit_kernels.look_at_entries. ``entries``: as many as the file has room for."""
    file: IndexFile = file_at(address, slots, entries)
    look: Look
    look.newest, look.result, look.places = ints_to_fill(newest), longs_to_fill(result), longs_to_fill(places)
    look.most_places = len(places[0])
    with cython.nogil:
        look_at_slots(file, count, live, cython.address(look))
        look_at_entries(file, count, cython.address(look))
