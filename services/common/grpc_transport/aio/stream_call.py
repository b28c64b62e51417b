"""Calls with a stream of requests: the handler runs in a task and reads; what it has not read keeps the window shut."""

import asyncio
from collections import deque
from collections.abc import Callable
from inspect import isawaitable
from typing import Any

import grpc

from tandemmq.common.grpc_transport.aio.call import Call
from tandemmq.common.grpc_transport.aio.context import log
from tandemmq.common.grpc_transport.aio.handlers import CallDetails
from tandemmq.common.grpc_transport.aio.holding import NO_ROOM
from tandemmq.common.grpc_transport.rpc.messages import PART_OVERHEAD, PREFIX_SIZE, Compressed
from tandemmq.common.grpc_transport.rpc.status import CallFailure, Status


class Requests:
    """The `request_iterator` of a handler."""

    __slots__ = ("_call",)

    def __init__(self, call: "StreamRequestCall") -> None:
        self._call = call

    def __aiter__(self) -> "Requests":
        return self

    async def __anext__(self) -> Any:
        request = await self._call.read()
        if request is grpc.aio.EOF:
            raise StopAsyncIteration
        return request


class StreamRequestCall(Call):
    """A call with any number of requests."""

    _arrived: "asyncio.Future[None] | None" = None
    """Where the reader waits for a message or the end."""
    _all_here = False
    _begun = False
    _on_message: "Callable[[Any], object] | None" = None
    """Whom messages are handed to instead of a reader."""
    _heard_all: "asyncio.Future[None] | None" = None
    _at_once: "Callable[[bytes], bytes | None] | None" = None
    """Who may answer a request before it is read."""

    def opened(self) -> None:
        """See Stream: the handler starts with the first header, not with the first message."""
        self._begin()

    def data(self, buffer: bytes, start: int, stop: int, ended: bool) -> None:
        """See Stream. A message of its own frame, as almost all come, goes to who listens without being held."""
        if self.over:
            return
        if self._on_message is not None and not ended and self._is_one_message(buffer, start, stop):
            self._tell(buffer[start + PREFIX_SIZE : stop])
            return
        try:
            messages = self.collect(buffer, start, stop)
        except CallFailure as failure:
            self.stop(failure)
            return
        at_once = self._at_once  # also for what comes after a request that has ended the call
        for message in messages:
            if at_once is not None and self._answered_at_once(at_once, message):
                continue
            self.connection.hold(self, len(message) + PART_OVERHEAD)
            self._queue.append(message)
        if self._on_message is not None:
            self._hand_over()
        if self._queue and self.protocol.server.budget.tight and not self.protocol.may_hold(0):
            self.protocol.server.told.refused += 1
            self.stop(CallFailure(Status.RESOURCE_EXHAUSTED, NO_ROOM))
        if ended:
            self.ended()
        elif self._queue:
            self._wake()

    def _is_one_message(self, buffer: bytes, start: int, stop: int) -> bool:
        """Whether it is a whole message that is not compressed, and nothing waits before it."""
        size = stop - start - PREFIX_SIZE
        if size < 0 or buffer[start] or int.from_bytes(buffer[start + 1 : start + PREFIX_SIZE], "big") != size:
            return False
        if self._queue or size > self.connection.limits.max_receive_message_length:
            return False
        return self.reader is None or not self.reader.incomplete

    def ended(self) -> None:
        """See Stream."""
        self._all_here = True
        if not self._begun:
            self._begin()
        if self.reader is not None and self.reader.incomplete and not self.over:
            self.stop(CallFailure(Status.INTERNAL, "the request ended inside a message"))
        self._wake()
        if self._heard_all is not None and not self._heard_all.done():
            self._heard_all.set_result(None)

    def listen(self, on_message: Callable[[Any], object]) -> "asyncio.Future[None]":
        """Hand each request to a function, in the turn of the loop that brought it, instead of letting it be read.

        What is given back is done when the caller has sent everything, or fails with what the function raised, which
        is not called again then: await it, so that the call ends as if the handler had raised.
        """
        self._on_message = on_message
        self._heard_all = self.protocol.loop.create_future()
        self._hand_over()
        if self._all_here and not self._heard_all.done():
            self._heard_all.set_result(None)
        return self._heard_all

    def answer_at_once(self, at_once: Callable[[bytes], bytes | None]) -> None:
        """Have a function asked for the answer to each request that comes while none waits to be read, as bytes.

        None: it has done nothing of it, and the request is read as any other. It is not asked while an answer could not
        leave. What it raises ends the call.
        """
        if not self.over:
            self._at_once = at_once

    def _answered_at_once(self, at_once: Callable[[bytes], bytes | None], message: bytes) -> bool:
        """Whether a request needs no reader any more."""
        if self.over:
            return True
        connection = self.connection
        if self._queue or type(message) is Compressed or connection.sender.pending_bytes or connection.sender.congested:
            return False
        if self.protocol.server.budget.tight or connection.reader.enough():
            return False
        try:
            answer = at_once(message)
            if answer is None:
                return False
            self.send(answer)
        except Exception as error:  # noqa: BLE001 - the call ends with it, not the connection
            self.fail(error)
            self.cancel_task()
        return True

    def write_now(self, answer: Any) -> bool:
        """Send one answer without waiting; False, and nothing is sent, while the caller or the network takes no more.

        It leaves at the end of this turn of the loop, or with `flush` at once. Raises UsageError when the call is over.
        """
        if self.over:
            raise grpc.aio.UsageError("the call has ended: nothing can be sent")
        if self.pending is not None or self.connection.sender.congested:
            return False
        self.send(self.serialized(answer))
        return True

    def flush(self) -> None:
        """Give to the socket what was written, now."""
        self.protocol.flush()

    def _hand_over(self) -> None:
        heard_all = self._heard_all
        assert self._on_message is not None
        assert heard_all is not None
        while self._queue and not heard_all.done():
            try:
                self._on_message(self._next())
            except Exception as error:  # noqa: BLE001 - the handler that awaits it decides
                heard_all.set_exception(error)

    def _tell(self, message: bytes) -> None:
        """Hand over one message that was not kept."""
        heard_all = self._heard_all
        assert self._on_message is not None
        assert heard_all is not None
        if heard_all.done():
            return
        try:
            self._on_message(self._deserialized(message))
        except Exception as error:  # noqa: BLE001 - the handler that awaits it decides
            heard_all.set_exception(error)

    async def read(self) -> Any:
        """See CallContext."""
        while not self._queue:
            if self._all_here:
                return grpc.aio.EOF
            if self.over:
                raise grpc.aio.UsageError("the call has ended: nothing can be read")
            if self._arrived is not None:
                raise grpc.aio.UsageError("only one read at a time")
            self._arrived = self.protocol.loop.create_future()
            try:
                await self._arrived
            finally:
                self._arrived = None
        return self._next()

    def _next(self) -> Any:
        message = self._queue.popleft()
        self.connection.release(self, len(message) + PART_OVERHEAD)
        self.protocol.sent()
        if self.reader is not None:
            message = self.reader.plain(message)
        return self._deserialized(message)

    def _deserialized(self, message: bytes) -> Any:
        """A request. Raises CallFailure."""
        deserialize = self.method.deserialize
        if deserialize is None:
            return message
        try:
            return deserialize(message)
        except Exception as error:
            log.debug("a request to %s cannot be read: %r", self.head.path, error)
            raise CallFailure(Status.INTERNAL, "Exception deserializing request!") from error

    def stop(self, failure: CallFailure) -> None:
        """End the call for a fault of its caller, and the handler with it."""
        self.end(failure.status, failure.details)
        self.cancel_task()

    def tidy(self) -> None:
        """See CallContext."""
        super().tidy()
        self._queue.clear()
        self._at_once = self._on_message = None  # they know the call: together they would stay for the collector

    async def serve(self, _result: Any) -> None:
        """Run the handler. Raises what it raises."""
        await self._run_with(Requests(self))

    async def _run_with(self, request: Any) -> None:
        result = self.method.behavior(request, self)
        await self.complete(await result if isawaitable(result) else result)

    def _begin(self) -> None:
        self._begun = True
        self._queue: deque[bytes] = deque()
        self.untidy = True
        self.start_timer()
        self.begin_task(None)

    def _wake(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)


class InterceptedCall(StreamRequestCall):
    """A call whose handler the interceptors choose when it has begun; of whatever kind that handler is."""

    async def serve(self, _result: Any) -> None:
        """Ask the interceptors, then run what they chose."""
        details = CallDetails(self.head.path, self.head.metadata)
        method = await self.protocol.server.methods.intercept(details)
        if method is None:
            raise CallFailure(Status.UNIMPLEMENTED, "Method not found!")
        self.method = method
        if method.request_streaming:
            await super().serve(None)
            return
        request = await self.read()
        if request is grpc.aio.EOF or await self.read() is not grpc.aio.EOF:
            raise CallFailure(Status.INTERNAL, "the method takes exactly one request")
        await self._run_with(request)
