# CompiledGivenMessage, as C sees it.

from libc.stdint cimport int64_t

from tandemmq.store.fronts.compiled.spans cimport Span

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _MAGIC_V1, _MAGIC_V2, _BORN_V6, _STORE_V6, _COMPRESSED, _FIXED, _TRANSACTION_KIND, _FIFO, _NORMAL, _MD5
cdef int _IDENTITY, _GZIP, _MOST, _PART, _TOPIC_SIZE, _OTHER, _PYTHON, _TAG, _KEYS, _ID, _GROUP, _TRACE, _HOST
cdef int _TRANSACTION, _HALF, _PLACES, _V4, _V6, _LONGEST_TOPIC
cdef Py_ssize_t _AT_ONCE, _MOST_PROPERTIES, _LONGEST_HANDLE
cdef int64_t _LATEST
cdef Py_ssize_t _MOST_HOSTS

# The fields of a record that consumers get.
cdef struct Stored:
    Span body
    Span properties
    Span born_host
    Span store_host
    int64_t queue_id
    int64_t queue_offset
    int64_t born
    int64_t stored
    int encoding

cdef class CompiledGivenMessage:
    cdef dict _meanings, _hosts
    cdef Stored _stored
    cdef Span _special[8]
    cdef Span _name[64]
    cdef Span _value[64]
    cdef int _own
    cdef unsigned char _system[16384]
    cdef readonly int64_t taken
    cdef int _read(self, const unsigned char* data, Py_ssize_t size) noexcept
    cdef int _sort(self, const unsigned char* data) except -1
    cdef int _add(self, const unsigned char* data, Span name, Span value) except -1
    cdef int _kind(self) noexcept
    cdef bytes _host(self, const unsigned char* data, Span packed)
    cdef int _digest(self, unsigned char* to, const unsigned char* data) except -1
    cdef Py_ssize_t _describe(
        self, const unsigned char* data, bytes handle, int64_t number, int64_t invisible_ms
    ) except -1
    cdef bytes _whole(self, const unsigned char* data, Py_ssize_t described, bytes topic)
