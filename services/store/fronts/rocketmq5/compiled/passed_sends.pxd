from libc.stdint cimport int64_t, uint64_t

from tandemmq.store.broker.compiled.plain_message cimport CompiledMessage
from tandemmq.store.fronts.compiled.call_times cimport CompiledCallTimes
from tandemmq.store.fronts.compiled.spans cimport Span
from tandemmq.store.fronts.rocketmq5.compiled.send_request cimport CompiledSendRequest

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _MOST_PEERS
cdef Py_ssize_t _LONGEST_ID, _MOST_HELD, _MOST_JOINED
cdef bytes _OK

cdef struct Stored:
    uint64_t id
    uint64_t offset
    Span key

cdef class CompiledHeldSends

cdef class CompiledPassedSends(CompiledSendRequest):
    cdef CompiledMessage _message_built
    cdef object _accepts, _choose, _named
    cdef CompiledCallTimes _times
    cdef long long _most_body
    cdef dict _hosts
    cdef public CompiledHeldSends only  # where there is one broker: no other is to be chosen
    cdef readonly int64_t taken
    cdef bytes _host(self, str peer)
    cdef bytes _question(self, bytes message, uint64_t number, bytes host)

cdef class CompiledHeldSends:
    cdef object _next, _link
    cdef CompiledPassedSends _sends
    cdef dict _held
    cdef list _gathered
    cdef Py_ssize_t _size
    cdef int _has_room(self) except -1
    cdef int _gather(self, bytes request) except -1
    cdef int _answer(self, const unsigned char* data, Span answer) except -1
