cdef class CallDeadlines:
    cdef object _loop, _timer
    cdef dict _streams
    cdef double _due
    cdef bint _over
    cdef int watch(self, double deadline) except -1
