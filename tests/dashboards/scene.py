"""What the dashboards are looked at with: a pair of nodes and an admin under a Prometheus, with traffic and mishaps."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import grpc
import pytest

from tandemmq.admin.v1 import admin_pb2
from tandemmq.admin.v1.admin_pb2_grpc import AdminStub
from tandemmq.client import RequestFailed, StoreClient
from tandemmq.delivery.v1 import delivery_pb2, operations_pb2
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.delivery.v1.operations_pb2_grpc import OperationsStub
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tandemmq.store.format.audit_result import NAME as AUDIT
from tandemmq.store.format.audit_result import AuditResult
from tests.dashboards.prometheus import SCRAPE_SECONDS, Prometheus
from tests.faults.pair import Node, Pair
from tests.faults.pair_process import ServiceProcess, free_port, until

NODES = ("a", "b")
OF_THE_MACHINE = {"TandemDiskFilling", "TandemDiskFullSoon", "TandemFlushSlow", "TandemSendLatencyHigh"}
"""Alerts that tell how full and how slow the machine is on which the test runs."""

PATIENCE = 100
"""Seconds."""

HOOK = "quiet"

TOPIC, GROUP = "orders", "billing"
_PORTS = {"store": 9101, "replicator": 9102, "metasync": 9103}


class Scene:
    """The pair, the admin, the Prometheus that scrapes them."""

    def __init__(self, directory: Path) -> None:
        """Nothing runs before `running`."""
        self.pair = Pair(directory / "pair", "SYNC_MASTER")
        self.addresses: dict[str, str] = {}
        """By target of prometheus.yml."""
        for name, node in zip(NODES, self.pair.nodes, strict=True):
            for service, process in node.processes.items():
                process.settings["metricsPort"] = free_port()
                self.addresses[f"{name}-{service}:{_PORTS[service]}"] = f"127.0.0.1:{process.settings['metricsPort']}"
        metrics_port = free_port()
        self.addresses["admin:9104"] = f"127.0.0.1:{metrics_port}"
        names_port, names_metrics = free_port(), free_port()
        self.addresses["names:9106"] = f"127.0.0.1:{names_metrics}"
        own = {
            "namesPort": names_port,
            "namesDirectory": directory / "names",
            "grpcPort": 0,
            "metricsPort": names_metrics,
        }
        self.names = ServiceProcess("naming", directory / "names", own)
        for node in self.pair.nodes:
            ports = {"remotingMode": "on", "listenPort": free_port(), "brokerIP1": "127.0.0.1"}
            node.store.settings.update({**ports, "namesrvAddr": f"127.0.0.1:{names_port}", "hooks": HOOK})
        self._hook = write_hook(directory / "hook")
        self.admin = ServiceProcess("admin", directory / "admin", self._admin_settings(directory, metrics_port))
        self.prometheus = Prometheus(directory / "prometheus", self.addresses)
        self.gateway = self._gateway(directory)
        self.alerts_in_health: dict[str, str] = {}
        """State of each alert rule after the quiet part of `live`."""

    def _admin_settings(self, directory: Path, metrics_port: int) -> dict[str, object]:
        nodes = (
            f"{name}={node.address('store')};metasync={node.address('metasync')};replicator={node.address('replicator')}"
            for name, node in zip(NODES, self.pair.nodes, strict=True)
        )
        return {
            "adminNodes": ",".join(nodes),
            "adminDirectory": directory / "admin",
            "adminCollectInterval": 300,
            "brokerClusterName": "faults",
            "consolePort": free_port(),
            "grpcPort": free_port(),
            "metricsPort": metrics_port,
            "shutdownGraceMs": 500,
        }

    def _gateway(self, directory: Path) -> ServiceProcess:
        """A gateway before the pair, where Prometheus finds it by a file."""
        metrics_port = free_port()
        listed = directory / "prometheus" / "gateways" / "scene.yml"
        listed.parent.mkdir()
        listed.write_text(f"- targets: [127.0.0.1:{metrics_port}]\n  labels: {{node: gateway, service: gateway}}\n")
        settings = {
            "brokers": "pair=" + ",".join(node.address("internal") for node in self.pair.nodes),
            "brokerClusterName": "faults",
            "grpcPort": free_port(),
            "metricsPort": metrics_port,
        }
        return ServiceProcess("gateway", directory / "gateway", settings)

    @contextmanager
    def running(self) -> Iterator["Scene"]:
        """Everything runs within this."""
        ended = threading.Event()
        beating = threading.Thread(target=self.beat, args=(ended,))
        with self._beside(), self.prometheus, self.pair:
            try:
                self.admin.start()
                beating.start()
                self.gateway.start()
                yield self
            finally:
                self.gateway.kill()
                ended.set()
                if beating.ident is not None:
                    beating.join()
                self.admin.kill()

    @contextmanager
    def _beside(self) -> Iterator[None]:
        """The name server runs, and stores find their hook."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(self._hook), prepend=os.pathsep)
            try:
                self.names.start()
                yield
            finally:
                self.names.kill()

    def live(self) -> None:
        """Traffic in health, whose alerts are remembered; then mishaps, so that no panel is empty by nature."""
        until(self._delivers, PATIENCE, "the master gives out messages")
        self.delay()
        self.exchange()
        until(self._level, PATIENCE, "the slave has everything, and Prometheus has seen it")
        self.wait_scraped()
        with suppress(AssertionError):  # a test tells which are raised for good
            until(self._is_quiet, PATIENCE, "no alert is raised")
        self.fail()
        self.act()
        self.audit()
        self.lose_the_slaves_replicator()
        self.exchange()
        self.wait_scraped()

    def _delivers(self) -> bool:
        """It is the master, and its journal is read and replicated."""
        with grpc.insecure_channel(self.pair.master.address("store")) as channel, suppress(grpc.RpcError):
            OperationsStub(channel).ViewWaiting(operations_pb2.ViewWaitingRequest(), timeout=PATIENCE)
            return True
        return False

    def _level(self) -> bool:
        slave = "on (instance) tandem_metadata_master == 0"
        copied = self.prometheus.query(f"tandem_metadata_sync_age_seconds >= 0 and {slave}")
        lagging = self.prometheus.query("rocketmq_consumer_lag_messages")
        return len(copied) == 4 and bool(lagging) and not self.prometheus.query("up == 0")

    def _is_quiet(self) -> bool:
        """Looks at the alerts. One scrape that comes late on a busy machine is trouble too, and passes."""
        self.alerts_in_health = {rule["name"]: rule["state"] for rule in self.prometheus.rules()}
        return self.raised_in_health() <= OF_THE_MACHINE

    def raised_in_health(self) -> set[str]:
        """Alerts that were not inactive then."""
        return {name for name, state in self.alerts_in_health.items() if state != "inactive"}

    def exchange(self) -> None:
        """Messages are sent and pulled, offsets committed on both nodes."""
        for _ in range(3):
            with self.pair.master.client() as client:
                for at in range(20):
                    client.send(TOPIC, b"x" * 100, queue_id=0, keys=(f"k{at}",))
                pulled = client.pull(TOPIC, 0, 0, group=GROUP, max_messages=10)
                assert pulled.records
                self.end_transactions(client)
                client.pull(TOPIC, 0, 1_000_000, group=GROUP, wait_seconds=0.2)
            commit(self.pair.master, 10)
            time.sleep(SCRAPE_SECONDS)

    def end_transactions(self, client: StoreClient) -> None:
        """One is committed, one rolled back, one left alone."""
        half = {"TRAN_MSG": "true", "PGROUP": "transactions"}
        keys = [client.send(TOPIC, b"x", properties=half).unique_key for _ in range(3)]
        with grpc.insecure_channel(self.pair.master.address("store")) as channel:
            for key, ending in zip(keys, (delivery_pb2.COMMIT, delivery_pb2.ROLLBACK), strict=False):
                request = delivery_pb2.EndTransactionRequest(topic=TOPIC, handle=key, ending=ending)
                DeliveryStub(channel).EndTransaction(request, timeout=PATIENCE)

    def delay(self) -> None:
        """Messages wait for their time."""
        with self.pair.master.client() as client:
            client.send(TOPIC, b"x", properties={"TIMER_DELAY_SEC": "3600"})
            client.send(TOPIC, b"x", properties={"DELAY": "18"})

    def beat(self, ended: threading.Event) -> None:
        """A consumer and a producer live as long as everything runs; the store may be away."""
        request = delivery_pb2.HeartbeatRequest(client_id="one", language="PYTHON", version="1")
        request.memberships.add(group=GROUP).subscriptions[TOPIC].expression = "*"
        request.memberships.add(group="transactions", producer=True)
        with grpc.insecure_channel(self.pair.master.address("store")) as channel:
            while not ended.wait(2):
                with suppress(grpc.RpcError):
                    DeliveryStub(channel).Heartbeat(request, timeout=PATIENCE)

    def fail(self) -> None:
        """Calls that are refused."""
        with self.pair.master.client() as client:
            for _ in range(3):
                with suppress(RequestFailed):
                    client.send(TOPIC, b"x", queue_id=99)

    def act(self) -> None:
        """Somebody makes a topic through admin."""
        config = metadata_pb2.TopicConfig(name="payments", read_queues=2, write_queues=2)
        with grpc.insecure_channel(f"127.0.0.1:{self.admin.settings['grpcPort']}") as channel:
            AdminStub(channel).PutTopic(admin_pb2.PutTopicRequest(config=config), timeout=PATIENCE)
        self.give_up()

    def give_up(self) -> None:
        """The group makes a message a dead letter."""
        with grpc.insecure_channel(self.pair.master.address("store")) as channel:
            stub = DeliveryStub(channel)
            wish = delivery_pb2.ReceiveRequest(group=GROUP, topic=TOPIC, max_messages=1, wait_ms=10_000)
            handles = [one.handle for one in stub.Receive(wish, timeout=PATIENCE).messages]
            assert handles
            request = delivery_pb2.ForwardToDeadLettersRequest(group=GROUP, topic=TOPIC, handles=handles)
            stub.ForwardToDeadLetters(request, timeout=PATIENCE)

    def audit(self) -> None:
        """An audit of the master finds something; what one of the slave has left is damaged."""
        found = AuditResult(int(time.time() * 1000), 0, 1_000, {"unit-wrong": 2}, {"unit-expired": 3})
        (self.pair.master.root / AUDIT).write_bytes(found.encode())
        (self.pair.slave.root / AUDIT).write_bytes(b"{}")

    def lose_the_slaves_replicator(self) -> None:
        """It is killed and comes back; offsets are committed on its node meanwhile."""
        replicator = self.pair.slave.replicator
        replicator.kill()
        commit(self.pair.slave, 11)
        down = 'up{node="b",service="replicator"} == 0'
        until(lambda: self.prometheus.query(down), PATIENCE, "Prometheus has seen the kill")
        self.pair.heal()

    def wait_scraped(self) -> None:
        """Waits until each target was scraped twice from now on, and the rules evaluated on that."""
        begun = time.time() + SCRAPE_SECONDS
        until(lambda: self._scraped_since(begun), PATIENCE, "everything is scraped")
        scraped = time.time()
        until(lambda: self._evaluated_since(scraped), PATIENCE, "the rules are evaluated")

    def _scraped_since(self, begun: float) -> bool:
        return all(float(series["value"][1]) > begun for series in self.prometheus.query("timestamp(up)"))

    def _evaluated_since(self, begun: float) -> bool:
        groups = self.prometheus.get("rules")["groups"]
        return all(datetime.fromisoformat(group["lastEvaluation"]).timestamp() > begun for group in groups)


def write_hook(directory: Path) -> Path:
    """A hook that does nothing, as an installed package."""
    described = directory / "scene_hook-1.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: scene-hook\nVersion: 1\n")
    (described / "entry_points.txt").write_text(f"[tandemmq.hooks]\n{HOOK} = scene_hook:SceneHook\n")
    methods = ("before_send", "after_send")
    text = "".join(f"    def {name}(self, context): pass\n" for name in methods)
    (directory / "scene_hook.py").write_text(f"class SceneHook:\n{text}")
    return directory


def commit(node: Node, offset: int) -> None:
    """The group commits an offset on a node."""
    one = metadata_pb2.OffsetCommit(topic=TOPIC, group=GROUP, queue_id=0, offset=offset)
    with grpc.insecure_channel(node.address("metasync")) as channel:
        MetadataStub(channel).CommitOffsets(metadata_pb2.CommitOffsetsRequest(commits=[one]), timeout=PATIENCE)
