"""In which ways groups consume, and what is done to their offsets from outside: in the metadata service.

A group has one position however its members consume. One that receives with acknowledgement and commits offsets at
the same time is mixed: it may get messages twice, and people should see that.
"""

from collections.abc import Sequence, Set
from enum import StrEnum

from tandemmq.common.timers import Timers
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.members.sessions import OffsetsReset, Sessions

REMEMBERED_SECONDS = 600.0
"""A way counts for so long after it was last gone."""


class Way(StrEnum):
    """How a group consumes."""

    ACKNOWLEDGES = "acknowledges"
    """It receives, and acknowledges each message."""
    COMMITS = "commits"
    """It pulls, and commits offsets."""


class Ways:
    """Remembers the ways of all groups, and tells the members of a group when its offsets are reset outside."""

    def __init__(self, timers: Timers, journal: Journal, sessions: Sessions) -> None:
        self._timers = timers
        self._sessions = sessions
        self._seen: dict[tuple[str, Way], float] = {}
        journal.moved_outside.append(self._moved)

    def start(self) -> None:
        """A `lifecycle.MasterService`: there is nothing to begin."""

    async def stop(self) -> None:
        """Nothing is counted any more."""
        self._seen.clear()

    def seen(self, group: str, way: Way) -> None:
        """The group has just consumed in this way. Called for each receive: it must cost nothing."""
        self._seen[group, way] = self._timers.time()

    def of(self, group: str) -> frozenset[Way]:
        """The ways that the group has gone of late."""
        since = self._timers.time() - REMEMBERED_SECONDS
        return frozenset(way for way in Way if self._seen.get((group, way), since) > since)

    def _moved(self, places: Sequence[Place], reset: Set[Place]) -> None:
        """Cursors were set by the metadata service: commits, or somebody's reset."""
        for place in places:
            if place not in reset:
                self.seen(place.group, Way.COMMITS)
        queues: dict[tuple[str, str], list[int]] = {}
        for place in sorted(reset):
            queues.setdefault((place.group, place.topic), []).append(place.queue)
        for (group, topic), found in queues.items():
            self._sessions.ask_consumers(group, OffsetsReset(group, topic, tuple(found)))
