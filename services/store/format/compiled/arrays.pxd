# Where the numbers of an array (NumPy's, or of the module array) begin. It has to live as long as they are used.
#
# Raises TypeError for numbers of another size, and BufferError or ValueError for an array that is not contiguous.

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t

cdef inline void* numbers_of(object array, Py_ssize_t size, int flags) except? NULL:
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, flags)
    PyBuffer_Release(&view)
    if view.itemsize != size:
        raise TypeError(f"an array has numbers of {view.itemsize} bytes, not of {size}")
    return view.buf

cdef inline const int64_t* longs(object array) except? NULL:
    return <const int64_t*>numbers_of(array, 8, PyBUF_C_CONTIGUOUS)

cdef inline int64_t* longs_to_fill(object array) except? NULL:
    return <int64_t*>numbers_of(array, 8, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)

cdef inline const int32_t* ints(object array) except? NULL:
    return <const int32_t*>numbers_of(array, 4, PyBUF_C_CONTIGUOUS)

cdef inline int32_t* ints_to_fill(object array) except? NULL:
    return <int32_t*>numbers_of(array, 4, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
