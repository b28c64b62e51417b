"""TrafficHistory: how many messages came in and went out lately, by topic and group, as tools ask for rates.

Nothing is counted here but what consumers send back. Counters that only grow are looked at every ten seconds, some of
them in each turn of the loop; what has grown is noted in windows of a minute, an hour and a day. What stands still
costs nothing.
"""

from collections import deque
from collections.abc import Callable, Iterable
from datetime import date
from typing import NamedTuple, Protocol

from tandemmq.common.slices import Slices, in_turns
from tandemmq.common.timers import Timer, Timers
from tandemmq.common.topic_names import is_system_topic

SAMPLE_SECONDS = 10.0
_PERIODS = ((SAMPLE_SECONDS, 7), (600.0, 7), (3_600.0, 25))
"""Of the windows of a minute, an hour and a day: seconds of a part, and the parts with the one that is not over."""
_SAMPLES = 61
"""Of the totals: ten minutes."""


class TrafficKey(NamedTuple):
    """What was stored in a topic, given to a group of it; or, without a topic, in all and from all."""

    topic: str
    group: str | None = None
    back: bool = False
    """What the group has sent back."""


STORED, GIVEN = TrafficKey(""), TrafficKey("", "")
"""Of all topics but the system's."""


class TrafficCounts(NamedTuple):
    """Messages, and their bytes together."""

    messages: int
    size: int

    def plus(self, other: "TrafficCounts") -> "TrafficCounts":
        """Both together."""
        return TrafficCounts(self.messages + other.messages, self.size + other.size)

    def since(self, other: "TrafficCounts") -> "TrafficCounts":
        """What has come since it was `other`."""
        return TrafficCounts(self.messages - other.messages, self.size - other.size)


NOTHING = TrafficCounts(0, 0)
_MOST_BACK = 10_000
"""Topics and groups of which it is counted what was sent back."""


class TrafficCounters(Protocol):
    """Messages and bytes since the start of the process, by topic and group; without a group: what was stored."""

    def traffic(self) -> Iterable[tuple[str, str | None, int, int]]:
        """All of them: topic, group, messages, bytes. The list does not change while it is read."""
        ...

    def traffic_of(self, topic: str, group: str | None) -> tuple[int, int]:
        """One of them: messages, bytes."""
        ...


class Rate(NamedTuple):
    """What came in a window."""

    counts: TrafficCounts
    seconds: float
    """How long the window is by now."""

    @property
    def per_second(self) -> float:
        """Messages."""
        return self.counts.messages / self.seconds if self.seconds > 0 else 0.0


class DayTotals(NamedTuple):
    """Messages since the start of the process: now, when the day began, and when the day before it began."""

    now: int
    this_morning: int
    yesterday_morning: int


class _Window:
    """Some periods: those that are over, and the present one."""

    def __init__(self, period: float, most: int, now: float) -> None:
        self._period = period
        self._parts: deque[tuple[float, dict[TrafficKey, TrafficCounts]]] = deque([(now, {})], most)

    def add(self, key: TrafficKey, counts: TrafficCounts) -> None:
        part = self._parts[-1][1]
        part[key] = part.get(key, NOTHING).plus(counts)

    def turn(self, now: float) -> None:
        """A period may be over."""
        if now - self._parts[-1][0] >= self._period:
            self._parts.append((now, {}))

    def counts(self, key: TrafficKey) -> TrafficCounts:
        found = NOTHING
        for _, part in self._parts:
            found = found.plus(part.get(key, NOTHING))
        return found

    def seconds(self, now: float) -> float:
        return now - self._parts[0][0]


