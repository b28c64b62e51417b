"""``spark.read.format("commitlog").load(path)``: the commit log as a table.

    from tandemmq.spark.data_source import CommitLogDataSource

    spark.dataSource.register(CommitLogDataSource)
    log = spark.read.format("commitlog").option("columns", "topic,size").load("/var/lib/store")
    log.groupBy("topic").sum("size").show()

Columns: schema.py. Options: source_options.py. Spark does not tell a Python data source which columns a query uses, so
say it: by the option ``columns``, or by a schema (``.schema("topic string, size int")``); a column that is not asked
for costs nothing. Likewise conditions: those of the option ``where`` (and of ``topic``, ``key`` and the bounds) are
tested in the scan, before anything is copied, and a bound on physical_offset leaves out whole ranges. Those of the
query itself are Spark's business, unless ``pushFilters`` is set (source_filters.py): Spark 4.3 keeps the filters that
it has pushed into a Python data source with the DataFrame, and a later query on it, with other filters or none, misses
rows.

Spark also keeps the ranges: a DataFrame shows the log as it was at its first query; load it anew to see more.
"""

import itertools
import warnings
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tandemmq.spark.errors import BadJobOption, MissingLog
from tandemmq.spark.reading.log_files import LogFile, MappedLogFile, list_log_files
from tandemmq.spark.reading.ranges import LogRange, split
from tandemmq.spark.reading.scan import ReadRange, ScanWanted
from tandemmq.spark.source.conditions import Condition, offset_bounds
from tandemmq.spark.source.schema import SCHEMA, arrow_schema, choose
from tandemmq.spark.source.source_filters import condition_of
from tandemmq.spark.source.source_options import SourceOptions
from tandemmq.store.format.record_fields import has_record_magic

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamReader, Filter

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CommitLogDataSource(DataSource):
    """The data source ``commitlog``."""

    @classmethod
    def name(cls) -> str:
        """What ``format`` is given."""
        return "commitlog"

    def schema(self) -> StructType:
        """The columns of the option ``columns``, else all. Raises BadJobOption."""
        columns = SourceOptions.parse(self.options).columns
        return choose(columns) if columns else SCHEMA

    def reader(self, schema: StructType) -> "CommitLogReader":
        """A reader of the log as it is now."""
        options = SourceOptions.parse(self.options)
        return (PushingReader if options.push_filters else CommitLogReader)(options, schema)

    def streamReader(self, schema: StructType) -> "DataSourceStreamReader":
        """A reader that follows the log."""
        from tandemmq.spark.streaming import stream_reader

        return stream_reader(SourceOptions.parse(self.options), schema)


class RangePartition(InputPartition):
    """The work of one task."""

    value: ReadRange


def wanted_of(options: SourceOptions, schema: StructType) -> ScanWanted:
    """What the schema and the options ask of each row. Raises BadJobOption."""
    conditions = list(options.where)
    if options.topic:
        conditions.append(Condition("topic", "in", options.topic))
    if options.starting_offsets is not None:
        conditions.append(Condition("physical_offset", ">=", options.starting_offsets))
    if options.ending_offsets is not None:
        conditions.append(Condition("physical_offset", "<", options.ending_offsets))
    for value, test in ((options.starting_timestamp, ">="), (options.ending_timestamp, "<")):
        if value is not None:
            conditions.append(Condition("store_timestamp", test, _moment(value)))
    return ScanWanted(arrow_schema(schema), tuple(conditions), options.key)


def _moment(ms: int) -> datetime:
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        raise BadJobOption(f"{ms} ms after 1970 is in no calendar.") from None


