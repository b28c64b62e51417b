"""A follower between two peers that do what a test says: a master on a socket, and a store behind real gRPC."""

import asyncio
import contextlib
import mmap
import struct
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc

from tandemmq.common.grpc_transport import Server, server
from tandemmq.replication.v1 import replication_pb2_grpc
from tandemmq.replication.v1.replication_pb2 import JoinRequest, JoinResponse
from tandemmq.replicator.frames import encode_header
from tandemmq.replicator.log_view import LogView
from tandemmq.replicator.settings import ReplicatorSettings
from tandemmq.replicator.slave.slave import MasterFollower
from tandemmq.store.v1 import replica_log_pb2_grpc
from tandemmq.store.v1.replica_log_pb2 import (
    BrokerRole,
    GetRoleRequest,
    LogIdentity,
    LogProgress,
    ReplicaAck,
    ReplicaBytes,
    ReplicaGroup,
    RoleState,
)
from tests.faults.pair_process import free_port

FILE_SIZE = 1 << 20
Context = grpc.aio.ServicerContext[Any, Any]


async def until(condition: Callable[[], bool], what: str = "", seconds: float = 40.0) -> None:
    """Waits for something that must come true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what or condition}")
        await asyncio.sleep(0.002)


class FileStore(replica_log_pb2_grpc.ReplicaLogServicer):
    """A store that only has a log: takes replica bytes into files of FILE_SIZE, and can be slow, ended or killed."""

    def __init__(self, root: Path, log: bytes = b"") -> None:
        self.root = root
        self.max_offset = 0
        self.min_offset = 0
        self.epoch = 1
        self.role = BrokerRole.SLAVE
        self.auto_flush = True
        self.whole_records = 1 << 62
        """Where the last whole record ends."""
        self.flushed_offset = 0
        self.messages: list[ReplicaBytes] = []
        self.calls = 0
        self.open_calls = 0
        self.may_take = asyncio.Event()
        self.may_take.set()
        self.port = free_port()  # which stays its own while it is stopped and others dial it
        self._server: Server | None = None
        (root / "commitlog").mkdir(parents=True, exist_ok=True)
        self.append(0, log)
        self.flushed_offset = self.max_offset

    async def start(self) -> None:
        """Serves, always on the same port."""
        self._server = server()
        replica_log_pb2_grpc.add_ReplicaLogServicer_to_server(self, self._server)
        self._server.add_insecure_port(f"127.0.0.1:{self.port}")
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    @property
    def log(self) -> bytes:
        """All bytes from the first file on."""
        files = sorted((self.root / "commitlog").iterdir())
        return b"".join(file.read_bytes() for file in files)[: self.max_offset - self.min_offset]

    def append(self, offset: int, data: bytes) -> None:
        if self.max_offset == 0 and offset % FILE_SIZE == 0:
            self.min_offset = self.max_offset = offset
        assert offset == self.max_offset, f"bytes at {offset}, the log ends at {self.max_offset}"
        while data:
            at = self.max_offset % FILE_SIZE
            piece, data = data[: FILE_SIZE - at], data[FILE_SIZE - at :]
            path = self.root / "commitlog" / f"{self.max_offset - at:020d}"
            with path.open("r+b" if path.exists() else "w+b") as file:
                file.seek(at)
                file.write(piece)
            self.max_offset += len(piece)
        if self.auto_flush:
            self.flushed_offset = self.max_offset

    def identity(self) -> LogIdentity:
        return LogIdentity(role=self.role, file_size=FILE_SIZE, epoch=self.epoch, broker_id=1, broker_name="b")

    def progress(self) -> LogProgress:
        return LogProgress(
            min_offset=self.min_offset,
            max_offset=self.max_offset,
            flushed_offset=self.flushed_offset,
            identity=self.identity(),
        )

    async def GetRole(self, request: GetRoleRequest, context: Context) -> RoleState:
        return RoleState(
            identity=self.identity(),
            min_offset=self.min_offset,
            max_offset=self.max_offset,
            flushed_offset=self.flushed_offset,
        )

    async def Remember(self, request: ReplicaGroup, context: Context) -> ReplicaGroup:
        return request

    async def Receive(
        self, request_iterator: AsyncIterator[ReplicaBytes], context: Context
    ) -> AsyncIterator[ReplicaAck]:
        self.calls += 1
        self.open_calls += 1
        staging: mmap.mmap | None = None
        try:
            async for message in request_iterator:
                await self.may_take.wait()
                self.messages.append(message)
                if message.epoch > self.epoch:  # a new master: half a record of the old one's is cut off
                    self.epoch = message.epoch
                    self.max_offset = min(self.max_offset, self.whole_records)
                if message.HasField("staging"):
                    with (self.root / message.staging.name).open("rb") as file:
                        staging = mmap.mmap(file.fileno(), message.staging.size, access=mmap.ACCESS_READ)
                if message.data:
                    self.append(message.offset, message.data)
                for stretch in message.stretches:
                    assert staging is not None
                    self.append(stretch.offset, staging[stretch.position : stretch.position + stretch.size])
                yield ReplicaAck(max_offset=self.max_offset, flushed_offset=self.flushed_offset)
        finally:
            self.open_calls -= 1


class ScriptedMaster:
    """Accepts slaves, remembers what they report, sends what it is told."""

    def __init__(self) -> None:
        self.port = free_port()
        self.connections: list[MasterConnection] = []
        self._server: asyncio.Server | None = None

    async def start(self, ssl: Any = None) -> None:
        self._server = await asyncio.get_running_loop().create_server(
            self._accept, "127.0.0.1", self.port, ssl=ssl, reuse_address=True
        )

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for connection in self.connections:
                connection.transport.abort()
            await self._server.wait_closed()
            self._server = None

    def _accept(self) -> "MasterConnection":
        return MasterConnection(self.connections)

    async def connection(self, number: int = 1) -> "MasterConnection":
        """The so-manieth connection, once it has asked for something."""
        await until(lambda: len(self.connections) >= number, f"connection {number}")
        connection = self.connections[number - 1]
        await until(lambda: bool(connection.reports), "the first report")
        return connection


class MasterConnection(asyncio.Protocol):
    """One slave, as its master sees it."""

    def __init__(self, connections: "list[MasterConnection]") -> None:
        """Adds itself to `connections` when it is one."""
        self._connections = connections
        self.transport: asyncio.Transport
        self.received = b""
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self._connections.append(self)

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True

    @property
    def reports(self) -> list[int]:
        return list(struct.unpack(f">{len(self.received) // 8}q", self.received))

    def send(self, data: bytes) -> None:
        self.transport.write(data)

    def send_log(self, log: bytes, begin: int, size: int = 32768) -> None:
        """Frames that cross no file."""
        while begin < len(log):
            end = min(begin + size, len(log), begin - begin % FILE_SIZE + FILE_SIZE)
            self.send(encode_header(begin, end - begin) + log[begin:end])
            begin = end

    async def acked(self, offset: int, seconds: float = 40.0) -> None:
        await until(lambda: bool(self.reports) and self.reports[-1] >= offset, f"ack {offset}", seconds)

    async def ended(self) -> None:
        await until(lambda: self.closed, "the slave closes")


class JoinServicer(replication_pb2_grpc.ReplicationServicer):
    """A master's replicator that answers Join."""

    def __init__(self, response: JoinResponse) -> None:
        self.response = response
        self.requests: list[JoinRequest] = []

    async def Join(self, request: JoinRequest, context: Context) -> JoinResponse:
        self.requests.append(request)
        return self.response


