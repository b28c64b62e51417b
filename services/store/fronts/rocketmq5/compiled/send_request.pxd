from libc.stdint cimport int64_t

from tandemmq.store.broker.compiled.plain_message cimport CompiledMessage
from tandemmq.store.fronts.compiled.spans cimport Span

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _MESSAGES, _TOPIC, _PROPERTY, _SYSTEM, _BODY, _NAME, _TAG, _KEY, _MESSAGE_ID, _DIGEST, _ENCODING, _KIND
cdef int _BORN, _BORN_HOST, _QUEUE_ID, _TRACE_CONTEXT, _FIRST_NUMBER, _CHECKSUM, _NANOS, _NORMAL, _GZIP, _CRC32
cdef int _MD5, _MOST, _COMPRESSED, _LONGEST_ID, _LONGEST_HOST, _MOST_BYTES
cdef long long _LATEST, _MIDDLE_OF_TIME
cdef Py_ssize_t _MOST_TOPICS
cdef bytes _UNIQUE_NAME, _TAGS_NAME, _KEYS_NAME, _TRACE_NAME, _HOST_NAME

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

cdef class CompiledSendRequest:
    cdef CompiledMessage _built
    cdef object _table, _takes_normal
    cdef set _taken_topics
    cdef frozenset _internal
    cdef Sent sent
    cdef int read(self, bytes message) except -1
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
