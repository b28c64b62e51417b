"""What is around the service: health, reflection, metrics, settings, the topic table, other processes."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from tandemmq.client import RequestFailed, StoreClient, StoreUnreachable
from tests.contract.store_process import StoreProcess

SERVICE = "tandemmq.store.v1.Store"

METRICS = {
    "rocketmq_messages_in_total",
    "rocketmq_throughput_in_total",
    "rocketmq_message_size",
    "rocketmq_messages_out_total",
    "rocketmq_throughput_out_total",
    "rocketmq_rpc_latency_milliseconds",
    "rocketmq_storage_size_bytes",
    "rocketmq_storage_flush_behind_bytes",
    "rocketmq_storage_dispatch_behind_bytes",
    "rocketmq_storage_message_reserve_time_milliseconds",
    "rocketmq_topic_number",
    "rocketmq_broker_permission",
    "tandem_append_duration_seconds",
    "tandem_flush_duration_seconds",
    "tandem_dispatch_duration_seconds",
    "tandem_flushed_bytes_total",
    "tandem_dispatched_messages_total",
    "tandem_background_failures_total",
    "tandem_recovery_progress_ratio",
    "tandem_recovery_done_bytes",
    "tandem_recovery_size_bytes",
    "tandem_store_writable",
    "tandem_damaged_ranges",
    "tandem_damaged_bytes",
    "tandem_log_bytes",
    "tandem_long_polls_waiting",
    "process_resident_memory_bytes",
}


def test_health_says_serving(shared_store: StoreProcess) -> None:
    with grpc.insecure_channel(shared_store.address) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        for service in ("", SERVICE):
            answer = health.Check(health_pb2.HealthCheckRequest(service=service))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_reflection_lists_the_service(shared_store: StoreProcess) -> None:
    with grpc.insecure_channel(shared_store.address) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        assert {SERVICE, "grpc.health.v1.Health"} <= set(database.get_services())
        described = database.FindFileContainingSymbol(SERVICE)
        methods = {method.name for service in described.service for method in service.method}
    finding = {"ViewMessage", "QueryMessage", "GetOffsets", "ListQueues", "GetLog"}
    assert methods == {"Send", "SendBatch", "SendStream", "Pull", "PullStream"} | finding


def scrape(store: StoreProcess) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{store.metrics_port}/metrics") as answer:
        return str(answer.read(), "utf-8")


def value(text: str, name: str, **labels: str) -> float:
    for line in text.splitlines():
        if line.startswith(f"{name}{{") and all(f'{label}="{wanted}"' in line for label, wanted in labels.items()):
            return float(line.rpartition(" ")[2])
    raise AssertionError(f"{name} {labels} is not there")


def test_every_metric_is_there_and_counts(shared_store: StoreProcess, client: StoreClient) -> None:
    for _ in range(3):
        client.send("measured", bytes(1000), queue_id=0)
    client.pull("measured", 0, 0, group="readers")
    with pytest.raises(RequestFailed):
        client.pull("measured", 99, 0)
    text = scrape(shared_store)
    described = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert described >= METRICS
    common = {"cluster": "DefaultCluster", "node_type": "broker"}
    labels = {"topic": "measured", "message_type": "normal", "is_system": "false", **common}
    assert value(text, "rocketmq_messages_in_total", **labels) == 3
    assert 3000 < value(text, "rocketmq_throughput_in_total", **labels) < 4000
    assert value(text, "rocketmq_message_size_bucket", le="4096.0" if 'le="4096.0"' in text else "4096", **labels) == 3
    given = {"topic": "measured", "consumer_group": "readers", **common}
    assert value(text, "rocketmq_messages_out_total", **given) == 3
    assert value(text, "rocketmq_rpc_latency_milliseconds_count", request_code="send", response_code="success") >= 3
    assert value(text, "rocketmq_rpc_latency_milliseconds_count", response_code="no_matched_logic_queue") >= 1
    assert value(text, "rocketmq_storage_size_bytes", storage_type="local", storage_medium="disk") > 0
    assert value(text, "rocketmq_topic_number") >= 1
    assert value(text, "rocketmq_broker_permission") == 6
    assert value(text, "tandem_store_writable") == 1
    assert value(text, "tandem_append_duration_seconds_count") >= 3


def start_fails(store: StoreProcess) -> str:
    """Starts a store that must not start; gives what it says."""
    assert store.launch().wait(timeout=60) == 1
    said = store.log.read_text().splitlines()[-1]
    assert said.startswith("tandemmq.store: ")
    assert "Traceback" not in store.log.read_text()
    return said


@pytest.mark.slow
def test_a_second_store_on_the_same_directory_leaves_it_alone(own_store: StoreProcess, tmp_path: Path) -> None:
    with own_store.client() as client:
        client.send("mine", b"x", queue_id=0)
        second = StoreProcess(own_store.directory)
        second.log = tmp_path / "second.log"
        assert "in use" in start_fails(second)
        assert client.send("mine", b"y", queue_id=0).queue_offset == 1
        assert len(client.pull("mine", 0, 0).records) == 2


@pytest.mark.slow
def test_files_of_another_size(own_store: StoreProcess) -> None:
    own_store.stop()
    own_store.settings["mapped_file_size_commit_log"] = 256 * 1024
    said = start_fails(own_store)
    assert "mappedFileSizeCommitLog" in said
    own_store.settings["mapped_file_size_commit_log"] = 128 * 1024
    own_store.start()


@pytest.mark.slow
def test_a_foreign_file(own_store: StoreProcess) -> None:
    own_store.stop()
    foreign = own_store.directory / "commitlog" / "notes.txt"
    foreign.write_text("mine")
    assert "notes.txt" in start_fails(own_store)
    assert foreign.read_text() == "mine"


@pytest.mark.slow
def test_an_unreadable_topic_table_is_not_an_empty_one(own_store: StoreProcess) -> None:
    with own_store.client() as client:
        client.send("first", b"")
        client.send("second", b"")
    own_store.stop()
    table = own_store.directory / "config" / "topics.json"
    backup = table.with_name("topics.json.bak")
    assert set(json.loads(table.read_bytes())["topicConfigTable"]) == {"first", "second"}
    whole = table.read_bytes()
    table.write_bytes(whole[: len(whole) // 2])
    own_store.start()
    assert any("back-up" in event["event"] and event["level"] == "error" for event in own_store.events())
    own_store.stop()
    backup.write_bytes(b"")
    said = start_fails(own_store)
    assert "topics.json" in said
    table.write_bytes(whole)
    own_store.start()


def test_an_unknown_setting_names_the_nearest(tmp_path: Path) -> None:
    said = start_fails(StoreProcess(tmp_path / "store", flush_disktype="SYNC_FLUSH"))
    assert "TANDEM_FLUSH_DISK_TYPE" in said


def test_a_bad_setting_says_what_is_allowed(tmp_path: Path) -> None:
    said = start_fails(StoreProcess(tmp_path / "store", flush_disk_type="SOMETIMES"))
    assert "ASYNC_FLUSH, SYNC_FLUSH" in said


@pytest.mark.slow
def test_nobody_answers(own_store: StoreProcess) -> None:
    own_store.stop()
    with own_store.client() as client, pytest.raises(StoreUnreachable):
        client.send("nobody", b"")


@pytest.mark.slow
def test_a_clean_stop_leaves_no_abort_file(own_store: StoreProcess) -> None:
    assert (own_store.directory / "abort").exists()
    assert own_store.stop() == 0
    assert not (own_store.directory / "abort").exists()
