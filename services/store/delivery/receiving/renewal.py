"""Automatic renewal: what a client holds stays invisible for as long as the client lives.

Such messages are given out for a minute, and for another one before that is over, while the client is a member of its
group, for three hours at most. When it is gone they come again in a second, as from RocketMQ's proxy:
acknowledgements may be on their way. Who holds what is in the ledger (`facts.HeldBy`), so it is known after a start or
promotion: then clients have half a minute to come back.

It is noted a few seconds after the answer was sent, or when the store stops. What a kill has caught on its way, or the
end of the connection on which it was sent, may never have arrived: it comes again when its minute is over, though the
client lives.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tandemmq.common.slices import in_turns
from tandemmq.common.timers import Timers
from tandemmq.store.delivery.clock import DeliveryClock
from tandemmq.store.delivery.journal.facts import GivenAgain, HeldBy, Place
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.ledger.progress import OpenEntry, QueueProgress, held_runs, pieces, runs
from tandemmq.store.delivery.members.sessions import Sessions
from tandemmq.store.delivery.port import Connected
from tandemmq.store.delivery.receiving.answer import Share

RENEWED_MS = 60_000
"""For so long a message with renewal is given out at a time."""

ARRIVED_SECONDS = 5.0
"""So long after an answer was sent its client has it, if it is still there."""

_ARRIVALS_SECONDS = 1.0
"""Between two looks at what has arrived."""

_LOOK_SECONDS = 15.0
_LEFT_MS = 35_000
GRACE_MS = 1_000
"""So long after a client is gone its acknowledgements still count."""
LONGEST_MS = 3 * 3_600_000
"""After so long a message comes again, whether its client lives or not."""

Holder = tuple[str, str]
"""Group, client id."""


class _Sent(NamedTuple):
    """An answer that was sent: which messages, due when. Its client has it if it is still connected at `arrives`."""

    arrives: float
    connected: Connected
    shares: list[tuple[Share, int]]


class _Held(NamedTuple):
    """What a client holds of a place: as much as is dealt with at a time."""

    holder: Holder
    place: Place
    offsets: list[int]


class Renewals:
    """Renews what living clients hold."""

    def __init__(
        self,
        journal: Journal,
        sessions: Sessions,
        clock: DeliveryClock,
        timers: Timers,
        renewed: Callable[[], None],
    ) -> None:
        """`renewed` is called when messages have other times than before."""
        self._renewed = renewed
        self._journal = journal
        self._sessions = sessions
        self._clock = clock
        self._timers = timers
        self._given: dict[Holder, dict[Place, set[int]]] = {}  # what a client may hold: the ledger says if it does
        self._sent: dict[Holder, deque[_Sent]] = {}
        self._members: set[Holder] = set()
        self._awaited: set[Holder] = set()
        self._heard_early: set[Holder] | None = None  # heard before it is known who is awaited
        self._arriving = False
        self._waiting = False
        self._ended = False

    def start(self) -> None:
        """Begin with what was held before: those clients are awaited."""
        self._heard_early = set()
        in_turns(self._timers, self._held_before(), self._await, self._all_awaited)

    def _held_before(self) -> Iterator[_Held]:
        for progress in self._journal.ledger.all():
            yield from _by_holder(progress, list(progress.holdings))

    def _await(self, held: _Held) -> None:
        if held.offsets:
            self._remember(held.holder, held.place, held.offsets)
            self._awaited.add(held.holder)

    def _all_awaited(self) -> None:
        heard, self._heard_early = self._heard_early or set(), None
        if not self._ended:
            for holder in heard:
                self.heard(*holder)
            self._look()

    def end(self) -> None:
        """Renew nothing any more. What was sent is noted: nothing is on its way when a store has stopped."""
        if self._journal.open:
            for holder in list(self._sent):
                for sent in self._sent.pop(holder):
                    self._note(holder, sent)
        self._ended = True

    # -- who holds what ---------------------------------------------------------------------------------------------

    def sent(self, group: str, client_id: str, shares: Sequence[Share], connected: Connected) -> None:
        """An answer with messages was sent, which a client has for `RENEWED_MS`, with renewal."""
        if self._is_over:
            return
        holder = group, client_id
        dues = [(share, entry.due) for share in shares if (entry := self._entry(share)) is not None]
        self._sent.setdefault(holder, deque()).append(_Sent(self._timers.time() + ARRIVED_SECONDS, connected, dues))
        if self._sessions.get(group, client_id) is not None:
            self._members.add(holder)
        self._arrive_later()

    def _entry(self, share: Share) -> OpenEntry | None:
        return share.entry_in(self._journal.ledger.progress(share.place))

    def _arrive_later(self) -> None:
        if self._sent and not self._arriving:
            self._arriving = True
            self._timers.call_later(_ARRIVALS_SECONDS, self._arrived)

    def _arrived(self) -> None:
        """Note what was sent some seconds ago."""
        self._arriving = False
        if not self._is_over:
            self._arriving = True
            in_turns(self._timers, self._old_answers(), lambda one: self._note(*one), self._all_arrived)

    def _old_answers(self) -> Iterator[tuple[Holder, _Sent]]:
        now = self._timers.time()
        for holder in list(self._sent):
            answers = self._sent.get(holder)
            while answers and answers[0].arrives <= now and not self._is_over:
                one = answers.popleft()
                if not answers:
                    self._sent.pop(holder)
                if one.connected():
                    yield holder, one
                if self._sent.get(holder) is not answers:
                    break  # these were all, or the client is gone

    def _all_arrived(self) -> None:
        self._arriving = False
        self._arrive_later()

    def _note(self, holder: Holder, sent: _Sent) -> None:
        """Note what a client holds of an answer."""
        for place, due, offsets in self._still_given(sent):
            self._remember(holder, place, offsets)
            some = runs(sorted(set(offsets)))
            self._journal.note(*[HeldBy(place, at, count, due, holder[1], due - RENEWED_MS) for at, count in some])
        self._look_later()

    def _still_given(self, sent: _Sent) -> Iterator[tuple[Place, int, list[int]]]:
        """What is still given out as it was when an answer was sent: where, due when, which.

        As it is when each is asked for: turns of the loop may pass between two of them.
        """
        found: dict[tuple[Place, int], list[Share]] = {}
        for share, due in sent.shares:
            found.setdefault((share.place, due), []).append(share)
        for (place, due), shares in found.items():
            entries = ((share.offset, self._entry(share)) for share in shares)
            offsets = [offset for offset, entry in entries if entry is not None and entry.due == due]
            if offsets:
                yield place, due, offsets

    def _remember(self, holder: Holder, place: Place, offsets: Iterable[int]) -> None:
        self._given.setdefault(holder, {}).setdefault(place, set()).update(offsets)

    def _held_by(self, holder: Holder) -> Iterator[_Held]:
        """What a client holds, some at a time; what it was given and does not hold is forgotten."""
        given = self._given.get(holder, {})
        for place, known in list(given.items()):
            for some in pieces(sorted(known)):
                held = self._holds(holder, place, some)
                known.difference_update(some)
                known.update(held)
                yield _Held(holder, place, held)
            if not known and given.get(place) is known:  # else another look has forgotten it, and there are new ones
                del given[place]
        if not given and self._given.get(holder, given) is given:
            self._forget(holder)

    def _holds(self, holder: Holder, place: Place, offsets: Iterable[int]) -> list[int]:
        """Which of some messages a client holds, as the ledger says."""
        progress = self._journal.ledger.progress(place)
        holdings = {} if progress is None else progress.holdings
        return [at for at in offsets if at in holdings and holdings[at].client_id == holder[1]]

    def _forget(self, holder: Holder) -> None:
        self._given.pop(holder, None)
        self._members.discard(holder)
        self._awaited.discard(holder)

    # -- who is there -----------------------------------------------------------------------------------------------

    def heard(self, group: str, client_id: str) -> None:
        """A sign of life. A client that was awaited has another minute; as a member it has more."""
        holder = group, client_id
        if self._heard_early is not None:
            self._heard_early.add(holder)
        if holder in self._awaited:
            self._awaited.discard(holder)
            in_turns(self._timers, self._held_by(holder), self._renew, self._renewed)

    @property
    def awaiting(self) -> bool:
        """Whether clients are awaited that held messages before a start: then `used` is to be told."""
        return bool(self._awaited) or self._heard_early is not None

    def used(self, place: Place, offset: int) -> None:
        """A handle was used: a sign of life of whoever holds the message."""
        if (progress := self._journal.ledger.progress(place)) is not None:
            holding = progress.holdings.get(offset)
            if holding is not None:
                self.heard(place.group, holding.client_id)

    def changed(self, group: str, client_id: str) -> bool:
        """A client came or went as a member of its group; whether it was one, may hold something, and is gone."""
        holder = group, client_id
        if self._sessions.get(group, client_id) is None:
            return holder in self._members
        if holder in self._awaited:
            self._members.add(holder)
            self.heard(group, client_id)
        return False

    def gone(self, group: str, client_id: str) -> None:
        """A client ends: what it holds comes again in a second."""
        holder = group, client_id
        answers, given = self._sent.pop(holder, ()), self._given.pop(holder, {})
        self._forget(holder)
        in_turns(self._timers, self._left_by(holder, answers, given), self._give_back, self._renewed)

    def _left_by(self, holder: Holder, answers: Iterable[_Sent], given: Mapping[Place, set[int]]) -> Iterator[_Held]:
        """What a client held that is gone, some at a time."""
        for sent in answers:
            for place, _, offsets in self._still_given(sent):
                yield _Held(holder, place, offsets)
        for place, known in list(given.items()):
            for some in pieces(sorted(known)):
                yield _Held(holder, place, self._holds(holder, place, some))

    def _give_back(self, held: _Held) -> None:
        progress = self._journal.ledger.progress(held.place)
        if progress is not None and self._journal.open:
            due, entries = self._clock.now_ms() + GRACE_MS, progress.entries
            self._journal.note(*[GivenAgain(held.place, at, entries[at].number, due) for at in held.offsets])

    # -- renewing ---------------------------------------------------------------------------------------------------

    def _look_later(self) -> None:
        if self._given and not self._waiting:
            self._waiting = True
            self._timers.call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._waiting = False
        if not self._is_over:
            self._waiting = True
            in_turns(self._timers, self._held_by_members(), self._renew, self._all_looked_at)

    def _held_by_members(self) -> Iterator[_Held]:
        """What those hold that are members of their groups; what others do not hold any more is forgotten."""
        for holder in list(self._given):
            if self._is_over:
                return
            member = self._sessions.get(*holder) is not None
            if member:
                self._members.add(holder)
                self._awaited.discard(holder)
            for held in self._held_by(holder):
                yield held if member else held._replace(offsets=[])

    def _all_looked_at(self) -> None:
        self._waiting = False
        if not self._is_over:
            self._renewed()
            self._look_later()

    def _renew(self, held: _Held) -> None:
        progress = self._journal.ledger.progress(held.place)
        if progress is None or self._is_over:
            return
        now = self._clock.now_ms()
        soon = [at for at in held.offsets if progress.entries[at].due - now < _LEFT_MS]
        for first, messages, client_id, since in held_runs(soon, progress.holdings):
            if now - since <= LONGEST_MS:
                self._journal.note(HeldBy(held.place, first, messages, now + RENEWED_MS, client_id, since))

    @property
    def _is_over(self) -> bool:
        return self._ended or not self._journal.open


def _by_holder(progress: QueueProgress, offsets: Sequence[int]) -> Iterator[_Held]:
    """Who holds some messages of a place, some at a time."""
    place, holdings = progress.place, progress.holdings
    yield _Held((place.group, ""), place, [])  # of each place, so that many where nothing is held are many steps too
    for some in pieces(offsets):
        held: dict[str, list[int]] = {}
        for offset in some:
            if offset in holdings:
                held.setdefault(holdings[offset].client_id, []).append(offset)
        yield from (_Held((place.group, client_id), place, own) for client_id, own in held.items())
