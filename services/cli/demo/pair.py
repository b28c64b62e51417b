"""Two nodes as `tandem up --slave --processes` runs them: who runs where, who died, who came back."""

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandemmq.cli.demo.child import DemoCommand
from tandemmq.cli.talk.failures import CommandFailed
from tandemmq.node.plan import FIRST, SECOND

if TYPE_CHECKING:
    from tandemmq.replication.v1.replication_pb2 import StatusResponse

SERVICES = ("store", "metasync", "replicator")
MASTER, SLAVE = NODES = (FIRST, SECOND)
"""Nobody is promoted in a demo: they stay what they begin as."""

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
        arguments = ("up", "--slave", "--no-admin", "--processes", "--json", "--data", str(directory))
        self._command = DemoCommand(*arguments, "--port", str(_port()), heard=self._hear)
        self._served: dict[Which, list[dict[str, Any]]] = {(node, one): [] for node in NODES for one in SERVICES}
        self._up: dict[str, Any] = {}
        self.start_seconds = 0.0
        """From the start of the first process until all six served."""

    def start(self) -> None:
        """Start both nodes and wait until all their services serve. Raises CommandFailed with what they said."""
        begun = time.perf_counter()
        self._command.start()
        if not self._command.wait(lambda: bool(self._up), _START_SECONDS):
            raise CommandFailed(f"the nodes did not start: {self._command.last_words}")
        self.start_seconds = time.perf_counter() - begun

    def address(self, node: str, what: str) -> str:
        """Where a service of a node answers; `what` may be "ha" too."""
        return str(next(one[what] for one in self._up["nodes"] if one["node"] == node))

    def serving(self, node: str, service: str) -> dict[str, Any]:
        """What a service said when it began to serve the last time."""
        return self._served[node, service][-1]

    def kill(self, node: str, service: str) -> int:
        """Kill a service with SIGKILL; gives how often it had begun to serve before, for `wait_until_back`."""
        lives = self._served[node, service]
        before = len(lives)
        os.kill(lives[before - 1]["pid"], signal.SIGKILL)
        return before

    def wait_until_back(self, node: str, service: str, lives: int) -> None:
        """Wait until a service that was killed serves again. Raises CommandFailed."""
        if not self._command.wait(lambda: len(self._served[node, service]) > lives, _BACK_SECONDS):
            raise CommandFailed(f"{node} {service} did not come back: {self._command.last_words}")

    def wait_until_in_sync(self) -> int:
        """Wait until the slave has acknowledged all that its master has; gives the end of the log.

        Raises CommandFailed with what both say of it.
        """
        until = time.monotonic() + _SYNC_SECONDS
        told = ""
        while time.monotonic() < until and not self._command.has_ended:
            master, slave = self._status(MASTER), self._status(SLAVE)
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
        return self._command.stop(_STOP_SECONDS)

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

    def _hear(self, event: dict[str, Any]) -> None:
        """An event of the supervisor."""
        if event["event"] == "serving":
            self._served[event["node"], event["service"]].append(event)
        elif event["event"] == "up":
            self._up = event


def _port() -> int:
    """The usual base of ports where all of them are free for two nodes, else 0: any."""
    from tandemmq.node.errors import PortTaken
    from tandemmq.node.ports import DEFAULT_BASE, NODE_STEP, Ports, check_free

    try:
        check_free({MASTER: Ports.from_base(DEFAULT_BASE), SLAVE: Ports.from_base(DEFAULT_BASE + NODE_STEP)})
    except PortTaken:
        return 0
    return DEFAULT_BASE
