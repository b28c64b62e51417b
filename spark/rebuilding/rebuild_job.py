"""The rebuild: consume queues and index of a store from its commit log, in parallel, as the store itself writes them.

    scan     each range of the log: units to their places, index keys to spills (rebuild_tasks.py)
    settle   do the ranges join; where is rot, where the end; what does each queue take (stitching.py)
    index    files and their parts, laid out from the counts of the spills (index_builder.py); all units read again
    check    headers, and all entries of the index read again
    publish  the manifest, then the exchange: by us where no broker runs, by the store where it does (publishing.py)

Everything is written into a staging directory (staging.py); until the exchange the store's files stay as they are.
"""

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from uuid import UUID

from tandemmq.common.files.boot import boot_id
from tandemmq.spark.errors import BadJobOption
from tandemmq.spark.reading.ranges import split
from tandemmq.spark.reading.walking import Damage
from tandemmq.spark.rebuilding import rebuild_tasks
from tandemmq.spark.rebuilding.index_builder import Spill, create_file, key_before, plan_files
from tandemmq.spark.rebuilding.publishing import publish_offline, refuse_if_in_use
from tandemmq.spark.rebuilding.queue_writer import QueueKey
from tandemmq.spark.rebuilding.rebuild_plan import RebuildPlan, saved_plan
from tandemmq.spark.rebuilding.rebuild_source import LogSource, adopt, ask_store, look_at
from tandemmq.spark.rebuilding.staging import NAME, StagingDirectory
from tandemmq.spark.rebuilding.stitching import LogFindings, QueuePlan, accept_all, settle
from tandemmq.spark.running.progress import OnProgress, phase_of
from tandemmq.spark.running.runner import InProcessRunner, Runner
from tandemmq.store.format.staged import FILE_NAME, StagedManifest

_GROUPS_PER_CORE = 4
_MANY_ENTRIES = 40_000_000


@dataclass(frozen=True, slots=True)
class RebuildRequest:
    """What to rebuild. None of the sizes: what the store's files say, else RocketMQ's defaults.

    ``topics``: whose consume queues, empty for all. ``partitions`` wins over ``range_size`` (bytes). ``running``,
    ``internal``: client and node-internal address of the store if it runs. ``publish`` False: leave the result staged.
    """

    root: Path
    topics: tuple[str, ...] = ()
    queues: bool = True
    index: bool = True
    range_size: int = 128 << 20
    partitions: int | None = None
    staging: Path | None = None
    running: str | None = None
    internal: str | None = None
    delay_levels: tuple[int, ...] | None = None
    consume_queue_file_size: int | None = None
    index_slots: int | None = None
    index_entries: int | None = None
    publish: bool = True


@dataclass(slots=True)
class RebuildReport:
    """What a rebuild has done. ``begin``, ``end``: log offsets; ``published``: offline, adopted or staged."""

    begin: int = 0
    end: int = 0
    messages: int = 0
    log_bytes: int = 0
    queues: int = 0
    queue_units: int = 0
    index_files: int = 0
    index_entries: int = 0
    damage: list[Damage] = field(default_factory=list)
    strange_names: int = 0
    irregular_queues: int = 0
    resumed_ranges: int = 0
    seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    published: str = "staged"
    staging: Path | None = None


def rebuild(request: RebuildRequest, runner: Runner, on_progress: OnProgress = lambda progress: None) -> RebuildReport:
    """Do it. The store's own files are exchanged at the very end, or not at all.

    Raises:
        BadJobOption: the request contradicts itself or the files.
        StoreInUse: a broker runs on the directory, and the request does not say where to reach it.
        StagingMismatch: the staging directory holds something else, or the log has changed meanwhile.
        TaskFailed: a task failed; what is done stays in the staging directory for the next attempt.
        OSError, CheckFailed: as TaskFailed.
    """
    if not (request.queues or request.index):
        raise BadJobOption("Neither consume queues nor index are to be rebuilt: nothing to do.")
    if request.topics and not request.queues:
        raise BadJobOption("Topics choose consume queues, and those are not to be rebuilt.")
    return _Rebuild(request, runner, on_progress).run()


