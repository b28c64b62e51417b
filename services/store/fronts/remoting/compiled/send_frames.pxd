from libc.stdint cimport int64_t

from tandemmq.store.broker.compiled.sender cimport CompiledSender
from tandemmq.store.fronts.compiled.spans cimport Span

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _GROUP, _TOPIC, _QUEUE_ID, _SYS_FLAG, _BORN, _FLAG, _PROPERTIES, _TIMES, _FIELDS, _DEMANDED, _NUMBERS
cdef int _FLAGS, _INT_DIGITS, _LONG_DIGITS, _ONE_WAY, _HEAD, _CODE, _TRANSACTION_ID_SINCE, _LANGUAGES, _MOST_NAMES
cdef int _MOST_TEXT
cdef bytes _BEGIN, _MIDDLE, _LANGUAGE, _OPAQUE, _VERSION, _ESCAPE, _RETRY, _REGION_NAME, _TRACE_NAME, _CLUSTER_NAME
cdef bytes _TRUE, _FALSE

cdef struct Header:
    Span field[14]
    bint binary
    int64_t opaque
    int64_t flag
    int64_t version

cdef class CompiledSendFrames:
    cdef CompiledSender _sender
    cdef bytes _digits, _cluster, _region, _tail
    cdef Header _header
    cdef unsigned char* _text
    cdef readonly int64_t end_offset
    cdef readonly bint waits
    cdef readonly int64_t taken
    cdef int _read_json(self, const unsigned char* data, Py_ssize_t size) noexcept
    cdef int _read_binary(self, const unsigned char* data, Py_ssize_t size) noexcept
    cdef int _fill(self, const unsigned char* data) except -1
    cdef int _add_properties(self, const unsigned char* data) except -1
    cdef int _add_pair(self, unsigned char* begin, unsigned char* end, int seen) except -1
    cdef bytes _answer(self)
    cdef bytes _json_answer(self, bytes place, bytes queue, bytes offset, bytes key)
    cdef bytes _binary_answer(self, bytes place, bytes queue, bytes offset, bytes key)
