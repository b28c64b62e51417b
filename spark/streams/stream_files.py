"""Following a log in its files: what is new is a stretch of log offsets.

Offset document: ``{"offset": N}``, the log offset after the last record that was read. The end of the log is told by
the store that writes it (``store``); without one it is where valid records end, which a log that nobody writes to any
more has for certain, and a live one nearly: a message that is being written fails its checksum and is left for the next
time, but one without a body has none.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from tandemmq.client import StoreClient
from tandemmq.client.results import readable_end
from tandemmq.spark.data_source import RangePartition
from tandemmq.spark.errors import BadJobOption, NotAStore
from tandemmq.spark.reading.log_files import LogFile, list_log_files
from tandemmq.spark.reading.ranges import LogRange, split
from tandemmq.spark.reading.scan import ReadRange, ScanWanted
from tandemmq.spark.reading.walked_end import WalkedEnd, walk_through
from tandemmq.spark.source.source_options import SourceOptions
from tandemmq.spark.streams.stream_loss import lose
from tandemmq.spark.streams.stream_store import StreamStore

# What walks is compiled; a process of Spark's that only asks the store does without.

Document = dict[str, Any]

_KEY = "offset"
_ROWS = 1 << 16
_TRIES = 3


class FileFollower:
    """Follows the log in one directory."""

    def __init__(self, options: SourceOptions, path: Path, pause: Callable[[float], None] = time.sleep) -> None:
        """``path``: where the files are, on this host and on those of the tasks. ``pause``: waits so many seconds."""
        self._options = options
        self._path = path
        self._link = None if options.store is None else StreamStore(options.store)
        self._walked_end = WalkedEnd(pause)
        self._highest = 0
        self._place_known = False

    def check(self, document: Document) -> None:
        """Raises BadJobOption if a checkpoint's document is not of this kind."""
        if set(document) != {_KEY} or not isinstance(document[_KEY], int):
            raise BadJobOption(
                "The checkpoint is that of a query that read over the network, not the files: give it no path, as "
                "before, or another checkpointLocation."
            )

    def initial(self) -> Document:
        """Where a new query begins. Raises TandemError."""
        starting = self._options.starting_offsets
        known = None if self._link is None else self._link.demand(self._ask)
        files = self._files()
        if not files:
            return {_KEY: 0 if known is None else known}
        end = self._walked_end.find(files) if known is None else known
        if self._options.starting_at_end:
            return {_KEY: end}
        first = files[0].start
        if starting is None:
            return {_KEY: first}
        if starting > end:
            raise BadJobOption(f"startingOffsets is {starting:,}, and the log ends at {end:,}.")
        if starting < first:
            lose(
                self._options.fail_on_data_loss,
                f"The log begins at offset {first:,}, not at {starting:,}: what was before has expired.",
            )
        return {_KEY: _boundary(files, max(starting, first), end)}

    def end(self, *, wait: bool) -> Document | None:
        """After the last record; None while the store is away. Raises TandemError; without ``wait`` at once."""
        if self._link is not None:
            end = self._link.ask(self._ask) if wait else self._link.demand(self._ask)
            return None if end is None else {_KEY: end}
        return {_KEY: self._walked_end.find(self._files())}

    def after(self, start: Document, end: Document) -> Document:
        """``end``, as it can follow on ``start``. Raises MissingLog if the log is shorter than it was."""
        if end[_KEY] < start[_KEY] <= self._highest:  # a store that has just started is still at its queues
            return start
        if end[_KEY] < start[_KEY]:
            lose(
                self._options.fail_on_data_loss,
                f"The log ends at offset {end[_KEY]:,}, and the query has read it up to {start[_KEY]:,}: "
                "the store has lost its last messages, or this is another log.",
            )
        return end

    def within(self, start: Document, end: Document, messages: int) -> Document:
        """After at most so many records from ``start`` on, but not after ``end``. Counts messages of all topics."""
        from tandemmq.spark.reading.walking import RangeWalker
        from tandemmq.store.format.compiled.record_columns import RecordColumns

        begin, stop = start[_KEY], end[_KEY]
        for file in self._files():
            low, high = max(begin, file.start), min(stop, file.end)
            if low >= high:
                continue
            log_range = LogRange(0, file, low, high, exact=True)
            with RangeWalker(log_range, check_crc=False, rows=min(messages + 1, _ROWS)) as walking:
                for walk in walking.walks():
                    if walk.count > messages:
                        row = np.array([messages], np.int64)
                        return {_KEY: int(RecordColumns(walk).physical_offset(row)[0])}
                    messages -= walk.count
        return end

    def partitions(self, start: Document, end: Document) -> list[RangePartition]:
        """The ranges of the log between two documents. Raises TandemError."""
        begin, stop = start[_KEY], end[_KEY]
        if stop <= begin:
            return []
        options, files = self._options, self._files()
        self._check_present(files, begin, stop)
        ranges = split(files, options.range_size, begin=begin, end=stop)
        return [
            RangePartition(ReadRange(one, stop, False, options.check_crc, options.include_damaged)) for one in ranges
        ]

    def read(self, partition: InputPartition, wanted: ScanWanted) -> Iterator[pa.RecordBatch]:
        """The rows of one range. Raises MissingLog if the file is gone."""
        from tandemmq.spark.reading.range_reading import read_range

        task: ReadRange = partition.value
        try:
            yield from read_range(task, wanted)
        except FileNotFoundError as error:
            lose(
                self._options.fail_on_data_loss,
                f"{task.range.file.path} is gone: its messages have expired before they were read.",
                error,
            )

    def stop(self) -> None:
        """Let go of the store."""
        if self._link is not None:
            self._link.close()

    def _ask(self, client: StoreClient) -> int:
        log = client.log()
        if not self._place_known:
            self._check_place(Path(log.root))
            self._place_known = True
        self._highest = int(log.state.max_offset)  # what may be seen can be less for a while, after a restart
        return readable_end(log)

    def _check_place(self, root: Path) -> None:
        """The store may see its directory under another path, in a container say; but not under a path that is here."""
        if not self._path.exists():
            raise BadJobOption(
                f"{self._path} is not on this host; the store {self._options.store} has its files in {root}."
                " Give no path to read them over the network."
            )
        own = self._path.parent if self._path.name == "commitlog" else self._path
        if root.is_dir() and not os.path.samefile(root, own):
            raise BadJobOption(
                f"The store {self._options.store} has its files in {root}, not in {self._path}."
                " Name that directory, or give no path to read over the network."
            )

    def _files(self) -> list[LogFile]:
        """The files; none of a store that runs and was never written to."""
        for left in reversed(range(_TRIES)):
            try:
                return list_log_files(self._path)
            except FileNotFoundError:  # one has expired while we looked
                if not left:
                    raise
            except NotAStore:
                if self._link is None or not self._path.is_dir():
                    raise
                break
        return []

    def _check_present(self, files: Sequence[LogFile], begin: int, stop: int) -> None:
        """Raises MissingLog, or warns, if a part of [begin, stop) is not there, or was written anew."""
        fail = self._options.fail_on_data_loss
        first, last = (files[0].start, files[-1].end) if files else (stop, stop)
        if begin < first:
            lose(fail, f"The log begins at offset {first:,}: what was from {begin:,} on has expired unread.")
        for file, following in pairwise(files):
            if following.start != file.end and begin < following.start and stop > file.end:
                lose(fail, f"No file of the log in {self._path} holds offsets {file.end:,} to {following.start:,}.")
        if stop > last:
            lose(fail, f"The log in {self._path} ends at {last:,}, before {stop:,}: its last files are gone.")
        at = next((file for file in files if file.start < begin < file.end), None)
        if at is not None and not _is_boundary(at, begin):
            lose(
                fail,
                f"Offset {begin:,}, up to where the query has read the log, is inside of a message: "
                "the store has lost its last messages and has written others since, or this is another log.",
            )


def _is_boundary(file: LogFile, begin: int) -> bool:
    """Whether a record begins at log offset ``begin``, or nothing does, but not in a record."""
    from tandemmq.spark.reading.walking import RangeWalker

    with RangeWalker(LogRange(0, file, begin, begin + 1, exact=True), check_crc=False, rows=1) as walking:
        for _ in walking.walks():
            return True
        if not walking.result.damage and walking.result.next == file.end:
            return True
    # Damage may begin there; else the record before reaches beyond it.
    return walk_through(LogRange(0, file, file.start, begin, exact=True), check_crc=False).next <= begin


def _boundary(files: Sequence[LogFile], offset: int, end: int) -> int:
    """Log offset of the first record at or after ``offset``; ``end`` if there is none."""
    from tandemmq.spark.reading.range_reading import proven

    for file in files:
        low, high = max(offset, file.start), min(end, file.end)
        if low < high:
            found = proven(LogRange(0, file, low, high, exact=low == file.start), last=True)
            if found is not None:
                return found.begin
    return end
