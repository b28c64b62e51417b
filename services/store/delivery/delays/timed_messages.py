"""Messages that are delivered at any time: what waits in `rmq_sys_wheel_timer` (RocketMQ: ``TimerMessageStore``).

What is due is copied to its real topic in the order of (time, queue offset). The fact that goes with a turn's copies
says: all that is indexed below Q, up to (time, offset), is done.
"""

import asyncio

from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.log_output import get_log
from tandemmq.store.broker.postponing import TIMER_TOPIC
from tandemmq.store.delivery.delays.counts import DelayCounts
from tandemmq.store.delivery.delays.due_copies import DueCopies, Undeliverable
from tandemmq.store.delivery.delays.timer_entry import (
    DELETE_KEY,
    ROLL_TIMES,
    BadEntries,
    TimerEntry,
    due_of,
    entry_of,
    recalled_key,
    roll_times,
)
from tandemmq.store.delivery.delays.timer_follower import TimerFollower
from tandemmq.store.delivery.delays.timer_index import TimerIndex
from tandemmq.store.delivery.delays.timer_window import TimerWindow
from tandemmq.store.delivery.errors import NotDelivering
from tandemmq.store.delivery.journal.facts import TimersDone
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.retries.copies import internal_copy
from tandemmq.store.format import properties
from tandemmq.store.format.errors import FormatError
from tandemmq.store.format.host import Host
from tandemmq.store.format.record import Record
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.errors import StoreError
from tandemmq.store.log.message_store import MessageStore

log = get_log(__name__)

_TURN_SECONDS = 0.0015
_CLOCK_SECONDS = 1.0
"""The wall clock is looked at so often: it may have been set."""
_PREPARE_SECONDS = 0.02
"""Between two pieces of a slot that is split ahead of time."""
_PAUSES = 0.1, 10.0
_MOST_ASIDE = 1_000
_RECENT_BYTES = 64 << 20
"""What lies so near to the end of the log is in memory anyway."""
_KEPT = (
    properties.REAL_TOPIC, properties.REAL_QID, properties.TIMER_DELIVER_MS, properties.TIMER_OUT_MS, DELETE_KEY,
)  # fmt: skip
"""What a message that is stored again keeps of its orders."""


