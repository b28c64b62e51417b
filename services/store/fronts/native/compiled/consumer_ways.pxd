# Constants of the module: what is declared there alone would be looked up in its dictionary each time.

cdef int _MOST_ASKED
cdef Py_ssize_t _FEW_HANDLES, _LONGEST_HEAD

cdef class CompiledReceiveWay:
    cdef object _otherwise, _kept_for
    cdef dict _wishes, _kept

cdef class CompiledAcknowledgeWay:
    cdef object _otherwise, _asked_by, _handles, _kept_for
    cdef dict _asked, _kept
