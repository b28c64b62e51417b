"""One process: what it says, when it ends, and that it does not outlive us."""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tandemmq.common.processes.child_process import ending_with_us

_LINE_MAX = 64 << 10
"""Longer lines are cut into pieces."""

_LAST_LINES = 20
NOTHING_SAID = "it said nothing"

OnEvent = Callable[[dict[str, Any]], None]
OnLine = Callable[[str], None]


class Child:
    """A running command. Events are JSON objects, a line each, on its stdout; its log is on stderr.

    It has a session of its own, so that Ctrl-C in our terminal is for us alone, and, as a command of ours, gets SIGTERM
    from the kernel when we die, however we die.
    """

    def __init__(self, process: asyncio.subprocess.Process, on_event: OnEvent, on_line: OnLine) -> None:
        self._process = process
        self._on_event, self._on_line = on_event, on_line
        self.last_lines: deque[str] = deque(maxlen=_LAST_LINES)
        """Of its log."""
        assert process.stdout is not None
        assert process.stderr is not None
        self._readers = [
            asyncio.ensure_future(_lines(process.stdout, self._take_event)),
            asyncio.ensure_future(_lines(process.stderr, self._take_line)),
        ]

    @classmethod
    async def start(
        cls, command: Sequence[str], on_event: OnEvent, on_line: OnLine, environment: Mapping[str, str] | None = None
    ) -> "Child":
        """Start it, in our environment if none is given. Raises OSError.

        To be called in a thread that lives as long as we do: its end is what the kernel watches.
        """
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            env=ending_with_us(environment),
        )
        return cls(process, on_event, on_line)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def signal(self, number: int) -> None:
        """Send a signal; nothing happens if it has ended."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def wait(self) -> int:
        """Its exit code, a signal's number negative; when everything that it said has been told."""
        code = await self._process.wait()
        await asyncio.wait(self._readers, timeout=1)  # a child of its own may hold the pipes open: not waited for
        for reader in self._readers:
            reader.cancel()
        return code

    @property
    def last_words(self) -> str:
        """Why it ended, as far as it said so: see `spoken`."""
        return spoken(self.last_lines[-1]) if self.last_lines else NOTHING_SAID

    def _take_event(self, line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if isinstance(event, dict):
            self._on_event(event)
        else:
            self._take_line(line)

    def _take_line(self, line: str) -> None:
        self.last_lines.append(line)
        self._on_line(line)


def spoken(line: str) -> str:
    """The error that a line of a log tells, or the line itself."""
    try:
        return str(json.loads(line)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return line


async def _lines(stream: asyncio.StreamReader, take: Callable[[str], None]) -> None:
    rest = b""
    while data := await stream.read(_LINE_MAX):
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > _LINE_MAX:
            lines, rest = [*lines, rest], b""
        for line in lines:
            take(line.decode("utf-8", "replace").rstrip("\r"))
    if rest:
        take(rest.decode("utf-8", "replace"))
