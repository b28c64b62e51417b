"""An admin service as a process of its own, beside the real services of its nodes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import grpc
import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.admin.v1.admin_pb2_grpc import AdminStub
from tests.faults.pair import Node
from tests.started import started

START_SECONDS = 240.0

QUICK: dict[str, object] = {"admin_timeout": 20_000, "admin_collect_interval": 200, "shutdown_grace_ms": 500}
"""Settings that make the service do in tenths of a second what takes it seconds."""

LARGEST = 64 << 20


def node_entry(name: str, node: Node, *, files: bool = False) -> str:
    """What `adminNodes` says of a node of the pair harness. `files`: admin sees its directory."""
    services = ";".join(f"{service}={node.address(service)}" for service in ("metasync", "replicator"))
    return f"{name}={node.address('store')};{services}" + (f";files={node.root}" if files else "")


def lone_node(
    directory: Path,
    broker: str = "alpha",
    *,
    store: Mapping[str, object] | None = None,
    replicator: Mapping[str, object] | None = None,
    metasync: Mapping[str, object] | None = None,
) -> Node:
    """A master without a slave, not started: a broker of its own. Settings by RocketMQ's names."""
    node = Node(directory, 0, "ASYNC_MASTER", store=store, replicator=replicator, metasync=metasync)
    for process in node.processes.values():
        process.settings["brokerName"] = broker
    return node


@contextmanager
def running(*nodes: Node) -> Iterator[None]:
    """Nodes that run, and are killed at the end."""
    try:
        processes = [process for node in nodes for process in node.processes.values()]
        for process in processes:
            process.launch()
        for process in processes:
            process.wait_answering()
        yield
    finally:
        for node in nodes:
            node.close()


@contextmanager
def refused(code: str, words: str) -> Iterator[None]:
    """The call in the block must fail with this gRPC code, and say `words`."""
    with pytest.raises(grpc.RpcError) as raised:
        yield
    call = cast(Any, raised.value)
    assert (call.code().name, words in call.details()) == (code, True), f"{call.code().name}: {call.details()}"


class AdminProcess:
    """`python -m tandemmq.admin`. Settings are given as attributes of AdminSettings."""

    module = "tandemmq.admin"

    def __init__(self, directory: Path, nodes: Mapping[str, Node], *, files: bool = False, **settings: object) -> None:
        """`directory`: its own, for actions and jobs; `nodes`: by the names that admin gives them."""
        entries = ",".join(node_entry(name, node, files=files) for name, node in nodes.items())
        self.directory = directory
        self.settings: dict[str, object] = {
            **QUICK, "admin_nodes": entries, "admin_directory": directory, "console_port": 0, **settings,
        }  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None
        self.log = directory.with_name(directory.name + ".admin.log")
        self.address = ""
        self.metrics_port = 0
        self._channel: grpc.Channel | None = None

    def start(self) -> Self:
        """Starts and waits until it serves; fails with its log when it does not."""
        self.launch()
        deadline = time.monotonic() + START_SECONDS
        while not any(event["event"] == "serving" for event in self.events()):
            assert self.process is not None
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"admin did not start:\n{self.log.read_text()}")
            time.sleep(0.01)
        listening = self.event("listening")
        self.address, self.metrics_port = listening["grpc"], listening["metrics_port"]
        return self

    def launch(self) -> subprocess.Popen[bytes]:
        """Starts without waiting."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TANDEM_")}
        environment |= {"TANDEM_GRPC_PORT": "0", "TANDEM_METRICS_PORT": "0", "TANDEM_LOG_FORMAT": "json"}
        environment |= {f"TANDEM_{name.upper()}": str(value) for name, value in self.settings.items()}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen([sys.executable, "-m", self.module], env=environment, stderr=log)
        return self.process

    def events(self) -> list[dict[str, Any]]:
        """What it has logged, line by line."""
        lines = self.log.read_text().splitlines(keepends=True)  # the last one may be half written
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    def event(self, name: str) -> dict[str, Any]:
        """The first of that name that it has logged; fails if there is none."""
        found = next((one for one in self.events() if one["event"] == name), None)
        assert found is not None, f"no {name} in\n{self.log.read_text()}"
        return found

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stops it and gives its exit code."""
        assert self.process is not None
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=START_SECONDS)

    @property
    def stub(self) -> AdminStub:
        """The generated stub; its channel lives as long as the process."""
        if self._channel is None:
            options = [("grpc.max_receive_message_length", LARGEST), ("grpc.use_local_subchannel_pool", 1)]
            self._channel = grpc.insecure_channel(self.address, options=options)
        return AdminStub(self._channel)

    # -- shorthands -------------------------------------------------------------------------------------------------

    def cluster(self) -> pb.Cluster:
        """What GetCluster answers."""
        return self.stub.GetCluster(pb.GetClusterRequest(), timeout=60)

    def node(self, name: str) -> pb.Node:
        """What GetCluster says of one node."""
        return next(node for node in self.cluster().nodes if node.name == name)

    def put_topics(self, names: Iterable[str], *, queues: int = 4) -> None:
        """Creates topics, on every broker."""
        for name in names:
            request = pb.PutTopicRequest()
            request.config.name = name
            request.config.read_queues = request.config.write_queues = queues
            self.stub.PutTopic(request, timeout=60)

    def __enter__(self) -> Self:
        return started(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(signal.SIGKILL)
