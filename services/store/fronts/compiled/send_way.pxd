from cpython.object cimport PyObject

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _MOST_PEERS, _MOST_BOUNDS

cdef class CompiledSendWay:
    cdef object _core, _answer, _acknowledgement, _when_safe, _otherwise, _accepts, _peer_host, _times
    cdef list _counts
    cdef dict _packed
    cdef double _bounds[16]
    cdef int _bound_count
    cdef bytes _host(self, str peer)
    cdef object _hold(self, bytes answer, object call, double begun)
    cdef int _count(self, double seconds) except -1
    cdef int _find_times(self) except -1
