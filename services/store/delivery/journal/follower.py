"""Reading the journal: at a start, after a promotion, and on a slave all the time.

The newest record names the base; from there on all records are applied in their order. On a slave records are applied
as they are dispatched, so that a promotion finds the state as it was on the master a moment ago.

It has no `queue_cursor`. It works on slaves too, passes over what it cannot read, so that all stores come to the same
state, and finds its place in what it reads.
"""

import asyncio
from collections.abc import Generator, Iterator

from tandemmq.common.log_output import get_log
from tandemmq.common.slices import Slices
from tandemmq.common.timers import my_turn
from tandemmq.common.topic_names import DEAD_LETTER
from tandemmq.store.broker.reading import is_whole
from tandemmq.store.delivery.errors import UnreadableJournal
from tandemmq.store.delivery.journal.base import Base, SafeBase
from tandemmq.store.delivery.journal.facts import Dealt, Fact, Given, LevelDone, Snapshot, TimersDone
from tandemmq.store.delivery.journal.journal_format import (
    JOURNAL_TOPIC,
    FactReader,
    JournalRecord,
    Position,
    decode_in_steps,
)
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.format.record import CorruptRecord, decode_record
from tandemmq.store.format.unit import Unit, is_blank, is_empty
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.queues.consume_queue import ConsumeQueue

log = get_log(__name__)

_RECORDS_A_TURN = 64
_FACTS_A_STEP = 16
"""Few: the copy that a fact names is looked for in the log."""
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
        self._work: Iterator[None] | None = None  # what is done in steps and not done yet
        self._follows = False
        self._scheduled = False
        self.core: FactReader | None = None
        """Reads facts; the compiled core may be given to it."""
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
        self._next = self._work = None
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
            self._store.timers.call_in_line(self._turn)

    async def catch_up(self) -> None:
        """Apply all there is, in turns; follow no more."""
        self.stop()
        await self._store.rebuilt()
        while self.step():
            await my_turn(self._store.timers)

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
        """Apply some records, or a part of one: as much as takes a millisecond; whether there is more."""
        slices = Slices(self._store.timers)
        if self._work is not None and not self._go_on(self._work, slices):
            return True
        queue = self._store.queue(JOURNAL_TOPIC, 0)
        if queue is None or not is_whole(self._store, queue):
            return False
        if self._next is not None and self._next > queue.max_offset:
            log.error("the journal of deliveries is shorter than it was: it is read anew", records=queue.max_offset)
            self.begin_anew()
        if self._next is None and not self._go_on(self._find_beginning(queue), slices):
            return True
        self._next = max(self.next, queue.min_offset)
        units = queue.read(self._next, _RECORDS_A_TURN)
        for unit in units:
            if not self._go_on(self._take(unit, self._next), slices):
                return True
            if slices.over:
                break
        return bool(units) and self._next < queue.max_offset

    def _go_on(self, work: Iterator[None], slices: Slices) -> bool:
        """Do what is left of a work, until the slice is over; whether all of it is done."""
        self._work = None  # where it fails, it is begun anew
        for _ in work:
            if slices.over:
                self._work = work
                return False
        return True

    def _find_beginning(self, queue: ConsumeQueue) -> Iterator[None]:
        """Begin at the base that the newest readable record names."""
        least = max(queue.min_offset, queue.max_offset - _LOOK_BACK)
        for at in range(queue.max_offset - 1, least - 1, -1):
            for unit in queue.read(at, 1):
                try:
                    record = yield from self._read(unit)
                except UnreadableJournal:
                    yield
                    continue
                if record is not None and record.base.queue_offset <= at:
                    self._next = record.base.queue_offset
                    return
        self._next = queue.min_offset

    def _read(self, unit: Unit) -> Generator[None, None, JournalRecord | None]:
        """The record of a unit, in steps; None where there is none. Raises UnreadableJournal."""
        if is_blank(unit) or is_empty(unit):
            return None
        data = self._store.read_record(unit.physical_offset, unit.size)
        if data is None:
            raise UnreadableJournal("It cannot be read from the log.")
        try:
            return (yield from decode_in_steps(decode_record(data).body, self.core))
        except CorruptRecord as error:
            raise UnreadableJournal(f"It is damaged: {error.reason}.") from error

    def _take(self, unit: Unit, queue_offset: int) -> Iterator[None]:
        """Apply a record, in steps."""
        try:
            record = yield from self._read(unit)
        except UnreadableJournal as error:
            self.unreadable += 1
            log.error(
                "a journal record is passed over", offset=unit.physical_offset, number=queue_offset,
                reason=error.message,
            )  # fmt: skip
            record = None
        if record is not None:
            yield from self._apply(record, Position(queue_offset, unit.physical_offset), unit)
        self._next = queue_offset + 1

    def _apply(self, record: JournalRecord, place: Position, unit: Unit) -> Iterator[None]:
        facts = []
        self._ledger.start = record.start
        for at, said in enumerate(record.facts):
            fact = said if isinstance(said, Given) else self._held(said)
            if fact is not None:
                facts.append(fact)
                if isinstance(fact, Snapshot):
                    yield from self._ledger.apply_in_steps(fact)
                else:
                    self._ledger.apply(fact)
            if at % _FACTS_A_STEP == _FACTS_A_STEP - 1:
                yield
        self.dropped += len(record.facts) - len(facts)
        self.newest = place
        self.start = max(self.start, record.start)
        yield from self._base.wrote_in_steps(facts, place, unit.size)
        self._safe_base.wrote(unit.end, self._base.position(place).log_offset)

    def _held(self, fact: Fact) -> Fact | None:
        """A fact of which the copy that it names is there, or was until it expired; None for others.

        A dead letter is no copy that anybody looks for by the handle of its message.
        """
        if not isinstance(fact, Dealt | LevelDone | TimersDone) or fact.copy < self._store.commit_log.min_offset:
            return fact
        data = self._store.read_record(fact.copy)
        if data is None:
            return None
        return fact._replace(copy=-1) if isinstance(fact, Dealt) and _is_dead_letter(data) else fact


def _is_dead_letter(data: bytes) -> bool:
    try:
        return decode_record(data, verify=False).topic.startswith(DEAD_LETTER)
    except CorruptRecord:
        return False
