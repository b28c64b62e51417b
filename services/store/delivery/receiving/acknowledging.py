"""What consumers say of messages that they hold: done with, later, never again; and where a group stands."""

from collections.abc import Callable, Sequence

from tandemmq.common.errors import TandemError
from tandemmq.store.broker.acknowledgement import Durability
from tandemmq.store.broker.send import new_tuple
from tandemmq.store.delivery.clock import DeliveryClock
from tandemmq.store.delivery.errors import BadHandle, HandleExpired
from tandemmq.store.delivery.journal.facts import Dealt, GivenAgain, Place
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.ledger.order_lines import OrderLines
from tandemmq.store.delivery.ledger.progress import OpenEntry, QueueProgress, deals
from tandemmq.store.delivery.port import Outcome
from tandemmq.store.delivery.receiving.handles import HandleCore, Handles, ReceiptHandle
from tandemmq.store.delivery.receiving.place_reader import Absence, PlaceReader
from tandemmq.store.delivery.receiving.receive_rules import check_change
from tandemmq.store.delivery.receiving.renewal import Renewals
from tandemmq.store.delivery.receiving.side_state import SideState
from tandemmq.store.delivery.retries.dead_letters import Graveyard
from tandemmq.store.delivery.retries.retry_moves import RetryMoves
from tandemmq.store.format.record import decode_record
from tandemmq.store.log.errors import QueueNotReady


