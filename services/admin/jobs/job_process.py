"""One job's process: how far it is, what it reports, that it does not outlive admin."""

import asyncio
import json
import os
import re
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from tandemmq.common.processes.child_process import ending_with_us, how_it_ended

REPORT_MAX = 4 << 20
"""Bytes of a report; a longer one does not fit into an answer, and is not kept."""

_LINE_MAX = 64 << 10
_LOG_LINES = 50
_MISSING = re.compile(r"the Python package (\S+) is not installed, and this command needs it")
_NICE = 10
"""Services come first."""

_TERM_SECONDS = 10.0
"""From SIGTERM to SIGKILL."""


class JobProgress(NamedTuple):
    """How far it is."""

    phase: str
    text: str
    done_bytes: int
    total_bytes: int


class JobProcess:
    """A running `tandem … --json --progress`, in a session of its own."""

    def __init__(self, process: asyncio.subprocess.Process, on_progress: Callable[[JobProgress], None]) -> None:
        self._process = process
        self._on_progress = on_progress
        self.log: deque[str] = deque(maxlen=_LOG_LINES)
        """Its last lines, without those that tell its progress."""
        self.report = b""
        self.error = ""
        """What it said about its failure."""
        self._readers = [asyncio.ensure_future(self._read_report()), asyncio.ensure_future(self._read_log())]

    @classmethod
    async def start(
        cls, command: Sequence[str], environment: Mapping[str, str], on_progress: Callable[[JobProgress], None]
    ) -> "JobProcess":
        """Start it; to be called in the main thread, whose end is what the kernel watches. Raises OSError."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=ending_with_us(environment),
            start_new_session=True,
        )
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, process.pid, _NICE)  # it has no threads and no children yet
        return cls(process, on_progress)

    async def wait(self) -> int:
        """Its exit code, a signal's number negative; when everything that it said has been read."""
        code = await self._process.wait()
        self._signal_all(signal.SIGKILL)  # what it has started is of no use any more
        await asyncio.wait(self._readers, timeout=5)
        for reader in self._readers:
            reader.cancel()
        return code

    async def stop(self) -> None:
        """End it: SIGTERM, and SIGKILL to all that it has started if that does not help."""
        with suppress(ProcessLookupError):
            self._process.terminate()
        try:
            await asyncio.wait_for(self._process.wait(), _TERM_SECONDS)
        except TimeoutError:
            self._signal_all(signal.SIGKILL)
            await self._process.wait()

    def problem(self, code: int) -> str:
        """Why it failed, in words."""
        if code < 0:
            return f"it was killed: {how_it_ended(code)}"
        return self.error or (self.log[-1] if self.log else f"it ended with {how_it_ended(code)} and said nothing")

    def _signal_all(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _read_report(self) -> None:
        assert self._process.stdout is not None
        parts: list[bytes] = []
        size = 0
        while data := await self._process.stdout.read(_LINE_MAX):
            size += len(data)
            if size <= REPORT_MAX:
                parts.append(data)
        if size <= REPORT_MAX:
            self.report = b"".join(parts)
        else:
            self.log.append(f"its report has {size:,} bytes: too many to be kept")

    async def _read_log(self) -> None:
        assert self._process.stderr is not None
        rest = b""
        while data := await self._process.stderr.read(_LINE_MAX):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._take(line)
            rest = rest[-_LINE_MAX:]
        if rest:
            self._take(rest)

    def _take(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()
        document = _document(text)
        if "phase" in document:
            with suppress(TypeError, ValueError):
                self._on_progress(
                    JobProgress(
                        str(document["phase"]),
                        str(document.get("text", "")),
                        int(document.get("done_bytes", 0)),
                        int(document.get("total_bytes", 0)),
                    )
                )
            return
        if isinstance(document.get("error"), dict):
            text = self.error = _told_error(str(document["error"].get("message", "")))
        if text:
            self.log.append(text)


def _document(text: str) -> dict[str, Any]:
    if not text.startswith("{"):
        return {}
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _told_error(message: str) -> str:
    """The error, or what to do where a package is missing."""
    missing = _MISSING.match(message)
    if missing is None:
        return message
    return (
        f"the Python package {missing[1]} is not installed where admin runs, and this job needs it: install "
        f"tandemmq[spark] there, or run the command where it is installed"
    )
