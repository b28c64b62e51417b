# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _MOST_BOUNDS

cdef class CompiledCallTimes:
    cdef object _find, _times
    cdef list _counts
    cdef double _bounds[16]
    cdef int _bound_count
    cdef long _gathered[17]
    cdef double _gathered_ms
    cdef int gather(self, double seconds) except -1
    cdef int tell(self) except -1
    cdef int _bound_of(self, double milliseconds) except -1
    cdef int count(self, double seconds, long calls) except -1
    cdef int _find_times(self) except -1
