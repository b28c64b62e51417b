# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _PREFIX
cdef Py_ssize_t _OVERHEAD

cdef class GatheredRequest:
    cdef list parts
    cdef Py_ssize_t left
    cdef bint fits(self, const unsigned char* at, Py_ssize_t size, bint ended, Py_ssize_t largest) noexcept
    cdef Py_ssize_t add(self, const unsigned char* at, Py_ssize_t size) except -1
    cdef bytes message(self, const unsigned char* at, Py_ssize_t size)
