"""What consumers say of messages that they hold: done with, later, never again; and where a group stands."""

from collections.abc import Callable, Sequence

from tandemmq.common.errors import TandemError
from tandemmq.store.broker.acknowledgement import Durability
from tandemmq.store.delivery.clock import DeliveryClock
from tandemmq.store.delivery.dead_letters import Graveyard
from tandemmq.store.delivery.errors import HandleExpired
from tandemmq.store.delivery.facts import Dealt, GivenAgain, Place
from tandemmq.store.delivery.handles import ReceiptHandle, decode_handle
from tandemmq.store.delivery.journal import Journal
from tandemmq.store.delivery.order_lines import OrderLines
from tandemmq.store.delivery.place_reader import Absence, PlaceReader
from tandemmq.store.delivery.port import Outcome
from tandemmq.store.delivery.progress import deals
from tandemmq.store.delivery.receive_rules import check_change
from tandemmq.store.delivery.renewal import Renewals
from tandemmq.store.delivery.retry_moves import RetryMoves
from tandemmq.store.delivery.side_state import SideState
from tandemmq.store.format.record import decode_record
from tandemmq.store.log.errors import QueueNotReady

_GIVEN_AGAIN = "the message was given out again since"


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
        self._dealt = dealt

    async def acknowledge(
        self,
        group: str,
        topic: str,
        handles: Sequence[str],
        durability: Durability,
        *,
        in_turn: bool = False,
        in_time: bool = False,
    ) -> list[Outcome]:
        """See `port.DeliveryPort`. `in_turn`: they count when all before them do, in their message groups."""
        outcomes, done = self._take(group, topic, handles, in_time=in_time)
        if in_turn and await self._lines.load((place.group, place.topic) for place in done):
            outcomes, done = self._take(group, topic, handles, in_time=in_time)  # turns of the loop have passed
        facts = deals(self._lines.acknowledge(done) if in_turn else done)
        if facts:
            self._journal.note(*facts)
            self._dealt(facts)
        if any(one.error is None for one in outcomes):
            await self._journal.safe(durability)
        return outcomes

    def _take(
        self, group: str, topic: str, handles: Sequence[str], *, in_time: bool
    ) -> tuple[list[Outcome], dict[Place, set[int]]]:
        """What becomes of handles, and which messages are done with."""
        outcomes: list[Outcome] = []
        done: dict[Place, set[int]] = {}
        for text in handles:
            try:
                handle = decode_handle(text, group, topic)
                if self._used(handle):
                    self._check_time(handle, in_time=in_time)
                    done.setdefault(handle.place, set()).add(handle.offset)
                elif self._waits_elsewhere(handle):
                    self._moves.take_back(handle)
                outcomes.append(Outcome(text))
            except TandemError as error:
                outcomes.append(Outcome(text, error))
        return outcomes, done

    def change(self, group: str, topic: str, text: str, invisible_ms: int) -> str:
        """See `port.DeliveryPort.change_invisible`. The handle stays as it is."""
        check_change(invisible_ms)
        handle = decode_handle(text, group, topic)
        if self._used(handle):
            place, offset = handle.place, handle.offset
            self._journal.note(GivenAgain(place, offset, handle.number, self._clock.now_ms() + invisible_ms))
            self._side.waits_for_retry(place, offset)
        elif self._waits_elsewhere(handle):
            self._moves.wait_again(handle, invisible_ms)
        return text

    def give_back(self, group: str, topic: str, text: str) -> None:
        """See `port.DeliveryPort`. One that has moved to the retry topic meanwhile comes again at once from there."""
        handle = decode_handle(text, group, topic)
        if self._used(handle):
            place, offset = handle.place, handle.offset
            self._journal.note(GivenAgain(place, offset, handle.number - 1, self._clock.now_ms()))
        elif self._waits_elsewhere(handle):
            self._moves.wait_again(handle, 0)

    async def forward(self, group: str, topic: str, text: str, durability: Durability) -> None:
        """See `port.DeliveryPort`. Once more for the same message is fine."""
        handle = decode_handle(text, group, topic)
        await self._graveyard.open(group)
        if self._used(handle):
            self._forward(handle, topic)
        elif self._waits_elsewhere(handle):
            self._forward(handle, topic)
            self._moves.take_back(handle)
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

    def _used(self, handle: ReceiptHandle) -> bool:
        """See `is_open`. Whoever holds the message lives."""
        open_ = self.is_open(handle)
        self._renewals.used(handle.place, handle.offset)
        return open_

    def _waits_elsewhere(self, handle: ReceiptHandle) -> bool:
        """Whether the message has moved to the retry topic and waits there. Raises HandleExpired."""
        waits = self._moves.waits_elsewhere(handle)
        if waits and self._side.is_of_another(handle):
            raise _expired(_GIVEN_AGAIN)
        return waits

    def _check_time(self, handle: ReceiptHandle, *, in_time: bool) -> None:
        """Whether the invisible time of an open message lasts, where that counts. Raises HandleExpired."""
        progress = self._journal.ledger.progress(handle.place) if in_time else None
        if progress is not None and progress.entries[handle.offset].due <= self._clock.now_ms():
            raise _expired("its invisible time is over")

    def is_open(self, handle: ReceiptHandle) -> bool:
        """Whether a handle names a message that waits to be dealt with; False if it was dealt with before.

        Raises HandleExpired.
        """
        progress = self._journal.ledger.progress(handle.place)
        if progress is None or progress.resets != handle.resets or handle.offset >= progress.given:
            raise _expired("the group's position was set since, or the group or topic was deleted")
        if handle.offset not in progress.entries:
            return False
        if not self._side.counts(handle, progress):
            raise _expired(_GIVEN_AGAIN)
        return True


def _expired(why: str) -> HandleExpired:
    return HandleExpired(f"The receipt handle counts no more: {why}.", remedy="Receive the message again.")
