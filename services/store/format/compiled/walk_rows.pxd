# What a walk fills: longs, one part after the other. Its twin for Python is walk_layout.py.

from libc.stdint cimport int32_t, int64_t

cdef struct Result:
    int64_t position
    int64_t stop
    int64_t rows
    int64_t groups
    int64_t runs
    int64_t first_stored
    int64_t last_stored
    int64_t max_stored
    int64_t last_physical

# One record. Texts are (position in the buffer << 16 | size), 0 if there is none.
cdef struct Row:
    int64_t physical
    int64_t size
    int64_t queue_id
    int64_t queue_offset
    int64_t sys_flag
    int64_t stored
    int64_t born
    int64_t tags
    int64_t unique
    int64_t keys
    int64_t group
    int64_t run

# One topic and queue. `topic_hash` is Java's of "topic#".
cdef struct Group:
    int64_t topic_at
    int64_t topic_size
    int64_t queue_id
    int64_t lookup_hash
    int64_t topic_hash
    int64_t scheduled
    int64_t current_run
    int64_t next_offset

# Records of one group with consecutive queue offsets. `place`: address for its next unit.
cdef struct Run:
    int64_t topic_at
    int64_t topic_size
    int64_t queue_id
    int64_t first_offset
    int64_t count
    int64_t first_physical
    int64_t last_end
    int64_t last_time
    int64_t place

cdef struct Parts:
    Result* result
    Row* rows
    Group* groups
    Run* runs
    int32_t* table
    int64_t places  # of the table

cdef enum:
    TEXT_SIZE_BITS = 16
    TEXT_SIZE_MASK = 0xFFFF

# The parts for at most `room` records and what comes with them, and the size of all in bytes.
cdef inline Py_ssize_t parts_of(char* memory, int64_t room, Parts* parts) noexcept nogil:
    parts.result = <Result*>memory
    parts.rows = <Row*>(parts.result + 1)
    parts.groups = <Group*>(parts.rows + room)
    parts.runs = <Run*>(parts.groups + room)
    parts.table = <int32_t*>(parts.runs + room)
    parts.places = 2
    while parts.places <= 2 * room:
        parts.places *= 2
    return <char*>(parts.table + parts.places) - memory
