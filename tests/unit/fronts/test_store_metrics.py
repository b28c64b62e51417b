"""What the store tells Prometheus, where it is more than a number read off."""

import math

import pytest

from tandemmq.store.delivery.delays.counts import DelayCounts
from tandemmq.store.delivery.figures.waiting_figures import WaitingFigures
from tandemmq.store.format.audit_result import AuditResult
from tandemmq.store.metrics import Gauges, StoreMetrics

COMMON = {"cluster", "node_type", "node_id"}


def told_by(metrics: StoreMetrics) -> dict[tuple[str, ...], float]:
    """Values by name and labels of their own."""
    samples = (sample for family in metrics.collect() for sample in family.samples)
    return {
        (one.name, *(value for label, value in one.labels.items() if label not in COMMON)): one.value for one in samples
    }


def gauges(**known: object) -> Gauges:
    """All 0 but for these."""
    known = {"audit": None, **known}
    return Gauges._make(known.get(name, 0) for name in Gauges._fields)


def test_failures_of_background_tasks_begin_at_0_so_that_the_first_is_an_increase() -> None:
    metrics = StoreMetrics("c", "n")
    for task in ("checkpoint", "dispatch", "flush", "rebuild", "retention"):
        assert told_by(metrics)["tandem_background_failures_total", task] == 0
    metrics.failed("flush")
    assert told_by(metrics)["tandem_background_failures_total", "flush"] == 1


def test_topics_beyond_the_limit_count_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandemmq.store.metrics.MOST_SERIES", 3)
    metrics = StoreMetrics("c", "n")
    for number in range(10):
        metrics.sent(f"topic-{number}", 2, 100)
        metrics.pulled(f"topic-{number}", "group", 1, 50)
    told = told_by(metrics)
    sent = {key[1]: value for key, value in told.items() if key[0] == "rocketmq_messages_in_total"}
    pulled = {key[1:3]: value for key, value in told.items() if key[0] == "rocketmq_messages_out_total"}
    assert sent == {"topic-0": 2, "topic-1": 2, "topic-2": 2, "(others)": 14}
    assert pulled == {**{(f"topic-{number}", "group"): 1 for number in range(3)}, ("(others)", "(others)"): 7}


def test_timers_are_counted_by_topic_and_those_beyond_the_limit_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandemmq.store.delivery_metrics.MOST_SERIES", 2)
    metrics, counts = StoreMetrics("c", "n"), DelayCounts()
    metrics.watch_waiting(WaitingFigures, counts)
    counts.timers_in.update({"a": 3, "b": 1, "c": 4})
    counts.timers_out.update({"c": 2, "of before": 5})
    told = {key: value for key, value in told_by(metrics).items() if key[0].startswith("rocketmq_timer_") and key[1:]}
    assert told == {
        ("rocketmq_timer_enqueue_total", "a"): 3,
        ("rocketmq_timer_enqueue_total", "b"): 1,
        ("rocketmq_timer_enqueue_total", "(others)"): 4,
        ("rocketmq_timer_dequeue_total", "a"): 0,
        ("rocketmq_timer_dequeue_total", "b"): 0,
        ("rocketmq_timer_dequeue_total", "(others)"): 7,
    }


def test_the_disk_is_seen_as_the_limits_see_it_without_what_is_kept_for_root() -> None:
    metrics = StoreMetrics("c", "n")
    metrics.watch(lambda: gauges(disk_used=30, disk_free=10, disk_limit=0.9))
    told = told_by(metrics)
    assert math.isclose(told[("tandem_disk_used_ratio",)], 0.75)
    assert told[("tandem_disk_limit_ratio",)] == 0.9
    assert told[("tandem_disk_free_bytes",)] == 10
    metrics.watch(gauges)
    assert told_by(metrics)[("tandem_disk_used_ratio",)] == 0, "a disk without room says nothing"


def test_a_log_has_a_begin_an_end_and_a_length() -> None:
    metrics = StoreMetrics("c", "n")
    metrics.watch(lambda: gauges(log_begin=100, log_end=350))
    told = told_by(metrics)
    names = ("tandem_log_begin_offset", "tandem_log_end_offset", "tandem_log_bytes")
    assert [told[(name,)] for name in names] == [100, 350, 250]


def test_pulls_without_a_group_have_a_label_all_the_same() -> None:
    metrics = StoreMetrics("c", "n")
    metrics.pulled("orders", "", 2, 20)
    told = told_by(metrics)
    assert told["rocketmq_messages_out_total", "orders", "(none)", "false"] == 2


def test_the_last_audit_is_shown_as_it_was_and_none_as_nothing() -> None:
    metrics = StoreMetrics("c", "n")
    metrics.watch(gauges)
    assert not [name for name in told_by(metrics) if "audit" in name[0]], "0 would say that somebody has looked"
    metrics.watch(lambda: gauges(audit=AuditResult(5_000, 0, 10, {"rot": 2}, {"time-back": 7})))
    told = told_by(metrics)
    assert told["tandem_audit_findings", "rot", "true"] == 2
    assert told["tandem_audit_findings", "time-back", "false"] == 7
    assert told[("tandem_audit_timestamp_seconds",)] == 5


def test_a_result_that_cannot_be_used_is_an_unusable_file_until_it_can() -> None:
    metrics = StoreMetrics("c", "n")
    metrics.unusable("tandem.damage")
    metrics.watch(lambda: gauges(audit_unusable=True))
    told = told_by(metrics)
    assert told["tandem_unusable_files", "tandem.audit"] == told["tandem_unusable_files", "tandem.damage"] == 1
    metrics.watch(gauges)
    assert ("tandem_unusable_files", "tandem.audit") not in told_by(metrics)