class CommitLogReader(DataSourceReader):
    """Reads the log as it is when the query is planned. Spark pickles it."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        """Raises BadJobOption for a column that cannot be, and for what only a stream knows."""
        if options.path is None:
            raise BadJobOption("No path is given, and only a stream reads from a store alone: .load(path).")
        if options.starting_at_end:
            raise BadJobOption("startingOffsets is 'latest', behind which only a stream finds something.")
        if options.max_offsets_per_trigger is not None:
            raise BadJobOption("maxOffsetsPerTrigger is for streams: spark.readStream.")
        self._path = options.path
        self._options = options
        self._wanted = wanted_of(options, schema)

    def partitions(self) -> Sequence[InputPartition]:
        """One for each range of the log that may hold rows. Raises NotAStore, UnequalFiles, MissingLog."""
        options = self._options
        files = list_log_files(self._path)
        limit = None if options.store is None else _end_of(options.store)
        begin, end = offset_bounds(self._wanted.conditions)
        check_complete(files, options, limit)
        last = last_written(files).start
        ranges = split(files, options.range_size, end=limit)
        return [
            RangePartition(
                ReadRange(
                    trimmed,
                    limit,
                    one.file.start >= last,
                    options.check_crc,
                    options.include_damaged,
                )
            )
            for one in ranges
            if (trimmed := _trimmed(one, begin, end)) is not None
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one range. Raises MissingLog if the file is gone."""
        if not isinstance(partition, RangePartition):  # Spark makes up one where there are none
            return
        from tandemmq.spark.reading.range_reading import read_range

        try:
            yield from read_range(partition.value, self._wanted)
        except FileNotFoundError as error:
            file = partition.value.range.file
            _lose(self._options, f"{file.path} is gone: its messages have expired since the query was planned.", error)


class PushingReader(CommitLogReader):
    """One that takes filters. A class of its own: Spark refuses the method where its setting for it is off."""

    def pushFilters(self, filters: list["Filter"]) -> Iterable["Filter"]:
        """Take what the scan tests exactly; give the rest back."""
        for pushed in filters:
            condition = condition_of(pushed, self._wanted.schema)
            if condition is None:
                yield pushed
            else:
                self._wanted = self._wanted.also(condition)


def last_written(files: Sequence[LogFile]) -> LogFile:
    """The last file with a record in it, else the first file. A store makes its next file before it needs it."""
    for file in reversed(files[1:]):
        with MappedLogFile(file) as mapped:
            if has_record_magic(mapped.map):  # so it need not be walked, and nothing compiled be loaded
                return file
        from tandemmq.spark.reading.range_reading import has_record

        if has_record(file):
            return file
    return files[0]


def check_complete(files: Sequence[LogFile], options: SourceOptions, limit: int | None) -> None:
    """Warn, or raise MissingLog, where a part of the log that was asked for is not there."""
    start = options.starting_offsets
    end = options.ending_offsets
    if start is not None and start < files[0].start:
        _lose(options, f"The log begins at offset {files[0].start:,}, not at {start:,}: what was before has expired.")
    for file, following in itertools.pairwise(files):
        if following.start != file.end and (start or 0) < following.start and (end is None or end > file.end):
            _lose(options, f"No file of the log in {options.path} holds offsets {file.end:,} to {following.start:,}.")
    if limit is not None and limit > files[-1].end and (end is None or end > files[-1].end):
        _lose(options, f"The log of {options.store} ends at {limit:,}, its files in {options.path} do before.")


def _lose(options: SourceOptions, what: str, cause: Exception | None = None) -> None:
    if options.fail_on_data_loss:
        raise MissingLog(f"{what} Set failOnDataLoss to false to read what there is.") from cause
    warnings.warn(what, stacklevel=3)


def _trimmed(log_range: LogRange, begin: int, end: int) -> LogRange | None:
    """The part of the range in [begin, end)."""
    low, high = max(log_range.begin, begin), min(log_range.end, end)
    if low >= high:
        return None
    return LogRange(log_range.number, log_range.file, low, high, log_range.exact and low == log_range.begin)


def _end_of(store: str) -> int:
    """The log offset behind the last message that the running store lets consumers see. Raises ClientError."""
    from tandemmq.client import Identity, StoreClient
    from tandemmq.client.results import readable_end

    with StoreClient(store, **Identity.from_environment().arguments()) as client:
        return readable_end(client.log())
