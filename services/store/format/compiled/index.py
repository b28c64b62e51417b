"""The index in machine code: adding the keys of a walk, and the twins of two functions of index_layout."""

from typing import Any

from tandemmq.store.format import index_layout
from tandemmq.store.format.buffers import ReadBuffer, WriteBuffer
from tandemmq.store.format.compiled.jit import helper, kernel
from tandemmq.store.format.compiled.memory import address_of, byte_at, int_at, long_at, put_int, put_long
from tandemmq.store.format.compiled.text import hash_more, key_hash
from tandemmq.store.format.compiled.walk import (
    GROUP,
    KEYS,
    PHYSICAL,
    ROWS,
    STORE_TIME,
    SYS_FLAG,
    TEXT_SIZE_BITS,
    TOPIC_HASH,
    UNIQUE,
    groups_of,
    rows_of,
)

_HEADER = index_layout.HEADER_SIZE
_SLOT = index_layout.SLOT_SIZE
_ENTRY = index_layout.ENTRY_SIZE
_MAX_INT = 0x7FFFFFFF
_ROLLBACK = 12
_TEXT_SIZE = (1 << TEXT_SIZE_BITS) - 1
_BLANK = 32


def entries_before(buffer: ReadBuffer, slots: int, entries: int, physical_offset: int) -> int:
    """See index_layout.entries_before."""
    _check_size(buffer, slots, entries)
    address, _keep = address_of(buffer)
    return int(_entries_before(address, slots, entries, physical_offset))


def rebuild_chains(buffer: WriteBuffer, slots: int, entries: int, count: int) -> int:
    """See index_layout.rebuild_chains."""
    _check_size(buffer, slots, entries)
    address, _keep = address_of(buffer)
    return int(_rebuild_chains(address, slots, min(count, entries)))


def _check_size(buffer: ReadBuffer, slots: int, entries: int) -> None:
    size = index_layout.file_size(slots, entries)
    if slots <= 0 or entries <= 0 or len(buffer) < size:
        raise ValueError(f"an index file of {slots} slots and {entries} entries has {size} bytes, not {len(buffer)}")


@kernel
def _entries_before(file: int, slots: int, entries: int, physical_offset: int) -> int:
    count = min(max(int_at(file + 36), 1), entries)
    before = 0
    for number in range(1, count):
        at = file + _HEADER + _SLOT * slots + _ENTRY * number
        hashed, physical, seconds, previous = int_at(at), long_at(at + 4), int_at(at + 12), int_at(at + 16)
        if physical < before or physical >= physical_offset or hashed < 0 or seconds < 0:
            return number
        if previous < 0 or previous >= number or (hashed | physical | seconds | previous) == 0:
            return number
        before = physical
    return max(count, 1)


@kernel
def _rebuild_chains(file: int, slots: int, count: int) -> int:
    used = 0
    for slot in range(slots):
        at = file + _HEADER + _SLOT * slot
        if int_at(at) != 0:  # spares the holes of a sparse file
            put_int(at, 0)
    for number in range(1, count):
        at = file + _HEADER + _SLOT * slots + _ENTRY * number
        slot_at = file + _HEADER + _SLOT * (int_at(at) % slots)
        previous = int_at(slot_at)
        put_int(at + 16, previous)
        put_int(slot_at, number)
        used += previous == 0
    return used


@helper
def _put(file: int, slots: int, entries: int, hashed: int, physical: int, stored: int) -> bool:
    """As index_layout.put_key."""
    number = max(int_at(file + 36), 1)
    if number >= entries:
        return False
    slot_at = file + _HEADER + _SLOT * (hashed % slots)
    previous = int_at(slot_at)
    if previous <= 0 or previous > number:
        previous = 0
    begin = long_at(file)
    seconds = 0
    if begin > 0 and stored - begin > 0:
        seconds = min((stored - begin) // 1000, _MAX_INT)
    at = file + _HEADER + _SLOT * slots + _ENTRY * number
    put_int(at, hashed)
    put_long(at + 4, physical)
    put_int(at + 12, seconds)
    put_int(at + 16, previous)
    if number <= 1:
        put_long(file, stored)
        put_long(file + 16, physical)
    put_long(file + 8, stored)
    put_long(file + 24, physical)
    if previous == 0:
        put_int(file + 32, int_at(file + 32) + 1)
    put_int(file + 36, number + 1)
    put_int(slot_at, number)
    return True


@kernel
def index_rows(
    address: int,
    memory: Any,
    room: int,
    file: int,
    slots: int,
    entries: int,
    from_row: int,
    from_key: int,
    skip_below: int,
) -> tuple[int, int]:
    """The index_into of walker.Walk: ``address`` is that of the log's bytes, ``file`` that of the index file.

    ``memory`` and ``room`` are the walk's.
    """
    rows, groups, count = rows_of(memory, room), groups_of(memory, room), memory[ROWS]
    for number in range(from_row, count):
        row = rows[number]
        physical, stored = row[PHYSICAL], row[STORE_TIME]
        if row[SYS_FLAG] & _ROLLBACK == _ROLLBACK or physical < skip_below:
            from_key = 0
            continue
        topic = groups[row[GROUP], TOPIC_HASH]
        key = 0
        if row[UNIQUE] != 0:
            if key >= from_key:
                hashed = key_hash(hash_more(address + (row[UNIQUE] >> TEXT_SIZE_BITS), row[UNIQUE] & _TEXT_SIZE, topic))
                if not _put(file, slots, entries, hashed, physical, stored):
                    return number, key
            key += 1
        at = address + (row[KEYS] >> TEXT_SIZE_BITS)
        end = at + (row[KEYS] & _TEXT_SIZE)
        while at < end:
            stop = at
            while stop < end and byte_at(stop) != _BLANK:
                stop += 1
            if stop > at:
                if key >= from_key:
                    hashed = key_hash(hash_more(at, stop - at, topic))
                    if not _put(file, slots, entries, hashed, physical, stored):
                        return number, key
                key += 1
            at = stop + 1
        from_key = 0
    return count, 0
