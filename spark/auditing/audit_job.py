"""The audit: consume queues and index of a store against its commit log, in parallel. Nothing is changed.

index   each index file by itself: header, order, chains (audit_index.py)
scan    each range of the log: checksums, the units of its records, the entries of their keys (audit_tasks.py)
settle  do the ranges join; where is rot, where the end; gaps in queue offsets and numbers given twice (stitching.py)
rest    what queues and index have besides: left over, expired, or wrong
"""

import json
import tempfile
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tandemmq.spark.auditing import audit_tasks
from tandemmq.spark.auditing.audit_findings import FindingPlace, Findings, QueueKey
from tandemmq.spark.auditing.audit_index import AuditedIndexFile, count_between, index_paths
from tandemmq.spark.auditing.audit_queues import COMPARED, LogExtent, queues_on_disk
from tandemmq.spark.auditing.audit_report import AuditReport, QueueAudit, RangeAudit
from tandemmq.spark.auditing.audit_source import AuditSource, ask_store, first_offset, look_at_directory
from tandemmq.spark.auditing.audit_statistics import Statistics
from tandemmq.spark.auditing.audit_tasks import AuditPlan
from tandemmq.spark.errors import BadJobOption, MissingLog, SparkJobError
from tandemmq.spark.reading.ranges import DEFAULT_RANGE_SIZE, LogRange, split
from tandemmq.spark.rebuilding.queue_writer import Interval
from tandemmq.spark.rebuilding.rebuild_tasks import read_scan
from tandemmq.spark.rebuilding.stitching import LogFindings, QueuePlan, accept_all, settle
from tandemmq.spark.running.progress import OnProgress, phase_of
from tandemmq.spark.running.runner import Runner

_GROUPS_PER_CORE = 4
_ATTEMPTS = 3
_LOWEST = -(1 << 63)
_LEAST_PLACES = 1_000
"""Places of a kind that a task remembers, and the driver: of a stretch over many ranges no part must be left out."""


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """What to look at.

    ``topics``: whose consume queues, empty for all; the log is read whole. ``partitions`` wins over ``range_size``
    (bytes). ``running``: client address of the store if it runs. ``details``: places of each kind that the report
    names; counts are exact all the same. The others are settings of the store, None: what its files say.
    """

    root: Path
    topics: tuple[str, ...] = ()
    queues: bool = True
    index: bool = True
    range_size: int = DEFAULT_RANGE_SIZE
    partitions: int | None = None
    running: str | None = None
    details: int = 20
    delay_levels: tuple[int, ...] | None = None
    index_slots: int | None = None
    index_entries: int | None = None


def find_source(request: AuditRequest) -> AuditSource:
    """What the request names, before anything is read: mistakes are told at once.

    Raises NotAStore, UnequalFiles, BadJobOption, ClientError.
    """
    if request.running is not None:
        if (request.delay_levels, request.index_slots, request.index_entries) != (None, None, None):
            raise BadJobOption("Sizes and levels of a running store are its own: leave them away.")
        return ask_store(request.root, request.running)
    return look_at_directory(
        request.root,
        delay_levels=request.delay_levels,
        index_slots=request.index_slots,
        index_entries=request.index_entries,
    )


def audit(request: AuditRequest, runner: Runner, on_progress: OnProgress = lambda progress: None) -> AuditReport:
    """Do it.

    Raises:
        NotAStore, UnequalFiles: there is no log.
        BadJobOption: the request does not fit the files.
        MissingLog: the oldest files of a store in use expire faster than they are read.
        TaskFailed, OSError: a file could not be read.
    """
    if request.range_size < 1:
        raise BadJobOption(f"Ranges of {request.range_size} bytes cannot be.")
    for _ in range(_ATTEMPTS):
        source = find_source(request)
        try:
            report = _Audit(request, source, runner, on_progress).run()
        except (SparkJobError, OSError):
            if not source.in_use or first_offset(request.root, request.running) <= source.begin:
                raise
        else:
            if not source.in_use or first_offset(request.root, request.running) <= source.begin:
                return report
    raise MissingLog(
        f"The oldest log files in {request.root} expired while they were read, {_ATTEMPTS} times.",
        remedy="Copy the store, or try again once the store has deleted what is due.",
    )


