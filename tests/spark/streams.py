"""What the tests of streams share: a store that is filled, and a stream's offsets followed without Spark."""

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows
from pyspark.sql.types import StructType

from tandemmq.client import ClientError, Outgoing, StoreClient
from tandemmq.spark.source.schema import SCHEMA, choose
from tandemmq.spark.source.source_options import SourceOptions
from tandemmq.spark.streaming import CommitLogStreamReader, stream_reader

Row = dict[str, Any]

GAVE_UP = "Python worker failed to connect back"
"""What Spark says of a stream whose Python process took more than ten seconds to start: it waits no longer, and no
setting says otherwise. On a busy machine that happens, and whoever runs such a query starts it again."""

STARTS = 10
"""How often a test does."""

_PATIENCE = 60.0
"""Seconds. A request that is given up may have been done, and nobody knows."""


def reader(columns: Sequence[str] = (), **options: object) -> CommitLogStreamReader:
    """The reader that Spark would get; options by their names."""
    schema: StructType = choose(columns) if columns else SCHEMA
    return stream_reader(SourceOptions.parse({name: str(value) for name, value in options.items()}), schema)


def rows(batches: Iterator[pa.RecordBatch]) -> list[Row]:
    return [row for batch in batches for row in batch.to_pylist()]


def batch_rows(stream: CommitLogStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[Row]:
    """The rows of one micro-batch."""
    return [row for partition in stream.partitions(start, end) for row in rows(iter(stream.read(partition)))]


def follow(
    stream: CommitLogStreamReader, limit: int | None = None, start: dict[str, Any] | None = None
) -> list[list[Row]]:
    """The micro-batches from ``start``, or from the begin, until there is nothing new."""
    start = stream.initialOffset() if start is None else start
    how: ReadLimit = ReadAllAvailable() if limit is None else ReadMaxRows(limit)
    found = []
    while (end := stream.latestOffset(start, how)) != start:
        found.append(batch_rows(stream, start, end))
        start = end
    return found


def together(batches: list[list[Row]]) -> list[Row]:
    return [row for batch in batches for row in batch]


def send(client: StoreClient, topic: str, first: int, count: int, queues: int = 2) -> None:
    """Messages whose bodies are their numbers, over the topic's queues in turn."""
    for queue in range(queues):
        numbers = range(first + queue, first + count, queues)
        if numbers:
            client.send_encoded([Outgoing(topic, b"%d" % number, tag="T") for number in numbers], queue_id=queue)


class Load(threading.Thread):
    """Sends numbered messages until it is told to stop; goes on through the store's restarts.

    ``sent``: the numbers that were acknowledged; ``doubtful``: those that may or may not have been stored.
    """

    def __init__(self, address: str, topic: str, batch: int = 20, pause: float = 0.005) -> None:
        super().__init__(name="load")
        self.address = address
        self.sent: set[int] = set()
        self.doubtful: set[int] = set()
        self.unexpected: BaseException | None = None
        self._topic, self._batch, self._pause = topic, batch, pause
        self._over = threading.Event()

    def run(self) -> None:
        number = 0
        try:
            while not self._over.is_set():
                with StoreClient(self.address, timeout=_PATIENCE) as client:
                    while not self._over.wait(self._pause):
                        numbers = range(number, number + self._batch)
                        number += self._batch
                        self.doubtful.update(numbers)
                        try:
                            client.send_encoded(
                                [Outgoing(self._topic, b"%d" % one) for one in numbers], queue_id=number % 3
                            )
                        except ClientError:
                            break
                        self.doubtful.difference_update(numbers)
                        self.sent.update(numbers)
                self._over.wait(0.1)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.unexpected = error

    def wait(self, more: int) -> None:
        """Until so many have been sent besides those that have been."""
        enough, deadline = len(self.sent) + more, time.monotonic() + 2 * _PATIENCE
        while len(self.sent) < enough:
            assert self.is_alive(), self.unexpected
            assert time.monotonic() < deadline, f"{len(self.sent)} messages were sent, not {enough}"
            time.sleep(0.01)

    def stop(self) -> None:
        self._over.set()
        self.join(_PATIENCE * 2)
        assert not self.is_alive()
        assert self.unexpected is None


def log_files(root: Path) -> list[Path]:
    return sorted((root / "commitlog").iterdir())
