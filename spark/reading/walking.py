"""Walking the records of a range, and saying what in it is no record.

Bytes that are no record are rot where a valid record follows (the walk goes on there), and the end of the log where
none does. A range sees its own file only, so it reports where nothing valid follows *in its file*; whether that is
rot or the end is known to who has seen all ranges (stitching.py). The rules are those of the store's recovery.
"""

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from tandemmq.spark.reading.log_files import MappedLogFile, is_zero
from tandemmq.spark.reading.ranges import LogRange
from tandemmq.store.format.compiled.walker import CompiledWalk, CompiledWalker
from tandemmq.store.format.walker import DEFAULT_LIMIT, REASONS, Stop

_LONGEST_RECORD = 8 << 20
_ZEROS_OF_A_LENGTH = 3
_CHUNK = 1 << 20
_STRETCH = 32 << 20


@dataclass(frozen=True, slots=True)
class Damage:
    """Log bytes [begin, end) that cannot be read as records.

    ``kind``: ``rot`` (records follow), ``missing`` (no file) or ``torn`` (the end of the log, cut in a record).
    """

    begin: int
    end: int
    kind: str
    reason: str


@dataclass(slots=True)
class RangeResult:
    """What a walk of a range found; offsets are log offsets.

    ``first``: the first record, or what a range that is `LogRange.exact` began with; -1 if no record begins in it.
    ``next``: after the last record that begins in it; after a file's closing blank, the end of the file.
    ``torn_at``: where bytes that are no record begin, with nothing valid after them in this file; -1 if none do.
    ``torn_end``: after the last of them that is not zero.
    """

    first: int = -1
    next: int = -1
    torn_at: int = -1
    torn_end: int = -1
    torn_reason: str = ""
    records: int = 0
    max_store_timestamp: int = 0
    damage: list[Damage] = field(default_factory=list)


@cache
def walker() -> CompiledWalker:
    """The compiled walker of this process."""
    return CompiledWalker()


class RangeWalker:
    """Walks one range: ``with RangeWalker(range) as walking: for walk in walking.walks(): …``, then its `result`."""

    def __init__(
        self,
        log_range: LogRange,
        *,
        check_crc: bool = True,
        delay_levels: Sequence[int] = (),
        rows: int = DEFAULT_LIMIT,
        force_crc_property: bool = False,
    ) -> None:
        """Map the file. ``delay_levels``: ms, see `record_tags_code`; ``rows``: most records of one walk."""
        self.range = log_range
        self.result = RangeResult()
        self._check_crc = check_crc
        self._delay_levels = tuple(delay_levels)
        self._rows = rows
        self._force = force_crc_property
        self._mapped = MappedLogFile(log_range.file)

    def __enter__(self) -> "RangeWalker":
        """The walker."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the file."""
        self._mapped.__exit__(None, None, None)

    @property
    def buffer(self) -> mmap.mmap:
        """The bytes of the file."""
        return self._mapped.map

    def walks(self) -> Iterator[CompiledWalk]:
        """The records that begin in the range, in pieces; fills `result`."""
        file, result = self.range.file, self.result
        end = self.range.end - file.start
        position = self._begin(end)
        result.first = file.start + position if position >= 0 else -1
        while 0 <= position < end:
            walk = self._walk(position, end, self._rows)
            if walk.position < end < file.size and walk.stop in (Stop.END, Stop.INCOMPLETE):
                yield from self._noted(walk)  # what is left may be the head of a record that reaches beyond the range
                walk = self._walk(walk.position, file.size, 1)
            yield from self._noted(walk)
            position = walk.position
            if walk.stop is Stop.BLANK:
                position = file.size
            elif position < end and walk.stop is not Stop.ROWS_FULL:
                position = self._behind(position, walk.stop)
        result.next = file.start + position if position >= 0 else -1

    def _begin(self, end: int) -> int:
        """Position of the first record; -1 if none begins before ``end``."""
        begin = self.range.begin - self.range.file.start
        return begin if self.range.exact else self._resync(begin, end)

    def _walk(self, position: int, end: int, rows: int) -> CompiledWalk:
        return walker().walk(
            self.buffer,
            position,
            end,
            self.range.file.start,
            check_crc=self._check_crc,
            limit=rows,
            delay_levels=self._delay_levels,
            force_crc_property=self._force,
        )

    def _noted(self, walk: CompiledWalk) -> Iterator[CompiledWalk]:
        if walk.count:
            self.result.records += walk.count
            self.result.max_store_timestamp = max(self.result.max_store_timestamp, walk.max_store_timestamp)
            yield walk

    def _behind(self, position: int, stop: Stop) -> int:
        """Where it goes on after bytes that are no record; -1 if nothing valid follows in the file."""
        start, found = self.range.file.start, self._resync(position + 1, self.range.file.size)
        if found < 0:
            self.result.torn_at, self.result.torn_reason = start + position, REASONS.get(stop, stop.name)
            self.result.torn_end = start + self._data_end(position)
        else:
            self.result.damage.append(Damage(start + position, start + found, "rot", REASONS.get(stop, stop.name)))
        return found

    def _resync(self, begin: int, end: int) -> int:
        """Position of the first whole valid record that begins in [begin, end), or -1; zeros are passed over."""
        for start, stop in self._where_to_look(begin, end):
            # A record's length may begin with zeros before the stretch, and its body may be zeros that end it.
            last = min(stop + _LONGEST_RECORD, self.range.file.size)
            at = walker().resync(self.buffer, max(start - _ZEROS_OF_A_LENGTH, begin), last, self.range.file.start)
            if at >= 0:
                return at if at < end else -1
        return -1

    def _where_to_look(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Most often a record is near; only when it is not does it pay to ask where the file has holes."""
        near = min(begin + _CHUNK, end)
        yield begin, near
        yield from self._nonzero_stretches(near, end)

    def _data_end(self, begin: int) -> int:
        """Position after the last byte from ``begin`` on that is not zero."""
        end = begin
        for start, stop in self._nonzero_stretches(begin, self.range.file.size):
            for at in range(start, stop, _CHUNK):
                end = at + len(self.buffer[at : min(at + _CHUNK, stop)].rstrip(b"\0"))
        return end

    def _nonzero_stretches(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Stretches of the file that hold anything but zeros, none longer than 32 MiB."""
        for first, stop in self._mapped.data_stretches(begin, end):
            start = -1
            for at in range(first, stop, _CHUNK):
                zeros = is_zero(self.buffer, at, min(at + _CHUNK, stop))
                if start >= 0 and (zeros or at - start >= _STRETCH):
                    yield start, at
                    start = -1
                if start < 0 and not zeros:
                    start = at
            if start >= 0:
                yield start, stop
