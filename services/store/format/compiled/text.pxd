# Text in kernels: Java's String.hashCode over UTF-8 bytes, and comparing.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from tandemmq.store.format.compiled.memory cimport At, word_at

# The hash of a text that hashed to `value`, with `size` bytes of UTF-8 at `at` after it.
cdef inline uint32_t hash_more(At at, int64_t size, uint32_t value) noexcept nogil:
    cdef At end = at + size
    cdef uint64_t word
    while end - at >= 8:
        word = word_at(at)
        if word & <uint64_t>0x8080808080808080ULL:
            return hash_decoded(at, end, value)
        # Four at a time (31^4, 31^3, …): the multiplications need not wait for each other.
        value = <uint32_t>(
            value * <uint32_t>923521
            + <uint32_t>(word & 0x7F) * <uint32_t>29791
            + <uint32_t>(word >> 8 & 0x7F) * <uint32_t>961
            + <uint32_t>(word >> 16 & 0x7F) * <uint32_t>31
            + <uint32_t>(word >> 24 & 0x7F)
        )
        value = <uint32_t>(
            value * <uint32_t>923521
            + <uint32_t>(word >> 32 & 0x7F) * <uint32_t>29791
            + <uint32_t>(word >> 40 & 0x7F) * <uint32_t>961
            + <uint32_t>(word >> 48 & 0x7F) * <uint32_t>31
            + <uint32_t>(word >> 56 & 0x7F)
        )
        at += 8
    while at < end:
        if at[0] >= 0x80:
            return hash_decoded(at, end, value)
        value = value * <uint32_t>31 + at[0]
        at += 1
    return value

# As hash_more, for any bytes: decodes to UTF-16, malformed sequences to U+FFFD as java.decode_utf8 does.
cdef inline uint32_t hash_decoded(At at, At end, uint32_t value) noexcept nogil:
    cdef uint32_t first, second, unit, point
    cdef int size
    while at < end:
        first = at[0]
        second = at[1] if end - at > 1 else 0
        unit = 0xFFFD
        size = 1
        if first < 0x80:
            unit = first
        elif 0xC2 <= first < 0xE0:
            if second & 0xC0 == 0x80:
                unit = (first & 0x1F) << 6 | second & 0x3F
                size = 2
        elif 0xE0 <= first < 0xF0:
            if second & 0xC0 == 0x80 and not (first == 0xE0 and second < 0xA0):
                size = 2
                if end - at > 2 and at[2] & 0xC0 == 0x80:
                    size = 3
                    point = (first & 0x0F) << 12 | (second & 0x3F) << 6 | at[2] & 0x3F
                    if not 0xD800 <= point < 0xE000:
                        unit = point
        elif 0xF0 <= first < 0xF5:
            if second & 0xC0 == 0x80 and not (first == 0xF0 and second < 0x90) and not (first == 0xF4 and second >= 0x90):
                size = 2
                if end - at > 2 and at[2] & 0xC0 == 0x80:
                    size = 3
                    if end - at > 3 and at[3] & 0xC0 == 0x80:
                        size = 4
                        point = (first & 0x07) << 18 | (second & 0x3F) << 12 | (at[2] & 0x3F) << 6 | at[3] & 0x3F
                        value = value * <uint32_t>31 + (<uint32_t>0xD7C0 + (point >> 10))
                        unit = 0xDC00 | point & 0x3FF
        value = value * <uint32_t>31 + unit
        at += size
    return value

# The index's hash of a text with hash `value`: see java.index_hash.
cdef inline int64_t key_hash(uint32_t value) noexcept nogil:
    cdef int64_t number = <int32_t>value
    if number < 0:
        number = -number
    return 0 if number == 0x80000000LL else number

# Whether `size` bytes at both addresses are the same. Names are short: a call of memcmp would take longer.
cdef inline bint equal(At one, At other, int64_t size) noexcept nogil:
    while size >= 8:
        if word_at(one) != word_at(other):
            return False
        one += 8
        other += 8
        size -= 8
    while size > 0:
        if one[0] != other[0]:
            return False
        one += 1
        other += 1
        size -= 1
    return True

# The first address >= `at` that holds `wanted`, `end` if none before it. May read on up to `safe`.
cdef inline At find_byte(At at, At end, At safe, uint64_t wanted) noexcept nogil:
    cdef uint64_t pattern = wanted * <uint64_t>0x0101010101010101ULL
    cdef uint64_t other
    while at < end and safe - at >= 8:
        other = word_at(at) ^ pattern
        if (other - <uint64_t>0x0101010101010101ULL) & ~other & <uint64_t>0x8080808080808080ULL:
            while at[0] != wanted:
                at += 1
            return at if at < end else end
        at += 8
    while at < end and at[0] != wanted:
        at += 1
    return at if at < end else end
