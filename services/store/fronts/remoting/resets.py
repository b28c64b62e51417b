"""Resets: positions that an operator has set, until the consumer of each queue reads from there.

A classic consumer keeps positions in memory and commits them as it goes; what it commits before it goes on at the new
position would undo the reset. Push consumers are told at once (RESET_CONSUMER_CLIENT_OFFSET, as RocketMQ 4 does). They
drop what they have, and go on at the new position 10 s later. To others the next pull tells it (RocketMQ 5:
``useServerSideResetOffset``). Until a pull comes from the new position, commits do not count.
"""

from collections.abc import Callable, Sequence

from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.ledger.ledger import Ledger

FORGOTTEN_SECONDS = 300.0
"""After so long commits count again: of a consumer that goes on elsewhere, too."""
UNDER_WAY_SECONDS = 20.0
"""So long after it was told, what a client pulls from elsewhere was under way before. Later it has not understood."""


class ClassicResets:
    """Those from which consumers do not read yet."""

    def __init__(self, ledger: Ledger, now: Callable[[], float]) -> None:
        self._ledger = ledger
        self._now = now
        self._since: dict[Place, float] = {}
        self._heard = set[Place]()
        """Told by an answer to a pull."""
        self.on_reset: Callable[[str, str], None] = lambda group, topic: None
        """Hears of the group and topic: held pulls are to be answered."""

    def note(self, group: str, topic: str, queues: Sequence[int]) -> dict[int, int]:
        """Positions of the group were set in these queues; gives them by queue."""
        now = self._now()
        self._since = {place: since for place, since in self._since.items() if now - since < FORGOTTEN_SECONDS}
        places = (self._ledger.progress(Place(group, topic, queue)) for queue in queues)
        set_now = {progress.place: progress.cursor for progress in places if progress is not None}
        self._since.update(dict.fromkeys(set_now, now))
        self._heard.intersection_update(self._since.keys() - set_now.keys())
        self.on_reset(group, topic)
        return {place.queue: cursor for place, cursor in set_now.items()}

    def pending(self, place: Place) -> int | None:
        """The position from which the consumer of a queue does not read yet, if there is one."""
        since = self._since.get(place)
        if since is None or self._now() - since >= FORGOTTEN_SECONDS:
            return None
        progress = self._ledger.progress(place)
        return None if progress is None else progress.cursor

    def concerns(self, group: str, topic: str, queue: int) -> bool:
        """Whether there is one in a queue."""
        return bool(self._since) and self.pending(Place(group, topic, queue)) is not None

    def untold(self, place: Place, offset: int, told: bool) -> int | None:
        """The position for the answer to a consumer that reads a queue from `offset`: once, and not where it is.

        `told`: its client was told when it was set.
        """
        position = self.pending(place)
        if offset == position:
            del self._since[place]
            self._heard.discard(place)
            return None
        if position is None or place in self._heard:
            return None
        if told and self._now() - self._since[place] < UNDER_WAY_SECONDS:
            return None
        self._heard.add(place)
        return position
