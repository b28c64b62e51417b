"""All places of a store: how far each group is in each queue, and what is due next. No I/O and no clock.

`Ledger.apply` is the one function that changes anything, live as at replay. What is due lies in one heap for all
places; an item of it (`due_item`) stands for a run of messages that were given out together. Items whose messages are
dealt with stay until their time, or until they are half of the heap. The heap is made from the entries
when somebody first wants to know what is due: a replay, and a slave, have none.
"""

import heapq
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from tandemmq.store.delivery.journal.facts import (
    Dealt,
    Fact,
    Given,
    GivenAgain,
    HeldBy,
    LevelDone,
    Moved,
    Place,
    Snapshot,
    TimersDone,
)
from tandemmq.store.delivery.ledger.copied_messages import CopiedMessage, CopiedMessages, UntoldMessages
from tandemmq.store.delivery.ledger.due_item import DUE_AT, MOST_MESSAGES, pack, unpack
from tandemmq.store.delivery.ledger.progress import (
    MOST_DUE,
    QueueProgress,
    pieces,
    prolong,
    runs,
    snapshot_parts,
)

_CHANGES = (Given, Dealt, GivenAgain, HeldBy, Moved)
"""Facts that change a place."""
_FEW = 4_096
"""A heap with fewer dead messages is left alone."""
_COMPACT_LEAST, _COMPACT_TIMES = 64, 4
"""Messages that are looked at to throw out dead ones, each time that some are added; and how many times these."""


class DueBetween(NamedTuple):
    """The earliest and the latest time at which messages may be due."""

    least: int
    most: int


_ANY_TIME = DueBetween(0, MOST_DUE)


class _Account:
    """One place in the ledger."""

    __slots__ = ("aside", "copies_known_from", "number", "pieces", "progress", "ready", "untold")

    def __init__(self, progress: QueueProgress, number: int) -> None:
        self.progress = progress
        self.number = number
        self.ready: OrderedDict[int, None] = OrderedDict()
        self.aside: set[int] = set()
        self.pieces: list[Snapshot] | None = None
        self.copies_known_from = progress.cursor  # what became of those before was told before the journal's base
        self.untold: UntoldMessages | None = None


