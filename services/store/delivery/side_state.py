"""What receiving keeps in mind beside the ledger. None of it has to survive: a start begins without it."""

from collections.abc import Collection, Iterable

from tandemmq.store.delivery.facts import Place
from tandemmq.store.delivery.handles import ReceiptHandle
from tandemmq.store.delivery.ledger import Ledger
from tandemmq.store.delivery.progress import QueueProgress


class SideState:
    """By place: which handles of earlier starts still count, what waits for a retry, and who waits for room."""

    def __init__(self, ledger: Ledger, start: int) -> None:
        """To be made when delivery begins, with the ledger as it is then."""
        self.start = start
        self._ledger = ledger
        self._given_before = {one.place: one.given for one in ledger.all() if one.entries}
        self._again: dict[Place, set[int]] = {}
        self._waiting: dict[Place, set[int]] = {}
        self._blocked: set[Place] = set()
        self.all_blocked = False
        """Somebody may wait for room in the store as a whole."""

    # -- handles ----------------------------------------------------------------------------------------------------

    def counts(self, handle: ReceiptHandle, progress: QueueProgress) -> bool:
        """Whether a handle names the newest delivery of its message.

        One of an earlier start counts while its message was not given out by this one: facts of the last moments may
        have been lost with that start, and then the numbers repeat.
        """
        entry = progress.entries.get(handle.offset)
        if entry is None or entry.number != handle.number:
            return False
        return handle.start == self.start or handle.offset not in self._again.get(handle.place, ())

    def given_again(self, place: Place, offset: int) -> None:
        """A message that has an entry was given out."""
        if offset < self._given_before.get(place, 0):
            self._again.setdefault(place, set()).add(offset)
        self.no_retry(place, offset)

    # -- in flight --------------------------------------------------------------------------------------------------

    def waits_for_retry(self, place: Place, offset: int) -> None:
        """Its consumer has said when it is to come again: nobody holds it."""
        self._waiting.setdefault(place, set()).add(offset)

    def places_put_off(self) -> list[Place]:
        """Places that have such messages."""
        return list(self._waiting)

    def put_off(self, place: Place) -> Collection[int]:
        """Offsets of such messages of a place; some may have come due again."""
        return self._waiting.get(place, ())

    def no_retry(self, place: Place, offset: int) -> None:
        """It was given out, or is dealt with."""
        waiting = self._waiting.get(place)
        if waiting is not None:
            waiting.discard(offset)
            if not waiting:
                del self._waiting[place]

    def held(self, place: Place) -> int:
        """Messages that somebody holds, counted one by one: for people."""
        waiting = self._waiting.get(place, ())
        return self._ledger.in_flight(place) - sum(not self._ledger.is_ready(place, offset) for offset in waiting)

    def in_flight(self, place: Place) -> int:
        """Messages that somebody holds, or fewer: those that wait for a retry which is due count twice."""
        return max(self._ledger.in_flight(place) - len(self._waiting.get(place, ())), 0)

    def waiting(self, place: Place) -> int:
        """Messages whose consumer has said when they are to come again."""
        return len(self._waiting.get(place, ()))

    # -- room -------------------------------------------------------------------------------------------------------

    def block(self, place: Place, *, by_all: bool) -> None:
        """So many messages of a place, or of all places, are in flight that no more are given."""
        self._blocked.add(place)
        self.all_blocked = self.all_blocked or by_all

    def dealt(self, place: Place, offsets: Iterable[int]) -> bool:
        """Messages are dealt with; whether somebody may wait for the room."""
        if place in self._waiting or place in self._again:
            again = self._again.get(place, set())
            for offset in offsets:
                self.no_retry(place, offset)
                again.discard(offset)
        if place in self._blocked:
            self._blocked.discard(place)
            return True
        return False

    def unblock_all(self) -> list[Place]:
        """All places for which somebody may wait; none of them from now on."""
        blocked, self._blocked, self.all_blocked = list(self._blocked), set(), False
        return blocked

    def moved(self, place: Place) -> None:
        """The cursor was set."""
        self._waiting.pop(place, None)
        self._again.pop(place, None)
