"""The hour's history: rings of points, growth of counters, gaps, and what is forgotten."""

import asyncio
import math
from types import SimpleNamespace
from typing import Any

import pytest

from tandemmq.admin.errors import BadAdminRequest
from tandemmq.admin.history import history as module
from tandemmq.admin.history.collected import pause_after
from tandemmq.admin.history.history import CountedPart, HourHistory, SeriesName
from tandemmq.admin.history.history_answer import tell_history
from tandemmq.admin.history.history_readings import read_history
from tandemmq.admin.history.send_latency import SendLatency, SendTimesKeeper
from tandemmq.admin.v1 import admin_pb2
from tandemmq.cli.nouns.figures import sparkline
from tandemmq.common.slices import Slices
from tandemmq.store.v1 import store_pb2
from tests.manual_timers import ManualTimers
from tests.turn_counter import TurnCounter

LAG = SeriesName("group", "billing", "lag")
ORDERS = SeriesName("topic", "orders", "messages_in")
HERE, THERE = CountedPart(ORDERS, "broker-a"), CountedPart(ORDERS, "broker-b")


def shown(history: HourHistory, series: SeriesName) -> list[float | None]:
    """Points of one series; None where nobody knows."""
    values = dict(history.of(series.kind, series.name)).get(series.measure, [])
    return [None if math.isnan(value) else value for value in values]


def test_a_counter_is_shown_as_growth_a_second() -> None:
    history = HourHistory(15.0)
    for at, counted in ((1000.0, 50), (1015.0, 200), (1030.0, 200)):
        history.note(at, {HERE: counted}, {})
    assert shown(history, ORDERS) == [None, 10.0, 0.0]


def test_a_counter_that_shrank_is_a_gap_and_no_spike_follows() -> None:
    history = HourHistory(15.0)
    for at, counted in ((0.0, 1000), (15.0, 1150), (30.0, 30), (45.0, 60)):
        history.note(1000 + at, {HERE: counted}, {})
    assert shown(history, ORDERS) == [None, 10.0, None, 2.0]


def test_what_was_away_has_a_gap_and_its_next_rate_is_unknown() -> None:
    history = HourHistory(15.0)
    for at, counted in ((0.0, 0), (15.0, 150), (30.0, None), (45.0, 9000), (60.0, 9150)):
        history.note(1000 + at, {} if counted is None else {HERE: counted}, {})
    assert shown(history, ORDERS) == [None, 10.0, None, None, 10.0]


def test_a_part_that_comes_or_goes_is_no_growth_of_the_whole() -> None:
    history = HourHistory(15.0)
    for at, counted in (
        (0, {HERE: 100, THERE: 9000}),
        (15, {HERE: 115, THERE: 9015}),
        (30, {HERE: 130}),  # the other broker is away
        (45, {HERE: 145}),
        (60, {HERE: 160, THERE: 9030}),
        (75, {HERE: 175, THERE: 9060}),
    ):
        history.note(1000.0 + at, counted, {})
    assert shown(history, ORDERS) == [None, 2.0, None, 1.0, None, 3.0]


def send_times(*calls: int, sum_ms: float) -> store_pb2.SendTimes:
    return store_pb2.SendTimes(bounds_ms=(1, 3, 10), calls=calls, sum_ms=sum_ms)


def test_sends_are_those_since_the_round_before() -> None:
    keeper = SendTimesKeeper()
    assert keeper.since_last("a", send_times(1000, 0, 0, 0, sum_ms=500)) is None
    assert keeper.since_last("a", send_times(1090, 10, 0, 0, sum_ms=570)) == SendLatency(0.7, 2.8)
    assert keeper.since_last("b", send_times(0, 0, 0, 0, sum_ms=0)) is None, "each node by itself"
    assert keeper.since_last("a", send_times(1090, 10, 0, 0, sum_ms=570)) is None, "nobody sent"
    assert keeper.since_last("a", send_times(1090, 10, 0, 5, sum_ms=70_570)) == SendLatency(14_000, 10), (
        "beyond the last bound"
    )
    assert keeper.since_last("a", send_times(3, 0, 0, 0, sum_ms=3)) is None, "started anew"
    assert keeper.since_last("a", send_times(4, 0, 0, 0, sum_ms=4)) == SendLatency(1, 0.99)
    assert keeper.since_last("a", store_pb2.SendTimes(bounds_ms=[1], calls=[9, 9])) is None, "other ranges"


