"""Dispatch: from a frame to a handler, and from its outcome to an answer.

Every request is answered once, or never if it is one-way; every answer is measured.
"""

import asyncio
import secrets
import time
from collections.abc import Mapping
from types import CoroutineType
from typing import Any, Protocol

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.grpc_transport.aio.first_step import Suspended, first_step, takes_stand_ins, without_step
from tandemmq.common.log_output import get_log
from tandemmq.common.wire.remoting.codec import decode
from tandemmq.common.wire.remoting.codes import ResponseCode, name_of
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.errors import BadHeader
from tandemmq.common.wire.remoting.frames import Frame
from tandemmq.store.fronts.remoting.call import Call, Handler
from tandemmq.store.fronts.remoting.connection import Connection
from tandemmq.store.fronts.remoting.identity import Identity
from tandemmq.store.fronts.remoting.statuses import code_of, remark_of

log = get_log(__name__)

_OVERLOADED = "[OVERLOAD]system busy, start flow control for a while"


class CallTimes(Protocol):
    """Hears how long calls take."""

    def called(
        self, method: str, outcome: str, seconds: float, *, long_polling: bool = False, protocol: str = "grpc"
    ) -> None:
        """A call has ended."""
        ...


class Dispatch:
    """Knows the handlers by request code."""

    def __init__(self, identity: Identity, metrics: CallTimes) -> None:
        self._identity = identity
        self._metrics = metrics
        self._handlers: dict[int, Handler] = {}
        self._step = first_step if takes_stand_ins() else without_step
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, handlers: Mapping[int, Handler]) -> None:
        """Serve these codes. Raises ValueError where one is served already."""
        for code, handler in handlers.items():
            if code in self._handlers:
                raise ValueError(f"request code {name_of(code)} has two handlers")
            self._handlers[code] = handler

    @property
    def codes(self) -> list[int]:
        """Request codes that are served."""
        return sorted(self._handlers)

    def frame(self, frame: Frame, connection: Connection) -> None:
        """See `connection.Served`."""
        try:
            command = decode(frame)
        except BadHeader as error:
            log.info("a connection ends: a header cannot be read", peer=str(connection.peer), reason=error.message)
            connection.close()
            return
        if command.is_response:
            connection.answered(command)
            return
        call = Call(command, connection)
        connection.unanswered += 1
        known = self._handlers.get(command.code)
        if known is None:
            self.finish(
                call, call.reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {command.code} not supported")
            )
        elif connection.overloaded:
            self.finish(call, call.reply(ResponseCode.SYSTEM_BUSY, _OVERLOADED))
        else:
            self._handle(call, known)

    def _handle(self, call: Call, handler: Handler) -> None:
        try:
            call.principal = self._identity.principal(call)
            outcome: Any = handler(call)
            if type(outcome) is CoroutineType:
                outcome = self._step(self._loop, _begun, outcome, None)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this request's alone
            self.fail(call, error)
            return
        if isinstance(outcome, Suspended):
            call.connection.waiting[call] = outcome.stand_in.cancel
            task = self._loop.create_task(self._finish_later(call, outcome), context=outcome.context, name=call.name)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif outcome is not None:
            self.finish(call, outcome)

    async def _finish_later(self, call: Call, suspended: Suspended) -> None:
        try:
            outcome = await suspended
        except asyncio.CancelledError:
            self._end(call, "CANCELLED")
            raise
        except Exception as error:  # noqa: BLE001 - as above
            self.fail(call, error)
        else:
            if outcome is not None:
                self.finish(call, outcome)
        finally:
            call.connection.waiting.pop(call, None)

    def finish(self, call: Call, answer: Command) -> None:
        """Answer a request, if it wants an answer and has none yet."""
        if call.ended:
            return
        if not call.command.is_one_way:
            call.connection.send(answer)
        self._end(call, _outcome(answer.code))

    def fail(self, call: Call, error: Exception) -> None:
        """Answer with what went wrong; what we do not know is logged under a number, and only that is told."""
        if isinstance(error, TandemError):
            if error.kind is Kind.INTERNAL:
                log.failure("call failed", error, method=call.name)
            self.finish(call, call.reply(code_of(error, call.command.version), remark_of(error)))
            return
        incident = secrets.token_hex(4)
        log.failure("call failed unexpectedly", error, method=call.name, incident=incident)
        remark = f"internal error; the server's log has the details under incident {incident}"
        self.finish(call, call.reply(ResponseCode.SYSTEM_ERROR, remark))

    def _end(self, call: Call, outcome: str) -> None:
        if call.ended:
            return
        call.ended = True
        call.connection.unanswered -= 1
        self._metrics.called(call.name, outcome, time.perf_counter() - call.begun, protocol="remoting")

    async def stop(self) -> None:
        """Cancel what still waits."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _begun(coroutine: Any, _: None) -> Any:
    """As `first_step` calls it."""
    return coroutine


def _outcome(code: int) -> str:
    try:
        return ResponseCode(code).name
    except ValueError:
        return f"CODE_{code}"
