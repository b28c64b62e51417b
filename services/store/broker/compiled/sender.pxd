from tandemmq.store.log.compiled.appender cimport Batch, CompiledAppender, Place, Plain, PlainTopic

# Constants: what is declared in the module alone would be looked up in its dictionary each time.
cdef int _ANY_QUEUE, _WRITE, _CLIENT_FLAGS, _COMPRESSION, _LAST_COMPRESSION, _ROOM
cdef bytes _UNIQUE, _WAIT, _TRUE, _FALSE, _RETRY
cdef list _SPECIAL

cdef class CompiledSender:
    cdef CompiledAppender _appender
    cdef object _table, _now_ms, _new_id, _duplicates
    cdef dict _turns
    cdef str _watched
    cdef long long _most_body, _most_properties
    cdef readonly bytes digits
    cdef unsigned char* room
    cdef Py_ssize_t room_size
    cdef Plain plain
    cdef bint waits
    cdef bint repeatable
    cdef Place place
    cdef const unsigned char* unique
    cdef Py_ssize_t unique_size
    cdef int begin(self) except -1
    cdef int add(self, const unsigned char* name, Py_ssize_t name_size, const unsigned char* value, Py_ssize_t size) except -1
    cdef long long _choose_queue(self, PlainTopic topic) except -2
    cdef int _identify(self, object topic) except -1
    cdef int _remember(self, object topic) except -1
    cdef int _wait(self, const unsigned char* value, Py_ssize_t size) except -1
    cdef int add_own(self, bytes name, bytes value) except -1
    cdef int send(self, const unsigned char* topic, Py_ssize_t topic_size, bytes born_host) except -1
    cdef int send_batch(self, const unsigned char* topic, Py_ssize_t topic_size, Batch* batch, bytes born_host) except -1
    cdef int _flags_are_plain(self) noexcept