@pytest.mark.parametrize("silent", [0.0, 60.0])
def test_a_slave_is_silent_when_its_master_says_so(silent: float) -> None:
    node = admin_pb2.Node(name="a")
    node.replication.replicas.add(lag_bytes=7, ack_age_seconds=70)
    node.replication.replicas.add(ack_age_seconds=60, silent_seconds=silent)
    readings = asyncio.run(read_history([node], [], {}, {}, SendTimesKeeper(), Slices(ManualTimers())))
    assert readings.gauges[SeriesName("node", "a", "replication_silence")] == silent


def book(
    ends: dict[str, tuple[int, bool]], offsets: dict[str, dict[str, dict[int, int]]], taken: int | None = None
) -> Any:
    """A broker's: end of each topic's one queue, and whether that is being rebuilt; offsets by group, topic, queue.

    `taken`: bytes that its store has taken for each topic.
    """
    return SimpleNamespace(
        broker="broker-a",
        store=SimpleNamespace(name="a"),
        ends=SimpleNamespace(
            topics={name: store_pb2.TopicQueues(topic=name, taken_bytes=taken) for name in ends},
            queues=lambda topic: {0: SimpleNamespace(high=ends[topic][0], rebuilding=ends[topic][1])},
        ),
        tables=SimpleNamespace(offsets=offsets),
    )


def test_a_slave_that_stood_in_for_its_master_is_no_spike_when_that_is_back() -> None:
    master, slave = book({"t": (1000, False)}, {}), book({"t": (400, False)}, {})
    slave.store.name = "b"
    back = book({"t": (1015, False)}, {})
    (series,) = (values for measure, values in rounds(master, master, slave, back, back).of("topic", "t"))
    assert series[1] == series[4] == 0
    assert all(map(math.isnan, (series[0], series[2], series[3])))


def rounds(*books: Any) -> HourHistory:
    history = HourHistory(15.0)
    for number, one in enumerate(books):
        readings = read_history([], [one], {}, {}, SendTimesKeeper(), Slices(ManualTimers()))
        history.note(1000.0 + 15 * number, *asyncio.run(readings))
    return history


def test_bytes_of_a_topic_are_what_its_store_has_taken() -> None:
    history = rounds(*(book({"orders": (0, False)}, {}, taken) for taken in (0, 1500, 0, 30, None)))
    bytes_in = SeriesName("topic", "orders", "bytes_in")
    assert shown(history, bytes_in) == [None, 100.0, None, 2.0, None], "a store that was started anew begins at 0"


def test_a_topic_that_was_rebuilt_is_no_spike_of_its_node() -> None:
    old = {"big": (9_000_000, False), "orders": (0, False)}
    history = rounds(
        *(book({**old, "big": (9_000_000, rebuilding), "orders": (end, False)}, {})
          for rebuilding, end in ((False, 0), (True, 15), (True, 30), (False, 45), (False, 60)))
    )  # fmt: skip
    assert shown(history, SeriesName("node", "a", "messages_in")) == [None, None, 1.0, None, 1.0]
    assert shown(history, ORDERS) == [None, 1.0, 1.0, 1.0, 1.0]


def test_a_queue_that_a_group_begins_with_is_no_spike_of_what_it_consumes() -> None:
    offsets: list[dict[int, int]] = [{0: 100}, {0: 115}, {0: 130, 1: 9_000_000}, {0: 145, 1: 9_000_000}]
    history = rounds(*(book({}, {"billing": {"orders": one}}) for one in offsets))
    assert shown(history, SeriesName("group", "billing", "consumed")) == [None, 1.0, None, 1.0]


def test_a_clock_that_goes_back_gives_no_rate() -> None:
    history = HourHistory(15.0)
    history.note(1000.0, {HERE: 0}, {LAG: 1})
    history.note(900.0, {HERE: 10}, {LAG: 2})
    assert shown(history, ORDERS) == []
    assert shown(history, LAG) == [1.0, 2.0]


def test_an_hour_is_kept_and_the_oldest_point_goes() -> None:
    history = HourHistory(15.0)
    for round_ in range(250):
        history.note(round_ * 15.0, {}, {LAG: round_})
    assert shown(history, LAG) == [float(lag) for lag in range(10, 250)]


def test_rounds_that_were_missed_are_a_gap_and_not_a_shorter_hour() -> None:
    history = HourHistory(15.0)
    for at, lag in ((1000.0, 1.0), (1016.0, 2.0), (1060.0, 3.0), (1074.0, 4.0)):
        history.note(at, {}, {LAG: lag})
    assert shown(history, LAG) == [1, 2, None, None, 3, 4]
    history.note(1_000_000.0, {}, {LAG: 5.0})
    assert shown(history, LAG) == [*[None] * 239, 5]


