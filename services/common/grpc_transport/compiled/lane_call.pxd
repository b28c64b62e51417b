from libc.stdint cimport int64_t

from tandemmq.common.grpc_transport.compiled.gathered_request cimport GatheredRequest
from tandemmq.common.grpc_transport.compiled.lane_heads cimport LaneHeads
from tandemmq.common.grpc_transport.compiled.lane_slots cimport LaneSlots

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef Py_ssize_t _PART_OVERHEAD

cdef class LaneCall

cdef class KeptCalls:
    cdef object _protocol, _server, _connection, _sender, _budget
    cdef object _resume, _go_on
    cdef LaneHeads _heads
    cdef LaneSlots _at
    cdef str _peer
    cdef Py_ssize_t _largest_request, _most_buffered
    cdef int _ended(self, LaneCall call) except -1
    cdef int _answer_held(self, LaneCall call, object answer) except -1
    cdef int _serve_gathered(self, LaneCall call, bytes message) except -1
    cdef int _unhindered(self) except -1
    cdef int _takes_piece(self, LaneCall call, const unsigned char* at, Py_ssize_t size, bint ended) except -1
    cdef int _add_piece(self, LaneCall call, const unsigned char* at, Py_ssize_t size, bint ended) except -1

cdef class LaneCall:
    cdef KeptCalls _lane
    cdef object _call, _deadline, _method
    cdef GatheredRequest _gathered
    cdef bytes _head
    cdef const unsigned char* _block
    cdef Py_ssize_t _block_size, _counted
    cdef public unsigned int stream_id
    cdef public int64_t granted, received, send_window
    cdef public Py_ssize_t held, head_size, content_length, body_size
    cdef int _prefix
    cdef public bint remote_ended, closed
    cdef public object pending
    cpdef answer_later(self, object answer)
    cdef int is_gone(self) except -1
    cdef int may_have(self) except -1
