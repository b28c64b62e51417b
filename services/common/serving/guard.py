"""Guarded handlers: every error of a servicer becomes the right gRPC status, and calls in flight are counted.

A servicer raises `TandemError`s and knows nothing of status codes. The guard stands between generated code and
server: `add_StoreServicer_to_server(servicer, guard.over(server))` wraps each method once, at registration. (A
`grpc.aio.ServerInterceptor` would do the same by a chain of awaits on every call.)

What a caller sees of an error::

    TandemError            what the server's table (`grpc_status.py`) says of its kind: code, and trailing metadata
                           `rocketmq-status`; its kind and, from who is no master, where the master is; its
                           message and remedy
    anything else          INTERNAL and an id; the traceback stays in the server's log under that id
    context.abort(...)     what the servicer said
    CallFailure            what our transport said, of a request that cannot be read say

With a gate (`accessFile` is set) it also asks who calls, and whether this user may: see `access/`.
"""

import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext, suppress
from inspect import isasyncgenfunction
from typing import TYPE_CHECKING, Any, NoReturn, cast

import grpc

from tandemmq.common.access.errors import AccessRefused
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.grpc_transport import CallFailure
from tandemmq.common.log_output import get_log
from tandemmq.common.serving.grpc_status import STATUSES, StatusTable, status_of

if TYPE_CHECKING:
    from tandemmq.common.access.gate import Gate
    from tandemmq.common.access.principal import Principal
    from tandemmq.common.access.rules import Rules

log = get_log(__name__)

STATUS_KEY = "rocketmq-status"
"""Trailing metadata that carries the RocketMQ status of a failed call."""

KIND_KEY = "tandem-kind"
"""That with the name of the error's kind."""

MASTER_KEY = "tandem-master"
"""That with the master's address for clients, in refusals of who is no master; empty where it is not known."""

_DETAILS_LIMIT = 1000
"""Longest message in a status, characters: peers refuse header blocks over 8 KiB."""

REASONS = ("unauthenticated", "too_many_attempts", "denied")
"""Why calls are refused, for the metrics."""

Context = grpc.aio.ServicerContext[Any, Any]

Behavior = Callable[[Any, Context], Any]
"""A servicer's method: a coroutine or an async generator."""


