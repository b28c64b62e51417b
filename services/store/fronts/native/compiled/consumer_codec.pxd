# Constants of the module: what is declared there alone would be looked up in its dictionary each time.

cdef int _MESSAGES, _TOPIC, _NUMBER, _HANDLE, _INVISIBLE, _RECORD, _ASKED_GROUP, _ASKED_TOPIC, _ASKED_HANDLE
cdef Py_ssize_t _LONGEST_HANDLE
cdef long long _MOST_NUMBER, _MOST_MS
cdef bytes _DONE

cdef class CompiledReceived:
    cdef object _otherwise

cdef class CompiledHandles:
    cdef readonly list handles
    cdef object _otherwise

cdef CompiledHandles handles_of(bytes message, Py_ssize_t* head, object otherwise)
