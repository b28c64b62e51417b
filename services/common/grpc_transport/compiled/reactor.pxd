from cpython.object cimport PyObject
from libc.stdint cimport uint32_t

from tandemmq.common.grpc_transport.compiled.lane cimport Lane

cdef extern from "<sys/epoll.h>" nogil:
    ctypedef union epoll_data_t:
        void* ptr
    cdef struct epoll_event:
        uint32_t events
        epoll_data_t data
    int epoll_create1(int flags)
    int epoll_ctl(int epoll, int operation, int file, epoll_event* event)
    int epoll_wait(int epoll, epoll_event* events, int most, int timeout)
    int EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLLIN

cdef extern from "<sys/socket.h>" nogil:
    ssize_t recv(int file, void* to, size_t size, int flags)
    ssize_t send(int file, const void* data, size_t size, int flags)
    int MSG_NOSIGNAL, MSG_DONTWAIT

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _MOST_EVENTS, _MOST_ALONE
cdef double _ASK_SECONDS
cdef Py_ssize_t _READ_SIZE

cdef class WatchedSocket:
    cdef Lane _lane
    cdef object _transport
    cdef int _file
    cdef bytes _out

cdef class Reactor:
    cdef object _loop
    cdef double _seconds
    cdef readonly int before
    cdef int _epoll, _least
    cdef bint _turning
    cdef unsigned char* _buffer
    cdef set _watched, _asking
    cdef double _asked_until
    cdef int _alone
    cdef epoll_event _events[128]
    cdef int _next, _count
    cdef list _left
    cdef int _serve_named(self, double until) except -1
    cdef WatchedSocket _named(self, int i)
    cdef int _serve(self, WatchedSocket watched) except -1
    cpdef int send_now(self, WatchedSocket watched, bytes out) except -1
    cdef int _stopped_reading(self, Lane lane) except -1
    cdef int _read(self, WatchedSocket watched) except -1
    cdef int _answer(self, WatchedSocket watched) except -1
    cdef int _forget(self, WatchedSocket watched) except -1
