"""Reading the log from one offset to another, across files, blanks and damage.

One `step` walks records of one file and says what it met at the end: more records, a blank, the end, or bytes that
are no record. In the last case it looks for the next valid record, in this file and the ones after it; that
decides between rot (something valid follows) and a torn tail (nothing does).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from tandemmq.store.format.record_fields import size_at
from tandemmq.store.format.walker import REASONS, Stop, Walk, Walker
from tandemmq.store.log.edges.disk import data_stretches, is_zero
from tandemmq.store.log.recovery.damage import DamagedRange, KnownDamage
from tandemmq.store.log.segments.mapped_file import MappedFile

ROWS_PER_STEP = 65_536
_CHUNK = 1 << 20
_LONGEST_RECORD = 8 << 20
_ZEROS_OF_A_LENGTH = 3


@dataclass(slots=True)
class Step:
    """What one step found: ``walk`` with its ``file``.

    None where no bytes were read, the offset to go on at, and what was wrong.

    ``finished``: there is nothing more to read. ``torn_at``: bytes that are no record lie there, and nothing valid
    after them.
    """

    position: int
    walk: Walk | None = None
    file: MappedFile | None = None
    damage: DamagedRange | None = None
    finished: bool = False
    torn_at: int = -1


class LogFiles(Protocol):
    """The files of a log, as a scan needs them."""

    @property
    def last(self) -> MappedFile | None:
        """The newest file."""
        ...

    def find(self, offset: int) -> MappedFile | None:
        """The file that holds ``offset``."""
        ...

    def first_from(self, offset: int) -> MappedFile | None:
        """The oldest file at or after ``offset``."""
        ...


class LogScan:
    """Walks a log's files with a given walker."""

    def __init__(
        self,
        files: LogFiles,
        walker: Walker,
        damage: KnownDamage,
        *,
        check_crc: bool,
        delay_levels: tuple[int, ...],
        force_crc_property: bool = False,
        rows: int = ROWS_PER_STEP,
        half_at_end: bool = False,
        durable: int = 0,
    ) -> None:
        """Read ``files`` with ``walker``; stretches in ``damage`` are stepped over.

        ``half_at_end``: the limit may lie inside a record, whose other half is still to come (a slave's log).
        ``durable``: log offset below which what is bad is rot, though nothing valid follows it.
        """
        self._files = files
        self._walker = walker
        self._damage = damage
        self._check_crc = check_crc
        self._delay_levels = delay_levels
        self._force = force_crc_property
        self.rows = rows
        """Records that one step walks at most."""
        self._half_at_end = half_at_end
        self._durable = durable

    def steps(self, begin: int, limit: int | None = None) -> Iterator[Step]:
        """Steps from ``begin`` up to ``limit`` (a record boundary), or to the end of the log."""
        position = begin
        while limit is None or position < limit:
            step = self.step(position, limit)
            yield step
            if step.finished:
                return
            position = step.position

    def step(self, position: int, limit: int | None = None) -> Step:
        """Read on from ``position``."""
        known = self._damage.covering(position) if self._damage.ranges else None
        if known is not None:
            return Step(known.end)
        file = self._files.find(position)
        if file is None:
            following = self._files.first_from(position)
            if following is None:
                return Step(position, finished=True)
            if following is self._files.first_from(0):  # expired, not missing
                return Step(following.start)
            return Step(
                following.start,
                damage=DamagedRange(position, following.start, "missing", "a commit log file is missing"),
            )
        stop = file.end if limit is None else min(limit, file.end)
        until = next((known.begin for known in self._damage.ranges if position < known.begin < stop), None)
        if until is None:
            return self._walk(file, position, limit)
        step = self._walk(file, position, until)  # what was damaged may look whole while no checksums are looked at
        if step.finished and step.torn_at < 0:
            step.finished = False
            if step.position < until:
                step.damage = DamagedRange(step.position, until, "rot", "no record ends where known damage begins")
                step.position = until
        return step

    def _walk(self, file: MappedFile, position: int, limit: int | None) -> Step:
        end = file.size if limit is None else min(limit - file.start, file.size)
        walk = self._walker.walk(
            file.map,
            position - file.start,
            end,
            file.start,
            check_crc=self._check_crc,
            limit=self.rows,
            delay_levels=self._delay_levels,
            force_crc_property=self._force,
        )
        return self._after(walk, file, end)

    def _after(self, walk: Walk, file: MappedFile, end: int) -> Step:
        position = file.start + walk.position
        if walk.stop == Stop.ROWS_FULL:
            return Step(position, walk, file)
        if walk.stop == Stop.BLANK or (end == file.size and walk.position >= file.size):
            return Step(file.end, walk, file, finished=self._files.first_from(file.end) is None)
        if end < file.size and (walk.stop == Stop.END or walk.position >= end):
            return Step(position, walk, file, finished=True)
        if end < file.size and walk.stop == Stop.INCOMPLETE and self._is_half(file, walk.position, end):
            return Step(position, walk, file, finished=True)
        found = self._next_valid(file, walk.position + 1)
        if found < 0 and position < self._durable:
            found = self._durable
        if found < 0:
            return Step(position, walk, file, finished=True, torn_at=position)
        damage = DamagedRange(position, found, "rot", REASONS.get(walk.stop, walk.stop.name))
        return Step(found, walk, file, damage)

    def _is_half(self, file: MappedFile, at: int, end: int) -> bool:
        """Whether the bytes of ``file`` from ``at`` to ``end`` may be the first half of a record."""
        size = size_at(file.map, at)
        return self._half_at_end and (end - at < 4 or size <= min(_LONGEST_RECORD, file.size - at))

    def _next_valid(self, file: MappedFile, begin: int) -> int:
        """Log offset of the next whole record after a bad place, or -1."""
        at = self._resync(file, begin)
        while at < 0:
            following = self._files.first_from(file.end)
            if following is None:
                return -1
            file = following
            at = self._resync(file, 0)
            if at > 0:
                return file.start  # what lies before it in that file is damage of its own
        return file.start + at

    def _resync(self, file: MappedFile, begin: int) -> int:
        """Position in ``file`` of the next whole record at or after ``begin``, or -1; zeros are passed over."""
        for start, stop in nonzero_stretches(file, begin):
            # A record's length may begin with zeros before the stretch, and its body may be zeros that end it.
            end = min(stop + _LONGEST_RECORD, file.size)
            at = self._walker.resync(file.map, max(start - _ZEROS_OF_A_LENGTH, begin), end, file.start)
            if at >= 0:
                return at
        return -1


def nonzero_stretches(file: MappedFile, begin: int) -> Iterator[tuple[int, int]]:
    """Stretches of ``file`` after ``begin`` that hold anything but zeros, in steps of 1 MiB."""
    for first, stop in data_stretches(file.fd, begin, file.size):
        start = -1
        for at in range(first, stop, _CHUNK):
            if is_zero(file.map[at : min(at + _CHUNK, stop)]):
                if start >= 0:
                    yield start, at
                start = -1
            elif start < 0:
                start = at
        if start >= 0:
            yield start, stop
