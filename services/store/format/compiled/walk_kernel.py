"""The kernels of the walker: walk, the units of its runs, and the search for the next record."""

import cython
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int64_t, uint64_t
from cython.cimports.libc.string import memcmp, memset
from cython.cimports.tandemmq.store.format.compiled.arrays import longs
from cython.cimports.tandemmq.store.format.compiled.memory import (
    crc_is_at,
    int_at,
    long_at,
    put_int,
    put_long,
    word_at,
)
from cython.cimports.tandemmq.store.format.compiled.record_check import (
    BAD_CRC,
    BAD_MAGIC,
    BAD_POSITION,
    BAD_SIZE,
    BLANK,
    BORN_V6,
    CRC_SIZE,
    END,
    GOOD,
    INCOMPLETE,
    MIN_SIZE,
    ROWS_FULL,
    STORE_V6,
    ZERO,
    check,
    crc_property_fits,
    find_properties,
    is_v1,
    is_v2,
    meant_crc_property,
    tags_code,
)
from cython.cimports.tandemmq.store.format.compiled.text import equal, find_byte, hash_more
from cython.cimports.tandemmq.store.format.compiled.walk_rows import TEXT_SIZE_BITS, parts_of

from tandemmq.store.format import record as layout
from tandemmq.store.format.compiled import walk_layout
from tandemmq.store.format.crc import crc_address
from tandemmq.store.format.sysflag import BORN_HOST_V6, STORE_HOST_V6
from tandemmq.store.format.unit import SCHEDULE_TOPIC, UNIT_SIZE
from tandemmq.store.format.walker import CrcProperty, Stop


