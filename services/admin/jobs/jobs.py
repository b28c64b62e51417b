"""Audits, rebuilds and re-seeding, each in a process of its own."""

import asyncio
import json
import os
import secrets
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from tandemmq.admin.cluster.nodes import Nodes
from tandemmq.admin.errors import AdminError, CannotRecord, NotFound, NotPossible
from tandemmq.admin.jobs.job_command import plan_job
from tandemmq.admin.jobs.job_files import JobFiles
from tandemmq.admin.jobs.job_process import JobProcess, JobProgress
from tandemmq.admin.settings import AdminSettings
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.calling.client_channel import child_environment
from tandemmq.common.log_output import get_log

log = get_log(__name__)

_MOST = 2
"""Jobs at a time: each of them reads a whole log."""

_TOLD_SECONDS = 0.1
"""A job that moves on is told at most so often."""

_STOPPED = "admin was stopped while it ran"

_SHARES = {
    admin_pb2.AUDIT: {"index": 0.1, "scan": 0.7, "again": 0.05, "rest": 0.15},
    admin_pb2.REBUILD: {"scan": 0.5, "index": 0.25, "check": 0.2, "publish": 0.05},
    admin_pb2.RESEED: {},
}
"""How much of a job its phases are, about; in their order."""


@dataclass
class _Run:
    """A job that runs."""

    job: admin_pb2.Job
    process: JobProcess | None = None
    task: "asyncio.Task[None] | None" = None
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has moved on; then there is a new one."""
    ended_by: "tuple[admin_pb2.JobState.ValueType, str] | None" = None
    """State and problem, if it was ended on purpose."""

    def tell(self) -> None:
        self.moved.set()
        self.moved = asyncio.Event()


class Jobs:
    """Starts jobs and remembers how they went."""

    def __init__(self, nodes: Nodes, settings: AdminSettings) -> None:
        self._nodes = nodes
        self._kept = settings.jobs_kept
        self._environment = os.environ | child_environment(settings, settings.store_tls_trust_cert_path)
        self._files = JobFiles(settings.admin_directory / "jobs")
        self._running: dict[str, _Run] = {}
        self._starting: set[str] = set()
        self._ended = {job.id: _short(self._settle(job)) for job in self._files.all()}
        """Without reports and logs; oldest first."""

    async def start(self, request: admin_pb2.StartJobRequest, user: str) -> admin_pb2.Job:
        """See admin.proto. `user`: who wants it. Raises BadAdminRequest, NoSuchNode, NotPossible."""
        node = self._nodes.named(request.node)
        self._refuse_more(node.name)
        self._starting.add(node.name)
        try:
            command = await plan_job(node, request)
            run = _Run(
                admin_pb2.Job(
                    id=f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(3)}",
                    kind=request.kind,
                    node=node.name,
                    state=admin_pb2.RUNNING,
                    started_by=user,
                    started_ms=time.time_ns() // 1_000_000,
                    phase="starting",
                    command=command.shown(),
                )
            )
            self._files.write(run.job)
            try:
                run.process = await JobProcess.start(
                    command.line(), self._environment, lambda progress: _take(run, progress)
                )
            except OSError as error:
                self._files.remove(run.job.id)
                raise NotPossible(f"the job's process cannot be started: {error.strerror}") from error
            self._running[run.job.id] = run
        finally:
            self._starting.discard(node.name)
        log.info("job started", job=run.job.id, command=run.job.command, user=user)
        run.task = asyncio.ensure_future(self._follow(run, run.process))
        return _copy(run.job)

    def list(self) -> admin_pb2.ListJobsResponse:
        """See admin.proto."""
        running = [_short(run.job) for run in self._running.values()]
        jobs = sorted([*self._ended.values(), *running], key=lambda job: (job.started_ms, job.id), reverse=True)
        return admin_pb2.ListJobsResponse(jobs=jobs)

    def get(self, job_id: str) -> admin_pb2.Job:
        """One job, with its report. Raises NotFound."""
        run = self._running.get(job_id)
        if run is not None:
            return _copy(run.job)
        if job_id not in self._ended:
            raise NotFound(f"there is no job {job_id!r}", remedy=f"the last {self._kept} that have ended are kept")
        return self._files.read(job_id) or self._ended[job_id]

    async def watch(self, job_id: str) -> AsyncGenerator[admin_pb2.Job, None]:
        """The job each time that it has moved on. Raises NotFound."""
        while (run := self._running.get(job_id)) is not None:
            moved = run.moved
            yield _copy(run.job)
            await moved.wait()
            await self._nodes.timers.sleep(_TOLD_SECONDS)
        yield self.get(job_id)

    async def cancel(self, job_id: str) -> admin_pb2.Job:
        """Ends it, if it runs. Raises NotFound."""
        run = self._running.get(job_id)
        if run is not None:
            await self._stop(run, admin_pb2.CANCELLED, "")
        return self.get(job_id)

    async def close(self) -> None:
        """Ends what runs."""
        await asyncio.gather(*(self._stop(run, admin_pb2.FAILED, _STOPPED) for run in list(self._running.values())))

    # -- inside -----------------------------------------------------------------------------------------------------

    def _refuse_more(self, node: str) -> None:
        """Raises NotPossible."""
        busy = [run.job.node for run in self._running.values()] + list(self._starting)
        if node in busy:
            raise NotPossible(f"a job of node {node} runs already", remedy="wait for it, or cancel it")
        if len(busy) >= _MOST:
            raise NotPossible(
                f"{len(busy)} jobs run already, of the nodes {', '.join(busy)}", remedy="wait for one, or cancel one"
            )

    async def _stop(self, run: _Run, state: "admin_pb2.JobState.ValueType", problem: str) -> None:
        run.ended_by = run.ended_by or (state, problem)
        if run.process is not None:
            await run.process.stop()
        if run.task is not None:
            await run.task

    async def _follow(self, run: _Run, process: JobProcess) -> None:
        """Wait for its end, and keep what it has reported."""
        code = await process.wait()
        job = run.job
        job.ended_ms = time.time_ns() // 1_000_000
        job.log[:] = list(process.log)
        job.phase = ""
        report = process.report.decode("utf-8", "replace").strip()
        faults = _faults(report)
        if report and faults is not None:
            job.report_json = report
        if code == 0:
            job.state, job.progress = admin_pb2.SUCCEEDED, 1.0
        elif run.ended_by is not None:
            job.state, job.problem = run.ended_by
        elif code == 1 and faults:
            job.state, job.progress, job.problem = admin_pb2.FAILED, 1.0, f"it found {faults:,} faults"
        else:
            job.state, job.problem = admin_pb2.FAILED, process.problem(code)
        self._keep(job)
        del self._running[job.id]
        run.tell()
        log.info("job ended", job=job.id, state=admin_pb2.JobState.Name(job.state), problem=job.problem)

    def _keep(self, job: admin_pb2.Job) -> None:
        try:
            self._files.write(job)
        except CannotRecord as error:
            log.failure("job not kept", error, job=job.id)
        self._ended[job.id] = _short(job)
        while len(self._ended) > self._kept:
            oldest = min(self._ended, key=lambda one: (self._ended[one].started_ms, one))
            del self._ended[oldest]
            self._files.remove(oldest)

    def _settle(self, job: admin_pb2.Job) -> admin_pb2.Job:
        """A job of an earlier life of admin: it ended with it."""
        if job.state == admin_pb2.RUNNING:
            job.state, job.problem, job.phase = admin_pb2.FAILED, _STOPPED, ""
            job.ended_ms = time.time_ns() // 1_000_000
            try:
                self._files.write(job)
            except AdminError as error:
                log.failure("job not kept", error, job=job.id)
        return job


def _take(run: _Run, progress: JobProgress) -> None:
    """The process has moved on."""
    job = run.job
    job.phase, job.done_bytes, job.total_bytes = progress.text, progress.done_bytes, progress.total_bytes
    shares = _SHARES[job.kind]
    if progress.phase in shares:
        names = list(shares)
        before = sum(shares[name] for name in names[: names.index(progress.phase)])
        part = progress.done_bytes / progress.total_bytes if progress.total_bytes else 1.0
        job.progress = min(1.0, max(job.progress, before + shares[progress.phase] * part))
    run.tell()


def _faults(report: str) -> int | None:
    """The number of faults that a report tells of; None if it is no report."""
    try:
        document = json.loads(report)
        return int(document.get("faults", 0))
    except (ValueError, AttributeError, TypeError):
        return None


def _copy(job: admin_pb2.Job) -> admin_pb2.Job:
    copy = admin_pb2.Job()
    copy.CopyFrom(job)
    return copy


def _short(job: admin_pb2.Job) -> admin_pb2.Job:
    """For lists: without report and log."""
    short = _copy(job)
    short.ClearField("report_json")
    short.ClearField("log")
    return short
