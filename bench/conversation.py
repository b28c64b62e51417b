"""A worker process that is told what to do, line by line: what it has loaded and warmed up stays between rounds."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from select import select
from types import TracebackType
from typing import Any

from bench.model import Unavailable
from bench.process import cpu_seconds, environment

_ROOT = Path(__file__).parent.parent
_PATIENCE = 900.0
_END_SECONDS = 20.0


class Conversation:
    """`python -m bench.worker TASK …`, a question a line on its stdin, an answer a line on its stdout."""

    def __init__(self, arguments: list[str], output: Path, **variables: str) -> None:
        """Start it; ``output`` takes what it writes to stderr, ``variables`` are of its environment."""
        self.name = arguments[0]
        self._output = output
        self.begun = time.perf_counter()
        with output.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.worker", *arguments],
                cwd=_ROOT,
                env=environment(**variables),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                start_new_session=True,
            )
        self._left = b""

    def __enter__(self) -> "Conversation":
        """The conversation."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End it."""
        self.end()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def ask(self, what: str, **arguments: object) -> dict[str, Any]:
        """Have it do something; its answer. Raises Unavailable if it fails, ends or takes forever."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": what, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise Unavailable(f"{self.name} has ended: {self._last_lines()}") from error
        answer: dict[str, Any] = json.loads(self._line(what))
        if "failed" in answer:
            raise Unavailable(f"{self.name}: {what}: {answer['failed']}")
        return answer

    def measure(self, what: str, **arguments: object) -> dict[str, Any]:
        """`ask`, with ``cpu_s``: the CPU seconds of its whole process tree."""
        before = cpu_seconds(self.pid)
        answer = self.ask(what, **arguments)
        return {**answer, "cpu_s": cpu_seconds(self.pid) - before}

    def end(self) -> None:
        """End it and everything it has started."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)  # a session of its own, with JVM and Python workers
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _line(self, what: str) -> bytes:
        assert self._process.stdout is not None
        fd, until = self._process.stdout.fileno(), time.monotonic() + _PATIENCE
        while b"\n" not in self._left:
            ready, _, _ = select([fd], [], [], max(until - time.monotonic(), 0))
            data = os.read(fd, 1 << 16) if ready else b""
            if not data:
                why = "has ended" if ready else f"took over {_PATIENCE:.0f} s"
                raise Unavailable(f"{self.name}: {what}: it {why}: {self._last_lines()}")
            self._left += data
        line, _, self._left = self._left.partition(b"\n")
        return line

    def _last_lines(self) -> str:
        text = self._output.read_text(errors="replace") if self._output.exists() else ""
        return " | ".join(text.strip().splitlines()[-3:])[-600:] or "no output"
