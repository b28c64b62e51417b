from libc.stdint cimport int64_t

from tandemmq.store.broker.compiled.plain_message cimport CompiledMessage
from tandemmq.store.log.compiled.appender cimport Batch, CompiledAppender, Place, PlainTopic

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _ANY_QUEUE, _WRITE, _CLIENT_FLAGS, _COMPRESSION, _LAST_COMPRESSION
cdef bytes _UNIQUE, _RETRY
cdef Py_ssize_t _LONGEST_KEY

cdef class CompiledSender(CompiledMessage):
    cdef CompiledAppender _appender
    cdef object _table, _new_id, _duplicates
    cdef long long _state  # of the table of topics: how often it has changed
    cdef bint _of_all
    cdef dict _turns
    cdef str _watched  # by what the message is remembered; None: it is not
    cdef bint _known  # whether that is so already
    cdef dict _remembered
    cdef object _order, _asked
    cdef int _asked_is_watched
    cdef int64_t _window
    cdef Py_ssize_t _most_remembered
    cdef long long _most_body
    cdef readonly bytes digits
    cdef Place place
    cdef long long _choose_queue(self, PlainTopic topic) except -2
    cdef int _identify(self, PlainTopic topic) except -1
    cdef str _name_of(self, PlainTopic topic)
    cdef int64_t _stored_at(self, object name) except? -1
    cdef int _watches(self, object topic) except -1
    cdef int _remember(self) except -1
    cdef int send(self, const unsigned char* topic, Py_ssize_t topic_size, bytes born_host) except -1
    cdef int send_batch(self, const unsigned char* topic, Py_ssize_t topic_size, Batch* batch, bytes born_host) except -1
    cdef int _flags_are_plain(self) noexcept
