"""A broker for tests in a container: the image, started by the docker command."""

import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from tandemmq.common.settings import default_ports
from tandemmq.testing.broker import HOST, TemporaryBroker
from tandemmq.testing.errors import BrokerNotStarted

IMAGE = "tandemmq"
LABEL = "tandemmq.testing"
"""Of containers; names of theirs and of their volumes begin with it."""

_IN_CONTAINER = {
    "grpcHost": "0.0.0.0",
    "grpcPort": default_ports.STORE,
    "brokerIP1": HOST,
    "storePathRootDir": "/data/store",
}
_ENDING_WITH_US = (
    "import os, sys; from tandemmq.common.processes.child_process import end_with_parent; "
    "end_with_parent(); os.execvp(sys.argv[1], sys.argv[1:])"
)
"""Becomes the command that follows. When we die that gets SIGTERM, and docker hands it on to the container."""

_numbers = itertools.count(1)


class BrokerContainer(TemporaryBroker):
    """The same broker from an image: for tests of what will be deployed, and where its packages are not wanted.

    The docker command must reach an engine of this machine. The ports are published on 127.0.0.1 only. The container
    ends with us, its files with `stop`; if we are killed they stay, in a volume whose name begins with
    `tandemmq.testing`.
    """

    _ends_with = signal.SIGTERM

    def __init__(
        self, settings: Mapping[str, object] | None = None, *, image: str = IMAGE, docker: str = "docker"
    ) -> None:
        """`settings`: as of TemporaryBroker. `docker`: the command, or one that takes the same words."""
        super().__init__(settings)
        self._image, self._docker = image, docker
        self._volume = self._name = ""

    @property
    def name(self) -> str:
        """Of the container that runs, or ran last."""
        return self._name

    def start(self) -> "BrokerContainer":
        """Start it, and come back when it answers. Raises BrokerNotStarted with its last words."""
        if not shutil.which(self._docker):
            raise BrokerNotStarted(f"there is no command {self._docker}", remedy="install Docker, or name another")
        if not self.port:
            self.port, self.classic_port = _free_port(), _free_port()
        self._volume = self._volume or f"{LABEL}-{os.getpid()}-{next(_numbers)}"
        super().start()
        return self

    def _command(self) -> list[str]:
        self._name = f"{self._volume}-{next(_numbers)}"
        given = {**self._settings, **_IN_CONTAINER, "listenPort": self.classic_port}
        published = {self.port: default_ports.STORE, self.classic_port: self.classic_port}
        return [
            *(sys.executable, "-c", _ENDING_WITH_US, self._docker, "run", "--rm", "--name", self._name),
            *(f"--label={LABEL}", f"--volume={self._volume}:/data", "--env=TANDEM_LOG_FORMAT=json"),
            *(f"--publish={HOST}:{outside}:{inside}" for outside, inside in published.items()),
            *(self._image, "tandem", "store"),
            *(f"--set={name}={value}" for name, value in given.items()),
        ]

    def _take_ports(self, events: list[dict[str, Any]]) -> None:
        """They were chosen before: those that the store tells are the container's."""

    def stop(self) -> None:
        """Stop it in order, and remove the container and its files."""
        super().stop()
        if self._volume:
            self._call_docker("volume", "rm", "--force", self._volume)
            self._volume = ""

    def _end(self, number: int) -> None:
        if number == signal.SIGKILL and self._process is not None:  # docker would die alone
            self._call_docker("kill", self._name)
            number = signal.SIGTERM
        super()._end(number)
        if self._name:
            self._call_docker("rm", "--force", self._name)  # --rm does so too, some time

    def _call_docker(self, *words: str) -> None:
        subprocess.run([self._docker, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return int(free.getsockname()[1])
