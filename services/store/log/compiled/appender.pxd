from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from tandemmq.store.format.compiled.memory cimport tandem_clear_upper_halves, tandem_has_avx

cdef extern from *:
    """
    #include <errno.h>
    #include <stdint.h>
    #include <string.h>
    #include <unistd.h>
    #ifndef TANDEM_CORE_SOURCE
    #define TANDEM_CORE_SOURCE ""
    #endif
    static inline void tandem_put32(unsigned char* to, uint32_t value) {
        to[0] = value >> 24; to[1] = value >> 16; to[2] = value >> 8; to[3] = value;
    }
    static inline uint32_t tandem_get32(const unsigned char* at) {
        return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    }
    static inline void tandem_put64(unsigned char* to, uint64_t value) {
        tandem_put32(to, (uint32_t)(value >> 32)); tandem_put32(to + 4, (uint32_t)value);
    }
    /* The eight bytes that make a record of what lies behind them: all of that is written before. */
    static inline void tandem_publish(unsigned char* to, uint32_t size, uint32_t magic) {
        unsigned char head[8];
        uint64_t word;
        tandem_put32(head, size); tandem_put32(head + 4, magic);
        memcpy(&word, head, 8);
        __atomic_thread_fence(__ATOMIC_RELEASE);
        if (((uintptr_t)to & 7) == 0) __atomic_store_n((uint64_t*)to, word, __ATOMIC_RELEASE);
        else memcpy(to, &word, 8);
        __atomic_thread_fence(__ATOMIC_RELEASE);
    }
    /* How much of it was written, which is all unless the disk refuses. */
    static inline int64_t tandem_pwrite(int fd, const unsigned char* from, int64_t size, int64_t at) {
        int64_t done = 0;
        while (done < size) {
            ssize_t written = pwrite(fd, from + done, size - done, at + done);
            if (written > 0) done += written;
            else if (written == 0 || errno != EINTR) break;
        }
        return done;
    }
    """
    void tandem_put32(unsigned char* to, unsigned int value) nogil
    void tandem_put64(unsigned char* to, unsigned long long value) nogil
    void tandem_publish(unsigned char* to, unsigned int size, unsigned int magic) nogil
    int64_t tandem_pwrite(int fd, const unsigned char* data, int64_t size, int64_t at) nogil
    unsigned int tandem_get32(const unsigned char* at) nogil
    const char* TANDEM_CORE_SOURCE

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _MOST_TOPICS, _FIXED, _PLAIN_BUFFER, _BLANK, _LONGEST_TOPIC, _BORN_V6, _STORE_V6, _BOTH_V6, _TRANSACTION
cdef int _V4, _LEAST_PIECE, _SHORTEST_NAME
cdef uint64_t _FIRST_LETTERS
cdef Py_ssize_t _LEAST_ROOM
cdef int _TIMED_MASK
cdef list _MARKS
cdef unsigned int _CRC_MASK, _MAGIC

cdef struct Plain:
    const unsigned char* body
    Py_ssize_t body_size
    unsigned char* properties
    Py_ssize_t properties_size
    const unsigned char* born_host
    Py_ssize_t born_host_size
    int64_t born_timestamp
    int queue_id
    int flag
    int sys_flag
    int reconsume_times

cdef struct Place:
    int64_t physical_offset
    int64_t size
    int64_t queue_offset
    int64_t store_timestamp

# Messages as a producer laid them out.
cdef struct Batch:
    const unsigned char* data
    Py_ssize_t size
    int wanted  # messages that it is said to have; 0: nothing is said
    int most
    int count
    int64_t* offsets

ctypedef unsigned int (*Crc)(unsigned int, const unsigned char*, uint64_t) noexcept nogil

cdef class PlainTopic:
    cdef readonly str name
    # What `CompiledSender` knows of it: whether only the broker writes to it, and its settings.
    cdef int closed  # -1: that was not asked yet
    cdef long long looked_up  # in which state of the table of topics
    cdef int perm
    cdef long long queues
    cdef unsigned char field[128]
    cdef Py_ssize_t field_size
    cdef list keys

cdef class CompiledAppender:
    cdef object _store, _log, _flags, _offsets, _now_ms, _soon, _crc32, _observer, _sent, _end_turn
    # Where objects have their slots.
    cdef Py_ssize_t _file_at, _end_at, _open_end_at, _warm_from_at, _time_at, _in_place_at, _writable_at
    cdef Py_ssize_t _map_at, _start_at
    cdef int64_t _largest
    cdef bint _system_clock
    cdef Py_buffer _view
    cdef PyObject* _viewed
    cdef bytes _store_host
    cdef dict _topics
    cdef PlainTopic _last
    cdef bint _open
    cdef int64_t _appends, _timed, _bytes
    cdef double _seconds
    cdef str _run_topic
    cdef int64_t _run_size, _run_count
    cdef int64_t _messages
    cdef Crc _crc
    cdef bint _direct, _mapped, _has_avx
    cdef unsigned char* _apart
    cdef int64_t _apart_size
    cdef PlainTopic topic(self, const unsigned char* name, Py_ssize_t size)
    cdef int _find_number(self, PlainTopic topic, Plain* plain, Place* place) except -1
    cdef int _find_time(self, Place* place) except -1
    cdef int64_t now_ms(self) except -1
    cdef int _hold(self, object file) except -1
    cdef void _let_go(self) noexcept
    cdef int _advance(self, PlainTopic topic, Plain* plain, Place* place, int64_t end, int count) except -1
    cdef int append_batch(
        self, PlainTopic topic, Plain* plain, Batch* batch, int64_t most_body, Place* place
    ) except -1
    cdef int _make_room(self, int64_t size) except -1
    cdef int _put(self, object file, int64_t at, int64_t size) except -1
    cdef void _lay_out(self, PlainTopic topic, Plain* plain, Batch* batch, Place place) noexcept
    cdef int append(self, PlainTopic topic, Plain* plain, Place* place) except -1
    cdef unsigned int _body_crc(self, Plain* plain) except? 0
    cdef void _write(self, unsigned char* record, PlainTopic topic, Plain* plain, Place* place, unsigned int crc) noexcept
    cdef double _begin(self) noexcept
    cdef int _count(self, PlainTopic topic, int64_t messages, int64_t size, double begun) except -1
