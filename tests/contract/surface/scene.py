"""All services of a node and an admin beside them, each a process, with something in them; and nodes to be spoilt."""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from tandemmq.client import StoreClient
from tandemmq.store.log.config import StoreConfig
from tests.admin_process import AdminProcess, lone_node, running
from tests.contract.rocketmq5.answering_consumer import AnsweringConsumer
from tests.contract.surface.reflected import Port
from tests.faults.pair import SMALL, Node
from tests.faults.pair_process import ServiceProcess, until
from tests.unit.log.staging_kit import stage

HEALTH = "grpc.health.v1.Health"
REFLECTION = "grpc.reflection.v1alpha.ServerReflection"
NODE = "tandemmq.node.v1.Node"

PORTS: dict[str, list[str]] = {
    "store": [
        HEALTH,
        REFLECTION,
        "tandemmq.delivery.v1.Delivery",
        "tandemmq.delivery.v1.Operations",
        NODE,
        "tandemmq.store.v1.Store",
    ],
    "internal": [
        HEALTH,
        REFLECTION,
        "tandemmq.broker.v1.Broker",
        NODE,
        "tandemmq.store.v1.DerivedFiles",
        "tandemmq.store.v1.LogRepair",
        "tandemmq.store.v1.ReplicaLog",
    ],
    "replicator": [
        HEALTH,
        REFLECTION,
        NODE,
        "tandemmq.replication.v1.Healing",
        "tandemmq.replication.v1.Replication",
    ],
    "metasync": [HEALTH, REFLECTION, "tandemmq.metadata.v1.Metadata", NODE],
    "admin": [HEALTH, REFLECTION, "tandemmq.admin.v1.Admin", NODE],
}
"""What each port serves, in the order of names."""

METADATA = "/tandemmq.metadata.v1.Metadata"
STORE = "/tandemmq.store.v1.Store"
RECEIVED = "received"
"""The topic that is received from: whoever has received a message has it for himself."""


class Entry(NamedTuple):
    """A method in requests.json."""

    path: str
    request: dict[str, Any]
    """One that is answered. `$name` stands for a value that only the running services know."""
    changes: bool | str
    """It is there to change something: what it refuses is looked at call by call. `always`: the contract says that it
    may note something of a request that it refuses; or making a good request (sending what is to be received) does.
    """
    waits: bool
    """It may wait for more, as long as the caller does."""
    on: str
    """`node`, the one that all tests share; `slave`, `store`: the throw-away ones below."""
    alone: bool
    """Hostile values are not mixed with the good request: what would be accepted costs too much."""


def table() -> dict[str, Entry]:
    """All entries by path, in the order of the file."""
    entries = json.loads(Path(__file__).with_name("requests.json").read_text())
    return {
        path: Entry(
            path,
            one.pop("request"),
            one.pop("changes", False),
            one.pop("waits", False),
            one.pop("on", "node"),
            one.pop("alone", False),
            *one,  # a word that is none of these is an error
        )
        for path, one in entries.items()
    }


def places(on: str) -> list[tuple[str, str]]:
    """(port, path) of every method that is called there."""
    return [
        (port, path)
        for port, services in PORTS.items()
        for path, entry in table().items()
        if entry.on == on and path.split("/")[1] in services
    ]


