"""Counting what an audit finds: exact numbers for all of it, places for the first of each kind."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass, field, replace
from typing import Any

QueueKey = tuple[str, int]


def _order(place: "FindingPlace") -> tuple[int, str, int, int, str]:
    return place.physical_offset, place.topic, place.queue_id, place.queue_offset, place.file


@dataclass(frozen=True, slots=True)
class FindingPlace:
    """Where something was found: ``count`` of it in a row.

    ``queue_offset``: the first number in the queue. ``physical_offset``: the first place in the log;
    ``physical_end``: after the last. All -1 where there are none. ``file``: of the index or of a queue. ``told``: what
    else there is to say.
    """

    topic: str = ""
    queue_id: int = -1
    queue_offset: int = -1
    physical_offset: int = -1
    physical_end: int = -1
    count: int = 1
    file: str = ""
    told: str = ""

    @property
    def subject(self) -> tuple[str, int, str, str]:
        """What must be the same of places that are one stretch."""
        return self.topic, self.queue_id, self.file, self.told

    def joins(self, after: "FindingPlace") -> bool:
        """Whether ``after``, of the same subject, goes on where this one ends: in the queue, else in the log."""
        if self.queue_offset >= 0:
            return self.queue_offset + self.count == after.queue_offset
        return self.physical_end >= 0 and self.physical_end == after.physical_offset

    def joined(self, after: "FindingPlace") -> "FindingPlace":
        """Both in one."""
        return replace(self, count=self.count + after.count, physical_end=after.physical_end)


@dataclass(slots=True)
class Findings:
    """Counts by kind and queue, and up to ``limit`` places of each kind."""

    limit: int = 20
    counts: dict[str, int] = field(default_factory=dict)
    by_queue: dict[QueueKey, dict[str, int]] = field(default_factory=dict)
    places: dict[str, list[FindingPlace]] = field(default_factory=dict)
    _last: dict[tuple[str, tuple[str, int, str, str]], int] = field(default_factory=dict, repr=False, compare=False)
    """Which of the places of a kind is the last of its subject."""

    def __post_init__(self) -> None:
        """Places may have been given."""
        for kind in self.places:
            self._find_last(kind)

    def add(self, kind: str, place: FindingPlace) -> None:
        """Count a place, and remember it if there is room, or if it goes on from one that is remembered."""
        self.count(kind, place.count, place.topic, place.queue_id)
        self._remember(kind, place)

    def count(self, kind: str, number: int, topic: str = "", queue_id: int = -1) -> None:
        """Count ``number`` of a kind without a place."""
        if not number:
            return
        self.counts[kind] = self.counts.get(kind, 0) + number
        if topic or queue_id >= 0:
            of_queue = self.by_queue.setdefault((topic, queue_id), {})
            of_queue[kind] = of_queue.get(kind, 0) + number

    def merge(self, other: "Findings") -> None:
        """Take over what another has found, which comes after this in the order of the log."""
        for kind, number in other.counts.items():
            self.counts[kind] = self.counts.get(kind, 0) + number
        for key, of_queue in other.by_queue.items():
            mine = self.by_queue.setdefault(key, {})
            for kind, number in of_queue.items():
                mine[kind] = mine.get(kind, 0) + number
        for kind, places in other.places.items():
            for place in places:
                self._remember(kind, place)

    def forget(self, queues: Iterable[QueueKey], kinds: Iterable[str]) -> None:
        """Drop what was found of some kinds in some queues: they are looked at again."""
        dropped = set(queues)
        for kind in kinds:
            for key in dropped:
                self.counts[kind] = self.counts.get(kind, 0) - self.by_queue.get(key, {}).pop(kind, 0)
            self.places[kind] = [
                place for place in self.places.get(kind, ()) if (place.topic, place.queue_id) not in dropped
            ]
            self._find_last(kind)

    def trim(self, limit: int) -> None:
        """Keep the first ``limit`` places of each kind, in the order of the log, then of queues and files."""
        self.limit = limit
        for kind, places in self.places.items():
            self.places[kind] = sorted(places, key=_order)[:limit]
            self._find_last(kind)

    def _remember(self, kind: str, place: FindingPlace) -> None:
        known = self.places.setdefault(kind, [])
        at = self._last.get((kind, place.subject))
        if at is not None and known[at].joins(place):
            known[at] = known[at].joined(place)
        elif len(known) < self.limit:
            self._last[kind, place.subject] = len(known)
            known.append(place)

    def _find_last(self, kind: str) -> None:
        self._last = {key: at for key, at in self._last.items() if key[0] != kind}
        self._last |= {(kind, place.subject): at for at, place in enumerate(self.places[kind])}

    def document(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "limit": self.limit,
            "counts": self.counts,
            "by_queue": [[*key, of_queue] for key, of_queue in self.by_queue.items()],
            "places": {kind: [list(astuple(place)) for place in places] for kind, places in self.places.items()},
        }

    @classmethod
    def read(cls, document: dict[str, Any]) -> "Findings":
        """The inverse of `document`."""
        return cls(
            document["limit"],
            dict(document["counts"]),
            {(topic, queue_id): dict(counts) for topic, queue_id, counts in document["by_queue"]},
            {kind: [FindingPlace(*place) for place in places] for kind, places in document["places"].items()},
        )
