"""A Spark session in a process of its own, and what is asked of it."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.model import Sample
from bench.workers.serving import serve

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def converse(master: str, directory: Path, kind: str) -> None:
    """Serve; the session begins with the question ``open``. ``kind``: ``rows`` for queries whose rows cross the JVM."""
    held = _Session(master, directory, rows_cross=kind == "rows")
    try:
        serve(
            {
                "open": held.open,
                "first task": held.first_task,
                "empty": held.empty,
                "rebuild": held.rebuild,
                "count": held.count,
                "topics": held.topics,
                "key": held.key,
                "all": held.everything,
            }
        )
    finally:
        held.close()


class _Session:
    """A session, and the tasks that are measured on it; each gives a sample."""

    def __init__(self, master: str, directory: Path, *, rows_cross: bool) -> None:
        self._master, self._directory, self._rows_cross = master, directory, rows_cross
        self._opened: SparkSession | None = None

    def open(self) -> Sample:
        """Import Spark and open the session."""
        begun = time.perf_counter()
        from tandemmq.spark.session import open_session

        self._directory.mkdir(parents=True, exist_ok=True)
        self._opened = open_session(
            self._master,
            app_name="bench",
            rows_cross=self._rows_cross,
            log=self._directory / "java.log",
            settings={
                "spark.local.dir": str(self._directory / "local"),
                "spark.sql.warehouse.dir": str(self._directory / "warehouse"),
            },
        )
        return {"seconds": time.perf_counter() - begun}

    def close(self) -> None:
        """End it."""
        if self._opened is not None:
            self._opened.stop()

    @property
    def _session(self) -> "SparkSession":
        assert self._opened is not None, "the session was not opened"
        return self._opened

    # -- tasks --------------------------------------------------------------------------------------------------------

    def first_task(self) -> Sample:
        """A task that does nothing: Spark makes its plan, Java starts a Python worker."""
        return self.empty(1)

    def empty(self, tasks: int) -> Sample:
        """A job of so many tasks that do nothing."""
        frame = self._session.range(0, tasks, 1, tasks).mapInArrow(_nothing, "id long")
        return {"seconds": _timed(lambda: _expect("tasks", len(frame.collect()), tasks))}

    def rebuild(self, root: str, messages: int, queues: bool, index: bool) -> Sample:
        """See `spark_rebuild.rebuilt`."""
        from bench.workers.spark_rebuild import rebuilt
        from tandemmq.spark.running.runner import SparkRunner

        staging = self._directory / "staging"
        return rebuilt(Path(root), staging, SparkRunner(self._session), messages, queues=queues, index=index)

    # -- queries ------------------------------------------------------------------------------------------------------

    def count(self, root: str, end: int, messages: int) -> Sample:
        """How many messages there are."""
        return _speed(end, messages, lambda: _expect("messages", self._log(root, "size int").count(), messages))

    def topics(self, root: str, end: int, messages: int) -> Sample:
        """Messages and bytes of each topic."""
        from pyspark.sql import functions

        def ask() -> None:
            log = self._log(root, "topic string, size int").groupBy("topic")
            rows = log.agg(functions.count("*").alias("n"), functions.sum("size").alias("bytes")).collect()
            _expect("messages", sum(row["n"] for row in rows), messages)

        return _speed(end, messages, ask)

    def key(self, root: str, end: int, messages: int) -> Sample:
        """Where the one message with a key is."""
        from bench.workers.spark_log import key_of

        def ask() -> None:
            log = self._log(root, "topic string, physical_offset long", key=key_of(messages // 2))
            _expect("messages with the key", len(log.collect()), 1)

        return _speed(end, messages, ask)

    def everything(self, root: str, end: int, messages: int) -> Sample:
        """All columns of all messages through the JVM, to nowhere."""

        def ask() -> None:
            self._log(root).write.format("noop").mode("overwrite").save()

        return _speed(end, messages, ask)

    def _log(self, root: str, schema: str | None = None, **options: str) -> "DataFrame":
        from tandemmq.spark.data_source import CommitLogDataSource

        self._session.dataSource.register(CommitLogDataSource)
        reader = self._session.read.format("commitlog").options(**options)
        return (reader if schema is None else reader.schema(schema)).load(root)


def _nothing(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    yield from batches


def _speed(end: int, messages: int, work: Callable[[], Any]) -> Sample:
    seconds = _timed(work)
    return {"gb_s": end / seconds / 1e9, "seconds": seconds, "m_msg_s": messages / seconds / 1e6}


def _timed(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _expect(what: str, found: int, expected: int) -> None:
    if found != expected:
        raise ValueError(f"{found:,} {what} were found, {expected:,} are there")
