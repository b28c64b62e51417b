from tandemmq.common.grpc_transport.compiled.head_scan cimport HeadScan

cdef class LaneHeads:
    cdef HeadScan _scan
    cdef object _view, _method, _metadata, _timeout
    cdef bytes _block, _viewed, _timed
    cdef object method(self, const unsigned char* block, Py_ssize_t size)
    cdef bytes kept(self, const unsigned char* block, Py_ssize_t size)
    cdef object metadata(self, bytes head)
    cdef object timeout(self, bytes head)
    cdef bint _is_last(self, const unsigned char* block, Py_ssize_t size) noexcept