class Scene:
    """Master, follower and store."""

    def __init__(self, root: Path, log: bytes = b"", **settings: Any) -> None:
        self.store = FileStore(root, log)  # type: ignore[abstract]  # it has the two calls that matter
        self.master = ScriptedMaster()
        self.view = LogView()
        self.follower: MasterFollower
        self._settings = settings
        self._root = root
        self._replication: Server | None = None
        self._no_replicator = ""

    async def start(self, join: JoinServicer | None = None, ssl: Any = None) -> None:
        await self.store.start()
        await self.master.start(ssl)
        address = "127.0.0.1:1"  # nobody
        if join is not None:
            self._replication = server()
            replication_pb2_grpc.add_ReplicationServicer_to_server(join, self._replication)
            address = f"127.0.0.1:{self._replication.add_insecure_port('127.0.0.1:0')}"
            await self._replication.start()
        values: dict[str, Any] = {
            "store_path_root_dir": self._root,
            "store_address": f"127.0.0.1:{self.store.port}",
            "ha_master_address": f"127.0.0.1:{self.master.port}",
            "ha_master_replicator_address": address,
            "ha_housekeeping_interval": 120_000,  # nobody is silent because the machine is slow
            "ha_connect_timeout": 60_000,
            "ha_reconnect_min": 5,
            "ha_reconnect_max": 50,
            "ha_refused_pause": 300,
        }
        self.follower = MasterFollower(ReplicatorSettings(**(values | self._settings)), self.view, lambda: 0)
        self.view.update(self.store.progress())
        self.follower.start()

    async def stop(self) -> None:
        self.store.may_take.set()
        await self.follower.stop()
        await self.master.stop()
        await self.store.stop()
        if self._replication is not None:
            await self._replication.stop(None)


@contextlib.asynccontextmanager
async def scene(
    root: Path, log: bytes = b"", *, join: JoinServicer | None = None, ssl: Any = None, **settings: Any
) -> AsyncIterator[Scene]:
    """A running scene; checks at the end that the follower left nothing behind."""
    made = Scene(root, log, **settings)
    await made.start(join, ssl)
    try:
        yield made
    finally:
        await made.stop()
    assert list(root.glob("tandem.staging*")) == []
    assert made.store.open_calls == 0
