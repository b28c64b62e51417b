"""The kernels of the walker: walk, the units of its runs, and the search for the next record."""

from typing import Any

import numpy as np

from tandemmq.store.format.compiled.jit import carray, helper, kernel
from tandemmq.store.format.compiled.memory import int_at, long_at, pointer, put_int, put_long, raw_long_at
from tandemmq.store.format.compiled.records import (
    GOOD,
    MAGIC_V1,
    MAGIC_V2,
    check,
    crc_property_fits,
    find_properties,
    meant_crc_property,
    tags_code,
)
from tandemmq.store.format.compiled.text import equal, find_byte, hash_more
from tandemmq.store.format.unit import SCHEDULE_TOPIC, UNIT_SIZE
from tandemmq.store.format.walker import CrcProperty, Stop

# Columns of a row: one record. Texts are (position in the buffer << 16 | size), 0 if there is none.
PHYSICAL, SIZE, QUEUE_ID, QUEUE_OFFSET, SYS_FLAG, STORE_TIME, BORN_TIME, TAGS, UNIQUE, KEYS, GROUP, RUN = range(12)
ROW_WIDTH = 12
# Columns of a group: one topic and queue. TOPIC_HASH is Java's of "topic#".
TOPIC_AT, TOPIC_SIZE, GROUP_QUEUE, LOOKUP_HASH, TOPIC_HASH, SCHEDULED, CURRENT_RUN, NEXT_OFFSET = range(8)
GROUP_WIDTH = 8
# Columns of a run: records of one group with consecutive queue offsets. RUN_PLACE: address for its next unit.
RUN_TOPIC_AT, RUN_TOPIC_SIZE, RUN_QUEUE, FIRST_OFFSET, COUNT, FIRST_PHYSICAL, LAST_END, LAST_TIME, RUN_PLACE = range(9)
RUN_WIDTH = 9
# What walk returns first in its memory.
POSITION, STOP, ROWS, GROUPS, RUNS, FIRST_STORED, LAST_STORED, MAX_STORED, LAST_PHYSICAL = range(9)
RESULT_WIDTH = 9

TEXT_SIZE_BITS = 16
STOP_BITS = 4
"""``verify`` gives position << STOP_BITS | stop."""
_END = int(Stop.END)
_BAD_CRC = int(Stop.BAD_CRC)
_CRC_IGNORED, _CRC_REQUIRED = int(CrcProperty.IGNORED), int(CrcProperty.REQUIRED)
_ROWS_FULL = int(Stop.ROWS_FULL)
_PREPARED_BIT = 4
_MIX = -7046029254386353131  # 2^64 / golden ratio, as a signed long
_SCHEDULE = SCHEDULE_TOPIC.encode()
_SCHEDULE_SIZE = len(_SCHEDULE)
_SCHEDULE_WORDS = tuple(int.from_bytes(_SCHEDULE[at : at + 8], "little") for at in (0, 8, _SCHEDULE_SIZE - 8))
_LEAST_TO_LOOK_AT = 4
_MAGIC_BYTE = 0xDA  # the first of both magic codes


# A walk has one array of longs, since each costs as much as the walk of a record: the result, the rows, the groups, the
# runs, and the hash table of the groups (ints). ``room`` is one more than the most records that it can hold.


def groups_begin(room: int) -> int:
    """Where in the array the groups begin, after the rows."""
    return RESULT_WIDTH + room * ROW_WIDTH


def runs_begin(room: int) -> int:
    """Where the runs begin."""
    return RESULT_WIDTH + room * (ROW_WIDTH + GROUP_WIDTH)


def table_begin(room: int) -> int:
    """Where the hash table begins."""
    return RESULT_WIDTH + room * (ROW_WIDTH + GROUP_WIDTH + RUN_WIDTH)


def memory_size(room: int) -> int:
    """Longs in the array."""
    return table_begin(room) + (1 << room.bit_length())


_groups_begin, _runs_begin, _table_begin = helper(groups_begin), helper(runs_begin), helper(table_begin)


@helper
def _part(memory: Any, begin: int, rows: int, width: int) -> Any:
    # A slice would be counted as a reference at each use, with instructions that make all of them wait: a walk with
    # slices takes three times as long. What is made of an address has no owner to count for; the caller keeps it alive.
    return carray(pointer(np.int64(memory.ctypes.data) + 8 * begin), (rows, width), np.int64)


