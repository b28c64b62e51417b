from libc.stdint cimport int32_t, int64_t

from tandemmq.store.log.compiled.appender cimport tandem_get32

cdef extern from *:
    """
    #include <stdint.h>
    static inline int64_t tandem_get64(const unsigned char* at) {
        uint64_t value;
        __builtin_memcpy(&value, at, 8);
        return (int64_t)__builtin_bswap64(value);
    }
    static inline void tandem_prefetch(const unsigned char* at) {
        __builtin_prefetch(at); __builtin_prefetch(at + 64); __builtin_prefetch(at + 128);
    }
    """
    int64_t tandem_get64(const unsigned char* at) nogil
    void tandem_prefetch(const unsigned char* at) nogil

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _UNIT, _BODY_SIZE_AT, _HEAD, _V6_MORE, _BORN_V6, _STORE_V6, _AHEAD, _NAME
cdef unsigned int _MAGIC_1, _MAGIC_2

cdef struct Tags:
    int64_t code
    Py_ssize_t at
    Py_ssize_t size
    const unsigned char* text

cdef struct Named:
    const unsigned char* topic
    Py_ssize_t topic_size
    int queue_id
    int64_t number
    int64_t physical
    int64_t size
    int64_t code

cdef struct Span:
    int64_t start
    int64_t stop
    int64_t largest  # bytes of a record
