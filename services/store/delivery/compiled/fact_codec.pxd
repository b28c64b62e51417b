from libc.stdint cimport uint64_t

# Constants: what is declared in the module alone would be looked up in its dictionary each time.

cdef int _GIVEN, _DEALT, _MOST_BYTES, _ROOM
cdef long long _MOST

cdef unsigned char* put(unsigned char* to, uint64_t number) noexcept
cdef long long natural(object number, int more) except -2
