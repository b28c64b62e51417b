# The check of one record in kernels, and what is read from it. The twin of python_walker._check.
#
# Numbers of the layout are written out here, so that the compiler knows them; walk_kernel.py compares them with Python's.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from tandemmq.store.format.compiled.memory cimport At, crc31, int_at, long_at, short_at, word_at
from tandemmq.store.format.compiled.text cimport find_byte, hash_more

cdef enum:
    MIN_SIZE = 91
    CRC_SIZE = 20  # of the property with the checksum of the whole record
    BORN_V6 = 16
    STORE_V6 = 32
    V6_MORE = 12  # bytes that an IPv6 host has more
    GOOD = -1
    # See walker.Stop.
    END = 0
    BLANK = 1
    ROWS_FULL = 2
    ZERO = 3
    BAD_MAGIC = 4
    BAD_SIZE = 5
    BAD_CRC = 6
    BAD_POSITION = 7
    INCOMPLETE = 8

# As int_at gives them.
cdef inline bint is_v1(int64_t magic) noexcept nogil:
    return magic == <int32_t>0xDAA320A7U

cdef inline bint is_v2(int64_t magic) noexcept nogil:
    return magic == <int32_t>0xDAA320ABU

cdef inline bint is_blank(int64_t magic) noexcept nogil:
    return magic == <int32_t>0xCBD43194U

# Names with the 01 after them as little-endian numbers, compared with a mask of their length.
cdef inline bint is_tags(uint64_t word) noexcept nogil:
    return word & <uint64_t>0xFFFFFFFFFFULL == <uint64_t>0x0153474154ULL

cdef inline bint is_keys(uint64_t word) noexcept nogil:
    return word & <uint64_t>0xFFFFFFFFFFULL == <uint64_t>0x015359454BULL

cdef inline bint is_delay(uint64_t word) noexcept nogil:
    return word & <uint64_t>0xFFFFFFFFFFFFULL == <uint64_t>0x0159414C4544ULL

# Without the 01.
cdef inline bint is_unique_key(uint64_t word) noexcept nogil:
    return word == <uint64_t>0x59454B5F51494E55ULL

cdef inline bint has_crc_name(At tail) noexcept nogil:
    return word_at(tail) == <uint64_t>0x2332334352435F5FULL and tail[8] == 1

cdef inline bint crc_digits_fit(At at, int64_t size) noexcept nogil:
    cdef At tail = at + size - CRC_SIZE
    cdef int64_t value
    cdef int digit
    if tail[CRC_SIZE - 1] != 2:
        return False
    value = crc31(at, size - CRC_SIZE)
    for digit in range(10):
        if tail[9 + digit] != 48 + value % 10:
            return False
        value //= 10
    return True

# As record_encoder.meant_crc_property.
cdef inline bint meant_crc_property(At at, int64_t size) noexcept nogil:
    cdef At tail = at + size - CRC_SIZE
    cdef const char* name = "__CRC32#"
    cdef int place, changed
    if has_crc_name(tail):
        return True
    changed = 0 if tail[8] == 1 else 1
    for place in range(8):
        changed += 0 if tail[place] == <unsigned char>name[place] else 1
    return changed <= 1 or crc_digits_fit(at, size)

# As record_encoder.verify_crc_property; False without the property too.
cdef inline bint crc_property_fits(At at, int64_t size) noexcept nogil:
    return has_crc_name(at + size - CRC_SIZE) and crc_digits_fit(at, size)

# What the first 8 bytes say: GOOD, or why there is no record.
cdef inline int kind_of(At at, At end) noexcept nogil:
    cdef int64_t size, magic
    if end - at < 8:
        return INCOMPLETE
    size = int_at(at)
    magic = int_at(at + 4)
    if size == 0 and magic == 0:
        return ZERO
    if is_blank(magic):
        return BLANK
    if not is_v1(magic) and not is_v2(magic):
        return BAD_MAGIC
    if size < MIN_SIZE:
        return BAD_SIZE
    return INCOMPLETE if size > end - at else GOOD

cdef struct Spans:
    At body  # NULL where the lengths do not add up
    int64_t body_size
    At topic  # it ends where the 2 bytes of PROPERTIESLENGTH begin
    At properties

