from libc.stdint cimport int64_t, uint64_t

from tandemmq.store.broker.compiled.sender cimport CompiledSender
from tandemmq.store.fronts.compiled.spans cimport Span

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _MOST, _MOST_HOSTS
cdef Py_ssize_t _LONGEST_KEY
cdef bytes _OK

cdef struct Sent:
    uint64_t id
    Span topic
    Span born_host
    Span body
    Span properties
    int names
    Span name[64]

cdef class CompiledLinkSends:
    cdef CompiledSender _sender
    cdef object _packed_host
    cdef dict _hosts
    cdef Sent _sent
    cdef readonly int64_t end_offset
    cdef readonly int64_t taken
    cdef int _store(self, const unsigned char* data, Span question) except -1
    cdef int _question(self, const unsigned char* data, Span question, Span* message) noexcept
    cdef int _message(self, const unsigned char* data, Span message) noexcept
    cdef Py_ssize_t _number(self, int field, const unsigned char* data, Py_ssize_t at, Py_ssize_t end) noexcept
    cdef int _properties(self, const unsigned char* data) except -1
    cdef bytes _host(self, const unsigned char* data)
    cdef bytes _answer(self)
