from tandemmq.common.grpc_transport.compiled.head_scan cimport HeadScan

cdef class KnownHead:
    cdef bytes _block
    cdef object _method, _metadata, _timeout
    cdef bint _has_metadata, _has_timeout
    cdef bint _is(self, const unsigned char* block, Py_ssize_t size) noexcept
    cdef object metadata(self, object view)
    cdef object timeout(self, object view)

cdef KnownHead remembered(bytes block, object method)

cdef class LaneHeads:
    cdef HeadScan _scan
    cdef object _view
    cdef KnownHead _last, _before
    cdef object method(self, const unsigned char* block, Py_ssize_t size)
    cdef bytes kept(self, const unsigned char* block, Py_ssize_t size)
    cdef object metadata(self, bytes head)
    cdef object timeout(self, bytes head)
    cdef KnownHead _known(self, const unsigned char* block, Py_ssize_t size)
    cdef KnownHead _known_as(self, bytes head)
