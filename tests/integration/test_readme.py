"""The README's commands, from the first to the last, in their order and on the usual ports, in a network of its own."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ENDLESS = ("--follow", "tandem worker", "tandem top")
"""In commands that go on until Ctrl-C."""
OF_A_STOPPED_STORE = ("tandem data audit", "tandem data rebuild", "tandem data export")
STATUS = re.compile(r"^tandem send .*# (PUT_OK|SLAVE_NOT_AVAILABLE)\b")
DEADLINE = 60.0
WORKER = "def handle(message):\n    print('made', message.text)\n"


def lines() -> list[str]:
    """What is to be typed, with what is said of it."""
    part = README.read_text().partition("\n## Use it\n")[2].partition("\n## ")[0]
    return [line.strip() for line in part.splitlines() if line.startswith("    tandem ")]


class Terminal:
    """A shell in a directory of its own, whose network is nobody else's."""

    def __init__(self, directory: Path, prefix: list[str]) -> None:
        self._directory = directory
        self._prefix = prefix
        self._up: subprocess.Popen[str] | None = None
        commands = directory.parent / "bin"
        commands.mkdir()
        (commands / "tandem").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tandemmq.cli.main "$@"\n')
        (commands / "tandem").chmod(0o755)
        self._environment = {**os.environ, "PATH": f"{commands}:{os.environ['PATH']}"}

    def type(self, line: str) -> None:
        """Do what a reader does with a line of the README."""
        verb = line.split()[1]
        if verb == "up":
            self.stop()
            self._start(line)
        elif any(words in line for words in ENDLESS):
            done = self._run(f"timeout --signal INT 5 {line}")
            assert done.returncode in (0, 124, 130), (line, done.stdout, done.stderr)
        else:
            if line.startswith(OF_A_STOPPED_STORE):
                self.stop()
            self._until_told(line)

    def _until_told(self, line: str) -> None:
        """Once, but where the README says which status comes: a slave that has just begun has to catch up first."""
        status = STATUS.search(line)
        end = time.monotonic() + (DEADLINE if status else 0)
        while True:
            done = self._run(line)
            if (status[1] in done.stdout) if status else (done.returncode == 0):
                return
            assert time.monotonic() < end, (line, done.stdout, done.stderr)

    def _run(self, line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._prefix, "bash", "-c", line],
            cwd=self._directory, env=self._environment, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip

    def _start(self, line: str) -> None:
        log = (self._directory.parent / "up.log").open("a")
        self._up = subprocess.Popen(
            [*self._prefix, "bash", "-c", f"exec {line}"],
            cwd=self._directory, env=self._environment, stdout=subprocess.PIPE, stderr=log, text=True,
        )  # fmt: skip
        log.close()
        assert self._up.stdout is not None
        told = self._up.stdout.readline()
        assert "Ctrl-C stops everything" in told, told

    def stop(self) -> None:
        """Ctrl-C, if something runs; it ends in order."""
        if self._up is not None:
            self._up.send_signal(signal.SIGINT)
            self._up.communicate(timeout=60)
            assert self._up.returncode == 0
            self._up = None

    def close(self) -> None:
        """Nothing is left."""
        if self._up is not None:
            self._up.terminate()
            self._up.communicate(timeout=60)


@contextmanager
def own_network() -> Iterator[list[str]]:
    """What starts a command in a network that has a loopback interface and nothing else."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "ip"))):
        pytest.skip("a network of its own needs root, unshare, nsenter and ip")
    holding = "ip link set lo up && echo ready && exec sleep 3600"
    with subprocess.Popen(["unshare", "--net", "bash", "-c", holding], stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            if holder.stdout.readline() != "ready\n":
                pytest.skip("network namespaces are not allowed here")
            yield ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
        finally:
            holder.kill()


def test_the_readme_is_one_script(tmp_path: Path) -> None:
    directory = tmp_path / "reader"
    directory.mkdir()
    (directory / "lines.txt").write_text("two teas\nthree teas\n")
    (directory / "orders.py").write_text(WORKER)
    with own_network() as prefix:
        terminal = Terminal(directory, prefix)
        try:
            for line in lines():
                terminal.type(line)
            terminal.stop()
        finally:
            terminal.close()
    assert {"commitlog", "b"} <= {path.name for path in (directory / "data").iterdir()}
    assert any((directory / "parquet").rglob("*.parquet"))
