"""The cluster: what each service says, what is wrong in words, and answers that become poorer, not errors."""

import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import grpc
import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.metadata.v1 import metadata_pb2
from tests.admin_process import AdminProcess, lone_node, node_entry, refused, running
from tests.faults.pair import Node
from tests.faults.pair_process import until

pytestmark = pytest.mark.xdist_group("admin cluster")

SERVICES = ["store", "replicator", "metasync"]


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, AdminProcess]]:
    """A node whose services may be killed, and an admin that has seen all of it."""
    directory = tmp_path_factory.mktemp("mortal")
    node = lone_node(directory / "alpha")
    with running(node), AdminProcess(directory / "admin", {"one": node}) as admin:
        admin.put_topics(["orders"], queues=2)
        with node.client() as client:
            for _ in range(6):
                client.send("orders", b"body", queue_id=1)
        admin.stub.PutGroup(pb.PutGroupRequest(config=metadata_pb2.SubscriptionGroupConfig(name="readers")))
        admin.stub.ResetOffsets(pb.ResetOffsetsRequest(group="readers", topic="orders", earliest=True))
        yield node, admin


@pytest.fixture
def own(mortal: tuple[Node, AdminProcess]) -> tuple[Node, AdminProcess]:
    """The same, and all of it runs and is well."""
    node, admin = mortal
    node.start()
    until(lambda: not admin.node("one").problems, 60, lambda: str(admin.node("one")))
    readers = pb.GetGroupRequest(group="readers")
    until(lambda: not admin.stub.GetGroup(readers).problems, 60, lambda: str(admin.stub.GetGroup(readers)))
    return node, admin


def refusal(admin: AdminProcess) -> str:
    """Why no topic can be created: code and first words. For a second the service that is missed is named instead."""
    with pytest.raises(grpc.RpcError) as raised:
        admin.put_topics(["never"])
    call = cast(Any, raised.value)
    return f"{call.code().name}: {call.details().partition(' (')[0]}"


def counted(admin: AdminProcess) -> list[tuple[str, bool]]:
    """The brokers of the topic both, and whether its messages there are known."""
    listed = admin.stub.ListTopics(pb.ListTopicsRequest(match="both"))
    return [(one.broker, one.HasField("messages")) for one in listed.topics]


def test_a_node_that_is_well(own: tuple[Node, AdminProcess]) -> None:
    node, admin = own
    cluster = admin.cluster()
    (found,) = cluster.nodes
    assert cluster.at_ms > 0
    assert (found.name, found.broker_name, found.cluster_name, found.role) == ("one", "alpha", "faults", pb.MASTER)
    assert (found.HasField("broker_id"), found.broker_id, found.epoch) == (True, 0, 1)
    assert [(one.service, one.address) for one in found.services] == [(one, node.address(one)) for one in SERVICES]
    for one in found.services:
        assert (one.answers, one.serving, one.reason) == (True, True, "")
        assert one.description.version == cluster.version
        assert one.description.pid == node.processes[one.service].pid
        assert one.description.resident_bytes > 1 << 20
        assert not one.description.settings
    assert found.log.writable
    assert found.files.root == str(node.root)
    assert found.disk.directory == str(node.root)
    assert 0 < found.disk.free_bytes < found.disk.total_bytes
    assert len(found.metadata.tables) == 4
    assert list(found.problems) == []


def test_without_a_metasync(own: tuple[Node, AdminProcess]) -> None:
    node, admin = own
    assert admin.stub.GetGroup(pb.GetGroupRequest(group="readers")).groups[0].lag == 6
    node.metasync.kill()
    found = admin.node("one")
    assert (found.broker_name, found.role) == ("alpha", pb.MASTER)
    assert not found.HasField("metadata")
    assert found.problems[0].startswith(f"the metasync at {node.address('metasync')} does not answer: ")

    # What it said last is still there, and that it is old.
    until(lambda: admin.stub.GetGroup(pb.GetGroupRequest(group="readers")).problems, 60, "a problem is told")
    group = admin.stub.GetGroup(pb.GetGroupRequest(group="readers"))
    assert group.groups[0].lag == 6
    assert "topics and groups are as they were at" in group.problems[0]
    with refused("UNAVAILABLE", "the metasync of node one"):
        admin.put_topics(["more"])
    with refused("UNAVAILABLE", "the metasync of node one"):
        admin.stub.ResetOffsets(pb.ResetOffsetsRequest(group="readers", topic="orders", latest=True))


