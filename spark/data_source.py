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

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tandemmq.spark.errors import BadJobOption
from tandemmq.spark.reading.scan import ReadRange, ScanWanted
from tandemmq.spark.source.planning import conditions_of, lose, ranges_to_read
from tandemmq.spark.source.schema import SCHEMA, arrow_schema, choose
from tandemmq.spark.source.source_filters import condition_of
from tandemmq.spark.source.source_options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamReader, Filter


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
    return ScanWanted(arrow_schema(schema), conditions_of(options), options.key)


class CommitLogReader(DataSourceReader):
    """Reads the log as it is when the query is planned. Spark pickles it."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        """Raises BadJobOption for a column that cannot be, and for what only a stream knows."""
        if options.path is None:
            raise BadJobOption("No path is given, and only a stream reads from a store alone: .load(path).")
        if options.starting_at_end:
            raise BadJobOption("startingOffsets is 'latest', after which only a stream finds something.")
        if options.max_offsets_per_trigger is not None:
            raise BadJobOption("maxOffsetsPerTrigger is for streams: spark.readStream.")
        self._path = options.path
        self._options = options
        self._wanted = wanted_of(options, schema)

    def partitions(self) -> Sequence[InputPartition]:
        """One for each range of the log that may hold rows. Raises NotAStore, UnequalFiles, MissingLog."""
        return [RangePartition(one) for one in ranges_to_read(self._path, self._options, self._wanted)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one range. Raises MissingLog if the file is gone."""
        if not isinstance(partition, RangePartition):  # Spark makes up one where there are none
            return
        from tandemmq.spark.reading.range_reading import read_range

        try:
            yield from read_range(partition.value, self._wanted)
        except FileNotFoundError as error:
            file = partition.value.range.file
            lose(self._options, f"{file.path} is gone: its messages have expired since the query was planned.", error)


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
