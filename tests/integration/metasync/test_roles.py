"""The role comes from the store: a promotion and a demotion of the store are ones of its tables."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.store.v1 import replica_log_pb2, replica_log_pb2_grpc
from tests.contract.refusals import statuses
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import free_port
from tests.integration.metasync.test_sync import commit, in_step, offset, put
from tests.metasync_process import MetasyncProcess, wait_until

ReplicaLogServicer: Any = replica_log_pb2_grpc.ReplicaLogServicer


class Role(ReplicaLogServicer):  # type: ignore[misc]
    """The one call of a store's internal port that metasync makes."""

    def __init__(self) -> None:
        self.identity = replica_log_pb2.LogIdentity(role=replica_log_pb2.ASYNC_MASTER)
        self.address = f"127.0.0.1:{free_port()}"  # it comes back there, and is dialled meanwhile
        self.server: Any = None

    def GetRole(self, request: Any, context: Any) -> replica_log_pb2.RoleState:
        return replica_log_pb2.RoleState(identity=self.identity)

    def become(self, role: "replica_log_pb2.BrokerRole.ValueType", epoch: int, fenced_by: int = 0) -> None:
        self.identity = replica_log_pb2.LogIdentity(role=role, epoch=epoch, fenced_by_epoch=fenced_by)

    def start(self) -> None:
        self.server = grpc.server(ThreadPoolExecutor(2))
        replica_log_pb2_grpc.add_ReplicaLogServicer_to_server(self, self.server)
        self.server.add_insecure_port(self.address)
        self.server.start()

    def stop(self) -> None:
        self.server.stop(None).wait()


@pytest.fixture
def roles() -> Iterator[tuple[Role, Role]]:
    both = Role(), Role()
    for one in both:
        one.start()
    yield both
    for one in both:
        one.stop()


@pytest.fixture
def pair(roles: tuple[Role, Role], tmp_path: Path) -> Iterator[tuple[MetasyncProcess, MetasyncProcess]]:
    """a is the master of epoch 1, b its slave; each knows the other as its master."""
    roles[0].become(replica_log_pb2.ASYNC_MASTER, 1)
    roles[1].become(replica_log_pb2.SLAVE, 1)
    a = MetasyncProcess(tmp_path / "a", store_address=roles[0].address)
    with a, MetasyncProcess(tmp_path / "b", store_address=roles[1].address, metasync_master_address=a.address) as b:
        a.settings["metasync_master_address"] = b.address
        a.restart()
        yield a, b


def role_of(process: MetasyncProcess) -> tuple[str, int, str]:
    status = process.status()
    return pb.Role.Name(status.role), status.epoch, status.role_source


def refuses_changes(process: MetasyncProcess) -> bool:
    with process.stub() as stub:
        try:
            stub.PutTopics(pb.PutTopicsRequest(topics=[pb.TopicConfig(name="refused")]))
        except grpc.RpcError as error:
            return statuses(error)[0] == "FAILED_PRECONDITION"
    return False


def named_master(process: MetasyncProcess) -> str:
    """Whom the refusal of a change names."""
    with process.stub() as stub, pytest.raises(grpc.RpcError, match="Make the change on the master") as refused:
        stub.PutTopics(pb.PutTopicsRequest(topics=[pb.TopicConfig(name="refused")]))
    return next(str(one.value) for one in refused.value.trailing_metadata() if one.key == "tandem-master")


