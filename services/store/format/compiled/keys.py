"""The index in two steps, for rebuilding it in parallel: the keys of a walk as arrays, then arrays into index files.

The twin of `Walk.index_into` for all slots and a whole file at once; tests compare both.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandemmq.store.format import index_layout
from tandemmq.store.format.buffers import WriteBuffer
from tandemmq.store.format.compiled.jit import kernel
from tandemmq.store.format.compiled.memory import address_of, byte_at, put_int, put_long
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
from tandemmq.store.format.compiled.walker import CompiledWalk

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

_HEADER = index_layout.HEADER_SIZE
_SLOT = index_layout.SLOT_SIZE
_ENTRY = index_layout.ENTRY_SIZE
_MAX_INT = 0x7FFFFFFF
_ROLLBACK = 12
_TEXT_SIZE = (1 << TEXT_SIZE_BITS) - 1
_BLANK = 32


def keys_of(walk: CompiledWalk) -> tuple[Ints, Longs, Longs]:
    """Hash, physical offset and store time (ms) of every index entry that the records of a walk make, in their order.

    Per record UNIQ_KEY, then each piece of KEYS; none of a rollback. Source: IndexService.buildIndex.
    """
    address, memory, room = walk.memory
    most = int(_most_keys(memory, room))
    hashes, physical, times = np.empty(most, np.int32), np.empty(most, np.int64), np.empty(most, np.int64)
    count = int(_collect(address, memory, room, hashes, physical, times))
    return hashes[:count], physical[:count], times[:count]


def put_entries(
    file: WriteBuffer,
    slots: int,
    entries: int,
    keys: tuple[Ints, Longs, Longs],
    *,
    first_number: int,
    begin_timestamp: int,
    newest: Ints,
    first_slot: int,
) -> None:
    """Write those of ``keys`` whose slot is one of ``newest``'s as entries of an index file.

    ``first_number``: the number that the first of ``keys`` has in the file. ``begin_timestamp``: the file's, from which
    the entries count seconds; 0 gives 0 seconds. ``newest[n]``: number of the newest entry in slot ``first_slot`` + n,
    0 if none; kept up to date, and not written to the file. Several callers may share a file if their slots differ.

    Raises:
        ValueError: the file is too small for the entries.
    """
    hashes, physical, times = keys
    if first_number < 1 or first_number + len(hashes) > entries or len(file) < index_layout.file_size(slots, entries):
        raise ValueError(f"{len(hashes)} entries from {first_number} on do not fit {len(file)} bytes")
    address, _keep = address_of(file)
    _put_entries(
        address + _HEADER + _SLOT * slots,
        slots,
        hashes,
        physical,
        times,
        first_number,
        begin_timestamp,
        newest,
        first_slot,
    )


@kernel
def _most_keys(memory: Any, room: int) -> int:
    rows, count = rows_of(memory, room), memory[ROWS]
    most = 0
    for number in range(count):
        most += (rows[number, UNIQUE] != 0) + ((rows[number, KEYS] & _TEXT_SIZE) + 1) // 2
    return most


@kernel
def _collect(address: int, memory: Any, room: int, hashes: Any, physical: Any, times: Any) -> int:
    """The loop of index.index_rows, with arrays as its target."""
    rows, groups, count = rows_of(memory, room), groups_of(memory, room), memory[ROWS]
    found = 0
    for number in range(count):
        row = rows[number]
        if row[SYS_FLAG] & _ROLLBACK == _ROLLBACK:
            continue
        topic = groups[row[GROUP], TOPIC_HASH]
        if row[UNIQUE] != 0:
            at = address + (row[UNIQUE] >> TEXT_SIZE_BITS)
            hashes[found] = key_hash(hash_more(at, row[UNIQUE] & _TEXT_SIZE, topic))
            physical[found] = row[PHYSICAL]
            times[found] = row[STORE_TIME]
            found += 1
        at = address + (row[KEYS] >> TEXT_SIZE_BITS)
        end = at + (row[KEYS] & _TEXT_SIZE)
        while at < end:
            stop = at
            while stop < end and byte_at(stop) != _BLANK:
                stop += 1
            if stop > at:
                hashes[found] = key_hash(hash_more(at, stop - at, topic))
                physical[found] = row[PHYSICAL]
                times[found] = row[STORE_TIME]
                found += 1
            at = stop + 1
    return found


@kernel
def _put_entries(
    base: int,
    slots: int,
    hashes: Any,
    physical: Any,
    times: Any,
    first_number: int,
    begin: int,
    newest: Any,
    first_slot: int,
) -> None:
    """``base`` is the address of entry 0."""
    mine = newest.size
    for index in range(hashes.size):
        hashed = hashes[index]
        slot = hashed % slots - first_slot
        if slot < 0 or slot >= mine:
            continue
        number = first_number + index
        at = base + _ENTRY * number
        seconds = 0
        if begin > 0 and times[index] - begin > 0:
            seconds = min((times[index] - begin) // 1000, _MAX_INT)
        put_int(at, hashed)
        put_long(at + 4, physical[index])
        put_int(at + 12, seconds)
        put_int(at + 16, newest[slot])
        newest[slot] = number
