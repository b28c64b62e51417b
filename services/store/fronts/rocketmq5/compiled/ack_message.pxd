# Constants of the module: what is declared there alone would be looked up in its dictionary each time.

from tandemmq.store.fronts.compiled.spans cimport Span

cdef int _GROUP, _TOPIC, _ENTRIES, _ID, _HANDLE, _ANSWERED, _STATUS_SIZE
cdef Py_ssize_t _LONGEST
cdef bytes _OK, _OK_OF_ENTRY
