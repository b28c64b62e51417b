from libc.stdint cimport int32_t, int64_t, uint32_t

from tandemmq.store.format.compiled.memory cimport At, To
from tandemmq.store.format.compiled.walk_rows cimport Parts, Row

cdef enum:
    HEADER = 40
    SLOT = 4
    ENTRY = 20
    MAX_INT = 0x7FFFFFFF
    ROLLBACK = 12
    SPACE = 32
    DETOURS = 16  # steps an entry, over all, that chains may make through entries of other slots

cdef struct IndexFile:
    To at
    To entries  # where entry 0 begins
    int64_t slots
    int64_t room  # entries that it has, entry 0 among them

# Where the keys of a row go: into an index file, or into arrays.
cdef struct Keys:
    IndexFile* file
    int64_t skip  # so many keys of the row are left out
    int32_t* hashes
    int64_t* physical
    int64_t* times
    int64_t count

# What a look at the entries finds.
cdef struct Look:
    int32_t* newest
    int64_t* result
    int64_t* places
    int64_t most_places
