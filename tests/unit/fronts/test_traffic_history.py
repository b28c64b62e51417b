"""What tools are told of traffic: windows of a minute, an hour and a day, rates of the broker, and totals by day."""

from collections.abc import Iterable, Iterator
from datetime import date

import pytest

from tandemmq.common.slices import Slices
from tandemmq.store.fronts.remoting.administration import traffic_history
from tandemmq.store.fronts.remoting.administration.traffic_history import (
    GIVEN,
    SAMPLE_SECONDS,
    STORED,
    TrafficCounts,
    TrafficHistory,
    TrafficKey,
)
from tests.manual_timers import ManualTimers
from tests.turn_counter import TurnCounter

TOPIC, GROUP, BACK = TrafficKey("T"), TrafficKey("T", "G"), TrafficKey("T", "G", back=True)


class Counted:
    """Counters that a test sets."""

    def __init__(self) -> None:
        self.counts: dict[TrafficKey, tuple[int, int]] = {}

    def traffic(self) -> Iterable[tuple[str, str | None, int, int]]:
        return [(key.topic, key.group, *count) for key, count in self.counts.items()]

    def traffic_of(self, topic: str, group: str | None) -> tuple[int, int]:
        return self.counts.get(TrafficKey(topic, group), (0, 0))

    def add(self, key: TrafficKey, messages: int) -> None:
        before = self.counts.get(key, (0, 0))
        self.counts[key] = (before[0] + messages, before[1] + 100 * messages)


class Kit:
    """A history that has begun."""

    def __init__(self) -> None:
        self.counted, self.timers, self.day = Counted(), ManualTimers(), date(2026, 1, 1)
        self.history = TrafficHistory(self.counted, self.timers, lambda: self.day)
        self.history.start()

    def sums(self, key: TrafficKey) -> list[int]:
        rates = self.history.rates(key)
        assert rates is not None
        return [rate.counts.messages for rate in rates]


@pytest.mark.slow
async def test_what_has_come_is_told_at_once_and_leaves_the_minute_the_hour_and_the_day() -> None:
    kit = Kit()
    assert kit.history.rates(TOPIC) is None
    kit.counted.add(TOPIC, 6)
    assert kit.sums(TOPIC) == [6, 6, 6]
    await kit.timers.advance(60.0)
    rates = kit.history.rates(TOPIC)
    assert rates is not None
    assert (rates[0].counts, rates[0].seconds, rates[0].per_second) == (TrafficCounts(6, 600), 60.0, 0.1)
    await kit.timers.advance(30.0)
    assert kit.sums(TOPIC) == [0, 6, 6]
    await kit.timers.advance(2 * 3_600.0)
    assert kit.sums(TOPIC) == [0, 0, 6]
    await kit.timers.advance(25 * 3_600.0)
    assert kit.sums(TOPIC) == [0, 0, 0]
    kit.counted.add(TOPIC, 1)
    assert kit.sums(TOPIC) == [1, 1, 1]


async def test_rates_of_all_leave_out_what_is_the_systems() -> None:
    kit = Kit()
    for key, messages in ((TOPIC, 50), (TrafficKey("SCHEDULE_TOPIC_XXXX"), 900), (GROUP, 20)):
        kit.counted.add(key, messages)
    await kit.timers.advance(SAMPLE_SECONDS)
    assert (kit.sums(STORED)[0], kit.sums(GIVEN)[0]) == (50, 20)
    assert (kit.history.lately(STORED, 1), kit.history.lately(GIVEN, 1)) == (5.0, 2.0)
    await kit.timers.advance(9 * SAMPLE_SECONDS)
    looks = [kit.history.lately(STORED, looks) for looks in (1, 6, 60)]
    assert looks == [0.0, 0.0, 0.5]
    assert kit.history.total(STORED) == TrafficCounts(50, 5_000)
    assert await kit.history.given_per_second("G", ["T", "another"], Slices(kit.timers)) == 0.0


async def test_the_rate_of_a_group_with_many_topics_is_found_in_slices() -> None:
    kit = Kit()
    for number in range(200):
        kit.counted.add(TrafficKey(f"T{number}", "G"), 60)
    await kit.timers.advance(SAMPLE_SECONDS)
    kit.timers.each_look = 0.0003
    with TurnCounter.counting() as count:

        def topics() -> Iterator[str]:
            for number in range(200):
                count()
                yield f"T{number}"

        assert await kit.history.given_per_second("G", topics(), Slices(kit.timers)) == 200 * 6.0
        assert (count.all, count.most) == (200, 4)


async def test_totals_are_those_of_days() -> None:
    kit = Kit()
    kit.counted.add(TOPIC, 5)
    kit.day = date(2026, 1, 2)
    await kit.timers.advance(SAMPLE_SECONDS)
    kit.counted.add(TOPIC, 7)
    kit.day = date(2026, 1, 3)
    await kit.timers.advance(SAMPLE_SECONDS)
    kit.counted.add(TOPIC, 1)
    await kit.timers.advance(SAMPLE_SECONDS)
    assert kit.history.days(STORED) == (13, 12, 5)
    assert kit.history.days(GIVEN) == (0, 0, 0)


async def test_an_answer_in_the_middle_of_a_look_counts_nothing_twice() -> None:
    kit = Kit()
    kit.counted.add(TOPIC, 5)
    kit.timers.each_look = 1.0  # every slice is over at once
    before = [("T", None, 3, 300)]
    kit.sums(TOPIC)
    kit.counted.traffic = lambda: before  # type: ignore[method-assign]
    await kit.timers.advance(SAMPLE_SECONDS)
    assert kit.sums(TOPIC) == [5, 5, 5]
    assert kit.history.total(STORED) == TrafficCounts(5, 500)


async def test_who_has_stopped_looks_no_more() -> None:
    kit = Kit()
    kit.history.stop()
    kit.counted.add(TOPIC, 5)
    await kit.timers.advance(SAMPLE_SECONDS)
    assert kit.history.total(STORED) == pytest.approx(TrafficCounts(0, 0))


async def test_what_is_sent_back_is_counted_by_topic_and_group_and_no_other_figure_has_it() -> None:
    kit = Kit()
    assert kit.history.rates(BACK) is None
    kit.history.came_back("T", "G")
    kit.history.came_back("T", "G")
    kit.history.came_back("T", "other")
    assert kit.sums(BACK) == [2, 2, 2]
    assert kit.history.rates(GROUP) is None
    assert kit.history.total(GIVEN) == TrafficCounts(0, 0)
    await kit.timers.advance(90.0)
    assert kit.sums(BACK) == [0, 2, 2]


async def test_what_is_sent_back_takes_no_memory_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic_history, "_MOST_BACK", 2)
    kit = Kit()
    for group in ("a", "b", "c", "a"):
        kit.history.came_back("T", group)
    assert kit.sums(TrafficKey("T", "a", back=True)) == [2, 2, 2]
    assert kit.history.rates(TrafficKey("T", "c", back=True)) is None
