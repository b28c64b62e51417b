"""A set of whole numbers that come in stretches, such as queue offsets."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator


class OffsetRanges:
    """Stretches ``[begin, end)`` in order, none touching the next."""

    def __init__(self) -> None:
        """Begin with no number."""
        self._begins: list[int] = []
        self._ends: list[int] = []

    def __contains__(self, number: int) -> bool:
        """Whether ``number`` is in the set."""
        at = bisect_right(self._begins, number) - 1
        return at >= 0 and number < self._ends[at]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """The stretches, in order."""
        return zip(self._begins, self._ends, strict=True)

    def add(self, begin: int, end: int) -> None:
        """Add the numbers ``[begin, end)``."""
        if begin >= end:
            return
        low, high = bisect_left(self._ends, begin), bisect_right(self._begins, end)
        if low < high:
            begin, end = min(begin, self._begins[low]), max(end, self._ends[high - 1])
        self._begins[low:high], self._ends[low:high] = [begin], [end]

    def missing(self, begin: int, end: int) -> list[tuple[int, int]]:
        """What of ``[begin, end)`` is not in the set, in stretches."""
        found = []
        at = bisect_right(self._ends, begin)
        while begin < end:
            stop = min(self._begins[at], end) if at < len(self._begins) else end
            if begin < stop:
                found.append((begin, stop))
            if at >= len(self._begins):
                break
            begin = max(begin, self._ends[at])
            at += 1
        return found
