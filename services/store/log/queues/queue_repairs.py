"""Consume queue units that do not fit the log: they are put right from the log while the store serves.

Whoever meets such a unit names it here and stops before it. Where the records of its neighbours lie close to each other
it is put right at once; else by a task, and the reader waits. What the log does not have is known as lost from then on,
and passed over.
"""

import asyncio
import logging
from collections.abc import Callable

from tandemmq.common.timers import time_limit
from tandemmq.store.format.offset_ranges import OffsetRanges
from tandemmq.store.log.edges.threads import in_thread
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.queues.queue_offsets import QueueKey
from tandemmq.store.log.queues.queue_stretch import Neighbours, QueueStretch
from tandemmq.store.log.recovery.damage import DamagedRange
from tandemmq.store.log.segments.scan import LogScan, Step

log = logging.getLogger(__name__)

_NEAR_UNITS = 512
_NEAR_BYTES = 64 << 10
_NEAR_RECORDS = 32
"""What is put right at once: in pure Python these take 2 ms."""
_NEAR_STEPS = 4
_FAR_UNITS = 1_024
_FAR_RECORDS = 512
_AGAIN_SECONDS = 10.0


class _Doubt:
    """A unit that waits to be put right, and those who wait for it."""

    __slots__ = ("offset", "queue", "settled")

    def __init__(self, queue: ConsumeQueue, offset: int) -> None:
        self.queue = queue
        self.offset = offset
        self.settled = asyncio.Event()


class QueueRepairs:
    """The repairs of one store's life."""

    def __init__(self, parts: StoreParts, dispatched: Callable[[], int]) -> None:
        """``dispatched``: log offset up to which queues are complete."""
        self._parts = parts
        self._dispatched = dispatched
        self._lost: dict[QueueKey, OffsetRanges] = {}
        self._doubts: dict[QueueKey, _Doubt] = {}
        self._task: asyncio.Task[None] | None = None
        self._stopped = False

    def search_again(self) -> None:
        """Damaged records have come back: what was not in the log may be there now."""
        self._lost.clear()

    def is_lost(self, queue: ConsumeQueue, offset: int) -> bool:
        """Whether the log was searched for the message with this number, and does not have it."""
        lost = self._lost.get((queue.topic, queue.queue_id))
        return lost is not None and offset in lost

    def doubt(self, queue: ConsumeQueue, offset: int) -> bool:
        """The unit at ``offset`` does not fit the log. True: it does now, or is known as lost. False: it is seen to."""
        key = queue.topic, queue.queue_id
        if key in self._doubts or self._stopped:
            return False
        try:
            if self._settle_at_once(queue, offset):
                return True
        except OSError as error:
            self._failed(error)
        log.warning(
            "Queue %d of topic %s does not fit the log at offset %d: it is being compared", queue.queue_id, queue.topic,
            offset,
        )  # fmt: skip
        self._doubts[key] = _Doubt(queue, offset)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="queue repairs")
        return False

    async def settled(self, topic: str, queue_id: int, seconds: float) -> bool:
        """Wait until nothing of a queue is in doubt; False if that takes longer than ``seconds``."""
        doubt = self._doubts.get((topic, queue_id))
        if doubt is None:
            return True
        try:
            async with time_limit(self._parts.timers, seconds):
                await doubt.settled.wait()
        except TimeoutError:
            return False
        return True

    @property
    def waiting(self) -> int:
        """Queues with a unit that is being put right."""
        return len(self._doubts)

    async def stop(self) -> None:
        """Give up; what is not put right yet is met again."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for doubt in self._doubts.values():
            doubt.settled.set()
        self._doubts.clear()

    # -- putting right ----------------------------------------------------------------------------------------------

    def _scan(self, records: int) -> LogScan:
        parts = self._parts
        return LogScan(
            parts.files, parts.walkers.best, parts.damage, check_crc=False,
            delay_levels=parts.config.message_delay_levels, rows=records,
        )  # fmt: skip

    def _settle_at_once(self, queue: ConsumeQueue, offset: int) -> bool:
        stretch = Neighbours(self._parts, queue, offset, self._dispatched()).look(_NEAR_UNITS)
        if stretch is None or stretch.limit - stretch.position > _NEAR_BYTES:
            return False
        scan, steps = self._scan(_NEAR_RECORDS), 0
        while stretch.position < stretch.limit:
            if steps == _NEAR_STEPS:
                return False
            self._take(scan.step(stretch.position, stretch.limit), stretch)
            steps += 1
        self._finish(stretch)
        return True

    async def _run(self) -> None:
        """Settle one doubt after the other; where the disk refuses, as soon as it does not."""
        while self._doubts:
            key, doubt = next(iter(self._doubts.items()))
            try:
                await self._settle(doubt)
            except OSError as error:
                self._failed(error)
                await self._parts.timers.sleep(_AGAIN_SECONDS)
                continue
            except Exception as error:  # whatever it was, the store serves on, and someone must hear of it
                log.exception("Queue %d of topic %s cannot be compared with the log: %s", key[1], key[0], error)
                self._parts.observer.failed("rebuild")
            del self._doubts[key]
            doubt.settled.set()

    async def _settle(self, doubt: _Doubt) -> None:
        neighbours = Neighbours(self._parts, doubt.queue, doubt.offset, self._dispatched())
        stretch = neighbours.look(_FAR_UNITS)
        while stretch is None:
            await self._parts.timers.sleep(0)
            stretch = neighbours.look(_FAR_UNITS)
        scan = self._scan(_FAR_RECORDS)
        while stretch.position < stretch.limit:
            self._take(await in_thread(scan.step, stretch.position, stretch.limit), stretch)
        self._finish(stretch)

    def _take(self, step: Step, stretch: QueueStretch) -> None:
        if step.walk is not None:
            stretch.take(self._parts.queues.nameable(step.walk.runs()), self._parts.damage)
        damage = step.damage
        if step.torn_at >= 0:  # nothing valid follows, yet dispatch has been here
            damage = DamagedRange(step.torn_at, stretch.limit, "rot", "no record begins here")
        if damage is not None:
            self._parts.note_damage(damage)
        stretch.position = stretch.limit if step.torn_at >= 0 or step.finished else step.position

    def _failed(self, error: OSError) -> None:
        log.error("A consume queue cannot be put right yet: %s", error)
        self._parts.observer.failed("rebuild")

    def _finish(self, stretch: QueueStretch) -> None:
        queue, lost = stretch.queue, stretch.lost()
        if stretch.wrong:
            log.warning(
                "Consume queue %d of topic %s did not fit the log between offsets %d and %d: %d units put right",
                queue.queue_id, queue.topic, stretch.first, stretch.end, stretch.wrong,
            )  # fmt: skip
            self._parts.observer.found("unit", stretch.wrong)
        known = self._lost.setdefault((queue.topic, queue.queue_id), OffsetRanges())
        for begin, end in lost:
            known.add(begin, end)
            log.error(
                "Messages %d to %d of queue %d of topic %s are not in the log; readers go on after them",
                begin, end - 1, queue.queue_id, queue.topic,
            )  # fmt: skip
            self._parts.observer.found("message", end - begin)
