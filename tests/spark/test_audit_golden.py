"""The audit of stores that RocketMQ wrote: sound ones have no faults, and what is wrong with the others is known."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tandemmq.spark.auditing.audit_job import AuditRequest, audit
from tandemmq.spark.auditing.audit_report import AuditReport
from tandemmq.spark.errors import UnequalFiles
from tandemmq.spark.running.runner import InProcessRunner, SparkRunner
from tests.campaigns import in_campaigns
from tests.golden import golden_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.golden

LEVELS = (1_000, 2_000, 3_000, 3_600_000)


def expected(set_name: str) -> Any:
    return json.loads((golden_store(set_name) / "expected.json").read_text())


def look(root: Path, **more: Any) -> AuditReport:
    return audit(AuditRequest(root, delay_levels=LEVELS, details=10_000, **more), InProcessRunner())


def counts(report: AuditReport, *, faults: bool = True) -> dict[str, int]:
    return {kind.name: number for kind, number, _ in report.found(faults=faults)}


@pytest.mark.parametrize("store", ["clean/store", *in_campaigns("crash/store", "ha/master/store", "ha/slave/store")])
def test_sound_stores_have_no_faults(store: str) -> None:
    set_name, _, rest = store.partition("/")
    report = look(golden_store(set_name) / rest, range_size=1 << 18)
    assert counts(report) == {}
    assert report.delivery_times_compared
    assert report.records > 2_000
    assert (report.index_slots, report.index_entries) == (2_000, 8_000)  # told from the files


def test_every_message_that_was_acknowledged_is_counted() -> None:
    report, want = look(golden_store("clean") / "store"), expected("clean")
    for topic, queues in want["queues"].items():
        for queue_id, queue in queues.items():
            if queue.get("entries"):
                found = report.queue((topic, int(queue_id)))
                assert (found.first, found.end, found.messages) == (
                    queue["min"],
                    queue["max"],
                    queue["max"] - queue["min"],
                )


def test_expired_records_leave_units_and_entries_which_are_no_faults() -> None:
    report, want = look(golden_store("aged") / "store"), expected("aged")
    assert counts(report) == {}
    notes = counts(report, faults=False)
    assert notes["unit-expired"] >= len(want["deletedMessages"])
    assert notes["entry-expired"] > 0
    assert (report.begin, report.end) == (want["commitLogMinOffset"], want["commitLogMaxOffset"])


def test_a_crash_costs_rocketmq_index_entries() -> None:
    report = look(golden_store("crash") / "store-after-java-recovery")
    assert counts(report) == {"entry-missing": 1_821}  # trap T7
    ((kind, _, places),) = report.found(faults=True)
    assert kind.trap == "T7"
    assert sum(place.count for place in places) == 1_821


def test_the_state_at_the_crash_is_whole_but_was_not_closed() -> None:
    report = look(golden_store("crash") / "store")
    assert counts(report, faults=False) == {"not-closed": 1}


TORN = {
    "body-flip": {"rot": 1, "offset-gap": 1},
    "body-flip-old": {"rot": 1, "offset-gap": 1},
    "checkpoint-deleted": {},
    "no-abort": {},
    "cq-tail-zero": {"unit-missing": 5},
    "cq-topic-deleted": {"unit-missing": 1_100},
    "no-abort-cq-deleted": {"unit-missing": 1_100},
    "index-deleted": {"entry-missing": 14_420},
    "log-gap": {"missing": 1, "offset-gap": 445},
    "tail-zero": {"torn": 1, "unit-behind-end": 1, "entry-behind-end": 4},
}


@pytest.mark.parametrize("variant", TORN)
def test_damage_is_found_for_what_it_is(variant: str) -> None:
    report = look(golden_store("torn") / variant / "store", range_size=1 << 19)
    assert counts(report) == TORN[variant]


def test_a_cut_log_file_is_refused() -> None:
    with pytest.raises(UnequalFiles, match="one is cut"):
        look(golden_store("torn") / "short-file" / "store")


def test_what_rocketmq_makes_of_a_lost_queue() -> None:
    """Trap T5: blanks where messages are; trap T7: the index."""
    want = expected("torn")["variants"]["cq-topic-deleted"]["afterJavaRecovery"]
    report = look(golden_store("torn") / "cq-topic-deleted" / "store-after-java-recovery")
    found = counts(report)
    assert found.keys() == {"unit-blank", "entry-missing"}
    places = report.findings.places["unit-blank"]
    assert {place.topic for place in places} == {"billing_out"}
    lost = {place.queue_id: place.queue_offset + place.count for place in places}
    assert all(place.queue_offset == 0 for place in places)
    not_in_any = len(want["ackedNotInAnyQueue"])
    assert 0 < not_in_any <= found["unit-blank"] == sum(lost.values())


def test_what_rocketmq_makes_of_a_damaged_record() -> None:
    """Trap T1: it cuts off its log there, and leaves all the old bytes behind."""
    report = look(golden_store("torn") / "body-flip" / "store-after-java-recovery")
    found = counts(report)
    assert found["rot"] == 1
    assert found["unit-missing"] > 0
    assert found["unit-behind-end"] > 0


@pytest.mark.slow
def test_spark_finds_the_same(session: "SparkSession") -> None:
    root = golden_store("torn") / "cq-topic-deleted" / "store-after-java-recovery"
    request = AuditRequest(root, delay_levels=LEVELS, partitions=7)
    phases: list[str] = []
    on_spark = audit(request, SparkRunner(session), lambda progress: phases.append(progress.phase)).document()
    here = audit(request, InProcessRunner()).document()
    for document in (on_spark, here):
        del document["seconds"], document["phases"]
    assert on_spark == here
    assert dict.fromkeys(phases).keys() == {"index", "scan", "rest"}
