"""Where buffers begin: kernels read and write at addresses."""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING
from cython.cimports.cpython.memoryview import PyMemoryView_FromObject, PyMemoryView_GET_BUFFER


def address_of(buffer: object) -> tuple[int, object]:
    """The address of the first byte of ``buffer``, and what has to live as long as it is used."""
    if isinstance(buffer, bytes):
        return cython.cast(cython.size_t, PyBytes_AS_STRING(buffer)), buffer
    view: object = PyMemoryView_FromObject(buffer)
    if not view.c_contiguous:
        raise ValueError("a buffer is not contiguous")
    return cython.cast(cython.size_t, PyMemoryView_GET_BUFFER(view).buf), view
