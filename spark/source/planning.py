"""Which ranges of a log a scan reads, and whether the log has all that was asked for."""

import itertools
import warnings
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tandemmq.spark.errors import BadJobOption, MissingLog
from tandemmq.spark.reading.log_files import LogFile, MappedLogFile, list_log_files
from tandemmq.spark.reading.ranges import LogRange, split
from tandemmq.spark.reading.scan import ReadRange, ScanWanted
from tandemmq.spark.source.conditions import Condition, offset_bounds
from tandemmq.spark.source.source_options import SourceOptions
from tandemmq.store.format.record_fields import has_record_magic

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def conditions_of(options: SourceOptions) -> tuple[Condition, ...]:
    """What the options ask of each row. Raises BadJobOption."""
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
    return tuple(conditions)


def _moment(ms: int) -> datetime:
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        raise BadJobOption(f"{ms} ms after 1970 is in no calendar.") from None


def ranges_to_read(path: Path, options: SourceOptions, wanted: ScanWanted) -> list[ReadRange]:
    """One for each range of the log that may hold rows, as it is now. Raises NotAStore, UnequalFiles, MissingLog."""
    files = list_log_files(path)
    limit = None if options.store is None else _end_of(options.store)
    begin, end = offset_bounds(wanted.conditions)
    check_complete(files, options, limit)
    last = last_written(files).start
    return [
        ReadRange(trimmed, limit, one.file.start >= last, options.check_crc, options.include_damaged)
        for one in split(files, options.range_size, end=limit)
        if (trimmed := _trimmed(one, begin, end)) is not None
    ]


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
        lose(options, f"The log begins at offset {files[0].start:,}, not at {start:,}: what was before has expired.")
    for file, following in itertools.pairwise(files):
        if following.start != file.end and (start or 0) < following.start and (end is None or end > file.end):
            lose(options, f"No file of the log in {options.path} holds offsets {file.end:,} to {following.start:,}.")
    if limit is not None and limit > files[-1].end and (end is None or end > files[-1].end):
        lose(options, f"The log of {options.store} ends at {limit:,}, its files in {options.path} do before.")


def lose(options: SourceOptions, what: str, cause: Exception | None = None) -> None:
    """Warn that a part of the log is not there. Raises MissingLog unless failOnDataLoss is false."""
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
    """The log offset after the last message that the running store lets consumers see. Raises ClientError."""
    from tandemmq.client import Identity, StoreClient
    from tandemmq.client.results import readable_end

    with StoreClient(store, **Identity.from_environment().at(store).arguments()) as client:
        return readable_end(client.log())
