"""The journal: facts on their way into the commit log, where they are as safe as messages.

What is noted counts in the ledger at once. All that is noted in one turn of the event loop is written as one message to
queue 0 of the topic `TANDEM_SYS_DELIVERY` at the end of the turn, or before that where somebody waits for it.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence, Set

from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.slices import Slices
from tandemmq.store.broker.acknowledgement import Acknowledgement, Durability
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.delivery.errors import NotDelivering, NotSafe
from tandemmq.store.delivery.journal.base import Base, SafeBase, entries_of
from tandemmq.store.delivery.journal.facts import Fact, Place
from tandemmq.store.delivery.journal.journal_format import (
    JOURNAL_TOPIC,
    MOST_BYTES,
    FactCore,
    Position,
    RecordPages,
    encode_records,
)
from tandemmq.store.delivery.journal.telling import Telling
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.log.errors import StoreError
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import Appended

log = get_log(__name__)

_RETRY_SECONDS = 1.0
_ENTRIES_A_TURN = 2_000
"""So much of snapshots is written in one turn."""
_MOST_UNWRITTEN = 100_000
"""So many facts may wait for a disk that is full to its reserve; then nothing is given out any more."""


class Journal:
    """Notes facts. All of it on the event loop, and by the master only."""

    def __init__(
        self,
        store: MessageStore,
        ledger: Ledger,
        acknowledgement: Acknowledgement,
        host: Host,
        base: Base | None = None,
        safe_base: SafeBase | None = None,
    ) -> None:
        """`host`: the store host of what is appended. Without a `base` it begins at the first record written."""
        self.ledger = ledger
        self._store = store
        self._acknowledgement = acknowledgement
        self._host = host
        self._base = base or Base(store.config.mapped_file_size_commit_log)
        self._safe_base = safe_base or SafeBase()
        self._most_bytes = min(MOST_BYTES, store.config.mapped_file_size_commit_log // 4)
        self._unwritten: list[Fact] = []
        self._telling: Telling | None = None
        self._scheduled = False
        self._wait_for_turn: list[asyncio.Future[None]] = []
        self._told_of_turn: list[Callable[[TandemError | None], None]] = []
        self._work_of_turn: list[Callable[[], None]] = []
        self._failure: TandemError | None = None
        self.core: FactCore | None = None
        """Writes facts; the compiled core may be given to it."""
        self._life = object()  # another one from each beginning to its end
        self.open = False
        """Whether facts may be noted: this store delivers."""
        self.moved_outside: list[Callable[[Sequence[Place], Set[Place]], None]] = []
        """Those who hear of places whose cursor was moved by what somebody else said, the metadata service; and which
        of them were reset."""
        self.start = 0
        """New after each unclean start and promotion, greater than all before."""
        self.next = 0
        """Queue offset of the next record."""
        self.end_offset = 0
        """Log offset after the newest record: what was read at the start may not be durable yet, or not replicated."""

    def begin(self, start: int, next_record: int) -> None:
        """Facts may be noted from now on: the ledger is what the journal says up to a queue offset."""
        self._stand(start, next_record)
        self.open = True

    async def begin_with(self, start: int, next_record: int, facts: Iterable[Fact | None]) -> None:
        """The same with facts that others told of. They are noted in many turns, before anybody may note more.

        Where there is a None among them, others may have their turn too.

        Where this ends with an error, the ledger says more than the journal: that must be read anew. Raises
        NotDelivering: this store is no master any more.
        """
        life = self._stand(start, next_record)
        slices, pages = Slices(self._store.timers), RecordPages(self._most_bytes)
        for fact in facts:
            if fact is not None:
                self.ledger.apply(fact)
                self._unwritten.append(fact)
                pages.add(fact)
            await slices.pause()
        records = []
        with contextlib.suppress(StoreError):  # what is not written now is kept
            for body, written in pages.encode(self._base_position, start):
                records.append((written, *self._append_body(body)))
                del self._unwritten[: len(written)]
        for written, position, size in records:
            for _ in self._base.wrote_in_steps(written, position, size):
                await slices.pause()
        if records:
            self._safe_base.wrote(self.end_offset, self._base_position.log_offset)
        if self._life is not life:
            raise self._closed("This store gives out nothing any more: it is no master now.")
        self.open = True
        self._schedule()

    def _stand(self, start: int, next_record: int) -> object:
        self._unwritten = []
        self._telling = None
        self._failure = None
        self.start = self.ledger.start = start
        self.next = next_record
        self.end_offset = self._store.commit_log.max_offset
        self._life = object()
        return self._life

    # -- noting -----------------------------------------------------------------------------------------------------

    def note(self, *facts: Fact) -> None:
        """Make facts true now, and have them written at the end of this turn.

        Raises:
            NotDelivering: this store is no master, or its state is not read yet. ValueError: a fact is about a place
            that was never made; `Moved` makes one.
        """
        if not self.open:
            raise self._closed("This store gives out nothing at present: it notes no progress of groups.")
        apply = self.ledger.apply
        for fact in facts:
            if not apply(fact):
                raise ValueError(f"what {fact} is about was never made")
            self._unwritten.append(fact)
            if self._telling is not None:
                self._telling.noted(fact)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._store.timers.call_soon(self._turn)

    def copy(self, message: Message) -> Appended:
        """Append a copy that a fact is going to name: a dead letter, a retry, a delayed message that is due.

        What is noted afterwards lies after it in the log. Raises StoreError as `MessageStore.append`.
        """
        if not self.open:
            raise self._closed("This store gives out nothing at present: it copies no messages.")
        return self._store.append(message)

    def _closed(self, message: str) -> NotDelivering:
        refused = NotDelivering(message)
        refused.master_address = self._store.replica.elsewhere
        return refused

    def check(self) -> None:
        """Whether more may be given out. Raises the failure that keeps the journal from being written."""
        if self._failure is not None and len(self._unwritten) > _MOST_UNWRITTEN:
            raise self._failure
        if self._store.flags.failed:
            raise NotDelivering(f"Nothing is given out: {self._store.why_not_writable}.", remedy="See the store's log.")

    # -- writing ----------------------------------------------------------------------------------------------------

    def write(self) -> int:
        """Write now what is noted; gives the log offset after it. Raises StoreError: it is kept, and tried again."""
        if self._unwritten:
            self._write(self._unwritten)
            if self._written_again():
                self._store.timers.call_soon(self._turn)  # the one that was to try it again comes late
            if self._base_is_late:
                self._schedule()
        return self.end_offset

    def keep_base_soon(self) -> None:
        """Move the base on where it is too old, in a turn of its own; for when nothing is noted for long."""
        if self.open:
            self._schedule()

    @property
    def _base_is_late(self) -> bool:
        return self._base.late(self._store.commit_log.max_offset, self.ledger) is not None

    def _keep_base(self) -> None:
        """Tell the oldest units whole again, where the base lies too far back: some in a turn, or a part of one.

        All that is noted must be written before.
        """
        unit = self._base.late(self._store.commit_log.max_offset, self.ledger)
        if self._telling is not None:
            self._tell_more(self._telling)
        elif isinstance(unit, Place) and entries_of(unit, self.ledger) > _ENTRIES_A_TURN:
            progress = self.ledger.progress(unit)
            assert progress is not None
            self._telling = Telling(progress, self._most_bytes)
        elif unit is not None:
            self._append(self._encoded(self._base.oldest(_ENTRIES_A_TURN, self.ledger)))
        if self._telling is not None or self._base_is_late:
            self._schedule()

    def _tell_more(self, telling: Telling) -> None:
        slices = Slices(self._store.timers)
        while not telling.vain and telling.step():
            if slices.over:
                return
        self._telling = None
        if not telling.vain:
            self._append(telling.encode(self._base_position, self.start))

    @property
    def _base_position(self) -> Position:
        return self._base.position(Position(self.next, self._store.commit_log.max_offset))

    def _encoded(self, facts: list[Fact]) -> list[tuple[bytes, Sequence[Fact]]]:
        return encode_records(self._base_position, self.start, facts, self._most_bytes, self.core)

    def _write(self, facts: list[Fact]) -> None:
        """Append records; what was written is taken off `facts`. Raises StoreError."""
        for record in self._encoded(facts):
            self._append([record])
            del facts[: len(record[1])]

    def _append(self, records: Iterable[tuple[bytes, Sequence[Fact]]]) -> None:
        for body, written in records:
            self._base.wrote(written, *self._append_body(body))
        now = self._base.position(Position(self.next, self.end_offset))
        self._safe_base.wrote(self.end_offset, now.log_offset)

    def _append_body(self, body: bytes) -> tuple[Position, int]:
        """Append a record; gives its place and its size. Raises StoreError."""
        try:
            message = Message(JOURNAL_TOPIC, 0, body, store_host=self._host)
            place = self._store.append(message, reserved=True, told=False)  # nobody reads it while we write it
        except StoreError as error:
            self._failed(error)
            raise
        self.next, self.end_offset = place.queue_offset + 1, place.end_offset
        return Position(place.queue_offset, place.physical_offset), place.size

    async def written(self) -> None:
        """Wait until what is noted in this turn is in the log, so that a kill does not undo it.

        Where the log does not take it, that is not waited for: it is kept. Raises NotDelivering: it never will be.
        """
        if self._unwritten and self._failure is None:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._wait_for_turn.append(waiter)
            await waiter

    def when_written(self, told: Callable[[TandemError | None], None]) -> None:
        """Call at the end of this turn, when what is noted in it is in the log, or is kept for later: see `failure`.

        With the error, where it never will be.
        """
        self._told_of_turn.append(told)
        if self._failure is None:
            self._schedule()
        else:
            self._store.timers.call_soon(self._turn_is_over)  # it is written again later

    def at_the_end_of_the_turn(self, work: Callable[[], None]) -> None:
        """Call before what is noted in this turn is written; `work` may note more. Not while there is a `failure`."""
        self._work_of_turn.append(work)
        self._schedule()

    def _do_work(self) -> None:
        some, self._work_of_turn = self._work_of_turn, []
        for work in some:
            try:
                work()
            except Exception as failure:  # noqa: BLE001 - the others have theirs to do
                log.failure("what was left for the end of a turn was not done", failure)

    def _turn_is_over(self, error: TandemError | None = None) -> None:
        told, self._told_of_turn = self._told_of_turn, []
        for tell in told:
            try:
                tell(error)
            except Exception as failure:  # noqa: BLE001 - the others of this turn wait too
                log.failure("what waited for the journal was not told", failure)
        waiters, self._wait_for_turn = self._wait_for_turn, []
        for waiter in waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)

    async def safe(self, durability: Durability = Durability.AS_SENDS) -> None:
        """Wait until all that is noted so far is as durable as a send is, or as is asked for.

        Raises:
            StoreError: the log does not take it now. NotSafe: disk or replicas did not answer in time, or cannot. In
            both cases it stays noted.
        """
        end = self.write()
        if not end:
            return
        status = await self._acknowledgement.status_by(end, durability)
        if status is not PutStatus.PUT_OK:
            raise NotSafe.noted(status.name)

    def _turn(self) -> None:
        self._do_work()
        self._scheduled = False
        if self._work_of_turn:
            self._schedule()  # for the end of the next one
        try:
            if self.open:
                self.write()
                self._keep_base()
                if self._telling is None:  # else nothing may have been written
                    self._written_again()
        except Exception as error:  # noqa: BLE001 - whatever it is, what is noted may not be written
            if not isinstance(error, StoreError):
                self._failed(StoreError(f"The journal cannot be written: {error!r}."))
                log.failure("a turn of the journal failed", error)
            if not self._scheduled:
                self._scheduled = True
                self._store.timers.call_later(_RETRY_SECONDS, self._turn)
        finally:
            self._turn_is_over()

    def _written_again(self) -> bool:
        """The log takes what is to be written; True if it did not before."""
        if self._failure is None:
            return False
        self._failure = None
        log.info("the journal of deliveries is written again")
        return True

    def _failed(self, error: StoreError) -> None:
        if self._failure is None:
            log.error("the journal of deliveries cannot be written", reason=error.message)
        self._failure = error

    @property
    def failure(self) -> TandemError | None:
        """Why the journal could not be written last; None while it can."""
        return self._failure

    def close(self) -> None:
        """Delivery ends in an orderly way: write what is noted, and note no more."""
        if not self.open:
            return
        self._do_work()
        self.open = False
        lost: TandemError | None = self._closed("This store gives out nothing any more: it stops.")
        try:
            with contextlib.suppress(StoreError):
                self.write()
                lost = None
        finally:
            self._turn_is_over(lost)

    def drop(self) -> None:
        """This store is no master any more: what is not written never will be."""
        self._unwritten = []
        self._telling = None
        self._life = object()
        self.open = False
        self._do_work()
        self._turn_is_over(self._closed("This store gives out nothing any more: it is no master now."))
