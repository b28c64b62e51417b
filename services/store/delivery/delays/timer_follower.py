"""Keeps the index of timers in step with the queue of `rmq_sys_wheel_timer`, on masters and slaves."""

import asyncio
from collections.abc import Callable

from tandemmq.common.log_output import get_log
from tandemmq.store.broker.postponing import TIMER_TOPIC
from tandemmq.store.delivery.delays.counts import DelayCounts
from tandemmq.store.delivery.delays.timer_entry import BadEntries, TimerEntry, entry_of
from tandemmq.store.delivery.delays.timer_index import TimerIndex
from tandemmq.store.delivery.journal.facts import TimersDone
from tandemmq.store.delivery.queue_cursor import QueueCursor
from tandemmq.store.format import properties
from tandemmq.store.format.record import MIN_RECORD_SIZE, Record
from tandemmq.store.log.edges.threads import in_thread
from tandemmq.store.log.errors import QueueNotReady, StoreError
from tandemmq.store.log.message_store import MessageStore

log = get_log(__name__)

_TURN_SECONDS = 0.0015
_AT_ONCE = 256
_RETRY_SECONDS = 0.1
_CHECKPOINT_SECONDS = 5.0


class TimerFollower:
    """Reads the records of the queue and puts them into the index, by itself, as they come."""

    def __init__(
        self,
        store: MessageStore,
        index: TimerIndex,
        precision_ms: int,
        roll_after_ms: int,
        progress: Callable[[], TimersDone | None],
        counts: DelayCounts,
    ) -> None:
        """`progress`: how far timers are delivered, here or by this store's master."""
        self._store = store
        self._timers = store.timers
        self._index = index
        self._cursor = QueueCursor(store, TIMER_TOPIC, 0)  # the index keeps the place
        self._precision_ms = precision_ms
        self._roll_after_ms = roll_after_ms
        self._progress = progress
        self._counts = counts
        self._checkpoints: asyncio.Task[None] | None = None
        self._running = False
        self._changed = False
        self._done: tuple[TimersDone | None, int] = (None, 0)  # progress, and the log offset that holds it
        self.on_entries: Callable[[list[TimerEntry]], None] = lambda _: None
        """Told what was added to the index."""
        self.on_cleared: Callable[[], None] = lambda: None
        """Told that the index is being made anew, or has lost its end."""
        self.unreadable = 0
        """Records that could not be read, so that their times are not known."""

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Load the index, and follow the queue from there on."""
        self._running = True
        try:
            self._index.load()
        except OSError as error:
            log.failure("the index of timers cannot be read", error)
        self._timers.call_soon(self._turn)
        self._checkpoints = asyncio.create_task(self._checkpoint_often(), name="checkpoints of the timer index")

    async def stop(self) -> None:
        """End, with a checkpoint."""
        self._running = False
        self._cursor.stop()
        if self._checkpoints is not None:
            self._checkpoints.cancel()
            await asyncio.gather(self._checkpoints, return_exceptions=True)
        await self.checkpoint()
        self._index.close()

    def entry(self, offset: int) -> TimerEntry | None:
        """The entry of a record as the log has it now; None where it cannot be read. Raises StoreError, OSError."""
        unit = self._cursor.queue.unit(offset)
        record = None if unit is None else self._cursor.record_of(offset, unit)
        return None if record is None else entry_of(record, self._precision_ms, self._roll_after_ms)

    def record_of(self, entry: TimerEntry) -> Record | None:
        """The record of an entry, None where it cannot be read any more. Raises StoreError, OSError."""
        return self._cursor.record_seen(entry.offset, entry.physical)

    @property
    def end(self) -> int:
        """Where the queue ends, as far as it may be read."""
        return self._cursor.queue.readable_end

    @property
    def stored_end(self) -> int:
        """Where the queue ends; what no replica has yet belongs to it. Copies lie after it, and are seen no sooner."""
        return self._cursor.queue.max_offset

    # -- following --------------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Put into the index now what the queue has, as far as that goes in one turn."""
        if self._running:
            self._store.catch_up()
            self._follow(self._timers.elapsed() + _TURN_SECONDS)

    def make_anew(self, why: str) -> None:
        """Throw the index away and make it from the log."""
        log.warning("the index of timers is made anew from the log", reason=why)
        self._index.clear()
        self._cursor.forget()
        self._changed = True
        self._cursor.stop()
        self.on_cleared()
        self._timers.call_soon(self._turn)

    def _turn(self) -> None:
        if not self._running or self._cursor.waits:
            return
        try:
            more = self._follow(self._timers.elapsed() + _TURN_SECONDS)
        except BadEntries as error:
            self.make_anew(str(error))
            return
        except (StoreError, OSError) as error:
            log.debug("the index of timers waits", reason=str(error))
            self._timers.call_later(_RETRY_SECONDS, self._turn)
            return
        if more:
            self._timers.call_soon(self._turn)
        else:
            self._cursor.wait(self._turn)

    def _follow(self, until: float) -> bool:
        """Take some records; whether there are more. Raises BadEntries, StoreError, OSError."""
        index, cursor = self._index, self._cursor
        self._check_end(cursor.queue.max_offset)
        cursor.begin(index.indexed)
        cursor.pass_expired()
        physical, end = index.physical, cursor.queue.readable_end
        entries: list[TimerEntry] = []
        try:
            for unit in cursor.units(end, _AT_ONCE, until):
                record = cursor.record(unit)
                if record is None:
                    self.unreadable += 1
                else:
                    entry = entry_of(record, self._precision_ms, self._roll_after_ms)
                    entries.append(entry)
                    if not entry.recall and not entry.rolled:
                        self._counts.timers_in[record.properties.get(properties.REAL_TOPIC, "")] += 1
                if unit.size >= MIN_RECORD_SIZE:
                    physical = unit.end
        finally:
            if cursor.next > index.indexed:
                index.add(entries, cursor.next, physical)
                self._changed = True
                self.on_entries(entries)
        return cursor.next < end

    def _check_end(self, end: int) -> None:
        """Where the log was cut, cut the index too.

        Raises QueueNotReady: it is not known yet whether it was. BadEntries: the index is not one of this queue.
        """
        index, queue = self._index, self._cursor.queue
        if index.indexed > end:
            if not self._cursor.complete:  # not to be waited for: it may never come so far as the index says
                raise QueueNotReady(f"The queue of timers ends at {end}, and is being rebuilt from the commit log.")
            unit = queue.unit(end - 1) if end > queue.min_offset else None
            if unit is not None and index.entry_of(end - 1) != self.entry(end - 1):
                raise BadEntries("the log was cut, and may have grown again")
            log.info("the index of timers is cut", indexed=index.indexed, end=end)
            index.cut(end, unit.end if unit is not None else 0)
            self._cursor.forget()
            self._changed = True
            self.on_cleared()
        elif index.indexed > queue.min_offset:
            unit = queue.unit(index.indexed - 1)
            if unit is not None and unit.size >= MIN_RECORD_SIZE and unit.end != index.physical:
                raise BadEntries("the log was cut and has grown again")

    # -- checkpoints ------------------------------------------------------------------------------------------------

    async def _checkpoint_often(self) -> None:
        while True:
            await self._timers.sleep(_CHECKPOINT_SECONDS)
            await self.checkpoint()

    def _drop_what_is_done(self) -> None:
        """What was done at the last checkpoint, if that is on disk by now: with the power it must not come back."""
        done, end = self._done
        if done is not None and self._store.flushed_offset >= end:
            before = self._index.dropped
            self._index.drop(done.indexed, done.due, done.offset)
            self._changed |= self._index.dropped != before
        if done is None or self._store.flushed_offset >= end:
            self._done = self._progress(), self._store.commit_log.max_offset

    async def checkpoint(self) -> None:
        """Make the index durable, without what is done. Errors are logged: it is tried again."""
        self._drop_what_is_done()
        if not self._changed:
            return
        self._changed = False
        pending = self._index.checkpoint()
        try:
            await in_thread(pending.write)
            aside = self._index.written(pending)
            await in_thread(self._index.remove, aside)
            self._changed |= not pending.is_of(self._index)
        except OSError as error:
            self._changed = True
            if pending.is_of(self._index):
                self._index.not_written(pending)
                log.failure("the index of timers cannot be made durable", error)
