"""Guarded handlers: every error of a servicer becomes the right gRPC status, and calls in flight are counted.

A servicer raises `TandemError`s and knows nothing of status codes. The guard stands between generated code and
server: `add_StoreServicer_to_server(servicer, guard.over(server))` wraps each method once, at registration. (A
`grpc.aio.ServerInterceptor` would do the same by a chain of awaits on every call.)

What a caller sees of an error::

    TandemError            its grpc_code, its message and remedy, trailing metadata `rocketmq-status`
    anything else          INTERNAL and an id; the traceback stays in the server's log under that id
    context.abort(...)     what the servicer said
"""

import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from inspect import isasyncgenfunction
from typing import Any, NoReturn, cast

import grpc

from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log

log = get_log(__name__)

STATUS_KEY = "rocketmq-status"
"""Trailing metadata that carries the RocketMQ status of a failed call."""

_DETAILS_LIMIT = 1000
"""Longest message in a status, characters: peers refuse header blocks over 8 KiB."""

Context = grpc.aio.ServicerContext[Any, Any]

Behavior = Callable[[Any, Context], Any]
"""A servicer's method: a coroutine or an async generator."""


class CallGuard:
    """Wraps handlers; knows how many of their calls are in flight."""

    def __init__(self) -> None:
        self.in_flight = 0
        """Calls that have begun and not ended, streams included."""

    def over(self, server: grpc.aio.Server) -> "GuardedServer":
        """The server as generated `add_…Servicer_to_server` functions should see it."""
        return GuardedServer(server, self)

    def wrap(self, method: str, handler: "grpc.RpcMethodHandler[Any, Any]") -> "grpc.RpcMethodHandler[Any, Any]":
        """The same handler, guarded. Servicer methods must be coroutines or, for streamed answers, async generators."""
        if handler.unary_unary:
            make, inner = grpc.unary_unary_rpc_method_handler, self._answer(method, cast(Behavior, handler.unary_unary))
        elif handler.stream_unary:
            make, inner = (
                grpc.stream_unary_rpc_method_handler,
                self._answer(method, cast(Behavior, handler.stream_unary)),
            )
        elif handler.unary_stream:
            make, inner = (
                grpc.unary_stream_rpc_method_handler,
                self._stream(method, cast(Behavior, handler.unary_stream)),
            )
        else:
            assert handler.stream_stream is not None
            make, inner = (
                grpc.stream_stream_rpc_method_handler,
                self._stream(method, cast(Behavior, handler.stream_stream)),
            )
        return make(inner, handler.request_deserializer, handler.response_serializer)

    def _answer(self, method: str, behavior: Behavior) -> Callable[..., Any]:
        async def guarded(request: Any, context: Context) -> Any:
            self.in_flight += 1
            try:
                return await behavior(request, context)
            except Exception as error:  # noqa: BLE001
                await abort(context, method, error)
            finally:
                self.in_flight -= 1

        return guarded

    def _stream(self, method: str, behavior: Behavior) -> Callable[..., Any]:
        if not isasyncgenfunction(behavior):
            return self._answer(method, behavior)

        async def guarded(request: Any, context: Context) -> AsyncIterator[Any]:
            self.in_flight += 1
            answers = behavior(request, context)
            try:
                async for answer in answers:
                    yield answer
            except Exception as error:  # noqa: BLE001
                await abort(context, method, error)
            finally:
                self.in_flight -= 1
                await answers.aclose()

        return guarded


class GuardedServer:
    """The part of `grpc.aio.Server` that generated code uses, guarding what it registers."""

    def __init__(self, server: grpc.aio.Server, guard: CallGuard) -> None:
        self._server = server
        self._guard = guard
        self.services: list[str] = []
        """Full names of the services registered so far."""

    def add_registered_method_handlers(
        self, service_name: str, method_handlers: "Mapping[str, grpc.RpcMethodHandler[Any, Any]]"
    ) -> None:
        """Called by generated code with every method of a service."""
        guarded = {
            name: self._guard.wrap(f"/{service_name}/{name}", handler) for name, handler in method_handlers.items()
        }
        self.services.append(service_name)
        generic = grpc.method_handlers_generic_handler(service_name, guarded)
        self._server.add_generic_rpc_handlers((generic,))
        self._server.add_registered_method_handlers(service_name, guarded)

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Called by generated code with the same methods once more, unguarded: left out."""


async def abort(context: Context, method: str, error: Exception) -> NoReturn:
    """Ends a call with the status of an error (see the table above). Always raises."""
    if isinstance(error, grpc.aio.AbortError):
        raise error
    if isinstance(error, TandemError):
        code = grpc.StatusCode[error.grpc_code]
        if code is grpc.StatusCode.INTERNAL:
            log.failure("call failed", error, method=method)
        metadata = ((STATUS_KEY, error.rocketmq_status),)
        await context.abort(code, error.explain()[:_DETAILS_LIMIT], metadata)
    incident = secrets.token_hex(4)
    log.failure("call failed unexpectedly", error, method=method, incident=incident)
    details = f"internal error; the server's log has the details under incident {incident}"
    await context.abort(grpc.StatusCode.INTERNAL, details, ((STATUS_KEY, TandemError.rocketmq_status),))
