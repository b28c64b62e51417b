from libc.stdint cimport int64_t

from tandemmq.common.grpc_transport.compiled.head_scan cimport HeadScan

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef long long _MAX_WINDOW
cdef int _WINDOW_UPDATE, _UPDATE_SIZE
cdef int _DATA, _HEADERS, _END_STREAM, _END_HEADERS, _FRAME, _PREFIX, _AT_A_TIME, _LARGEST_BLOCK

cdef class LaneCall:
    cdef str _peer
    cdef object _call, _view
    cdef const unsigned char* _block
    cdef Py_ssize_t _block_size

cdef class Lane:
    cdef object _connection, _reader, _sender, _budget, _floods, _view, _conclude, _flush
    cdef HeadScan _scan
    cdef str _peer
    cdef bytes _head, _trailers
    cdef bytes _block
    cdef object _method
    cdef Py_ssize_t _largest_frame, _largest_request, _largest_answer, _most_buffered, _most_streams, _flush_at, _join
    cdef int64_t _low_window, _stream_window, _most_updates
    cdef readonly int64_t taken
    cdef unsigned int _stream, _increment
    cdef Py_ssize_t _block_size
    cdef Py_ssize_t _body_size
    cdef Py_ssize_t _pair(self, const unsigned char* at, Py_ssize_t size) noexcept
    cdef int _open(self) except -1
    cdef int _takes_update(self) except -1
    cdef object _method_of(self, const unsigned char* block)
    cdef int _serve(self, object method, const unsigned char* block, const unsigned char* message) except -1
    cdef int _answer(self, bytes answer) except -1
