"""A master and a slave that ask each other who they are; and services that must not start, or are not let in."""

from pathlib import Path
from typing import Any

import grpc
import pytest

from tandemmq.client import StoreClient
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tandemmq.replication.v1 import replication_pb2
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub
from tandemmq.store.v1 import replica_log_pb2, store_pb2
from tests.access_users import access_text, credentials
from tests.contract.store_process import StoreProcess
from tests.faults.pair import FOLLOWING, Node, Pair
from tests.faults.pair_process import until


def start(node: Node) -> None:
    for process in node.processes.values():
        process.launch()
    for process in node.processes.values():
        process.wait_answering()


def status(node: Node) -> replication_pb2.StatusResponse | None:
    """What a node's replicator says to a viewer."""
    with grpc.insecure_channel(node.address("replicator")) as channel:
        try:
            return ReplicationStub(channel).Status(
                replication_pb2.StatusRequest(), metadata=credentials("viewer"), timeout=30
            )
        except grpc.RpcError:
            return None


def follows(pair: Pair) -> bool:
    said = status(pair.slave)
    return said is not None and said.follower.state == FOLLOWING


def topics(node: Node) -> list[str]:
    """What a node's metasync has."""
    with grpc.insecure_channel(node.address("metasync")) as channel:
        stub = MetadataStub(channel)
        found = stub.ListTopics(metadata_pb2.ListTopicsRequest(), metadata=credentials("viewer"), timeout=30)
    return [topic.name for topic in found.topics]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_two_nodes_with_access_files_replicate_and_change_roles(tmp_path: Path) -> None:
    access, secret = tmp_path / "access.toml", tmp_path / "services.secret"
    access.write_text(access_text())
    secret.write_text("the secret\n")
    pair = Pair(tmp_path)
    for _, process in pair.processes():
        process.settings |= {"accessFile": access, "serviceUser": "services", "serviceSecretFile": secret}
    try:
        for node in pair.nodes:
            start(node)
        until(lambda: follows(pair), 60, "the slave follows")
        with StoreClient(pair.master.address("store"), user="producer", secret="the secret", timeout=30) as client:
            until(lambda: client.send("mine", b"x").status == store_pb2.PUT_OK, 60, "both nodes have it")
        until(lambda: "mine" in topics(pair.slave), 60, "the slave's metasync has the topic")
        promote = replication_pb2.PromoteRequest(role=replica_log_pb2.ASYNC_MASTER)
        with grpc.insecure_channel(pair.slave.address("replicator")) as channel:
            ReplicationStub(channel).Promote(promote, metadata=credentials("operates"), timeout=60)
        until(lambda: (said := status(pair.master)) is not None and said.identity.fenced_by_epoch > 0, 60, "fenced")
        with StoreClient(pair.slave.address("store"), user="producer", secret="the secret", timeout=30) as client:
            until(lambda: client.send("mine", b"y").status == store_pb2.PUT_OK, 60, "the new master takes messages")
    finally:
        pair.close()


@pytest.mark.slow
def test_a_service_without_credentials_says_so(tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    access.write_text(access_text())
    node = Node(tmp_path, 0, "ASYNC_MASTER")
    for process in node.processes.values():
        process.settings["accessFile"] = access
    try:
        node.store.launch()
        node.replicator.launch()

        def said() -> list[dict[str, Any]]:
            return [event for event in node.replicator.events() if "no credentials" in str(event)]

        until(said, 60, "the replicator is not let in, and says why")
        assert "serviceSecretFile" in str(said()[0])
    finally:
        node.close()


def test_a_store_does_not_start_with_a_broken_file(tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    access.write_text("[users.alice]\nroels = []\n")
    store = StoreProcess(tmp_path / "store", access_file=access)
    assert store.launch().wait(timeout=60) == 1
    said = store.log.read_text().splitlines()
    assert said[-1] == (
        "tandemmq.store: access.toml line 2: users.alice.roels: nothing is called so here (did you mean roles?)"
    )
    assert "Traceback" not in store.log.read_text()