@helper
def rows_of(memory: Any, room: int) -> Any:
    """The rows in the array of a walk."""
    return _part(memory, RESULT_WIDTH, room, ROW_WIDTH)


@helper
def groups_of(memory: Any, room: int) -> Any:
    """The groups."""
    return _part(memory, _groups_begin(room), room, GROUP_WIDTH)


@helper
def _runs_of(memory: Any, room: int) -> Any:
    return _part(memory, _runs_begin(room), room, RUN_WIDTH)


@helper
def _table_of(memory: Any, room: int) -> Any:
    begin = _table_begin(room)
    return carray(pointer(np.int64(memory.ctypes.data) + 8 * begin), (2 * (memory.size - begin),), np.int32)


@helper
def _lookup_hash(at: int, size: int, queue_id: int) -> int:
    end = at + size
    value = queue_id * 31 + size
    while at + 8 <= end:
        value = (value ^ raw_long_at(at)) * _MIX
        value ^= value >> 29
        at += 8
    if at < end:  # eight bytes that end with the text; what comes before it is shifted out
        value = (value ^ raw_long_at(end - 8) >> 8 * (8 - (end - at))) * _MIX
    return value ^ value >> 32


@helper
def _is_schedule_topic(at: int, size: int) -> bool:
    return (
        size == _SCHEDULE_SIZE
        and raw_long_at(at) == _SCHEDULE_WORDS[0]
        and raw_long_at(at + 8) == _SCHEDULE_WORDS[1]
        and raw_long_at(at + size - 8) == _SCHEDULE_WORDS[2]
    )


@helper
def _group_of(address: int, topic: int, size: int, queue_id: int, groups: Any, table: Any, result: Any) -> int:
    """The number of the group, entered into ``groups`` if it is new. ``table`` is open-addressed and never full."""
    wanted = _lookup_hash(topic, size, queue_id)
    mask = table.size - 1
    place = wanted & mask
    while table[place] != 0:
        group = table[place] - 1
        if (
            groups[group, LOOKUP_HASH] == wanted
            and groups[group, GROUP_QUEUE] == queue_id
            and groups[group, TOPIC_SIZE] == size
            and equal(address + groups[group, TOPIC_AT], topic, size)
        ):
            return int(group)
        place = (place + 1) & mask
    group = result[GROUPS]
    result[GROUPS] = group + 1
    table[place] = group + 1
    groups[group, TOPIC_AT] = topic - address
    groups[group, TOPIC_SIZE] = size
    groups[group, GROUP_QUEUE] = queue_id
    groups[group, LOOKUP_HASH] = wanted
    groups[group, TOPIC_HASH] = hash_more(topic, size, 0) * 31 + 35
    groups[group, SCHEDULED] = _is_schedule_topic(topic, size)
    groups[group, CURRENT_RUN] = -1
    return int(group)


@helper
def _add_to_run(group: int, offset: int, groups: Any, runs: Any, result: Any) -> int:
    run = groups[group, CURRENT_RUN]
    if run < 0 or groups[group, NEXT_OFFSET] != offset:
        run = result[RUNS]
        result[RUNS] = run + 1
        groups[group, CURRENT_RUN] = run
        runs[run, RUN_TOPIC_AT] = groups[group, TOPIC_AT]
        runs[run, RUN_TOPIC_SIZE] = groups[group, TOPIC_SIZE]
        runs[run, RUN_QUEUE] = groups[group, GROUP_QUEUE]
        runs[run, FIRST_OFFSET] = offset
        runs[run, COUNT] = 0
    groups[group, NEXT_OFFSET] = offset + 1
    runs[run, COUNT] += 1
    return int(run)


