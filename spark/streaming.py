"""``spark.readStream.format("commitlog")``: a stream that follows a log.

    messages = spark.readStream.format("commitlog").option("store", "127.0.0.1:8081").load("/var/lib/store")
    messages.writeStream.format("parquet").option("checkpointLocation", "…").start("…")

Rows, columns and options are those of the table (data_source.py), except that a stream has no end (``endingOffsets``,
``endingTimestamp``), ``startingOffsets`` may be ``latest``, and ``maxOffsetsPerTrigger`` bounds the messages of a
micro-batch. Where it reads:

===================  ====================================================================================
path and ``store``   the files, up to where the store has finished its messages: fast, and certain
path                 the files, up to where valid records end: a log at rest, or nearly so (stream_files.py)
``store``            over the network, through the store's queues (stream_queues.py)
===================  ====================================================================================

A micro-batch is a stretch of the log, or of queues, which Spark writes into its checkpoint before it reads it: after a
crash it reads the same stretch again and gets the same rows. A sink that takes a batch once, as files and tables do,
has every message exactly once. While the store is away a query waits (stream_store.py). A query must not change between
path and network over its restarts, since offsets of the log mean nothing in a queue.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from tandemmq.spark.data_source import wanted_of
from tandemmq.spark.errors import BadJobOption
from tandemmq.spark.reading.scan import ScanWanted
from tandemmq.spark.source.source_options import SourceOptions
from tandemmq.spark.streams.stream_files import Document, FileFollower
from tandemmq.spark.streams.stream_queues import QueueFollower


class LogFollower(Protocol):
    """Knows where a log begins and ends, and what lies between two places, each told by a document."""

    def check(self, document: Document) -> None:
        """Raises BadJobOption if a checkpoint's document is another follower's."""

    def initial(self) -> Document:
        """Where a new query begins."""

    def end(self, *, wait: bool) -> Document | None:
        """After all there is; None while nobody knows, which is an error if not ``wait``."""

    def after(self, start: Document, end: Document) -> Document:
        """``end``, as it can follow on ``start``."""

    def within(self, start: Document, end: Document, messages: int) -> Document:
        """After at most so many messages, but not after ``end``."""

    def partitions(self, start: Document, end: Document) -> Sequence[InputPartition]:
        """What lies between, in pieces."""

    def read(self, partition: InputPartition, wanted: ScanWanted) -> Iterator[pa.RecordBatch]:
        """The rows of a piece."""

    def stop(self) -> None:
        """Let go of everything."""


def stream_reader(options: SourceOptions, schema: StructType) -> "CommitLogStreamReader":
    """The reader that the options ask for. Raises BadJobOption."""
    for name, value in (("endingOffsets", options.ending_offsets), ("endingTimestamp", options.ending_timestamp)):
        if value is not None:
            raise BadJobOption(f"A stream has no {name}. Use the trigger availableNow, or spark.read.")
    if options.push_filters:
        raise BadJobOption("Spark pushes nothing into a stream: give the conditions by the option where.")
    follower: LogFollower
    if options.path is not None:
        follower = FileFollower(options, options.path)
    elif options.store is not None:
        follower = QueueFollower(options, options.store)
    else:
        raise BadJobOption("Neither a path nor a store is given.")
    return CommitLogStreamReader(options, wanted_of(options, schema), follower)


class CommitLogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What Spark asks of a stream. Spark pickles it before it has asked anything."""

    def __init__(self, options: SourceOptions, wanted: ScanWanted, follower: LogFollower) -> None:
        """See `stream_reader`."""
        self._limit = options.max_offsets_per_trigger
        self._wanted = wanted
        self._follower = follower
        self._target: Document | None = None
        self._seen: Document | None = None

    def initialOffset(self) -> Document:
        """Where a new query begins. Raises TandemError: a store that is away when a query begins is an error."""
        return self._follower.initial()

    def getDefaultReadLimit(self) -> ReadLimit:
        """``maxOffsetsPerTrigger``."""
        return ReadAllAvailable() if self._limit is None else ReadMaxRows(self._limit)

    def latestOffset(self, start: Document, limit: ReadLimit) -> Document:
        """The end of the next micro-batch; ``start`` where there is nothing new. Raises TandemError."""
        self._follower.check(start)
        end = self._follower.end(wait=True) if self._target is None else self._target
        if end is None:
            return start
        self._seen = end
        end = self._follower.after(start, end)
        if isinstance(limit, ReadMaxRows):
            end = self._follower.within(start, end, limit.max_rows)
        return start if end == start else end

    def prepareForTriggerAvailableNow(self) -> None:
        """Keep to what there is now. Raises TandemError: a query that is to end does not wait for its store."""
        self._target = self._follower.end(wait=False)

    def reportLatestOffset(self) -> Document | None:
        """The end of the log as it was last seen, for the progress of the query."""
        return self._seen

    def partitions(self, start: Document, end: Document) -> Sequence[InputPartition]:
        """The tasks of a micro-batch. Raises TandemError."""
        self._follower.check(start)
        return self._follower.partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task. Raises TandemError."""
        return self._follower.read(partition, self._wanted)

    def stop(self) -> None:
        """Let go of the store."""
        self._follower.stop()
