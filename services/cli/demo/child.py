"""The store as a process of its own: `tandem store`, which can be stopped, and killed."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tandemmq.cli.talk.failures import CommandFailed
from tandemmq.common import default_ports

_STOP_SECONDS = 30.0


class Memory(NamedTuple):
    """Bytes of memory: `own` are the process's, the rest of `resident` are pages of files."""

    resident: int
    own: int


class StoreProcess:
    """A store in a child process, on the usual ports where they are free, else on any. Restarts keep the ports."""

    def __init__(self, directory: Path, settings: Sequence[str] = ()) -> None:
        """`settings`: KEY=VALUE, as for `tandem store --set`."""
        ports = {
            "grpcPort": default_ports.STORE,
            "internalPort": default_ports.INTERNAL,
            "metricsPort": default_ports.STORE_METRICS,
        }
        self._settings = [*(f"{name}={free_port(port)}" for name, port in ports.items()), *settings]
        self._directory = directory
        self._process: subprocess.Popen[str] | None = None
        self._log = _new_log()
        self.serving: dict[str, Any] = {}
        """What the store said of itself when it began to serve."""
        self.start_seconds = 0.0
        """From the start of the process until it served."""

    @property
    def address(self) -> str:
        """Where it answers."""
        return str(self.serving["address"])

    @property
    def pid(self) -> int:
        """The process id."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it and wait until it serves. Raises CommandFailed with what it said if it does not."""
        begun = time.perf_counter()
        if self._log.closed:
            self._log = _new_log()
        options = [part for setting in self._settings for part in ("--set", setting)]
        command = [sys.executable, "-m", "tandemmq.cli.main", "store", "--json", "--data", str(self._directory)]
        self._process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=own_environment(),
            start_new_session=True,  # Ctrl-C is for the demo, which then stops its store
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise CommandFailed(f"the store did not start: {self._why()}")
        self.serving = json.loads(line)
        self.start_seconds = time.perf_counter() - begun

    def kill(self) -> None:
        """Kill it with SIGKILL: it cannot write, flush or close anything any more."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._close()

    def stop(self) -> int:
        """Ask it to stop; gives its exit code. Does nothing if it runs no more."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        self._close()
        self._log.close()
        return self._process.returncode

    def _close(self) -> None:
        assert self._process is not None
        if self._process.stdout is not None:
            self._process.stdout.close()

    def memory(self) -> Memory:
        """What it takes now."""
        return memory_of(self.pid)

    def _why(self) -> str:
        """The last words of the process."""
        assert self._process is not None
        self._process.wait()
        words = last_words(Path(self._log.name))
        self._close()
        self._log.close()
        return words


def _new_log() -> "tempfile._TemporaryFileWrapper[str]":
    """A file for what a store says; gone when it is closed."""
    return tempfile.NamedTemporaryFile("w+", prefix="tandem-store-", suffix=".log")


def memory_of(pid: int) -> Memory:
    """What a process takes now."""
    told = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    resident, own = (1024 * int(told[name].split()[0]) for name in ("VmRSS", "RssAnon"))
    return Memory(resident, own)


def last_words(log: Path) -> str:
    """Why a command ended, by the last line of its log."""
    lines = log.read_text().splitlines() or ["it said nothing"]
    try:
        return str(json.loads(lines[-1])["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return lines[-1]


def own_environment() -> dict[str, str]:
    """The environment without settings: the defaults are what is shown, whatever the user has set."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TANDEM_")}


def free_port(wanted: int) -> int:
    """`wanted` if nobody listens there, else one that is free now."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise CommandFailed("this machine has no free port on 127.0.0.1")


def bytes_on_disk(directory: Path) -> int:
    """What a directory takes, as `du` counts."""
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.stat(os.path.join(parent, name)).st_blocks * 512
            except FileNotFoundError:  # a temporary file of the running store
                continue
    return total
