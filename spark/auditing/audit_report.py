"""What an audit has found, for people and programs."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandemmq.spark.auditing.audit_findings import FindingPlace, Findings, QueueKey
from tandemmq.spark.auditing.audit_index import AuditedIndexFile
from tandemmq.spark.auditing.audit_kinds import KINDS, FindingKind
from tandemmq.spark.auditing.audit_statistics import Statistics
from tandemmq.spark.reading.walking import Damage


@dataclass(slots=True)
class QueueAudit:
    """One queue. ``messages`` of the log; ``first``, ``end``: their queue offsets [first, end); ``counts``: by kind."""

    topic: str
    queue_id: int
    messages: int = 0
    first: int = 0
    end: int = 0
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def faults(self) -> int:
        """All that readers of the queue run into."""
        return sum(number for kind, number in self.counts.items() if KINDS[kind].fault)


@dataclass(frozen=True, slots=True)
class RangeAudit:
    """A piece of the log, [begin, end) in log offsets: how many records, wrong units and wrong entries it has."""

    begin: int
    end: int
    records: int
    wrong_units: int
    wrong_entries: int


@dataclass(slots=True)
class AuditReport:
    """``begin``, ``end``: log offsets; ``live``: a broker had the directory, which was compared up to ``end``.

    ``known_end``: the store itself said how far it was. ``index``: None where it was not compared. Times are ms, of
    records 0 without any.
    """

    root: Path
    begin: int = 0
    end: int = 0
    live: bool = False
    known_end: bool = False
    clean_exit: bool = True
    file_size: int = 0
    files: list[int] = field(default_factory=list)
    records: int = 0
    queues_compared: bool = True
    delivery_times_compared: bool = False
    queues: list[QueueAudit] = field(default_factory=list)
    index: list[AuditedIndexFile] | None = None
    index_slots: int = 0
    index_entries: int = 0
    damage: list[Damage] = field(default_factory=list)
    ranges: list[RangeAudit] = field(default_factory=list)
    findings: Findings = field(default_factory=Findings)
    statistics: Statistics = field(default_factory=Statistics)
    made: int = 0
    seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)

    def found(self, *, faults: bool) -> Iterator[tuple[FindingKind, int, list[FindingPlace]]]:
        """Faults, or notes: kind, how many, and places of some; in the order of `KINDS`."""
        for kind in KINDS.values():
            number = self.findings.counts.get(kind.name, 0)
            if kind.fault is faults and number:
                yield kind, number, self.findings.places.get(kind.name, [])

    @property
    def faults(self) -> int:
        """Of all kinds; 0: the store is as it should be."""
        return sum(number for _, number, _ in self.found(faults=True))

    def queue(self, key: QueueKey) -> QueueAudit:
        """A queue of the report. Raises KeyError."""
        for one in self.queues:
            if (one.topic, one.queue_id) == key:
                return one
        raise KeyError(key)

    def document(self) -> dict[str, Any]:
        """As JSON can hold it."""
        totals = self.statistics.totals()
        return {
            "directory": str(self.root),
            "faults": self.faults,
            "live": self.live,
            "clean_exit": self.clean_exit,
            "begin_offset": self.begin,
            "end_offset": self.end,
            "file_size": self.file_size,
            "files": len(self.files),
            "records": self.records,
            "first_time": self.statistics.first_time,
            "last_time": self.statistics.last_time,
            "delivery_times_compared": self.delivery_times_compared,
            "findings": [self._finding(*one) for faults in (True, False) for one in self.found(faults=faults)],
            "damage": [
                {"begin_offset": one.begin, "end_offset": one.end, "kind": one.kind, "reason": one.reason}
                for one in self.damage
            ],
            "topics": [
                {"topic": topic, "messages": messages, "bytes": size}
                for topic, (messages, size) in sorted(totals.items())
            ],
            "queues": [
                {"topic": one.topic, "queue_id": one.queue_id, "messages": one.messages, "first_offset": one.first,
                 "next_offset": one.end, "faults": one.faults, "counts": one.counts}
                for one in self.queues
            ] if self.queues_compared else None,
            "index": None if self.index is None else [
                {"name": one.name, "entries": one.entries, "begin": one.begin_timestamp, "end": one.end_timestamp}
                for one in self.index
            ],
            "index_slots": self.index_slots,
            "index_entries": self.index_entries,
            "seconds": round(self.seconds, 3),
            "phases": {name: round(seconds, 3) for name, seconds in self.phases.items()},
        }  # fmt: skip

    def _finding(self, kind: FindingKind, number: int, places: list[FindingPlace]) -> dict[str, Any]:
        return {
            "kind": kind.name,
            "of": kind.of,
            "fault": kind.fault,
            "count": number,
            "trap": kind.trap,
            "meaning": kind.meaning,
            "places": [place_document(place) for place in places],
        }


def place_document(place: FindingPlace) -> dict[str, Any]:
    """A place as JSON can hold it: only what is known of it."""
    known: dict[str, Any] = {"count": place.count}
    if place.topic or place.queue_id >= 0:
        known |= {"topic": place.topic, "queue_id": place.queue_id}
    if place.queue_offset >= 0:
        known["queue_offset"] = place.queue_offset
    if place.physical_offset >= 0:
        known["physical_offset"] = place.physical_offset
    if place.physical_end >= 0:
        known["physical_end"] = place.physical_end
    if place.file:
        known["file"] = place.file
    if place.told:
        known["told"] = place.told
    return known


def place_words(place: FindingPlace) -> str:
    """A place in words: ``orders queue 1 offsets 10 to 19; log offset 4,711: another tag``."""
    parts = []
    if place.topic or place.queue_id >= 0:
        last = place.queue_offset + place.count - 1
        offsets = (
            f"offset {place.queue_offset:,}" if place.count == 1 else f"offsets {place.queue_offset:,} to {last:,}"
        )
        parts.append(f"{place.topic} queue {place.queue_id}" + (f" {offsets}" if place.queue_offset >= 0 else ""))
    if place.file:
        parts.append(f"file {place.file}")
    if place.physical_end > place.physical_offset:
        parts.append(f"log offsets {place.physical_offset:,} to {place.physical_end:,}")
    elif place.physical_offset >= 0:
        parts.append(f"log offset {place.physical_offset:,}")
    where = "; ".join(parts)
    return f"{where}: {place.told}" if place.told and where else where or place.told
