from tandemmq.store.fronts.compiled.call_times cimport CompiledCallTimes
from tandemmq.store.fronts.remoting.compiled.json_scan cimport CompiledJsonScan

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _PREFIX, _GLANCE, _AT_ONCE, _COMMIT, _SUBSCRIPTION
cdef unsigned int _HEADER_SIZE
cdef Py_ssize_t _AT_ONCE_BYTES, _UNASKED_BYTES, _MOST_FRAME
cdef object _TAG
cdef bytes _PULL, _LITE_PULL, _HEAD

cdef class CompiledPullFrames:
    cdef object _store, _topics, _groups, _clients, _resets, _traffic, _bring
    cdef Py_ssize_t _most_messages, _most_bytes
    cdef CompiledJsonScan _scan, _lite_scan
    cdef CompiledCallTimes _times, _lite_times
    cpdef Py_ssize_t answer_all(self, object connection, object transport, bytes data) except -1
    cdef Py_ssize_t _answer(self, object connection, const unsigned char* data, Py_ssize_t size) except -1
    cdef tuple _find(self, tuple values)
    cdef int _wants_all(self, str name, str topic, int flags, tuple values, object group) except -1
    cdef int _write(self, object connection, bytes head, bytes records) except -1
