"""What receiving keeps in mind beside the ledger. None of it has to survive: a start begins without it."""

from tandemmq.store.delivery.facts import Dealt, Place
from tandemmq.store.delivery.handles import ReceiptHandle
from tandemmq.store.delivery.ledger import Ledger
from tandemmq.store.delivery.progress import OpenEntry, QueueProgress


class SideState:
    """By place: which handles of earlier starts still count, and who waits for room."""

    def __init__(self, ledger: Ledger, start: int) -> None:
        """`start`: the number of this start."""
        self.start = start
        self._ledger = ledger
        self._given_before: dict[Place, int] = {}
        self._again: dict[Place, set[int]] = {}
        self._blocked: set[Place] = set()
        self.all_blocked = False
        """Somebody may wait for room in the store as a whole."""

    # -- handles ----------------------------------------------------------------------------------------------------

    def counts(self, handle: ReceiptHandle, entry: OpenEntry) -> bool:
        """Whether a handle names the newest delivery of its message, whose entry that is.

        One of an earlier start counts while its message was not given out by this one: facts of the last moments may
        have been lost with that start, and then the numbers repeat.
        """
        if entry.number != handle.number or self.is_of_another(handle):
            return False
        return handle.start == self.start or handle.offset not in self._again.get(handle.place, ())

    def is_of_another(self, handle: ReceiptHandle) -> bool:
        """Whether a handle of an earlier start names what this start was the first to give out.

        That may be another message: the one that was there before was lost with its start, as the fact that it was
        given out. Of no use for what has been dealt with. A handle that has outlived another start since, a clean one
        too, is taken at its word: see known-faults.md.
        """
        before = self._given_before.get(handle.place)
        return handle.start != self.start and before is not None and handle.offset >= before

    def begins_to_give(self, progress: QueueProgress) -> None:
        """Messages of a place are about to be given out for the first time; what is before them was by others."""
        if progress.place not in self._given_before:
            self._given_before[progress.place] = progress.given

    def given_again(self, place: Place, offset: int) -> None:
        """A message that has an entry was given out."""
        self._again.setdefault(place, set()).add(offset)

    # -- in flight --------------------------------------------------------------------------------------------------

    def waits_for_retry(self, place: Place, offset: int) -> None:
        """Its consumer has said when it is to come again: nobody holds it."""
        self._ledger.put_off(place, offset)

    def in_flight(self, place: Place) -> int:
        """Messages that somebody holds: what waits for a retry, or is due again, is not among them."""
        return self._ledger.in_flight(place) - len(self._ledger.put_off_at(place))

    # -- room -------------------------------------------------------------------------------------------------------

    def block(self, place: Place, *, by_all: bool) -> None:
        """So many messages of a place, or of all places, are in flight that no more are given."""
        self._blocked.add(place)
        self.all_blocked = self.all_blocked or by_all

    def dealt(self, fact: Dealt) -> bool:
        """Messages are dealt with; whether somebody may wait for the room."""
        if not self._again and not self._blocked:
            return False
        place = fact.place
        again = self._again.get(place)
        if again is not None:
            again.difference_update(range(fact.first, fact.first + fact.messages))
            if not again:
                del self._again[place]
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
        self._again.pop(place, None)
