"""A stretch of a consume queue that is in doubt, and the part of the log in which its records must lie.

The records of a queue lie in the log in the order of their numbers. So the record of a unit that is wrong lies between
those of its neighbours, if it is there at all: a walk over what is between them finds it, and shows what is not there.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tandemmq.store.format.offset_ranges import OffsetRanges
from tandemmq.store.format.unit import UNIT_SIZE, Unit, unpack_units
from tandemmq.store.format.walker import UnitRun
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.recovery.damage import DamageList

_PIECE = 256  # units that are read at once


@dataclass(slots=True)
class QueueStretch:
    """Units ``[first, end)`` of ``queue``; their records lie in ``[position, limit)`` of the log, or nowhere."""

    queue: ConsumeQueue
    first: int
    end: int
    position: int
    limit: int
    wrong: int = 0
    """Units that were not what the log says, and were put right."""
    _found: OffsetRanges = field(default_factory=OffsetRanges)

    def take(self, runs: Iterable[UnitRun], damage: DamageList) -> None:
        """Put the units of those records right that are in the stretch; of a number given twice the first counts.

        A record in known ``damage`` has its unit too, but counts as lost.

        Raises:
            OSError: the queue cannot be written.
        """
        for run in runs:
            if (run.topic, run.queue_id) != (self.queue.topic, self.queue.queue_id):
                continue
            begin, end = max(run.first_queue_offset, self.first), min(run.first_queue_offset + run.count, self.end)
            for first, stop in self._found.missing(begin, end):
                at = (first - run.first_queue_offset) * UNIT_SIZE
                units = run.units[at : at + (stop - first) * UNIT_SIZE]
                self.wrong += restore_units(self.queue, first, units)
                if not damage.ranges:
                    self._found.add(first, stop)
                    continue
                for number, unit in enumerate(unpack_units(units), first):
                    if damage.covering(unit.physical_offset) is None:
                        self._found.add(number, number + 1)

    def lost(self) -> list[tuple[int, int]]:
        """Numbers whose records the walk has not met, in stretches."""
        return self._found.missing(self.first, self.end)


def restore_units(queue: ConsumeQueue, offset: int, units: bytes) -> int:
    """Put ``units`` where they differ from what the queue has below its end; gives how many were wrong.

    Raises:
        OSError: the queue cannot be written.
    """
    restored = 0
    while units and offset < queue.max_offset:
        here = units[: (queue.max_offset - offset) * UNIT_SIZE]
        have = queue.read_bytes(offset, len(here) // UNIT_SIZE)
        part = here[: len(have)] if have else here
        if part != have:
            queue.put(offset, part)
            have = have.ljust(len(part), b"\0")
            restored += sum(
                part[at : at + UNIT_SIZE] != have[at : at + UNIT_SIZE] for at in range(0, len(part), UNIT_SIZE)
            )
        offset += len(part) // UNIT_SIZE
        units = units[len(part) :]
    return restored


class Neighbours:
    """Looks in a queue for the nearest units whose records are theirs."""

    def __init__(self, parts: StoreParts, queue: ConsumeQueue, offset: int, log_end: int) -> None:
        """Look around unit ``offset``; records lie below ``log_end``."""
        self._parts = parts
        self._queue = queue
        self._topic = queue.topic.encode()
        self._log_end = log_end
        self._down = offset
        self._up = offset + 1
        self._before: tuple[int, int] | None = None
        self._after: tuple[int, int] | None = None

    def look(self, units: int) -> QueueStretch | None:
        """Look at up to ``units`` more on each side; None where neighbours are not found yet."""
        queue = self._queue
        low = max(self._down - units, queue.min_offset)
        while self._before is None and self._down > low:
            in_file = (self._down - 1) // queue.units_per_file * queue.units_per_file
            begin = max(self._down - _PIECE, low, in_file)
            read = queue.read(begin, self._down - begin)
            for number in range(begin + len(read) - 1, begin - 1, -1):
                if (end := self._record_end(number, read[number - begin])) >= 0:
                    self._before = number + 1, end
                    break
            self._down = begin
        if self._before is None and self._down <= queue.min_offset:
            files = self._parts.files.files
            self._before = queue.min_offset, files[0].start if files else 0
        high = min(self._up + units, queue.max_offset)
        while self._after is None and self._up < high:
            read = queue.read(self._up, min(_PIECE, high - self._up))
            for number, unit in enumerate(read, self._up):
                if self._record_end(number, unit) >= 0:
                    self._after = number, unit.physical_offset
                    break
            # What no file has is wrong too.
            self._up += len(read) or queue.units_per_file - self._up % queue.units_per_file
        if self._after is None and self._up >= queue.max_offset:
            self._after = queue.max_offset, self._log_end
        if self._before is None or self._after is None:
            return None
        return QueueStretch(queue, self._before[0], self._after[0], self._before[1], self._after[1])

    def _record_end(self, number: int, unit: Unit) -> int:
        """Log offset after the unit's record; -1 where that is not the record of this number."""
        return self._parts.records.end_of(unit, self._topic, self._queue.queue_id, number, self._log_end)
