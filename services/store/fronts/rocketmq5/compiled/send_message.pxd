from libc.stdint cimport int64_t

from tandemmq.store.broker.compiled.sender cimport CompiledSender
from tandemmq.store.fronts.compiled.spans cimport Span

cdef struct Sent:
    Span topic
    Span body
    Span system
    Span tag
    Span message_id
    Span digest
    Span born_host
    Span trace_context
    Span born
    int64_t encoding
    int64_t kind
    int64_t digest_kind
    int64_t born_ms
    int64_t size
    int keys
    int names
    Span key[64]
    Span name[64]
    Span value[64]

cdef class CompiledSendMessage:
    cdef CompiledSender _sender
    cdef object _table, _takes_normal, _seen
    cdef frozenset _internal
    cdef Sent _sent
    cdef readonly int64_t end_offset
    cdef readonly int64_t taken
    cdef int _read(self, const unsigned char* data, Py_ssize_t size) except -1
    cdef int _message(self, const unsigned char* data, Py_ssize_t at, Py_ssize_t end) except -1
    cdef int _system(self, const unsigned char* data) except -1
    cdef Py_ssize_t _system_field(self, int field, const unsigned char* data, Py_ssize_t at, Py_ssize_t end) noexcept
    cdef int _property(self, const unsigned char* data, Span entry) except -1
    cdef int _digest(self, const unsigned char* data) except -1
    cdef int _times(self, const unsigned char* data) except -1
    cdef int _fits(self, const unsigned char* data) except -1
    cdef int _fill(self, const unsigned char* data) except -1
    cdef int _takes(self, const unsigned char* data) except -1
    cdef bytes _answer(self)