class _Rebuild:
    """One run."""

    def __init__(self, request: RebuildRequest, runner: Runner, on_progress: OnProgress) -> None:
        self._request = request = replace(request, root=request.root.absolute())  # tasks may run anywhere
        self._runner = runner
        self._on_progress = on_progress
        self.report = RebuildReport()
        self._staging = StagingDirectory((request.staging or request.root / NAME).absolute())

    def run(self) -> RebuildReport:
        begun = time.monotonic()
        request, report = self._request, self.report
        if request.running is None:
            refuse_if_in_use(request.root)
            source = look_at(request)
        else:
            source = ask_store(request)
        with self._staging.locked():
            plan = self._plan(source)
            while (log := self._scan(plan)).misread:
                plan = self._plan_again(source, plan, log.misread)
            with _without_collector():
                plans = self._settle(plan, log)
            index = self._lay_out_index(plan) if plan.index else None
            self._build(plan)
            self._finish_index(len(index or ()))
            manifest = StagedManifest(
                log.begin, log.end, log.records, plan.layout.queue_file_size, plan.layout.index_slots,
                plan.layout.index_entries, plan.topics is None and plan.queues,
                {key: (queue.first, queue.end) for key, queue in plans.items()}, index,
                [{"begin": one.begin, "end": one.end, "kind": one.kind, "reason": one.reason} for one in log.damage],
                log.max_store_timestamp,
            )  # fmt: skip
            self._publish(source, manifest)
        report.seconds = time.monotonic() - begun
        return report

    # -- plan -------------------------------------------------------------------------------------------------------

    def _plan(self, source: LogSource) -> RebuildPlan:
        """The plan of an earlier, killed attempt if it was the same work, else a new one."""
        fresh = self._cut(source, ())
        self._staging.forget(FILE_NAME)  # what an earlier run has finished is worked on again
        known = saved_plan(self._staging)
        if known is not None and known.same_work(fresh):
            self.report.resumed_ranges = self._staging.count("scan")
            return known
        self._staging.clear()
        fresh.save(self._staging)
        return fresh

    def _plan_again(self, source: LogSource, plan: RebuildPlan, misread: Iterable[int]) -> RebuildPlan:
        """Begin anew, those files in one piece: what a range took for its first record was none."""
        self._staging.clear()
        again = self._cut(source, {*plan.whole, *misread})
        again.save(self._staging)
        return again

    def _cut(self, source: LogSource, whole: Iterable[int]) -> RebuildPlan:
        request, size = self._request, self._request.range_size
        if request.partitions is not None:
            total = sum(file.size for file in source.files)
            size = max(1, -(-total // max(1, request.partitions)))
        if size < 1:
            raise BadJobOption(f"Ranges of {size} bytes cannot be.")
        return RebuildPlan(
            root=request.root,
            layout=source.layout,
            ranges=split(source.files, size, end=source.end, whole=whole),
            source=source.identity,
            end=source.end,
            topics=request.topics or None,
            queues=request.queues,
            index=request.index,
            whole=tuple(sorted(whole)),
            boot=str(UUID(bytes=boot_id())),
        )

    # -- phases -----------------------------------------------------------------------------------------------------

    def _scan(self, plan: RebuildPlan) -> LogFindings:
        numbers = [log_range.number for log_range in plan.ranges]
        todo = [number for number in numbers if self._staging.read(f"scan/{number}.json") is None]
        total = sum(log_range.size for log_range in plan.ranges)
        with self._phase("scan", "scan", len(numbers), total):
            self._run(rebuild_tasks.scan, todo, "reading the log")
        with _without_collector():
            self._documents = [self._staging.read(f"scan/{number}.json") or {} for number in numbers]
            scans = [rebuild_tasks.read_scan(document) for document in self._documents]
        log = settle([(log_range, result) for log_range, (result, _) in zip(plan.ranges, scans, strict=True)])
        self._intervals = [intervals for _, intervals in scans]
        return log

    def _settle(self, plan: RebuildPlan, log: LogFindings) -> dict[QueueKey, QueuePlan]:
        """What every queue holds; irregular ones are written again, in their order."""
        report = self.report
        report.begin, report.end, report.messages, report.damage = log.begin, log.end, log.records, log.damage
        report.log_bytes = sum(log_range.size for log_range in plan.ranges)
        report.strange_names = sum(document["strange"] for document in self._documents)
        plans = accept_all(self._intervals, plan.layout.units_per_file)
        irregular = {key: queue for key, queue in plans.items() if queue.irregular}
        again = [number for number, of_range in enumerate(self._intervals) if irregular.keys() & of_range.keys()]
        groups = _groups(plans, self._runner.parallelism * _GROUPS_PER_CORE)
        self._staging.forget("built/queues.*.json")  # who is in which group may have changed, and some begin anew
        self._staging.write(
            "queues.json",
            {
                "again": again,
                "irregular": [[*key, [list(one) for one in queue.accepted]] for key, queue in irregular.items()],
                "groups": [
                    [[*key, plans[key].first, plans[key].end, plans[key].units, plans[key].blanks] for key in group]
                    for group in groups
                ],
            },
        )
        for topic, queue_id in {
            key for of_range in self._intervals for key in of_range
        } - plans.keys() | irregular.keys():
            for path in sorted((self._staging.queues / topic / str(queue_id)).glob("*")):
                path.unlink()
        if again:
            self._run(rebuild_tasks.write_again, range(len(again)), "writing irregular queues")
        report.queues, report.queue_units = len(plans), sum(queue.units for queue in plans.values())
        report.irregular_queues = len(irregular)
        return plans

    def _lay_out_index(self, plan: RebuildPlan) -> list[tuple[str, int]]:
        """Make the empty files of the index; gives name and next entry number of each."""
        spills, first = list[Spill](), 0
        for number, document in enumerate(self._documents):
            spills.append(Spill(number, first, document["keys"]))
            first += document["keys"]
        known = self._staging.read("index.json")
        first_name = int(known["first_name"]) if known is not None else _index_name(time.time())
        files = plan_files(spills, plan.layout.keys_per_index_file, first_name)
        files = [
            replace(file, previous=key_before(spills, self._staging.keys, file.first)) if file.first else file
            for file in files
        ]
        document = {
            "first_name": first_name,
            "spills": [[spill.number, spill.first, spill.count] for spill in spills],
            "files": [[file.name, file.first, file.count, file.previous] for file in files],
            "parts": _parts(len(files), plan.layout.index_slots, self._runner.parallelism),
        }
        if known is None or any(known[name] != document[name] for name in ("spills", "parts")):
            self._staging.forget("built/[0-9]*.json")
            for file in files:
                create_file(self._staging.index / file.name, plan.layout.index_file_size)
            self._staging.write("index.json", document)
        self.report.index_files, self.report.index_entries = len(files), sum(file.count for file in files)
        return [(file.name, file.count + 1) for file in files]

    def _build(self, plan: RebuildPlan) -> None:
        """The parts of the index files and the check of the queues: one job, as neither waits for the other."""
        parts = len((self._staging.read("index.json") or {})["parts"]) if plan.index else 0
        groups = len((self._staging.read("queues.json") or {})["groups"]) if plan.queues else 0
        size = (self.report.index_entries if parts else 0) * 20 + self.report.queue_units * 20
        with self._phase("index", "built", parts + groups, size):
            task = partial(rebuild_tasks.build, index_parts=parts)
            self._run(task, range(parts + groups), "building the index, checking the queues")

    def _finish_index(self, files: int) -> None:
        """Headers, and a look at every entry; a job of its own is only worth it for many entries."""
        runner = self._runner if self.report.index_entries > _MANY_ENTRIES else InProcessRunner()
        with self._phase("check", "", 0, self.report.index_entries * 20):
            self._run(rebuild_tasks.finish_index, range(files), "checking the index", runner)

    def _publish(self, source: LogSource, manifest: StagedManifest) -> None:
        request, report, staging = self._request, self.report, self._staging
        report.staging = staging.path
        with self._phase("publish", "", 0, 0):
            staging.write_whole(FILE_NAME, manifest.encode())
            staging.sync_directories()
            if not request.publish:
                return
            staging.clear_work()  # from here on files change places: nothing here can be resumed
            if request.running is None:
                publish_offline(request.root, staging, manifest, source.identity)
                report.published = "offline"
            else:
                adopt(request, staging)
                report.published = "adopted"
            report.staging = None

    # -- running ----------------------------------------------------------------------------------------------------

    def _run(
        self, task: Callable[[str, int], None], numbers: Sequence[int], name: str, runner: Runner | None = None
    ) -> None:
        work = _Selected(partial(task, str(self._staging.path.resolve())), tuple(numbers))
        (runner or self._runner).run(work, len(numbers), name)

    def _phase(self, phase: str, kind: str, count: int, total: int) -> AbstractContextManager[None]:
        """Measure a phase, and tell how far it is by what is done in the staging directory."""
        return phase_of(phase, lambda: self._staging.count(kind), count, total, self._on_progress, self.report.phases)


@dataclass(frozen=True, slots=True)
class _Selected:
    """A task for those numbers only that are not done yet."""

    task: Callable[[int], None]
    numbers: tuple[int, ...]

    def __call__(self, index: int) -> None:
        self.task(self.numbers[index])


@contextmanager
def _without_collector() -> Iterator[None]:
    """A million small values that all stay: looking for garbage among them takes as long as making them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _groups(plans: dict[QueueKey, QueuePlan], count: int) -> list[list[QueueKey]]:
    """The queues in about ``count`` groups of about equal work."""
    groups = [list[QueueKey]() for _ in range(min(count, len(plans)))]
    sizes = [0] * len(groups)
    for key in sorted(plans, key=lambda key: (-plans[key].units, key)):
        smallest = sizes.index(min(sizes))
        groups[smallest].append(key)
        sizes[smallest] += plans[key].units + 1_000
    return groups


def _parts(files: int, slots: int, parallelism: int) -> list[list[int]]:
    """Which slots of which file are one task: [file, first slot, after the last]; about as many as cores."""
    each = max(1, min(slots, -(-parallelism // max(files, 1))))
    cuts = [slots * part // each for part in range(each + 1)]
    return [[file, low, high] for file in range(files) for low, high in pairwise(cuts)]


def _index_name(now: float) -> int:
    """RocketMQ names an index file by the local time of its making: yyyyMMddHHmmssSSS."""
    return int(time.strftime("%Y%m%d%H%M%S", time.localtime(now)) + f"{int(now * 1000) % 1000:03d}")
