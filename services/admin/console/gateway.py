"""The gateway: a call of tandemmq.admin.v1.Admin over HTTP.

`POST /api/Method` takes the request as JSON and answers with the response as JSON (protobuf's JSON form: camelCase
names, 64-bit numbers as text, bytes in base64). `POST /stream/Method` answers with one JSON object a line,
`{"result": …}`, and if the call fails `{"error": {"code", "message"}}` as the last; empty lines are to be passed over,
they come when nothing else does. A support bundle is sent as the zip file that it is.

The handlers are those of the gRPC server, with the same rules of access before them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, aclosing, nullcontext
from typing import Any

import grpc
from aiohttp import web
from google.protobuf import message_factory
from google.protobuf.message import Message

from tandemmq.admin.console.call import ConsoleCall
from tandemmq.admin.console.callers import Callers, ConsoleCaller, peer
from tandemmq.admin.console.errors import (
    ConsoleStopping,
    HandlerFailed,
    NoSuchPath,
    TooLarge,
    TooManyStreams,
    UnreadableRequest,
)
from tandemmq.admin.console.json_form import from_json, to_json
from tandemmq.admin.console.senders import AnswerSender, Lines, Zip
from tandemmq.admin.v1 import admin_pb2
from tandemmq.admin.v1.admin_pb2_grpc import AdminServicer, add_AdminServicer_to_server
from tandemmq.common.access.errors import AccessRefused, Unauthenticated
from tandemmq.common.access.principal import Principal
from tandemmq.common.errors import TandemError
from tandemmq.common.serving.guard import CallGuard
from tandemmq.common.timers import Timers, first_of, time_limit

SERVICE = admin_pb2.DESCRIPTOR.services_by_name["Admin"]

_READ_SECONDS = 30.0
_FIRST_SECONDS = 0.2
"""So long a stream waits for its first answer before it says that all is well: refusals come with their HTTP status."""
_SILENT_SECONDS = 5.0
"""After so long without an answer an empty line is sent, and it is looked whether the caller still may."""
_MOST_STREAMS = 200


class Gateway:
    """Answers requests by calls."""

    def __init__(
        self, servicer: AdminServicer, guard: CallGuard, callers: Callers, largest_answer: int, timers: Timers
    ) -> None:
        """`guard`: the gRPC server's, with its gate if there is one; `largest_answer`: bytes as protobuf."""
        self._handlers = _guarded_handlers(servicer)
        self._guard = guard
        self._callers = callers
        self._largest = largest_answer
        self._timers = timers
        self._streams: set[asyncio.Task[Any]] = set()
        self._stopping = False

    def stop(self) -> None:
        """Ends the streams; calls that take one answer go on to their end."""
        self._stopping = True
        for stream in self._streams:
            stream.cancel()

    # -- one answer ---------------------------------------------------------------------------------------------------

    async def call(self, request: web.Request) -> web.Response:
        """POST /api/Method."""
        name = request.match_info["method"]
        caller = await self._caller(request, name)
        message = await self._request(request, name, streamed=False)
        context = _context(request, caller.principal)
        try:
            with self._entered(context, caller, name, message):
                answer = await self._handlers[name](message, context)
        except grpc.aio.AbortError:
            raise HandlerFailed(context.details(), context.code().name) from None
        finally:
            context.close()
        if answer.ByteSize() > self._largest:
            raise TooLarge(
                f"the answer has {answer.ByteSize()} bytes", remedy="ask for less: fewer messages, no bodies"
            )
        return web.Response(text=to_json(answer), content_type="application/json")

    # -- streams ------------------------------------------------------------------------------------------------------

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """POST /stream/Method."""
        name = request.match_info["method"]
        caller = await self._caller(request, name)
        message = await self._request(request, name, streamed=True)
        if self._stopping:
            raise ConsoleStopping("the console is about to end")
        if len(self._streams) >= _MOST_STREAMS:
            raise TooManyStreams(f"{_MOST_STREAMS} streams are open")
        context = _context(request, caller.principal)
        task = asyncio.current_task()
        assert task is not None
        self._streams.add(task)
        try:
            with self._entered(context, caller, name, message):
                async with aclosing(self._handlers[name](message, context)) as answers:
                    sender = Zip(request) if name == "GetSupportBundle" else Lines(request)
                    return await self._send(sender, answers, context, lambda: self._still(caller, name, message))
        finally:
            self._streams.discard(task)
            context.close()

    async def _send(
        self, sender: AnswerSender, answers: AsyncIterator[Message], context: ConsoleCall, still: Callable[[], None]
    ) -> web.StreamResponse:
        following: asyncio.Future[Message] = asyncio.ensure_future(anext(answers))
        wait = _FIRST_SECONDS
        try:
            while True:
                await first_of(self._timers, [following], wait)
                if following.done():
                    answer = following.result()
                    still()
                    await sender.send(answer)
                    following = asyncio.ensure_future(anext(answers))
                else:
                    still()
                    await sender.nothing()
                wait = _SILENT_SECONDS
        except StopAsyncIteration:
            return await sender.end()
        except (grpc.aio.AbortError, TandemError) as error:
            failure = error if isinstance(error, TandemError) else HandlerFailed(context.details(), context.code().name)
            if not sender.begun:
                raise failure from None
            return await sender.fail(failure)
        except asyncio.CancelledError:
            if not self._stopping or not sender.begun:
                raise
            return await sender.fail(ConsoleStopping("the console ends"))
        finally:
            if not following.done():
                following.cancel()
                await asyncio.wait([following])
            if not following.cancelled():
                following.exception()  # seen: nobody need be told of it any more

    # -- both ---------------------------------------------------------------------------------------------------------

    async def _caller(self, request: web.Request, name: str) -> ConsoleCaller:
        """Who calls. Raises Unauthenticated."""
        try:
            return await self._callers.of(request)
        except Unauthenticated as error:
            if error.user:  # a page that nobody is signed in at is no attempt to get in
                self._refused(name, _context(request, None), error)
            raise

    def _refused(self, name: str, context: ConsoleCall, error: AccessRefused) -> None:
        """Tell the log of actions, as the guard does for calls over gRPC."""
        if self._guard.on_refused is not None:
            self._guard.on_refused(_path(name), error.user, context, error)

    def _entered(
        self, context: ConsoleCall, caller: ConsoleCaller, name: str, message: Message
    ) -> AbstractContextManager[None]:
        """While it lasts, the guard knows who calls. Raises PermissionDenied."""
        if caller.principal is None:
            return nullcontext()
        try:
            self._guard.check(caller.principal, _path(name), message)
        except AccessRefused as error:
            self._refused(name, context, error)
            raise
        return self._guard.entered(context, caller.principal)

    def _still(self, caller: ConsoleCaller, name: str, message: Message) -> None:
        """Whether a call that lasts may go on. Raises Unauthenticated, PermissionDenied."""
        principal = self._callers.still(caller)
        if principal is not None:
            self._guard.check(principal, _path(name), message)

    async def _request(self, request: web.Request, name: str, *, streamed: bool) -> Message:
        """The body as the message that the method takes. Raises NoSuchPath, UnreadableRequest, TooLarge."""
        method = SERVICE.methods_by_name.get(name)
        if method is None:
            raise NoSuchPath(f"Admin has no method {name[:100]!r}", remedy="admin.proto has them all")
        if method.server_streaming != streamed:
            way = "stream" if method.server_streaming else "api"
            raise NoSuchPath(f"{name} is at /{way}/{name}")
        try:
            async with time_limit(self._timers, _READ_SECONDS):
                body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            raise TooLarge(f"the request has more than {request.client_max_size} bytes") from None
        except TimeoutError:
            raise UnreadableRequest(f"the request's body did not come within {_READ_SECONDS:.0f} s") from None
        return from_json(body, message_factory.GetMessageClass(method.input_type)())


def _context(request: web.Request, principal: Principal | None) -> ConsoleCall:
    return ConsoleCall(f"http:{peer(request).partition(':')[2]}", principal)


def _path(name: str) -> str:
    return f"/{SERVICE.full_name}/{name}"


def _guarded_handlers(servicer: AdminServicer) -> dict[str, Callable[[Message, ConsoleCall], Any]]:
    """The servicer's methods with errors turned into statuses, by a guard without a gate: the gateway has asked it."""
    catcher = _Catcher()
    add_AdminServicer_to_server(servicer, CallGuard().over(catcher))  # type: ignore[arg-type]
    return {name: one.unary_stream or one.unary_unary for name, one in catcher.handlers.items()}


class _Catcher:
    """Where generated code registers handlers, in place of a server."""

    def __init__(self) -> None:
        self.handlers: dict[str, Any] = {}

    def add_registered_method_handlers(self, service_name: str, method_handlers: Mapping[str, Any]) -> None:
        self.handlers.update(method_handlers)

    def add_generic_rpc_handlers(self, generic_rpc_handlers: Any) -> None:
        """The same methods once more."""
