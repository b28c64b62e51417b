"""A slave's store and replicator as processes, killed while they follow a master that serves a log RocketMQ wrote."""

import asyncio
import random
from pathlib import Path

import grpc
import pytest

from tandemmq.common.grpc_transport import server
from tandemmq.replication.v1.replication_pb2 import FollowerState, FollowerStatus, JoinResponse, StatusRequest
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub, add_ReplicationServicer_to_server
from tandemmq.store.v1.replica_log_pb2 import BrokerRole, LogIdentity
from tests.faults.pair_process import ServiceProcess, free_port
from tests.golden import golden_store
from tests.integration.replicator.slave_kit import FILE_SIZE, JoinServicer, MasterConnection, ScriptedMaster, until

pytestmark = [pytest.mark.golden, pytest.mark.timeout(300)]

END = 8_510_223


def golden_log() -> bytes:
    files = sorted((golden_store("ha") / "master/store/commitlog").iterdir())
    return b"".join(file.read_bytes() for file in files)[:END]


def log_of(root: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted((root / "commitlog").iterdir()))[:END]


class ServingMaster(ScriptedMaster):
    """Serves a log as RocketMQ does, from wherever it is asked, not faster than a laptop's disk."""

    def __init__(self, log: bytes) -> None:
        super().__init__()
        self.log = log
        self._tasks: set[asyncio.Task[None]] = set()

    def _accept(self) -> MasterConnection:
        connection = super()._accept()
        task = asyncio.create_task(self._serve(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return connection

    async def _serve(self, connection: MasterConnection) -> None:
        while not connection.reports and not connection.closed:
            await asyncio.sleep(0.002)
        at = connection.reports[0] if connection.reports else 0
        while not connection.closed:
            if at < len(self.log):
                step = min(at + 65_536, at - at % FILE_SIZE + FILE_SIZE, len(self.log))
                connection.send_log(self.log[:step], at)
                at = step
            await asyncio.sleep(0.01)

    async def acknowledged(self, more: int) -> MasterConnection:
        """The connection that lives, once the slave has acknowledged so many bytes over it.

        A slave whose store has just died may have dialled once more before it knows.
        """
        found: list[MasterConnection] = []

        def is_there() -> bool:
            found[:] = [one for one in self.connections if not one.closed and one.reports]
            return any(one.reports[-1] >= one.reports[0] + more for one in found)

        await until(is_there, f"{more} bytes more", 60)
        return next(one for one in found if one.reports[-1] >= one.reports[0] + more)


async def follower_status(port: int) -> FollowerStatus:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        response = await ReplicationStub(channel).Status(StatusRequest(), timeout=30)
        return response.follower


class Node:
    """A slave's store and replicator."""

    def __init__(self, directory: Path, master: ScriptedMaster, join_port: int) -> None:
        self.root, self.port = directory / "store", free_port()
        internal = free_port()
        common: dict[str, object] = {"storePathRootDir": self.root, "metricsEnable": "false", "brokerId": 1}
        of_store = {"brokerRole": "SLAVE", "mappedFileSizeCommitLog": FILE_SIZE, "grpcPort": 0}
        of_replicator = {"storeAddress": f"127.0.0.1:{internal}", "grpcPort": self.port, "haListenPort": 0}
        of_master = {
            "haMasterAddress": f"127.0.0.1:{master.port}",
            "haMasterReplicatorAddress": f"127.0.0.1:{join_port}",
            "haReconnectMax": 200,
            "haRefusedPause": 200,
        }
        self.store = ServiceProcess("store", directory, common | of_store | {"internalPort": internal})
        self.replicator = ServiceProcess("replicator", directory, common | of_replicator | of_master)

    def start(self) -> None:
        self.store.start()
        self.replicator.start()

    def kill(self) -> None:
        self.replicator.kill()
        self.store.kill()


@pytest.mark.slow
async def test_killed_again_and_again_the_log_is_the_masters(tmp_path: Path) -> None:
    log, rnd = golden_log(), random.Random(7)
    master = ServingMaster(log)
    await master.start()
    node = Node(tmp_path, master, free_port())
    try:
        await asyncio.to_thread(node.start)
        for victim in (node.store, node.replicator, node.store):
            connection = await master.acknowledged(rnd.randrange(70_000, 2_000_000))
            await asyncio.to_thread(victim.kill)
            await connection.ended()
            await asyncio.to_thread(victim.start)
        await until(lambda: any(one.reports and one.reports[-1] == END for one in master.connections), "the end", 60)
        assert log_of(node.root) == log
        status = await follower_status(node.port)
        assert (status.state, status.problem) == (FollowerState.FOLLOWING, "")
        assert status.acked_offset == END
        assert list(node.root.glob("tandem.staging*")) == []
        for connection in master.connections:
            assert connection.reports == sorted(connection.reports)
    finally:
        node.kill()
        await master.stop()


@pytest.mark.slow
async def test_half_a_record_goes_when_there_is_a_newer_master(tmp_path: Path) -> None:
    """The old master died inside a record; the new one cut its own half off, and goes on from there."""
    log = golden_log()
    whole = 0
    while whole < 1_500_000:
        whole += int.from_bytes(log[whole : whole + 4])
    identity = LogIdentity(role=BrokerRole.SYNC_MASTER, file_size=FILE_SIZE, epoch=1)
    join = JoinServicer(JoinResponse(identity=identity, max_offset=END))  # type: ignore[abstract]
    replicator = server()
    add_ReplicationServicer_to_server(join, replicator)
    join_port = replicator.add_insecure_port("127.0.0.1:0")
    await replicator.start()
    master = ServingMaster(log[: whole + 60])
    await master.start()
    node = Node(tmp_path, master, join_port)
    try:
        await asyncio.to_thread(node.start)
        old = await master.connection()
        await old.acked(whole)
        master.log = log[:whole]
        join.response.identity.epoch, join.response.max_offset = 2, whole
        old.transport.abort()
        new = await master.connection(2)
        assert new.reports[0] == whole - 65_536
        await new.acked(whole)
        assert new.reports[:2] == [whole - 65_536, whole]
        master.log = log
        await new.acked(END)
        assert log_of(node.root) == log
        status = await follower_status(node.port)
        assert (status.state, status.problem) == (FollowerState.FOLLOWING, "")
    finally:
        node.kill()
        await master.stop()
        await replicator.stop(None)