@pytest.mark.parametrize("pause", [1.0, 10.0, 15.2, 18.0, 22.0, 40.0])
def test_an_hour_is_an_hour_long_however_far_apart_its_rounds_are(pause: float) -> None:
    """Each point stands where the chart draws it, give or take two steps."""
    history, at = HourHistory(15.0), 1000.0
    while at < 9000.0:
        if history.is_due(at):
            history.note(at, {}, {LAG: at})
        at += pause
    points = shown(history, LAG)
    assert len(points) == 240
    drawn = [(history.last - (239 - place) * history.step, noted) for place, noted in enumerate(points) if noted]
    assert all(abs(drawn_at - noted) <= 2 * history.step for drawn_at, noted in drawn)
    assert len(drawn) >= 0.95 * min(240, 3600 / pause)


def test_rounds_begin_at_equal_distances_and_rest_for_as_long_as_they_take() -> None:
    assert [pause_after(took, 15.0) for took in (0.0, 3.0, 9.0, 40.0)] == [15.0, 12.0, 9.0, 15.0]


def test_what_is_gone_for_an_hour_is_forgotten() -> None:
    history = HourHistory(1200.0)
    history.note(0.0, {}, {LAG: 1})
    for at in range(1, 8):
        history.note(at * 1200.0, {}, {})
    assert not list(history.of("group", "billing"))


def test_there_is_room_for_so_many_series_and_the_rest_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SERIES", 2)
    history = HourHistory(15.0)
    gauges = {SeriesName("group", name, "lag"): 1.0 for name in ("a", "b", "c")}
    history.note(1000.0, {}, gauges)
    history.note(1015.0, {}, gauges)
    assert history.left_out == 1
    assert [list(history.of("group", name)) for name in "abc"] == [[("lag", [1.0, 1.0])], [("lag", [1.0, 1.0])], []]


def test_a_round_counts_when_it_comes_a_little_early() -> None:
    history = HourHistory(1.0)
    assert history.step == module.SHORTEST_STEP
    history.note(1000.0, {}, {LAG: 1})
    assert not history.is_due(1013.0)
    assert history.is_due(1014.0)


def test_a_clock_that_went_back_an_hour_does_not_stop_the_history() -> None:
    history = HourHistory(15.0)
    assert history.is_due(5000.0)
    history.note(5000.0, {}, {LAG: 1})
    assert not history.is_due(5001.0)
    assert history.is_due(1400.0)


def test_the_answer_has_the_series_of_what_was_asked_for() -> None:
    history = HourHistory(15.0)
    history.note(1000.5, {}, {LAG: 7, SeriesName("group", "other", "lag"): 1})
    told = tell_history(history, admin_pb2.GetHistoryRequest(group="billing"))
    assert [(one.measure, list(one.values)) for one in told.series] == [("lag", [7.0])]
    assert (told.last_ms, told.step_ms, told.left_out) == (1_000_500, 15_000, 0)
    with pytest.raises(BadAdminRequest, match="nothing is asked for"):
        tell_history(history, admin_pb2.GetHistoryRequest())


def test_a_sparkline_is_as_high_as_its_means_and_blank_where_nobody_knows() -> None:
    assert sparkline([0.0, 7.0, math.nan, 3.5], 4) == "▁█ ▅"
    assert sparkline([1.0, 3.0, math.nan, 4.0], 2) == "▅█"
    assert sparkline([0.0, 0.0]) == "▁▁"
    assert sparkline([]) == ""


async def test_what_is_read_of_thousands_is_read_in_turns() -> None:
    timers = ManualTimers()
    timers.each_look = 0.0003
    with TurnCounter.counting() as count:
        many = book({}, {})

        def queues(topic: str) -> dict[int, Any]:
            count()
            return {0: SimpleNamespace(high=1, rebuilding=False)}

        topics = dict.fromkeys(map(str, range(1_000)), store_pb2.TopicQueues())
        many.ends = SimpleNamespace(topics=topics, queues=queues)
        many.tables.offsets = {str(number): {"orders": {0: 7}} for number in range(1_000)}
        found = await read_history([], [many], {}, {}, SendTimesKeeper(), Slices(timers))
        assert (count.all, count.most) == (1_000, 4)
    assert len(found.counters) == 2_001
