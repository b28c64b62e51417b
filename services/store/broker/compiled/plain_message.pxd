from libc.stdint cimport uint64_t

from tandemmq.store.log.compiled.appender cimport Plain

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    /* The top bit of a byte is set if one of the eight bytes up to it is 0; none, if none is. */
    static inline uint64_t tandem_zero_bytes(uint64_t word) { return (word - 0x0101010101010101u) & ~word; }
    /* Of a text's bytes, eight at a time: bit 0 says that one is 01 or 02, bit 1 that one is no ASCII. */
    static inline int tandem_glance_at_text(const unsigned char* at, Py_ssize_t size) {
        const uint64_t ones = 0x0101010101010101u, tops = ones << 7;
        uint64_t word = 0, high = 0, marked = 0;
        while (size > 0) {
            if (size >= 8) memcpy(&word, at, 8);
            else { word = ones << 5; memcpy(&word, at, (size_t)size); }  /* filled up with blanks */
            high |= word;
            marked |= tandem_zero_bytes(word ^ ones) | tandem_zero_bytes(word ^ ones * 2);
            at += 8;
            size -= 8;
        }
        return ((marked & tops) != 0) | ((high & tops) != 0) << 1;
    }
    """
    int tandem_glance_at_text(const unsigned char* at, Py_ssize_t size) noexcept

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _ANY_QUEUE, _ROOM
cdef bytes _UNIQUE, _WAIT, _TRUE, _FALSE
cdef list _SPECIAL
cdef uint64_t _SPECIAL_MARKS

cdef class CompiledMessage:
    cdef long long _most_properties
    cdef unsigned char* room
    cdef Plain plain
    cdef bint waits
    cdef bint repeatable
    cdef const unsigned char* unique
    cdef Py_ssize_t unique_size
    cdef int begin(self) except -1
    cdef int add(self, const unsigned char* name, Py_ssize_t name_size, const unsigned char* value, Py_ssize_t size) except -1
    cdef int _wait(self, const unsigned char* value, Py_ssize_t size) except -1
    cdef int add_own(self, bytes name, bytes value) except -1
