"""A rebuild as a process, to be killed: ``python -m tests.spark.kit_job ROOT PARTITIONS MASTER [STORE NODE]``.

``MASTER``: of Spark, or ``-`` for tasks in the process itself. ``STORE``, ``NODE``: addresses of a running store, which
takes the files over; else they are left staged. Prints the report's numbers as JSON.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tandemmq.spark.rebuilding.rebuild_job import RebuildRequest, rebuild
from tandemmq.spark.running.runner import InProcessRunner, Runner, SparkRunner
from tests.spark.kit import Sizes
from tests.spark.standalone_cluster import Hold

SIZES = Sizes(log_file=4 << 20, queue_file=100_000, slots=5_000, entries=40_000)
REPOSITORY = Path(__file__).resolve().parents[2]
PATIENCE = 600.0
"""Seconds: many times what anything takes on a machine that has other things to do."""


class Job:
    """The process, with all it starts in one group."""

    def __init__(
        self,
        root: Path,
        log: Path,
        partitions: int = 40,
        master: str = "-",
        running: tuple[str, str] | None = None,
        python: str = sys.executable,
        hold: Hold | None = None,
    ) -> None:
        """Start it; its output goes to ``log``. ``running``: addresses of a store, for clients and for its node.

        ``python``: the interpreter of a cluster's workers. ``hold``: where it waits, if it is not killed before.
        """
        command = [sys.executable, "-m", "tests.spark.kit_job", str(root), str(partitions), master, *(running or ())]
        self._log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                command, cwd=REPOSITORY, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                start_new_session=True, env={**(hold.environment if hold else os.environ), "PYSPARK_PYTHON": python},
            )  # fmt: skip

    def kill_when(self, reached: Callable[[], bool], seconds: float = PATIENCE) -> bool:
        """SIGKILL to the whole group when ``reached``; False if it has ended before."""
        deadline = time.monotonic() + seconds
        while not reached():
            if self.process.poll() is not None:
                return False
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.001)
        os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait(PATIENCE) == -signal.SIGKILL

    def report(self, seconds: float = PATIENCE) -> dict[str, Any]:
        """What it says when it has ended well."""
        try:
            code = self.process.wait(seconds)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
        text = self._log.read_text()
        assert code == 0, text
        # Java may still have said something after it.
        told = next(line for line in reversed(text.splitlines()) if line.startswith("{"))
        found: dict[str, Any] = json.loads(told)
        return found


def main() -> None:
    root, partitions, master, *addresses = sys.argv[1:]
    request = SIZES.request(Path(root), partitions=int(partitions))
    if addresses:
        store, node = addresses
        request = RebuildRequest(Path(root), partitions=int(partitions), running=store, internal=node)
    runner: Runner = InProcessRunner()
    if master != "-":
        from tandemmq.spark.session import open_session

        runner = SparkRunner(open_session(master, app_name="killed"))
    report = rebuild(request, runner)
    sys.stdout.write(
        json.dumps(
            {"messages": report.messages, "resumed_ranges": report.resumed_ranges, "published": report.published}
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
