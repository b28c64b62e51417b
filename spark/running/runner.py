"""Running tasks: on Spark, on processes of this machine, or one after the other in this process.

A task is a function of a number. What it finds it leaves in a file, or gives back as JSON text: data never crosses
the JVM, only small summaries do, and the DataFrame API suffices, so that Spark Connect will do.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Protocol

from tandemmq.common.processes.child_process import die_with
from tandemmq.spark.errors import TaskFailed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Task = Callable[[int], "str | None"]

_PARTITIONS_PER_CORE = 2
"""A partition takes 0.05 to 0.1 s to begin; some more of them than cores even out what takes longer."""


class Runner(Protocol):
    """Runs tasks."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at the same time, about."""
        ...

    def run(self, task: Task, count: int, name: str) -> list[str]:
        """Run ``task(0)`` … ``task(count - 1)``; gives what they gave, in this order. ``name``: for people.

        Raises:
            TaskFailed: one failed for good; others may still run.
        """
        ...


class SparkRunner:
    """Runs tasks on a Spark session, neighbours in one partition where there are many."""

    def __init__(self, session: "SparkSession") -> None:
        """The session stays the caller's."""
        self._session = session

    @property
    def parallelism(self) -> int:
        """Spark's own guess at the number of cores."""
        try:
            return max(1, self._session.sparkContext.defaultParallelism)
        except Exception:  # noqa: BLE001 - over Spark Connect there is no context to ask
            return 2

    def run(self, task: Task, count: int, name: str) -> list[str]:
        """See `Runner`."""
        if not count:
            return []
        partitions = min(count, self.parallelism * _PARTITIONS_PER_CORE)
        # Dealt out like cards: the last ranges of a log have less in them than the first.
        order = tuple(number for first in range(partitions) for number in range(first, count, partitions))
        frame = self._session.range(0, count, 1, partitions)
        try:
            rows = frame.mapInArrow(partial(_run_all, task, order), "number long, result string").collect()
        except Exception as error:
            raise TaskFailed(f"{name}: {reason_of(error)}") from error
        return [row["result"] for row in sorted(rows, key=lambda row: row["number"])]


class InProcessRunner:
    """Runs tasks one after the other, without Spark: for small logs, and to compare with."""

    parallelism = 1

    def run(self, task: Task, count: int, name: str) -> list[str]:
        """See `Runner`. Errors of tasks come as they are."""
        return [task(number) or "" for number in range(count)]


class PoolRunner:
    """Runs tasks on processes of this machine, without Spark and its Java; a context manager."""

    def __init__(self, processes: int | None = None) -> None:
        """``processes``: as many as cores by default."""
        self.parallelism = processes or os.cpu_count() or 1
        self._pool = ProcessPoolExecutor(
            self.parallelism,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=die_with,  # a job that is killed would leave them waiting for ever
            initargs=(os.getpid(), signal.SIGKILL),
        )

    def __enter__(self) -> "PoolRunner":
        """The runner."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes; what has not begun is not done any more."""
        self._pool.shutdown(cancel_futures=True)

    def run(self, task: Task, count: int, name: str) -> list[str]:
        """See `Runner`."""
        running = [self._pool.submit(task, number) for number in range(count)]
        try:
            return [one.result() or "" for one in running]
        except BrokenExecutor as error:
            raise TaskFailed(f"{name}: a process of the pool has died: {error}") from error
        finally:
            for one in running:
                one.cancel()


def _run_all(task: Task, order: Sequence[int], batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    """On a worker: the numbers of one partition."""
    import pyarrow as pa

    for batch in batches:
        numbers = [order[index] for index in batch.column(0).to_pylist()]
        results = [task(number) or "" for number in numbers]
        yield pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64()), pa.array(results)], ["number", "result"])


def reason_of(error: Exception) -> str:
    """The last line of a Python traceback in Spark's many lines, which says what happened."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "Error: " in line or "Failed: " in line or "Exception: " in line]
    python = [
        line for line in told if line.startswith(("tandemmq.", "OSError", "PermissionError", "FileNotFoundError"))
    ]
    return (python or told or lines or [type(error).__name__])[-1]
