"""What receiving keeps in mind beside the ledger. None of it has to survive: a start begins without it."""

from collections.abc import Collection, Sequence

from tandemmq.store.delivery.journal.facts import Dealt, Place
from tandemmq.store.delivery.ledger.ledger import Ledger


class SideState:
    """By place: who holds messages, and who waits for room."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._blocked: set[Place] = set()
        self.all_blocked = False
        """Somebody may wait for room in the store as a whole."""

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

    def unblock(self, facts: Sequence[Dealt]) -> Collection[Place]:
        """Messages are dealt with; the places where somebody may wait for the room."""
        if not self._blocked:
            return ()
        places = {fact.place for fact in facts if fact.place in self._blocked}
        self._blocked -= places
        return places

    def unblock_all(self) -> list[Place]:
        """All places for which somebody may wait; none of them from now on."""
        blocked, self._blocked, self.all_blocked = list(self._blocked), set(), False
        return blocked
