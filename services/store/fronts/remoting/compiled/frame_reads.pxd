from tandemmq.store.fronts.compiled.call_times cimport CompiledCallTimes
from tandemmq.store.fronts.remoting.compiled.pull_frames cimport CompiledPullFrames
from tandemmq.store.fronts.remoting.compiled.send_frames cimport CompiledSendFrames

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _AT_ONCE, _GLANCE

cdef class CompiledFrameReads:
    cdef object _connection, _direct, _sending, _acknowledgement, _identity, _host
    cdef CompiledSendFrames _core
    cdef CompiledCallTimes _times
    cdef CompiledPullFrames _pulls
    cdef bytes _peer
    cdef bint _between
    cdef Py_ssize_t _take(self, bytes data) except -1
    cdef Py_ssize_t _pull(self, bytes data) except -1
    cdef int _write(self, object transport, bytes answers) except -1
