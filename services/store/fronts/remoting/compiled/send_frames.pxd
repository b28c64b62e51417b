from libc.stdint cimport int64_t

from tandemmq.store.broker.compiled.sender cimport CompiledSender
from tandemmq.store.fronts.compiled.spans cimport Span

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _GROUP, _TOPIC, _QUEUE_ID, _SYS_FLAG, _BORN, _FLAG, _PROPERTIES, _TIMES, _FIELDS, _DEMANDED, _NUMBERS
cdef int _FLAGS, _INT_DIGITS, _LONG_DIGITS, _ONE_WAY, _HEAD, _CODE, _TRANSACTION_ID_SINCE, _LANGUAGES, _MOST_NAMES
cdef int _MOST_TEXT, _PREFIX, _HEADER_SIZE, _MOST_ANSWER, _OUR_VERSION
cdef bytes _BEGIN, _MIDDLE, _LANGUAGE, _OPAQUE, _VERSION, _ESCAPE, _RETRY, _REGION_NAME, _TRACE_NAME, _CLUSTER_NAME
cdef bytes _TRUE, _FALSE, _ID_NAME, _QUEUE_NAME, _OFFSET_NAME, _TRANSACTION_NAME, _ANSWER_ID, _ANSWER_QUEUE
cdef bytes _ANSWER_OFFSET, _ANSWER_REGION, _ANSWER_KEY, _ANSWER_NO_KEY, _ANSWER_OPAQUE

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
    cdef unsigned char* _output
    cdef Py_ssize_t _output_size, _output_room
    cdef readonly int64_t end_offset
    cdef readonly bint waits
    cdef readonly int64_t taken
    cdef readonly int answered
    cdef readonly Py_ssize_t position
    cdef int _take(self, const unsigned char* data, Py_ssize_t size, const unsigned char* body, Py_ssize_t body_size, bytes peer, bint binary) except -1
    cdef int _read_json(self, const unsigned char* data, Py_ssize_t size) noexcept
    cdef int _read_binary(self, const unsigned char* data, Py_ssize_t size) noexcept
    cdef int _fill(self, const unsigned char* data) except -1
    cdef int _add_properties(self, const unsigned char* data) except -1
    cdef int _add_pair(self, unsigned char* begin, unsigned char* end, int seen) except -1
    cdef bytes _answers(self)
    cdef int _write_answer(self) except -1
    cdef int _grow(self, Py_ssize_t most) except -1
    cdef unsigned char* _json_answer(self, unsigned char* to, Py_ssize_t key) noexcept
    cdef unsigned char* _binary_answer(self, unsigned char* to, Py_ssize_t key) noexcept
