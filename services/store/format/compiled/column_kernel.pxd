from libc.stdint cimport int32_t, int64_t, uint64_t

from tandemmq.store.format.compiled.memory cimport At, To
from tandemmq.store.format.compiled.record_check cimport Found
from tandemmq.store.format.compiled.walk_rows cimport Row

cdef enum:
    NAME_END = 1
    VALUE_END = 2
    SPACE = 0x20
    HEXTETS = 8

# A property: the twin of the rows of `scratch`.
cdef struct Pair:
    At name
    int64_t name_size
    At value
    int64_t value_size

# The rows of records that somebody wants.
cdef struct Chosen:
    const int64_t* numbers
    int64_t count
    const Row* rows
    At data
    int64_t base  # physical offset of the first byte

cdef struct Pieces:
    int32_t* offsets
    To at
    int64_t count
    int64_t size
