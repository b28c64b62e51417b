# Numbers and lengths of protobuf's wire format, in place: see https://protobuf.dev/programming-guides/encoding.
# What is not in its shortest form is not read: no encoder writes it, and Python decides about it then.

from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from tandemmq.store.fronts.compiled.spans cimport Span

# Read a number at a place: the place after it, or -1.
cdef inline Py_ssize_t number(const unsigned char* data, Py_ssize_t at, Py_ssize_t end, uint64_t* value) noexcept:
    cdef uint64_t result = 0
    cdef uint64_t byte
    cdef int shift = 0
    while at < end and shift < 64:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            if (byte == 0 and shift) or (shift == 63 and byte > 1):
                return -1
            value[0] = result
            return at
        shift += 7
    return -1

# Read a length, and pass over so many bytes, which are `found`: the place after them, or -1.
cdef inline Py_ssize_t span(const unsigned char* data, Py_ssize_t at, Py_ssize_t end, Span* found) noexcept:
    cdef uint64_t size = 0
    at = number(data, at, end, &size)
    if at < 0 or size > <uint64_t>(end - at):
        return -1
    found.at = at
    found.size = <Py_ssize_t>size
    return at + found.size

# Read an entry of a map of texts, its name before its value; whether it is one.
cdef inline bint map_entry(const unsigned char* data, Span entry, Span* name, Span* value) noexcept:
    cdef Py_ssize_t end = entry.at + entry.size
    cdef Py_ssize_t at
    if entry.size == 0 or data[entry.at] != (1 << 3 | 2):
        return False
    at = span(data, entry.at + 1, end, name)
    return 0 <= at < end and data[at] == (2 << 3 | 2) and span(data, at + 1, end, value) == end

# Write a number: the place after it.
cdef inline unsigned char* put_number(unsigned char* out, uint64_t value) noexcept:
    while value >= 0x80:
        out[0] = <unsigned char>(value & 0x7F | 0x80)
        out += 1
        value >>= 7
    out[0] = <unsigned char>value
    return out + 1

# Bytes that a number takes.
cdef inline Py_ssize_t number_size(uint64_t value) noexcept:
    cdef Py_ssize_t size = 1
    while value >= 0x80:
        size += 1
        value >>= 7
    return size

# Write a field that is a number, unless that is 0: the place after it.
cdef inline unsigned char* put_field(unsigned char* out, int field, uint64_t value) noexcept:
    if value == 0:
        return out
    out[0] = <unsigned char>field
    return put_number(out + 1, value)

# Write a field that is a text: the place after it.
cdef inline unsigned char* put_text(unsigned char* out, int field, const unsigned char* text, Py_ssize_t size) noexcept:
    out[0] = <unsigned char>field
    out = put_number(out + 1, size)
    memcpy(out, text, size)
    return out + size
