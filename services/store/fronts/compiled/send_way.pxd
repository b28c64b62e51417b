from cpython.object cimport PyObject

from tandemmq.store.fronts.compiled.call_times cimport CompiledCallTimes

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _MOST_PEERS

cdef class CompiledSendWay:
    cdef object _core, _answer, _acknowledgement, _when_safe, _otherwise, _accepts, _peer_host
    cdef CompiledCallTimes _times
    cdef dict _packed
    cdef bytes _host(self, str peer)
    cdef object _hold(self, bytes answer, object call, double begun)
