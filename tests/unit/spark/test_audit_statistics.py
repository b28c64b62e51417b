"""Statistics of a log: exact counts in buckets that widen, in bounded memory."""

import json
from pathlib import Path

import pytest

from tandemmq.spark.auditing.audit_findings import FindingPlace, Findings
from tandemmq.spark.auditing.audit_statistics import WIDTHS, Statistics
from tandemmq.spark.reading.log_files import list_log_files
from tandemmq.spark.reading.ranges import split
from tandemmq.spark.reading.walking import RangeWalker
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.format.record import encode_record

HOST = Host("127.0.0.1", 10911)
NOW = 1_700_000_000_000


def gathered(root: Path, times: list[int], topics: int = 1, rows: int = 65_536) -> Statistics:
    log = b""
    for number, time in enumerate(times):
        message = Message(f"t{number % topics}", 0, b"x" * (number % 50), b"", born_host=HOST, store_host=HOST)
        log += encode_record(message, number, len(log), time)
    size = len(log) + 4_096
    (root / "commitlog").mkdir()
    (root / "commitlog" / f"{0:020d}").write_bytes(log.ljust(size, b"\0"))
    found = Statistics()
    (log_range,) = split(list_log_files(root), 1 << 30)
    with RangeWalker(log_range, rows=rows) as walking:
        for walk in walking.walks():
            found.add(walk, walking.buffer)
    assert sum(size for _, size in found.totals().values()) == len(log)
    return found


@pytest.mark.parametrize("rows", [7, 65_536])
def test_counts_by_topic_and_second(tmp_path: Path, rows: int) -> None:
    found = gathered(tmp_path, [NOW + 250 * number for number in range(400)], topics=2, rows=rows)
    assert found.width == 1_000
    assert {topic: counts[0] for topic, counts in found.totals().items()} == {"t0": 200, "t1": 200}
    assert found.buckets["t0"][NOW // 1_000][0] == 2
    assert len(found.buckets["t1"]) == 100
    assert sum(found.sizes.values()) == 400
    assert (found.first_time, found.last_time) == (NOW, NOW + 250 * 399)
    assert Statistics.read(json.loads(json.dumps(found.document()))) == found


@pytest.mark.slow
def test_buckets_widen_when_there_are_many(tmp_path: Path) -> None:
    found = gathered(tmp_path, [NOW + 3_600_000 * number for number in range(25_000)])
    assert found.width == 6 * 3_600_000
    assert len(found.buckets["t0"]) <= 20_000
    assert found.totals()["t0"][0] == 25_000


def test_times_that_cannot_be_cost_resolution_and_nothing_else(tmp_path: Path) -> None:
    found = gathered(tmp_path, [NOW, -(1 << 62), NOW, (1 << 62), 0, NOW])
    assert found.totals()["t0"][0] == 6
    assert (found.first_time, found.last_time) == (-(1 << 62), 1 << 62)


def test_what_is_put_together_has_the_wider_buckets() -> None:
    fine = Statistics(WIDTHS[0], {"a": {100: (1, 10), 159: (2, 20)}, "b": {60: (1, 5)}}, {8: 4}, 60_000, 159_000)
    coarse = Statistics(WIDTHS[2], {"a": {1: (5, 50), 2: (1, 1)}}, {8: 5, 9: 1}, 65_000, 130_000)
    for first, second in ((fine, coarse), (coarse, fine)):
        both = Statistics()
        both.merge(first)
        both.merge(second)
        assert both.width == WIDTHS[2]
        assert both.buckets == {"a": {1: (6, 60), 2: (3, 21)}, "b": {1: (1, 5)}}
        assert both.sizes == {8: 9, 9: 1}
        assert (both.first_time, both.last_time) == (60_000, 159_000)


def test_a_plot_gets_as_many_buckets_as_it_wants() -> None:
    many = Statistics(WIDTHS[0], {"a": dict.fromkeys(range(10000), (1, 1))}, {8: 10_000}, 0, 9_999_000)
    wide = many.widened(240)
    assert wide.width == WIDTHS[2]
    assert wide.totals() == many.totals()
    assert many.width == WIDTHS[0]


def test_places_that_follow_each_other_become_one() -> None:
    here, there = Findings(2), Findings(2)
    here.add("unit-missing", FindingPlace("t", 0, 10, 1_000, count=5))
    here.add("unit-missing", FindingPlace("t", 1, 10, 1_100))
    here.add("unit-missing", FindingPlace("t", 0, 15, 1_200, count=2))
    there.add("unit-missing", FindingPlace("t", 0, 17, 1_300))
    there.add("unit-missing", FindingPlace("t", 0, 30, 1_400))
    here.merge(Findings.read(json.loads(json.dumps(there.document()))))
    assert [(place.queue_id, place.queue_offset, place.count) for place in here.places["unit-missing"]] == [
        (0, 10, 8),
        (1, 10, 1),
    ]
    assert here.counts == {"unit-missing": 10}  # one place had no room; it is counted
    assert here.by_queue == {("t", 0): {"unit-missing": 9}, ("t", 1): {"unit-missing": 1}}
