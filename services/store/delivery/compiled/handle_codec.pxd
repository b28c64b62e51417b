from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

# Constants and tables: what is declared in the module alone would be looked up in its dictionary each time.

cdef uint64_t _NUMBER
cdef int _PREFIX, _LONGEST, _NUMBERS, _MOST_BYTES, _CHECK
cdef unsigned int _CRC[256]
cdef unsigned char _DIGITS[64]
cdef signed char _VALUES[256]

cdef unsigned int check_of(unsigned int before, const unsigned char* data, int size) noexcept
cdef unsigned char* put_text(unsigned char* to, const unsigned char* data, int size) noexcept
cdef int bytes_of(const unsigned char* text, int size, unsigned char* to) noexcept
cdef int numbers_of(str text, str prefix, unsigned int check, uint64_t* numbers) except -1
cpdef str encode(
    str prefix, unsigned int check, int shown, uint64_t queue, uint64_t offset, uint64_t number, uint64_t resets,
    uint64_t start)