@kernel
def walk(
    address: int,
    begin: int,
    end: int,
    length: int,
    base: int,
    check_crc: bool,
    crc_property: bool,
    limit: int,
    delays: Any,
    memory: Any,
    room: int,
) -> None:
    """The walk of walker.Walker over ``length`` bytes at ``address``; fills ``memory`` (see memory_size)."""
    result = _part(memory, 0, 1, RESULT_WIDTH)[0]
    rows, groups, runs = rows_of(memory, room), groups_of(memory, room), _runs_of(memory, room)
    table = _table_of(memory, room)
    table[:] = 0
    position = begin
    stop = _END
    count = 0
    safe = address + length
    last = address + end
    newest = 0
    result[:] = 0
    while end - position >= _LEAST_TO_LOOK_AT:
        if count >= limit:
            stop = _ROWS_FULL
            break
        at = address + position
        physical = base + position
        stop, topic, properties = check(at, last, physical, check_crc, crc_property)
        if stop != GOOD:
            break
        stop = _END
        size = int_at(at)
        sys_flag = int_at(at + 36)
        stored = long_at(at + (68 if sys_flag & 16 else 56))
        queue_id = int_at(at + 12)
        offset = long_at(at + 20)
        group = _group_of(address, topic, properties - 2 - topic, queue_id, groups, table, result)
        found = find_properties(properties, at + size, safe)
        row = rows[count]
        row[PHYSICAL] = physical
        row[SIZE] = size
        row[QUEUE_ID] = queue_id
        row[QUEUE_OFFSET] = offset
        row[SYS_FLAG] = sys_flag
        row[STORE_TIME] = stored
        row[BORN_TIME] = long_at(at + 40)
        row[TAGS] = tags_code(found, groups[group, SCHEDULED] != 0, stored, delays)
        row[UNIQUE] = (found[4] - address) << TEXT_SIZE_BITS | found[5] if found[5] > 0 else 0
        row[KEYS] = (found[2] - address) << TEXT_SIZE_BITS | found[3] if found[3] > 0 else 0
        row[GROUP] = group
        row[RUN] = -1
        if not sys_flag & _PREPARED_BIT:
            run = _add_to_run(group, offset, groups, runs, result)
            row[RUN] = run
            if runs[run, COUNT] == 1:
                runs[run, FIRST_PHYSICAL] = physical
            runs[run, LAST_END] = physical + size
            runs[run, LAST_TIME] = stored
        if count == 0:
            result[FIRST_STORED] = stored
            newest = stored
        newest = max(newest, stored)
        result[LAST_STORED] = stored
        result[LAST_PHYSICAL] = physical
        count += 1
        position += size
    result[POSITION] = position
    result[STOP] = stop
    result[ROWS] = count
    result[MAX_STORED] = newest


@helper
def _all_fits(at: int, size: int, topic: int, properties: int, crc_property: int) -> bool:
    """As python_walker._all_fits."""
    if crc_property == _CRC_IGNORED:
        return True
    if crc_property == _CRC_REQUIRED or meant_crc_property(at, size):
        return bool(crc_property_fits(at, size))
    end = at + size
    return bool(
        find_byte(topic, properties - 2, properties - 2, 0) == properties - 2
        and find_byte(properties, end, end, 0) == end
    )


@kernel
def verify(address: int, begin: int, end: int, base: int, crc_property: int) -> int:
    """The verify of walker.Walker over bytes at ``address``: position and stop in one number."""
    position = begin
    last = address + end
    while end - position >= _LEAST_TO_LOOK_AT:
        at = address + position
        stop, topic, properties = check(at, last, base + position, True, False)
        if stop != GOOD:
            return position << STOP_BITS | stop
        size = int_at(at)
        if not _all_fits(at, size, topic, properties, crc_property):
            return position << STOP_BITS | _BAD_CRC
        position += size
    return position << STOP_BITS | _END


@kernel
def fill_units(memory: Any, room: int, target: int) -> None:
    """Write the units of each run one after the other, run by run, to ``target``."""
    rows, runs = rows_of(memory, room), _runs_of(memory, room)
    for run in range(memory[RUNS]):
        runs[run, RUN_PLACE] = target
        target += runs[run, COUNT] * UNIT_SIZE
    for number in range(memory[ROWS]):
        run = rows[number, RUN]
        if run >= 0:
            at = runs[run, RUN_PLACE]
            put_long(at, rows[number, PHYSICAL])
            put_int(at + 8, rows[number, SIZE])
            put_long(at + 12, rows[number, TAGS])
            runs[run, RUN_PLACE] = at + UNIT_SIZE


@helper
def _may_begin(at: int) -> bool:
    return int_at(at + 4) in (MAGIC_V1, MAGIC_V2)


@kernel
def resync(address: int, begin: int, end: int, base: int) -> int:
    """The resync of walker.Walker over bytes at ``address``."""
    last = address + end
    at = find_byte(address + begin + 4, last, last, _MAGIC_BYTE) - 4
    while at + 8 <= last:
        if _may_begin(at) and check(at, last, base + (at - address), True, False)[0] == GOOD:
            return at - address
        at = find_byte(at + 5, last, last, _MAGIC_BYTE) - 4
    return -1