class Scene:
    """Ports of running services, and what good requests need of them."""

    def __init__(self, processes: list[ServiceProcess], addresses: dict[str, str], logs: list[Path]) -> None:
        self.processes = processes
        self.logs = dict.fromkeys(logs, 0)
        """And how much of each was looked at."""
        self.metrics: dict[str, int] = {}
        """Ports of the services' metrics."""
        self.values: dict[str, Callable[[], Any]] = {}
        """By the names that requests.json has for them."""
        self.answering: AnsweringConsumer | None = None
        self.ports = {name: Port(address) for name, address in addresses.items()}

    def close(self) -> None:
        """Ends the connections."""
        if self.answering is not None:
            self.answering.close()
        for port in self.ports.values():
            port.close()

    def asked(self) -> str:
        """The id of a client that answers."""
        if self.answering is None:
            self.answering = AnsweringConsumer(self.ports["store"].address, "readers", RECEIVED)
        return self.answering.alive()

    def good(self, port: str, path: str) -> Message:
        """The request of the table; no job is in the way of the one that it may start."""
        if path.endswith("/StartJob"):
            for job in self.ports[port].ask("/tandemmq.admin.v1.Admin/ListJobs").jobs:
                self.ports[port].ask("/tandemmq.admin.v1.Admin/CancelJob", id=job.id)
        return self.ports[port].message(path, self._filled(table()[path].request))

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._filled(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._filled(one) for one in value]
        return self.values[value[1:]]() if isinstance(value, str) and value.startswith("$") else value

    def job(self) -> str:
        """The id of a job; one is started if none ever was."""
        admin = self.ports["admin"]
        jobs = admin.ask("/tandemmq.admin.v1.Admin/ListJobs").jobs
        job = jobs[0] if jobs else admin.ask("/tandemmq.admin.v1.Admin/StartJob", kind="AUDIT", node="one")
        return str(job.id)

    def identity(self) -> dict[str, Any]:
        """Whose log it is."""
        role = self.ports["internal"].ask("/tandemmq.store.v1.ReplicaLog/GetRole")
        return MessageToDict(role.identity)

    def log_end(self) -> str:
        """Where the store's log ends now."""
        return str(self.ports["internal"].ask("/tandemmq.store.v1.ReplicaLog/GetRole").max_offset)

    def sent(self) -> str:
        """The topic of a message that nobody has received yet."""
        message = {"topic": RECEIVED, "body": "eA==", "tag": "A"}
        self.ports["store"].ask(f"{STORE}/Send", message=message)
        return RECEIVED

    def held(self) -> str:
        """The handle of a message that was just received."""
        path = "/tandemmq.delivery.v1.Delivery/Receive"
        answer = self.ports["store"].ask(path, group="readers", topic=self.sent(), maxMessages=1, waitMs=10_000)
        return str(answer.messages[0].handle)

    def special(self, handle: str, **properties: str) -> str:
        """The handle that a message with such properties gets in its receipt."""
        message = {"topic": "specials", "body": "eA==", "properties": properties}
        return str(getattr(self.ports["store"].ask(f"{STORE}/Send", message=message).receipt, handle))

    def state(self) -> dict[str, Any]:
        """What only an accepted call may change: tables, ends of queues, role, jobs; of services that are there.

        The store goes on by itself with what it was given: it writes facts, delivers what was delayed, and tells the
        metadata service how far groups are. All of that leaves the topic `surface` and these tables alone.
        """
        seen: dict[str, Any] = {}
        if "metasync" in self.ports:
            for table_name in ("TOPICS", "SUBSCRIPTION_GROUPS"):
                seen[table_name] = self._pages(table_name)
        if "internal" in self.ports:
            role = self.ports["internal"].ask("/tandemmq.store.v1.ReplicaLog/GetRole")
            seen["role"] = (role.identity, role.min_offset, list(role.epochs))
        if "store" in self.ports:
            topics = self.ports["store"].ask(f"{STORE}/ListQueues").topics
            seen["queues"] = [topic for topic in topics if topic.topic == "surface"]
        if "admin" in self.ports:
            jobs = self.ports["admin"].ask("/tandemmq.admin.v1.Admin/ListJobs").jobs
            seen["jobs"] = [job.id for job in jobs]
        return seen

    def arrive(self, path: str, request: Message | bytes) -> None:
        """Wait until what was made at the store is in the metadata service: it is handed on after the answer."""
        made = {"CreateTopic": ("TOPICS", "topics"), "CreateGroup": ("SUBSCRIPTION_GROUPS", "groups")}
        found = made.get(path.rpartition("/")[2])
        if found is None or "metasync" not in self.ports or isinstance(request, bytes):
            return
        table_name, field = found
        name: str = request.config.name  # type: ignore[attr-defined]

        def there() -> bool:
            return any(name == one.name for page in self._pages(table_name) for one in getattr(page, field))

        until(there, 60, f"{name} is in {table_name}")

    def _pages(self, table_name: str) -> list[Any]:
        port = self.ports["metasync"]
        request = port.message(f"{METADATA}/GetTable", {"table": table_name})
        return list(port.call(f"{METADATA}/GetTable", [request], most=10_000).answers)

    def check_alive(self, *, roles_change: bool = False) -> None:
        """Fails when a process has died, does not serve, or has said that it did not expect a call.

        `roles_change`: health may say NOT_SERVING while a node takes on the role that it was just given.
        """
        for process in self.processes:
            assert process.running, process.log.read_text()[-4_000:]
        for name, port in self.ports.items():
            if roles_change:
                until(port.serving, 60, f"{name} serves in its new role")
            assert port.serving(), name
        for log, seen in self.logs.items():
            with log.open() as file:
                file.seek(seen)
                lines = [line for line in file if "call failed" in line or "Traceback" in line]
                self.logs[log] = file.tell()
            assert not lines, f"{log.name}:\n" + "\n".join(lines[:3])


