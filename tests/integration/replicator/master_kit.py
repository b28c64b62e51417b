"""A real master side over a real directory of log files, whose store's word the test gives; and slaves on sockets."""

import asyncio
import random
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from tandemmq.replicator.frames import encode_report
from tandemmq.replicator.log_view import LogView
from tandemmq.replicator.master.master import Master
from tandemmq.replicator.metrics import Now, ReplicatorMetrics
from tandemmq.replicator.settings import ReplicatorSettings
from tandemmq.store.v1.replica_log_pb2 import SYNC_MASTER, LogIdentity, LogProgress, ReplicaGroup

FILE_SIZE = 64 << 10
HEADER = struct.Struct(">qi")


async def until(condition: Callable[[], bool], what: str = "", seconds: float = 40.0) -> None:
    """Waits for something that must come true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what or condition}")
        await asyncio.sleep(0.002)


def noise(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


class LogDirectory:
    """Log files of FILE_SIZE; the first byte is at `begin`."""

    def __init__(self, root: Path, log: bytes = b"", *, begin: int = 0, file_size: int = FILE_SIZE) -> None:
        self.root = root
        self.begin = begin
        self.file_size = file_size
        self.log = b""
        (root / "commitlog").mkdir(parents=True, exist_ok=True)
        self.append(log)

    @property
    def end(self) -> int:
        return self.begin + len(self.log)

    def path(self, offset: int) -> Path:
        return self.root / "commitlog" / f"{offset - offset % self.file_size:020d}"

    def append(self, data: bytes) -> None:
        self.log += data
        at = self.end - len(data)
        while data:
            room = self.file_size - at % self.file_size
            path = self.path(at)
            if not path.exists():
                path.touch()
                with path.open("r+b") as file:
                    file.truncate(self.file_size)
            with path.open("r+b") as file:
                file.seek(at % self.file_size)
                file.write(data[:room])
            at, data = at + len(data[:room]), data[room:]

    def remove_below(self, offset: int) -> None:
        """What retention does."""
        for at in range(self.begin, offset, self.file_size):
            self.path(at).unlink()
        self.log = self.log[offset - self.begin :]
        self.begin = offset

    def bytes_at(self, offset: int, size: int) -> bytes:
        return self.log[offset - self.begin : offset - self.begin + size]


class Running:
    """The master, and the store's word in the test's hand."""

    def __init__(self, files: LogDirectory, **settings: object) -> None:
        values: dict[str, object] = {
            "ha_listen_port": 0,
            "store_path_root_dir": files.root,
            "broker_name": "broker-a",
            "ha_housekeeping_interval": 120_000,  # nobody is silent because the machine is slow
            **settings,
        }
        self.files = files
        self.settings = ReplicatorSettings.load(environment={}, overrides=values)
        self.view = LogView()
        self.metrics = ReplicatorMetrics("cluster", "node")
        self.told = 0
        """How often the store was to be told something."""
        self.view.identity = LogIdentity(role=SYNC_MASTER, epoch=1)
        self.master = Master(self.settings, self.view, self.metrics, self._tell, self._note)
        self.view.observe(self.master.log_changed)
        self.metrics.watch(lambda: Now(True, True, "SYNC_MASTER", self.master.now(), None))

    def _tell(self) -> None:
        self.told += 1

    async def _note(self, group: ReplicaGroup) -> None:
        """The store has noted the group, and each slave the one before: all that there are count soon."""
        for one in group.members:
            self.master.roster.confirmed(one.identity, group.epoch, group.generation)

    def say(self, end: int | None = None) -> None:
        """The store's word: its log ends there."""
        self.view.update(
            LogProgress(
                min_offset=self.files.begin,
                max_offset=self.files.end if end is None else end,
                flushed_offset=self.files.begin,
                identity=LogIdentity(role=SYNC_MASTER, file_size=self.files.file_size, epoch=1, broker_name="broker-a"),
            )
        )

    def append(self, data: bytes) -> None:
        self.files.append(data)
        self.say()

    def closed(self, reason: str) -> int:
        """Connections that ended for that reason."""
        return int(self.sample("tandem_ha_connections_closed_total", reason=reason) or 0)

    def sample(self, name: str, **labels: str) -> float | None:
        registry = CollectorRegistry()
        registry.register(self.metrics)
        common = {"cluster": "cluster", "node_type": "replicator", "node_id": "node"}
        return registry.get_sample_value(name, {**common, **labels})


@asynccontextmanager
async def running(files: LogDirectory, **settings: object) -> AsyncIterator[Running]:
    found = Running(files, **settings)
    found.say()
    found.master.start()
    try:
        yield found
    finally:
        found.master.stop()
        await asyncio.sleep(0)


class Got(NamedTuple):
    """A frame that a slave received."""

    offset: int
    body: bytes


class Slave:
    """A slave's end of the connection, as a test wants it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @property
    def port(self) -> int:
        port: int = self.writer.get_extra_info("sockname")[1]
        return port

    def report(self, *offsets: int) -> None:
        self.writer.write(b"".join(map(encode_report, offsets)))

    async def frame(self, seconds: float = 60.0) -> Got:
        async with asyncio.timeout(seconds):
            offset, size = HEADER.unpack(await self.reader.readexactly(HEADER.size))
            return Got(offset, await self.reader.readexactly(size))

    async def log(self, begin: int, end: int, *, ack: bool = False) -> bytes:
        """The log from `begin` to `end`, out of frames that must be contiguous."""
        found = bytearray()
        while begin + len(found) < end:
            frame = await self.frame()
            assert frame.offset == begin + len(found)
            found += frame.body
            if ack and frame.body:
                self.report(begin + len(found))
        return bytes(found)

    async def ended(self, seconds: float = 60.0) -> bytes:
        """Everything until the master closes the connection."""
        async with asyncio.timeout(seconds):
            try:
                return await self.reader.read()
            except ConnectionResetError:
                return b""

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


@asynccontextmanager
async def slave(where: Running, *reports: int, receive_buffer: int | None = None) -> AsyncIterator[Slave]:
    """Connected, and has reported that."""
    plain = socket.socket()
    if receive_buffer is not None:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    plain.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", where.master.port))
    reader, writer = await asyncio.open_connection(sock=plain, limit=1 << 16)
    found = Slave(reader, writer)
    if reports:
        found.report(*reports)
    try:
        yield found
    finally:
        await found.close()
