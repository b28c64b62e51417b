"""Writing consume queue units where they belong, from many tasks at once.

Unit n of a queue stands at byte 20·n of the queue, so ranges of the log can be written in any order and never meet.
"""

import os
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tandemmq.spark.reading.log_files import NAME_DIGITS
from tandemmq.store.format.unit import UNIT_SIZE
from tandemmq.store.format.walker import UnitRun

QueueKey = tuple[str, int]

_OPEN_MAX = 256
_BUFFER_MAX = 64 << 20


class Interval(NamedTuple):
    """Consecutive queue offsets [first, end) of one queue, as they came in the log.

    ``physical_begin``, ``physical_end``: log offsets of the first record and after the last.
    """

    first: int
    end: int
    physical_begin: int
    physical_end: int

    @classmethod
    def of(cls, run: UnitRun) -> "Interval":
        """The offsets of a run."""
        first = run.first_queue_offset
        return cls(first, first + run.count, run.first_physical, run.last_end_physical)


class QueueFiles:
    """The files of consume queues in a directory, open for writing by position; a context manager."""

    def __init__(self, directory: Path, file_size: int) -> None:
        """``file_size``: bytes of a file, whole units."""
        self._directory = directory
        self._file_size = file_size
        self._open: OrderedDict[Path, int] = OrderedDict()

    def __enter__(self) -> "QueueFiles":
        """The files."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close them."""
        while self._open:
            os.close(self._open.popitem()[1])

    def path(self, key: QueueKey, offset: int) -> Path:
        """The file that holds the unit at a queue offset."""
        position = offset * UNIT_SIZE
        name = f"{position - position % self._file_size:0{NAME_DIGITS}d}"
        return self._directory / key[0] / str(key[1]) / name

    def write(self, key: QueueKey, offset: int, units: bytes) -> None:
        """Write units from a queue offset on. Raises OSError."""
        while units:
            position = offset * UNIT_SIZE % self._file_size
            part = units[: self._file_size - position]
            fd, done = self._fd(self.path(key, offset)), 0
            while done < len(part):
                done += os.pwrite(fd, memoryview(part)[done:], position + done)
            units = units[len(part) :]
            offset += len(part) // UNIT_SIZE

    def _fd(self, path: Path) -> int:
        fd = self._open.get(path)
        if fd is not None:
            self._open.move_to_end(path)
            return fd
        path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        os.ftruncate(fd, self._file_size)  # of full length from the beginning; twice is once
        self._open[path] = fd
        if len(self._open) > _OPEN_MAX:
            os.close(self._open.popitem(last=False)[1])
        return fd


class RunWriter:
    """Takes the runs of one range's walks, writes their units, and remembers which offsets they had.

    ``accepted``: of the queues named there only these offsets are written, and only from the records that lie where the
    interval says (see `stitching.accept`).
    """

    def __init__(self, files: QueueFiles, accepted: Mapping[QueueKey, Sequence[Interval]] | None = None) -> None:
        self._files = files
        self._accepted = accepted
        self._waiting: dict[QueueKey, list[tuple[int, bytes]]] = {}
        self._waiting_bytes = 0
        self.intervals: dict[QueueKey, list[Interval]] = {}

    def put(self, run: UnitRun) -> None:
        """Take a run. Raises OSError."""
        key = run.topic, run.queue_id
        possible = run.possible()
        if possible is None:
            return
        come, units = Interval.of(possible), possible.units
        if self._accepted is not None:
            for allowed in self._accepted.get(key, ()):
                if allowed.physical_begin <= come.physical_begin < allowed.physical_end:
                    first, end = max(come.first, allowed.first), min(come.end, allowed.end)
                    self._wait(key, first, units[(first - come.first) * UNIT_SIZE : (end - come.first) * UNIT_SIZE])
            return
        known = self.intervals.setdefault(key, [])
        if known and known[-1].end == come.first:
            known[-1] = known[-1]._replace(end=come.end, physical_end=come.physical_end)
        else:
            known.append(come)
        self._wait(key, come.first, units)

    def _wait(self, key: QueueKey, offset: int, units: bytes) -> None:
        if not units:
            return
        self._waiting.setdefault(key, []).append((offset, units))
        self._waiting_bytes += len(units)
        if self._waiting_bytes > _BUFFER_MAX:
            self.flush()

    def flush(self) -> None:
        """Write what waits: neighbours in one piece, since every write is a system call. Raises OSError."""
        for key, pieces in self._waiting.items():
            at, parts, end = pieces[0][0], list[bytes](), pieces[0][0]
            for offset, units in pieces:
                if offset != end:
                    self._files.write(key, at, b"".join(parts))
                    at, parts = offset, []
                parts.append(units)
                end = offset + len(units) // UNIT_SIZE
            self._files.write(key, at, b"".join(parts))
        self._waiting.clear()
        self._waiting_bytes = 0
