"""Two nodes as `tandem up --slave` runs them: who runs where, who died, who came back."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandemmq.cli.demo.child import last_words, own_environment
from tandemmq.cli.talk.failures import CommandFailed

if TYPE_CHECKING:
    from tandemmq.replication.v1.replication_pb2 import StatusResponse

SERVICES = ("store", "metasync", "replicator")
NODES = ("master", "slave")

_START_SECONDS = 60.0
_BACK_SECONDS = 30.0
_SYNC_SECONDS = 30.0
_STOP_SECONDS = 60.0
_POLL_SECONDS = 0.02

Which = tuple[str, str]
"""A service: node and name."""


class PairProcess:
    """The supervisor of two nodes in a child process, on the usual ports where they are free, else on any."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: subprocess.Popen[str] | None = None
        self._log = tempfile.NamedTemporaryFile("w+", prefix="tandem-up-", suffix=".log")  # noqa: SIM115
        self._changed = threading.Condition()
        self._served: dict[Which, list[dict[str, Any]]] = {(node, one): [] for node in NODES for one in SERVICES}
        self._up: dict[str, Any] = {}
        self._has_ended = False
        self.start_seconds = 0.0
        """From the start of the first process until all six served."""

    def start(self) -> None:
        """Start both nodes and wait until all their services serve. Raises CommandFailed with what they said."""
        from tandemmq.common.child_process import ending_with_us

        begun = time.perf_counter()
        command = [sys.executable, "-m", "tandemmq.cli.main", "up", "--slave", "--no-admin", "--json"]
        self._process = subprocess.Popen(
            [*command, "--data", str(self._directory), "--port", str(_port())],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=ending_with_us(own_environment()),
            start_new_session=True,  # Ctrl-C is for the demo, which then stops its nodes
        )
        threading.Thread(target=self._listen, daemon=True).start()
        if not self._wait(lambda: bool(self._up), _START_SECONDS):
            raise CommandFailed(f"the nodes did not start: {last_words(Path(self._log.name))}")
        self.start_seconds = time.perf_counter() - begun

    def address(self, node: str, what: str) -> str:
        """Where a service of a node answers; `what` may be "ha" too."""
        return str(next(one[what] for one in self._up["nodes"] if one["node"] == node))

    def serving(self, node: str, service: str) -> dict[str, Any]:
        """What a service said when it began to serve the last time."""
        return self._served[node, service][-1]

    def kill(self, node: str, service: str) -> int:
        """Kill a service with SIGKILL; gives how often it had begun to serve before, for `wait_until_back`."""
        with self._changed:
            lives = len(self._served[node, service])
            os.kill(self.serving(node, service)["pid"], signal.SIGKILL)
        return lives

    def wait_until_back(self, node: str, service: str, lives: int) -> None:
        """Wait until a service that was killed serves again. Raises CommandFailed."""
        if not self._wait(lambda: len(self._served[node, service]) > lives, _BACK_SECONDS):
            raise CommandFailed(f"{node} {service} did not come back: {last_words(Path(self._log.name))}")

    def wait_until_in_sync(self) -> int:
        """Wait until the slave has acknowledged all that its master has; gives the end of the log.

        Raises CommandFailed with what both say of it.
        """
        until = time.monotonic() + _SYNC_SECONDS
        told = ""
        while time.monotonic() < until and not self._has_ended:
            master, slave = self._status("master"), self._status("slave")
            if master is not None and slave is not None:
                end = master.max_offset
                acked = max((one.acked_offset for one in master.replicas if one.connected), default=-1)
                if slave.max_offset == end == acked:
                    return end
                told = f"master at {end:,}, slave at {slave.max_offset:,} {slave.follower.problem}"
            time.sleep(_POLL_SECONDS)
        raise CommandFailed(f"the slave did not catch up in {_SYNC_SECONDS:.0f} s: {told or 'no replicator answers'}")

    def stop(self) -> int:
        """Ask the supervisor to stop; gives its exit code. Does nothing if it runs no more."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        return self._process.returncode

    def _status(self, node: str) -> "StatusResponse | None":
        """What a node's replicator says; None if it does not answer."""
        import grpc

        from tandemmq.replication.v1.replication_pb2 import StatusRequest
        from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub

        try:
            with grpc.insecure_channel(self.address(node, "replicator")) as channel:
                return ReplicationStub(channel).Status(StatusRequest(), timeout=2)
        except grpc.RpcError:
            return None

    def _listen(self) -> None:
        """The supervisor's events, in a thread."""
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            with self._changed:
                if event["event"] == "serving":
                    self._served[event["node"], event["service"]].append(event)
                elif event["event"] == "up":
                    self._up = event
                self._changed.notify_all()
        self._process.stdout.close()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: condition() or self._has_ended, seconds)
            return condition()


def _port() -> int:
    """The usual base of ports where all of them are free for two nodes, else 0: any."""
    from tandemmq.node.errors import PortTaken
    from tandemmq.node.ports import DEFAULT_BASE, NODE_STEP, Ports, check_free

    try:
        check_free({"master": Ports.from_base(DEFAULT_BASE), "slave": Ports.from_base(DEFAULT_BASE + NODE_STEP)})
    except PortTaken:
        return 0
    return DEFAULT_BASE
