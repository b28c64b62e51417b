"""Whole tables, watches, status, roles; health, reflection, metrics and start-up failures."""

import json
import urllib.request
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tests.contract.refusals import statuses
from tests.metasync_process import MetasyncProcess, wait_until

SERVICE = "tandemmq.metadata.v1.Metadata"


def put(stub: MetadataStub, *names: str) -> pb.PutTopicsResponse:
    return stub.PutTopics(pb.PutTopicsRequest(topics=[pb.TopicConfig(name=name) for name in names]))


def next_transfer(watch: Any) -> list[pb.TablePage]:
    pages = []
    for page in watch:
        pages.append(page)
        if page.last:
            return pages
    raise AssertionError("the watch ended")


def test_every_table_can_be_had_whole(service: MetasyncProcess, stub: MetadataStub) -> None:
    put(stub, "T")
    commit = pb.OffsetCommit(topic="T", group="g", queue_id=1, offset=2)
    stub.CommitOffsets(pb.CommitOffsetsRequest(commits=[commit]))
    stub.PutDelayOffsets(pb.PutDelayOffsetsRequest(offsets=[pb.DelayOffset(level=2, offset=3)]))
    for table in (pb.TOPICS, pb.SUBSCRIPTION_GROUPS, pb.CONSUMER_OFFSETS, pb.DELAY_OFFSETS):
        pages = service.whole(table)
        last = pages[-1]
        assert (last.table, last.whole, last.last) == (table, True, True)
        assert last.version == service.table_status(table).version
        entries = [*last.topics, *last.groups, *last.consumer_offsets, *last.delay_offsets]
        assert len(entries) == last.total > 0


def test_a_watch_begins_with_whole_tables_and_goes_on_with_changes(stub: MetadataStub) -> None:
    put(stub, "before")
    watch = stub.Watch(pb.WatchRequest(tables=[pb.SUBSCRIPTION_GROUPS, pb.TOPICS]))
    groups, topics = next_transfer(watch), next_transfer(watch)
    assert (groups[0].table, topics[0].table) == (pb.SUBSCRIPTION_GROUPS, pb.TOPICS)
    assert "before" in [topic.name for page in topics for topic in page.topics]
    version = put(stub, "during").version
    (change,) = next_transfer(watch)
    assert not change.whole
    assert [topic.name for topic in change.topics] == ["during"]
    assert (change.version, change.total) == (version, 1)
    stub.DeleteTopics(pb.DeleteTopicsRequest(names=["during"]))
    (change,) = next_transfer(watch)
    assert list(change.deleted) == ["during"]
    watch.cancel()


def test_many_watchers_and_those_that_leave(service: MetasyncProcess, stub: MetadataStub) -> None:
    watches = [stub.Watch(pb.WatchRequest(tables=[pb.TOPICS])) for _ in range(20)]
    for watch in watches:
        next_transfer(watch)
    for watch in watches[::2]:
        watch.cancel()
    put(stub, "for-all")
    for watch in watches[1::2]:
        assert [topic.name for topic in next_transfer(watch)[-1].topics] == ["for-all"]
        watch.cancel()
    wait_until(lambda: value(scrape(service), "tandem_metadata_watchers") == 0, "all watchers gone", 60)


@pytest.mark.parametrize(
    "tables", [[], [pb.TABLE_UNSPECIFIED], [9], [pb.TOPICS, pb.TOPICS]], ids=["none", "zero", "nine", "twice"]
)
def test_watches_that_make_no_sense(stub: MetadataStub, tables: list[Any]) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        next(stub.Watch(pb.WatchRequest(tables=tables)))
    assert statuses(raised.value)[0] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("table", [0, 5, -1])
def test_tables_that_do_not_exist(stub: MetadataStub, table: Any) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        list(stub.GetTable(pb.GetTableRequest(table=table)))
    assert statuses(raised.value)[0] == "INVALID_ARGUMENT"


def test_a_watch_ends_when_the_service_stops(own: MetasyncProcess) -> None:
    with own.stub() as stub:
        watch = stub.Watch(pb.WatchRequest(tables=[pb.TOPICS]))
        next_transfer(watch)
        assert own.stop() == 0
        with pytest.raises(grpc.RpcError) as raised:
            next(watch)
        assert statuses(raised.value)[0] == "UNAVAILABLE"


