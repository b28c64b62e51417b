"""Reading the journal: at a start, after a promotion, and on a slave all the time.

The newest record names the base; from there on all records are applied in their order. On a slave records are applied
as they are dispatched, so that a promotion finds the state as it was on the master a moment ago.

It has no `queue_cursor`. It works on slaves too, passes over what it cannot read, so that all stores come to the same
state, and finds its place in what it reads.
"""

import asyncio

from tandemmq.common.log_output import get_log
from tandemmq.common.slices import Slices
from tandemmq.store.broker.reading import is_whole
from tandemmq.store.delivery.base import Base, SafeBase
from tandemmq.store.delivery.errors import UnreadableJournal
from tandemmq.store.delivery.facts import Dealt, Fact, LevelDone, TimersDone
from tandemmq.store.delivery.journal_format import JOURNAL_TOPIC, JournalRecord, Position, decode_record_body
from tandemmq.store.delivery.ledger import Ledger
from tandemmq.store.format.record import CorruptRecord, decode_record
from tandemmq.store.format.unit import Unit, is_blank, is_empty
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.queues.consume_queue import ConsumeQueue

log = get_log(__name__)

_RECORDS_A_TURN = 64
_LOOK_BACK = 1_000
"""So many records are tried from the end for one that can be read and names the base."""
_GATHER_SECONDS = 0.01


class JournalFollower:
    """Applies the journal to the ledger."""

    def __init__(self, store: MessageStore, ledger: Ledger, base: Base, safe_base: SafeBase) -> None:
        self._store = store
        self._ledger = ledger
        self._base = base
        self._safe_base = safe_base
        self._next: int | None = None
        self._follows = False
        self._scheduled = False
        self.start = 0
        """The greatest start number that was seen."""
        self.newest = Position(-1, -1)
        """Where the newest record is that was applied."""
        self.unreadable = 0
        """Records that could not be read."""
        self.dropped = 0
        """Facts that were dropped because the copy that they name cannot be read."""
        store.dispatched.listen(self._kick)

    @property
    def next(self) -> int:
        """Queue offset of the next record to be applied."""
        return self._next or 0

    def begin_anew(self) -> None:
        """Drop all that is known."""
        self._ledger.clear()
        self._base.clear()
        self._safe_base.clear()
        self._next = None
        self.start = 0
        self.newest = Position(-1, -1)

    # -- following --------------------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Apply records as they are dispatched, from now on."""
        self._follows = True
        self._kick()

    def stop(self) -> None:
        """Apply no more on its own."""
        self._follows = False

    def _kick(self) -> None:
        if self._follows and not self._scheduled:
            self._scheduled = True
            self._store.timers.call_later(_GATHER_SECONDS, self._turn)

    def _turn(self) -> None:
        self._scheduled = False
        if self._follows and not self._store.rebuilding and self.step():
            self._scheduled = True
            self._store.timers.call_soon(self._turn)

    async def catch_up(self) -> None:
        """Apply all there is, in turns; follow no more."""
        self.stop()
        await self._store.rebuilt()
        while self.step():
            await self._store.timers.sleep(0)

    async def dispatched_to(self, offset: int) -> None:
        """Wait until the store has dispatched the log up to an offset."""
        changed = asyncio.Event()
        end = self._store.dispatched.listen(changed.set)
        try:
            while self._store.dispatched_offset < offset:
                changed.clear()
                self._store.catch_up()
                if self._store.dispatched_offset < offset:
                    await changed.wait()
        finally:
            end()

    # -- applying ---------------------------------------------------------------------------------------------------

    def step(self) -> bool:
        """Apply some records, as many as take a millisecond; whether there are more."""
        queue = self._store.queue(JOURNAL_TOPIC, 0)
        if queue is None or not is_whole(self._store, queue):
            return False
        if self._next is not None and self._next > queue.max_offset:
            log.error("the journal of deliveries is shorter than it was: it is read anew", records=queue.max_offset)
            self.begin_anew()
        if self._next is None:
            self._next = self._where_to_begin(queue)
        self._next = max(self._next, queue.min_offset)
        units, slices = queue.read(self._next, _RECORDS_A_TURN), Slices(self._store.timers)
        for unit in units:
            self._take(unit, self._next)
            self._next += 1
            if slices.over:
                break
        return bool(units) and self._next < queue.max_offset

    def _where_to_begin(self, queue: ConsumeQueue) -> int:
        """The base that the newest readable record names."""
        least = max(queue.min_offset, queue.max_offset - _LOOK_BACK)
        for at in range(queue.max_offset - 1, least - 1, -1):
            for unit in queue.read(at, 1):
                try:
                    record = self._read(unit)
                except UnreadableJournal:
                    continue
                if record is not None and record.base.queue_offset <= at:
                    return max(record.base.queue_offset, queue.min_offset)
        return queue.min_offset

    def _read(self, unit: Unit) -> JournalRecord | None:
        """The record of a unit; None where there is none. Raises UnreadableJournal."""
        if is_blank(unit) or is_empty(unit):
            return None
        data = self._store.read_record(unit.physical_offset, unit.size)
        if data is None:
            raise UnreadableJournal("It cannot be read from the log.")
        try:
            return decode_record_body(decode_record(data).body)
        except CorruptRecord as error:
            raise UnreadableJournal(f"It is damaged: {error.reason}.") from error

    def _take(self, unit: Unit, queue_offset: int) -> None:
        try:
            record = self._read(unit)
        except UnreadableJournal as error:
            self.unreadable += 1
            log.error(
                "a journal record is passed over", offset=unit.physical_offset, number=queue_offset,
                reason=error.message,
            )  # fmt: skip
            return
        if record is None:
            return
        facts = [fact for fact in record.facts if self._holds(fact)]
        self.dropped += len(record.facts) - len(facts)
        for fact in facts:
            self._ledger.apply(fact)
        self.newest = Position(queue_offset, unit.physical_offset)
        self.start = max(self.start, record.start)
        self._base.wrote(facts, self.newest, unit.size)
        self._safe_base.wrote(unit.end, self._base.position(self.newest).log_offset)

    def _holds(self, fact: Fact) -> bool:
        """Whether the copy that a fact names is there, or was until it expired."""
        if not isinstance(fact, Dealt | LevelDone | TimersDone) or fact.copy < self._store.commit_log.min_offset:
            return True
        return self._store.read_record(fact.copy) is not None
