"""Automatic renewal: what a client holds stays invisible for as long as the client lives.

Such messages are given out for a minute, and for another one before that is over, while the client is a member of its
group, for three hours at most. When it is gone they come again at once. Who holds what is in the ledger
(`facts.HeldBy`), so it is known after a start or promotion: then clients have half a minute to come back.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import attrgetter

from tandemmq.store.delivery.answer import Share
from tandemmq.store.delivery.clock import DeliveryClock
from tandemmq.store.delivery.facts import GivenAgain, HeldBy, Place
from tandemmq.store.delivery.journal import Journal
from tandemmq.store.delivery.progress import QueueProgress, held_runs, runs
from tandemmq.store.delivery.sessions import Sessions
from tandemmq.store.log.edges.timers import Timers

RENEWED_MS = 60_000
"""For so long a message with renewal is given out at a time."""

_LOOK_SECONDS = 15.0
_LEFT_MS = 35_000
LONGEST_MS = 3 * 3_600_000
"""After so long a message comes again, whether its client lives or not."""

Holder = tuple[str, str]
"""Group, client id."""


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
        self._members: set[Holder] = set()
        self._awaited: set[Holder] = set()
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
        """Renew nothing any more."""
        self._ended = True

    # -- who holds what ---------------------------------------------------------------------------------------------

    def hold(self, group: str, client_id: str, shares: Sequence[Share]) -> None:
        """Messages were given to a client for `RENEWED_MS`, with renewal."""
        holder, facts = (group, client_id), []
        for place, some in groupby(shares, attrgetter("place")):
            offsets = [share.offset for share in some]
            self._remember(holder, place, offsets)
            progress = self._journal.ledger.progress(place)
            entries = {} if progress is None else progress.entries
            for first, messages in runs(sorted(offsets)):
                due = entries[first].due
                facts.append(HeldBy(place, first, messages, due, client_id, due - RENEWED_MS))
        self._journal.note(*facts)
        if self._sessions.get(group, client_id) is not None:
            self._members.add(holder)
        self._look_later()

    def let_go(self, shares: Iterable[Share]) -> None:
        """Messages come again when their time is over, unless somebody changes that."""
        for place, offset, number, resets in shares:
            progress = self._journal.ledger.progress(place)
            if progress is None or progress.resets != resets or offset not in progress.holdings:
                continue
            entry = progress.entries[offset]
            if entry.number == number:
                self._journal.note(GivenAgain(place, offset, number, entry.due))

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

    def changed(self, group: str) -> list[Holder]:
        """Members of a group came or went: the clients that were members, hold something, and are gone."""
        for holder in [one for one in self._awaited if one[0] == group]:
            if self._sessions.get(*holder) is not None:
                self._members.add(holder)
                self.heard(*holder)
        return [holder for holder in self._members if holder[0] == group and self._sessions.get(*holder) is None]

    def gone(self, group: str, client_id: str) -> None:
        """A client ends: what it holds comes again at once."""
        holder, now = (group, client_id), self._clock.now_ms()
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
        for holder in list(self._given):
            if self._sessions.get(*holder) is not None:
                self._members.add(holder)
                self._awaited.discard(holder)
                self._renew(holder)
            else:
                self._held_by(holder)
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