@pytest.mark.slow
def test_an_admin_that_has_never_seen_the_metasync(own: tuple[Node, AdminProcess], tmp_path: Path) -> None:
    node, _ = own
    node.metasync.kill()
    with AdminProcess(tmp_path / "other", {"one": node}) as admin:
        topics = admin.stub.ListTopics(pb.ListTopicsRequest(match="orders"), timeout=60)
        assert [(one.config.read_queues, one.messages, one.orphaned) for one in topics.topics] == [(2, 6, False)]
        assert "no metasync of alpha answers" in topics.problems[0]
        groups = admin.stub.ListGroups(pb.ListGroupsRequest(), timeout=60)
        assert (list(groups.groups), "no metasync of alpha" in groups.problems[0]) == ([], True)
        with refused("NOT_FOUND", "no metasync of alpha answers"):
            admin.stub.GetGroup(pb.GetGroupRequest(group="readers"), timeout=60)


@pytest.mark.slow
def test_without_a_store(own: tuple[Node, AdminProcess]) -> None:
    node, admin = own
    node.store.kill()
    until(lambda: not admin.node("one").services[0].answers, 60, "the store is missed")
    found = admin.node("one")
    assert found.broker_name == "alpha"
    assert not found.HasField("log")
    assert any(problem.startswith("the store at ") for problem in found.problems)
    topic = admin.stub.GetTopic(pb.GetTopicRequest(topic="orders"), timeout=60)
    assert not topic.topics[0].HasField("messages")
    assert topic.topics[0].config.read_queues == 2
    assert [(one.group, one.HasField("lag")) for one in topic.groups] == [("readers", False)]
    assert topic.problems[0].startswith("no store of alpha answers, so messages and lag are missing: one (")
    group = admin.stub.GetGroup(pb.GetGroupRequest(group="readers"), timeout=60)
    assert not group.groups[0].HasField("lag")
    assert not group.progress


@pytest.mark.slow
def test_nothing_answers(own: tuple[Node, AdminProcess], tmp_path: Path) -> None:
    node, admin = own
    node.kill()
    found = admin.node("one")
    assert (found.broker_name, found.role) == ("alpha", pb.NODE_ROLE_UNSPECIFIED)
    assert len(found.problems) == 3
    until(lambda: refusal(admin) == "FAILED_PRECONDITION: broker alpha has no master that answers", 60, "it is known")
    with AdminProcess(tmp_path / "other", {"one": node}) as other:
        assert other.node("one").broker_name == ""
        with refused("UNAVAILABLE", "no node answers"):
            other.stub.ListTopics(pb.ListTopicsRequest(), timeout=60)
        with refused("FAILED_PRECONDITION", "no node answers"):
            other.put_topics(["more"])


@pytest.mark.slow
def test_a_node_that_takes_connections_and_says_nothing(own: tuple[Node, AdminProcess], tmp_path: Path) -> None:
    node, _ = own
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        nodes = f"{node_entry('one', node)},mute={address};metasync={address};replicator={address}"
        with AdminProcess(tmp_path / "admin", {}, admin_nodes=nodes, admin_timeout=2_000) as admin:
            admin.put_topics(["beside-it"])
            assert "mute" not in str(admin.stub.ListTopics(pb.ListTopicsRequest(), timeout=60))
            # It costs the other nothing; on a busy machine that one may itself need longer than the mute one is given.
            until(lambda: not admin.node("one").problems, 60, lambda: str(admin.node("one")))
            mute_one = admin.node("mute")
            assert [service.answers for service in mute_one.services] == [False, False, False]
            assert f"the store at {address} does not answer: " in mute_one.problems[0]


