"""Two of our nodes as a contestant: a master and a slave, each a store and a replicator."""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import grpc

from bench.catching_up import Reached
from bench.generators import LoadShape
from bench.model import Sample, Unavailable
from bench.process import CpuMeter, ServerProcess, Servers, free_port
from bench.store import NAME, Store
from tandemmq.replication.v1 import replication_pb2
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub
from tandemmq.store.v1 import replica_log_pb2, store_pb2
from tandemmq.store.v1.replica_log_pb2_grpc import ReplicaLogStub
from tandemmq.store.v1.store_pb2_grpc import StoreStub

_STEP = 0.02
_FOLLOW_SECONDS = 30.0
_RECOVER_SECONDS = 120.0


class BenchNode:
    """A store and its replicator over a directory; `master` is whom it follows."""

    def __init__(self, directory: Path, role: str, master: "BenchNode | None" = None) -> None:
        internal = free_port()
        self.ha_address: str = f"127.0.0.1:{free_port()}"
        name, number = "bench", 0 if master is None else 1
        self.store = Store(directory, brokerRole=role, internalPort=internal, brokerName=name, brokerId=number)
        port = free_port()
        lines: dict[str, str | int | Path] = {
            "storePathRootDir": self.store.root, "storeAddress": f"127.0.0.1:{internal}",
            "grpcHost": "127.0.0.1", "grpcPort": port, "metricsPort": 0, "logLevel": "WARNING",
            "haListenPort": self.ha_address.rpartition(":")[2], "brokerName": name, "brokerId": number,
        }  # fmt: skip
        if master is not None:
            lines |= {"haMasterAddress": master.ha_address, "haMasterReplicatorAddress": master.replicator.target}
        conf = directory / "replicator.conf"
        conf.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        command = [sys.executable, "-m", "tandemmq.replicator", "--config", str(conf)]
        self.replicator: ServerProcess = ServerProcess("tandem-replicator", command, directory / "replicator", port)
        self._internal = f"127.0.0.1:{internal}"

    def start(self) -> None:
        """Start both. Raises Unavailable."""
        self.store.start(_RECOVER_SECONDS)
        self.replicator.start()

    def status(self) -> replication_pb2.StatusResponse | None:
        """What the replicator says, None while it does not answer."""
        with grpc.insecure_channel(self.replicator.target) as channel:
            try:
                return ReplicationStub(channel).Status(replication_pb2.StatusRequest(), timeout=5)
            except grpc.RpcError:
                return None

    def watch(self) -> "Watch":
        """A look at the log that can be repeated; close it."""
        return Watch(self._internal, self.store.server.target)


class Watch:
    """How far the log and the queues of a store are."""

    def __init__(self, internal: str, target: str) -> None:
        self._channels = [grpc.insecure_channel(internal), grpc.insecure_channel(target)]
        self._log, self._store = ReplicaLogStub(self._channels[0]), StoreStub(self._channels[1])

    def log_end(self) -> int:
        """Where the log ends."""
        return self._log.GetRole(replica_log_pb2.GetRoleRequest(), timeout=5).max_offset

    def queued(self) -> int:
        """Messages in all consume queues."""
        listed = self._store.ListQueues(store_pb2.ListQueuesRequest(), timeout=5)
        return sum(queue.max_offset for topic in listed.topics for queue in topic.queues)

    def close(self) -> None:
        """Close the channels."""
        for channel in self._channels:
            channel.close()


class TandemPair:
    """A SYNC_MASTER with a live slave."""

    def __init__(self, directory: Path, warm_up: float) -> None:
        self.name = NAME
        self._warm_up = warm_up
        self.master = BenchNode(directory / "master", "SYNC_MASTER")
        self.slave = BenchNode(directory / "slave", "SLAVE", self.master)
        self.server = Servers(parts(self.master, self.slave))

    def start(self) -> None:
        """Start all four, wait until the slave follows, and press for a while. Raises Unavailable."""
        self.master.start()
        self.slave.start()
        _until(self._in_sync, _FOLLOW_SECONDS, "no slave followed")
        self.send(LoadShape(1, 64, warm=self._warm_up, seconds=0.1), no_wait=True)

    def _in_sync(self) -> bool:
        status = self.master.status()
        return status is not None and status.in_sync > 0

    def send(self, shape: LoadShape, *, no_wait: bool = False) -> Sample:
        """Single sends, acknowledged by the slave, or with `no_wait` as an ASYNC_MASTER does it; each PUT_OK."""
        meter = CpuMeter(self.server.parts)
        return with_shares(self.master.store.send(shape, no_wait=no_wait, cpu=meter), meter)


class TandemFollowed:
    """A master over a log that was made before, and slaves that start from nothing."""

    def __init__(self, directory: Path, end: int, messages: int) -> None:
        """The log's files lie in `directory`/master/store."""
        self.name = NAME
        self._directory, self._end, self._messages = directory, end, messages
        self.master = BenchNode(directory / "master", "ASYNC_MASTER")
        self._slave: BenchNode | None = None
        self.server = Servers(parts(self.master), self._discard_slave)

    def start(self) -> None:
        """Start the master, and wait until its queues are there. Raises Unavailable."""
        self.master.start()
        watch = self.master.watch()
        try:
            _until(lambda: watch.queued() >= self._messages, _RECOVER_SECONDS, "the master's queues are not ready")
        finally:
            watch.close()

    def catch_up(self) -> Sample:
        """An empty slave, until its log, queues and index are complete. Raises Unavailable."""
        self._discard_slave()
        self._slave = BenchNode(self._directory / "slave", "SLAVE", self.master)
        self._slave.store.start()
        watch = self._slave.watch()
        reached = Reached(self._end, self._messages, parts(self.master, self._slave))
        try:
            self._slave.replicator.start()
            return reached.measure(watch.log_end, lambda: watch.queued() >= self._messages)
        except grpc.RpcError as error:
            raise Unavailable(f"the slave's store does not answer: {error}") from None
        finally:
            watch.close()
            self._discard_slave()

    def _discard_slave(self) -> None:
        if self._slave is not None:
            Servers(parts(slave=self._slave)).discard()
            self._slave = None


def parts(master: BenchNode | None = None, slave: BenchNode | None = None) -> dict[str, ServerProcess]:
    """The processes of one node or of both, by what they are."""
    found: dict[str, ServerProcess] = {}
    for name, node in (("master", master), ("slave", slave)):
        if node is not None:
            found |= {f"{name}_repl": node.replicator, name: node.store.server}
    return found


def with_shares(sample: Sample, meter: CpuMeter) -> Sample:
    """A sample of sends, with the CPU time of each process a message."""
    shares = meter.shares()
    whole = sum(shares.values()) or 1.0
    return sample | {f"{name}_us": sample.get("cpu_us", 0.0) * used / whole for name, used in shares.items()}


def _until(done: Callable[[], bool], seconds: float, problem: str) -> None:
    begun = time.monotonic()
    while not done():
        if time.monotonic() - begun > seconds:
            raise Unavailable(f"{NAME}: {problem} within {seconds:.0f} s")
        time.sleep(_STEP)
