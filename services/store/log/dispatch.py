"""Dispatch: every record that may be seen is given to all that is derived from the log: consume queues, index, others.

RocketMQ: ``ReputMessageService``. Runs on the event loop, so no lock is needed: at once where the store is quiet, for
all that came within 2 ms where it is busy, and before any read; within 20 ms where nobody was told of what came. The
walk is the one that recovery uses. The limit is the end of the log, or with SYNC_FLUSH its durable end.
"""

import asyncio
import logging
from collections.abc import Callable

from tandemmq.common.timers import Timer
from tandemmq.store.log.derived import Derived, QueueUnits
from tandemmq.store.log.edges.turn_size import TurnSize
from tandemmq.store.log.errors import StoreError
from tandemmq.store.log.event import Event
from tandemmq.store.log.marks.running_flags import Reason, RunningFlags
from tandemmq.store.log.observer import Observer
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.segments.scan import LogScan, Step

log = logging.getLogger(__name__)

# Records of one turn: at first, at most, and at least. In between it is as many as take a millisecond: 8,192 take one
# to eight with the compiled walker, 160 in pure Python, and one takes a fifth of one where its queue is new.
_FIRST_ROWS = 32
_MOST_ROWS = 8_192
_LEAST_ROWS = 4
_RETRY_SECONDS = 1.0
# A busy store gathers: turns begin at least so far apart (RocketMQ sleeps 1 ms between two). A turn costs some 20 µs
# however little it dispatches, more than a single send does; each message in it adds 0.2 µs.
_GATHER_SECONDS = 0.002
# Records that nobody is told of may wait so long: a busy store writes one of its own in most turns of the loop.
_UNTOLD_SECONDS = 0.02
# A backlog of so many bytes in one turn makes the store load the compiled walker, in the background.
_BUSY_BYTES = 256 << 10
# So do so many records in small turns: in pure Python each costs some 20 µs.
_BUSY_RECORDS = 50_000


