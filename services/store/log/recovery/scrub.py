"""Scrubbing: reading the whole log, slowly, and comparing queues and index with it, before anybody asks.

What rots in old parts of the log, a unit that hides its message from a filter, an entry that no chain leads to: nobody
meets them until it is too late to fetch the bytes from elsewhere. A pass walks the log with checksums, in small slices
in a thread, no faster than a share of one core and so many bytes a second. Rot becomes known damage, wrong units are
put right, a wrong index is made anew.
"""

import asyncio
import logging
import time
from collections.abc import Callable

from tandemmq.store.format.unit import UNIT_SIZE, impossible_units, unpack_units
from tandemmq.store.format.walker import UnitRun
from tandemmq.store.log.edges.threads import in_thread
from tandemmq.store.log.index.index_comparison import EntryComparison, IndexMismatch, compare_chains
from tandemmq.store.log.index.index_repairs import IndexRepairs
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.queues.queue_offsets import QueueKey
from tandemmq.store.log.recovery.damage import DamagedRange
from tandemmq.store.log.recovery.restoring import Restoring
from tandemmq.store.log.segments.scan import LogScan, Step

log = logging.getLogger(__name__)

_FIRST_PASS_SECONDS = 600.0
_BETWEEN_PASSES_SECONDS = 24 * 3600.0
_SLICE_BYTES = 256 << 10
_MOST_BYTES = 64 << 20  # a slice must hold a whole record
_RECORDS = 32
"""In pure Python these take a millisecond."""
_RECORDS_COMPILED = 1_024
_PAUSES = 19
"""A slice is followed by a pause of so many times its length: a pass takes a twentieth of a core."""
_AGAIN_SECONDS = 60.0


