"""The last hour: rates, lag and replication of nodes, topics and groups, in memory. No I/O, no clock.

Each series is a ring of 4-byte floats, one for each step: 240 in an hour of 15 s steps, some 1.2 KiB with all that is
around it. A thousand topics and ten thousand groups are 22,000 series: some 30 MB.
"""

import math
from array import array
from collections.abc import Iterator, Mapping
from typing import NamedTuple

SPAN_SECONDS = 3600.0
SHORTEST_STEP = 15.0
"""Seconds. Whatever is collected more often is noted so often only."""

MOST_SERIES = 25_000
"""What comes after these is not kept, and counted."""

_UNKNOWN = math.nan


class SeriesName(NamedTuple):
    """Of what a series is: a measure of a node, topic or group."""

    kind: str
    """`node`, `topic` or `group`."""
    name: str
    measure: str


class CountedPart(NamedTuple):
    """Of what a counter is: a series is the sum of its parts."""

    series: SeriesName
    part: str
    """Of several counters of a series each has another; the growth of one that is new is not known."""


class HourHistory:
    """Takes the readings of each round; gives what the last hour was."""

    def __init__(self, interval: float) -> None:
        """`interval`: seconds between two rounds."""
        self.step = max(interval, SHORTEST_STEP)
        """Seconds between two points."""
        self.last = 0.0
        """When the newest point was noted, seconds since 1970; 0: never."""
        self.left_out = 0
        """Series of the newest round that were not kept."""
        self._points = math.ceil(SPAN_SECONDS / self.step)
        self._series: dict[SeriesName, array[float]] = {}
        self._measures: dict[tuple[str, str], list[SeriesName]] = {}
        """The series of each node, topic and group."""
        self._counted: Mapping[CountedPart, float] = {}
        self._counted_at = 0.0
        self._round = 0
        self._place = 0.0
        """Where the newest point stands: so many whole steps after the first one, however late its round came."""

    def is_due(self, at: float) -> bool:
        """Whether a point is due, `at` seconds since 1970. A round that comes a little early counts."""
        return at < self.last or self._steps(at) > 0  # a clock that went back is one that has gone on

    def _steps(self, at: float) -> int:
        return int((at - self._place) / self.step + 0.1)

    def note(self, at: float, counters: Mapping[CountedPart, float], gauges: Mapping[SeriesName, float]) -> None:
        """A point of every series. `at`: seconds since 1970.

        `counters` only grow, and their series is the growth a second; where a part shrank, came or went, or the clock
        did not move on, nobody knows it. What is missing from a round has a gap there, as all have where a round was
        missed, and is forgotten after an hour of gaps.
        """
        rates = self._rates(at - self._counted_at, counters)
        if self._round and at >= self.last:
            steps = max(self._steps(at), 1)
            self._place += steps * self.step
            self._miss(steps - 1)
        else:
            self._place = at
        self._counted, self._counted_at, self.last = counters, at, at
        here = self._begin_point()
        self.left_out = sum(self._put(name, here, value) for name, value in (*gauges.items(), *rates.items()))

    def _miss(self, rounds: int) -> None:
        if rounds >= self._points:  # nothing is left of what was known
            self._series.clear()
            self._measures.clear()
            self._round += self._points
            return
        for _ in range(rounds):
            self._begin_point()

    def _begin_point(self) -> int:
        """The place of the next point, of which nothing is known yet."""
        here = self._round % self._points
        self._round += 1
        for values in self._series.values():
            values[here] = _UNKNOWN
        if here == 0:
            self._series = {name: values for name, values in self._series.items() if not all(map(math.isnan, values))}
            self._measures.clear()
            for name in self._series:
                self._measures.setdefault((name.kind, name.name), []).append(name)
        return here

    def _rates(self, seconds: float, counters: Mapping[CountedPart, float]) -> dict[SeriesName, float]:
        if seconds <= 0:
            return {}
        unknown = {one.series for one in self._counted.keys() ^ counters.keys()}
        growth: dict[SeriesName, float] = {}
        for one, value in counters.items():
            before = self._counted.get(one, value)
            growth[one.series] = growth.get(one.series, 0) + value - before
            if value < before:
                unknown.add(one.series)
        return {series: grown / seconds for series, grown in growth.items() if series not in unknown}

    def _put(self, name: SeriesName, here: int, value: float) -> bool:
        """Whether there was no room for it."""
        values = self._series.get(name)
        if values is None:
            if len(self._series) >= MOST_SERIES:
                return True
            values = self._series[name] = array("f", [_UNKNOWN]) * self._points
            self._measures.setdefault((name.kind, name.name), []).append(name)
        values[here] = value
        return False

    def of(self, kind: str, name: str) -> Iterator[tuple[str, list[float]]]:
        """Measures of one node, topic or group, with their points, the oldest first; NaN: nobody knows.

        All have the same points in time: those of the last hour, or since the first round.
        """
        begin = max(0, self._round - self._points)
        order = [at % self._points for at in range(begin, self._round)]
        for one in self._measures.get((kind, name), ()):
            values = self._series[one]
            yield one.measure, [values[at] for at in order]