@contextmanager
def whole_node(directory: Path) -> Iterator[Scene]:
    """A broker with all its services and an admin, a topic `surface` with messages, a group `readers`."""
    node = lone_node(directory / "alpha", "alpha")
    admin = AdminProcess(directory / "admin", {"one": node}, files=True)
    with running(node), admin:
        addresses = {name: node.address(name) for name in ("store", "internal", "replicator", "metasync")}
        logs = [*(process.log for process in node.processes.values()), admin.log]
        scene = Scene(list(node.processes.values()), {**addresses, "admin": admin.address}, logs)
        try:
            scene.metrics = {**_metrics_ports(scene.processes), "admin": admin.metrics_port}
            _furnish(scene, node)
            until(lambda: all(port.serving() for port in scene.ports.values()), 60, "all ports serve")
            yield scene
            assert admin.process is not None
            assert admin.process.poll() is None, "admin has died"
        finally:
            scene.close()


def _metrics_ports(processes: list[ServiceProcess]) -> dict[str, int]:
    listening = {one.service: next(said for said in one.events() if said["event"] == "listening") for one in processes}
    return {service: said["metrics_port"] for service, said in listening.items()}


def _furnish(scene: Scene, node: Node) -> None:
    metasync = scene.ports["metasync"]
    for what, name in (
        ("Topics", RECEIVED),
        ("Topics", "surface"),
        ("Topics", "gone-topic"),
        ("Topics", "%DLQ%readers"),
    ):
        metasync.ask(f"{METADATA}/Put{what}", topics=[{"name": name, "readQueues": 2, "writeQueues": 2}])
    metasync.ask(f"{METADATA}/PutGroups", groups=[{"name": "readers"}, {"name": "gone-group"}])
    with node.client() as client:
        receipts = [client.send("surface", b"%d" % at, tag="A", keys=["k"], queue_id=0) for at in range(5)]
        commits = [{"topic": "surface", "group": "readers", "queueId": 0, "offset": "1"}]
        metasync.ask(f"{METADATA}/CommitOffsets", commits=commits)
        stage(_config(node), _dispatched(client))
        _use_once(scene)
    rot = Rot(scene, node, receipts[2].physical_offset, receipts[3].physical_offset)
    scene.values = {
        "message_id": lambda: receipts[0].message_id,
        "job": scene.job,
        "asked": scene.asked,
        "identity": scene.identity,
        "sent": scene.sent,
        "held": scene.held,
        "half": lambda: scene.special("transaction_handle", TRAN_MSG="true", PGROUP="writers"),
        "timed": lambda: scene.special("recall_handle", TIMER_DELAY_SEC="86400"),
        "first_begin": lambda: str(receipts[0].physical_offset),
        "first_end": lambda: str(receipts[1].physical_offset),
        "log_end": scene.log_end,
        "replicator": lambda: node.address("replicator"),
        "rot_begin": rot.begin,
        "rot_end": lambda: str(receipts[3].physical_offset),
        "rot_bytes": lambda: rot.good,
    }


