"""Finding a queue offset by time (RocketMQ: ``ConsumeQueue.getOffsetInQueueByTime``)."""

from collections.abc import Callable

from tandemmq.store.format.unit import is_blank
from tandemmq.store.log.consume_queue import ConsumeQueue

# Store time of the record at (physical offset, size); None where it cannot be read.
StoreTimeOf = Callable[[int, int], int | None]


def offset_by_time(queue: ConsumeQueue, timestamp_ms: int, store_time: StoreTimeOf) -> int:
    """Give the offset of the first message stored at or after ``timestamp_ms``, by binary search over store times.

    Units without a readable record take the time of the next one that has one.
    """
    low, high = queue.min_offset, queue.max_offset
    while low < high:
        middle = (low + high) // 2
        probe, when = middle, None
        while probe < high and (when := _time_at(queue, probe, store_time)) is None:
            probe += 1
        if when is None:
            high = middle
        elif when < timestamp_ms:
            low = probe + 1
        else:
            high = middle
    return low


def _time_at(queue: ConsumeQueue, offset: int, store_time: StoreTimeOf) -> int | None:
    unit = queue.unit(offset)
    return None if unit is None or is_blank(unit) else store_time(unit.physical_offset, unit.size)
