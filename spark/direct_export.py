"""The export without Spark: one process reads the log and writes the files, the same that Spark writes.

A topic and day have one file, or several where it would be larger than `FILE_BYTES`. Rows are gathered in memory, and
go out where they are many, or all together are. Until the end the files lie in OUT/_temporary-…, which nobody reads.
"""

import os
import shutil
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import numpy as np

from tandemmq.common.errors import Kind
from tandemmq.common.files.file_system import LOCAL
from tandemmq.common.files.replacing import make_dirs
from tandemmq.spark.errors import BadJobOption, SparkJobError
from tandemmq.spark.export import ExportFailed, ExportReport, ExportRequest, check, kept, local_target, source_options
from tandemmq.spark.reading.log_files import list_log_files, written_bytes

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tandemmq.spark.reading.scan import ScanWanted
    from tandemmq.spark.source.source_options import SourceOptions

FILE_BYTES = 1 << 30
"""Of rows in memory; a file on disk is smaller."""
_GROUP_BYTES = 64 << 20
"""A topic and day that has gathered so much is written: one row group."""
_GATHERED_BYTES = 256 << 20
"""What all of them together may have gathered."""
_OPEN_FILES = 200
"""Beyond that the file that has rested longest is finished; more rows of it go to a further one."""
_DAY_US = 86_400_000_000
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What Spark calls the directory of rows without a value."""
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | frozenset(map(chr, range(1, 32)))
"""As Spark's escapePathName has it."""

Place = tuple[str | None, int | None]
"""A topic, and a day since 1970."""


class ArrowMissing(SparkJobError):
    """The package that writes Parquet is not installed."""

    kind = Kind.NOT_POSSIBLE
    remedy = "pip install 'tandemmq[export]'"


@dataclass
class _Gathered:
    """What is written of a topic and day."""

    batches: list["pa.RecordBatch"] = field(default_factory=list)
    bytes: int = 0
    files: int = 0
    """That have been begun."""


def export_directly(request: ExportRequest, tell: Callable[[int, int], None] | None = None) -> ExportReport:
    """Write the files. `tell(done, total)`: bytes of the log.

    Raises:
        ArrowMissing: there is no pyarrow.
        NotAStore, UnequalFiles, MissingLog: of the log. UnreadableTopics: of its topics.
        BadJobOption: what was asked for cannot be, or the target is not empty.
        ExportFailed: a file cannot be written; nothing has been put in place, unless that is what failed.
    """
    check(request)
    target = local_target(request.target)
    if target is None:
        raise BadJobOption(f"{request.target} is no directory of this machine.", remedy="Spark writes there: --master")
    try:
        import pyarrow.parquet  # noqa: F401 - where it is missing, that is told at once
    except ImportError as error:
        raise ArrowMissing(f"Parquet is written by the package pyarrow, which cannot be imported: {error}") from error

    started = time.monotonic()
    staging = target / f"_temporary-{token_hex(4)}"
    try:
        staging.mkdir(parents=True)
        writing = _Writing(staging, request.columns)
        messages, damaged = _copy(request, writing, tell or (lambda done, total: None))
        writing.finish()
        written = _publish(staging, target, replace=request.mode == "overwrite")
    except OSError as error:
        raise ExportFailed(f"Writing to {request.target}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return ExportReport(
        messages=messages,
        damaged=damaged,
        log_bytes=written_bytes(list_log_files(request.store)),
        files=len(written),
        bytes=sum(path.stat().st_size for path in written),
        seconds=time.monotonic() - started,
    )


def _copy(request: ExportRequest, writing: "_Writing", tell: Callable[[int, int], None]) -> tuple[int, int]:
    """Read, and hand over what is valid; gives how many rows were, and were not. Raises MissingLog, OSError."""
    import pyarrow.compute as pc

    from tandemmq.spark.reading.range_reading import read_range
    from tandemmq.spark.source.planning import lose, ranges_to_read

    options, wanted = _wanted(request)
    ranges = ranges_to_read(request.store.absolute(), options, wanted)
    total = sum(one.range.size for one in ranges)
    since = kept(request)
    messages = damaged = done = 0
    for task in ranges:
        try:
            for batch in read_range(task, wanted):
                batch = _without_old(batch, since)
                valid = batch["is_valid"]
                count = pc.sum(valid).as_py() or 0
                messages, damaged = messages + count, damaged + len(batch) - count
                if count:
                    writing.take(batch if count == len(batch) else batch.filter(valid))
        except FileNotFoundError as error:
            lose(options, f"{task.range.file.path} is gone: its messages have expired meanwhile.", error)
        done += task.range.size
        tell(done, total)
    return messages, damaged


