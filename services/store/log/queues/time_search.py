"""Finding a queue offset by time (RocketMQ: ``ConsumeQueue.getOffsetInQueueByTime``)."""

from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.queues.consume_queue import ConsumeQueue


def offset_by_time(parts: StoreParts, queue: ConsumeQueue, timestamp_ms: int, log_end: int) -> int:
    """Give the offset of the first message stored at or after ``timestamp_ms``, by binary search over store times.

    Units without a record of their own below ``log_end`` take the time of the next one that has one.
    """
    topic = queue.topic.encode()
    low, high = queue.min_offset, queue.readable_end
    while low < high:
        middle = (low + high) // 2
        probe, when = middle, None
        while probe < high and (when := _time_at(parts, queue, topic, probe, log_end)) is None:
            probe += 1
        if when is None:
            high = middle
        elif when < timestamp_ms:
            low = probe + 1
        else:
            high = middle
    return low


def _time_at(parts: StoreParts, queue: ConsumeQueue, topic: bytes, offset: int, log_end: int) -> int | None:
    unit = queue.unit(offset)
    if unit is None or parts.records.end_of(unit, topic, queue.queue_id, offset, log_end) < 0:
        return None
    record = parts.records.decoded(unit.physical_offset)
    return None if record is None else record.store_timestamp
