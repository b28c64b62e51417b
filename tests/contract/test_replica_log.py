"""`tandemmq.store.v1.ReplicaLog` on the internal port: the link, replica bytes, roles."""

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import grpc
import pytest

from tandemmq.client import Outgoing, RequestFailed, StoreClient
from tandemmq.store.v1 import replica_log_pb2 as wire
from tandemmq.store.v1 import store_pb2
from tandemmq.store.v1.replica_log_pb2_grpc import ReplicaLogStub
from tandemmq.store.v1.store_pb2_grpc import StoreStub
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import until
from tests.unit.log.replica_kit import FILE_SIZE, master_log

SMALL = {"mapped_file_size_commit_log": FILE_SIZE, "max_message_size": 16 * 1024}


@contextmanager
def internal(store: StoreProcess) -> Iterator[ReplicaLogStub]:
    address = next(event["internal"] for event in store.events() if event["event"] == "listening internally")
    with grpc.insecure_channel(address) as channel:
        yield ReplicaLogStub(channel)


@contextmanager
def started(directory: Path, role: str, **more: object) -> Iterator[tuple[StoreProcess, ReplicaLogStub]]:
    broker_id = 1 if role == "SLAVE" else 0
    settings = {**SMALL, "broker_role": role, "broker_id": broker_id, **more}
    with StoreProcess(directory, **settings) as store, internal(store) as stub:
        yield store, stub


def status(client: StoreClient, body: bytes, properties: dict[str, str] | None = None) -> str:
    return store_pb2.SendStatus.Name(client.send("T", body, properties=properties).status)


class Link:
    """The replicator's end of a link."""

    def __init__(self, stub: ReplicaLogStub) -> None:
        self._told: queue.SimpleQueue[wire.ReplicationProgress | None] = queue.SimpleQueue()
        self.call = stub.Link(iter(self._told.get, None))

    def tell(self, **progress: object) -> None:
        self._told.put(wire.ReplicationProgress(**progress))  # type: ignore[arg-type]

    def until(self, end: int) -> wire.LogProgress:
        for progress in self.call:
            if progress.max_offset >= end:
                return progress
        raise AssertionError("the link ended")

    def close(self) -> None:
        self._told.put(None)
        self.call.cancel()


def test_the_client_port_does_not_serve_it(tmp_path: Path) -> None:
    with started(tmp_path / "store", "ASYNC_MASTER") as (store, _), grpc.insecure_channel(store.address) as channel:
        with pytest.raises(grpc.RpcError) as failed:
            ReplicaLogStub(channel).GetRole(wire.GetRoleRequest())
        assert failed.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_synchronous_send_waits_for_what_the_replicator_says(tmp_path: Path) -> None:
    settings = {"slave_timeout": 400, "ha_slave_fallbehind_max": 10_000}
    with started(tmp_path / "store", "SYNC_MASTER", **settings) as (store, stub), store.client() as client:
        assert status(client, b"nobody there") == "SLAVE_NOT_AVAILABLE"
        link = Link(stub)
        first = next(iter(link.call))
        assert first.identity.role == wire.SYNC_MASTER
        assert (first.identity.epoch, first.identity.file_size) == (1, FILE_SIZE)
        assert first.max_offset > 0
        link.tell(enough=True, replicated_offset=first.max_offset, in_sync=1)
        assert wait_for(partial(status, client, b"mute slave")) == "FLUSH_SLAVE_TIMEOUT"
        assert status(client, b"with WAIT=false", properties={"WAIT": "false"}) == "PUT_OK"
        link.tell(enough=True, replicated_offset=1 << 40, in_sync=1)
        assert wait_for(partial(status, client, b"acked"), "PUT_OK") == "PUT_OK"
        assert link.until(first.max_offset + 1).max_offset > first.max_offset
        link.tell(enough=True, replicated_offset=1, in_sync=1)
        wait_for(partial(status, client, b"x" * 9_000), "SLAVE_NOT_AVAILABLE")
        link.tell(enough=True, replicated_offset=1 << 40, in_sync=1)
        wait_for(partial(status, client, b"y"), "PUT_OK")
        link.close()
        wait_for(partial(status, client, b"z"), "SLAVE_NOT_AVAILABLE")


def wait_for(ask: object, wanted: str = "FLUSH_SLAVE_TIMEOUT") -> str:
    """Asks until the store has heard what the replicator told it, which takes as long as it takes."""
    assert callable(ask)
    until(lambda: ask() == wanted, 60, f"{wanted}")
    return wanted


def test_too_few_replicas_refuse_what_waits_and_store_nothing(tmp_path: Path) -> None:
    with (
        started(tmp_path / "store", "SYNC_MASTER", min_in_sync_replicas=2) as (store, _),
        store.client() as client,
        store.stub() as stub,
    ):
        for send in (lambda: client.send("T", b"x"), lambda: client.send_batch([Outgoing("T", b"x")])):
            with pytest.raises(RequestFailed, match="minInSyncReplicas") as refused:
                send()
            assert refused.value.status == "IN_SYNC_REPLICAS_NOT_ENOUGH"
        assert log_end(stub) == 0
        assert status(client, b"x", properties={"WAIT": "false"}) == "PUT_OK"
        assert log_end(stub) > 0