def test_a_slave_takes_no_changes_and_names_its_master(transport: str, tmp_path: Path) -> None:
    address = "127.0.0.1:1"
    settings = {"broker_role": "SLAVE", "metasync_master_address": address, "grpc_transport": transport}
    with MetasyncProcess(tmp_path / "slave", **settings) as slave, slave.stub() as stub:
        calls: list[tuple[Any, Any]] = [
            (stub.PutTopics, pb.PutTopicsRequest(topics=[pb.TopicConfig(name="a")])),
            (stub.DeleteTopics, pb.DeleteTopicsRequest(names=["a"])),
            (stub.PutGroups, pb.PutGroupsRequest(groups=[pb.SubscriptionGroupConfig(name="a")])),
            (stub.DeleteGroups, pb.DeleteGroupsRequest(names=["a"])),
            (stub.DeleteOffsets, pb.DeleteOffsetsRequest(group="a")),
            (stub.PutDelayOffsets, pb.PutDelayOffsetsRequest(offsets=[pb.DelayOffset(level=1)])),
            (
                stub.CommitOffsets,
                pb.CommitOffsetsRequest(commits=[pb.OffsetCommit(topic="a", group="a")], reset=True),
            ),
        ]
        for call, request in calls:
            with pytest.raises(grpc.RpcError) as raised:
                call(request)
            assert statuses(raised.value) == ("FAILED_PRECONDITION", "SERVICE_NOT_AVAILABLE")
            assert address in (cast(Any, raised.value).details() or "")
        status = slave.status()
        assert (status.role, status.master_address) == (pb.SLAVE, address)
        wait_until(lambda: bool(slave.table_status(pb.TOPICS).problem), "the problem is told", 60)
        assert slave.table_status(pb.TOPICS).sync_age_seconds == -1


def test_status(service: MetasyncProcess) -> None:
    status = service.status()
    assert (status.role, status.epoch, status.role_source, status.master_address) == (pb.MASTER, 0, "settings", "")
    assert [one.table for one in status.tables] == [1, 2, 3, 4]
    assert status.cluster_name == "DefaultCluster"


def test_health_and_reflection(service: MetasyncProcess) -> None:
    with grpc.insecure_channel(service.address) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        answer = health.Check(health_pb2.HealthCheckRequest(service=SERVICE))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
        database = ProtoReflectionDescriptorDatabase(channel)
        described = database.FindFileContainingSymbol(SERVICE)
        assert {method.name for one in described.service for method in one.method} >= {"GetTable", "Watch", "Status"}


def scrape(service: MetasyncProcess) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{service.metrics_port}/metrics") as answer:
        return str(answer.read(), "utf-8")


def value(text: str, name: str, **labels: str) -> float:
    for line in text.splitlines():
        if line.startswith(f"{name}{{") and all(f'{label}="{wanted}"' in line for label, wanted in labels.items()):
            return float(line.rpartition(" ")[2])
    raise AssertionError(f"{name} {labels} is not there")


def test_metrics(service: MetasyncProcess, stub: MetadataStub) -> None:
    put(stub, "measured")
    stub.CommitOffsets(pb.CommitOffsetsRequest(commits=[pb.OffsetCommit(topic="nowhere", group="g")]))
    text = scrape(service)
    assert value(text, "tandem_metadata_entries", table="topics") >= 1
    assert value(text, "tandem_metadata_version", table="topics") >= 1
    assert value(text, "tandem_metadata_commits_total", status="unknown_topic") >= 1
    assert value(text, "tandem_metadata_master") == 1
    for name in ("sync_age_seconds", "sync_failures_total", "syncs_total", "pending_commits", "write_failures_total"):
        assert f"tandem_metadata_{name}{{" in text
    assert "process_resident_memory_bytes" in text


def start_fails(service: MetasyncProcess) -> str:
    assert service.launch().wait(timeout=60) == 1
    text = service.log.read_text()
    assert "Traceback" not in text
    said = text.splitlines()[-1]
    assert said.startswith("tandemmq.metasync: ")
    return said


def test_a_second_service_on_the_same_directory_is_refused(own: MetasyncProcess, tmp_path: Path) -> None:
    second = MetasyncProcess(own.directory)
    second.log = tmp_path / "second.log"
    assert "in use" in start_fails(second)


@pytest.mark.slow
def test_3401_6096_an_unreadable_table_is_not_an_empty_one(own: MetasyncProcess) -> None:
    with own.stub() as stub:
        put(stub, "first")
        put(stub, "second")
    own.stop()
    table, backup = own.file("topics.json"), own.file("topics.json.bak")
    whole = table.read_bytes()
    assert set(json.loads(whole)["topicConfigTable"]) == {"first", "second"}
    table.write_bytes(whole[: len(whole) // 2])
    own.start()
    assert own.said("table read from its back-up: the last change may be lost")
    assert own.names() == {"first"}
    own.stop()
    backup.write_bytes(b"")
    table.write_bytes(b"")
    assert "topics.json.bak" in start_fails(own)
    assert table.read_bytes() == b""
    table.write_bytes(whole)
    own.start()
    assert own.names() == {"first", "second"}


@pytest.mark.slow
def test_settings_that_make_no_sense(tmp_path: Path) -> None:
    assert "host:port" in start_fails(MetasyncProcess(tmp_path / "a", metasync_master_address="nowhere"))
    assert "SLAVE" in start_fails(MetasyncProcess(tmp_path / "b", broker_role="KING"))
    assert "TANDEM_METASYNC_INTERVAL" in start_fails(MetasyncProcess(tmp_path / "c", metasync_intervall="1"))
