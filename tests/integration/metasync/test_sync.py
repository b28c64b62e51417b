"""A slave copies its master's tables: whole ones, nothing but what changed, and whatever becomes of the master."""

import json
import random
import signal
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tandemmq.common.documents.java_json import loads
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tests.contract.refusals import statuses
from tests.faults.proxy import Proxy
from tests.metasync_process import MetasyncProcess, wait_until

TABLES = (pb.TOPICS, pb.SUBSCRIPTION_GROUPS, pb.CONSUMER_OFFSETS, pb.DELAY_OFFSETS)


def put(process: MetasyncProcess, *names: str, **fields: Any) -> None:
    topics = [pb.TopicConfig(name=name, **fields) for name in names]
    with process.stub() as stub:
        stub.PutTopics(pb.PutTopicsRequest(topics=topics), wait_for_ready=True, timeout=60)


def delete(process: MetasyncProcess, *names: str) -> None:
    with process.stub() as stub:
        stub.DeleteTopics(pb.DeleteTopicsRequest(names=names))


def commit(process: MetasyncProcess, topic: str, group: str, offset: int, *, reset: bool = False) -> str:
    one = pb.OffsetCommit(topic=topic, group=group, queue_id=0, offset=offset)
    with process.stub() as stub:
        answer = stub.CommitOffsets(
            pb.CommitOffsetsRequest(commits=[one], reset=reset), wait_for_ready=True, timeout=60
        )
    return pb.CommitStatus.Name(answer.results[0].status)


def offset(process: MetasyncProcess, topic: str, group: str) -> int | None:
    with process.stub() as stub:
        found = stub.QueryOffsets(pb.QueryOffsetsRequest(queries=[pb.OffsetQuery(topic=topic, group=group)]))
    return found.offsets[0].offsets[0] if found.offsets else None


def in_step(master: MetasyncProcess, slave: MetasyncProcess) -> None:
    """Waits until the tables are equal, entry for entry."""

    def equal() -> bool:
        return all(master.whole(table) == slave.whole(table) for table in TABLES)

    wait_until(equal, "slave and master have the same tables")


def a_cycle_later(slave: MetasyncProcess) -> None:
    """Waits until every table was found equal, or made so, after now."""
    now = time.monotonic()

    def all_since() -> bool:
        ages = [slave.table_status(table).sync_age_seconds for table in TABLES]
        return all(0 <= age < time.monotonic() - now for age in ages)

    wait_until(all_since, "a cycle")


