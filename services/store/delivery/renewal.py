"""Automatic renewal: what a client holds stays invisible for as long as the client lives.

Such messages are given out for a minute, and for another one before that is over, while the client is a member of its
group, for three hours at most. When it is gone they come again at once.
"""

from collections.abc import Callable
from typing import NamedTuple

from tandemmq.store.delivery.answer import Share
from tandemmq.store.delivery.clock import DeliveryClock
from tandemmq.store.delivery.facts import GivenAgain, Place
from tandemmq.store.delivery.journal import Journal
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


class _Held(NamedTuple):
    number: int
    since: int


class Renewals:
    """Who holds what."""

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
        self._held: dict[Holder, dict[tuple[Place, int], _Held]] = {}
        self._holders: dict[tuple[Place, int], Holder] = {}
        self._members: set[Holder] = set()
        self._waiting = False
        self._ended = False

    def end(self) -> None:
        """Renew nothing any more."""
        self._ended = True
        self._held.clear()
        self._holders.clear()

    def hold(self, group: str, client_id: str, share: Share) -> None:
        """A message was given to a client with renewal."""
        holder, spot = (group, client_id), (share.place, share.offset)
        self.drop(*spot)
        self._held.setdefault(holder, {})[spot] = _Held(share.number, self._clock.now_ms())
        self._holders[spot] = holder
        if self._sessions.get(group, client_id) is not None:
            self._members.add(holder)
        if not self._waiting:
            self._waiting = True
            self._timers.call_later(_LOOK_SECONDS, self._look)

    def drop(self, place: Place, offset: int) -> None:
        """A message is dealt with, or its time was changed: it is not renewed any more."""
        holder = self._holders.pop((place, offset), None)
        if holder is not None:
            held = self._held[holder]
            del held[place, offset]
            if not held:
                del self._held[holder]
                self._members.discard(holder)

    @property
    def any(self) -> bool:
        """Whether anything is renewed."""
        return bool(self._holders)

    def changed(self, group: str) -> list[Holder]:
        """Members of a group came or went: the clients that were members, hold something, and are gone."""
        return [holder for holder in list(self._members) if holder[0] == group and self._sessions.get(*holder) is None]

    def gone(self, group: str, client_id: str) -> None:
        """A client ends: what it holds comes again at once."""
        now = self._clock.now_ms()
        for (place, offset), held in list(self._held.get((group, client_id), {}).items()):
            if self._counts(place, offset, held):
                self._journal.note(GivenAgain(place, offset, held.number, now))
            self.drop(place, offset)

    def _counts(self, place: Place, offset: int, held: _Held) -> bool:
        progress = self._journal.ledger.progress(place)
        entry = None if progress is None else progress.entries.get(offset)
        return entry is not None and entry.number == held.number

    def _look(self) -> None:
        self._waiting = False
        if self._ended or not self._journal.open:
            return
        now = self._clock.now_ms()
        for holder, spots in list(self._held.items()):
            alive = self._sessions.get(*holder) is not None
            if alive:
                self._members.add(holder)
            for (place, offset), held in list(spots.items()):
                self._renew(place, offset, held, now, alive=alive)
        self._renewed()
        if self._holders:
            self._waiting = True
            self._timers.call_later(_LOOK_SECONDS, self._look)

    def _renew(self, place: Place, offset: int, held: _Held, now: int, *, alive: bool) -> None:
        progress = self._journal.ledger.progress(place)
        entry = None if progress is None else progress.entries.get(offset)
        if entry is None or entry.number != held.number or now - held.since > LONGEST_MS:
            self.drop(place, offset)
        elif alive and entry.due - now < _LEFT_MS:
            self._journal.note(GivenAgain(place, offset, held.number, now + RENEWED_MS))
