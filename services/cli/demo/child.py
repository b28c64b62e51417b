"""Commands of ours as child processes, kept as a node keeps its services; the store among them, to be killed."""

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple

from tandemmq.cli.talk.failures import CommandFailed
from tandemmq.client.background import BACKGROUND
from tandemmq.node.child import Child
from tandemmq.node.ports import DEFAULT_BASE, Ports, is_taken

_STOP_SECONDS = 30.0


class DemoMemory(NamedTuple):
    """Bytes of memory: `own` are the process's, the rest of `resident` are pages of files."""

    resident: int
    own: int


class DemoCommand:
    """A `tandem` command as a child process. Ctrl-C is for the demo, which then stops it."""

    def __init__(self, *arguments: str, heard: Callable[[dict[str, Any]], None]) -> None:
        """`heard` is called with each event that the command tells; in a thread, one at a time."""
        self._arguments = arguments
        self._heard = heard
        self._child: Child | None = None
        self._end: Future[int] = Future()
        self._changed = threading.Condition()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def last_words(self) -> str:
        """Why it ended, by the last line of its log."""
        return self._process.last_words

    @property
    def has_ended(self) -> bool:
        """Whether it runs no more."""
        return self._end.done()

    @property
    def _process(self) -> Child:
        assert self._child is not None
        return self._child

    def start(self) -> None:
        """Start it, without the settings of the user's environment: the defaults are what is shown."""
        command = [sys.executable, "-m", "tandemmq.cli.main", *self._arguments]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TANDEM_")}
        self._child = BACKGROUND.run(Child.start(command, self._take, lambda line: None, environment))
        self._end = asyncio.run_coroutine_threadsafe(self._child.wait(), BACKGROUND.loop)
        self._end.add_done_callback(self._tell_end)

    def wait(self, condition: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until what was heard makes a condition true; False if it ends before that, or in so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: condition() or self.has_ended, seconds)
            return condition()

    def kill(self) -> None:
        """Kill it with SIGKILL: it cannot write, flush or close anything any more."""
        self._process.signal(signal.SIGKILL)
        self._end.result()

    def stop(self, seconds: float) -> int:
        """Ask it to stop, and kill it where it does not in so many seconds; gives its exit code. 0 if it never ran."""
        if self._child is None:
            return 0
        if not self.has_ended:
            self._process.signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                return self._end.result(seconds)
            self.kill()
        return self._end.result()

    def _take(self, event: dict[str, Any]) -> None:
        with self._changed:
            self._heard(event)
            self._changed.notify_all()

    def _tell_end(self, end: "Future[int]") -> None:
        with self._changed:
            self._changed.notify_all()


class StoreProcess:
    """A store in a child process, on the usual ports where they are free, else on any. Restarts keep the ports."""

    def __init__(self, directory: Path, settings: Sequence[str] = ()) -> None:
        """`settings`: KEY=VALUE, as for `tandem serve store --set`."""
        usual, free = Ports.from_base(DEFAULT_BASE), Ports.free()
        ports = {"grpcPort": "store", "internalPort": "internal", "metricsPort": "store_metrics"}
        chosen = [f"{setting}={_free_one(getattr(usual, of), getattr(free, of))}" for setting, of in ports.items()]
        options = [part for setting in (*chosen, *settings) for part in ("--set", setting)]
        self._command = DemoCommand("serve", "store", "--json", "--data", str(directory), *options, heard=self._serves)
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
        return self._command.pid

    def start(self) -> None:
        """Start it and wait until it serves. Raises CommandFailed with what it said if it does not."""
        begun = time.perf_counter()
        self.serving = {}
        self._command.start()
        if not self._command.wait(lambda: bool(self.serving)):
            raise CommandFailed(f"the store did not start: {self._command.last_words}")
        self.start_seconds = time.perf_counter() - begun

    def kill(self) -> None:
        """See `DemoCommand.kill`."""
        self._command.kill()

    def stop(self) -> int:
        """Ask it to stop; gives its exit code. Does nothing if it runs no more."""
        return self._command.stop(_STOP_SECONDS)

    def memory(self) -> DemoMemory:
        """What it takes now."""
        return memory_of(self.pid)

    def _serves(self, event: dict[str, Any]) -> None:
        self.serving = event


def memory_of(pid: int) -> DemoMemory:
    """What a process takes now."""
    told = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    resident, own = (1024 * int(told[name].split()[0]) for name in ("VmRSS", "RssAnon"))
    return DemoMemory(resident, own)


def bytes_on_disk(directory: Path, but: Path | None = None) -> int:
    """What a directory takes, as `du` counts; without another one, which may lie in it."""
    total = 0
    for parent, below, names in os.walk(directory):
        below[:] = [name for name in below if Path(parent, name) != but]
        for name in names:
            try:
                total += os.stat(os.path.join(parent, name)).st_blocks * 512
            except FileNotFoundError:  # a temporary file of the running store
                continue
    return total


def _free_one(usual: int, free: int) -> int:
    return free if is_taken(usual) else usual