class Acknowledger:
    """Takes handles back."""

    def __init__(
        self,
        journal: Journal,
        reader: PlaceReader,
        clock: DeliveryClock,
        graveyard: Graveyard,
        side: SideState,
        lines: OrderLines,
        renewals: Renewals,
        moves: RetryMoves,
        handles: Handles,
        *,
        dealt: Callable[[Sequence[Dealt]], None],
    ) -> None:
        """`dealt` hears of what was dealt with."""
        self._journal = journal
        self._reader = reader
        self._clock = clock
        self._graveyard = graveyard
        self._side = side
        self._lines = lines
        self._renewals = renewals
        self._moves = moves
        self._handles = handles
        self._dealt = dealt

    def acknowledge(self, group: str, topic: str, handles: Sequence[str], *, in_time: bool = False) -> list[Outcome]:
        """See `port.DeliveryPort`; it is noted when this returns, and to be made safe."""
        outcomes, done = self._take(handles, group, topic, in_time=in_time)
        self._note(deals(done))
        return outcomes

    async def acknowledge_in_turn(
        self, group: str, topic: str, handles: Sequence[str], *, in_time: bool = False
    ) -> list[Outcome]:
        """The same of an ordered group: messages count when all before them do, in their message groups."""
        outcomes, done = self._take(handles, group, topic, in_time=in_time)
        if await self._lines.load((place.group, place.topic) for place in done):
            outcomes, done = self._take(handles, group, topic, in_time=in_time)  # turns of the loop have passed
        self._note(deals(self._lines.acknowledge(done)))
        return outcomes

    def _note(self, facts: Sequence[Dealt]) -> None:
        if facts:
            self._journal.note(*facts)
            self._dealt(facts)

    def _take(
        self, handles: Sequence[str], group: str, topic: str, *, in_time: bool
    ) -> tuple[list[Outcome], dict[Place, set[int]]]:
        """What becomes of handles, and which messages are done with."""
        if not in_time and self._handles.core is not None:
            return self._taken_by(self._handles.core, handles, group, topic)
        outcomes: list[Outcome] = []
        done: dict[Place, set[int]] = {}
        since = self._clock.now_ms() if in_time else -1
        # Most handles are of this start and count: these are told by what their place knows, which is asked once.
        start = -1 if self._renewals.awaiting else self._journal.start
        known: Place | None = None
        progress: QueueProgress | None = None
        for text, handle in zip(handles, self._handles.decode_all(handles, group, topic), strict=True):
            error, entry = None, None
            if isinstance(handle, ReceiptHandle) and handle.start == start:
                if handle.place is not known:
                    known = handle.place
                    progress = self._journal.ledger.progress(known)
                if progress is not None and progress.resets == handle.resets:
                    entry = progress.entries.get(handle.offset)
                if entry is None or entry.number != handle.number or (in_time and entry.due <= since):
                    error = self._refusal(handle, since, done)
                else:
                    done.setdefault(known, set()).add(handle.offset)
            else:
                error = self._refusal(handle, since, done)
            outcomes.append(new_tuple(Outcome, (text, error)))
        return outcomes, done

    def _taken_by(
        self, core: HandleCore, handles: Sequence[str], group: str, topic: str
    ) -> tuple[list[Outcome], dict[Place, set[int]]]:
        """The same by the compiled core, whatever the time is."""
        done: dict[Place, set[int]] = {}

        def state_of(queue: int) -> tuple[Place, int, dict[int, OpenEntry] | None]:
            place = Place(group, topic, queue)
            progress = self._journal.ledger.progress(place)
            return (place, 0, None) if progress is None else (place, progress.resets, progress.entries)

        def refusal(text: str) -> TandemError | None:
            [handle] = self._handles.decode_all((text,), group, topic)
            return self._refusal(handle, -1, done)

        start = -1 if self._renewals.awaiting else self._journal.start
        prefix, check = self._handles.prefix(group, topic)
        return core.take(handles, prefix, check, start, done, state_of, refusal, Outcome), done

    def _refusal(
        self, handle: ReceiptHandle | BadHandle, since: int, done: dict[Place, set[int]]
    ) -> TandemError | None:
        """Put the message of a handle into `done`, or say why not. What was due at `since` comes too late."""
        if isinstance(handle, BadHandle):
            return handle
        try:
            entry = self._used(handle)
            if entry is None:
                copy = self._moves.waiting_copy(handle)
                if copy is not None:
                    self._moves.take_back(handle, copy)
            elif entry.due <= since:
                return _expired("its invisible time is over")
            else:
                done.setdefault(handle.place, set()).add(handle.offset)
        except TandemError as error:
            return error
        return None

    def change(self, group: str, topic: str, text: str, invisible_ms: int) -> str:
        """See `port.DeliveryPort.change_invisible`. The handle stays as it is."""
        check_change(invisible_ms)
        handle = self._handles.decode(text, group, topic)
        if self._used(handle) is not None:
            place, offset = handle.place, handle.offset
            self._journal.note(GivenAgain(place, offset, handle.number, self._clock.now_ms() + invisible_ms))
            self._side.waits_for_retry(place, offset)
        elif (copy := self._moves.waiting_copy(handle)) is not None:
            self._moves.wait_again(handle, copy, invisible_ms)
        return text

    def give_back(self, group: str, topic: str, text: str) -> None:
        """See `port.DeliveryPort`. One that has moved to the retry topic meanwhile comes again at once from there."""
        handle = self._handles.decode(text, group, topic)
        if self._used(handle) is not None:
            place, offset = handle.place, handle.offset
            self._journal.note(GivenAgain(place, offset, handle.number - 1, self._clock.now_ms()))
        elif (copy := self._moves.waiting_copy(handle)) is not None:
            self._moves.wait_again(handle, copy, 0)

    async def forward(self, group: str, topic: str, text: str, durability: Durability) -> None:
        """See `port.DeliveryPort`. Once more for the same message is fine."""
        handle = self._handles.decode(text, group, topic)
        await self._graveyard.open(group)
        if self._used(handle) is not None:
            self._forward(handle, topic)
            self._journal.ledger.became_dead_letter(handle.place, handle.offset)
        elif (copy := self._moves.waiting_copy(handle)) is not None:
            self._forward(handle, topic)
            self._moves.take_back(handle, copy)
        await self._journal.safe(durability)

    def _forward(self, handle: ReceiptHandle, topic: str) -> None:
        place, offset = handle.place, handle.offset
        data = self._reader.one(place, offset)
        if data is Absence.LATER:
            raise QueueNotReady(
                f"Queue {place.queue} of topic {place.topic} is being put right: the message cannot be copied to the "
                "dead letters now.",
                remedy="Try again.",
            )
        if isinstance(data, Absence):
            fact = Dealt(place, offset)  # it expired while it was held: there is nothing left to copy
        else:
            before = 0 if place.topic == topic else decode_record(data, verify=False).reconsume_times
            letter = self._graveyard.letter(data, place.group, before + handle.number)
            copy = self._journal.copy(letter)
            self._graveyard.count(place.group, topic)
            fact = Dealt(place, offset, 1, copy.physical_offset)
        self._journal.note(fact)
        self._dealt([fact])

    def _used(self, handle: ReceiptHandle) -> OpenEntry | None:
        """See `open_entry`. Whoever holds the message lives."""
        entry = self.open_entry(handle)
        if self._renewals.awaiting:
            self._renewals.used(handle.place, handle.offset)
        return entry

    def open_entry(self, handle: ReceiptHandle) -> OpenEntry | None:
        """What a handle names: a message that waits to be dealt with; None if it was dealt with before.

        Raises HandleExpired.
        """
        place, offset = handle.place, handle.offset
        progress = self._journal.ledger.progress(place)
        if progress is None or progress.resets != handle.resets or offset >= progress.given:
            raise _expired("the group's position was set since, or the group or topic was deleted")
        entry = progress.entries.get(offset)
        if entry is not None and not entry.is_delivery(handle.number, handle.start):
            raise _expired("the message was given out again since")
        return entry


def _expired(why: str) -> HandleExpired:
    return HandleExpired(f"The receipt handle counts no more: {why}.", remedy="Receive the message again.")