class Scrub:
    """The passes of one store's life."""

    def __init__(
        self, parts: StoreParts, restoring: Restoring, index_repairs: IndexRepairs, dispatched: Callable[[], int]
    ) -> None:
        """``dispatched``: log offset up to which queues and index are complete, but for what is being restored."""
        self._restoring = restoring
        self._parts = parts
        self._index_repairs = index_repairs
        self._dispatched = dispatched
        self._rate = parts.config.scrub_bytes_per_second
        self._task: asyncio.Task[None] | None = None
        self._ends: dict[QueueKey, int] = {}
        """After which number the last records of each queue were that were compared."""

    def start(self) -> None:
        """Begin the passes, unless the settings say that there are none."""
        if self._rate > 0:
            self._task = asyncio.create_task(self._run(), name="scrub")

    async def stop(self) -> None:
        """End the passes."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        await self._parts.timers.sleep(_FIRST_PASS_SECONDS)
        while True:
            try:
                await self.once(paced=True)
                await self._parts.timers.sleep(_BETWEEN_PASSES_SECONDS)
            except Exception as error:  # whatever it was, the store serves on, and someone must hear of it
                log.exception("A scrub stopped, and begins anew: %s", error)
                self._parts.observer.failed("scrub")
                await self._parts.timers.sleep(_AGAIN_SECONDS)

    async def once(self, *, paced: bool = False) -> None:
        """One pass over what there is now; ``paced``: with pauses.

        Raises:
            OSError: a queue, or the list of damage, cannot be written.
        """
        parts = self._parts
        await self._restoring.wait()
        position = begin = parts.files.files[0].start if parts.files.files else 0
        end, width = self._dispatched(), _SLICE_BYTES
        self._ends.clear()
        entries = None
        if parts.index is not None:
            entries = EntryComparison(parts.index, parts.damage)
            entries.start_at(begin)
        while position < end:
            begun = time.monotonic()
            if parts.files.files and position < parts.files.files[0].start:  # expired meanwhile
                position = parts.files.files[0].start
                if entries is not None:
                    entries.start_at(position)
            limit = min(position + width, end)
            step = await in_thread(self._scan().step, position, limit)
            after = self._compare(step, end, entries)
            width = _SLICE_BYTES if after > position or width >= _MOST_BYTES else 4 * width
            if after == position and limit == end:
                break
            read, position = after - position, after
            parts.observer.scrubbed(position - begin, end - begin + 1)
            await self._pause(begun, read, paced)
        await self._compare_chains(paced)
        parts.observer.scrubbed(1, 1)

    def _scan(self) -> LogScan:
        parts, compiled = self._parts, self._parts.walkers.loaded
        return LogScan(
            parts.files, parts.walkers.best, parts.damage, check_crc=parts.config.check_crc_on_recover,
            delay_levels=parts.config.message_delay_levels, force_crc_property=parts.config.force_verify_prop_crc,
            rows=_RECORDS_COMPILED if compiled else _RECORDS, half_at_end=True,
        )  # fmt: skip

    def _compare(self, step: Step, end: int, entries: EntryComparison | None) -> int:
        """Compare what a slice has found; gives the log offset to go on at."""
        parts, damage, after = self._parts, step.damage, step.position
        if step.torn_at >= 0:  # nothing valid follows, yet dispatch has been here
            damage, after = DamagedRange(step.torn_at, end, "rot", "no record begins here"), end
        if damage is not None:
            parts.note_damage(damage)
        if step.walk is not None and step.walk.count:
            for run in parts.queues.nameable(step.walk.runs()):
                self._compare_units(run)
            if entries is not None and not entries.lost:
                try:
                    entries.take(step.walk)
                except IndexMismatch as mismatch:
                    self._index_repairs.suspect(mismatch.place, mismatch.reason)
                    entries.lost = True
        return after

    def _compare_units(self, run: UnitRun) -> None:
        """Put units right that differ; not where the one that is there has a record of its own, elsewhere."""
        queue = self._parts.queues.get(run.topic, run.queue_id)
        skip = impossible_units(run.first_queue_offset, run.units)
        first = run.first_queue_offset + skip
        count = 0 if queue is None else min(run.count - skip, queue.max_offset - first)
        key = run.topic, run.queue_id
        expected = self._ends.get(key, 0)
        if queue is not None and run.count == 1 and queue.misnumbered(expected, first, run.first_physical):
            self._ends[key] = expected + 1
            return
        self._ends[key] = run.first_queue_offset + run.count
        if queue is None or count <= 0 or queue.rebuilding:
            return
        units = run.units[skip * UNIT_SIZE : (skip + count) * UNIT_SIZE]
        wrong = 0
        while units:
            have = queue.read_bytes(first, len(units) // UNIT_SIZE)
            piece = units[: len(have)] or units[:UNIT_SIZE]
            if piece != have:
                wrong += self._put(queue, first, piece, have.ljust(len(piece), b"\0"))
            first, units = first + len(piece) // UNIT_SIZE, units[len(piece) :]
        if wrong:
            log.warning(
                "Consume queue %d of topic %s did not fit the log below offset %d: %d units put right",
                run.queue_id, run.topic, first, wrong,
            )  # fmt: skip
            self._parts.observer.found("unit", wrong)

    def _put(self, queue: ConsumeQueue, first: int, units: bytes, have: bytes) -> int:
        wrong, topic, log_end = 0, queue.topic.encode(), self._dispatched()
        for number, (want, there) in enumerate(zip(unpack_units(units), unpack_units(have), strict=True), first):
            if want == there:
                continue
            elsewhere = want.physical_offset != there.physical_offset
            if elsewhere and self._parts.records.end_of(there, topic, queue.queue_id, number, log_end) >= 0:
                continue  # two records claim this number
            queue.put(number, units[(number - first) * UNIT_SIZE : (number - first + 1) * UNIT_SIZE])
            if want.physical_offset >= self._parts.files.files[0].start:
                queue.min_offset = min(queue.min_offset, number)
            wrong += 1
        return wrong

    async def _compare_chains(self, paced: bool) -> None:
        index = self._parts.index
        for file in list(index.files) if index is not None else []:
            begun = time.monotonic()
            try:
                for _ in compare_chains(file):
                    await self._pause(begun, 0, paced)
                    if index is None or file not in index.files:
                        break
                    begun = time.monotonic()
            except IndexMismatch as mismatch:
                self._index_repairs.suspect(mismatch.place, mismatch.reason)
                return

    async def _pause(self, begun: float, read: int, paced: bool) -> None:
        taken = time.monotonic() - begun
        await self._parts.timers.sleep(max(_PAUSES * taken, read / self._rate) if paced else 0)