# The parts of the record from `at` to `stop`.
cdef inline bint find_spans(At at, At stop, Spans* spans) noexcept nogil:
    cdef int64_t sys_flag = int_at(at + 36)
    cdef bint short = is_v1(int_at(at + 4))
    cdef int64_t left = stop - at - 88, topic_size, properties_size
    cdef At body = at + 88
    if sys_flag & BORN_V6:
        body += V6_MORE
        left -= V6_MORE
    if sys_flag & STORE_V6:
        body += V6_MORE
        left -= V6_MORE
    if left < 0:
        return False
    spans.body = body
    spans.body_size = int_at(body - 4)
    left -= spans.body_size + (1 if short else 2)
    if spans.body_size < 0 or left < 0:
        return False
    spans.topic = body + spans.body_size + (1 if short else 2)
    topic_size = (spans.topic - 1)[0] if short else short_at(spans.topic - 2)
    left -= topic_size + 2
    if topic_size < 0 or left < 0:
        return False
    spans.properties = spans.topic + topic_size + 2
    properties_size = short_at(spans.properties - 2)
    return properties_size >= 0 and properties_size == left

# Why there is no whole record at `at` (a Stop), or GOOD, and its parts.
cdef inline int check(
    At at, At end, int64_t physical, bint check_crc, bint crc_property, Spans* spans
) noexcept nogil:
    cdef int64_t size
    cdef At last
    cdef int stop = kind_of(at, end)
    if stop != GOOD:
        return stop
    size = int_at(at)
    if not find_spans(at, at + size, spans):
        return BAD_SIZE
    if long_at(at + 28) != physical:
        return BAD_POSITION
    if check_crc:
        if crc_property:
            if not crc_property_fits(at, size):
                return BAD_CRC
        else:
            if spans.body_size > 0 and crc31(spans.body, spans.body_size) != int_at(at + 8):
                return BAD_CRC
            last = at + size - 1 if spans.properties < at + size else spans.properties - 3
            if last >= spans.topic and last[0] == 0:  # the end never reached the disk
                return BAD_CRC
    return GOOD

# Where the values of properties stand; size 0 where there is none or it is empty.
cdef struct Found:
    At tags
    int64_t tags_size
    At keys
    int64_t keys_size
    At unique
    int64_t unique_size
    At delay
    int64_t delay_size

cdef inline void find_properties(At at, At end, At safe, Found* found) noexcept nogil:
    cdef At stop
    cdef int64_t size
    cdef uint64_t word
    found.tags = found.keys = found.unique = found.delay = at
    found.tags_size = found.keys_size = found.unique_size = found.delay_size = 0
    while at < end:
        stop = find_byte(at, end, safe, 2)
        size = stop - at
        # The shortest that matters is "TAGS" 01 and one character. Eight bytes may be read: a record begins 91 before.
        if size >= 6:
            word = word_at(at) if safe - at >= 8 else word_at(stop - 8) >> <uint64_t>(8 * (8 - size))
            if is_tags(word):
                found.tags = at + 5
                found.tags_size = size - 5
            elif is_keys(word):
                found.keys = at + 5
                found.keys_size = size - 5
            elif size > 9 and is_unique_key(word) and at[8] == 1:
                found.unique = at + 9
                found.unique_size = size - 9
            elif size > 6 and is_delay(word):
                found.delay = at + 6
                found.delay_size = size - 6
        at = stop + 1

# As unit.delay_level.
cdef inline int64_t delay_level(At at, int64_t size) noexcept nogil:
    cdef At end = at + size
    cdef int64_t level = 0
    cdef int digit
    if size > 1 and at[0] == 43:
        at += 1
    while at < end:
        digit = <int>at[0] - 48
        if digit < 0 or digit > 9:
            return 0
        level = level * 10 + digit
        if level > 0x7FFFFFFF:
            return 0
        at += 1
    return level

# As unit.record_tags_code.
cdef inline int64_t tags_code(
    Found* found, bint scheduled, int64_t stored, const int64_t* delays, int64_t levels
) noexcept nogil:
    cdef int64_t level
    if scheduled and found.delay_size > 0:
        level = delay_level(found.delay, found.delay_size)
        if level > levels:
            level = levels
        if level > 0:
            return stored + delays[level - 1]
    return <int32_t>hash_more(found.tags, found.tags_size, 0)
