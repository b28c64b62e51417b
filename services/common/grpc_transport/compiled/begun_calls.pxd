from cpython.object cimport PyObject
from libc.stdint cimport int64_t

cdef enum:
    MOST_BEGUN = 256

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _FRAME

cdef struct BegunCall:
    unsigned int stream
    unsigned int increment
    const unsigned char* block
    Py_ssize_t block_size
    PyObject* method

cdef class BegunCalls:
    cdef int first, end
    cdef readonly int64_t taken
    cdef BegunCall calls[MOST_BEGUN]
    cdef bytes put_back(self)
    cdef list leave(self)