class CallGuard:
    """Wraps handlers; knows how many of their calls are in flight, and who makes them."""

    def __init__(self, gate: "Gate | None" = None, statuses: StatusTable = STATUSES) -> None:
        """Without a gate everybody may call everything. `statuses`: how errors are told."""
        self.gate = gate
        self._statuses = statuses
        self.on_refused: Callable[[str, str, Any, AccessRefused], None] | None = None
        """Told of each call that the gate refuses: method, user (empty if nobody was named), context, error."""
        self.refused = dict.fromkeys(REASONS, 0)
        """How many calls were refused."""
        self.in_flight = 0
        """Calls that have begun and not ended, streams included."""

    def over(self, server: grpc.aio.Server) -> "GuardedServer":
        """The server as generated `add_…Servicer_to_server` functions should see it."""
        return GuardedServer(server, self)

    def caller(self, context: Any) -> "Principal | None":
        """Who makes a call that runs; None where everybody may do everything."""
        return None if self.gate is None else self.gate.caller(context)

    async def authenticate(self, header: str | None, peer: str) -> "Principal | None":
        """Who calls through another entrance, by the value of its `authorization`; None where nobody must say.

        `peer` as gRPC names it: `ipv4:1.2.3.4:5`. Raises Unauthenticated, TooManyAttempts.
        """
        if self.gate is None:
            return None
        try:
            return await self.gate.keeper.authenticate(header, peer)
        except AccessRefused as error:
            self._count(error)
            raise

    def current(self, principal: "Principal | None") -> "Principal | None":
        """Somebody who was recognized before (a session), as the access file has it now. Raises Unauthenticated."""
        return None if self.gate is None or principal is None else self.gate.keeper.current(principal)

    def check(self, principal: "Principal | None", method: str, request: Any) -> None:
        """Whether somebody may make a call, `/package.Service/Method`. Raises PermissionDenied, Unauthenticated."""
        if self.gate is None:
            return
        try:
            self.gate.check(principal, method, request)
        except AccessRefused as error:
            self._count(error)
            raise

    def entered(self, context: Any, principal: "Principal | None") -> AbstractContextManager[None]:
        """While it lasts `caller(context)` is this principal; `context` is any object that stands for the call."""
        if self.gate is None or principal is None:
            return nullcontext()
        return self.gate.entered(context, principal)

    def methods(self, principal: "Principal | None", service: str) -> list[str] | None:
        """Methods of a service that somebody may call, for some topic or group at least; None: all of them."""
        if self.gate is None or principal is None:
            return None
        return self.gate.methods(principal, service)

    def wrap(self, method: str, handler: "grpc.RpcMethodHandler[Any, Any]") -> "grpc.RpcMethodHandler[Any, Any]":
        """The same handler, guarded. Servicer methods must be coroutines or, for streamed answers, async generators."""
        if handler.unary_unary:
            make, behavior = grpc.unary_unary_rpc_method_handler, handler.unary_unary
        elif handler.stream_unary:
            make, behavior = grpc.stream_unary_rpc_method_handler, handler.stream_unary
        elif handler.unary_stream:
            make, behavior = grpc.unary_stream_rpc_method_handler, handler.unary_stream
        else:
            assert handler.stream_stream is not None
            make, behavior = grpc.stream_stream_rpc_method_handler, handler.stream_stream
        inner: Behavior = cast(Behavior, behavior)
        if self.gate is not None:
            inner = admitted(self.gate, method, inner, streamed=bool(handler.request_streaming))
        guarded = self._stream(method, inner) if handler.response_streaming else self._answer(method, inner)
        return make(guarded, handler.request_deserializer, handler.response_serializer)

    def _count(self, error: AccessRefused) -> None:
        self.refused[error.reason] += 1

    def _note(self, method: str, context: Context, error: Exception) -> None:
        if isinstance(error, AccessRefused):
            self._count(error)
            if self.on_refused is not None:
                self.on_refused(method, error.user, context, error)

    def _answer(self, method: str, behavior: Behavior) -> Callable[..., Any]:
        async def guarded(request: Any, context: Context) -> Any:
            self.in_flight += 1
            try:
                return await behavior(request, context)
            except Exception as error:  # noqa: BLE001
                self._note(method, context, error)
                await abort(context, method, error, self._statuses)
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
                with suppress(StopAsyncIteration):
                    while True:  # no name for the answer: who waits here while it is sent must not keep it
                        yield await anext(answers)
            except Exception as error:  # noqa: BLE001
                self._note(method, context, error)
                await abort(context, method, error, self._statuses)
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
        self.rules: Rules | None = None
        """Who may call the methods of the service that is registered next."""

    def add_registered_method_handlers(
        self, service_name: str, method_handlers: "Mapping[str, grpc.RpcMethodHandler[Any, Any]]"
    ) -> None:
        """Called by generated code with every method of a service. Raises MissingRule."""
        if self._guard.gate is not None:
            self._guard.gate.register(service_name, method_handlers, self.rules)
        guarded = {
            name: self._guard.wrap(f"/{service_name}/{name}", handler) for name, handler in method_handlers.items()
        }
        self.services.append(service_name)
        generic = grpc.method_handlers_generic_handler(service_name, guarded)
        self._server.add_generic_rpc_handlers((generic,))
        self._server.add_registered_method_handlers(service_name, guarded)

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Called by generated code with the same methods once more, unguarded: left out."""


def admitted(gate: "Gate", method: str, behavior: Behavior, *, streamed: bool) -> Behavior:
    """The behavior behind a gate; `streamed`: it takes a stream of requests.

    While the header of the caller is known nothing waits here: the transport makes a task only for calls that do.
    """
    from tandemmq.common.access.gate import CheckedRequests

    callers = gate.callers

    async def answer(request: Any, context: Context) -> Any:
        principal = gate.known(context) or await gate.identify(context)
        if streamed:
            request = CheckedRequests(request, gate.begin(principal, method))
        else:
            gate.check(principal, method, request)
        own(context, principal)
        key = id(context)
        callers[key] = principal
        try:
            return await behavior(request, context)
        finally:
            del callers[key]

    async def stream(request: Any, context: Context) -> AsyncIterator[Any]:
        principal = gate.known(context) or await gate.identify(context)
        if streamed:
            allowed = gate.begin(principal, method)
            request = CheckedRequests(request, allowed)
        else:
            allowed = gate.admit(principal, method, request)
        own(context, principal)
        with gate.entered(context, principal):
            async with aclosing(behavior(request, context)) as answers:
                with suppress(StopAsyncIteration):
                    while True:
                        yield allowed.still(await anext(answers))

    return stream if isasyncgenfunction(behavior) else answer


def own(context: Any, principal: "Principal") -> None:
    """The connection of a call counts as this user's from now on: users share the server's memory, not connections."""
    account: Any = getattr(context, "account", None)  # grpcio's contexts have none
    if account is not None and not account.named:
        account.belong(("user", principal.name))


def as_told(error: TandemError, statuses: StatusTable) -> tuple[grpc.StatusCode, str, tuple[tuple[str, str], ...]]:
    """What the caller sees of an error: code, details and trailing metadata."""
    status = status_of(error, statuses)
    trailers: tuple[tuple[str, str], ...] = ((STATUS_KEY, status.rocketmq), (KIND_KEY, error.kind.name))
    if error.master_address is not None:
        trailers = (*trailers, (MASTER_KEY, error.master_address))
    return grpc.StatusCode[status.code], error.explain()[:_DETAILS_LIMIT], trailers


async def abort(context: Context, method: str, error: Exception, statuses: StatusTable) -> NoReturn:
    """Ends a call with the status of an error (see the table above). Always raises."""
    if isinstance(error, grpc.aio.AbortError | CallFailure):
        raise error
    if isinstance(error, TandemError):
        told = as_told(error, statuses)
        if told[0] is grpc.StatusCode.INTERNAL:
            log.failure("call failed", error, method=method)
        await context.abort(*told)
    incident = secrets.token_hex(4)
    log.failure("call failed unexpectedly", error, method=method, incident=incident)
    details = f"internal error; the server's log has the details under incident {incident}"
    await context.abort(grpc.StatusCode.INTERNAL, details, ((STATUS_KEY, statuses[Kind.INTERNAL].rocketmq),))
