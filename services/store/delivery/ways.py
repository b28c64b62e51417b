"""In which ways groups consume, and what is done to their offsets from outside: in the metadata service.

A group has one position however its members consume. One that receives with acknowledgement and commits offsets at
the same time is mixed: it may get messages twice, and people should see that.
"""

from collections.abc import Sequence
from enum import Enum

from tandemmq.common.slices import in_turns
from tandemmq.common.timers import Timers
from tandemmq.store.delivery.facts import Place
from tandemmq.store.delivery.journal import Journal
from tandemmq.store.delivery.progress import QueueProgress
from tandemmq.store.delivery.sessions import OffsetsReset, Sessions

REMEMBERED_SECONDS = 600.0
"""A way counts for so long after it was last gone."""


class Way(Enum):
    """How a group consumes."""

    ACKNOWLEDGES = "acknowledges"
    """It receives, and acknowledges each message."""
    COMMITS = "commits"
    """It pulls, and commits offsets."""


class Ways:
    """Remembers the ways of all groups, and tells the members of a group when its offsets are reset outside."""

    def __init__(self, timers: Timers, journal: Journal, sessions: Sessions) -> None:
        self._timers = timers
        self._journal = journal
        self._sessions = sessions
        self._seen: dict[tuple[str, Way], float] = {}
        self._resets: dict[Place, int] = {}
        journal.moved_outside.append(self._moved)

    def start(self) -> None:
        """A `lifecycle.MasterService`: what was reset before is no news."""
        self._resets = {}
        in_turns(self._timers, self._journal.ledger.all(), self._know, lambda: None)

    def _know(self, progress: QueueProgress) -> None:
        if progress.resets:
            self._resets.setdefault(progress.place, progress.resets)

    async def stop(self) -> None:
        """Nothing is counted any more."""
        self._seen.clear()

    def reset_here(self, group: str, topic: str) -> None:
        """Offsets were reset through this store: its members know already."""
        for progress in self._journal.ledger.places(group, topic):
            self._resets[progress.place] = progress.resets

    def seen(self, group: str, way: Way) -> None:
        """The group has just consumed in this way. Called for each receive: it must cost nothing."""
        self._seen[group, way] = self._timers.time()

    def of(self, group: str) -> frozenset[Way]:
        """The ways that the group has gone of late."""
        since = self._timers.time() - REMEMBERED_SECONDS
        return frozenset(way for way in Way if self._seen.get((group, way), since) > since)

    def _moved(self, places: Sequence[Place]) -> None:
        """Cursors were set by the metadata service: a commit, or somebody's reset."""
        reset: set[tuple[str, str]] = set()
        for place in places:
            progress = self._journal.ledger.progress(place)
            resets = 0 if progress is None else progress.resets
            if resets > self._resets.get(place, 0):
                self._resets[place] = resets
                reset.add((place.group, place.topic))
            else:
                self.seen(place.group, Way.COMMITS)
        for group, topic in sorted(reset):
            self._sessions.ask_consumers(group, OffsetsReset(group, topic))