def test_two_brokers(tmp_path: Path) -> None:
    first, second = lone_node(tmp_path / "a", "alpha"), lone_node(tmp_path / "b", "beta")
    with running(first, second), AdminProcess(tmp_path / "admin", {"a": first, "b": second}) as admin:
        assert [(one.name, one.broker_name) for one in admin.cluster().nodes] == [("a", "alpha"), ("b", "beta")]
        admin.put_topics(["both"], queues=1)
        only = pb.PutTopicRequest(config=metadata_pb2.TopicConfig(name="only"), broker="beta")
        assert [one.broker for one in admin.stub.PutTopic(only).topics] == ["beta"]
        listed = admin.stub.ListTopics(pb.ListTopicsRequest(match="*o*", kinds=[pb.NORMAL]))
        assert [(one.config.name, one.broker) for one in listed.topics] == [
            ("both", "alpha"), ("both", "beta"), ("only", "beta"),
        ]  # fmt: skip
        assert listed.total == 2
        page = admin.stub.ListTopics(pb.ListTopicsRequest(kinds=[pb.NORMAL], limit=1))
        assert ([one.broker for one in page.topics], page.next) == (["alpha", "beta"], "both")

        for node, count in ((first, 2), (second, 3)):
            with node.client() as client:
                for _ in range(count):
                    client.send("both", b"body")
        admin.stub.PutGroup(pb.PutGroupRequest(config=metadata_pb2.SubscriptionGroupConfig(name="readers")))
        moved = admin.stub.ResetOffsets(pb.ResetOffsetsRequest(group="readers", topic="both", earliest=True))
        assert [(move.broker, move.max_offset) for move in moved.moves] == [("alpha", 2), ("beta", 3)]
        details = admin.stub.GetTopic(pb.GetTopicRequest(topic="both"))
        assert [(one.group, one.lag) for one in details.groups] == [("readers", 5)]
        one = admin.stub.GetGroup(pb.GetGroupRequest(group="readers", broker="beta"))
        assert [(group.broker, group.lag) for group in one.groups] == [("beta", 3)]

        with refused("NOT_FOUND", "there is no topic only on alpha"):
            admin.stub.PutTopic(pb.PutTopicRequest(config=metadata_pb2.TopicConfig(name="only"), update_only=True))
        with refused("ALREADY_EXISTS", "topic only exists on beta"):
            admin.stub.PutTopic(pb.PutTopicRequest(config=metadata_pb2.TopicConfig(name="only"), create_only=True))
        assert [one.broker for one in admin.stub.GetTopic(pb.GetTopicRequest(topic="only")).topics] == ["beta"]

        second.kill()  # nothing is done anywhere while one of them has no master
        until(lambda: admin.node("b").role == pb.NODE_ROLE_UNSPECIFIED, 60, "the second is missed")
        until(
            lambda: refusal(admin) == "FAILED_PRECONDITION: broker beta has no master that answers", 60, "it is known"
        )
        assert not admin.stub.ListTopics(pb.ListTopicsRequest(match="never", broker="alpha")).topics
        until(lambda: counted(admin) == [("alpha", True), ("beta", False)], 60, "its queues' ends are forgotten")


@pytest.mark.slow
def test_metrics(own: tuple[Node, AdminProcess]) -> None:
    node, admin = own

    def page() -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{admin.metrics_port}/metrics", timeout=60) as answer:
            return str(answer.read().decode())

    def said(name: str, **labels: str) -> float | None:
        for line in page().splitlines():
            if line.startswith(name + "{") and all(f'{key}="{value}"' in line for key, value in labels.items()):
                return float(line.rpartition(" ")[2])
        return None

    pair = {"consumer_group": "readers", "topic": "orders", "is_retry": "false", "is_system": "false"}
    until(lambda: said("rocketmq_consumer_lag_messages", **pair, node_id="alpha", cluster="faults") == 6, 60, page)
    assert (said("rocketmq_consumer_lag_latency_milliseconds", **pair) or 0) > 0
    assert said("rocketmq_consumer_group_number", node_id="alpha") == 1
    until(lambda: all(said("tandem_admin_node_up", node="one", service=one) == 1 for one in SERVICES), 60, page)
    assert (said("tandem_admin_actions_total", method="PutTopic", outcome="OK") or 0) >= 1
    assert said("tandem_admin_lags_left_out") == 0
    node.store.kill()
    until(lambda: said("tandem_admin_node_up", node="one", service="store") == 0, 60, page)
    until(lambda: (said("tandem_admin_collect_failures_total") or 0) > 0, 60, page)