def _without_old(batch: "pa.RecordBatch", since: Mapping[str, int]) -> "pa.RecordBatch":
    """The rows of topics that keep them still; `since`: see `kept_since`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for topic, ms in since.items():
        stored = batch["store_timestamp"]
        old = pc.and_(pc.equal(batch["topic"], topic), pc.less(stored, pa.scalar(ms * 1000, stored.type)))
        if pc.any(old).as_py():
            batch = batch.filter(pc.invert(pc.fill_null(old, False)))  # what is no record has no topic, and is counted
    return batch


def _wanted(request: ExportRequest) -> "tuple[SourceOptions, ScanWanted]":
    """What is read. Raises BadJobOption."""
    import pyarrow as pa

    from tandemmq.spark.reading.scan import ScanWanted
    from tandemmq.spark.source.planning import conditions_of
    from tandemmq.spark.source.record_batches import ARROW_TYPES
    from tandemmq.spark.source.source_options import SourceOptions

    options = SourceOptions.parse({"path": str(request.store.absolute()), **source_options(request)})
    names = options.columns or tuple(ARROW_TYPES)
    for name in names:
        if name not in ARROW_TYPES:
            raise BadJobOption(f"A commit log has no column {name!r}. The columns are: {', '.join(ARROW_TYPES)}.")
    schema = pa.schema([(name, ARROW_TYPES[name]) for name in names])
    return options, ScanWanted(schema, conditions_of(options), options.key)


class _Writing:
    """Rows on their way into files."""

    def __init__(self, directory: Path, columns: tuple[str, ...]) -> None:
        self._directory = directory
        self._columns = columns
        """Empty: all."""
        self._token = token_hex(4)
        self._places: dict[Place, _Gathered] = {}
        self._open: OrderedDict[Place, tuple[pq.ParquetWriter, int]] = OrderedDict()
        """Files that grow, the one that has rested longest first; each with the bytes of its rows."""
        self._gathered = 0

    def take(self, batch: "pa.RecordBatch") -> None:
        """Gather valid rows, and write what has become much. Raises OSError."""
        for place, rows in _by_place(batch):
            found = self._places.setdefault(place, _Gathered())
            found.batches.append(rows.select([name for name in rows.schema.names if self._is_kept(name)]))
            found.bytes += rows.nbytes
            self._gathered += rows.nbytes
            if found.bytes >= _GROUP_BYTES:
                self._write(place)
        if self._gathered > _GATHERED_BYTES:
            for place in sorted(self._places, key=lambda one: self._places[one].bytes, reverse=True):
                self._write(place)
                if self._gathered <= _GATHERED_BYTES // 2:
                    break

    def finish(self) -> None:
        """Write what is left. Raises OSError."""
        for place in self._places:
            self._write(place)
            self._close(place)

    def _is_kept(self, name: str) -> bool:
        return name not in ("topic", "is_valid") and (not self._columns or name in self._columns)

    def _write(self, place: Place) -> None:
        import pyarrow as pa

        found = self._places[place]
        if not found.batches:
            return
        rows = pa.Table.from_batches(found.batches)
        writer, before = self._open.pop(place) if place in self._open else (self._begin(place, rows.schema), 0)
        self._open[place] = writer, before + found.bytes
        writer.write_table(rows, row_group_size=max(1, len(rows)))
        self._gathered -= found.bytes
        found.batches, found.bytes = [], 0
        if self._open[place][1] >= FILE_BYTES:
            self._close(place)
        if len(self._open) > _OPEN_FILES:
            self._close(next(iter(self._open)))

    def _begin(self, place: Place, schema: "pa.Schema") -> "pq.ParquetWriter":
        import pyarrow.parquet as pq

        found = self._places[place]
        directory = self._directory / _folder(place)
        directory.mkdir(parents=True, exist_ok=True)
        name = f"part-{found.files:05d}-{self._token}.snappy.parquet"
        found.files += 1
        return pq.ParquetWriter(directory / name, schema, compression="snappy")

    def _close(self, place: Place) -> None:
        if (entry := self._open.pop(place, None)) is not None:
            entry[0].close()


def _by_place(batch: "pa.RecordBatch") -> "Iterator[tuple[Place, pa.RecordBatch]]":
    """The rows by topic and day, in their order; each part has memory of its own."""
    import pyarrow as pa
    import pyarrow.compute as pc

    topics = batch["topic"].dictionary_encode()
    micros = batch["store_timestamp"].cast(pa.int64())
    days = pc.fill_null(micros, np.iinfo(np.int64).min).to_numpy(zero_copy_only=False) // _DAY_US
    without = days < np.iinfo(np.int64).min // _DAY_US + 1
    known, codes = np.unique(days, return_inverse=True)
    both = pc.fill_null(topics.indices, len(topics.dictionary)).to_numpy(zero_copy_only=False).astype(np.int64)
    keys, inverse, counts = np.unique(both * len(known) + codes, return_inverse=True, return_counts=True)
    order = np.argsort(inverse, kind="stable")
    names = [*topics.dictionary.to_pylist(), None]
    for key, rows in zip(keys, np.split(order, np.cumsum(counts)[:-1]), strict=True):
        topic, day = divmod(int(key), len(known))
        place = (names[topic], None if without[rows[0]] else int(known[day]))
        yield place, batch.take(pa.array(rows))


def _folder(place: Place) -> str:
    topic, day = place
    shown = _NO_VALUE if day is None else str(np.datetime64(day, "D"))
    return f"topic={_escaped(topic) if topic else _NO_VALUE}/day={shown}"


def _escaped(name: str) -> str:
    return "".join(f"%{ord(one):02X}" if one in _ESCAPED else one for one in name)


def _publish(staging: Path, target: Path, *, replace: bool) -> list[Path]:
    """Give the files their places, durably; with `replace` in place of what their topics and days have. Raises OSError.

    What is replaced goes when the new is there: whoever is killed in between leaves too much, and not too little.
    """
    written = []
    for folder, _, names in os.walk(staging):
        place = target / Path(folder).relative_to(staging)
        if not names:
            continue
        make_dirs(LOCAL, place)
        before = list(place.glob("part-*"))
        for name in sorted(names):
            _sync(Path(folder) / name)
            LOCAL.rename(Path(folder) / name, place / name)
            written.append(place / name)
        LOCAL.sync_dir(place)
        for old in before if replace else ():
            old.unlink()
    (target / "_SUCCESS").touch()
    LOCAL.sync_dir(target)
    return written


def _sync(path: Path) -> None:
    fd = LOCAL.open(path, os.O_RDONLY)
    try:
        LOCAL.sync(fd)
    finally:
        os.close(fd)
