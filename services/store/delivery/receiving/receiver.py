"""One look for messages: what a receive finds, without waiting.

Messages come from the places of the topic that was asked for, and from the group's retry topic. What is due again comes
first, but in one look of five what is new does, so that neither holds up the other. Queues take turns, but those of a
topic whose queues are priorities: there the highest is looked at first, and the retry topic last.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from operator import or_
from typing import NamedTuple

from tandemmq.common.log_output import get_log
from tandemmq.common.slices import Slices
from tandemmq.common.timers import Timers
from tandemmq.store.broker.send import new_tuple
from tandemmq.store.delivery.clock import DeliveryClock
from tandemmq.store.delivery.errors import TooMuchInFlight
from tandemmq.store.delivery.journal.facts import Dealt, Given, GivenAgain, Place
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.ledger.order_lines import OrderLines
from tandemmq.store.delivery.ledger.progress import OpenEntry, QueueProgress
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.port import GivenMessage
from tandemmq.store.delivery.receiving.answer import Answer, Share
from tandemmq.store.delivery.receiving.handles import Handles, ReceiptHandle, Shown
from tandemmq.store.delivery.receiving.place_reader import Absence, PlaceReader, Stretch
from tandemmq.store.delivery.receiving.prepared_calls import ReceiveCall
from tandemmq.store.delivery.receiving.read_ahead import ReadAhead
from tandemmq.store.delivery.receiving.receive_rules import ReceiveRules
from tandemmq.store.delivery.receiving.side_state import SideState
from tandemmq.store.delivery.receiving.sources import Source
from tandemmq.store.delivery.retries.dead_letters import Graveyard
from tandemmq.store.delivery.retries.retry_moves import RetryMoves
from tandemmq.store.format import properties
from tandemmq.store.format.record import Record, decode_record

log = get_log(__name__)

_NEW_FIRST_EVERY = 5
_READ_MOST = 64
"""Records read at a time where each has to be looked into."""
_TURN_MOST = 256
"""Records looked into in one turn of the loop, and no more than take a millisecond."""
_READY_MOST = 64
_BURY_AGAIN_MS = 5_000
"""A dead letter that cannot be written is tried again after so long."""
_BURY_SOON_MS = 250
"""... one whose topic is being made."""


class Look(NamedTuple):
    """What a look has found beside messages."""

    more: bool = False
    """It stopped before it had seen all."""
    blocked: bool = False
    """There was no room in flight in some place."""
    later: bool = False
    """A queue is being put right."""
    over: bool = False
    """Its turn of the loop was over."""
    left: bool = False
    """It has left messages where it found some: others may have them."""


_NOTHING = Look()
_Step = Callable[[ReceiveCall, Source, Answer], Look]


class Receiver:
    """Looks for messages and gives them out. Holds what waits for another topic of the same retry topic."""

    def __init__(
        self,
        journal: Journal,
        reader: PlaceReader,
        clock: DeliveryClock,
        rules: ReceiveRules,
        graveyard: Graveyard,
        side: SideState,
        lines: OrderLines,
        moves: RetryMoves,
        timers: Timers,
        handles: Handles,
        *,
        dealt: Callable[[Sequence[Dealt]], None],
        wake: Callable[[str, str], None],
        open_graveyard: Callable[[str], None],
    ) -> None:
        """Tell what has happened.

        `dealt` hears of what was passed or buried, `wake` of a group and topic that may have a message,
        `open_graveyard` of a group that has no dead-letter topic yet.
        """
        self._journal = journal
        self._ledger = journal.ledger
        self._reader = reader
        self._ahead = ReadAhead(reader)
        self._clock = clock
        self._rules = rules
        self._graveyard = graveyard
        self._side = side
        self._lines = lines
        self._moves = moves
        self._timers = timers
        self._handles = handles
        self._slice = Slices(timers)
        self._looked_into = 0
        self._dealt = dealt
        self._wake = wake
        self._open_graveyard = open_graveyard
        self._turns: dict[tuple[str, str], int] = {}
        self._shelves: dict[tuple[str, str], deque[tuple[Place, int]]] = {}
        self.expired: dict[tuple[str, str], int] = {}
        """By group and topic: messages that had gone before anybody acknowledged them."""

    def look(self, call: ReceiveCall, sources: Sequence[Source], answer: Answer) -> Look:
        """Put into the answer what there is, or what is found in one turn of the loop.

        Raises what keeps the journal from being written.
        """
        self._journal.check()
        self._slice, self._looked_into = Slices(self._timers), 0
        answer.begins(self._clock.now_ms(), call.invisible_ms)
        key = call.group.name, call.topic
        turn = self._turns[key] = self._turns.get(key, -1) + 1
        if self._shelves:
            self._clear_shelf(call, answer.room)
        found = _NOTHING
        if call.group.consume_message_orderly:
            unknown = {place.topic for place, _ in sources if not self._lines.known(place.group, place.topic)}
            if unknown:
                found = Look(later=True)
                sources = [source for source in sources if source.place.topic not in unknown]
        for step, source in self._steps(call, sources, turn):
            if self._looked_into:
                if answer.is_full():
                    return found
                if self._is_over():
                    return found._replace(more=True, over=True)
            one = step(call, source, answer)
            if one is not _NOTHING:
                found = Look(*map(or_, found, one))
        return found._replace(over=True) if found.more and self._is_over() else found

    def _is_over(self) -> bool:
        """Whether others must have their turn.

        Only what has brought the group on counts: or a look that finds queue after queue blocked would never be whole.
        """
        return self._looked_into >= _TURN_MOST or (self._looked_into > 0 and self._slice.over)

    def _steps(self, call: ReceiveCall, sources: Sequence[Source], turn: int) -> Iterator[tuple[_Step, Source]]:
        """Where to look, and for what, one after the other. Nothing is due again where no entry is ready."""
        again: _Step = self._again
        steps: list[_Step] = [again, self._new]
        new_first = turn // _NEW_FIRST_EVERY
        first = turn - new_first  # each kind of look has turns of its own, or some queue never came first in one
        if turn % _NEW_FIRST_EVERY == _NEW_FIRST_EVERY - 1:
            steps.reverse()
            first = new_first
        if call.by_priority and turn % 100 < call.group.priority_percent:
            for source in sorted(sources, key=lambda one: (one.shown is not Shown.AS_ASKED, -one.place.queue)):
                for step in steps:
                    if step is not again or self._ledger.ready_entries:
                        yield step, source
            return
        first = first % len(sources) if sources else 0
        in_turn = (*sources[first:], *sources[:first])
        for step in steps:
            if step is not again or self._ledger.ready_entries:
                for source in in_turn:
                    yield step, source

    def repeat(self, call: ReceiveCall, shares: Sequence[tuple[Share, Shown]], answer: Answer) -> None:
        """Give the messages of an attempt again that still count, with the same numbers."""
        now = self._clock.now_ms()
        answer.begins(now, call.invisible_ms)
        due = now + call.invisible_ms
        for share, shown in shares:
            progress = self._ledger.progress(share.place)
            if progress is None or share.entry_in(progress) is None:
                continue
            if self._ledger.is_ready(share.place, share.offset):
                continue
            data = self._reader.one(share.place, share.offset)
            if isinstance(data, Absence):
                continue
            before = self._deliveries_before(data, shown)
            self._journal.note(GivenAgain(share.place, share.offset, share.number, due))
            self._add(call, Source(share.place, shown), progress, (share.offset, data, share.number, before), answer)

    # -- again ------------------------------------------------------------------------------------------------------

    def _again(self, call: ReceiveCall, source: Source, answer: Answer) -> Look:
        """What is due again, or was looked at and never given out."""
        place = source.place
        progress = self._ledger.progress(place)
        if progress is None:
            return _NOTHING
        moved = self._moves.made
        while not answer.is_full() and not self._is_over():
            if answer.is_late(self._clock.now_ms()):
                return Look(left=True)
            offsets = self._ledger.ready(place, min(_READY_MOST, answer.room + 8))
            if not offsets:
                return Look(more=self._moves.made > moved)  # what has moved may be had at once
            for offset in offsets:
                if answer.is_full() or self._is_over():
                    break
                if self._room(progress, 1) <= 0:
                    return self._no_room(place)
                if not self._give_again(call, source, progress, offset, answer):
                    return Look(later=True)
                self._looked_into += 1
        return Look(more=not answer.is_full())

    def _give_again(
        self, call: ReceiveCall, source: Source, progress: QueueProgress, offset: int, answer: Answer
    ) -> bool:
        """Give out, pass, bury, move or set aside one message that is ready; False where it cannot be read now."""
        place, entry = source.place, progress.entries.get(offset)
        if entry is None:
            return True  # settled by one before it, which was buried or had gone
        data = self._reader.one(place, offset)
        if data is Absence.LATER:
            return False
        if isinstance(data, Absence):
            self._count_expired(place, 1)
            self._note_dealt([Dealt(place, offset)])
            return True
        record = None
        if source.shown is not Shown.AS_ASKED or not call.selection.everything or call.group.consume_message_orderly:
            record = decode_record(data, verify=False)
        if record is not None and source.shown is Shown.RETRY and not self._is_of(record, call, place, offset):
            return True
        if record is not None and self._unwanted(call, source, record, entry):
            self._note_dealt([Dealt(place, offset)])
            return True
        if record is not None and not self._may_go(call, place, offset, record, answer):
            self._ledger.set_aside(place, offset)
            return True
        before = record.reconsume_times if record is not None and source.shown is not Shown.AS_ASKED else 0
        if self._is_dead(call.group, before + entry.number):
            if not self._bury(place, offset, entry, data, before + entry.number) and place.topic in answer.chosen:
                answer.chosen[place.topic].discard((place.queue, offset))
            return True
        if entry.number and self._moves.is_to_move(call.group, progress, offset):
            fact = self._moves.move(call.group, place, offset, data, entry, 0)
            if fact is not None:
                self._note_dealt([fact])
                self._reader.catch_up()
                return True
        if not answer.fits(len(data)):
            answer.most = len(answer.messages)
            return True
        number = entry.number + 1
        now = self._clock.now_ms()
        self._journal.note(GivenAgain(place, offset, number, now + call.invisible_ms))
        if call.group.consume_message_orderly:
            self._have_follow(place, offset, now)
        self._add(call, source, progress, (offset, data, number, before), answer)
        return True

    def _have_follow(self, place: Place, offset: int, now: int) -> None:
        """What was acknowledged out of turn comes again with the message that was not."""
        for behind, other in self._lines.reopen(place, offset):
            progress = self._ledger.progress(behind)
            entry = None if progress is None else progress.entries.get(other)
            if entry is not None and entry.due > now:
                self._journal.note(GivenAgain(behind, other, entry.number, 0))

    @staticmethod
    def _unwanted(call: ReceiveCall, source: Source, record: Record, entry: OpenEntry) -> bool:
        """Whether a message that was never given out does not match."""
        never_given = source.shown is Shown.AS_ASKED and entry.number == 0
        return never_given and not call.selection.matches(record.properties)

    def _may_go(self, call: ReceiveCall, place: Place, offset: int, record: Record, answer: Answer) -> bool:
        if not call.group.consume_message_orderly:
            return True
        chosen = answer.chosen.setdefault(place.topic, set())
        if not self._lines.take(place, offset, record, chosen):
            return False
        chosen.add((place.queue, offset))
        return True

    def _is_dead(self, group: GroupConfig, deliveries: int) -> bool:
        return group.retry_max_times >= 0 and deliveries > group.retry_max_times

    def _bury(self, place: Place, offset: int, entry: OpenEntry, data: bytes, deliveries: int) -> bool:
        """Write a dead letter, or have it tried again later."""
        again_ms = _BURY_AGAIN_MS
        if self._graveyard.has_topic(place.group):
            fact = self._graveyard.bury(place, offset, data, deliveries)
            if fact is not None:
                self._note_dealt([fact])
                self._ledger.became_dead_letter(place, offset)
                return True
        else:
            self._open_graveyard(place.group)
            again_ms = _BURY_SOON_MS
        self._journal.note(GivenAgain(place, offset, entry.number, self._clock.now_ms() + again_ms))
        self._side.waits_for_retry(place, offset)
        return False

    # -- the group's retry topic --------------------------------------------------------------------------------------

    def _is_of(self, record: Record, call: ReceiveCall, place: Place, offset: int) -> bool:
        """Whether a message of the retry topic belongs to the topic that was asked for; else it is put on its shelf."""
        topic = record.properties.get(properties.RETRY_TOPIC)
        if topic is None or topic == call.topic:
            return True
        self._ledger.set_aside(place, offset)
        self._shelves.setdefault((place.group, topic), deque()).append((place, offset))
        self._wake(place.group, topic)
        return False

    def _clear_shelf(self, call: ReceiveCall, most: int) -> None:
        """What was found for this topic while another one was asked for can be had now."""
        key = call.group.name, call.topic
        shelf = self._shelves.get(key)
        if shelf is None:
            return
        for _ in range(min(most, len(shelf))):
            self._ledger.put_back(*shelf.popleft())
        if not shelf:
            del self._shelves[key]

    # -- new --------------------------------------------------------------------------------------------------------

    def _room(self, progress: QueueProgress, wanted: int) -> int:
        """How many more messages of a place may be in flight, of so many that are wanted."""
        rules, ledger = self._rules, self._ledger
        if (
            len(progress.entries) + wanted <= rules.most_in_flight
            and ledger.entries + wanted <= rules.most_in_flight_in_all
        ):
            return wanted  # even if all that has an entry were in flight
        return min(
            wanted,
            rules.most_in_flight - self._side.in_flight(progress.place),
            rules.most_in_flight_in_all - ledger.in_flight_in_all,
        )

    def _is_held_back(self, place: Place) -> bool:
        """Whether so much of a place waits for others that nothing new is read."""
        most = self._rules.most_held_back
        return self._ledger.aside_entries >= most and self._ledger.aside(place) >= most

    def _no_room(self, place: Place) -> Look:
        self._side.block(place, by_all=self._ledger.in_flight_in_all >= self._rules.most_in_flight_in_all)
        return Look(blocked=True)

    def _new(self, call: ReceiveCall, source: Source, answer: Answer) -> Look:
        """What was not looked at yet."""
        place = source.place
        progress = self._ledger.progress(place)
        if progress is None or not self._reader.has_beyond(place, progress.given):
            return _NOTHING
        each = (
            call.group.consume_message_orderly
            or source.shown is not Shown.AS_ASKED
            or call.selection.properties is not None
        )
        tags = call.selection.tags if source.shown is Shown.AS_ASKED else None
        while not answer.is_full() and not self._is_over():
            if self._is_held_back(place):
                return Look()
            room = self._room(progress, answer.room)
            if room <= 0:
                return self._no_room(place)
            most = _READ_MOST if each else room
            stretch = self._ahead.stretch(progress, most, answer.most_bytes - answer.bytes, tags)
            if stretch.later:
                return Look(later=True)
            if stretch.end <= progress.given:
                return Look()
            if each:
                before = progress.given
                self._looked_into += len(stretch.records) + 1
                self._take_each(call, source, progress, stretch, answer, room)
                if progress.given == before:  # the next one is too large for what the answer may still have
                    answer.most = len(answer.messages)
                if self._ledger.ready_count(place):
                    return Look(more=True)
                continue
            self._looked_into += 1  # a filter by tags has passed thousands of units, maybe
            self._take(call, source, progress, stretch, answer)
            if answer.is_full():
                return _NOTHING  # whoever has it knows that there may be more
            return Look(stretch.more and not answer.messages, left=self._reader.has_beyond(place, progress.given))
        return Look(more=not answer.is_full())

    def _take(
        self, call: ReceiveCall, source: Source, progress: QueueProgress, stretch: Stretch, answer: Answer
    ) -> None:
        """Give out all that was read."""
        place = source.place
        facts: list[Given | Dealt] = []
        self._expire(place, progress, stretch, facts)
        facts += _facts_of(place, stretch, self._clock.now_ms() + call.invisible_ms)
        self._journal.note(*facts)
        if stretch.records:
            self._add_run(call, source, progress, stretch.records, answer)

    def _take_each(
        self, call: ReceiveCall, source: Source, progress: QueueProgress, stretch: Stretch, answer: Answer, room: int
    ) -> None:
        """Look into each message: give it out, pass it, or leave it looked at."""
        place, due = source.place, self._clock.now_ms() + call.invisible_ms
        facts: list[Given | Dealt] = []
        self._expire(place, progress, stretch, facts)
        given: list[tuple[int, bytes, int, int]] = []
        at, end = stretch.begin, stretch.end
        for offset, data in stretch.records:
            if len(given) >= room or not answer.fits(len(data) + sum(len(one[1]) for one in given)):
                end = offset
                break
            if offset > at:
                _pass(facts, place, at, offset)
            at = offset + 1
            record = decode_record(data, verify=False)
            if source.shown is Shown.AS_ASKED and not call.selection.matches(record.properties):
                _pass(facts, place, offset, at)
                continue
            before = 0 if source.shown is Shown.AS_ASKED else record.reconsume_times
            if self._goes_at_once(call, source, record, before) and self._may_go(call, place, offset, record, answer):
                facts.append(Given(place, offset, 1, due))
                given.append((offset, data, 1, before))
        if end > at:
            _pass(facts, place, at, end)
        if end > _end_of(facts, progress.given):
            facts.append(Given(place, end, 0, 0))  # what no fact speaks of was looked at
        self._journal.note(*facts)
        for held in self._lines.held(place, stretch.begin, end):
            self._ledger.set_aside(place, held)
        for one in given:
            self._add(call, source, progress, one, answer)

    def _goes_at_once(self, call: ReceiveCall, source: Source, record: Record, before: int) -> bool:
        """Whether a new message is for this topic and not dead already; else it is ready, and looked at again."""
        if source.shown is Shown.RETRY and record.properties.get(properties.RETRY_TOPIC, call.topic) != call.topic:
            return False
        return not self._is_dead(call.group, before)

    def _expire(self, place: Place, progress: QueueProgress, stretch: Stretch, facts: list[Given | Dealt]) -> None:
        """Messages that have gone before anybody got them are passed."""
        if stretch.begin > progress.given:
            lost = stretch.begin - progress.given
            facts.append(Dealt(place, progress.given, lost))
            self._count_expired(place, lost)

    # -- both -------------------------------------------------------------------------------------------------------

    def _add(
        self,
        call: ReceiveCall,
        source: Source,
        progress: QueueProgress,
        one: tuple[int, bytes, int, int],
        answer: Answer,
    ) -> None:
        """Put into the answer: offset, record, number of the delivery, and deliveries before this place's."""
        offset, data, number, before = one
        handle = ReceiptHandle(source.place, offset, number, progress.resets, self._journal.start)
        text = self._handles.encode(handle, source.shown)
        message = GivenMessage(call.topic, data, before + number, text, call.invisible_ms)
        answer.add(message, Share(source.place, offset, number, progress.resets))

    def _add_run(
        self,
        call: ReceiveCall,
        source: Source,
        progress: QueueProgress,
        records: Sequence[tuple[int, bytes]],
        answer: Answer,
    ) -> None:
        """The same for messages of a topic that was asked for, all given for the first time."""
        place, resets = source.place, progress.resets
        core = self._handles.core
        if core is not None and type(records) is list:
            numbers, said = (resets, self._journal.start), (call.topic, call.invisible_ms)
            start = self._handles.prefix(place.group, place.topic)
            answer.bytes += core.give_run(
                *start, place, numbers, records, said, answer.messages, answer.shares, (GivenMessage, Share)
            )
            return
        first = new_tuple(ReceiptHandle, (place, records[0][0], 1, resets, self._journal.start))
        texts = self._handles.encode_run(first, [offset for offset, _ in records])
        topic, invisible_ms = call.topic, call.invisible_ms
        messages, shares, size = answer.messages, answer.shares, 0
        for (offset, data), text in zip(records, texts, strict=True):
            messages.append(new_tuple(GivenMessage, (topic, data, 1, text, invisible_ms)))
            shares.append(new_tuple(Share, (place, offset, 1, resets)))
            size += len(data)
        answer.bytes += size

    @staticmethod
    def _deliveries_before(data: bytes, shown: Shown) -> int:
        return 0 if shown is Shown.AS_ASKED else decode_record(data, verify=False).reconsume_times

    def _note_dealt(self, facts: Sequence[Dealt]) -> None:
        self._journal.note(*facts)
        self._dealt(facts)

    def _count_expired(self, place: Place, messages: int) -> None:
        key = place.group, place.topic
        if key not in self.expired:
            log.warning(
                "messages have expired before their group had dealt with them", group=place.group, topic=place.topic,
                queue=place.queue, messages=messages,
            )  # fmt: skip
        self.expired[key] = self.expired.get(key, 0) + messages


