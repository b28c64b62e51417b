from libc.stdint cimport int64_t

from tandemmq.store.broker.compiled.sender cimport CompiledSender
from tandemmq.store.fronts.compiled.spans cimport Span

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _TOPIC, _QUEUE_ID, _BODY, _TAG, _KEY, _PROPERTY, _FLAG, _SYS_FLAG, _BORN, _MESSAGE, _NO_WAIT, _RECEIPT
cdef int _STATUS, _MESSAGE_ID, _UNIQUE_KEY, _RECEIPT_QUEUE, _QUEUE_OFFSET, _PHYSICAL_OFFSET, _STORE_TIMESTAMP
cdef int _PUT_OK, _MOST, _MOST_UNIQUE, _SPACE, _NAME_SIZE
cdef bytes _HEX, _TAGS_NAME, _KEYS_NAME

cdef struct Request:
    Span topic
    Span body
    Span tag
    int seen
    int keys
    int names
    bint tag_is_property
    bint keys_are_property
    Span key[64]
    Span name[64]

cdef class CompiledSendCodec:
    cdef CompiledSender _sender
    cdef bytes _digits
    cdef Request _request
    cdef readonly int64_t end_offset
    cdef readonly bint waits
    cdef readonly int64_t taken
    cdef int _read(self, const unsigned char* data, Py_ssize_t size, bytes peer) except -1
    cdef Py_ssize_t _field(self, const unsigned char* data, Py_ssize_t at, Py_ssize_t end) except -2
    cdef Py_ssize_t _number(self, int field, const unsigned char* data, Py_ssize_t at, Py_ssize_t end) noexcept
    cdef int _key(self, const unsigned char* data) noexcept
    cdef int _property(self, const unsigned char* data, Span entry) except -1
    cdef int _add_shorthands(self, const unsigned char* data) except -1
    cdef bytes _receipt(self)
