"""One group in one queue: what is dealt with, what is given out, and what comes again. No I/O and no clock.

::

    0 ........ cursor ............................ given ............ end of the queue
      dealt with      entries, and what is dealt          not looked at yet
                      with between them

All below the cursor is dealt with. Between it and `given` each message is either dealt with or has an entry: how often
it was given out, and when it is due again. An entry of number 0 was looked at and not given out (its message group was
locked, or an answer never left). What no fact says is not dealt with: a gap before the first message of a `Given`
becomes entries.
"""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple, TypeVar

from tandemmq.store.broker.send import new_tuple
from tandemmq.store.delivery.journal.facts import Dealt, Given, GivenAgain, HeldBy, HeldRun, Moved, Place, Snapshot

_Item = TypeVar("_Item")
_NUMBER_BITS = 16
MOST_NUMBER = (1 << _NUMBER_BITS) - 1
_START_BITS = 44
_MOST_START = (1 << _START_BITS) - 1
_DUE_AT = _NUMBER_BITS + _START_BITS
_PIECE = 256
_LONGEST_RUN = 2_000
"""Of a snapshot's messages that are due at the same time: so many may become ready at once."""
_new_number = int.__new__
MOST_DUE = (1 << 44) - 1
"""The latest time that an entry can be due, in milliseconds since the Unix epoch: in the year 2527."""


class OpenEntry(int):
    """A message that is given out or waits: how often it was given out, when it is due again, and by which start.

    One packed integer of 48 bytes: there may be a million of them.
    """

    __slots__ = ()

    def __new__(cls, number: int, due: int, start: int) -> "OpenEntry":
        """A greater `number` than 65,535 counts as that. What there are no bits for is no `start` that is known."""
        if not 0 <= due <= MOST_DUE:
            due = min(max(due, 0), MOST_DUE)
        if start > _MOST_START:
            start = 0
        if number > MOST_NUMBER:
            number = MOST_NUMBER
        return _new_number(cls, (due << _START_BITS | start) << _NUMBER_BITS | number)

    @property
    def number(self) -> int:
        """How often it was given out; 0 if it never was."""
        return self & MOST_NUMBER

    @property
    def due(self) -> int:
        """When it comes again, in milliseconds by the delivery clock."""
        return self >> _DUE_AT

    @property
    def start(self) -> int:
        """The start that has given it out last; 0: not known, or none."""
        return self >> _NUMBER_BITS & _MOST_START

    def is_delivery(self, number: int, start: int) -> bool:
        """Whether it was given out last for the `number`-th time, and by that start.

        Facts of the last moments may be lost with a start: then numbers repeat, of messages too. Where it is not known
        which start it was, the number tells.
        """
        return self.number == number and self.start in (start, 0)

    def until(self, due: int) -> "OpenEntry":
        """The same delivery, due again at another time."""
        return OpenEntry(self.number, due, self.start)

    def __repr__(self) -> str:
        return f"Entry({self.number}, {self.due}, {self.start})"


class RenewedBy(NamedTuple):
    """A client holds a message with renewal, since then."""

    client_id: str
    since: int


