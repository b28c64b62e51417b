from libc.stdint cimport int64_t, uint64_t

from tandemmq.store.broker.compiled.sender cimport CompiledSender
from tandemmq.store.fronts.compiled.spans cimport Span
from tandemmq.store.log.compiled.appender cimport Batch

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _BATCHES, _NO_WAIT, _TOPIC, _QUEUE_ID, _MESSAGES, _COUNT, _SYS_FLAG, _BORN
cdef int _BATCH_RECEIPTS, _STATUS, _RECEIPT_QUEUE, _FIRST_OFFSET, _RECEIPT_COUNT, _STORE_TIMESTAMP, _MESSAGE_ID
cdef int _PHYSICAL_OFFSETS, _PUT_OK, _MOST
cdef bytes _HEX

cdef class CompiledBatchCodec:
    cdef CompiledSender _sender
    cdef bytes _digits
    cdef Batch _batch
    cdef int64_t _offsets[1024]
    cdef Span _topic
    cdef readonly int64_t end_offset
    cdef readonly bint waits
    cdef readonly int64_t taken
    cdef int _read(self, const unsigned char* data, Py_ssize_t size, bytes peer) except -1
    cdef int _fields(self, const unsigned char* data, Py_ssize_t at, Py_ssize_t end) noexcept
    cdef int _take_number(self, int field, uint64_t value) noexcept
    cdef bytes _receipt(self)
