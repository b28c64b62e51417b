"""Reading many messages of a queue at once: with the compiled core wherever they lie, else where they lie together.

Messages with some tags are read so by the core alone.
"""

from typing import NamedTuple

from tandemmq.store.format.unit import UNIT_SIZE, lie_together, place_of
from tandemmq.store.log.parts import RecordRun, StoreParts
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.segments.mapped_file import MappedFile

# Fewer neighbours are read one by one; so many must follow each other at the beginning to give it a try.
_FEW = 16
_MOST = 8_192
_FEW_TAGGED = 32
_PIECE = 1_024
"""So many units are read at once: often fewer are wanted than there may be."""


def read_bulk(
    parts: StoreParts, queue: ConsumeQueue, offset: int, max_messages: int, max_bytes: int, log_end: int
) -> tuple[int, bytes] | None:
    """Number and bytes of the records of ``queue`` from ``offset`` on, as many as the limits allow.

    Each record is compared with its unit: it is one of this topic and queue with this number, position, size and tags
    code. None where it is not that simple: the caller then reads one by one.
    """
    number = min(max_messages, queue.max_offset - offset, _MOST)
    if number <= 0 or parts.damage.ranges:
        return None
    if parts.record_run is not None:
        return _read_named(parts.record_run, parts, queue, offset, number, max_bytes, log_end)
    if number < _FEW or not parts.walkers.loaded:
        return None
    units = queue.read_bytes(offset, number)
    first = _neighbours(units)
    file = None if first is None else parts.files.find(first)
    if file is None or first is None:
        return None
    return _read(parts, queue, offset, units, file, first, min(file.end, log_end, first + max_bytes))


def _read_named(
    core: RecordRun, parts: StoreParts, queue: ConsumeQueue, offset: int, number: int, room: int, log_end: int
) -> tuple[int, bytes] | None:
    """By the compiled core."""
    topic, queue_id = queue.topic.encode(), queue.queue_id
    pieces: list[bytes] = []
    end = offset + number
    at = offset
    while at < end:
        units = queue.read_bytes(at, min(end - at, _PIECE))
        file = parts.files.find(place_of(units)) if len(units) >= UNIT_SIZE else None
        if file is None:
            return None
        stop = min(file.end, log_end)
        count, records = core.read(units, file.map, file.start, stop, topic, queue_id, at, room)
        if count < 0:
            return None
        if count:
            pieces.append(records)
        at, room = at + count, room - len(records)
        if not count or (count < len(units) // UNIT_SIZE and file.start <= place_of(units, count) < stop):
            break  # there is no more room
    return (at - offset, b"".join(pieces)) if pieces else None


class TaggedRun(NamedTuple):
    """What was found of the messages with some tags."""

    next_offset: int
    """Up to here the queue has no more of them."""
    found: int
    records: bytes


class TagLimits(NamedTuple):
    """How far a queue is looked through."""

    units: int
    messages: int
    bytes: int
    """Of all records; the first is given in any case."""


def read_tagged(
    parts: StoreParts, queue: ConsumeQueue, span: range, wanted: dict[int, bytes], limits: TagLimits, log_end: int
) -> TaggedRun | None:
    """Records of a ``span`` of ``queue`` with tags that are ``wanted``, which it has by their codes.

    Each of them is compared as by `read_bulk`, and its tag with the wanted one. None where it is not that simple. It
    may end before the limits, where records lie in another file.
    """
    core = parts.record_run
    if core is None or parts.damage.ranges:
        return None
    topic, queue_id = queue.topic.encode(), queue.queue_id
    pieces: list[bytes] = []
    at, count, room = span.start, 0, limits.bytes
    stop = min(span.stop, at + limits.units)
    units_at_once = min(_FEW_TAGGED + limits.messages, _PIECE)
    while at < stop and count < limits.messages:
        units = queue.read_bytes(at, min(units_at_once, stop - at))
        file = parts.files.find(place_of(units)) if len(units) >= UNIT_SIZE else None
        if file is None:
            break
        passed, given, full, records = core.read_tagged(
            units, file.map, file.start, min(file.end, log_end), topic, queue_id, at,
            wanted, limits.messages - count, room, not count,
        )  # fmt: skip
        if passed < 0:
            break
        pieces.append(records)
        at, count, room, units_at_once = at + passed, count + given, room - len(records), _PIECE
        if full or passed * UNIT_SIZE < len(units):
            break
    return None if at == span.start else TaggedRun(at, count, b"".join(pieces))


def _neighbours(units: bytes) -> int | None:
    """Log offset of the first unit, if some records from there on lie one after the other."""
    few = units[: _FEW * UNIT_SIZE]
    return place_of(few) if len(few) == _FEW * UNIT_SIZE and lie_together(few) else None


def _read(
    parts: StoreParts, queue: ConsumeQueue, offset: int, units: bytes, file: MappedFile, first: int, stop: int
) -> tuple[int, bytes] | None:
    """By the compiled walker, which reads the stretch."""
    begin = first - file.start
    walk = parts.walkers.best.walk(
        file.map, begin, stop - file.start, file.start, check_crc=False, limit=len(units) // UNIT_SIZE,
        delay_levels=parts.config.message_delay_levels,
    )  # fmt: skip
    runs = walk.runs()
    if len(runs) != 1:
        return None
    run = runs[0]
    if (run.topic, run.queue_id, run.first_queue_offset) != (queue.topic, queue.queue_id, offset):
        return None
    if run.count != walk.count or run.units != units[: run.count * UNIT_SIZE]:
        return None
    return run.count, file.map[begin : walk.position]
