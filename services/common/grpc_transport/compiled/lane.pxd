from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from tandemmq.common.grpc_transport.compiled.begun_calls cimport BegunCall, BegunCalls
from tandemmq.common.grpc_transport.compiled.call_deadlines cimport CallDeadlines
from tandemmq.common.grpc_transport.compiled.gathered_request cimport GatheredRequest
from tandemmq.common.grpc_transport.compiled.head_scan cimport HeadScan
from tandemmq.common.grpc_transport.compiled.lane_call cimport KeptCalls, LaneCall

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef long long _MAX_WINDOW
cdef int _WINDOW_UPDATE, _UPDATE_SIZE
cdef Py_ssize_t _NEXT_TO_NOTHING
cdef int64_t _CONNECTION_COST, _STREAM_COST
cdef int _ALL_LEFT, _DATA, _HEADERS, _END_STREAM, _END_HEADERS, _FRAME, _PREFIX, _AT_A_TIME, _LARGEST_BLOCK, _MOST_BEGUN

cdef class Lane(KeptCalls):
    cdef object _loop, _reader, _floods, _held, _account
    cdef object _leave, _conclude, _finish
    cdef dict _streams, _parked
    cdef bint _between_frames, _reading, _sliced, _left
    cdef bytes _out
    cdef object _reactor, _watched
    cdef int _plain, _before
    cdef BegunCalls _begun
    cdef CallDeadlines _deadlines
    cdef bytes _head, _trailers
    cdef Py_ssize_t _largest_frame, _largest_answer, _most_streams, _flush_at, _join
    cdef int64_t _low_window, _low_stream_window, _stream_window, _most_updates
    cdef readonly int64_t taken
    cdef readonly bytes unread
    cdef int _receive(self, bytes data) except -1
    cdef Py_ssize_t _read(self, bytes data) except -1
    cdef int _have_read(self) except -1
    cdef int _write(self, bytes out) except -1
    cdef int _queue(self) except -1
    cdef int _leave_lane(self) except -1
    cdef int _begin_slice(self) except -1
    cdef int _enough(self) except -1
    cdef int _begins(self, const unsigned char* at, Py_ssize_t size) except -1
    cdef int _widens(self, const unsigned char* at, Py_ssize_t size) except -1
    cdef int _ends(self, const unsigned char* at, Py_ssize_t size) noexcept
    cdef int _open(self, Py_ssize_t size) except -1
    cdef int _takes_body(self, const unsigned char* at, Py_ssize_t size) except -1
    cdef int _gathers(self, const unsigned char* at, Py_ssize_t size, Py_ssize_t here) except -1
    cdef LaneCall _gather_first(self)
    cdef int _takes_update(self, int64_t increment) except -1
    cdef int _serve(self, const unsigned char* message_at, Py_ssize_t body_size) except -1
    cpdef Py_ssize_t take(self, bytes data, Py_ssize_t position) except -1
    cdef Py_ssize_t _take(self, bytes data, Py_ssize_t position) except -1
    cdef int _hold(self, LaneCall call, BegunCall* begun, int64_t of_stream, Py_ssize_t body_size) except -1
    cdef int _settle(self) except -1
    cdef int _settle_with(self, int64_t unsent) except -1
    cdef int _has_failed(self) except -1
    cdef int _send_now(self, bytes out) except -1
    cdef int _nothing_else(self) except -1
    cdef int _answer(self, bytes answer, int prefix, unsigned int stream, int64_t of_stream, int alone) except -1
