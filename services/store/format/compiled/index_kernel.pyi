"""What Python sees of index_kernel.py."""

import numpy as np
from numpy.typing import NDArray

def entries_before(address: int, slots: int, entries: int, physical_offset: int) -> int: ...
def rebuild_chains(address: int, slots: int, count: int) -> int: ...
def index_rows(
    data: int,
    memory: bytes,
    room: int,
    address: int,
    slots: int,
    entries: int,
    from_row: int,
    from_key: int,
    skip_below: int,
) -> tuple[int, int]: ...
def most_keys(memory: bytes, room: int) -> int: ...
def collect(
    data: int,
    memory: bytes,
    room: int,
    hashes: NDArray[np.int32],
    physical: NDArray[np.int64],
    times: NDArray[np.int64],
) -> int: ...
def put_entries(
    address: int,
    slots: int,
    hashes: NDArray[np.int32],
    physical: NDArray[np.int64],
    times: NDArray[np.int64],
    first_number: int,
    begin: int,
    newest: NDArray[np.int32],
    first_slot: int,
) -> None: ...
def look_at(
    address: int,
    slots: int,
    count: int,
    entries: int,
    live: bool,
    newest: NDArray[np.int32],
    result: NDArray[np.int64],
    places: NDArray[np.int64],
) -> None: ...
