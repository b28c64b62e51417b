from libc.stdint cimport int64_t, uint64_t

from tandemmq.store.format.compiled.memory cimport At, To

cdef enum:
    LEAST = 22  # bytes of a message without body and properties
    CRC_SIZE = 20
    LONGEST_PROPERTIES = 32767
    SHORTEST_NAME = 6  # "WAIT" 01 and one character
    MALFORMED = -1
    TOO_LONG = -2

cdef struct Blob:
    At at
    At end
    int64_t fixed  # bytes of a record beside body and properties
    bint append_crc
    int64_t count
    int64_t total

# What the records of a batch have in common.
cdef struct Shared:
    At head
    int64_t head_size
    At topic  # with its length
    int64_t topic_size
    At crc_name
    int64_t queue_offset
    int64_t physical_offset
