"""Two nodes of three processes each, store, replicator and metasync: started, killed and watched one by one.

::

    with Pair(tmp_path, role="SYNC_MASTER") as pair:
        with pair.master.client() as client: ...
        pair.slave.processes["replicator"].kill()
        pair.heal()

Nothing here waits for luck: `linked`, `following`, `level` are looked at in the services' own answers.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import grpc

from tandemmq.client import StoreClient
from tandemmq.replication.v1 import replication_pb2
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub
from tandemmq.store.v1 import replica_log_pb2
from tandemmq.store.v1.replica_log_pb2_grpc import ReplicaLogStub
from tests.faults.pair_process import ServiceProcess, free_port, until

SERVICES = ("store", "replicator", "metasync")
FOLLOWING = replication_pb2.FOLLOWING
REFUSED = replication_pb2.REFUSED
LEVEL_SECONDS = 90.0

SMALL: dict[str, object] = {
    "mappedFileSizeCommitLog": 128 * 1024,
    "mappedFileSizeConsumeQueue": 4_000,
    "maxHashSlotNum": 500,
    "maxIndexNum": 2_000,
    "maxMessageSize": 48 * 1024,
    "prefaultBytes": 0,
    "fileReservedTime": 100_000,
    "diskMaxUsedSpaceRatio": 95,
    "brokerIP1": "127.0.0.1",
}
"""Small files, so that there are many; nothing expires."""

QUICK: dict[str, object] = {
    "haSendHeartbeatInterval": 200,
    "haHousekeepingInterval": 15_000,
    "haConnectTimeout": 5_000,
    "haReconnectMin": 20,
    "haReconnectMax": 300,
    "haRefusedPause": 500,
}
"""Everything that a replicator waits for, in tenths of a second; but for how long a peer may say nothing.

