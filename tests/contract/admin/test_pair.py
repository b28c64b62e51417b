"""A master with its slave: how replication is told, and where changes go when the master dies."""

import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tandemmq.admin.cluster.brokers import KEPT_SECONDS
from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tandemmq.replication.v1 import replication_pb2
from tandemmq.store.v1 import replica_log_pb2
from tests.admin_process import AdminProcess
from tests.faults.pair import Pair
from tests.faults.pair_process import until

pytestmark = pytest.mark.slow


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Pair, AdminProcess]]:
    """A pair that is level, and its admin."""
    with Pair(tmp_path) as pair, AdminProcess(tmp_path / "admin", {"left": pair.master, "right": pair.slave}) as admin:
        yield pair, admin


def test_from_one_master_to_the_other(both: tuple[Pair, AdminProcess]) -> None:
    pair, admin = both
    until(lambda: not any(node.problems for node in admin.cluster().nodes), 60, lambda: str(admin.cluster()))
    master, slave = admin.cluster().nodes
    assert (master.role, master.broker_id, slave.role, slave.broker_id) == (pb.MASTER, 0, pb.SLAVE, 1)
    assert [one.in_sync for one in master.replication.replicas] == [True]
    assert slave.replication.follower.state == replication_pb2.FOLLOWING
    admin.put_topics(["orders"], queues=1)
    with pair.master.client() as client:
        until(lambda: any(one.topic == "orders" for one in client.queues().topics), 60, "the store knows the topic")
        client.send("orders", b"body")
    assert [one.messages for one in admin.stub.GetTopic(pb.GetTopicRequest(topic="orders")).topics] == [1]
    until(lambda: "orders" in _topics(pair, slave=True), 60, "the slave has the topic")

    # The slave is away: the master waits for it, and says so.
    pair.slave.kill()
    until(lambda: any("no slave is in sync" in one for one in admin.node("left").problems), 60, "it is missed")
    assert len(admin.node("right").problems) == 3
    assert admin.node("right").broker_name == "pair"
    pair.heal()
    until(lambda: not admin.node("left").problems, 60, lambda: str(admin.node("left")))

    # The master dies. What is read comes from the slave; nothing can be changed.
    pair.master.kill()
    orders = pb.GetTopicRequest(topic="orders")
    until(lambda: admin.node("left").role != pb.MASTER, 60, lambda: str(admin.node("left")))
    time.sleep(2 * KEPT_SECONDS)  # until those who read know it too: from then on nobody is asked in its place first
    told = "right was asked"
    until(lambda: any(told in one for one in admin.stub.GetTopic(orders).problems), 60, "the master is missed")
    assert [one.messages for one in admin.stub.GetTopic(orders).topics] == [1]
    until(lambda: any("does not reach its master" in one for one in admin.node("right").problems), 60, "told")

    # The slave is promoted: changes go there, and the old master comes back fenced or as a second one.
    _promote(pair)
    until(lambda: admin.node("right").role == pb.MASTER, 60, lambda: str(admin.node("right")))
    assert admin.node("right").epoch == 2
    until(lambda: _can_put(admin, "later"), 60, "metasync has seen the promotion")
    assert "later" in _topics(pair, slave=True)
    pair.master.start()
    until(lambda: _complains(admin, "left"), 60, lambda: str(admin.node("left")))
    assert _can_put(admin, "last"), "the greater epoch is the master"
    assert "last" in _topics(pair, slave=True)
    assert "last" not in _topics(pair, slave=False)


def _complains(admin: AdminProcess, name: str) -> bool:
    return any("newer master" in one or "another master" in one for one in admin.node(name).problems)


def _can_put(admin: AdminProcess, topic: str) -> bool:
    try:
        admin.put_topics([topic], queues=1)
    except grpc.RpcError:
        return False
    return True


def _topics(pair: Pair, *, slave: bool) -> set[str]:
    node = pair.slave if slave else pair.master
    with grpc.insecure_channel(node.address("metasync")) as channel:
        listed = MetadataStub(channel).ListTopics(metadata_pb2.ListTopicsRequest(), timeout=60)
    return {topic.name for topic in listed.topics}


def _promote(pair: Pair) -> None:
    request = replication_pb2.PromoteRequest(role=replica_log_pb2.ASYNC_MASTER, old_master_is_gone=True)
    pair.slave.replication().Promote(request, timeout=60)