class Dispatcher:
    """Follows the log and feeds what is derived from it."""

    def __init__(self, parts: StoreParts, flags: RunningFlags, limit: Callable[[], int], position: int) -> None:
        """Begin at ``position``; records below ``limit()`` may be dispatched."""
        self._parts = parts
        self._flags = flags
        self._timers = parts.timers
        self._limit = limit
        self._observer: Observer = parts.observer
        self._loading: asyncio.Future[object] | None = None
        self._scheduled = False
        self._told = False  # somebody was told of a record that is not dispatched yet
        self._next: Timer | None = None  # of a turn that is to come later; it stays where reads come before it
        self._late = False  # nobody was told of what that turn dispatches
        self._last = 0.0  # loop time when the last turn began that was scheduled
        self._records = 0
        self._stopped = False
        self._scan = self._new_scan()
        self._rows = _turn_size()
        self.position = position
        self._queue_units = QueueUnits(parts, position)
        self._fed: list[Derived] = [self._queue_units] if parts.index is None else [parts.index, self._queue_units]
        self.dispatched = Event()
        """Records were dispatched, or stepped over."""
        self.last_store_timestamp = 0

    def _new_scan(self) -> LogScan:
        parts = self._parts
        self._with_compiled = parts.walkers.loaded
        return LogScan(
            parts.files,
            parts.walkers.best,
            parts.damage,
            check_crc=False,
            delay_levels=parts.config.message_delay_levels,
        )

    def follow(self, follows: bool) -> None:
        """On a slave the log's records tell the next offset of each queue."""
        self._queue_units.follows = follows

    def begin_at(self, offset: int) -> None:
        """The log is empty, and begins at ``offset``."""
        self.position = offset
        for derived in self._fed:
            derived.position = offset

    # -- turns ------------------------------------------------------------------------------------------------------

    def kick(self, *, told: bool = True, behind: bool = False) -> None:
        """See to it that new records are dispatched soon: at the end of this turn of the loop.

        Where the last dispatch was a moment ago: together with what comes until its time. `told`: somebody is told of
        them, and may look for them at once; else there is time. `behind`: after what the end of this turn has to do
        besides.
        """
        told_before, self._told = self._told, self._told or told
        if self._scheduled and (not self._late or not told or told_before):
            return
        self._scheduled = True
        if self._told:
            self._schedule(behind)
        else:
            self._have_turn_at(self._timers.time() + _UNTOLD_SECONDS, late=True)

    def _schedule(self, behind: bool) -> None:
        """Have a turn for records that somebody was told of."""
        now, due = self._timers.time(), self._last + _GATHER_SECONDS
        if now < due:
            self._have_turn_at(due, late=False)
            return
        self._not_later()
        self._last = now
        if behind:
            self._timers.call_soon(self._timers.call_soon, self._turn)
        else:
            self._timers.call_soon(self._turn)

    def _have_turn_at(self, due: float, *, late: bool) -> None:
        """Have a turn then, or at the time that is set: each send after a read would have a timer of its own."""
        if self._next is not None:
            if late or not self._late:
                return
            self._not_later()
        self._next, self._late = self._timers.call_at(due, self._later), late

    def _later(self) -> None:
        self._next, self._late = None, False
        if self._scheduled:
            if self._told:
                self._last = self._timers.time()
            self._turn()

    def _not_later(self) -> None:
        if self._next is not None:
            self._next.cancel()
        self._next, self._late = None, False

    def catch_up(self, *, told: bool = False) -> None:
        """Dispatch now what is still being gathered: whoever has been told of a message must find it.

        `told`: only if somebody was told of any of it.
        """
        while self._scheduled and (self._told or not told):
            before = self.position
            self._turn()
            if self.position == before:  # the disk refuses; what is dispatched is all there is to see
                return

    def _turn(self) -> None:
        self._scheduled = False
        limit = self._limit()
        if self.position >= limit or self._stopped:
            self._told = False
            return
        if limit - self.position > _BUSY_BYTES or self._records > _BUSY_RECORDS:
            self._load_compiled()
        before = self.position
        try:
            self._advance(limit)
        except (OSError, StoreError) as error:
            self._retry_later(error)
            return
        except Exception as error:  # sends must not go on while nobody sees their messages
            log.exception("Dispatch met what it should not: %s", error)
            self._retry_later(error)
            return
        if self._flags.clear(Reason.QUEUE_ERROR):
            log.info("Consume queues and index are written again")
        if self.position >= limit:
            self._told = False
        if before < self.position < limit and not self._scheduled:  # too much for one turn: the next follows at once
            self._scheduled = True
            self._timers.call_soon(self._turn)

    def _advance(self, limit: int) -> None:
        """Dispatch one walk's worth of records."""
        if self._parts.walkers.loaded != self._with_compiled:
            self._scan = self._new_scan()
        begun = self._timers.elapsed()
        step = self._step(self.position, limit, self._rows)
        if step.walk is not None and step.walk.count:
            for derived in self._fed:
                derived.take(step.walk, step.position)
            self._records += step.walk.count
            self.last_store_timestamp = step.walk.max_store_timestamp
            seconds = self._timers.elapsed() - begun
            self._rows.took(step.walk.count, seconds)
            self._observer.dispatched(seconds, step.walk.count, step.position - self.position)
        if step.torn_at >= 0:
            raise OSError(f"the log cannot be read at offset {step.torn_at}")
        if step.damage is not None:
            self._parts.note_damage(step.damage)
        self.position = step.position
        self.dispatched()

    def _step(self, position: int, limit: int, rows: TurnSize) -> Step:
        self._scan.rows = rows.units
        return self._scan.step(position, limit)

    def _retry_later(self, error: Exception) -> None:
        """A queue or the index could not be written: take no more messages, and try again until it works."""
        if self._flags.set(Reason.QUEUE_ERROR, f"consume queues or index cannot be written: {error}"):
            log.error("Dispatch stands still at log offset %d: %s", self.position, error)
            self._observer.failed("dispatch")
        self._timers.call_later(_RETRY_SECONDS, self.kick)

    def _load_compiled(self) -> None:
        if self._loading is None and not self._parts.walkers.loaded:
            self._loading = asyncio.get_running_loop().run_in_executor(None, self._parts.walkers.load)

    def stop(self) -> None:
        """Touch no file any more, whatever is still due: the directory may soon be another store's."""
        self._stopped = True

    def catch_up_all(self) -> None:
        """Dispatch everything up to the limit, at once; ends before it where it cannot be written."""
        before = -1
        while before < self.position < self._limit() and not self._flags.holds(Reason.QUEUE_ERROR):
            before = self.position
            self._turn()

    async def drain(self) -> None:
        """As `catch_up_all`, in turns, for shutdown."""
        before = -1
        while before < self.position < self._limit() and not self._flags.holds(Reason.QUEUE_ERROR):
            before = self.position
            self._turn()
            await self._timers.sleep(0)


def _turn_size() -> TurnSize:
    return TurnSize(_FIRST_ROWS, _MOST_ROWS, _LEAST_ROWS)
