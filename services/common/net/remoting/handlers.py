"""Handlers: what answers which request code."""

import asyncio
import inspect
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial

from tandemmq.common.errors import TandemError
from tandemmq.common.net.remoting.connection import Lane, Reads, RemotingConnection
from tandemmq.common.net.remoting.limits import RemotingCounts
from tandemmq.common.timers import Timers, time_limit
from tandemmq.common.wire.remoting import codec
from tandemmq.common.wire.remoting.codes import ResponseCode, not_supported
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.errors import BadHeader
from tandemmq.common.wire.remoting.frames import RemotingFrame

log = logging.getLogger(__name__)

Answer = Command | None
Handler = Callable[[RemotingConnection, Command], Answer | Awaitable[Answer]]
"""Answers a request. A plain function runs at once, in the turn of the loop in which the request came; it must not
block. A coroutine function gets a task, and other requests of its connection are answered meanwhile. None: it answers
by itself, later, or never (one-way). What it raises is answered: a TandemError by `code_of`, the rest as a fault."""

FirstLook = Callable[[RemotingConnection, RemotingFrame], bool]
"""Sees each frame before it is decoded; True: it has taken it. For codes whose headers are not worth a decoding."""

OVERLOADED = "[OVERLOAD]system busy, start flow control for a while"


def always_system_error(_: TandemError) -> int:
    """The code of every error where callers do not tell them apart."""
    return ResponseCode.SYSTEM_ERROR


class Handlers:
    """A table of handlers, which can grow until connections come."""

    def __init__(
        self,
        table: Mapping[int, Handler] | None = None,
        code_of: Callable[[TandemError], int] = always_system_error,
        first_look: FirstLook | None = None,
    ) -> None:
        """`code_of`: the response code of an error."""
        self._table: dict[int, Handler] = {}
        self._code_of = code_of
        self._first_look = first_look
        self._tasks: set[asyncio.Task[None]] = set()
        self.lane: Lane | None = None
        """Of the connections that a server accepts from then on."""
        self.reads: Reads | None = None
        """The same: what takes their bytes, if not they themselves."""
        self.told = RemotingCounts()
        self.add(table or {})

    def add(self, table: Mapping[int, Handler]) -> None:
        """More of them. Raises ValueError: a code has a handler already."""
        for code in table:
            if code in self._table:
                raise ValueError(f"request code {code} has a handler already")
        self._table.update(table)

    @property
    def codes(self) -> frozenset[int]:
        """What is answered."""
        return frozenset(self._table)

    def came(self, connection: RemotingConnection, frame: RemotingFrame) -> None:
        """A frame came: see Receiver."""
        if self._first_look is not None and self._first_look(connection, frame):
            return
        try:
            command = codec.decode(frame)
        except BadHeader as error:
            self.told.misbehaved += 1
            log.info("%s sent a header that cannot be read: %s", connection.peer, error)
            connection.close(error.message)
            return
        if command.is_response:
            connection.answered(command)
        else:
            self.handle(connection, command, len(frame.header) + len(frame.body))

    def handle(self, connection: RemotingConnection, request: Command, size: int) -> None:
        """Answer a request of `size` bytes."""
        handler = self._table.get(request.code)
        if handler is None:
            self.told.unknown += 1
            said = not_supported(request.code)
            self._respond(connection, request, request.answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=said))
            return
        try:
            outcome = handler(connection, request)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is answered
            outcome = self._refusal(request, error)
        if outcome is None:
            return
        if isinstance(outcome, Command):
            self._respond(connection, request, outcome)
        elif connection.begin_request(size):
            task = asyncio.get_running_loop().create_task(self._finish(connection, request, outcome, size))
            self._tasks.add(task)
            task.add_done_callback(partial(self._ended, outcome))
        else:
            _give_up(outcome)
            self._respond(connection, request, request.answer(ResponseCode.SYSTEM_BUSY, remark=OVERLOADED))

    def _ended(self, outcome: Awaitable[Answer], task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        _give_up(outcome)  # one that was cancelled before its first step has not begun to wait for it

    async def finish(self, timers: Timers, seconds: float) -> None:
        """Wait for what still runs, but no longer."""
        if self._tasks:
            with suppress(TimeoutError):
                async with time_limit(timers, seconds):
                    await asyncio.wait(set(self._tasks))

    async def close(self) -> None:
        """Cancel what still runs, and wait for it."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _finish(
        self, connection: RemotingConnection, request: Command, outcome: Awaitable[Answer], size: int
    ) -> None:
        try:
            answer = await outcome
        except Exception as error:  # noqa: BLE001 - whatever it is, it is answered
            answer = self._refusal(request, error)
        finally:
            connection.end_request(size)
        if answer is not None:
            self._respond(connection, request, answer)

    def _respond(self, connection: RemotingConnection, request: Command, answer: Command) -> None:
        try:
            connection.respond(request, answer)
        except TandemError as error:
            connection.respond(request, self._refusal(request, error))

    def _refusal(self, request: Command, error: Exception) -> Command:
        if isinstance(error, TandemError):
            return request.answer(self._code_of(error), remark=error.explain())
        incident = secrets.token_hex(4)
        self.told.failed += 1
        log.error("request code %d failed (incident %s)", request.code, incident, exc_info=error)
        said = f"the server failed; its log has the details under incident {incident}"
        return request.answer(ResponseCode.SYSTEM_ERROR, remark=said)


def _give_up(outcome: Awaitable[Answer]) -> None:
    """Nobody waits for it, or no more."""
    if inspect.iscoroutine(outcome):
        outcome.close()