def numbers() -> list[int]:
    """Numbers that kernels know by themselves, as `_meant` has those that Python code knows."""
    sizes = [cython.sizeof(Row) // 8, cython.sizeof(Group) // 8, cython.sizeof(Run) // 8, TEXT_SIZE_BITS]
    stops = [END, BLANK, ROWS_FULL, ZERO, BAD_MAGIC, BAD_SIZE, BAD_CRC, BAD_POSITION, INCOMPLETE]
    return [*sizes, *stops, MIN_SIZE, CRC_SIZE, UNIT, STORE_V6, BORN_V6, CRC_IGNORED, CRC_REQUIRED]


_meant = [
    walk_layout.ROW_WIDTH, walk_layout.GROUP_WIDTH, walk_layout.RUN_WIDTH, walk_layout.TEXT_SIZE_BITS,
    *map(int, Stop), layout.MIN_RECORD_SIZE, layout.CRC_PROPERTY_SIZE, UNIT_SIZE, STORE_HOST_V6, BORN_HOST_V6,
    int(CrcProperty.IGNORED), int(CrcProperty.REQUIRED),
]  # fmt: skip
_SCHEDULE: bytes = SCHEDULE_TOPIC.encode()
_schedule: cython.p_const_uchar = _SCHEDULE
if numbers() != _meant or len(_SCHEDULE) != SCHEDULE_SIZE:
    raise ImportError(f"the compiled walker was made for other numbers ({numbers()}) than these ({_meant})")
crc_is_at(crc_address())


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def lookup_hash(at: At, size: int64_t, queue_id: int64_t) -> int64_t:
    """Of a topic and queue, for the table of groups."""
    end: At = at + size
    value: uint64_t = cython.cast(uint64_t, queue_id * 31 + size)
    mix: uint64_t = 0x9E3779B97F4A7C15  # 2^64 / golden ratio
    while end - at >= 8:
        value = (value ^ word_at(at)) * mix
        value ^= value >> 29
        at += 8
    if at < end:  # eight bytes that end with the text; what comes before it is shifted out
        value = (value ^ word_at(end - 8) >> cython.cast(uint64_t, 8 * (8 - (end - at)))) * mix
    return cython.cast(int64_t, value ^ value >> 32)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def group_of(data: At, topic: At, size: int64_t, queue_id: int64_t, parts: cython.pointer(Parts)) -> int64_t:
    """The number of the group, entered if it is new. The table is open-addressed and never full."""
    wanted: int64_t = lookup_hash(topic, size, queue_id)
    mask: int64_t = parts.places - 1
    place: int64_t = wanted & mask
    number: int64_t
    group: cython.pointer(Group)
    while parts.table[place] != 0:
        number = parts.table[place] - 1
        group = parts.groups + number
        if (
            group.lookup_hash == wanted
            and group.queue_id == queue_id
            and group.topic_size == size
            and equal(data + group.topic_at, topic, size)
        ):
            return number
        place = (place + 1) & mask
    number = parts.result.groups
    parts.result.groups = number + 1
    parts.table[place] = number + 1
    group = parts.groups + number
    group.topic_at = topic - data
    group.topic_size = size
    group.queue_id = queue_id
    group.lookup_hash = wanted
    group.topic_hash = hash_more(topic, size, 0) * cython.cast(cython.uint, 31) + 35
    group.scheduled = size == SCHEDULE_SIZE and memcmp(topic, _schedule, SCHEDULE_SIZE) == 0
    group.current_run = -1
    group.next_offset = 0
    return number


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def add_to_run(row: cython.pointer(Row), group: cython.pointer(Group), parts: cython.pointer(Parts)) -> cython.void:
    """Put a record into the run that it goes on with, or begin one."""
    number: int64_t = group.current_run
    run: cython.pointer(Run)
    if number < 0 or group.next_offset != row.queue_offset:
        number = parts.result.runs
        parts.result.runs = number + 1
        group.current_run = number
        run = parts.runs + number
        run.topic_at = group.topic_at
        run.topic_size = group.topic_size
        run.queue_id = group.queue_id
        run.first_offset = row.queue_offset
        run.first_physical = row.physical
        run.count = 0
    run = parts.runs + number
    group.next_offset = row.queue_offset + 1
    run.count += 1
    run.last_end = row.physical + row.size
    run.last_time = row.stored
    row.run = number


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def fill(span: cython.pointer(Range), parts: cython.pointer(Parts)) -> cython.void:
    """The walk itself."""
    position: int64_t = span.begin
    stop: cython.int = END
    count: int64_t = 0
    safe: At = span.data + span.length
    last: At = span.data + span.end
    newest: int64_t = 0
    at: At
    group: int64_t
    row: cython.pointer(Row)
    found: Found
    spans: Spans
    while span.end - position >= LEAST_TO_LOOK_AT:
        if count >= span.limit:
            stop = ROWS_FULL
            break
        at = span.data + position
        stop = check(at, last, span.base + position, span.check_crc, span.crc_property, cython.address(spans))
        if stop != GOOD:
            break
        stop = END
        row = parts.rows + count
        row.physical = span.base + position
        row.size = int_at(at)
        row.queue_id = int_at(at + 12)
        row.queue_offset = long_at(at + 20)
        row.sys_flag = int_at(at + 36)
        row.stored = long_at(at + (68 if row.sys_flag & 16 else 56))
        row.born = long_at(at + 40)
        group = group_of(span.data, spans.topic, spans.properties - 2 - spans.topic, row.queue_id, parts)
        find_properties(spans.properties, at + row.size, safe, cython.address(found))
        row.tags = tags_code(
            cython.address(found), parts.groups[group].scheduled != 0, row.stored, span.delays, span.levels
        )
        row.unique = (found.unique - span.data) << TEXT_SIZE_BITS | found.unique_size if found.unique_size > 0 else 0
        row.keys = (found.keys - span.data) << TEXT_SIZE_BITS | found.keys_size if found.keys_size > 0 else 0
        row.group = group
        row.run = -1
        if not row.sys_flag & PREPARED_BIT:
            add_to_run(row, parts.groups + group, parts)
        if count == 0:
            parts.result.first_stored = row.stored
            newest = row.stored
        if row.stored > newest:
            newest = row.stored
        parts.result.last_stored = row.stored
        parts.result.last_physical = row.physical
        count += 1
        position += row.size
    parts.result.position = position
    parts.result.stop = stop
    parts.result.rows = count
    parts.result.max_stored = newest


def walk(
    address: cython.size_t,
    begin: int64_t,
    end: int64_t,
    length: int64_t,
    base: int64_t,
    check_crc: cython.bint,
    crc_property: cython.bint,
    limit: int64_t,
    delays: object,
    room: int64_t,
) -> bytes:
    """The walk of walker.Walker over ``length`` bytes at ``address``: what it fills, see walk_layout.py.

    ``room`` is one more than the most records that it can hold.
    """
    span: Range
    parts: Parts
    span.data = cython.cast(At, address)
    span.begin, span.end, span.length, span.base, span.limit = begin, end, length, base, limit
    span.check_crc, span.crc_property = check_crc, crc_property
    span.delays, span.levels = longs(delays), len(delays)
    size: cython.Py_ssize_t = parts_of(cython.NULL, room, cython.address(parts))
    # Not zeroed: memory that is not written to costs nothing.
    memory: bytes = PyBytes_FromStringAndSize(cython.NULL, size)
    parts_of(PyBytes_AS_STRING(memory), room, cython.address(parts))
    with cython.nogil:
        memset(parts.result, 0, cython.sizeof(parts.result[0]))
        memset(parts.table, 0, parts.places * 4)
        fill(cython.address(span), cython.address(parts))
    return memory


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def all_fits(at: At, size: int64_t, spans: cython.pointer(Spans), crc_property: cython.int) -> cython.bint:
    """As python_walker._all_fits."""
    if crc_property == CRC_IGNORED:
        return True
    if crc_property == CRC_REQUIRED or meant_crc_property(at, size):
        return crc_property_fits(at, size)
    end: At = at + size
    topic_end: At = spans.properties - 2
    return (
        find_byte(spans.topic, topic_end, topic_end, 0) == topic_end and find_byte(spans.properties, end, end, 0) == end
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def verified(data: At, position: int64_t, end: int64_t, base: int64_t, crc_property: cython.int) -> int64_t:
    """Where bytes are no more good, and why, in one number."""
    last: At = data + end
    spans: Spans
    stop: cython.int
    while end - position >= LEAST_TO_LOOK_AT:
        stop = check(data + position, last, base + position, True, False, cython.address(spans))
        if stop == GOOD and not all_fits(data + position, int_at(data + position), cython.address(spans), crc_property):
            stop = BAD_CRC
        if stop != GOOD:
            return position << STOP_BITS | stop
        position += int_at(data + position)
    return position << STOP_BITS | END


def verify(
    address: cython.size_t, begin: int64_t, end: int64_t, base: int64_t, crc_property: cython.int
) -> tuple[int, int]:
    """The verify of walker.Walker over bytes at ``address``: position and stop."""
    found: int64_t
    with cython.nogil:
        found = verified(cython.cast(At, address), begin, end, base, crc_property)
    return found >> STOP_BITS, found & ((1 << STOP_BITS) - 1)


def fill_units(memory: bytes, room: int64_t) -> bytes:
    """The units of each run of a walk one after the other, run by run."""
    parts: Parts
    parts_of(PyBytes_AS_STRING(memory), room, cython.address(parts))
    units: bytes = PyBytes_FromStringAndSize(cython.NULL, parts.result.rows * UNIT)
    target: To = cython.cast(To, PyBytes_AS_STRING(units))
    number: int64_t
    row: cython.pointer(Row)
    run: cython.pointer(Run)
    total: int64_t = 0
    with cython.nogil:
        for number in range(parts.result.runs):
            run = parts.runs + number
            run.place = cython.cast(int64_t, cython.cast(cython.size_t, target)) + total * UNIT
            total += run.count
        for number in range(parts.result.rows):
            row = parts.rows + number
            if row.run >= 0:
                run = parts.runs + row.run
                target = cython.cast(To, cython.cast(cython.size_t, run.place))
                put_long(target, row.physical)
                put_int(target + 8, row.size)
                put_long(target + 12, row.tags)
                run.place += UNIT
    return units[: total * UNIT]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def next_record(data: At, begin: int64_t, end: int64_t, base: int64_t) -> int64_t:
    """Where a record stands, or -1."""
    last: At = data + end
    spans: Spans
    at: At
    if end - begin < 8:
        return -1
    at = find_byte(data + begin + 4, last, last, MAGIC_BYTE) - 4
    while last - at >= 8:
        if (is_v1(int_at(at + 4)) or is_v2(int_at(at + 4))) and check(
            at, last, base + (at - data), True, False, cython.address(spans)
        ) == GOOD:
            return at - data
        at = find_byte(at + 5, last, last, MAGIC_BYTE) - 4
    return -1


def resync(address: cython.size_t, begin: int64_t, end: int64_t, base: int64_t) -> int:
    """The resync of walker.Walker over bytes at ``address``."""
    found: int64_t
    with cython.nogil:
        found = next_record(cython.cast(At, address), begin, end, base)
    return found