class TrafficHistory:
    """Looks at counters from `start` to `stop`."""

    def __init__(self, counters: TrafficCounters, timers: Timers, today: Callable[[], date]) -> None:
        self._counters = counters
        self._timers = timers
        self._today = today
        self._seen: dict[TrafficKey, TrafficCounts] = {STORED: NOTHING, GIVEN: NOTHING}
        self._windows: list[_Window] = []
        self._totals: deque[tuple[float, dict[TrafficKey, TrafficCounts]]] = deque(maxlen=_SAMPLES)
        self._back = 0
        self._day: date | None = None
        self._mornings = (self._total(), self._total())
        self._timer: Timer | None = None

    def start(self) -> None:
        """Begin. What was counted before counts as the first part's."""
        now = self._timers.time()
        self._windows = [_Window(period, most, now) for period, most in _PERIODS]
        self._totals.append((now, self._total()))
        self._day = self._today()
        self._timer = self._timers.call_later(SAMPLE_SECONDS, self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- what there is ----------------------------------------------------------------------------------------------

    def rates(self, key: TrafficKey) -> tuple[Rate, Rate, Rate] | None:
        """Of a minute, an hour and a day; None where there was nothing since the start."""
        if key.topic and not key.back:
            self._note((key.topic, key.group, *self._counters.traffic_of(key.topic, key.group)))
        if not self._seen.get(key, NOTHING).messages:
            return None
        now = self._timers.time()
        minute, hour, day = (Rate(one.counts(key), max(one.seconds(now), SAMPLE_SECONDS)) for one in self._windows)
        return minute, hour, day

    async def given_per_second(self, group: str, topics: Iterable[str], slices: Slices) -> float:
        """Messages that a group has got of some topics, in the last minute."""
        found = 0.0
        for topic in topics:
            rates = self.rates(TrafficKey(topic, group))
            found += 0.0 if rates is None else rates[0].per_second
            await slices.pause()
        return found

    def total(self, key: TrafficKey) -> TrafficCounts:
        """Since the start; `key`: STORED or GIVEN."""
        return self._seen[key]

    def lately(self, key: TrafficKey, looks: int) -> float:
        """Messages a second, since so many looks; `key`: as in `total`."""
        (began, first), (ended, last) = self._totals[max(-1 - looks, -len(self._totals))], self._totals[-1]
        return Rate(last[key].since(first[key]), ended - began).per_second

    def days(self, key: TrafficKey) -> DayTotals:
        """By days of this machine's zone; `key`: as in `total`."""
        this, yesterday = (morning[key].messages for morning in self._mornings)
        return DayTotals(self._seen[key].messages, this, yesterday)

    def came_back(self, topic: str, group: str) -> None:
        """A group could not consume a message of a topic, and has sent it back."""
        key, one = TrafficKey(topic, group, back=True), TrafficCounts(1, 0)
        if key not in self._seen:
            if self._back == _MOST_BACK:
                return
            self._back += 1
        self._seen[key] = self._seen.get(key, NOTHING).plus(one)
        self._add(key, one)

    # -- looks ------------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        in_turns(self._timers, self._counters.traffic(), self._note, self._looked)

    def _note(self, count: tuple[str, str | None, int, int]) -> None:
        topic, group, messages, size = count
        key, counts = TrafficKey(topic, group), TrafficCounts(messages, size)
        before = self._seen.get(key, NOTHING)
        if counts.messages <= before.messages:  # it may have been asked for meanwhile
            return
        self._seen[key] = counts
        self._add(key, counts.since(before))
        if not is_system_topic(topic):
            total = STORED if group is None else GIVEN
            self._seen[total] = self._seen[total].plus(counts.since(before))
            self._add(total, counts.since(before))

    def _add(self, key: TrafficKey, counts: TrafficCounts) -> None:
        for window in self._windows:
            window.add(key, counts)

    def _looked(self) -> None:
        now, today = self._timers.time(), self._today()
        for window in self._windows:
            window.turn(now)
        self._totals.append((now, self._total()))
        if today != self._day:
            self._day = today
            self._mornings = (self._total(), self._mornings[0])
        if self._timer is not None:
            self._timer = self._timers.call_later(SAMPLE_SECONDS, self._look)

    def _total(self) -> dict[TrafficKey, TrafficCounts]:
        return {key: self._seen[key] for key in (STORED, GIVEN)}
