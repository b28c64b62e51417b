"""The tasks of an audit. Each takes the plan and its number, changes nothing, and gives what it has found as JSON."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tandemmq.spark.auditing.audit_findings import FindingPlace, Findings
from tandemmq.spark.auditing.audit_index import AuditedIndexFile, KeyComparer, entries_between, look_at_file
from tandemmq.spark.auditing.audit_queues import LogExtent, QueueReader, RunComparer, compare_rest
from tandemmq.spark.auditing.audit_statistics import Statistics
from tandemmq.spark.reading.layout import StoreLayout
from tandemmq.spark.reading.ranges import LogRange
from tandemmq.spark.reading.walking import RangeWalker
from tandemmq.spark.rebuilding.queue_writer import Interval, QueueKey
from tandemmq.spark.rebuilding.rebuild_tasks import scan_document
from tandemmq.store.format.compiled.keys import keys_of
from tandemmq.store.format.compiled.walk_layout import PHYSICAL, RESULT_WIDTH, ROW_WIDTH, STORE_TIME
from tandemmq.store.format.compiled.walker import CompiledWalk
from tandemmq.store.format.unit import is_queue_name
from tandemmq.store.format.walker import Stop, UnitRun


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """What the tasks need to know; it travels with each of them.

    ``topics``: whose queues, None for all; ``limit``: places of each kind to remember; ``marks``: a directory in which
    a task leaves a file when it is done, for the progress bar. ``live``: a broker writes meanwhile. The other fields
    are those of one phase: ``ranges``, ``index``, ``accepted``, ``groups``.
    """

    root: Path
    layout: StoreLayout
    levels_known: bool
    queues: bool
    keys: bool
    topics: tuple[str, ...] | None
    limit: int
    live: bool
    marks: str
    ranges: tuple[LogRange, ...] = ()
    index: tuple[AuditedIndexFile, ...] = ()
    accepted: Mapping[QueueKey, Sequence[Interval]] | None = None
    groups: tuple[tuple[tuple[QueueKey, tuple[tuple[int, int], ...]], ...], ...] = ()
    extent: LogExtent | None = None

    def wants(self, topic: str) -> bool:
        """Whether the queues of a topic are compared."""
        return self.queues and (self.topics is None or topic in self.topics)

    def finished(self, phase: str, number: int, document: dict[str, Any]) -> str:
        """Leave the mark, and give the document as text."""
        with contextlib.suppress(OSError):  # on another host there may be no such directory: no progress, then
            Path(self.marks, f"{phase}-{number}").touch()
        return json.dumps(document, separators=(",", ":"))


def look_at_index(plan: AuditPlan, paths: Sequence[Path], number: int) -> str:
    """Look at one index file by itself. Raises OSError."""
    layout = plan.layout
    found = look_at_file(paths[number], layout.index_slots, layout.index_entries, plan.limit, live=plan.live)
    return plan.finished("index", number, found.document())


def scan(plan: AuditPlan, number: int) -> str:
    """Walk a range with checksums, and compare units and entries of its records with those on disk. Raises OSError."""
    log_range = plan.ranges[number]
    findings, statistics = Findings(plan.limit), Statistics()
    with (
        RangeWalker(log_range, delay_levels=plan.layout.delay_levels) as walking,
        QueueReader(plan.root, plan.layout.queue_file_size) as reader,
    ):
        queues = RunComparer(reader, findings, levels_known=plan.levels_known)
        index = _key_comparer(plan, log_range, findings)
        times = _TimeOrder(findings)
        strange = wrong_units = wrong_entries = 0
        for walk in walking.walks():
            end = log_range.file.end if walk.stop is Stop.BLANK else log_range.file.start + walk.position
            wrong, odd = _compare_runs(plan, queues, walk.runs(), findings)
            wrong_units, strange = wrong_units + wrong, strange + odd
            if index is not None:
                wrong_entries += index.put(keys_of(walk), int(_rows(walk)[0, PHYSICAL]), end)
            statistics.add(walk, walking.buffer)
            times.add(walk)
    rest = index.rest() if index is not None else np.empty(0, np.int64)
    document = {
        "scan": scan_document(walking.result, queues.intervals, 0, strange),
        "findings": findings.document(),
        "statistics": statistics.document(),
        "times": [times.first, times.last],
        "seen": index.seen if index is not None else 0,
        "rest": rest[: plan.limit].tolist(),
        "wrong_units": wrong_units,
        "wrong_entries": wrong_entries,
    }
    return plan.finished("scan", number, document)


def scan_again(plan: AuditPlan, number: int) -> str:
    """Compare the irregular queues of one range, those records only that their queue can hold. Raises OSError."""
    findings = Findings(plan.limit)
    with (
        RangeWalker(plan.ranges[number], delay_levels=plan.layout.delay_levels) as walking,
        QueueReader(plan.root, plan.layout.queue_file_size) as reader,
    ):
        queues = RunComparer(reader, findings, levels_known=plan.levels_known, accepted=plan.accepted)
        for walk in walking.walks():
            for run in walk.runs():
                queues.put(run)
    return plan.finished("again", number, findings.document())


def look_at_rest(plan: AuditPlan, number: int) -> str:
    """Look at what a group of queues has besides the messages of the log. Raises OSError."""
    assert plan.extent is not None
    findings = Findings(plan.limit)
    with QueueReader(plan.root, plan.layout.queue_file_size) as reader:
        for key, messages in plan.groups[number]:
            compare_rest(reader, key, messages, plan.extent, findings)
    return plan.finished("rest", number, findings.document())


def _key_comparer(plan: AuditPlan, log_range: LogRange, findings: Findings) -> KeyComparer | None:
    if not plan.keys:
        return None
    return KeyComparer(
        entries_between(plan.index, plan.layout.index_slots, log_range.begin, log_range.end), findings
    )  # fmt: skip


def _compare_runs(
    plan: AuditPlan, queues: RunComparer, runs: Sequence[UnitRun], findings: Findings
) -> tuple[int, int]:  # fmt: skip
    """Gives how many units are not as they should be, and how many records are in queues that cannot be."""
    wrong = strange = 0
    for run in runs:
        if not is_queue_name(run.topic, run.queue_id):
            findings.add(
                "name-impossible",
                FindingPlace(run.topic, run.queue_id, physical_offset=run.first_physical, count=run.count),
            )
            strange += run.count
        else:
            wrong += queues.put(run, compare=plan.wants(run.topic))
    return wrong, strange


def _rows(walk: CompiledWalk) -> Any:
    return np.frombuffer(walk.memory[1], np.int64, walk.count * ROW_WIDTH, RESULT_WIDTH * 8).reshape(-1, ROW_WIDTH)


class _TimeOrder:
    """Notes where store times go back within one range. ``first``, ``last``: of its records, ms; None without any."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.first: int | None = None
        self.last: int | None = None

    def add(self, walk: CompiledWalk) -> None:
        """Take the records of a walk, which has some."""
        rows = _rows(walk)
        times = rows[:, STORE_TIME]
        self.first = int(times[0]) if self.first is None else self.first
        steps = np.diff(times, prepend=times[0] if self.last is None else self.last)
        back = np.flatnonzero(steps < 0)
        for at in back[: self._findings.limit].tolist():
            self._findings.add("time-back", back_step(int(rows[at, PHYSICAL]), -int(steps[at])))
        self._findings.count("time-back", max(0, len(back) - self._findings.limit))
        self.last = int(times[-1])


def back_step(physical: int, milliseconds: int) -> FindingPlace:
    """A record whose store time is so much before that of the record in front of it."""
    return FindingPlace(physical_offset=physical, told=f"by {milliseconds:,} ms")


def with_ranges(plan: AuditPlan, ranges: Sequence[LogRange]) -> AuditPlan:
    """The plan for some ranges; they are numbered anew by their place."""
    return replace(plan, ranges=tuple(ranges))
