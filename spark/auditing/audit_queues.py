"""Comparing consume queues on disk with what the log says of them."""

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandemmq.spark.auditing.audit_findings import FindingPlace, Findings
from tandemmq.spark.reading.log_files import NAME_DIGITS
from tandemmq.spark.rebuilding.queue_writer import Interval, QueueKey
from tandemmq.store.format.unit import SCHEDULE_TOPIC, UNIT_FIELDS, UNIT_SIZE
from tandemmq.store.format.walker import UnitRun

Units = NDArray[Any]
Bools = NDArray[np.bool_]
Spans = Sequence[tuple[int, int]]

UNIT = np.dtype(UNIT_FIELDS)
_BLANK_SIZE = 0x7FFFFFFF
COMPARED = ("unit-missing", "unit-blank", "unit-wrong")
"""Kinds of findings that comparing the messages of the log with their units can have."""

_IN_THE_MAKING = ".tmp"
_OPEN_MAX = 256
_PIECE = 1 << 18
"""Units that are looked at in one go: bounds the memory of a task."""


class QueueReader:
    """The consume queue files of a store, for reading; a context manager. What is not there reads as zeros."""

    def __init__(self, root: Path, file_size: int) -> None:
        """``file_size``: bytes of a file, whole units."""
        self._directory = root / "consumequeue"
        self._file_size = file_size
        self._open: OrderedDict[tuple[QueueKey, int], int] = OrderedDict()

    def __enter__(self) -> "QueueReader":
        """The reader."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        while self._open:
            self._close(self._open.popitem()[1])

    def read(self, key: QueueKey, offset: int, count: int) -> bytes:
        """The units [offset, offset + count) of a queue. Raises OSError."""
        parts = []
        while count > 0:
            position = offset * UNIT_SIZE % self._file_size
            units = min(count, (self._file_size - position) // UNIT_SIZE)
            parts.append(self._read(key, offset * UNIT_SIZE - position, position, units * UNIT_SIZE))
            offset, count = offset + units, count - units
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def files(self, key: QueueKey) -> list[tuple[int, Path]]:
        """First queue offset and path of each file that has its place in the queue, and the right length."""
        found = []
        for name in _names(self._directory / key[0] / str(key[1])):
            path = self._directory / key[0] / str(key[1]) / name
            if self.is_file_name(name) and path.stat().st_size == self._file_size:
                found.append((int(name) // UNIT_SIZE, path))
        return found

    def is_file_name(self, name: str) -> bool:
        """Whether a file of a queue can be called so."""
        return len(name) == NAME_DIGITS and name.isdecimal() and int(name) % self._file_size == 0

    def odd_files(self, key: QueueKey) -> Iterator[FindingPlace]:
        """Files of a queue that brokers stumble over; none are those that a store is just making."""
        directory = self._directory / key[0] / str(key[1])
        for name in _names(directory):
            if name.endswith(_IN_THE_MAKING):
                continue
            size = (directory / name).stat().st_size
            if not self.is_file_name(name):
                yield FindingPlace(*key, file=name, told="its name is no place in a queue")
            elif size != self._file_size:
                yield FindingPlace(*key, file=name, told=f"{size:,} bytes instead of {self._file_size:,}")

    def _read(self, key: QueueKey, start: int, position: int, size: int) -> bytes:
        """From the file that begins at byte ``start`` of the queue."""
        fd = self._fd(key, start)
        return (os.pread(fd, size, position) if fd >= 0 else b"").ljust(size, b"\0")

    def _fd(self, key: QueueKey, start: int) -> int:
        fd = self._open.get((key, start))
        if fd is not None:
            self._open.move_to_end((key, start))
            return fd
        path = self._directory / key[0] / str(key[1]) / f"{start:0{NAME_DIGITS}d}"
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            fd = -1
        self._open[key, start] = fd
        if len(self._open) > _OPEN_MAX:
            self._close(self._open.popitem(last=False)[1])
        return fd

    @staticmethod
    def _close(fd: int) -> None:
        if fd >= 0:
            os.close(fd)


def queues_on_disk(root: Path) -> list[QueueKey]:
    """All queues that have a directory."""
    return sorted(
        (topic, int(name))
        for topic in _names(root / "consumequeue")
        for name in _names(root / "consumequeue" / topic)
        if name.isdecimal() and name.isascii() and str(int(name)) == name
    )


def _names(directory: Path) -> list[str]:
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []


class RunComparer:
    """Takes the runs of one range's walks and compares their units with those on disk.

    ``accepted``: compare only these offsets of the queues named there, and only of records that lie where the interval
    says (see `stitching.accept`). ``levels_known``: whether the units of delayed messages were made with the broker's
    own delay levels; if not, their delivery times cannot be compared.
    """

    def __init__(
        self,
        reader: QueueReader,
        findings: Findings,
        *,
        levels_known: bool,
        accepted: Mapping[QueueKey, Sequence[Interval]] | None = None,
    ) -> None:
        self._reader = reader
        self._findings = findings
        self._levels_known = levels_known
        self._accepted = accepted
        self.intervals: dict[QueueKey, list[Interval]] = {}

    def put(self, run: UnitRun, *, compare: bool = True) -> int:
        """Compare a run, or only note its offsets; gives how many of its units are not right. Raises OSError."""
        key = run.topic, run.queue_id
        possible = run.possible()
        impossible = run.count - (0 if possible is None else possible.count)
        if impossible and self._accepted is None:
            place = FindingPlace(*key, run.first_queue_offset, run.first_physical, count=impossible)
            self._findings.add("offset-impossible", place)
        if possible is None:
            return 0
        come, units = Interval.of(possible), possible.units
        if self._accepted is not None:
            return sum(
                self._compare(key, come, units, allowed)
                for allowed in self._accepted.get(key, ())
                if allowed.physical_begin <= come.physical_begin < allowed.physical_end
            )
        self._note(key, come)
        return self._compare(key, come, units, come) if compare else 0

    def _note(self, key: QueueKey, come: Interval) -> None:
        known = self.intervals.setdefault(key, [])
        if known and known[-1].end == come.first:
            known[-1] = known[-1]._replace(end=come.end, physical_end=come.physical_end)
        else:
            known.append(come)

    def _compare(self, key: QueueKey, come: Interval, units: bytes, allowed: Interval) -> int:
        first, end = max(come.first, allowed.first), min(come.end, allowed.end)
        if first >= end:
            return 0
        want = units[(first - come.first) * UNIT_SIZE : (end - come.first) * UNIT_SIZE]
        have = self._reader.read(key, first, end - first)
        return 0 if have == want else self._differences(key, first, want, have)

    def _differences(self, key: QueueKey, first: int, want: bytes, have: bytes) -> int:
        wanted, there = np.frombuffer(want, UNIT), np.frombuffer(have, UNIT)
        place = wanted["physical"] != there["physical"]
        size = wanted["size"] != there["size"]
        tags = wanted["tags"] != there["tags"]
        if key[0] == SCHEDULE_TOPIC and not self._levels_known:
            tags[:] = False
        empty, blank = _empty(there), _blank(there)
        good = ~(place | size | tags)
        wrong = 0
        for kind, told, mask in (
            ("unit-missing", "", ~good & empty),
            ("unit-blank", "", ~good & blank),
            ("unit-wrong", "another place in the log", place & ~empty & ~blank),
            ("unit-wrong", "another length", size & ~place & ~empty & ~blank),
            ("unit-wrong", "another tag", tags & ~size & ~place & ~empty & ~blank),
        ):
            wrong += _add(self._findings, kind, key, first, mask, wanted, told)
        return wrong


def _add(
    findings: Findings, kind: str, key: QueueKey, first: int, mask: Bools, units: Units, told: str = ""
) -> int:  # fmt: skip
    """Count where ``mask`` holds; queue offset ``first`` is that of the first unit. Gives the count."""
    count = int(np.count_nonzero(mask))
    if not count:
        return 0
    counted = 0
    for begin, end in stretches(mask, findings.limit):
        physical = int(units["physical"][begin])
        findings.add(kind, FindingPlace(*key, first + begin, physical, count=end - begin, told=told))
        counted += end - begin
    findings.count(kind, count - counted, *key)
    return count


def stretches(mask: Bools, limit: int) -> list[tuple[int, int]]:
    """The first ``limit`` stretches in which ``mask`` holds."""
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0))[: 2 * limit]
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]


def _empty(units: Units) -> Bools:
    empty: Bools = (units["physical"] == 0) & (units["size"] == 0) & (units["tags"] == 0)
    return empty


def _blank(units: Units) -> Bools:
    blank: Bools = (units["physical"] == 0) & (units["size"] == _BLANK_SIZE) & (units["tags"] == 0)
    return blank


@dataclass(frozen=True, slots=True)
class LogExtent:
    """What a unit or an entry that no message has can be compared with: log offsets.

    ``live``: the log goes on after ``end``, and so may queues and index.
    """

    begin: int
    end: int
    damage: tuple[tuple[int, int], ...] = ()
    live: bool = False

    def in_damage(self, physical: NDArray[np.int64]) -> Bools:
        """Which offsets lie in a damaged stretch."""
        found = np.zeros(len(physical), bool)
        for begin, end in self.damage:
            found |= (physical >= begin) & (physical < end)
        return found


def compare_rest(reader: QueueReader, key: QueueKey, messages: Spans, extent: LogExtent, findings: Findings) -> None:
    """Look at the units of a queue that no message of the log has; ``messages``: which queue offsets have one.

    Raises OSError.
    """
    for place in reader.odd_files(key):
        findings.add("queue-file", place)
    for first, path in reader.files(key):
        with path.open("rb", buffering=0) as file:
            fd = file.fileno()
            end = first + os.fstat(fd).st_size // UNIT_SIZE
            for begin, stop in _between(messages, first, end):
                for at, count in _written(fd, begin - first, stop - first):
                    units = np.frombuffer(os.pread(fd, count * UNIT_SIZE, at * UNIT_SIZE), UNIT)
                    _classify(key, first + at, units, extent, findings)


def _between(messages: Spans, first: int, end: int) -> Iterator[tuple[int, int]]:
    """What of [first, end) is in none of the spans, which are in order."""
    for begin, stop in messages:
        if stop <= first:
            continue
        if begin >= end:
            break
        if begin > first:
            yield first, begin
        first = stop
    if first < end:
        yield first, end


def _written(fd: int, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Pieces of the units [begin, end) of a file that are no holes: first unit and count."""
    while begin < end:
        try:
            data = os.lseek(fd, begin * UNIT_SIZE, os.SEEK_DATA)
        except OSError:  # ENXIO: nothing but a hole up to the end
            return
        begin = max(begin, data // UNIT_SIZE)
        if begin >= end:
            return
        stop = min(end, begin + _PIECE, -(-os.lseek(fd, data, os.SEEK_HOLE) // UNIT_SIZE))
        yield begin, stop - begin
        begin = stop


def _classify(key: QueueKey, first: int, units: Units, extent: LogExtent, findings: Findings) -> None:
    left = ~_empty(units)
    if not left.any():
        return
    physical, size = units["physical"].astype(np.int64), units["size"].astype(np.int64)
    behind = physical >= extent.end
    cases: Iterable[tuple[str, Bools]] = (
        ("unit-prefill", _blank(units)),
        ("", behind & np.bool_(extent.live)),
        ("unit-behind-end", behind),
        ("unit-damaged", extent.in_damage(physical)),
        ("unit-expired", (physical >= 0) & (size > 0) & (physical < extent.begin)),
        ("unit-extra", np.ones(len(units), bool)),
    )
    for kind, mask in cases:
        if kind:
            _add(findings, kind, key, first, mask & left, units)
        left &= ~mask