def log_end(stub: StoreStub) -> int:
    return stub.ListQueues(store_pb2.ListQueuesRequest()).log.max_offset


def test_only_one_replicator_has_the_link(tmp_path: Path) -> None:
    with started(tmp_path / "store", "SYNC_MASTER") as (_, stub):
        link = Link(stub)
        assert next(iter(link.call)).max_offset == 0
        second = Link(stub)
        with pytest.raises(grpc.RpcError) as refused:
            next(iter(second.call))
        assert refused.value.code() is grpc.StatusCode.ALREADY_EXISTS
        link.close()


async def test_replica_bytes_by_message_and_by_staging_file(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "master", [200, 5_000, 0, 3_000] * 12)
    root = tmp_path / "slave"
    with started(root, "SLAVE") as (store, stub):
        staging = root / "tandem.staging.test"
        staging.write_bytes(b"header" + log[1_000:40_000] + b"more" + log[40_000:])
        messages = [
            wire.ReplicaBytes(
                offset=0,
                data=log[:1_000],
                epoch=3,
                staging=wire.StagingFile(name=staging.name, size=staging.stat().st_size),
            ),
            wire.ReplicaBytes(
                stretches=[
                    wire.Stretch(offset=1_000, position=6, size=39_000),
                    wire.Stretch(offset=40_000, position=39_010, size=len(log) - 40_000),
                ],
                flush=True,
            ),
        ]
        acks = list(stub.Receive(iter(messages)))
        assert [ack.taken_offset for ack in acks] == [1_000, len(log)]
        first, last = (ack.max_offset for ack in acks)
        assert 0 < first < 1_000, "half a record is not acknowledged"
        assert last == len(log)
        state = stub.GetRole(wire.GetRoleRequest())
        assert (state.identity.epoch, state.max_offset, state.identity.broker_id) == (3, len(log), 1)
        with store.client() as client:
            assert client.pull("Topic0", 0, 0, max_messages=1).records[0].keys == ["key0"]
        assert store.stop() == 0
    assert b"".join(path.read_bytes() for path in sorted((root / "commitlog").iterdir()))[: len(log)] == log


@pytest.mark.slow
@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        (wire.ReplicaBytes(offset=5, data=b"x"), "FAILED_PRECONDITION", "empty"),
        (wire.ReplicaBytes(offset=-1, data=b"x"), "FAILED_PRECONDITION", "empty"),
        (wire.ReplicaBytes(staging=wire.StagingFile(name="../x", size=10)), "INVALID_ARGUMENT", "no staging file"),
        (wire.ReplicaBytes(staging=wire.StagingFile(name="tandem.staging", size=10)), "INVALID_ARGUMENT", "be read"),
        (wire.ReplicaBytes(stretches=[wire.Stretch(offset=0, position=0, size=5)]), "INVALID_ARGUMENT", "no bytes"),
    ],
)
def test_bytes_that_cannot_be_are_refused(tmp_path: Path, message: wire.ReplicaBytes, code: str, words: str) -> None:
    with started(tmp_path / "slave", "SLAVE") as (_, stub):
        with pytest.raises(grpc.RpcError, match=words) as refused:
            list(stub.Receive(iter([message])))
        assert refused.value.code().name == code
        assert stub.GetRole(wire.GetRoleRequest()).max_offset == 0
        (ack,) = stub.Receive(iter([wire.ReplicaBytes(offset=0, data=b"abc")]))
        assert (ack.taken_offset, ack.max_offset) == (3, 0), "half a record is taken, and not acknowledged"


@pytest.mark.slow
def test_roles_change_while_the_store_runs(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with started(root, "SLAVE") as (store, stub), store.client() as client:
        with pytest.raises(RequestFailed, match="slave"):
            client.send("T", b"x")
        with pytest.raises(grpc.RpcError, match="not to SLAVE"):
            stub.Promote(wire.PromoteRequest())
        state = stub.Promote(wire.PromoteRequest(role=wire.ASYNC_MASTER))
        assert (state.identity.role, state.identity.epoch) == (wire.ASYNC_MASTER, 2)
        assert state.configured_role == wire.SLAVE
        assert status(client, b"x") == "PUT_OK"
        with pytest.raises(grpc.RpcError, match="takes no replica bytes"):
            list(stub.Receive(iter([wire.ReplicaBytes(offset=0, data=b"abc")])))
        assert stub.Fence(wire.FenceRequest(epoch=2)).identity.fenced_by_epoch == 0
        assert stub.Fence(wire.FenceRequest(epoch=3)).identity.fenced_by_epoch == 3
        store.restart()
        with store.client() as again, pytest.raises(RequestFailed, match="newer master"):
            again.send("T", b"x")
    with started(root, "SLAVE") as (_, stub):
        assert stub.Demote(wire.DemoteRequest(epoch=3)).identity.role == wire.SLAVE
