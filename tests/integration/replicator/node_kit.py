"""Nodes of a real store process and a replicator in the test's own event loop."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc

from tandemmq.common.serving.server import ServiceHost
from tandemmq.replication.v1.replication_pb2 import (
    FollowRequest,
    PromoteRequest,
    PromoteResponse,
    StatusRequest,
    StatusResponse,
)
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub, add_ReplicationServicer_to_server
from tandemmq.replicator.metrics import ReplicatorMetrics
from tandemmq.replicator.node import ReplicatorNode
from tandemmq.replicator.service import ReplicationService
from tandemmq.replicator.settings import ReplicatorSettings
from tandemmq.store.v1.replica_log_pb2 import SYNC_MASTER
from tandemmq.store.v1.store_pb2 import SendStatus
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import free_port
from tests.integration.replicator.master_kit import until

if TYPE_CHECKING:  # the generated code knows this class by its types only
    from tandemmq.replication.v1.replication_pb2_grpc import ReplicationAsyncStub

FILE_SIZE = 128 * 1024
PATIENCE = 20_000
"""Milliseconds: of a store with a slave that takes its time, of replicators with each other."""


def ha_port(node: ReplicatorNode) -> int:
    """Where slaves are accepted; 0 while they are not."""
    return 0 if node.master is None else node.master.port


class Replicator:
    """A node's replicator, as `serve` makes it but for signals."""

    def __init__(self, store: str, directory: Path, settings: dict[str, object]) -> None:
        values = {"store_address": store, "store_path_root_dir": directory, "ha_listen_port": 0, **settings}
        self.settings = ReplicatorSettings.load(
            environment={}, overrides={"grpc_port": 0, "metrics_port": 0, "broker_name": "b", **values}
        )
        self.metrics = ReplicatorMetrics("cluster", "node")
        self.host = ServiceHost(self.settings, self.metrics.registry())
        self.node = ReplicatorNode(self.settings, self.host, self.metrics)
        self.host.add(add_ReplicationServicer_to_server, ReplicationService(self.node))

    async def start(self) -> None:
        await self.host.start()
        self.node.start()
        self.host.on_drain(self.node.stop)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.host.port}"

    @property
    def ha_address(self) -> str:
        return f"127.0.0.1:{ha_port(self.node)}"

    @asynccontextmanager
    async def stub(self) -> AsyncIterator["ReplicationAsyncStub"]:
        async with grpc.aio.insecure_channel(self.address) as channel:
            yield ReplicationStub(channel)

    async def status(self) -> StatusResponse:
        async with self.stub() as stub:
            answer: StatusResponse = await stub.Status(StatusRequest())
            return answer

    async def promote(self, **fields: Any) -> PromoteResponse:
        async with self.stub() as stub:
            answer: PromoteResponse = await stub.Promote(PromoteRequest(role=SYNC_MASTER, **fields))
            return answer

    async def follow(self, ha_master_address: str, replicator_address: str = "") -> None:
        request = FollowRequest(ha_master_address=ha_master_address, replicator_address=replicator_address)
        async with self.stub() as stub:
            await stub.Follow(request)


class OneNode:
    """A store process and its replicator, which comes and goes as the test likes."""

    def __init__(self, directory: Path, role: str, **settings: Any) -> None:
        self.store = StoreProcess(
            directory, broker_role=role, broker_name="b", broker_id=int(role == "SLAVE"), prefault_bytes=0,
            internal_port=free_port(), slave_timeout=PATIENCE,
        )  # fmt: skip
        # Ports that the kernel gives to nobody: what is away is dialled all the time, and must come back there.
        self.settings: dict[str, object] = {"grpc_port": free_port(), "ha_listen_port": free_port()}
        self.settings |= {"ha_send_heartbeat_interval": 200, "ha_housekeeping_interval": PATIENCE, **settings}
        self.settings |= {"ha_refused_pause": 300, "broker_id": int(role == "SLAVE")}
        self.replicator: Replicator | None = None

    @property
    def it(self) -> Replicator:
        assert self.replicator is not None
        return self.replicator

    @property
    def node(self) -> ReplicatorNode:
        return self.it.node

    async def start_store(self) -> None:
        await asyncio.to_thread(self.store.start)

    def internal_address(self) -> str:
        events = self.store.events()
        internal: str = next(event["internal"] for event in events if event["event"] == "listening internally")
        return internal

    async def start(self, **more: object) -> None:
        """The replicator; on the same ports as before."""
        self.settings |= more
        self.replicator = Replicator(self.internal_address(), self.store.directory, self.settings)
        await self.it.start()

    async def stop(self) -> None:
        if self.replicator is not None:
            await self.replicator.host.stop()
            self.replicator = None

    async def serving(self) -> None:
        await until(lambda: self.node._serving, "the replicator serves")

    async def send(self, count: int = 1, size: int = 100) -> list[str]:
        """Sends messages one after the other; gives their statuses."""

        def all_of_them() -> list[str]:
            with self.store.client() as client:
                return [SendStatus.Name(client.send("topic", bytes(size)).status) for _ in range(count)]

        return await asyncio.to_thread(all_of_them)

    async def answers(self, status: str) -> None:
        """Waits until a message gets this status: the store hears of its slave by way of the replicator, soon."""
        async with asyncio.timeout(60):
            while await self.send() != [status]:
                await asyncio.sleep(0.02)

    def log_bytes(self, end: int) -> bytes:
        files = sorted((self.store.directory / "commitlog").iterdir())
        return b"".join(file.read_bytes() for file in files)[:end]


@asynccontextmanager
async def one_node(directory: Path, role: str = "SYNC_MASTER", **settings: Any) -> AsyncIterator[OneNode]:
    node = OneNode(directory, role, **settings)
    try:
        await node.start_store()
        await node.start()
        yield node
    finally:
        await node.stop()
        await asyncio.to_thread(node.store.stop, signal.SIGKILL)


class Pair:
    """A master and its slave, in step."""

    def __init__(self, master: OneNode, slave: OneNode) -> None:
        self.master = master
        self.slave = slave

    async def equal(self) -> None:
        """Waits until the slave has everything."""
        await until(
            lambda: (
                self.slave.node.view.max_offset == self.master.node.view.max_offset > 0
                and self.master.node.view.linked
                and self.slave.node.view.linked
            )
        )
        end = self.master.node.view.max_offset
        assert self.master.log_bytes(end) == self.slave.log_bytes(end)


@asynccontextmanager
async def pair(directory: Path, **settings: Any) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        master = await stack.enter_async_context(one_node(directory / "a", **settings))
        await until(lambda: ha_port(master.node) > 0)
        more: dict[str, Any] = {
            "ha_master_address": master.it.ha_address,
            "ha_master_replicator_address": master.it.address,
        }
        slave = await stack.enter_async_context(one_node(directory / "b", "SLAVE", **settings, **more))
        await until(lambda: any(one.in_sync and one.identity == "1" for one in master.node.master.replicas))  # type: ignore[union-attr]
        yield Pair(master, slave)
