# Parts of a request's bytes: where they begin and how long they are, without a copy.

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memcmp

cdef struct Span:
    Py_ssize_t at
    Py_ssize_t size

# Where bytes begin.
cdef inline const unsigned char* start(bytes data) noexcept:
    return <const unsigned char*>PyBytes_AS_STRING(data)

# A part as an object.
cdef inline bytes text_of(const unsigned char* data, Span part):
    return PyBytes_FromStringAndSize(<const char*>&data[part.at], part.size)

# Parts with a space between two.
cdef inline bytes joined(const unsigned char* data, Span* parts, int count):
    cdef list texts = []
    cdef int i
    for i in range(count):
        texts.append(text_of(data, parts[i]))
    return b" ".join(texts)

# Whether a part is printable ASCII: no byte is less than `least`, which is 0x20 with blanks and 0x21 without.
cdef inline bint is_printable(const unsigned char* data, Span part, unsigned char least) noexcept:
    cdef Py_ssize_t i
    for i in range(part.at, part.at + part.size):
        if data[i] < least or data[i] >= 0x7F:
            return False
    return True

# Whether one of several parts has the same bytes.
cdef inline bint is_among(const unsigned char* data, Span part, Span* others, int count) noexcept:
    cdef int i
    for i in range(count):
        if others[i].size == part.size and memcmp(&data[others[i].at], &data[part.at], part.size) == 0:
            return True
    return False
