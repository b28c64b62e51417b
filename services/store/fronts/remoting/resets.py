"""PendingResets: positions that an operator has set, until the consumer of each queue has heard of it.

A classic consumer keeps positions in memory and commits them as it goes; what it commits before it has heard of the
reset would undo that. So its commits do not count until its next pull was answered with the new position (RocketMQ 5:
``useServerSideResetOffset``).
"""

from collections.abc import Callable

from tandemmq.store.delivery.facts import Place
from tandemmq.store.delivery.ledger import Ledger

FORGOTTEN_SECONDS = 300.0
"""After so long whoever has the queue then has read the new position."""


class PendingResets:
    """Those that consumers have not heard of."""

    def __init__(self, ledger: Ledger, now: Callable[[], float]) -> None:
        self._ledger = ledger
        self._now = now
        self._since: dict[Place, float] = {}
        self.on_reset: Callable[[str, str], None] = lambda group, topic: None
        """Hears of the group and topic: held pulls are to be answered."""

    def note(self, group: str, topic: str) -> dict[int, int]:
        """Positions of the group were set; gives them by queue."""
        now = self._now()
        self._since = {place: since for place, since in self._since.items() if now - since < FORGOTTEN_SECONDS}
        set_now = {progress.place: progress.cursor for progress in self._ledger.places(group, topic)}
        self._since.update(dict.fromkeys(set_now, now))
        self.on_reset(group, topic)
        return {place.queue: cursor for place, cursor in set_now.items()}

    def pending(self, place: Place) -> int | None:
        """The position that the consumer of a queue has not heard of, if there is one."""
        if not self._since or place not in self._since:
            return None
        progress = self._ledger.progress(place)
        return None if progress is None else progress.cursor

    def heard(self, place: Place) -> None:
        """The consumer of a queue is told."""
        self._since.pop(place, None)
