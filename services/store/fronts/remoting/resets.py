"""Resets: positions that an operator has set, until the consumer of each queue reads from there.

A classic consumer keeps positions in memory and commits them as it goes; what it commits before it goes on at the new
position would undo the reset. Its next pull is answered with that position (RocketMQ 5: ``useServerSideResetOffset``).
Clients of 4.9 go on there 10 s later, and commit what they had before until then. So commits do not count until a pull
comes from the new position.
"""

from collections.abc import Callable

from tandemmq.store.delivery.facts import Place
from tandemmq.store.delivery.ledger import Ledger

FORGOTTEN_SECONDS = 300.0
"""After so long commits count again: of a consumer that goes on elsewhere, too."""


class ClassicResets:
    """Those from which consumers do not read yet."""

    def __init__(self, ledger: Ledger, now: Callable[[], float]) -> None:
        self._ledger = ledger
        self._now = now
        self._since: dict[Place, float] = {}
        self._told = set[Place]()
        self.on_reset: Callable[[str, str], None] = lambda group, topic: None
        """Hears of the group and topic: held pulls are to be answered."""

    def note(self, group: str, topic: str) -> dict[int, int]:
        """Positions of the group were set; gives them by queue."""
        now = self._now()
        self._since = {place: since for place, since in self._since.items() if now - since < FORGOTTEN_SECONDS}
        set_now = {progress.place: progress.cursor for progress in self._ledger.places(group, topic)}
        self._since.update(dict.fromkeys(set_now, now))
        self._told.intersection_update(self._since.keys() - set_now.keys())
        self.on_reset(group, topic)
        return {place.queue: cursor for place, cursor in set_now.items()}

    def pending(self, place: Place) -> int | None:
        """The position from which the consumer of a queue does not read yet, if there is one."""
        since = self._since.get(place)
        if since is None or self._now() - since >= FORGOTTEN_SECONDS:
            return None
        progress = self._ledger.progress(place)
        return None if progress is None else progress.cursor

    def untold(self, place: Place, offset: int) -> int | None:
        """The position that is to be told to a consumer that reads a queue from `offset`: once, and not where it is."""
        position = self.pending(place)
        if offset == position:
            del self._since[place]
            self._told.discard(place)
        elif position is not None and place not in self._told:
            self._told.add(place)
            return position
        return None
