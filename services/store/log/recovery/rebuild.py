"""Restoring derived files from the log while the store serves (design rule: they may always be thrown away).

Two jobs. `repair_queues` walks the part of the log that recovery did not read and puts every unit that is missing
or wrong at its place. `rebuild_index` writes a whole new index beside the old one, in log order, and swaps it in
when it has caught up. The walking is done in a thread; what touches the store's own objects is done on the event
loop.
"""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

from tandemmq.store.format.unit import is_blank, is_empty
from tandemmq.store.format.walker import UnitRun
from tandemmq.store.log.edges.threads import in_thread
from tandemmq.store.log.index.index import Index
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.queues.queue_offsets import QueueKey
from tandemmq.store.log.queues.queue_stretch import restore_units
from tandemmq.store.log.segments.scan import LogScan, Step

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Taken:
    """What was taken of a queue: all below ``end``, but for a record that stands alone after a gap.

    That is ``waiting`` for what comes after it: its number may be too high.
    """

    end: int = 0
    waiting: UnitRun | None = None


class Rebuild:
    """Repairs what recovery found missing below log offset ``begin_of_tail``.

    From there on dispatch keeps things right.
    """

    def __init__(self, parts: StoreParts, begin_of_tail: int) -> None:
        """Prepare; nothing is read yet."""
        self._parts = parts
        self._tail = begin_of_tail
        self.units_restored = 0
        self._taken: dict[QueueKey, _Taken] = {}

    async def repair_queues(self) -> None:
        """Compare every unit below the tail with the log; restore what is missing.

        Afterwards all offsets are certain.
        """
        parts = self._parts
        begin = parts.files.files[0].start if parts.files.files else 0
        log.info("Checking consume queues against %d MiB of the log", (self._tail - begin) >> 20)
        async for step, runs in self._walk(begin, self._tail):
            self._put(runs)
            parts.observer.recovering("queues", step.position - begin, self._tail - begin)
        self._put_waiting()
        for queue in parts.queues:
            queue.rebuilding = False
            queue.mark_dirty()  # what an earlier, killed process has restored may not be on disk
            queue.min_offset = queue.first_offset_on_disk
            # Not `begin`: old files may have gone while the log was walked.
            queue.correct_min_offset(parts.files.files[0].start if parts.files.files else 0, compared=True)
            parts.offsets.raise_to((queue.topic, queue.queue_id), queue.max_offset)
        parts.offsets.settle()
        parts.observer.recovering("queues", 1, 1)
        log.info("Consume queues are complete; %d units restored", self.units_restored)

    async def restore_stretch(self, begin: int) -> None:
        """Put the units of records from ``begin`` to the tail where they are missing: the log was damaged there.

        A number that was given again meanwhile stays with the message that has it now.
        """
        parts = self._parts
        log_min = parts.files.files[0].start if parts.files.files else 0
        async for _, runs in self._walk(begin, self._tail):
            for run in parts.queues.nameable(runs):
                queue = parts.queues.ensure(run.topic, run.queue_id)
                self._put((one for one in run.one_by_one() if not self._given_again(queue, one)), waits=False)
                queue.min_offset = queue.first_offset_on_disk
                queue.correct_min_offset(log_min)
                parts.offsets.raise_to((run.topic, run.queue_id), queue.max_offset)

    def _given_again(self, queue: ConsumeQueue, one: UnitRun) -> bool:
        """Whether the queue has another message at this number."""
        number = one.first_queue_offset
        unit = queue.unit(number) if number < queue.max_offset else None
        if unit is None or is_blank(unit) or is_empty(unit) or unit.physical_offset == one.first_physical:
            return False
        if self._parts.records.named(unit.physical_offset, (one.topic, one.queue_id), number, verify=True) is None:
            return False
        log.error(
            "Message %d of queue %d of %s at log offset %d is back; its number was given to the one at %d meanwhile",
            number, one.queue_id, one.topic, one.first_physical, unit.physical_offset,
        )  # fmt: skip
        return True

    async def _walk(self, begin: int, end: int) -> AsyncIterator[tuple[Step, list[UnitRun]]]:
        parts = self._parts
        scan = LogScan(
            parts.files,
            parts.walkers.best if end - begin < (1 << 20) else await asyncio.to_thread(parts.walkers.load),
            parts.damage,
            check_crc=False,
            delay_levels=parts.config.message_delay_levels,
        )
        position = begin
        while position < end:
            step = await asyncio.to_thread(scan.step, position, end)
            if step.torn_at >= 0:
                break
            runs = await asyncio.to_thread(step.walk.runs) if step.walk is not None else []
            if step.damage is not None:
                parts.note_damage(step.damage)
            position = step.position
            yield step, runs
            if step.finished:
                break

    def _put(self, runs: Iterable[UnitRun], *, waits: bool = True) -> None:
        """Restore what dispatch would take of runs: no number that cannot be, and of one that is given twice the first.

        Nor a number that is too high: the queue's unit knows the record, or those that come after it in the log.
        """
        for one in self._parts.queues.nameable(runs):
            run = one.possible()
            if run is None:
                continue
            queue, first = self._parts.queues.ensure(run.topic, run.queue_id), run.first_queue_offset
            taken = self._taken.setdefault((run.topic, run.queue_id), _Taken())
            if run.count == 1 and queue.misnumbered(taken.end, first, run.first_physical):
                taken.end += 1
                continue
            waiting, taken.waiting = taken.waiting, None
            if waiting is not None and taken.end <= first <= waiting.first_queue_offset:
                queue.tell_misnumbered(waiting.first_queue_offset, waiting.first_physical, f"the next one is {first}")
            elif waiting is not None:
                self._restore(queue, waiting, taken)
            if waits and run.count == 1 and first > taken.end:
                taken.waiting = run
            else:
                self._restore(queue, run, taken)

    def _put_waiting(self) -> None:
        """Restore those after which nothing has come, unless the queue has later records with lower numbers."""
        for key, taken in self._taken.items():
            run, taken.waiting = taken.waiting, None
            if run is None:
                continue
            queue, number = self._parts.queues.ensure(*key), run.first_queue_offset
            unit = queue.unit(min(number, queue.max_offset - 1)) if queue.max_offset > taken.end else None
            if unit is not None and not is_blank(unit) and unit.physical_offset > run.first_physical:
                queue.tell_misnumbered(number, run.first_physical, "later ones have lower numbers")
            else:
                self._restore(queue, run, taken)

    def _restore(self, queue: ConsumeQueue, run: UnitRun, taken: _Taken) -> None:
        rest = run.without(taken.end - run.first_queue_offset)
        if rest is not None:
            taken.end = rest.first_queue_offset + rest.count
            self.units_restored += restore_units(queue, rest.first_queue_offset, rest.units)
            self.units_restored += queue.append_run(rest.first_queue_offset, rest.units, rest.last_end_physical)