def _use_once(scene: Scene) -> None:
    """The broker makes topics of its own when they are first used: that is over when states are compared."""
    scene.special("transaction_handle", TRAN_MSG="true", PGROUP="writers")
    scene.special("recall_handle", TIMER_DELAY_SEC="86400")
    scene.special("recall_handle", DELAY="3")
    scene.held()


class Rot:
    """A record that is damaged whenever somebody is about to mend it."""

    def __init__(self, scene: Scene, node: Node, begin: int, end: int) -> None:
        self._internal = scene.ports["internal"]
        self._begin, self._end = begin, end
        self._file = node.root / "commitlog" / f"{0:020d}"
        with self._file.open("rb") as file:
            file.seek(begin)
            self.good = base64.b64encode(file.read(end - begin)).decode()

    def begin(self) -> str:
        """Where it begins; it is damaged now, and the store knows."""
        with self._file.open("r+b") as file:
            file.seek(self._begin + 4)
            file.write(b"rot!")
        self._internal.ask(
            "/tandemmq.store.v1.LogRepair/Examine", begin=str(self._begin), end=str(self._end), note=True
        )
        return str(self._begin)


def _dispatched(client: StoreClient) -> int:
    """The log's end, when queues and index have all of it."""
    until(lambda: client.log().dispatched_offset == client.log().max_offset, 60, "all is dispatched")
    return client.log().max_offset


def _config(node: Node) -> StoreConfig:
    return StoreConfig(
        node.root,
        mapped_file_size_commit_log=int(str(SMALL["mappedFileSizeCommitLog"])),
        mapped_file_size_consume_queue=int(str(SMALL["mappedFileSizeConsumeQueue"])),
        max_hash_slot_num=int(str(SMALL["maxHashSlotNum"])),
        max_index_num=int(str(SMALL["maxIndexNum"])),
    )


@contextmanager
def throw_away(directory: Path, kind: str, log_bytes: str) -> Iterator[Scene]:
    """A slave without a master, for what changes roles: its store (`store`), with replicator and admin (`slave`).

    `log_bytes`: records that begin a log, in base64.
    """
    nobody = "127.0.0.1:1"
    follow = {"haMasterAddress": nobody, "haMasterReplicatorAddress": nobody}
    node = Node(directory / kind, 1, "SLAVE", store={"metasyncAddress": ""}, replicator=follow)
    names = {"store": ["internal"], "slave": ["internal", "replicator"]}[kind]
    processes = [node.store, node.replicator][: len(names)]
    with ExitStack() as stack:
        stack.callback(node.close)
        for process in processes:
            process.launch()
        for process in processes:
            process.wait_answering()
        addresses, logs = {name: node.address(name) for name in names}, [one.log for one in processes]
        metrics = _metrics_ports(processes)
        if kind == "slave":
            admin = stack.enter_context(AdminProcess(directory / "admin", {"one": node}))
            addresses["admin"], metrics["admin"] = admin.address, admin.metrics_port
            logs.append(admin.log)
        scene = Scene(processes, addresses, logs)
        try:
            scene.metrics = metrics
            scene.values = {"log_bytes": lambda: log_bytes, "log_end": scene.log_end}
            until(lambda: all(port.serving() for port in scene.ports.values()), 60, "all ports serve")
            yield scene
        finally:
            scene.close()
