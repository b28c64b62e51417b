"""How old the oldest byte is that a replica does not have: a thinned memory of when the log was how long."""

from bisect import bisect_right

_CAPACITY = 4_096
_RESOLUTION = 0.02
"""Seconds between two samples, at least."""


class GrowthHistory:
    """When the log's end was where. Exact to 20 ms for the last 40 seconds, coarser the longer ago."""

    def __init__(self) -> None:
        self._ends: list[int] = []
        self._times: list[float] = []
        self._end = 0
        self._unsampled_at: float | None = None
        """When the log last grew without a sample being taken."""

    def grew(self, end: int, now: float) -> None:
        """The log ends at `end` now. A smaller end than before begins a new history."""
        if end < self._end:
            self._ends, self._times, self._unsampled_at = [], [], None
        elif end == self._end and self._ends:
            return
        if not self._times or now - self._times[-1] >= _RESOLUTION:
            if self._unsampled_at is not None and now - self._unsampled_at >= _RESOLUTION:
                self._sample(self._end, self._unsampled_at)
            self._sample(end, now)
            self._unsampled_at = None
        else:
            self._unsampled_at = now
        self._end = end

    def age(self, offset: int, now: float) -> float:
        """Seconds since the log first reached beyond `offset`; 0 if it does not."""
        if offset >= self._end or not self._ends:
            return 0.0
        at = bisect_right(self._ends, offset)
        since = self._times[min(at, len(self._times) - 1)]
        return max(now - since, 0.0)

    def end_within(self, offset: int) -> int:
        """The greatest end that the log is known to have had and that is not beyond `offset`; 0 if none is."""
        if self._end <= offset:
            return self._end
        at = bisect_right(self._ends, offset)
        return self._ends[at - 1] if at else 0

    def _sample(self, end: int, at: float) -> None:
        if len(self._ends) >= _CAPACITY:
            self._thin()
        self._ends.append(end)
        self._times.append(at)

    def _thin(self) -> None:
        """Drops every second sample of the older half; the newer half keeps its resolution."""
        half = len(self._ends) // 2
        self._ends[:half] = self._ends[:half:2]
        self._times[:half] = self._times[:half:2]
