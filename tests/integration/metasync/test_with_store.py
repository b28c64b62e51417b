"""Two whole nodes, store and metasync each: topics and roles go from one to the other as they do in service."""

import signal
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tandemmq.common.documents.java_json import loads
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.store.v1 import replica_log_pb2 as log_pb
from tandemmq.store.v1 import store_pb2
from tandemmq.store.v1.replica_log_pb2_grpc import ReplicaLogStub
from tests.contract.store_process import StoreProcess
from tests.integration.metasync.test_sync import commit, in_step, offset, put
from tests.metasync_process import MetasyncProcess, wait_until

pytestmark = pytest.mark.timeout(300)


class Node:
    """A store and its metasync, with ports that stay."""

    def __init__(self, directory: Path, role: str) -> None:
        self.store = StoreProcess(directory, broker_role=role, broker_id=int(role == "SLAVE"), internal_port=0)
        self.metasync = MetasyncProcess(directory, broker_role=role)

    def start(self) -> None:
        """metasync first, then the store with its address, then metasync again with the store's."""
        self.metasync.start()
        self.store.settings["metasync_address"] = self.metasync.address
        self.store.start()
        self.internal = next(e["internal"] for e in self.store.events() if e["event"] == "listening internally")
        self.metasync.settings["store_address"] = self.internal
        self.metasync.settings["store_service_address"] = self.store.address
        self.metasync.restart()

    def kill(self) -> None:
        for process in (self.store, self.metasync):
            if process.process is not None:
                process.stop(signal.SIGKILL)

    def store_topics(self) -> set[str]:
        """Topics that the store knows."""
        with self.store.stub() as stub:
            return {topic.topic for topic in stub.ListQueues(store_pb2.ListQueuesRequest()).topics}


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    a, b = Node(tmp_path / "a", "ASYNC_MASTER"), Node(tmp_path / "b", "SLAVE")
    try:
        a.start()
        b.metasync.settings["metasync_master_address"] = a.metasync.address
        b.start()
        yield a, b
    finally:
        a.kill()
        b.kill()


def test_topics_go_from_store_to_store(nodes: tuple[Node, Node]) -> None:
    a, b = nodes
    with a.store.client() as client:
        client.send("created-by-sending", b"x", queue_id=0)
    wait_until(lambda: a.metasync.names() == {"created-by-sending"}, "the store has told metasync")
    put(a.metasync, "created-by-call", read_queues=2, write_queues=2)
    in_step(a.metasync, b.metasync)
    for node in nodes:
        wait_until(
            lambda node=node: {"created-by-sending", "created-by-call"} <= node.store_topics(),  # type: ignore[misc]
            "the stores have both topics",
        )
    with a.metasync.stub() as stub:
        stub.DeleteTopics(pb.DeleteTopicsRequest(names=["created-by-call"]))
    for node in nodes:
        wait_until(lambda node=node: "created-by-call" not in node.store_topics(), "gone again")  # type: ignore[misc]


@pytest.mark.slow
def test_a_store_runs_on_without_metasync(nodes: tuple[Node, Node]) -> None:
    a, _ = nodes
    put(a.metasync, "before")
    wait_until(lambda: "before" in a.store_topics(), "followed")
    a.metasync.stop(signal.SIGKILL)
    with a.store.client() as client:
        client.send("before", b"x", queue_id=0)
        client.send("meanwhile", b"x", queue_id=0)
    a.store.restart(signal.SIGKILL)
    assert {"before", "meanwhile"} <= a.store_topics()
    a.metasync.start()
    wait_until(lambda: a.metasync.names() == {"before", "meanwhile"}, "told when it is back")
    assert set(loads(a.metasync.file("topics.json").read_bytes())["topicConfigTable"]) == {"before", "meanwhile"}


@pytest.mark.slow
def test_a_promotion_of_the_store_is_one_of_its_tables(nodes: tuple[Node, Node]) -> None:
    a, b = nodes
    with a.store.client() as client:
        client.send("T", b"x", queue_id=0)
    wait_until(lambda: a.metasync.names() == {"T"}, "told")
    commit(a.metasync, "T", "g", 1)
    in_step(a.metasync, b.metasync)
    wait_until(lambda: b.metasync.status().role == pb.SLAVE, "a slave before")
    with grpc.insecure_channel(b.internal) as channel:
        state = ReplicaLogStub(channel).Promote(log_pb.PromoteRequest(role=log_pb.ASYNC_MASTER))
    wait_until(lambda: b.metasync.status().role == pb.MASTER, "promoted")
    assert b.metasync.status().epoch == state.identity.epoch
    put(b.metasync, "U")
    assert b.metasync.table_status(pb.TOPICS).version.state_version == state.identity.epoch
    with grpc.insecure_channel(a.internal) as channel:
        ReplicaLogStub(channel).Fence(log_pb.FenceRequest(epoch=state.identity.epoch))
    wait_until(lambda: a.metasync.status().role == pb.FENCED, "fenced")
    wait_until(lambda: offset(b.metasync, "T", "g") == 0, "the message is not here: its offset is taken back")