def fetched(process: MetasyncProcess) -> dict[str, float]:
    """How often each table was asked for."""
    with urllib.request.urlopen(f"http://127.0.0.1:{process.metrics_port}/metrics") as answer:
        lines = [line for line in answer.read().decode().splitlines() if "tandem_metadata_tables_sent_total{" in line]
    return {line.partition('table="')[2].partition('"')[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_everything_is_copied_and_deleted_entries_go(master: MetasyncProcess, slave: MetasyncProcess) -> None:
    put(master, "a", "b", attributes={"message.type": "FIFO"}, other_json='{"later":1}')
    commit(master, "a", "g", 5)
    commit(master, "b", "g", 6)
    with master.stub() as stub:
        stub.PutDelayOffsets(pb.PutDelayOffsetsRequest(offsets=[pb.DelayOffset(level=3, offset=9)]))
    in_step(master, slave)
    delete(master, "a")
    in_step(master, slave)
    assert slave.names() == {"b"}
    assert offset(slave, "a", "g") is None
    with master.stub() as stub:
        stub.DeleteGroups(pb.DeleteGroupsRequest(names=["g"]))
    in_step(master, slave)
    assert slave.names(pb.SUBSCRIPTION_GROUPS) == set()
    documents = [loads(process.file("topics.json").read_bytes()) for process in (master, slave)]
    assert documents[0] == documents[1]


@pytest.mark.slow
def test_9777_unchanged_tables_are_not_copied_again(master: MetasyncProcess, slave: MetasyncProcess) -> None:
    """Java's slave bumps its own version, and takes the whole table in every cycle; offsets it takes in any case."""
    put(master, "a")
    commit(master, "a", "g", 5)
    in_step(master, slave)
    a_cycle_later(slave)
    versions = [slave.table_status(table).version for table in TABLES]
    before = [path.stat().st_mtime_ns for path in sorted((slave.directory / "config").glob("*.json"))]
    asked = fetched(master)
    for _ in range(5):
        a_cycle_later(slave)
    assert fetched(master) == asked
    assert [slave.table_status(table).version for table in TABLES] == versions
    assert [path.stat().st_mtime_ns for path in sorted((slave.directory / "config").glob("*.json"))] == before


def test_local_system_topics_stay(master: MetasyncProcess, tmp_path: Path) -> None:
    config = tmp_path / "slave" / "config"
    config.mkdir(parents=True)
    names = ["SELF_TEST_TOPIC", "node-a", "DefaultCluster", "rmq_sys_SYNC_BROKER_MEMBER_node-a", "mine"]
    (config / "topics.json").write_text(json.dumps({"topicConfigTable": {name: {"perm": 6} for name in names}}))
    put(master, "theirs")
    settings = {"broker_role": "SLAVE", "metasync_master_address": master.address, "broker_name": "node-a"}
    with MetasyncProcess(tmp_path / "slave", **settings) as slave:
        wait_until(lambda: "theirs" in slave.names(), "copied")
        assert slave.names() == {"theirs", *names[:4]}


@pytest.mark.slow
def test_the_master_is_away_and_comes_back(master: MetasyncProcess, slave: MetasyncProcess) -> None:
    put(master, "a")
    in_step(master, slave)
    master.stop(signal.SIGKILL)
    wait_until(lambda: "UNAVAILABLE" in slave.table_status(pb.TOPICS).problem, "the problem is told")
    assert slave.names() == {"a"}
    slave.restart()
    assert slave.names() == {"a"}
    master.start()
    put(master, "b")
    in_step(master, slave)
    wait_until(lambda: not slave.table_status(pb.TOPICS).problem, "it is over")


@pytest.mark.slow
def test_1094_7790_commits_on_the_slave_reach_the_master_that_comes_back(
    master: MetasyncProcess, slave: MetasyncProcess
) -> None:
    put(master, "a")
    commit(master, "a", "g", 7)
    in_step(master, slave)
    master.stop()
    assert commit(slave, "a", "g", 99) == "COMMITTED"
    assert commit(slave, "a", "g", 50) == "KEPT_GREATER"
    assert commit(slave, "a", "unknown", 1) == "UNKNOWN_GROUP"
    wait_until(lambda: not slave.table_status(pb.CONSUMER_OFFSETS).unsaved, "written")
    slave.restart(signal.SIGKILL)
    assert slave.table_status(pb.CONSUMER_OFFSETS).pending == 1
    master.start()
    wait_until(lambda: offset(master, "a", "g") == 99, "handed over")
    in_step(master, slave)
    assert offset(slave, "a", "g") == 99
    wait_until(lambda: slave.table_status(pb.CONSUMER_OFFSETS).pending == 0, "the slave knows it")
    commit(master, "a", "g", 3, reset=True)
    in_step(master, slave)
    assert offset(slave, "a", "g") == 3, "a reset is followed backwards"


@pytest.mark.slow
def test_1440_a_master_that_lost_its_files_does_not_empty_its_slave(
    master: MetasyncProcess, slave: MetasyncProcess
) -> None:
    put(master, "a", "b")
    commit(master, "a", "g", 7)
    in_step(master, slave)
    master.stop()
    for path in (master.directory / "config").glob("*.json*"):
        path.unlink()
    master.start()
    wait_until(lambda: "older" in slave.table_status(pb.TOPICS).problem, "refused, and told")
    wait_until(lambda: "older" in slave.table_status(pb.CONSUMER_OFFSETS).problem, "its offsets too")
    assert slave.names() == {"a", "b"}
    assert offset(slave, "a", "g") == 7


def test_one_table_that_fails_stops_no_other(master: MetasyncProcess, slave: MetasyncProcess) -> None:
    blocked = slave.file("topics.json.tmp")
    blocked.mkdir(parents=True)  # nobody can write a file of this name
    put(master, "a")
    commit(master, "a", "g", 5)
    wait_until(lambda: offset(slave, "a", "g") == 5, "offsets are copied")
    wait_until(lambda: slave.names(pb.SUBSCRIPTION_GROUPS) == {"g"}, "groups are copied")
    wait_until(lambda: "topics.json" in slave.table_status(pb.TOPICS).problem, "the failure is told")
    assert slave.names() == set(), "what is not durable does not count"
    assert slave.table_status(pb.TOPICS).version.counter == 0
    blocked.rmdir()
    in_step(master, slave)
    wait_until(lambda: not slave.table_status(pb.TOPICS).problem, "it is over")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_half_answers_leave_the_table_as_it_is(master: MetasyncProcess, tmp_path: Path) -> None:
    """The stream is cut at many places, stalls, and is reset: the slave has the old table or the new one."""
    first = {f"first-{at}" for at in range(3_000)}
    second = {f"second-{at}" for at in range(9_000)}
    put(master, *sorted(first))
    with Proxy(master.address) as proxy:
        settings = {"broker_role": "SLAVE", "metasync_master_address": proxy.address, "metasync_timeout": 2_000}
        with MetasyncProcess(tmp_path / "slave", **settings) as slave:
            wait_until(lambda: slave.names() == first, "copied once")
            with master.stub() as stub:
                proxy.down.stalled = True
                stub.DeleteTopics(pb.DeleteTopicsRequest(names=sorted(first)))
                put(master, *sorted(second))
            wait_until(lambda: bool(slave.table_status(pb.TOPICS).problem), "a silent master is noticed")
            proxy.refuse = True
            proxy.reset_after(0)
            proxy.down.stalled = False
            for cut in (500, 5_000, 60_000, 150_000, 300_000, 400_000):
                failures = slave.status()
                proxy.refuse = False
                proxy.reset_after(cut)
                wait_until(lambda before=failures: slave.status() != before, "it tried")  # type: ignore[misc]
                assert slave.names() in (first, second)
            proxy.reset_after(1 << 40)
            wait_until(lambda: slave.names() == second, "copied when the line is good")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_9616_many_entries(master: MetasyncProcess, slave: MetasyncProcess) -> None:
    """More than fits into one gRPC message of the default size (4 MiB)."""
    for at in range(0, 30_000, 10_000):
        put(master, *(f"{'t' * 110}-{one}" for one in range(at, at + 10_000)), attributes={"message.type": "NORMAL"})
    assert sum(page.ByteSize() for page in master.whole(pb.TOPICS)) > 4 << 20
    wait_until(lambda: slave.table_status(pb.TOPICS).entries == 30_000, "copied")
    assert slave.names() == master.names()


def test_health_says_that_a_table_cannot_be_written(master: MetasyncProcess) -> None:
    def health() -> int:
        with grpc.insecure_channel(master.address) as channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)
            return int(stub.Check(health_pb2.HealthCheckRequest(service="tandemmq.metadata.v1.Metadata")).status)

    put(master, "a")
    blocked = master.file("topics.json.tmp")
    blocked.mkdir()
    with pytest.raises(grpc.RpcError) as raised:
        put(master, "b")
    assert statuses(raised.value) == ("UNAVAILABLE", "SERVICE_NOT_AVAILABLE")
    assert master.names() == {"a"}, "what was not written did not happen"
    wait_until(lambda: health() == health_pb2.HealthCheckResponse.NOT_SERVING, "told")
    blocked.rmdir()
    wait_until(lambda: health() == health_pb2.HealthCheckResponse.SERVING, "serving again")
    put(master, "b")
    assert master.names() == {"a", "b"}


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_9984_9206_a_slave_killed_at_any_moment_has_a_whole_table(
    master: MetasyncProcess, slave: MetasyncProcess
) -> None:
    """Java's slave deletes its topics one by one and adds them again: killed in between, they are gone."""
    rng = random.Random(4)
    tables: list[set[str]] = [set()]
    for life in range(12):
        names = {f"life-{life}-{at}" for at in range(rng.randrange(1, 300))}
        old = master.names()
        put(master, *sorted(names))
        if old:
            delete(master, *sorted(old))
        tables += [old | names, names]
        threading.Event().wait(rng.random() * 0.25)
        slave.stop(signal.SIGKILL)
        document = slave.file("topics.json")
        found = set(loads(document.read_bytes())["topicConfigTable"]) if document.exists() else set()
        assert found in tables
        slave.start()
        assert slave.names() in tables
    in_step(master, slave)


class Writer(threading.Thread):
    """Puts topics until the service is killed."""

    def __init__(self, process: MetasyncProcess, life: int) -> None:
        super().__init__(daemon=True)
        self.process = process
        self.life = life
        self.tried: list[str] = []
        self.acknowledged: set[str] = set()

    def run(self) -> None:
        with self.process.stub() as stub:
            while True:
                self.tried.append(f"life-{self.life}-{len(self.tried)}")
                request = pb.PutTopicsRequest(topics=[pb.TopicConfig(name=self.tried[-1])])
                try:
                    stub.PutTopics(request)
                except grpc.RpcError:
                    return
                self.acknowledged.add(self.tried[-1])


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_master_killed_at_any_moment_has_what_it_acknowledged(master: MetasyncProcess) -> None:
    rng = random.Random(5)
    expected: set[str] = set()
    for life in range(12):
        writer = Writer(master, life)
        writer.start()
        wait_until(lambda writer=writer: len(writer.acknowledged) > 3, "writing")  # type: ignore[misc]
        threading.Event().wait(rng.random() * 0.2)
        master.stop(signal.SIGKILL)
        writer.join()
        master.start()
        names = master.names()
        expected |= writer.acknowledged
        assert expected <= names
        assert names - expected <= {writer.tried[-1]}, "the one in flight, and no other"
        expected = names
