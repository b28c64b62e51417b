"""Histograms in plain numbers, which the hot paths add to."""

from bisect import bisect_left
from collections.abc import Sequence


class Distribution:
    """A histogram in plain numbers: how many values were at most each bound, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        """Values above the bound before and up to this one; the last: above all bounds."""
        self.sum = 0.0

    def add(self, value: float, times: int = 1) -> None:
        """Count a value, or several equal ones."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def cumulated(self) -> list[tuple[str, float]]:
        """Pairs of bound and number of values up to it, as Prometheus wants them."""
        total, pairs = 0, []
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            total += count
            pairs.append((bound, float(total)))
        return pairs