class TimedMessages:
    """Delivers timers while this store is the master."""

    def __init__(
        self,
        store: MessageStore,
        journal: Journal,
        copies: DueCopies,
        follower: TimerFollower,
        index: TimerIndex,
        wall: Clock,
        host: Host,
        precision_ms: int,
        roll_after_ms: int,
        counts: DelayCounts,
    ) -> None:
        self._store = store
        self._journal = journal
        self._copies = copies
        self._follower = follower
        self._index = index
        self._wall = wall
        self._host = host
        self._precision_ms = precision_ms
        self._roll_after_ms = roll_after_ms
        self._counts = counts
        self._timers = store.timers
        self._window = TimerWindow(index, precision_ms, None)
        self._must_index = 0
        self._done = (0, -1)
        self._unnoted: int | None = None  # log offset of the last copy that no fact names yet; -1 for none
        self._aside: list[tuple[float, TimerEntry]] = []
        self._backoff = Backoff(*_PAUSES)
        self._wake_at = float("inf")
        self._prepare_at = 0.0
        self._running = False
        self._touching: asyncio.Task[None] | None = None
        follower.on_entries = self._added
        follower.on_cleared = self._begin

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin where the ledger says."""
        self._running = True
        done = self._journal.ledger.timers
        if (done.due, done.offset) < self._index.dropped if done is not None else self._index.dropped > (0, 0):
            self._follower.make_anew("it has dropped what is not known to be delivered")
        else:
            self._begin()

    async def stop(self) -> None:
        """End; what was delivered is noted."""
        if self._running:
            self._note()
        self._running = False
        self._wake_at = float("inf")
        self._window.close()
        if self._touching is not None:
            await asyncio.gather(self._touching, return_exceptions=True)
            self._touching = None

    def _begin(self) -> None:
        """The index is another one, or this store delivers from now on."""
        if not self._running:
            return
        self._window.close()
        done = self._journal.ledger.timers
        self._window = TimerWindow(self._index, self._precision_ms, done)
        self._done = (0, -1) if done is None else (done.due, done.offset)
        self._unnoted = None
        self._aside.clear()
        self._must_index = self._follower.stored_end
        self._plan(0.0)

    def _added(self, entries: list[TimerEntry]) -> None:
        if not self._running:
            return
        self._window.add(entries)
        self._plan_next()

    # -- turns ------------------------------------------------------------------------------------------------------

    def _plan(self, seconds: float) -> None:
        when = self._timers.time() + max(seconds, 0.0)
        if when < self._wake_at:
            self._wake_at = when
            self._timers.call_at(when, self._turn, when)

    def _plan_next(self) -> None:
        """Have a turn when something is to be done; none where nothing waits."""
        if self._index.indexed < self._must_index:
            return
        times = [] if (next_time := self._window.next_time()) is None else [(next_time - self._wall.now_ms()) / 1_000]
        if self._aside:
            times.append(self._aside[0][0] - self._timers.time())
        if times:
            self._plan(min(*times, _CLOCK_SECONDS))

    def _turn(self, when: float) -> None:
        if not self._running or when != self._wake_at:
            return
        self._wake_at = float("inf")
        until = self._timers.elapsed() + _TURN_SECONDS
        try:
            self._journal.check()
            more = self._work(until)
        except NotDelivering:
            if self._journal.open:
                self._plan(_CLOCK_SECONDS)
            return
        except BadEntries as error:
            self._follower.make_anew(str(error))
            return
        except OSError as error:
            log.failure("the index of timers cannot be read", error)
            self._plan(_CLOCK_SECONDS)
            return
        if more:
            self._plan(0.0)
        else:
            self._plan_next()

    def _work(self, until: float) -> bool:
        """Load, prepare and deliver for a while; whether there is more to do at once."""
        if self._index.indexed < self._must_index:  # a recall may not be indexed yet
            return False
        now = self._timers.time()
        while self._aside and self._aside[0][0] <= now:
            self._window.put_back(self._aside.pop(0)[1])
        more = True
        while more and self._timers.elapsed() < until:
            more = self._window.load(self._wall.now_ms())
        self._touch_ahead()
        more = self._deliver(until) or more
        if now >= self._prepare_at:
            preparing = self._window.prepare(self._wall.now_ms())
            self._prepare_at = now + (_PREPARE_SECONDS if preparing else _CLOCK_SECONDS)
            if preparing:
                self._plan(_PREPARE_SECONDS)
        return more

    def _touch_ahead(self) -> None:
        """Have the records of what is due soon in memory by then; one thread at a time."""
        if self._touching is not None and not self._touching.done():
            return
        recent = self._store.commit_log.max_offset - _RECENT_BYTES
        old = [offset for offset in self._window.take_fresh() if offset < recent]
        if old:
            self._touching = asyncio.create_task(self._store.touch(old), name="touching timed messages")

    def _deliver(self, until: float) -> bool:
        """Deliver what is due; whether more is."""
        window, now_ms = self._window, self._wall.now_ms()
        due = False
        while (entry := window.first()) is not None and entry.when <= now_ms:
            if self._timers.elapsed() >= until or len(self._aside) > _MOST_ASIDE:
                due = len(self._aside) <= _MOST_ASIDE
                break
            window.pop()
            try:
                copy = self._handle(entry, now_ms)
            except (StoreError, OSError) as error:
                self._put_aside(entry, error)
                continue
            except BaseException:
                window.put_back(entry)
                raise
            self._backoff.reset()
            self._done = max(self._done, (entry.when, entry.offset))
            self._unnoted = copy if copy >= 0 or self._unnoted is None else self._unnoted
        self._note(due)
        return due

    def _note(self, more_due: bool = False) -> None:
        """Note how far it is, unless something before that is due and still to be delivered.

        Where a clock was ahead, what is done reaches beyond what has been read: then it counts for what was indexed
        before the first timer that is still to come before that. What was delivered after that one may come again.
        """
        if self._unnoted is None or self._aside:
            return
        indexed = self._index.indexed
        if not self._window.nothing_before(*self._done):
            if more_due:
                return
            known = self._journal.ledger.timers
            least = 0 if known is None else known.indexed
            indexed = self._window.taken_below(*self._done, least)
            if indexed < least:
                return
        copy, self._unnoted = self._unnoted, None
        self._journal.note(TimersDone(indexed, *self._done, copy))

    def _put_aside(self, entry: TimerEntry, error: Exception) -> None:
        self._counts.failed += 1
        if self._backoff.fresh:
            log.warning("a timed message waits", offset=entry.offset, reason=str(error))
        self._aside.append((self._timers.time() + self._backoff.pause(), entry))
        self._aside.sort(key=lambda one: one[0])

    # -- one timer --------------------------------------------------------------------------------------------------

    def _handle(self, entry: TimerEntry, now_ms: int) -> int:
        """Do what is to be done with a timer; gives the log offset of a copy, or -1.

        Raises BadEntries, StoreError, OSError, NotDelivering.
        """
        record = self._follower.record_of(entry)
        if record is None:
            self._counts.unreadable += 1
            log.error("a timed message cannot be read any more", offset=entry.offset)
            return -1
        if entry_of(record, self._precision_ms, self._roll_after_ms) != entry:
            raise BadEntries(f"the timer with queue offset {entry.offset} is not that of its record")
        if self._is_superseded(entry, record):
            return -1
        if due_of(record, self._precision_ms) > max(now_ms, entry.when):
            return self._roll(record)
        if entry.recall:
            return -1
        try:
            place = self._copies.append(record)
        except Undeliverable as error:
            self._counts.undeliverable += 1
            log.error("a timed message is passed over", reason=error.message)
            return -1
        self._counts.delivered += 1
        self._counts.timers_out[record.properties[properties.REAL_TOPIC]] += 1
        return place.physical_offset

    def _is_superseded(self, entry: TimerEntry, record: Record) -> bool:
        """Whether a later record says that this one is not to be delivered."""
        topic, key = record.properties.get(properties.REAL_TOPIC), record.properties.get(properties.UNIQ_KEY, "")
        mine = recalled_key(record)
        for later in self._window.about(entry):
            other = self._follower.record_of(later)
            if other is None or other.properties.get(properties.REAL_TOPIC) != topic:
                continue
            recalled = recalled_key(other)
            if recalled is not None and mine is None and recalled == key:
                self._counts.recalled += 1
                return True
            same = recalled == mine and (mine is not None or other.properties.get(properties.UNIQ_KEY, "") == key)
            if same and later.rolled and roll_times(other) >= roll_times(record):
                self._counts.superseded += 1
                return True
        return False

    def _roll(self, record: Record) -> int:
        """Store a message again, to wait on: the file that it lies in will expire before it is due."""
        given = record.properties
        kept = {name: given[name] for name in _KEPT if name in given}
        try:
            again = {**kept, ROLL_TIMES: str(roll_times(record) + 1)}
            place = self._journal.copy(internal_copy(record, TIMER_TOPIC, 0, self._host, extra=again))
        except FormatError:  # no room for one more property
            place = self._journal.copy(internal_copy(record, TIMER_TOPIC, 0, self._host, extra=kept))
        self._counts.rolled += 1
        return place.physical_offset

    # -- questions --------------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Timers that are not delivered yet; one that was recalled counts until its time."""
        return self._window.waiting() + len(self._aside)

    @property
    def due(self) -> int:
        """Those of them whose time has come."""
        return self._window.due(self._wall.now_ms()) + len(self._aside)

    @property
    def not_indexed(self) -> int:
        """Records of the queue that the index does not have yet."""
        return max(self._follower.end - self._index.indexed, 0)

    @property
    def late_ms(self) -> int:
        """How long the next timer has been due; 0 where none is."""
        entry = self._window.first()
        return 0 if entry is None else max(self._wall.now_ms() - entry.when, 0)

    @property
    def is_current(self) -> bool:
        """Whether all that is due by now is delivered; False while the index is being read."""
        now_ms, entry = self._wall.now_ms(), self._window.first()
        read = self._index.indexed >= self._must_index and self._window.loaded_to >= now_ms
        return self._running and read and not self._aside and (entry is None or entry.when > now_ms)