class QueueProgress:
    """The state machine. Facts of its place are applied to it, live as at replay."""

    __slots__ = ("_order", "cursor", "entries", "given", "holdings", "place", "resets")

    def __init__(self, place: Place, cursor: int = 0, resets: int = 0) -> None:
        self.place = place
        self.cursor = cursor
        self.given = cursor
        self.resets = resets
        self.entries: dict[int, OpenEntry] = {}
        self.holdings: dict[int, RenewedBy] = {}
        """By offset: those of the entries that a client holds with renewal."""
        self._order: deque[int] = deque()  # offsets of entries, ascending; those that are gone are dropped when first

    # -- facts ------------------------------------------------------------------------------------------------------

    def give(self, fact: Given, start: int = 0) -> None:
        """See `Given`; by which start. Offsets that were given before are left as they are."""
        _, first, messages, due = fact
        if first > self.given:
            self._look_at(first)
        entry, end = OpenEntry(1, due, start), first + messages
        if end > self.given:
            offsets = list(range(self.given, end))
            self.entries.update(zip(offsets, repeat(entry)))
            self._order.extend(offsets)
            self.given = end

    def give_again(self, fact: GivenAgain, start: int) -> None:
        """See `GivenAgain`; by which start. What is dealt with stays so."""
        _, offset, number, due = fact
        entry = self.entries.get(offset)
        if entry is not None:
            # With the number that it has it is the same delivery, due at another time.
            self.entries[offset] = entry.until(due) if number == entry.number else OpenEntry(number, due, start)
            self.holdings.pop(offset, None)

    def hold(self, fact: HeldBy) -> list[int]:
        """See `HeldBy`. Gives the offsets, ascending, that are due at another time than before."""
        holding, changed = RenewedBy(fact.client_id, fact.since), []
        for offset in range(fact.first, fact.first + fact.messages):
            entry = self.entries.get(offset)
            if entry is None:
                continue
            self.holdings[offset] = holding
            if entry.due != fact.due:
                self.entries[offset] = entry.until(fact.due)
                changed.append(offset)
        return changed

    def deal(self, fact: Dealt) -> None:
        """See `Dealt`. Offsets that were not looked at before are passed."""
        _, first, messages, _ = fact
        end = first + messages
        if end > self.given:
            self._look_at(first)
            self.given = end
        if messages == 1:
            self.entries.pop(first, None)
        elif messages > len(self.entries):
            for offset in [one for one in self.entries if first <= one < end]:
                del self.entries[offset]
        else:
            for offset in range(first, end):
                self.entries.pop(offset, None)
        if self.holdings:
            self._hold_no_more(range(first, end))
        self._advance()

    def move(self, fact: Moved) -> None:
        """See `Moved`."""
        if fact.resets > self.resets:
            self.cursor = self.given = fact.cursor
            self.resets = fact.resets
            self.forget()
        elif fact.resets == self.resets and fact.cursor > self.cursor:
            for offset in [one for one in self.entries if one < fact.cursor]:
                del self.entries[offset]
                self.holdings.pop(offset, None)
            self.given = max(self.given, fact.cursor)
            self._advance()

    def restore(self, fact: Snapshot) -> None:
        """See `Snapshot`: the first piece replaces all there is, further pieces of it bring more entries."""
        self.resets, self.given = fact.resets, fact.given
        self.cursor = fact.cursor
        for offset, number, due, start in fact.entries:
            if offset not in self.entries:
                self._order.append(offset)
            self.entries[offset] = OpenEntry(number, due, start)
        for first, messages, client_id, since in fact.held:
            some = (at for at in range(first, first + messages) if at in self.entries)
            self.holdings.update(dict.fromkeys(some, RenewedBy(client_id, since)))

    def forget(self) -> None:
        """Nothing is given out or waits: before the first piece of a snapshot, and after a reset."""
        self.entries.clear()
        self.holdings.clear()
        self._order.clear()

    def _hold_no_more(self, offsets: range) -> None:
        few = len(offsets) <= len(self.holdings)
        for offset in offsets if few else [one for one in self.holdings if one in offsets]:
            self.holdings.pop(offset, None)

    def _look_at(self, offset: int) -> None:
        """All up to `offset` was looked at; what no fact speaks of waits."""
        waiting = OpenEntry(0, 0, 0)
        for one in range(self.given, offset):
            self.entries[one] = waiting
            self._order.append(one)
        self.given = max(self.given, offset)

    def _advance(self) -> None:
        order, entries = self._order, self.entries
        while order and order[0] not in entries:
            order.popleft()
        self.cursor = order[0] if order else self.given

    # -- questions --------------------------------------------------------------------------------------------------

    def snapshot(self, most: int) -> Iterator[Snapshot]:
        """The facts that say all of this as it is now, each with at most so many entries. They may be made later."""
        empty = Snapshot(self.place, self.cursor, self.given, self.resets, ())
        return _snapshot(empty, self.entries.copy(), self.holdings.copy(), most)


def _snapshot(
    empty: Snapshot, entries: dict[int, OpenEntry], holdings: dict[int, RenewedBy], most: int
) -> Iterator[Snapshot]:
    offsets = sorted(entries)
    for begin in range(0, len(offsets) or 1, most):
        some = offsets[begin : begin + most]
        rows = tuple([(at, entry.number, entry.due, entry.start) for at in some for entry in (entries[at],)])
        held = tuple(held_runs(some, holdings)) if holdings else ()
        yield empty._replace(entries=rows, more=begin + most < len(offsets), held=held)


def pieces(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    """So few items at a time that something can be done with each of them within a turn of the loop."""
    return (items[at : at + _PIECE] for at in range(0, len(items), _PIECE))


def snapshot_parts(snapshot: Snapshot) -> Iterator[Snapshot]:
    """A piece of a snapshot as several that have few entries each; what is held goes with the last."""
    *some, last = list(pieces(snapshot.entries)) or [()]
    for entries in some:
        yield snapshot._replace(entries=tuple(entries), held=())
    yield snapshot._replace(entries=tuple(last))


def prolong(found: list[tuple[int, int]], offset: int) -> None:
    """One offset more, in runs of (first, how many)."""
    if found:
        first, messages = found[-1]
        if offset == first + messages and messages < _LONGEST_RUN:
            found[-1] = first, messages + 1
            return
    found.append((offset, 1))


def runs(offsets: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Offsets, each greater than the one before, as (first, how many) of those that follow one another."""
    begin, count = 0, len(offsets)
    if count and offsets[-1] - offsets[0] == count - 1:
        yield offsets[0], count
        return
    for at in range(1, count + 1):
        if at == count or offsets[at] != offsets[at - 1] + 1:
            yield offsets[begin], at - begin
            begin = at


def deals(done: Mapping[Place, Collection[int]]) -> list[Dealt]:
    """The facts that messages are dealt with."""
    facts: list[Dealt] = []
    for place, offsets in done.items():
        if len(offsets) == 1:
            facts.append(new_tuple(Dealt, (place, *offsets, 1, -1)))
        else:
            facts += [Dealt(place, *run) for run in runs(sorted(offsets))]
    return facts


def held_runs(offsets: Sequence[int], holdings: dict[int, RenewedBy]) -> Iterator[HeldRun]:
    """Those of some ascending offsets that are held, as runs of what one client got at a time."""
    first, messages, last = 0, 0, None
    for offset in offsets:
        holding = holdings.get(offset)
        if holding is not None and holding == last and offset == first + messages:
            messages += 1
            continue
        if last is not None:
            yield HeldRun(first, messages, *last)
        first, messages, last = offset, 1, holding
    if last is not None:
        yield HeldRun(first, messages, *last)
