"""Every call ends in an answer: what a handler raises becomes the status of its answer; and every call is measured."""

import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, NoReturn, Protocol

import grpc

from tandemmq.common.access.errors import AccessRefused, PermissionDenied
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.grpc_transport import CallFailure
from tandemmq.common.log_output import get_log
from tandemmq.common.serving.guard import CallGuard
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.fronts.rocketmq5.call import FrontCall
from tandemmq.store.fronts.rocketmq5.caller import Context, caller_of
from tandemmq.store.fronts.rocketmq5.identity import SigningIdentity
from tandemmq.store.fronts.rocketmq5.statuses import code_of, status_of

log = get_log(__name__)

_LATER = (Kind.STARTING, Kind.STOPPING)
"""Then the whole server is not there: clients connect to another, or again."""


class CallTimes(Protocol):
    """Hears how long calls take."""

    def called(self, method: str, outcome: str, seconds: float, *, long_polling: bool = False) -> None:
        """A call has ended."""
        ...


class Answered:
    """Wraps handlers."""

    def __init__(self, identity: SigningIdentity, guard: CallGuard, metrics: CallTimes) -> None:
        self._identity = identity
        self._guard = guard
        self._metrics = metrics

    def unary(
        self, method: str, handler: Callable[[Any, FrontCall], Awaitable[Any]], answer: Callable[..., Any]
    ) -> Callable[[Any, Context], Awaitable[Any]]:
        """A handler with one answer. `answer`: makes one of its field `status`."""

        async def call(request: Any, context: Context) -> Any:
            begun, outcome = time.perf_counter(), "SUCCESS"
            self._guard.in_flight += 1
            try:
                response = await handler(request, self._call(method, context))
                outcome = _outcome(response.status)
                return response
            except TandemError as error:
                outcome = pb.Code.Name(code_of(error))
                self._refused(error)
                await _abort_if_away(context, error)
                return answer(status=status_of(error))
            except (grpc.aio.AbortError, CallFailure):
                raise
            except Exception as error:  # noqa: BLE001 - the caller gets an id, the log the rest
                outcome = "INTERNAL_SERVER_ERROR"
                return answer(status=_fault(method, error))
            finally:
                self._guard.in_flight -= 1
                self._metrics.called(method, outcome, time.perf_counter() - begun)

        return call

    def streamed(
        self, method: str, handler: Callable[[Any, FrontCall], Awaitable[None]], answer: Callable[..., Any]
    ) -> Callable[[Any, Context], Awaitable[None]]:
        """A handler that writes its answers to one request as bytes; where it is refused, that is the last of them."""

        async def call(request: Any, context: Context) -> None:
            begun, outcome = time.perf_counter(), "SUCCESS"
            self._guard.in_flight += 1
            try:
                await context.send_initial_metadata(())
                await handler(request, self._call(method, context))
            except TandemError as error:
                outcome = pb.Code.Name(code_of(error))
                self._refused(error)
                await _abort_if_away(context, error)
                await context.write(answer(status=status_of(error)).SerializeToString())
            except (grpc.aio.AbortError, grpc.aio.UsageError, CallFailure):
                raise  # a status was given, or nobody waits for one any more
            except Exception as error:  # noqa: BLE001 - the caller gets an id, the log the rest
                outcome = "INTERNAL_SERVER_ERROR"
                await context.write(answer(status=_fault(method, error)).SerializeToString())
            finally:
                self._guard.in_flight -= 1
                self._metrics.called(method, outcome, time.perf_counter() - begun, long_polling=True)

        return call

    def duplex(
        self, method: str, handler: Callable[[AsyncIterator[Any], FrontCall], AsyncIterator[Any]]
    ) -> Callable[[AsyncIterator[Any], Context], AsyncIterator[Any]]:
        """A handler of streams both ways; who may not begin one is told by gRPC's own status."""

        async def call(requests: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
            self._guard.in_flight += 1
            try:
                begun = self._call(method, context)
                await context.send_initial_metadata(())
                async with aclosing(handler(requests, begun)) as answers:  # type: ignore[type-var]
                    async for one in answers:
                        yield one
            except TandemError as error:
                self._refused(error)
                await _abort(context, error)
            finally:
                self._guard.in_flight -= 1

        return call

    def _call(self, method: str, context: Context) -> FrontCall:
        """The call, its caller named and recognized. Raises ProtocolRefusal, Unauthenticated."""
        caller = caller_of(context).named()
        return FrontCall(method, caller, context, self._identity.principal(caller))

    def _refused(self, error: TandemError) -> None:
        if isinstance(error, PermissionDenied):
            self._guard.refused[error.reason] += 1


def _outcome(status: pb.Status) -> str:
    return "SUCCESS" if status.code == pb.OK else pb.Code.Name(status.code)


def _fault(method: str, error: Exception) -> pb.Status:
    incident = secrets.token_hex(4)
    log.failure("a call failed", error, method=method, incident=incident)
    return pb.Status(code=pb.INTERNAL_SERVER_ERROR, message=f"A fault of the server; its log has it as {incident}.")


async def _abort_if_away(context: Context, error: TandemError) -> None:
    if error.kind in _LATER:
        await _abort(context, error)


async def _abort(context: Context, error: TandemError) -> NoReturn:
    """End a call with gRPC's own status. Always raises."""
    if isinstance(error, AccessRefused):
        denied = isinstance(error, PermissionDenied)
        code = grpc.StatusCode.PERMISSION_DENIED if denied else grpc.StatusCode.UNAUTHENTICATED
    elif error.kind in _LATER:
        code = grpc.StatusCode.UNAVAILABLE
    else:
        code = grpc.StatusCode.INVALID_ARGUMENT
    await context.abort(code, error.explain()[:1_000])
    raise AssertionError("abort raises")
