"""The index in two steps, for rebuilding it in parallel: the keys of a walk as arrays, then arrays into index files.

The twin of `Walk.index_into` for all slots and a whole file at once; tests compare both.
"""

import numpy as np
from numpy.typing import NDArray

from tandemmq.store.format import index_layout
from tandemmq.store.format.buffers import WriteBuffer
from tandemmq.store.format.compiled import index_kernel
from tandemmq.store.format.compiled.addresses import address_of
from tandemmq.store.format.compiled.walker import CompiledWalk

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


def keys_of(walk: CompiledWalk) -> tuple[Ints, Longs, Longs]:
    """Hash, physical offset and store time (ms) of every index entry that the records of a walk make, in their order.

    Per record UNIQ_KEY, then each piece of KEYS; none of a rollback. Source: IndexService.buildIndex.
    """
    address, memory, room = walk.memory
    most = index_kernel.most_keys(memory, room)
    hashes, physical, times = np.empty(most, np.int32), np.empty(most, np.int64), np.empty(most, np.int64)
    count = index_kernel.collect(address, memory, room, hashes, physical, times)
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
    index_kernel.put_entries(address, slots, hashes, physical, times, first_number, begin_timestamp, newest, first_slot)
