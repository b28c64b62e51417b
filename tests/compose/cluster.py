"""The compose project under test, on loopback addresses of its own."""

import json
import os
import random
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tandemmq.client import StoreClient
from tandemmq.common.errors import TandemError
from tests.compose.engine import REPOSITORY, docker
from tests.compose.waiting import PATIENCE, eventually

SERVICES = ("a-metasync", "a-store", "a-replicator", "b-metasync", "b-store", "b-replicator", "names", "admin")
TOPIC = "orders"


class Cluster:
    """One project: `docker compose -p NAME`. The ports are the file's own, on an address that nobody else uses."""

    def __init__(self, compose: Sequence[str], services: Sequence[str], output: Path) -> None:
        self.host = f"127.{random.randint(2, 250)}.{random.randint(2, 250)}.1"
        self.master, self.slave = f"{self.host}:8081", f"{self.host}:8181"
        self.services = services
        self._project = f"tandem-test-{os.getpid()}"
        self._compose = [*compose, "--project-name", self._project]
        self._output = output

    def compose(self, *arguments: str) -> None:
        """A compose command; AssertionError with what it said if it fails."""
        variables = {"TANDEM_PUBLISH": self.host, "TANDEM_ADVERTISED_HOST": self.host, "TANDEM_PROFILE": "embedded"}
        with self._output.open("ab") as output:
            done = subprocess.run(
                [*self._compose, *arguments],
                cwd=REPOSITORY,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
            )
        assert done.returncode == 0, self._output.read_text()[-3000:]

    def up(self) -> float:
        """Seconds from `up` until all are healthy."""
        begin = time.monotonic()
        self.compose("up", "--detach", "--no-build", *self.services)
        eventually(lambda: all(map(self.is_healthy, self.services)), PATIENCE, self.complaints)
        return time.monotonic() - begin

    def containers(self, service: str) -> list[dict[str, Any]]:
        """What the engine knows of a service's containers, the stopped ones too."""
        labels = {"com.docker.compose.project": self._project, "com.docker.compose.service": service}
        filters = [part for name, value in labels.items() for part in ("--filter", f"label={name}={value}")]
        found = docker("ps", "--all", "--quiet", *filters).split()
        return list(json.loads(docker("inspect", *found))) if found else []

    def state(self, service: str) -> dict[str, Any]:
        """State of a service's one container, with its RestartCount."""
        (container,) = self.containers(service)
        return {**container["State"], "RestartCount": container["RestartCount"], "Name": container["Name"].lstrip("/")}

    def is_healthy(self, service: str) -> bool:
        """Whether the engine's health check says so; a service without one is healthy while it runs."""
        state = self.state(service)
        return bool(state["Running"]) and state.get("Health", {"Status": "healthy"})["Status"] == "healthy"

    def kill(self, service: str) -> None:
        """`kill -9` of everything in the container, from inside: unlike `docker kill`, it counts as a crash."""
        name = self.state(service)["Name"]
        subprocess.run(["docker", "exec", name, "sh", "-c", "kill -9 -1"], capture_output=True, check=False)

    def complaints(self) -> str:
        """Who is not healthy, and what they say."""
        ill = [service for service in self.services if not self.is_healthy(service)]
        return "\n".join(f"{service} is not healthy:\n{self.log(service)[-1500:]}" for service in ill)

    def log(self, service: str) -> str:
        """What a service has written."""
        command = ["docker", "logs", self.state(service)["Name"]]
        return subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        ).stdout  # fmt: skip

    def stored(self, address: str) -> list[bytes]:
        """All bodies of the topic in the order of their queue."""
        bodies: list[bytes] = []
        with StoreClient(address) as client:
            offset = 0
            while True:
                pulled = client.pull(TOPIC, 0, offset)
                if not pulled.records:
                    return bodies
                bodies += [bytes(record.body) for record in pulled.records]
                offset = pulled.next_offset


class Producer:
    """Sends numbered messages one after the other, each until it is acknowledged; a context manager."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send_all)
        self.acknowledged: list[bytes] = []
        self.failures = 0

    def __enter__(self) -> "Producer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _send_all(self) -> None:
        with StoreClient(self._address, timeout=60) as client:
            while not self._stop.is_set():
                body = b"message %d" % len(self.acknowledged)
                try:
                    client.send(TOPIC, body, queue_id=0)
                except TandemError:
                    self.failures += 1
                    self._stop.wait(0.1)
                else:
                    self.acknowledged.append(body)
