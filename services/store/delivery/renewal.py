"""Automatic renewal: what a client holds stays invisible for as long as the client lives.

Such messages are given out for a minute, and for another one before that is over, while the client is a member of its
group, for three hours at most. When it is gone they come again at once. Who holds what is in the ledger
(`facts.HeldBy`), so it is known after a start or promotion: then clients have half a minute to come back.

It is noted a few seconds after the answer was sent, or when the store stops. What a kill has caught on its way, or the
end of the connection on which it was sent, may never have arrived: it comes again when its minute is over, though the
client lives.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tandemmq.common.timers import Timers
from tandemmq.store.delivery.answer import Share
from tandemmq.store.delivery.clock import DeliveryClock
from tandemmq.store.delivery.facts import GivenAgain, HeldBy, Place
from tandemmq.store.delivery.journal import Journal
from tandemmq.store.delivery.port import Connected
from tandemmq.store.delivery.progress import OpenEntry, QueueProgress, held_runs, runs
from tandemmq.store.delivery.sessions import Sessions
from tandemmq.store.log.edges.slices import in_turns

RENEWED_MS = 60_000
"""For so long a message with renewal is given out at a time."""

ARRIVED_SECONDS = 5.0
"""So long after an answer was sent its client has it, if it is still there."""

_ARRIVALS_SECONDS = 1.0
"""Between two looks at what has arrived."""

_LOOK_SECONDS = 15.0
_LEFT_MS = 35_000
LONGEST_MS = 3 * 3_600_000
"""After so long a message comes again, whether its client lives or not."""

Holder = tuple[str, str]
"""Group, client id."""


class _Sent(NamedTuple):
    """An answer that was sent: which messages, due when. Its client has it if it is still connected at `arrives`."""

    arrives: float
    connected: Connected
    shares: list[tuple[Share, int]]


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
        self._sent: dict[Holder, list[_Sent]] = {}
        self._members: set[Holder] = set()
        self._awaited: set[Holder] = set()
        self._arriving = False
        self._waiting = False
        self._ended = False

    def start(self) -> None:
        """Begin with what was held before: those clients are awaited."""
        for progress in self._journal.ledger.all():
            for offset, holding in progress.holdings.items():
                self._remember((progress.place.group, holding.client_id), progress.place, (offset,))
        self._awaited.update(self._given)
        self._look()

    def end(self) -> None:
        """Renew nothing any more. What was sent is noted: nothing is on its way when a store has stopped."""
        if self._journal.open:
            for holder in list(self._sent):
                self._note(holder, self._sent.pop(holder))
        self._ended = True

    # -- who holds what ---------------------------------------------------------------------------------------------

    def sent(self, group: str, client_id: str, shares: Sequence[Share], connected: Connected) -> None:
        """An answer with messages was sent, which a client has for `RENEWED_MS`, with renewal."""
        if self._ended or not self._journal.open:
            return
        holder = group, client_id
        dues = [(share, entry.due) for share in shares if (entry := self._entry(share)) is not None]
        self._sent.setdefault(holder, []).append(_Sent(self._timers.time() + ARRIVED_SECONDS, connected, dues))
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
        if self._ended or not self._journal.open:
            return
        self._arriving = True
        in_turns(self._timers, list(self._sent), self._arrived_at, self._all_arrived)

    def _arrived_at(self, holder: Holder) -> None:
        answers = self._sent.get(holder)
        if answers is None or self._ended or not self._journal.open:
            return
        now = self._timers.time()
        old = [one for one in answers if one.arrives <= now]
        del answers[: len(old)]
        if not answers:
            del self._sent[holder]
        self._note(holder, [one for one in old if one.connected()])

    def _all_arrived(self) -> None:
        self._arriving = False
        self._arrive_later()

    def _note(self, holder: Holder, answers: Iterable[_Sent]) -> None:
        """Note what a client holds of some answers: what is still given out as it was then."""
        held: dict[tuple[Place, int], list[int]] = {}
        for share, due in (one for answer in answers for one in answer.shares):
            entry = self._entry(share)
            if entry is not None and entry.due == due:
                held.setdefault((share.place, due), []).append(share.offset)
        for (place, due), offsets in held.items():
            self._remember(holder, place, offsets)
            some = runs(sorted(set(offsets)))
            self._journal.note(*[HeldBy(place, at, count, due, holder[1], due - RENEWED_MS) for at, count in some])
        self._look_later()

    def _remember(self, holder: Holder, place: Place, offsets: Iterable[int]) -> None:
        self._given.setdefault(holder, {}).setdefault(place, set()).update(offsets)

    def _held_by(self, holder: Holder) -> list[tuple[QueueProgress, list[int]]]:
        """What a client holds; what it was given and does not hold is forgotten."""
        found = []
        for place, given in self._given.pop(holder, {}).items():
            progress = self._journal.ledger.progress(place)
            holdings = {} if progress is None else progress.holdings
            held = sorted(at for at in given if at in holdings and holdings[at].client_id == holder[1])
            if progress is not None and held:
                found.append((progress, held))
        if found:
            self._given[holder] = {progress.place: set(held) for progress, held in found}
        else:
            self._forget(holder)
        return found

    def _forget(self, holder: Holder) -> None:
        self._given.pop(holder, None)
        self._members.discard(holder)
        self._awaited.discard(holder)

    # -- who is there -----------------------------------------------------------------------------------------------

    def heard(self, group: str, client_id: str) -> None:
        """A sign of life. A client that was awaited has another minute; as a member it has more."""
        holder = group, client_id
        if holder in self._awaited:
            self._awaited.discard(holder)
            self._renew(holder)
            self._renewed()

    def used(self, place: Place, offset: int) -> None:
        """A handle was used: a sign of life of whoever holds the message."""
        if self._awaited and (progress := self._journal.ledger.progress(place)) is not None:
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
        """A client ends: what it holds comes again at once."""
        holder, now = (group, client_id), self._clock.now_ms()
        self._note(holder, self._sent.pop(holder, ()))
        for progress, offsets in self._held_by(holder):
            self._journal.note(*[GivenAgain(progress.place, at, progress.entries[at].number, now) for at in offsets])
        self._forget(holder)

    # -- renewing ---------------------------------------------------------------------------------------------------

    def _look_later(self) -> None:
        if self._given and not self._waiting:
            self._waiting = True
            self._timers.call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._waiting = False
        if self._ended or not self._journal.open:
            return
        self._waiting = True
        in_turns(self._timers, list(self._given), self._look_at, self._all_looked_at)

    def _look_at(self, holder: Holder) -> None:
        if self._ended or not self._journal.open:
            return
        if self._sessions.get(*holder) is not None:
            self._members.add(holder)
            self._awaited.discard(holder)
            self._renew(holder)
        else:
            self._held_by(holder)

    def _all_looked_at(self) -> None:
        self._waiting = False
        if not self._ended and self._journal.open:
            self._renewed()
            self._look_later()

    def _renew(self, holder: Holder) -> None:
        now = self._clock.now_ms()
        for progress, offsets in self._held_by(holder):
            soon = [at for at in offsets if progress.entries[at].due - now < _LEFT_MS]
            for first, messages, client_id, since in held_runs(soon, progress.holdings):
                if now - since <= LONGEST_MS:
                    due = now + RENEWED_MS
                    self._journal.note(HeldBy(progress.place, first, messages, due, client_id, since))
