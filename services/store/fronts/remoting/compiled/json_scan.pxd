from libc.stdint cimport int64_t

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _INT_DIGITS, _ONE_WAY, _LARGEST
cdef bytes _LARGEST_INT, _MIDDLE, _LANGUAGE, _OPAQUE, _VERSION

cdef class CompiledJsonScan:
    cdef bytes _begin
    cdef list _names, _most_digits, _demanded
    cpdef object scan(self, bytes header)
    cdef object _text(self, const unsigned char* data, Py_ssize_t at, Py_ssize_t end)
    cdef Py_ssize_t _find(self, const unsigned char* name, Py_ssize_t size) except -2
    cdef object _value(self, Py_ssize_t field, const unsigned char* data, Py_ssize_t at, Py_ssize_t end)
    cdef object _head(self, const unsigned char* data, Py_ssize_t at, Py_ssize_t size, tuple values)
