# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _MOST_BOUNDS

cdef class CompiledCallTimes:
    cdef object _find, _times
    cdef list _counts
    cdef double _bounds[16]
    cdef int _bound_count
    cdef int count(self, double seconds, long calls) except -1
    cdef int _find_times(self) except -1
