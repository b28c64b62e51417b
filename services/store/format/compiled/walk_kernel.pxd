from libc.stdint cimport int32_t, int64_t, uint64_t

from tandemmq.store.format.compiled.memory cimport At, To
from tandemmq.store.format.compiled.record_check cimport Found, Spans
from tandemmq.store.format.compiled.walk_rows cimport Group, Parts, Row, Run

cdef struct Range:
    At data
    int64_t begin
    int64_t end
    int64_t length
    int64_t base  # physical offset of the first byte
    int64_t limit
    bint check_crc
    bint crc_property
    const int64_t* delays
    int64_t levels

cdef enum:
    LEAST_TO_LOOK_AT = 4
    PREPARED_BIT = 4
    UNIT = 20
    STOP_BITS = 4
    MAGIC_BYTE = 0xDA  # the first of both magic codes
    CRC_IGNORED = 0
    CRC_REQUIRED = 2
    SCHEDULE_SIZE = 19

cdef bytes _SCHEDULE
cdef const unsigned char* _schedule
