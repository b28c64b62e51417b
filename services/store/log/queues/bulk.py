"""Reading many messages of a queue at once, where they lie one after the other in the log, as batches leave them."""

from tandemmq.store.format.unit import UNIT_SIZE, lie_together, place_of
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.segments.mapped_file import MappedFile

# Fewer neighbours are read one by one; so many must follow each other at the beginning to give it a try.
_FEW = 16
_MOST = 8_192


def read_bulk(
    parts: StoreParts, queue: ConsumeQueue, offset: int, max_messages: int, max_bytes: int, log_end: int
) -> tuple[int, bytes] | None:
    """Number and bytes of the records of ``queue`` from ``offset`` on, as many as the limits allow.

    The compiled walker reads the stretch, and it counts only if what it finds there is, byte for byte, what the queue
    says: records of this topic and queue with these numbers, positions, sizes and tags codes. None where it is not that
    simple, or the compiled walker is not in memory: the caller then reads one by one.
    """
    number = min(max_messages, queue.max_offset - offset, _MOST)
    if number < _FEW or not parts.walkers.loaded or parts.damage.ranges:
        return None
    units = queue.read_bytes(offset, number)
    first = _neighbours(units)
    file = None if first is None else parts.files.find(first)
    if file is None or first is None:
        return None
    return _read(parts, queue, offset, units, file, first, min(file.end, log_end, first + max_bytes))


def _neighbours(units: bytes) -> int | None:
    """Log offset of the first unit, if some records from there on lie one after the other."""
    few = units[: _FEW * UNIT_SIZE]
    return place_of(few) if len(few) == _FEW * UNIT_SIZE and lie_together(few) else None


def _read(
    parts: StoreParts, queue: ConsumeQueue, offset: int, units: bytes, file: MappedFile, first: int, stop: int
) -> tuple[int, bytes] | None:
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
