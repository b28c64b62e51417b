"""Delay levels: the queues of SCHEDULE_TOPIC_XXXX, each in the order in which its messages came.

RocketMQ: ``ScheduleMessageService``. One timer stands for all of them, at the time at which the nearest message is
due; a level without messages costs nothing. A level that fails waits for itself and holds up no other.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.log_output import get_log
from tandemmq.store.delivery.delays.counts import DelayCounts
from tandemmq.store.delivery.delays.due_copies import DueCopies, Undeliverable
from tandemmq.store.delivery.errors import NotDelivering
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.ledger.kept_positions import LevelPosition
from tandemmq.store.delivery.queue_cursor import QueueCursor
from tandemmq.store.format.unit import SCHEDULE_TOPIC, Unit
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.errors import StoreError
from tandemmq.store.log.message_store import MessageStore

log = get_log(__name__)

_TURN_SECONDS = 0.0015
"""A turn of the loop takes no longer; what is due beyond that has the next one."""
_AT_ONCE = 32
"""So many messages of a level, then the next level has its turn."""
_CLOCK_SECONDS = 1.0
"""The wall clock is looked at so often while something waits: it may have been set."""
_PAUSES = 0.1, 10.0
"""Seconds before a level that failed is tried again: the first time, and at most."""


class LevelState(NamedTuple):
    """How a level stands."""

    level: int
    waiting: int
    late_ms: int
    """How long the next message has been due; 0 and less while it is not."""


class _Level:
    """One level: where it is, and since when it cannot go on."""

    def __init__(self, number: int, store: MessageStore, position: LevelPosition, delay_ms: int | None) -> None:
        self.number = number
        self.position = position
        self.cursor = QueueCursor(store, SCHEDULE_TOPIC, number - 1, position)
        self.delay_ms = delay_ms
        self.backoff = Backoff(*_PAUSES)
        self.not_before = 0.0  # after a failure, by `Timers.time`
        # The clock was set back: what was stored below that queue offset is due when the timers show that time.
        self.stepped_below = 0
        self.stepped_until = 0.0

    def seconds_left(self, unit: Unit, now_ms: int, now: float) -> float:
        """How long the next message has to wait; 0 and less when it is due."""
        left = (unit.tags_code - now_ms) / 1_000
        if self.delay_ms is None:
            return left
        delay = self.delay_ms / 1_000
        if left > delay and self.cursor.next >= self.stepped_below:
            self.stepped_below, self.stepped_until = self.cursor.queue.max_offset, now + delay
        if self.cursor.next < self.stepped_below:
            left = min(left, self.stepped_until - now)
        return left


class Levels:
    """Delivers what waits in levels, while this store is the master."""

    def __init__(
        self,
        store: MessageStore,
        journal: Journal,
        copies: DueCopies,
        wall: Clock,
        delays_ms: Sequence[int],
        counts: DelayCounts,
    ) -> None:
        """`wall`: the clock that the delivery times were made by. `delays_ms`: delays of the levels 1, 2, ..."""
        self._store = store
        self._journal = journal
        self._copies = copies
        self._wall = wall
        self._delays_ms = delays_ms
        self._counts = counts
        self._timers = store.timers
        self._levels: dict[int, _Level] = {}
        self._wake_at = math.inf
        self._first = 0
        self._running = False

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin with every level that the settings know, and every queue that exists."""
        numbers = set(range(1, len(self._delays_ms) + 1))
        numbers |= {queue_id + 1 for queue_id in self._store.queue_ids(SCHEDULE_TOPIC)}
        for number in sorted(numbers):
            delay = self._delays_ms[number - 1] if number <= len(self._delays_ms) else None
            level = self._levels[number] = _Level(number, self._store, LevelPosition(self._journal, number), delay)
            level.cursor.begin()
        self._running = True
        self._plan(0.0)

    async def stop(self) -> None:
        """End; what was delivered is noted."""
        self._running = False
        self._wake_at = math.inf
        for level in self._levels.values():
            level.cursor.stop()
        self._levels.clear()

    # -- turns ------------------------------------------------------------------------------------------------------

    def _plan(self, seconds: float) -> None:
        """Have a turn in so many seconds, if none comes before."""
        when = self._timers.time() + max(seconds, 0.0)
        if when < self._wake_at:
            self._wake_at = when
            self._timers.call_at(when, self._turn, when)

    def _turn(self, when: float) -> None:
        if not self._running or when != self._wake_at:  # an earlier one has come meanwhile
            return
        self._wake_at = math.inf
        until = self._timers.elapsed() + _TURN_SECONDS
        order = sorted(self._levels)
        order = order[self._first :] + order[: self._first]
        left = math.inf
        for number in order:
            level = self._levels[number]
            if level.cursor.waits:
                continue
            if self._timers.elapsed() >= until:
                self._first = sorted(self._levels).index(number)  # it is the first next time
                left = 0.0
                break
            left = min(left, self._serve(level, until))
        if left < math.inf:
            self._plan(min(left, _CLOCK_SECONDS))

    def _serve(self, level: _Level, until: float) -> float:
        """Deliver what is due of a level, some of it; gives the seconds until there is more to do."""
        now = self._timers.time()
        if level.not_before > now:
            return level.not_before - now
        cursor, copy, left = level.cursor, -1, 0.0
        try:
            self._journal.check()
            begun, expired = cursor.next, cursor.settle()
            self._counts.unreadable += expired if begun else 0
            end = cursor.queue.readable_end
            for unit in cursor.units(end, _AT_ONCE, until):
                left = level.seconds_left(unit, self._wall.now_ms(), now)
                if left > 0:
                    break
                copy = self._deliver(level, unit, copy)
            if cursor.next >= end:
                left = math.inf
                cursor.wait(self._woken)
            level.backoff.reset()
        except NotDelivering:
            return math.inf if not self._journal.open else _PAUSES[1]
        except (StoreError, OSError) as error:
            left = self._failed(level, error)
        level.position.keep(cursor.next, copy)
        return left

    def _deliver(self, level: _Level, unit: Unit, copy: int) -> int:
        """Copy one message to where it belongs; gives the copy's log offset, or `copy` where there is none."""
        record = level.cursor.record(unit)
        if record is None:
            self._counts.unreadable += 1
            log.error("a delayed message cannot be read any more", level=level.number, offset=level.cursor.next)
            return copy
        try:
            place = self._copies.append(record)
        except Undeliverable as error:
            self._counts.undeliverable += 1
            log.error("a delayed message is passed over", reason=error.message)
            return copy
        self._counts.delivered += 1
        return place.physical_offset

    def _woken(self) -> None:
        self._plan(0.0)

    def _failed(self, level: _Level, error: Exception) -> float:
        """Try a level again later, each time later."""
        self._counts.failed += 1
        if level.backoff.fresh:
            log.warning("a delay level waits", level=level.number, offset=level.cursor.next, reason=str(error))
        left = level.backoff.pause()
        level.not_before = self._timers.time() + left
        return left

    # -- questions --------------------------------------------------------------------------------------------------

    def states(self) -> list[LevelState]:
        """How the levels stand that have something to deliver."""
        states = []
        for level in self._levels.values():
            queue = level.cursor.queue
            waiting = queue.max_offset - max(level.cursor.next, queue.min_offset)
            if waiting > 0:
                states.append(LevelState(level.number, waiting, self._late_ms(level, queue.max_offset)))
        return states

    def _late_ms(self, level: _Level, end: int) -> int:
        try:
            unit = level.cursor.peek(end)
        except (StoreError, OSError):
            return 0
        return 0 if unit is None else self._wall.now_ms() - unit.tags_code
