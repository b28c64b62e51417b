"""Dispatch: the table of handlers, with what is the same for all of them: who asks, what errors are, how long it takes.

A coroutine begins at once, and gets a task only if it must wait. What waits ends with its connection.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from types import CoroutineType
from typing import Any, Protocol

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.grpc_transport.aio.first_step import Suspended, first_step, takes_stand_ins, without_step
from tandemmq.common.log_output import get_log
from tandemmq.common.metrics.distribution import Distribution
from tandemmq.common.net.remoting.connection import Reads, RemotingConnection
from tandemmq.common.net.remoting.handlers import OVERLOADED, Handlers
from tandemmq.common.wire.remoting.codes import ResponseCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.frames import RemotingFrame
from tandemmq.common.wire.remoting.header_scan import HeaderScan, JsonRead, Scans
from tandemmq.store.fronts.remoting.call import Handler, RemotingCall
from tandemmq.store.fronts.remoting.identity import RemotingIdentity
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal, code_of, remark_of

log = get_log(__name__)


class RemotingTimes(Protocol):
    """Hears how long calls take."""

    def called(
        self,
        method: str,
        outcome: str,
        seconds: float,
        *,
        long_polling: bool = False,
        protocol: str = "grpc",
        calls: int = 1,
    ) -> None:
        """So many calls have ended, each of which took so long."""
        ...

    def times(self, method: str, outcome: str, *, long_polling: bool = False, protocol: str = "grpc") -> Distribution:
        """Where `called` counts such calls; milliseconds."""
        ...


class Direct(Protocol):
    """Takes requests by their bytes."""

    def __call__(self, connection: RemotingConnection, frame: RemotingFrame) -> bool:
        """See `FirstLook`."""
        ...

    def take(self, connection: RemotingConnection, data: bytes) -> int:
        """See `Lane`."""
        ...

    def reads(self, identity: RemotingIdentity) -> Reads:
        """What has the bytes of a connection first."""
        ...

    def json_read(self, scan: HeaderScan) -> JsonRead:
        """The compiled twin of a scan."""
        ...


class Dispatch:
    """Knows the handlers by request code."""

    def __init__(self, identity: RemotingIdentity, metrics: RemotingTimes, scans: Sequence[HeaderScan] = ()) -> None:
        """`scans`: of the codes whose headers are scanned where nobody has to be recognized by them."""
        self.handlers = Handlers(first_look=self._scanned if scans else None)
        """What the server gives frames to."""
        self._scans = Scans(scans)
        self._scan = self._scans.scan
        self._direct: Direct | None = None
        self._identity = identity
        self.times = metrics
        self._step = first_step if takes_stand_ins() else without_step
        self._waiting: dict[RemotingConnection, dict[RemotingCall, Callable[[], object]]] = {}

    def add(self, handlers: Mapping[int, Handler]) -> None:
        """Serve these codes. Raises ValueError where one is served already."""
        self.handlers.add({code: self._measured(handler) for code, handler in handlers.items()})

    def begin_with(self, direct: Direct) -> None:
        """Ask it first, where nobody has to be recognized."""
        self._direct = direct
        self._scans.begin_with(direct.json_read)
        self.handlers.reads = direct.reads(self._identity)
        self.handlers.lane = lambda connection, data: 0 if self._identity.recognizes else direct.take(connection, data)

    def lost(self, connection: RemotingConnection) -> None:
        """A connection has ended: what waits on it ends too."""
        for cancel in list(self._waiting.pop(connection, {}).values()):
            cancel()

    def _scanned(self, connection: RemotingConnection, frame: RemotingFrame) -> bool:
        """See `FirstLook`. A signature is over all fields."""
        if self._identity.recognizes:
            return False
        if self._direct is not None and self._direct(connection, frame):
            return True
        request = self._scan(frame)
        if request is None:
            return False
        self.handlers.handle(connection, request, len(frame.header) + len(frame.body))
        return True

    # -- calls that are answered by their handlers --------------------------------------------------------------------

    def _measured(self, handler: Handler) -> Callable[[RemotingConnection, Command], Any]:
        def answer(connection: RemotingConnection, request: Command) -> Any:
            call = RemotingCall(request, connection)
            try:
                call.principal = self._identity.principal(call)
                outcome: Any = handler(call)
                if type(outcome) is CoroutineType:
                    outcome = self._step(asyncio.get_running_loop(), _begun, outcome, None)
            except TandemError as error:
                return self._ended(call, self._refusal(call, error))
            if isinstance(outcome, Suspended):
                return self._awaited(call, outcome)
            return None if outcome is None else self._ended(call, outcome)

        return answer

    async def _awaited(self, call: RemotingCall, suspended: Suspended) -> Command | None:
        waiting = self._waiting.setdefault(call.connection, {})
        waiting[call] = suspended.stand_in.cancel
        try:
            if call.connection.closed:
                suspended.stand_in.cancel()
            return self._ended(call, await suspended)
        except TandemError as error:
            return self._ended(call, self._refusal(call, error))
        finally:
            waiting.pop(call, None)
            if not waiting and self._waiting.get(call.connection) is waiting:
                del self._waiting[call.connection]

    # -- calls that are answered later ------------------------------------------------------------------------------

    @staticmethod
    def defer(call: RemotingCall) -> None:
        """The answer comes by `finish` or `fail`. Raises ProtocolRefusal: the client has asked too much already."""
        if not call.connection.begin_request(len(call.command.body)):
            raise RemotingRefusal(ResponseCode.SYSTEM_BUSY, OVERLOADED)

    def finish(self, call: RemotingCall, answer: Command) -> None:
        """Answer a deferred call."""
        call.connection.end_request(len(call.command.body))
        call.connection.respond(call.command, self._ended(call, answer))

    def fail(self, call: RemotingCall, error: TandemError) -> None:
        """Answer a deferred call with what went wrong."""
        self.finish(call, self._refusal(call, error))

    # -- both -------------------------------------------------------------------------------------------------------

    def _refusal(self, call: RemotingCall, error: TandemError) -> Command:
        if error.kind is Kind.INTERNAL:
            log.failure("call failed", error, method=call.name)
        return call.reply(code_of(error, call.command.version), remark_of(error), call.said)

    def _ended(self, call: RemotingCall, answer: Command) -> Command:
        seconds = time.perf_counter() - call.begun
        self.times.called(call.name, _outcome(answer.code), seconds, protocol="remoting")
        return answer


def _begun(coroutine: Any, _: None) -> Any:
    """As `first_step` calls it."""
    return coroutine


_OUTCOMES = {int(one): one.name for one in ResponseCode}


def _outcome(code: int) -> str:
    return _OUTCOMES.get(code) or f"CODE_{code}"