def _facts_of(place: Place, stretch: Stretch, due: int) -> list[Given | Dealt]:
    """All that was read is given out; what was passed by a filter is dealt with."""
    at = first = stretch.begin
    end, records = stretch.end, stretch.records
    if records and end - first == len(records):
        return [new_tuple(Given, (place, first, end - first, due))]
    facts: list[Given | Dealt] = []
    for offset, _ in records:
        if offset != at:
            if at > first:
                facts.append(Given(place, first, at - first, due))
            facts.append(Dealt(place, at, offset - at))
            first = offset
        at = offset + 1
    if at > first:
        facts.append(Given(place, first, at - first, due))
    if end > at:
        facts.append(Dealt(place, at, end - at))
    return facts


def _pass(facts: list[Given | Dealt], place: Place, first: int, end: int) -> None:
    """Messages from `first` to `end` are dealt with; those that follow one another are one fact."""
    if facts and isinstance(last := facts[-1], Dealt) and last.first + last.messages == first:
        facts[-1] = last._replace(messages=end - last.first)
    else:
        facts.append(Dealt(place, first, end - first))


def _end_of(facts: Sequence[Given | Dealt], given: int) -> int:
    return facts[-1].first + facts[-1].messages if facts else given


def too_much(group: str, topic: str) -> TooMuchInFlight:
    """What a receive is told that finds no room."""
    return TooMuchInFlight(
        f"So many messages of topic {topic} are given out to group {group} and not acknowledged that no more are.",
        remedy="Acknowledge what was received, or let its invisible time end; see maxInFlight.",
    )
