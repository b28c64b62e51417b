"""A service of a node as a process of its own, on a configuration file, with ports that stay the same."""

import fcntl
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.core_choice import core_choice

START_SECONDS = 240.0
_PORTS = range(12_000, 20_000)
"""Below those that `tandem up` looks for, and that the kernel gives to outgoing connections."""
_BLOCK = 1_000

_DIES_WITH_US = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
"""Where there is such a command, no process outlives a test that was killed."""

_taken: set[int] = set()


@cache
def _own_ports() -> range:
    """Ports that no other process of tests takes: one would have what is another's while that one's service is away."""
    directory = Path(tempfile.gettempdir()) / f"tandem-ports-{os.getuid()}"
    directory.mkdir(exist_ok=True)
    for begin in range(_PORTS.start, _PORTS.stop, _BLOCK):
        fd = os.open(directory / str(begin), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as long as this process lives
        except OSError:
            os.close(fd)
        else:
            return range(begin, begin + _BLOCK)
    return _PORTS


def free_port() -> int:
    """A port of the loopback interface that nobody listens on, and that this process has not given away lately."""
    if len(_taken) > _BLOCK // 2:
        _taken.clear()
    while True:
        port = random.SystemRandom().choice(_own_ports())
        if port not in _taken and _is_free(port):
            _taken.add(port)
            return port


def free_broker_port() -> int:
    """One for a classic broker, which also listens two below (its VIP channel) and, if it is RocketMQ, one above (HA).

    While the broker is away nobody's outgoing connection takes one of them, as it may a port that the kernel chose.
    """
    while True:
        port = random.SystemRandom().choice(_own_ports())
        wanted = {port - 2, port, port + 1}
        if not wanted & _taken and all(_is_free(one) for one in wanted):
            _taken.update(wanted)
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def until(condition: Callable[[], object], seconds: float, what: str | Callable[[], str]) -> None:
    """Waits for a condition; fails with `what` when it does not come true in time.

    It looks the less often the longer it takes: what comes after a minute is not asked for six thousand times.
    """
    begun = time.monotonic()
    while not condition():
        waited = time.monotonic() - begun
        if waited > seconds:
            raise AssertionError(f"not within {seconds} s: {what if isinstance(what, str) else what()}")
        time.sleep(min(max(0.01, waited / 50), 0.2))


class ServiceProcess:
    """`python -m tandemmq.<service> --config <file>`. `settings`: RocketMQ's names, or ours in their form."""

    def __init__(
        self, service: str, directory: Path, settings: Mapping[str, object], prefix: tuple[str, ...] = ()
    ) -> None:
        """`prefix`: a command that starts the process elsewhere, as `ip netns exec` does."""
        self.service = service
        self.settings = dict(settings)
        self.config = directory / f"{service}.conf"
        self.log = directory / f"{service}.log"
        self.prefix = prefix
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0
        self._log_begin = 0

    @property
    def pid(self) -> int:
        """Process id."""
        assert self.process is not None
        return self.process.pid

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self.process is not None and self.process.poll() is None

    def launch(self) -> None:
        """Starts without waiting."""
        assert not self.running, f"{self.service} runs"
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text("".join(f"{name}={value}\n" for name, value in self.settings.items()))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TANDEM_")}
        environment["TANDEM_LOG_FORMAT"] = "json"
        if self.service == "store" and "compiledCore" not in self.settings:
            environment["TANDEM_COMPILED_CORE"] = core_choice()
        command = [
            *_DIES_WITH_US,
            *self.prefix,
            sys.executable,
            "-m",
            f"tandemmq.{self.service}",
            "--config",
            str(self.config),
        ]
        self._log_begin = self.log.stat().st_size if self.log.exists() else 0
        self.starts += 1
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def start(self) -> None:
        """Starts and waits until the service answers; fails with its log when it does not."""
        self.launch()
        self.wait_answering()

    def wait_answering(self) -> None:
        """Waits until the service, once launched, is open: a store when it serves, the others when they listen."""
        event = "serving" if self.service == "store" else "listening"
        deadline = time.monotonic() + START_SECONDS
        while not any(line["event"] == event for line in self.events()):
            if not self.running or time.monotonic() > deadline:
                raise AssertionError(f"{self.service} did not start:\n{self.log.read_text()[-6000:]}")
            time.sleep(0.01)

    def events(self) -> list[dict[str, Any]]:
        """What it has logged since its last start."""
        if not self.log.exists():
            return []
        with self.log.open("rb") as file:
            file.seek(self._log_begin)
            lines = file.read().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith(b"{") and line.endswith(b"\n")]

    def kill(self) -> None:
        """kill -9, unless it is dead."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(START_SECONDS)

    def stop(self) -> int:
        """Ends it as an operator does; gives its exit code."""
        assert self.process is not None
        if self.running:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(START_SECONDS)
