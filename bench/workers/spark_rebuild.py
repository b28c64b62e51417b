"""A rebuild that is measured: its phases, what its tasks take, and what is left to the driver."""

import shutil
import time
from pathlib import Path

from bench.model import Sample
from bench.workers.spark_log import KEYS_EACH
from tandemmq.spark.rebuilding.rebuild_job import RebuildRequest, rebuild
from tandemmq.spark.running.runner import Runner, Task

PHASES = ("scan", "index", "check", "publish")


class _Timed:
    """A runner that remembers how long its jobs took."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.seconds: list[float] = []

    @property
    def parallelism(self) -> int:
        """The other's."""
        return self._runner.parallelism

    def run(self, task: Task, count: int, name: str) -> list[str]:
        """Have the other run them."""
        begun = time.perf_counter()
        try:
            return self._runner.run(task, count, name)
        finally:
            self.seconds.append(time.perf_counter() - begun)


def rebuilt(root: Path, staging: Path, runner: Runner, messages: int, *, queues: bool, index: bool) -> Sample:
    """One rebuild into ``staging``, all of it on disk at the end; what it has made is removed.

    ``scan_s`` … ``publish_s``: the phases. ``jobs_s``: what the runner's jobs took, the first of them (``scan_job_s``)
    the scan; ``driver_s``: all the rest, when cores wait for the driver.
    """
    shutil.rmtree(staging, ignore_errors=True)
    timed = _Timed(runner)
    request = RebuildRequest(root, queues=queues, index=index, staging=staging, publish=False)
    report = rebuild(request, timed)
    shutil.rmtree(staging)
    if report.messages != messages or report.damage:
        raise ValueError(f"{report.messages:,} of {messages:,} messages were found, damage: {report.damage}")
    if (queues and report.queue_units != messages) or (index and report.index_entries != KEYS_EACH * messages):
        raise ValueError(f"{report.queue_units:,} units and {report.index_entries:,} entries of {messages:,} messages")
    size = report.end - report.begin
    jobs = sum(timed.seconds)
    return {
        "gb_s": size / report.seconds / 1e9,
        "seconds": report.seconds,
        "m_msg_s": messages / report.seconds / 1e6,
        **{f"{phase}_s": report.phases.get(phase, 0.0) for phase in PHASES},
        "scan_job_s": timed.seconds[0],
        "index_job_s": timed.seconds[1] if len(timed.seconds) > 1 else 0.0,
        "driver_s": report.seconds - jobs,
        "ranges": -(-report.log_bytes // request.range_size),
        "index_files": report.index_files,
        "index_entries": report.index_entries,
    }
