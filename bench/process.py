"""Servers as processes: started, waited for, measured, ended."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.model import Unavailable

_TICKS = os.sysconf("SC_CLK_TCK")
_MIB = 1 << 20


def environment(**more: str) -> dict[str, str]:
    """The environment of the processes that are measured: byte code is kept, as where a service is installed."""
    return {**{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}, **more}


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, of its children, and of those it has waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    own = sum(int(value) for value in fields[11:15]) / _TICKS
    return own + sum(map(cpu_seconds, children(pid)))


def children(pid: int) -> list[int]:
    """Of all its threads: Java starts a process from any of them."""
    found = list[int]()
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, path.read_text().split())
        except OSError:  # the thread has ended
            continue
    return found


def memory_mb(pid: int) -> tuple[float, float]:
    """Resident memory of a process, and the part of it that is not pages of files; 2^20 bytes."""
    values = {}
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in ("VmRSS", "RssAnon"):
            values[name] = int(rest.split()[0]) * 1024 / _MIB
    return values["VmRSS"], values["RssAnon"]


def tree_memory_mb(pid: int) -> tuple[float, float]:
    """The same of a process and all that it has started."""
    found = [memory_mb(pid), *map(tree_memory_mb, children(pid))]
    return sum(resident for resident, _ in found), sum(anonymous for _, anonymous in found)


def peak_mb(pid: int) -> float:
    """The most memory that a process ever had resident; 2^20 bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / _MIB for line in lines if line.startswith("VmHWM:"))


def disk_mb(directory: Path) -> float:
    """What a directory takes on disk (blocks, not lengths); 2^20 bytes."""
    return sum(path.stat().st_blocks for path in directory.rglob("*") if path.is_file()) * 512 / _MIB


class ServerProcess:
    """A server process of its own session, with its output in a file."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        directory: Path,
        port: int,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.directory = directory
        self.port = port
        self._command = list(command)
        self._environment = environment(**(extra or {}))
        self._output = directory / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id; the server must have been started."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process.pid

    @property
    def target(self) -> str:
        """host:port."""
        return f"127.0.0.1:{self.port}"

    def start(self, timeout: float = 60) -> float:
        """Start and wait until the port accepts connections; the seconds it took. Raises Unavailable."""
        self.directory.mkdir(parents=True, exist_ok=True)
        begun = time.perf_counter()
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                cwd=self.directory,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        while time.perf_counter() - begun < timeout:
            if self._process.poll() is not None:
                raise Unavailable(f"{self.name} ended at once with {self._process.returncode}: {self._last_lines()}")
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return time.perf_counter() - begun
            except OSError:
                time.sleep(0.005)
        self.stop()
        raise Unavailable(f"{self.name} did not listen on {self.port} within {timeout:.0f} s: {self._last_lines()}")

    def cpu(self) -> float:
        """CPU seconds so far."""
        return cpu_seconds(self.pid)

    def memory_mb(self) -> tuple[float, float]:
        """Resident memory, and the part that is not files."""
        return memory_mb(self.pid)

    def peak_mb(self) -> float:
        """The most resident memory so far."""
        return peak_mb(self.pid)

    def kill(self) -> None:
        """End it as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """End it, gently at first."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()

    def pause(self) -> None:
        """Stop its threads until `resume`: a server that waits for its turn takes no time of the others'."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it run on."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)

    def discard(self) -> None:
        """End it and remove what it wrote."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _last_lines(self) -> str:
        text = self._output.read_text(errors="replace") if self._output.exists() else ""
        return " | ".join(text.strip().splitlines()[-3:])[-600:] or "no output"


class Servers:
    """Several servers that are one contestant, by what each is in it; `closing` is called when they have ended."""

    def __init__(self, parts: Mapping[str, ServerProcess], closing: Callable[[], None] | None = None) -> None:
        self.parts = parts
        self._closing = closing

    def discard(self) -> None:
        """End all and remove what they wrote."""
        for server in self.parts.values():
            server.discard()
        if self._closing is not None:
            self._closing()


class CpuMeter:
    """CPU seconds of several servers, read at the marks of a load: what each took of the whole."""

    def __init__(self, parts: Mapping[str, ServerProcess]) -> None:
        self._parts = parts
        self._marks: list[dict[str, float]] = []

    def __call__(self) -> float:
        """A mark; the CPU seconds of all so far."""
        self._marks.append({name: server.cpu() for name, server in self._parts.items()})
        return sum(self._marks[-1].values())

    def shares(self) -> dict[str, float]:
        """The CPU seconds of each between the first mark and the second, the third and the fourth, and so on."""
        spans = list(zip(self._marks[::2], self._marks[1::2], strict=True))
        return {name: sum(after[name] - before[name] for before, after in spans) for name in self._parts}
