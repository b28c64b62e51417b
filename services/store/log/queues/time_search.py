"""Finding a queue offset by time (RocketMQ: ``ConsumeQueue.getOffsetInQueueByTime``)."""

import sys

from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.queues.consume_queue import ConsumeQueue


def offset_by_time(parts: StoreParts, queue: ConsumeQueue, timestamp_ms: int, log_end: int) -> int:
    """Give the offset of the first message that readers may see, stored at or after ``timestamp_ms``."""
    return first_since(parts, queue, range(queue.readable_begin, queue.readable_end), timestamp_ms, log_end)


def first_since(
    parts: StoreParts, queue: ConsumeQueue, among: range, timestamp_ms: int, log_end: int, most: int = sys.maxsize
) -> int:
    """Give the first of the offsets ``among`` whose message was stored at or after ``timestamp_ms``; else their end.

    Binary search over store times. Units without a record of their own below ``log_end`` take the time of the next one
    that has one; where ``most`` units have none, they count as late enough.
    """
    low, high = among.start, max(among.start, among.stop)
    while low < high:
        middle = (low + high) // 2
        probe, last, when = middle, min(high, middle + most), None
        while probe < last and (when := store_time_at(parts, queue, probe, log_end)) is None:
            probe += 1
        if when is None:
            high = middle
        elif when < timestamp_ms:
            low = probe + 1
        else:
            high = middle
    return low


def store_time_at(parts: StoreParts, queue: ConsumeQueue, offset: int, log_end: int) -> int | None:
    """When the message at an offset was stored, ms; None where the unit has no record of its own."""
    unit = queue.unit(offset)
    if unit is None or parts.records.end_of(unit, queue.topic.encode(), queue.queue_id, offset, log_end) < 0:
        return None
    record = parts.records.decoded(unit.physical_offset)
    return None if record is None else record.store_timestamp