async def rebuild_index(parts: StoreParts) -> None:
    """Write a complete index beside the present one and put it in its place; queries go on meanwhile."""
    current = parts.index
    if current is None:
        return
    staging = current.directory.with_name("index.rebuild")
    for leftover in (staging, current.replaced):
        await in_thread(shutil.rmtree, leftover, True)
    fresh = Index(staging, current.slots, current.entries, parts.disk, parts.clock, parts.walkers)
    await in_thread(fresh.load)
    begin = position = parts.files.files[0].start if parts.files.files else 0
    log.info("Rebuilding the index from log offset %d", begin)
    scan = LogScan(
        parts.files,
        await asyncio.to_thread(parts.walkers.load),
        parts.damage,
        check_crc=False,
        delay_levels=parts.config.message_delay_levels,
    )

    def index_one(position: int, end: int) -> int:
        step = scan.step(position, end)
        if step.walk is not None:
            fresh.put(step.walk)
        return end if step.torn_at >= 0 else step.position

    synced = False
    while position < (end := current.position) or not synced:
        if position < end:
            position = await asyncio.to_thread(index_one, position, end)
            parts.observer.recovering("index", position - begin, end - begin)
        else:
            # Before it takes the old one's place: a power cut would leave holes that no later start looks for.
            await asyncio.to_thread(fresh.sync)
            synced = True
    fresh.position = position
    await in_thread(current.remove_replaced, current.replace_by(fresh))
    parts.observer.recovering("index", 1, 1)
    log.info("The index is complete up to log offset %d", position)