class _Audit:
    """One run."""

    def __init__(self, request: AuditRequest, source: AuditSource, runner: Runner, on_progress: OnProgress) -> None:
        self._request = request
        self._source = source
        self._runner = runner
        self._on_progress = on_progress
        self._findings = Findings(max(_LEAST_PLACES, 2 * request.details))
        self._report = AuditReport(
            request.root,
            live=source.in_use,
            known_end=request.running is not None,
            clean_exit=source.clean_exit,
            file_size=source.files[0].size if source.files else 0,
            files=[file.start for file in source.files],
            queues_compared=request.queues,
            delivery_times_compared=source.levels_known,
            index_slots=source.layout.index_slots,
            index_entries=source.layout.index_entries,
            findings=self._findings,
            made=int(time.time() * 1000),
        )

    def run(self) -> AuditReport:
        begun = time.monotonic()
        request, source, report = self._request, self._source, self._report
        with tempfile.TemporaryDirectory(prefix="tandem-audit-") as self._marks:
            plan = AuditPlan(
                request.root.resolve(), source.layout, source.levels_known, request.queues,
                request.index and source.index_enabled, request.topics or None, self._findings.limit, source.in_use,
                self._marks,
            )  # fmt: skip
            if plan.keys:
                plan = replace(plan, index=tuple(self._look_at_index(plan)))
            log = self._scan(plan)
            self._tell_of_log()
            if plan.queues:
                self._look_at_queues(plan, log)
            if plan.keys:
                self._count_rest_of_index(plan, log)
        self._tell_of_store(log)
        self._findings.trim(request.details)
        report.seconds = time.monotonic() - begun
        return report

    # -- index and log ----------------------------------------------------------------------------------------------

    def _look_at_index(self, plan: AuditPlan) -> list[AuditedIndexFile]:
        paths = index_paths(plan.root)
        size = len(paths) * plan.layout.index_file_size
        found = self._run("index", partial(audit_tasks.look_at_index, plan, paths), len(paths), size)
        self._report.index = [AuditedIndexFile.read(document) for document in found]
        for file in self._report.index:
            self._findings.merge(file.findings)
        return self._report.index

    def _scan(self, plan: AuditPlan) -> LogFindings:
        """Read the log; files in which a range began with what only looks like a record are read again, whole."""
        known: dict[tuple[int, int], dict[str, Any]] = {}
        whole = set[int]()
        while True:
            ranges = self._cut(whole)
            todo = [one for one in ranges if (one.begin, one.end) not in known]
            task = partial(audit_tasks.scan, audit_tasks.with_ranges(plan, todo))
            for one, document in zip(
                todo, self._run("scan", task, len(todo), sum(one.size for one in todo)), strict=True
            ):
                known[one.begin, one.end] = document
            documents = [known[one.begin, one.end] for one in ranges]
            scans = [read_scan(document["scan"]) for document in documents]
            log = settle([(one, result) for one, (result, _) in zip(ranges, scans, strict=True)])
            if not log.misread - whole:
                break
            whole |= log.misread
        self._intervals = [intervals for _, intervals in scans]
        self._ranges, self._documents = ranges, documents
        self._gather(log)
        return log

    def _cut(self, whole: set[int]) -> list[LogRange]:
        size, source = self._request.range_size, self._source
        if self._request.partitions is not None:
            total = sum(file.size for file in source.files)
            size = max(1, -(-total // max(1, self._request.partitions)))
        return split(source.files, size, end=source.end, whole=whole)

    def _gather(self, log: LogFindings) -> None:
        """Put together what the ranges have found."""
        report, last = self._report, None
        for one, document in zip(self._ranges, self._documents, strict=True):
            first, range_last = document["times"]
            if last is not None and first is not None and first < last:
                self._findings.add("time-back", audit_tasks.back_step(document["scan"]["first"], last - first))
            last = last if range_last is None else range_last
            self._findings.merge(Findings.read(document["findings"]))
            report.statistics.merge(Statistics.read(document["statistics"]))
            report.ranges.append(
                RangeAudit(
                    one.begin, one.end, document["scan"]["records"], document["wrong_units"], document["wrong_entries"]
                )
            )
        report.begin, report.end, report.records = log.begin, log.end, log.records
        report.damage = sorted(log.damage, key=lambda damage: damage.begin)

    def _tell_of_log(self) -> None:
        for damage in self._report.damage:
            told = f"{damage.end - damage.begin:,} bytes, {damage.reason}"
            self._findings.add(
                damage.kind, FindingPlace(physical_offset=damage.begin, physical_end=damage.end, told=told)
            )  # fmt: skip

    # -- queues -----------------------------------------------------------------------------------------------------

    def _look_at_queues(self, plan: AuditPlan, log: LogFindings) -> None:
        intervals = [
            {key: of_queue for key, of_queue in of_range.items() if plan.wants(key[0])} for of_range in self._intervals
        ]
        plans = accept_all(intervals, plan.layout.units_per_file)
        irregular = {key: queue.accepted for key, queue in plans.items() if queue.irregular}
        irregular |= {key: [] for of_range in intervals for key in of_range if key not in plans}
        if irregular:
            self._compare_again(plan, intervals, irregular)
        together: dict[QueueKey, list[Interval]] = {}
        for of_range in intervals:
            for key, of_queue in of_range.items():
                together.setdefault(key, []).extend(of_queue)
        for key in sorted(together):
            self._tell_of_offsets(key, together[key])
        self._look_at_rest(plan, log, plans)
        queues = {key: QueueAudit(*key, queue.units, queue.first, queue.end) for key, queue in plans.items()}
        for key, counts in self._findings.by_queue.items():
            queues.setdefault(key, QueueAudit(*key)).counts = counts
        self._report.queues = [queues[key] for key in sorted(queues)]

    def _compare_again(
        self,
        plan: AuditPlan,
        intervals: Sequence[Mapping[QueueKey, Sequence[Interval]]],
        irregular: dict[QueueKey, list[Interval]],
    ) -> None:
        """What an irregular queue holds follows from all ranges together: what was found in it is found again."""
        self._findings.forget(irregular, COMPARED)
        again = [
            one for one, of_range in zip(self._ranges, intervals, strict=True) if irregular.keys() & of_range.keys()
        ]
        task = partial(audit_tasks.scan_again, replace(audit_tasks.with_ranges(plan, again), accepted=irregular))
        for document in self._run("again", task, len(again), sum(one.size for one in again)):
            self._findings.merge(Findings.read(document))

    def _tell_of_offsets(self, key: QueueKey, intervals: Sequence[Interval]) -> None:
        """Gaps in the queue offsets that the log gives, and numbers given twice; see `stitching.accept`."""
        end = before = -1
        damaged = [damage.begin for damage in self._report.damage]
        for one in intervals:
            if end >= 0 and one.first < end:
                twice = min(end, one.end) - one.first
                self._findings.add("offset-twice", FindingPlace(*key, one.first, one.physical_begin, count=twice))
            elif end >= 0 and one.first > end:
                next_damage = bisect_left(damaged, before)
                is_damaged = next_damage < len(damaged) and damaged[next_damage] < one.physical_begin
                told = "with damage in the log there" if is_damaged else "without damage in the log there"
                self._findings.add(
                    "offset-gap", FindingPlace(*key, end, before, one.physical_begin, one.first - end, told=told)
                )  # fmt: skip
            if one.end > end:
                end, before = one.end, one.physical_end

    def _look_at_rest(self, plan: AuditPlan, log: LogFindings, plans: Mapping[QueueKey, QueuePlan]) -> None:
        keys = {key for key in queues_on_disk(plan.root) if plan.wants(key[0])} | plans.keys()
        groups = _groups(sorted(keys), self._runner.parallelism * _GROUPS_PER_CORE)
        messages = {
            key: tuple((one.first, one.end) for one in plans[key].accepted) if key in plans else () for key in keys
        }
        plan = replace(
            plan,
            groups=tuple(tuple((key, messages[key]) for key in group) for group in groups),
            extent=self._extent(log),
        )
        size = self._report.records * 20
        for document in self._run("rest", partial(audit_tasks.look_at_rest, plan), len(groups), size):
            self._findings.merge(Findings.read(document))

    def _extent(self, log: LogFindings) -> LogExtent:
        damage = tuple((one.begin, min(one.end, log.end)) for one in log.damage if one.begin < log.end)
        return LogExtent(log.begin, log.end, damage, self._source.in_use)

    # -- the rest ---------------------------------------------------------------------------------------------------

    def _count_rest_of_index(self, plan: AuditPlan, log: LogFindings) -> None:
        """Entries that belong to no record: what is left of all when those of records are taken away."""
        extent, slots, findings = self._extent(log), plan.layout.index_slots, self._findings
        expired = count_between(plan.index, slots, _LOWEST, extent.begin)
        behind = count_between(plan.index, slots, extent.end)
        damaged = sum(count_between(plan.index, slots, begin, end) for begin, end in extent.damage)
        seen = sum(document["seen"] for document in self._documents)
        stray = sum(file.entries for file in plan.index) - expired - behind - damaged - seen
        findings.count("entry-expired", expired)
        findings.count("entry-damaged", damaged)
        if behind and not extent.live:
            findings.add("entry-behind-end", FindingPlace(physical_offset=extent.end, count=behind))
        places = [
            physical
            for document in self._documents
            for physical in document["rest"]
            if physical < extent.end and not any(begin <= physical < end for begin, end in extent.damage)
        ][:stray]
        for physical in places[: findings.limit]:
            findings.add("entry-extra", FindingPlace(physical_offset=physical))
        findings.count("entry-extra", stray - len(places[: findings.limit]))

    def _tell_of_store(self, log: LogFindings) -> None:
        source, findings = self._source, self._findings
        if not source.clean_exit and not source.in_use:
            findings.count("not-closed", 1)
        lasting = [one for one in log.damage if one.kind != "torn"]
        for one in lasting:
            if not any(begin < one.end and one.begin < end for begin, end, _ in source.noted):
                findings.add(
                    "damage-unknown", FindingPlace(physical_offset=one.begin, physical_end=one.end, told=one.kind)
                )
        for begin, end, kind in source.noted:
            if (
                begin >= log.begin
                and end <= log.end
                and not any(begin < one.end and one.begin < end for one in lasting)
            ):
                findings.add("damage-gone", FindingPlace(physical_offset=begin, physical_end=end, told=kind))

    # -- running ----------------------------------------------------------------------------------------------------

    def _run(self, phase: str, task: Callable[[int], str], count: int, size: int) -> list[dict[str, Any]]:
        """Run tasks, and tell how far they are by the marks they leave; ``size``: bytes of all."""
        with self._phase(phase, count, size):
            return [json.loads(text) for text in self._runner.run(task, count, _NAMES[phase])]

    @contextmanager
    def _phase(self, phase: str, count: int, size: int) -> Iterator[None]:
        marks = Path(self._marks)

        def done() -> int:
            return sum(1 for _ in marks.glob(f"{phase}-*"))

        with phase_of(phase, done, count, size, self._on_progress, self._report.phases):
            try:
                yield
            finally:
                for mark in marks.glob(f"{phase}-*"):
                    mark.unlink()


_NAMES = {
    "index": "looking at the index files",
    "scan": "reading the log",
    "again": "reading irregular queues",
    "rest": "looking at the rest of the queues",
}


def _groups(keys: Sequence[QueueKey], count: int) -> list[list[QueueKey]]:
    """The queues in up to ``count`` groups."""
    return [group for group in ([*keys[number::count]] for number in range(count)) if group]
