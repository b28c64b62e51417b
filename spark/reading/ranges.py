"""Cutting a log into ranges, each the work of one task.

A range lies within one file. The first of a file begins where a record begins; the others begin anywhere, and their
first record is found by looking (walking.py). A record belongs to the range in which it begins.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tandemmq.spark.reading.log_files import LogFile

DEFAULT_RANGE_SIZE = 128 << 20
"""Bytes: large enough that a task's own cost is nothing, small enough for a progress bar and for two cores."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """Log offsets [begin, end) within ``file``. ``exact``: a record, or nothing at all, begins at ``begin``."""

    number: int
    file: LogFile
    begin: int
    end: int
    exact: bool

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.begin


def split(
    files: Iterable[LogFile],
    range_size: int = DEFAULT_RANGE_SIZE,
    *,
    begin: int = 0,
    end: int | None = None,
    boundaries: Sequence[int] = (),
    whole: Iterable[int] = (),
) -> list[LogRange]:
    """Ranges of about ``range_size`` bytes over the part [begin, end) of ``files``.

    ``begin`` must be the beginning of a file or of a record, as must ``boundaries``, where ranges begin besides.
    ``whole``: starts of files that must not be split.
    """
    pieces: list[tuple[LogFile, int, int, bool]] = []
    undivided = set(whole)
    for file in files:
        low, high = max(file.start, begin), file.end if end is None else min(file.end, end)
        if low >= high:
            continue
        known = [low, *sorted(place for place in boundaries if low < place < high)]
        for place, stop in zip(known, [*known[1:], high], strict=True):
            count = 1 if file.start in undivided else max(1, round((stop - place) / range_size))
            cuts = [place + (stop - place) * part // count for part in range(count)] + [stop]
            pieces += [(file, here, there, here == place) for here, there in pairwise(cuts) if here < there]
    return [LogRange(number, *piece) for number, piece in enumerate(pieces)]
