"""What Python sees of column_kernel.py."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

BODY: Final = 0
PROPERTIES: Final = 1
TAGS: Final = 2
HOST_TEXT_MAX: Final = 56
MESSAGE_ID_MAX: Final = 56
SCRATCH_WIDTH: Final = 4

_Longs = NDArray[np.int64]
_Ints = NDArray[np.int32]

def spans_of(
    address: int, base: int, length: int, rows: _Longs, chosen: _Longs, field: int, at: _Longs, size: _Longs
) -> None: ...
def renumber(address: int, length: int, least: int, offsets: _Longs) -> tuple[int, int]: ...
def reconsume_times(address: int, base: int, rows: _Longs, chosen: _Longs, target: _Ints) -> None: ...
def gather(address: int, at: _Longs, size: _Longs, offsets: _Ints, target: int) -> None: ...
def split_keys(
    address: int, length: int, at: _Longs, size: _Longs, lists: _Ints, offsets: _Ints, target: int
) -> tuple[int, int]: ...
def split_properties(
    address: int,
    length: int,
    at: _Longs,
    size: _Longs,
    maps: _Ints,
    name_offsets: _Ints,
    names: int,
    value_offsets: _Ints,
    values: int,
    scratch: _Longs,
) -> int: ...
def host_texts(
    address: int, base: int, rows: _Longs, chosen: _Longs, store: bool, offsets: _Ints, target: int
) -> int: ...
def message_ids(
    address: int, base: int, rows: _Longs, chosen: _Longs, physical: _Longs, offsets: _Ints, target: int
) -> int: ...