@pytest.mark.slow
def test_promotion_and_demotion(roles: tuple[Role, Role], pair: tuple[MetasyncProcess, MetasyncProcess]) -> None:
    a, b = pair
    wait_until(lambda: role_of(a) == ("MASTER", 1, "store"), "the store is a master")
    wait_until(lambda: role_of(b) == ("SLAVE", 1, "store"), "whatever brokerRole says")
    put(a, "first")
    commit(a, "first", "g", 10)
    in_step(a, b)
    assert refuses_changes(b)
    assert named_master(b) == a.address

    roles[0].become(replica_log_pb2.ASYNC_MASTER, 1, fenced_by=2)
    wait_until(lambda: role_of(a)[0] == "FENCED", "fenced")
    assert refuses_changes(a)
    assert named_master(a) == b.address
    roles[1].become(replica_log_pb2.SYNC_MASTER, 2)
    wait_until(lambda: role_of(b) == ("MASTER", 2, "store"), "promoted")
    put(b, "second")
    assert b.table_status(pb.TOPICS).version.state_version == 2
    assert b.table_status(pb.CONSUMER_OFFSETS).version.state_version == 2

    roles[0].become(replica_log_pb2.SLAVE, 2)
    in_step(b, a)
    assert a.names() == {"first", "second"}
    commit(b, "first", "g", 3, reset=True)
    in_step(b, a)
    assert offset(a, "first", "g") == 3


@pytest.mark.slow
def test_a_promotion_copies_what_the_replaced_master_has(
    roles: tuple[Role, Role], pair: tuple[MetasyncProcess, MetasyncProcess]
) -> None:
    """Topics and offsets of the last seconds are not lost when a master is replaced on purpose."""
    a, b = pair
    b.settings["metasync_interval"] = 600_000
    b.restart()
    in_step(a, b)
    put(a, "late")
    commit(a, "late", "g", 5)
    roles[0].become(replica_log_pb2.ASYNC_MASTER, 1, fenced_by=2)
    wait_until(lambda: role_of(a)[0] == "FENCED", "fenced")
    roles[1].become(replica_log_pb2.ASYNC_MASTER, 2)
    wait_until(lambda: role_of(b)[0] == "MASTER", "promoted")
    assert b.names() == {"late"}
    assert offset(b, "late", "g") == 5


@pytest.mark.slow
def test_1440_an_old_master_s_tables_are_not_taken(
    roles: tuple[Role, Role], pair: tuple[MetasyncProcess, MetasyncProcess]
) -> None:
    """The slave has followed epoch 2; the old master comes back in epoch 1, with a greater counter."""
    a, b = pair
    put(a, "first")
    in_step(a, b)
    roles[1].become(replica_log_pb2.ASYNC_MASTER, 2)
    wait_until(lambda: role_of(b)[0] == "MASTER", "promoted")
    put(b, "second")
    for at in range(5):
        put(a, f"old-{at}")
    roles[1].become(replica_log_pb2.SLAVE, 2)
    wait_until(lambda: "older" in b.table_status(pb.TOPICS).problem, "refused, and told")
    assert b.names() == {"first", "second"}


@pytest.mark.slow
def test_the_last_known_role_counts_while_the_store_is_away(
    roles: tuple[Role, Role], pair: tuple[MetasyncProcess, MetasyncProcess]
) -> None:
    _, b = pair
    roles[1].stop()
    wait_until(lambda: role_of(b) == ("SLAVE", 1, "store, before"), "noticed")
    b.restart()
    assert role_of(b) == ("SLAVE", 1, "store, before"), "brokerRole says ASYNC_MASTER"
    roles[1].become(replica_log_pb2.ASYNC_MASTER, 2)
    roles[1].start()
    wait_until(lambda: role_of(b) == ("MASTER", 2, "store"), "promoted when it is back")


@pytest.mark.slow
def test_7077_offsets_beyond_the_store_s_queues_are_taken_back(tmp_path: Path) -> None:
    """A slave's offsets may be ahead of its log. New messages get those queue offsets again: they must be consumed."""
    with StoreProcess(tmp_path / "store") as store, store.client() as client:
        for _ in range(5):
            client.send("T", b"x", queue_id=0)
        settings = {"store_service_address": store.address}
        with MetasyncProcess(tmp_path / "node") as node:
            put(node, "T", "other")
            commit(node, "T", "ahead", 9)
            commit(node, "T", "behind", 3)
            commit(node, "other", "ahead", 4)
            node.stop()
        node.settings |= settings
        with node:
            wait_until(lambda: offset(node, "T", "ahead") == 5, "taken back")
            assert offset(node, "T", "behind") == 3
            assert offset(node, "other", "ahead") == 0, "the store has nothing of this topic"
