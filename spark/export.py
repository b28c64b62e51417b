"""Messages of a log as Parquet files, in directories by topic and day.

    OUT/topic=orders/day=2026-01-31/part-….parquet

A topic and day have one file, or more where it would become large. direct_export.py writes the same without Spark.

The day is that of store_timestamp in UTC. All columns of the data source but topic, which the directory says, and
is_valid: what is damaged is counted and left out.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tandemmq.spark.errors import BadJobOption, SparkJobError
from tandemmq.spark.reading.log_files import list_log_files, written_bytes
from tandemmq.spark.reading.ranges import DEFAULT_RANGE_SIZE
from tandemmq.spark.reading.topic_table import kept_since
from tandemmq.spark.running.runner import reason_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODES = ("error", "append", "overwrite")
"""What is done if there is something in OUT: refuse, add files, or replace the topics and days that are written."""


_TIMES = "spark.sql.parquet.outputTimestampType"
_FILE_SIZE = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
_SPARK_FILE_BYTES = 512 << 20
"""Of rows on their way between tasks, for each file of a topic and day; the last may have less."""


class ExportFailed(SparkJobError):
    """The export ended half done."""


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What to write where.

    ``target``: a directory, or an address that Spark writes to (``s3a://…``). ``topics``: empty for all. ``begin`` and
    ``end``: store times in ms, begin inclusive, end exclusive. ``columns``: without topic; empty for all. ``now_ms``:
    messages that their topics do not keep until then are left out; None: until now. ``running``: ``host:port`` of the
    store that writes the log.
    """

    store: Path
    target: str
    topics: tuple[str, ...] = ()
    begin: int | None = None
    end: int | None = None
    mode: str = "error"
    columns: tuple[str, ...] = ()
    now_ms: int | None = None
    range_size: int = DEFAULT_RANGE_SIZE
    running: str | None = None


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was written.

    ``damaged``: records and stretches that were left out, among what the conditions let through. ``log_bytes``: of the
    log, without what is reserved after its end. ``files`` and ``bytes``: None where the target is no directory of this
    machine.
    """

    messages: int
    damaged: int
    log_bytes: int
    files: int | None
    bytes: int | None
    seconds: float


def export(session: "SparkSession", request: ExportRequest) -> ExportReport:
    """Write the files.

    Raises:
        NotAStore, UnequalFiles: of the log. UnreadableTopics: of its topics.
        BadJobOption: what was asked for cannot be, or the target is not empty.
        ExportFailed: Spark could not do it; what it wrote may be incomplete.
    """
    check(request)
    from pyspark.errors import PySparkException
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    from tandemmq.spark.data_source import CommitLogDataSource

    started = time.monotonic()
    files = list_log_files(request.store)
    local = local_target(request.target)
    before = set(_data_files(local))
    seen = Observation("export")
    times, size = session.conf.get(_TIMES), session.conf.get(_FILE_SIZE)
    session.dataSource.register(CommitLogDataSource)
    try:
        frame = session.read.format("commitlog").options(**source_options(request)).load(str(request.store.absolute()))
        for topic, since in kept(request).items():
            old = (f.col("topic") == topic) & (f.col("store_timestamp") < f.timestamp_millis(f.lit(since)))
            frame = frame.where(~f.coalesce(old, f.lit(False)))
        frame = frame.observe(
            seen, f.count_if("is_valid").alias("messages"), f.count_if(~f.col("is_valid")).alias("damaged")
        )
        frame = frame.where("is_valid").drop("is_valid").withColumn("day", f.to_date("store_timestamp"))
        if request.columns and "store_timestamp" not in request.columns:
            frame = frame.drop("store_timestamp")
        frame = frame.hint("rebalance", "topic", "day")  # or each of 128 tasks would write a file of each topic and day
        session.conf.set(_FILE_SIZE, str(_SPARK_FILE_BYTES))
        session.conf.set(_TIMES, "TIMESTAMP_MICROS")  # what other programs read as a time in UTC, unlike the default
        writer = frame.write.mode(request.mode).option("partitionOverwriteMode", "dynamic")
        writer.partitionBy("topic", "day").parquet(request.target if local is None else str(local))
        counts = seen.get
    except PySparkException as error:
        raise ExportFailed(f"Writing to {request.target}: {reason_of(error)}") from error
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "py4j":
            raise
        raise ExportFailed(f"Writing to {request.target}: {reason_of(error)}") from error
    finally:
        session.conf.set(_TIMES, times or "INT96")
        session.conf.set(_FILE_SIZE, size or "64MB")
    written = None if local is None else [path for path in _data_files(local) if path not in before]
    return ExportReport(
        messages=counts["messages"],
        damaged=counts["damaged"],
        log_bytes=written_bytes(files),
        files=None if written is None else len(written),
        bytes=None if written is None else sum(path.stat().st_size for path in written),
        seconds=time.monotonic() - started,
    )


def check(request: ExportRequest) -> None:
    """Whether it can be done, as far as is seen without Spark. Raises BadJobOption, NotAStore, UnequalFiles."""
    list_log_files(request.store)
    if request.mode not in MODES:
        raise BadJobOption(f"There is no mode {request.mode!r}.", remedy=f"The modes are: {', '.join(MODES)}.")
    for column in ("topic", "is_valid", "day"):
        if column in request.columns:
            raise BadJobOption(f"{column} is no column of the files.", remedy="It is known by where they stand.")
    local = local_target(request.target)
    if local is None:
        return
    if local.exists() and not local.is_dir():
        raise BadJobOption(f"{local} is no directory.")
    if request.mode == "error" and local.is_dir() and any(local.iterdir()):
        raise BadJobOption(
            f"There is something in {local} already.",
            remedy="Add to it with the mode append, replace the topics and days that are written with overwrite, "
            "or name an empty directory.",
        )


def kept(request: ExportRequest) -> dict[str, int]:
    """See `kept_since`, which this asks for the present. Raises UnreadableTopics."""
    return kept_since(request.store, int(time.time() * 1000) if request.now_ms is None else request.now_ms)


def source_options(request: ExportRequest) -> dict[str, str]:
    """What the data source is asked for."""
    options = {"rangeSize": str(request.range_size)}
    if request.topics:
        options["topic"] = ",".join(request.topics)
    if request.columns:
        needed = ("topic", "store_timestamp", "is_valid")
        options["columns"] = ",".join(dict.fromkeys((*request.columns, *needed)))
    if request.begin is not None:
        options["startingTimestamp"] = str(request.begin)
    if request.end is not None:
        options["endingTimestamp"] = str(request.end)
    if request.running is not None:
        options["store"] = request.running
    return options


def local_target(target: str) -> Path | None:
    """The directory of this machine that is meant; None for an address that Spark writes to."""
    if "://" in target and not target.startswith("file://"):
        return None
    return Path(target.removeprefix("file://")).absolute()


def _data_files(directory: Path | None) -> Iterator[Path]:
    if directory is not None:
        for folder, _, names in os.walk(directory):
            yield from (Path(folder) / name for name in names if name.startswith("part-"))