class Ledger:
    """The state of all deliveries of a store."""

    def __init__(self) -> None:
        self._places: dict[Place, _Account] = {}
        self._groups: dict[str, dict[str, dict[int, _Account]]] = {}
        self._accounts: dict[int, _Account] = {}
        self._next_number = 0
        self._heap: list[int] = []
        self._old: list[int] = []  # the heap as it was: what lives of it goes into the new one, from its end on
        self._in_heap = 0  # messages that its items stand for
        self._timed = False  # whether there is a heap: before that the entries alone say what is due
        self._compact_beyond = _FEW
        self._now = 0
        self._fresh: dict[Place, None] = {}  # places that have something to give since the last `come_due`
        self.entries = 0
        """Messages that are given out, or wait to be again, in all places."""
        self.ready_entries = 0
        """Those of them that may be given out now."""
        self.aside_entries = 0
        """Those that might be, but wait for others; see `set_aside`."""
        self._put_off: dict[Place, set[int]] = {}
        self._moved: dict[Place, None] = {}  # places whose cursor has moved since the last `take_moved`
        self.levels: dict[int, int] = {}
        """By delay level: the queue offset below which all is delivered."""
        self.timers: TimersDone | None = None
        """How far the timers' topic is delivered; None: nothing is known."""
        self._copied = CopiedMessages()
        self.forgotten: set[Place] = set()
        """Places that were, and are none any more, as far as the facts since the last `clear` say."""
        self.start = 0
        """The start whose facts are applied: what they give out is given out by it; 0: not known."""
        self.generation = 0
        """Changes whenever a place comes or goes: until then what `progress` gave of one is its state."""

    # -- questions --------------------------------------------------------------------------------------------------

    def progress(self, place: Place) -> QueueProgress | None:
        """The state of a place, to be read only; None where the group never was."""
        account = self._places.get(place)
        return None if account is None else account.progress

    def copied(self, place: Place, offset: int) -> CopiedMessage | None:
        """The copies that stand for a message that was dealt with; None: there is none, or it is not remembered."""
        account = self._places.get(place)
        return None if account is None else self._copied.get(account.number, offset)

    def forgot_copies(self, place: Place, offset: int) -> bool:
        """Whether a message may have been copied of which `copied` says nothing: that was too long ago."""
        account = self._places.get(place)
        if account is None:
            return False
        return offset < account.copies_known_from or (account.untold is not None and offset in account.untold)

    def became_dead_letter(self, place: Place, offset: int) -> None:
        """The copy of a message that had not moved is its dead letter, for which nobody comes with its handle.

        It takes no room from those that have moved; `JournalFollower` tells of no such copies.
        """
        account = self._places.get(place)
        if account is not None:
            self._copied.forget(account.number, offset)

    def places(self, group: str, topic: str | None = None) -> list[QueueProgress]:
        """The places of a group, in one topic or in all."""
        topics = self._groups.get(group, {})
        some = topics.values() if topic is None else (topics.get(topic, {}),)
        return [account.progress for queues in some for account in queues.values()]

    def groups(self) -> list[str]:
        """Groups that have a place."""
        return list(self._groups)

    def all(self) -> Iterator[QueueProgress]:
        """All places there are now, in the order in which they came to be. They may be gone through in many turns."""
        return (account.progress for account in list(self._accounts.values()))

    def __len__(self) -> int:
        """How many places there are."""
        return len(self._accounts)

    @property
    def in_flight_in_all(self) -> int:
        """Messages that are given out and not due again yet."""
        return self.entries - self.ready_entries - self.aside_entries

    def in_flight(self, place: Place) -> int:
        """Messages of a place that are given out and not due again yet."""
        account = self._places.get(place)
        if account is None:
            return 0
        return len(account.progress.entries) - len(account.ready) - len(account.aside)

    def ready(self, place: Place, most: int | None = None) -> list[int]:
        """Offsets of a place that may be given out again, or were not yet (number 0); in the order they became so."""
        account = self._places.get(place)
        return [] if account is None else list(islice(account.ready, most))

    def is_ready(self, place: Place, offset: int) -> bool:
        """Whether a message may be given out again."""
        account = self._places.get(place)
        return account is not None and offset in account.ready

    def ready_count(self, place: Place) -> int:
        """How many messages of a place may be given out again."""
        account = self._places.get(place)
        return 0 if account is None else len(account.ready)

    def set_aside(self, place: Place, offset: int) -> None:
        """A message that is ready waits for another one, until `put_back`. It is no fact: a restart makes it ready."""
        account = self._places.get(place)
        if account is not None and offset in account.ready:
            self._not_ready(account, offset, 1)
            account.aside.add(offset)
            self.aside_entries += 1

    def put_back(self, place: Place, offset: int) -> None:
        """A message that was set aside is ready again."""
        account = self._places.get(place)
        if account is not None and offset in account.aside:
            self._not_ready(account, offset, 1)
            self._make_ready(account, offset)

    def aside(self, place: Place) -> int:
        """How many messages of a place are set aside."""
        account = self._places.get(place)
        return 0 if account is None else len(account.aside)

    def put_off(self, place: Place, offset: int) -> None:
        """Nobody holds a message until it is due again. It is no fact: after a restart it counts as held till then."""
        account = self._places.get(place)
        if account is not None and offset in account.progress.entries and offset not in account.ready:
            self._put_off.setdefault(place, set()).add(offset)

    def put_off_at(self, place: Place) -> Collection[int]:
        """Offsets of the messages of a place that are put off and not due again yet."""
        return self._put_off.get(place, ())

    def places_put_off(self) -> list[Place]:
        """Places that have such messages."""
        return list(self._put_off)

    @property
    def has_fresh(self) -> bool:
        """Whether `come_due` has something to say now, whatever the time."""
        return bool(self._fresh)

    def next_due(self) -> int | None:
        """When `come_due` has something to say next, in milliseconds; None: not before another fact.

        What lies there may be dealt with already: then `come_due` gives nothing.
        """
        if self._fresh:
            return self._now
        self._have_heap()
        heap = self._first_heap()
        return heap[0] >> DUE_AT if heap else None

    def _first_heap(self) -> list[int]:
        """The heap whose first item is due first; an empty one where there is none."""
        if self._old and (not self._heap or self._old[0] < self._heap[0]):
            return self._old
        return self._heap

    def take_moved(self) -> dict[Place, None]:
        """Places whose cursor has moved, or that are gone, since the last call."""
        moved, self._moved = self._moved, {}
        return moved

    def moved_again(self, places: Iterable[Place]) -> None:
        """Have `take_moved` give them once more. What it gave costs less than other places: they are hashed."""
        self._moved.update(dict.fromkeys(places))

    # -- time -------------------------------------------------------------------------------------------------------

    def come_due(self, now_ms: int, most: int = 2_000) -> list[Place]:
        """Make ready what is due now; gives the places that have something to give since the last call.

        Places whose cursor was moved are among them. It looks at `most` messages, so that others have their turn: what
        is left is due (`next_due`) at once.
        """
        self._have_heap()
        self._now = max(self._now, now_ms)
        limit = (self._now + 1) << DUE_AT
        enough = self._in_heap - most
        while (heap := self._first_heap()) and heap[0] < limit and self._in_heap > enough:
            self._come_due(heapq.heappop(heap), self._in_heap - enough)
        fresh, self._fresh = list(self._fresh), {}
        return fresh

    def _come_due(self, item: int, most: int) -> None:
        due, number, first, messages = unpack(item)
        if messages > most:
            heapq.heappush(self._heap, pack(due, number, first + most, messages - most))
            messages = most
        self._in_heap -= messages
        account = self._accounts.get(number)
        if account is None:
            return
        entries = account.progress.entries
        for offset in range(first, first + messages):
            entry = entries.get(offset)
            if entry is not None and entry.due == due:
                self._make_ready(account, offset)

    def _make_ready(self, account: _Account, offset: int) -> None:
        if offset not in account.ready:
            account.ready[offset] = None
            self.ready_entries += 1
            if self._put_off:
                self._put_off_no_more(account.progress.place, (offset,))
        self._fresh[account.progress.place] = None

    def _wait(self, account: _Account, first: int, messages: int, due: int) -> None:
        """Have so many messages come again when they are due."""
        due = min(max(due, 0), MOST_DUE)
        if due <= self._now:
            for offset in range(first, first + messages):
                self._make_ready(account, offset)
        elif self._timed:
            self._push(account, first, messages, due)
            if self._old:
                self._compact(max(_COMPACT_TIMES * messages, _COMPACT_LEAST))
            elif self._in_heap > self._compact_beyond and self._in_heap > 2 * self.in_flight_in_all + _FEW:
                self._old, self._heap = self._heap, []

    def _push(self, account: _Account, first: int, messages: int, due: int) -> None:
        left = messages
        while left > MOST_MESSAGES:
            heapq.heappush(self._heap, pack(due, account.number, first, MOST_MESSAGES))
            first, left = first + MOST_MESSAGES, left - MOST_MESSAGES
        heapq.heappush(self._heap, pack(due, account.number, first, left))
        self._in_heap += messages

    def _have_heap(self) -> None:
        """Make the heap if there is none; `hold_back` makes it in steps."""
        if not self._timed:
            for _ in self.hold_back(_ANY_TIME, _ANY_TIME):
                pass

    def _compact(self, most: int) -> None:
        """Throw out what is dealt with, or is due at another time, of about `most` messages of the old heap.

        A heap without its last item is one still, so its items are taken from its end on.
        """
        while self._old and most > 0:
            item = self._old.pop()
            due, number, first, messages = unpack(item)
            most -= messages
            self._in_heap -= messages
            account = self._accounts.get(number)
            if account is None:
                continue
            entries = account.progress.entries
            alive = [at for at in range(first, first + messages) if at in entries and entries[at].due == due]
            for begin, count in runs(alive):
                heapq.heappush(self._heap, pack(due, number, begin, count))
                self._in_heap += count
        if not self._old:
            self._compact_beyond = 2 * self._in_heap + _FEW

    def hold_back(self, others: DueBetween, renewed: DueBetween) -> Iterator[None]:
        """Let nothing that was given out be due too early or too late; what is ready waits till then too.

        After a start, those who hold messages have time to acknowledge them; those who hold them with renewal
        (`renewed`), to come back. No fact says so: it is done by whoever delivers, and costs nothing but time where it
        is not known. It stops after some messages, so that others may have their turn; nothing may be noted meanwhile.
        Where there is no heap yet, it makes it. What was begun and not ended may be begun again.
        """
        if not self._timed:
            self._heap.clear()
            self._in_heap = 0
        for account in list(self._accounts.values()):
            for offsets in pieces(list(account.progress.entries)):
                for due, first, messages in self._held_back(account, offsets, others, renewed):
                    if due <= self._now or self._timed:
                        self._wait(account, first, messages, due)
                    else:
                        self._push(account, first, messages, due)
                yield
        if not self._timed:
            self._timed = True
            self._compact_beyond = 2 * self._in_heap + _FEW

    def _held_back(
        self, account: _Account, offsets: Iterable[int], others: DueBetween, renewed: DueBetween
    ) -> Iterator[tuple[int, int, int]]:
        """Give some messages of a place their times. Those that are to wait for them, as runs: when, first, how many.

        These are those that have others now, and where there is no heap yet, all that are not ready.
        """
        entries, holdings, ready = account.progress.entries, account.progress.holdings, account.ready
        last, first, messages = -1, 0, 0
        for offset in offsets:
            entry = entries[offset]
            was_due = due = entry.due
            if entry.number:
                least, most = renewed if offset in holdings else others
                due = min(max(due, least), most)
            if due != was_due:
                entries[offset] = entry.until(due)
                if offset in ready:
                    del ready[offset]
                    self.ready_entries -= 1
            elif self._timed or offset in ready or offset in account.aside:
                continue
            if due == last and offset == first + messages:
                messages += 1
                continue
            if messages:
                yield last, first, messages
            last, first, messages = due, offset, 1
        if messages:
            yield last, first, messages

    def clear(self) -> None:
        """Nothing is known."""
        self._places.clear()
        self._groups.clear()
        self._accounts.clear()
        self._heap.clear()
        self._old.clear()
        self._fresh.clear()
        self._moved.clear()
        self._put_off.clear()
        self._in_heap, self._compact_beyond, self._timed = 0, _FEW, False
        self.entries = self.ready_entries = self.aside_entries = 0
        self.levels.clear()
        self.timers = None
        self._copied.clear()
        self.forgotten.clear()
        self.start = 0
        self.generation += 1

    # -- facts ------------------------------------------------------------------------------------------------------

    def apply(self, fact: Fact) -> bool:
        """Make it so. Facts of a place that is not known are passed over (False), but for those that make one.

        `Moved` and `Snapshot` make a place. At replay what comes before the first of them is about a state that the
        `Snapshot` tells whole.
        """
        if isinstance(fact, _CHANGES):
            account = self._places.get(fact.place)
            if account is not None:
                account.pieces = None
                self._change(account, fact)
            elif isinstance(fact, Moved):
                self._open(fact.place, fact.cursor, fact.resets)
            else:
                return False
        elif isinstance(fact, LevelDone):
            self.levels[fact.level] = fact.offset
        elif isinstance(fact, TimersDone):
            self.timers = fact
        elif isinstance(fact, Snapshot):
            for _ in self._restore(fact):
                pass
        else:
            self._forget(fact.place)
        return True

    def apply_in_steps(self, fact: Fact) -> Iterator[None]:
        """The same, in steps: a snapshot may have so many entries that others must have their turn in between.

        Until the last step the place is half of what it will be: nothing is given out meanwhile, or said of it.
        """
        if isinstance(fact, Snapshot):
            yield from self._restore(fact)
        else:
            self.apply(fact)

    def _change(self, account: _Account, fact: Given | GivenAgain | HeldBy | Dealt | Moved) -> None:
        progress = account.progress
        before, looked_at = len(progress.entries), progress.given
        stood = progress.cursor
        if isinstance(fact, Dealt):
            if fact.copy >= 0:
                self._note_copy(account, fact)
            progress.deal(fact)
            if account.ready or account.aside or self._put_off:
                self._not_ready(account, fact.first, fact.messages)
            self._count(account, before, looked_at, fact.first)
        elif isinstance(fact, Given):
            progress.give(fact, self.start)
            self._count(account, before, looked_at, fact.first)
            first, end = max(fact.first, looked_at), fact.first + fact.messages
            if end > first:
                self._wait(account, first, end - first, fact.due)
        elif isinstance(fact, GivenAgain):
            progress.give_again(fact, self.start)
            if fact.offset in progress.entries:
                self._not_ready(account, fact.offset, 1)
                self._wait(account, fact.offset, 1, fact.due)
        elif isinstance(fact, HeldBy):
            for first, messages in runs(progress.hold(fact)):
                self._not_ready(account, first, messages)
                self._wait(account, first, messages, fact.due)
        else:
            known = progress.resets, progress.cursor
            progress.move(fact)
            if (progress.resets, progress.cursor) != known:
                known_of = (*account.ready, *account.aside, *self._put_off.get(progress.place, ()))
                gone = [offset for offset in known_of if offset not in progress.entries]
                for offset in gone:
                    self._not_ready(account, offset, 1)
                self._fresh[progress.place] = None
            self.entries += len(progress.entries) - before
        if progress.cursor != stood:
            self._moved[progress.place] = None

    def _note_copy(self, account: _Account, fact: Dealt) -> None:
        number, offset = self._copied.note(account.number, fact, account.progress) or (-1, 0)
        other = self._accounts.get(number)
        if other is not None:
            other.copies_known_from = max(other.copies_known_from, offset + 1)

    def _count(self, account: _Account, before: int, begin: int, end: int) -> None:
        """Entries have changed; those in `begin` to `end` are new, and were never given out."""
        entries = account.progress.entries
        self.entries += len(entries) - before
        if end > begin:
            for offset in range(begin, end):
                if offset in entries:
                    self._make_ready(account, offset)

    def _put_off_no_more(self, place: Place, offsets: Collection[int]) -> None:
        """Messages are due again, given out, or dealt with."""
        waiting = self._put_off.get(place)
        if waiting is not None:
            gone = (
                waiting.intersection(offsets)
                if len(offsets) < len(waiting)
                else {at for at in waiting if at in offsets}
            )
            waiting -= gone
            if not waiting:
                del self._put_off[place]

    def _not_ready(self, account: _Account, first: int, messages: int) -> None:
        ready = account.ready
        if self._put_off:
            self._put_off_no_more(account.progress.place, range(first, first + messages))
        if account.aside:
            few = messages <= len(account.aside)
            wanted = range(first, first + messages)
            gone = account.aside.intersection(wanted) if few else {at for at in account.aside if at in wanted}
            account.aside -= gone
            self.aside_entries -= len(gone)
        if not ready:
            return
        before = len(ready)
        if messages == 1:
            ready.pop(first, None)
        else:
            some: Iterable[int] = range(first, first + messages)
            if messages > len(ready):
                some = [offset for offset in ready if first <= offset < first + messages]
            for offset in some:
                ready.pop(offset, None)
        self.ready_entries -= before - len(ready)

    def _restore(self, fact: Snapshot) -> Iterator[None]:
        """A snapshot counts when its last piece is there: a part of it would say that the rest is dealt with."""
        account = self._places.get(fact.place)
        if account is None:
            account = self._open(fact.place, fact.cursor, fact.resets)
        if fact.more:
            account.pieces = [*(account.pieces or ()), fact]
            return
        parts, account.pieces = [*(account.pieces or ()), fact], None
        progress = account.progress
        known = progress.cursor, progress.given, len(progress.entries)
        if known != (fact.cursor, fact.given, sum([len(part.entries) for part in parts])):
            account.untold = UntoldMessages(parts)
        self._empty(account)
        progress.forget()
        runs_due: dict[int, list[tuple[int, int]]] = {}
        for part in chain.from_iterable(map(snapshot_parts, parts)):
            before = len(progress.entries)
            progress.restore(part)
            self.entries += len(progress.entries) - before
            for offset, _, due, _ in part.entries:
                prolong(runs_due.setdefault(due, []), offset)
            yield
        self._fresh[progress.place] = None
        for some in pieces([(due, *run) for due in sorted(runs_due) for run in runs_due[due]]):
            for due, first, messages in some:
                self._wait(account, first, messages, due)
            yield

    def _open(self, place: Place, cursor: int, resets: int) -> _Account:
        number, self._next_number = self._next_number, self._next_number + 1
        account = self._accounts[number] = _Account(QueueProgress(place, cursor, resets), number)
        self._places[place] = account
        self._groups.setdefault(place.group, {}).setdefault(place.topic, {})[place.queue] = account
        self.generation += 1
        self._fresh[place] = self._moved[place] = None
        self.forgotten.discard(place)
        return account

    def _empty(self, account: _Account) -> None:
        """Nothing of it is given out or ready any more."""
        self._put_off.pop(account.progress.place, None)
        self.entries -= len(account.progress.entries)
        self.ready_entries -= len(account.ready)
        self.aside_entries -= len(account.aside)
        account.ready.clear()
        account.aside.clear()

    def _forget(self, place: Place) -> None:
        self.forgotten.add(place)
        account = self._places.get(place)
        if account is None:
            return
        self._empty(account)
        del self._accounts[account.number], self._places[place]
        self.generation += 1
        topics = self._groups[place.group]
        del topics[place.topic][place.queue]
        if not topics[place.topic]:
            del topics[place.topic]
        if not topics:
            del self._groups[place.group]
        self._fresh.pop(place, None)
        self._moved[place] = None