On a machine with much to do a process may well be silent for seconds. Who tests silence, shortens that.
"""

GIVES_UP_SOON: dict[str, object] = {"haHousekeepingInterval": 3_000, "haConnectTimeout": 1_000}
"""For tests of partitions: a peer that says nothing for so long is given up."""

PATIENT = {"slaveTimeout": 20_000}
"""For tests in which every send is to be told PUT_OK: however slow the slave, it acks within this."""


class Node:
    """One node: a directory, three processes, their ports."""

    def __init__(
        self,
        directory: Path,
        broker_id: int,
        role: str,
        *,
        store: Mapping[str, object] | None = None,
        replicator: Mapping[str, object] | None = None,
        metasync: Mapping[str, object] | None = None,
        host: str = "127.0.0.1",
        prefix: tuple[str, ...] = (),
    ) -> None:
        self.directory = directory
        self.root = directory / "store"
        self.host = host
        self.ports = {name: free_port() for name in (*SERVICES, "internal", "ha")}
        self.ha_address = f"{host}:{self.ports['ha']}"
        common: dict[str, object] = {
            "brokerClusterName": "faults",
            "brokerName": "pair",
            "grpcHost": host,
            "metricsPort": 0,
            "shutdownGraceMs": 500,
        }
        own: dict[str, dict[str, object]] = {
            "store": {
                **SMALL,
                "brokerId": broker_id,
                "brokerRole": role,
                "storePathRootDir": self.root,
                "internalHost": host,
                "internalOpen": host != "127.0.0.1",
                "internalPort": self.ports["internal"],
                "metasyncAddress": self.address("metasync"),
                **(store or {}),
            },
            "replicator": {
                **QUICK,
                "brokerId": broker_id,
                "storePathRootDir": self.root,
                "storeAddress": self.address("internal"),
                "haListenHost": host,
                "haListenPort": self.ports["ha"],
                **(replicator or {}),
            },
            "metasync": {
                "brokerRole": role,
                "storePathRootDir": self.root,
                "storeAddress": self.address("internal"),
                "rolePollInterval": 100,
                "metasyncInitialDelay": 100,
                "metasyncInterval": 500,
                **(metasync or {}),
            },
        }
        self.processes = {
            name: ServiceProcess(name, directory, {**common, "grpcPort": self.ports[name], **own[name]}, prefix)
            for name in SERVICES
        }
        self.credentials: grpc.ChannelCredentials | None = None
        """For the replicator's port, where that asks for TLS."""
        self._channels: dict[str, grpc.Channel] = {}

    def address(self, name: str) -> str:
        """host:port of a service, of the store's `internal` port, or of `ha`."""
        return f"{self.host}:{self.ports[name]}"

    @property
    def store(self) -> ServiceProcess:
        """The store's process."""
        return self.processes["store"]

    @property
    def replicator(self) -> ServiceProcess:
        """The replicator's process."""
        return self.processes["replicator"]

    @property
    def metasync(self) -> ServiceProcess:
        """The metasync's process."""
        return self.processes["metasync"]

    def start(self) -> None:
        """Starts what does not run, all at once, and waits until all of it answers."""
        missing = [process for process in self.processes.values() if not process.running]
        for process in missing:
            process.launch()
        for process in missing:
            process.wait_answering()

    def kill(self) -> None:
        """Kills all that runs."""
        for process in self.processes.values():
            process.kill()

    def stop(self) -> None:
        """Ends all that runs, the store last."""
        for process in reversed(self.processes.values()):
            if process.running:
                assert process.stop() == 0, process.log.read_text()[-4000:]

    def close(self) -> None:
        """Kills everything and closes what was opened here."""
        self.kill()
        for channel in self._channels.values():
            channel.close()

    # -- what it says of itself ---------------------------------------------------------------------------------------

    def client(self, timeout: float = 60.0) -> StoreClient:
        """A client of the store; close it."""
        return StoreClient(self.address("store"), timeout=timeout)

    def _channel(self, name: str) -> grpc.Channel:
        if name not in self._channels:
            # A service that was away is to be asked again at once, not after gRPC's own back-off.
            options = [("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 200)]
            if name == "replicator" and self.credentials is not None:
                self._channels[name] = grpc.secure_channel(self.address(name), self.credentials, options=options)
            else:
                self._channels[name] = grpc.insecure_channel(self.address(name), options=options)
        return self._channels[name]

    def replication(self) -> ReplicationStub:
        """Stub of the replicator."""
        return ReplicationStub(self._channel("replicator"))

    def replica_log(self) -> ReplicaLogStub:
        """Stub of the store's internal port."""
        return ReplicaLogStub(self._channel("internal"))

    def status(self) -> replication_pb2.StatusResponse | None:
        """What the replicator says, or None while it does not answer."""
        try:
            return self.replication().Status(replication_pb2.StatusRequest(), timeout=30)
        except grpc.RpcError:
            return None

    def role(self) -> replica_log_pb2.RoleState:
        """What the store says of its role and its log."""
        return self.replica_log().GetRole(replica_log_pb2.GetRoleRequest(), timeout=60, wait_for_ready=True)

    def files(self) -> list[Path]:
        """The log's files, oldest first."""
        return sorted(path for path in (self.root / "commitlog").iterdir() if path.name.isdigit())


def slave_of(
    master: Node,
    directory: Path,
    broker_id: int,
    *,
    ha_through: str = "",
    store: Mapping[str, object] | None = None,
    replicator: Mapping[str, object] | None = None,
    host: str = "127.0.0.1",
    prefix: tuple[str, ...] = (),
) -> Node:
    """A node that will follow `master`. `ha_through`: where it finds the master's HA port, if not directly."""
    follow = {
        "haMasterAddress": ha_through or master.ha_address,
        "haMasterReplicatorAddress": master.address("replicator"),
    }
    return Node(
        directory,
        broker_id,
        "SLAVE",
        store=store,
        replicator={**follow, **(replicator or {})},
        metasync={"metasyncMasterAddress": master.address("metasync")},
        host=host,
        prefix=prefix,
    )


class Pair:
    """A master and its slave. `ha_through`: where the slave finds the master's HA port (a proxy), if not directly."""

    def __init__(
        self,
        directory: Path,
        role: str = "SYNC_MASTER",
        *,
        ha_through: str | Callable[[str], str] = "",
        store: Mapping[str, object] | None = None,
        replicator: Mapping[str, object] | None = None,
        slave_replicator: Mapping[str, object] | None = None,
        slave_store: Mapping[str, object] | None = None,
        hosts: tuple[str, str] = ("127.0.0.1", "127.0.0.1"),
        prefixes: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    ) -> None:
        """`hosts`, `prefixes`: where the nodes are, and what starts a process there, if not on this one."""
        self.master = Node(
            directory / "a", 0, role, store=store, replicator=replicator, host=hosts[0], prefix=prefixes[0]
        )
        if callable(ha_through):
            ha_through = ha_through(self.master.ha_address)
        self.slave = slave_of(
            self.master,
            directory / "b",
            1,
            ha_through=ha_through,
            store={**(store or {}), **(slave_store or {})},
            replicator={**(replicator or {}), **(slave_replicator or {})},
            host=hosts[1],
            prefix=prefixes[1],
        )

    @property
    def nodes(self) -> tuple[Node, Node]:
        """Both."""
        return self.master, self.slave

    def processes(self) -> Iterator[tuple[str, ServiceProcess]]:
        """All six by name: `master store`, ..."""
        for name, node in (("master", self.master), ("slave", self.slave)):
            for service, process in node.processes.items():
                yield f"{name} {service}", process

    def __enter__(self) -> Self:
        try:
            for node in self.nodes:
                for process in node.processes.values():
                    process.launch()
            self.heal()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kills everything."""
        for node in self.nodes:
            node.close()

    # -- waiting ------------------------------------------------------------------------------------------------------

    def heal(self, seconds: float = LEVEL_SECONDS) -> float:
        """Starts what is dead and waits until the slave follows and is level; the seconds it took."""
        begun = time.monotonic()
        for node in self.nodes:
            for process in node.processes.values():
                if not process.running:
                    process.launch()
        for node in self.nodes:
            for process in node.processes.values():
                process.wait_answering()
        self.wait_following(seconds)
        self.wait_level(seconds)
        return time.monotonic() - begun

    def following(self) -> bool:
        """Whether the slave takes what its master sends, and the master counts it."""
        slave, master = self.slave.status(), self.master.status()
        if slave is None or master is None:
            return False
        return slave.follower.state == FOLLOWING and master.in_sync >= 1

    def wait_following(self, seconds: float = LEVEL_SECONDS) -> None:
        """Waits until the slave follows."""
        until(self.following, seconds, lambda: f"the slave follows; {self.describe()}")

    def level(self) -> bool:
        """Whether both logs end at the same place, and the master knows."""
        master, slave = self.master.role(), self.slave.role()
        status = self.master.status()
        acked = max((replica.acked_offset for replica in status.replicas), default=0) if status else -1
        return master.max_offset == slave.max_offset <= acked

    def wait_level(self, seconds: float = LEVEL_SECONDS) -> None:
        """Waits until the slave has everything. Nobody may be sending."""
        until(self.level, seconds, lambda: f"the logs are level; {self.describe()}")

    def wait_refused(self, seconds: float = LEVEL_SECONDS) -> str:
        """Waits until the slave refuses to follow; gives why."""
        until(lambda: self.follower().state == REFUSED, seconds, lambda: f"the slave refuses; {self.describe()}")
        return self.follower().problem

    def follower(self) -> replication_pb2.FollowerStatus:
        """How the slave follows; empty while its replicator does not answer."""
        status = self.slave.status()
        return replication_pb2.FollowerStatus() if status is None else status.follower

    def slave_knows(self, topic: str) -> bool:
        """Whether the slave's store has the topic."""
        with self.slave.client() as client:
            return any(one.topic == topic for one in client.queues().topics)

    def describe(self) -> str:
        """Both replicators' views, for a failure."""
        lines = []
        for name, node in (("master", self.master), ("slave", self.slave)):
            lines.append(f"-- {name}: {node.status()}")
            for service, process in node.processes.items():
                tail = process.log.read_text()[-1200:] if process.log.exists() else ""
                lines.append(f"-- {name} {service} (running: {process.running}):\n{tail}")
        return "\n".join(lines)


@contextmanager
def stopped(pair: Pair) -> Iterator[None]:
    """Both nodes ended cleanly, to look at their files; nothing is started again."""
    pair.wait_level()
    for node in pair.nodes:
        node.stop()
    yield
