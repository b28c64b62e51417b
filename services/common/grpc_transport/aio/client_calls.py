"""Calls of the four kinds, from two halves each: what is sent (one message, many), and what comes (one, many)."""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable
from typing import Any

import grpc

from tandemmq.common.grpc_transport.aio.client_call import ClientCall, framed, log
from tandemmq.common.grpc_transport.rpc.messages import PART_OVERHEAD
from tandemmq.common.grpc_transport.rpc.status import CallFailure, Status

OnMessage = Callable[[Any], object]


class _SendsOne(ClientCall):
    """One request, known from the beginning."""

    _request = b""
    _repeated = False

    def send_one(self, request: Any) -> None:
        """The request. Raises what its serializer raises."""
        try:
            self._request = self.method.serialized(request)
        except grpc.aio.AioRpcError as error:
            self.end(Status.RESOURCE_EXHAUSTED, error.details() or "")
        except Exception:
            self.end(Status.INTERNAL, "Exception serializing request!")
            raise

    def start(self, block: bytes) -> None:
        """See ClientCall."""
        sender = self.connection.sender
        if sender.over_budget:
            self.give_up(Status.RESOURCE_EXHAUSTED, "the server does not take what was sent before")
            return
        sender.request(self, block, framed(self._request), self._request)

    def refused(self) -> None:
        """See Exchange: as no server has looked at the call, it is begun once more."""
        if self._repeated or self.over:
            super().refused()
            return
        self._repeated = True
        self.protocol = None
        self.closed_unseen()
        self.channel.begin_again(self)

    def end(self, status: int, details: str, trailing: Any = ()) -> None:
        """See ClientCall."""
        self._request = b""
        super().end(status, details, trailing)


class _SendsMany(ClientCall):
    """Requests that are written one by one, or taken from an iterator."""

    _poller: "asyncio.Task[None] | None" = None
    _done_writing = False
    _refused = False
    """`write_now` said no: `on_writable` is to be told."""
    on_writable: "Callable[[], object] | None" = None

    def send_each(self, requests: "AsyncIterable[Any] | Iterable[Any] | None") -> None:
        """Requests of an iterator, if there is one."""
        if requests is not None:
            self._poller = self.channel.loop.create_task(self._poll(requests))

    def start(self, block: bytes) -> None:
        """See ClientCall."""
        self.connection.sender.headers(self, block)
        if self._done_writing:
            self.connection.sender.half_close(self)
        self._tell_writable()

    async def write(self, request: Any) -> None:
        """Send one request; waits while the server or the network takes no more.

        Raises AioRpcError or CancelledError when the call has failed, InvalidStateError when it is complete.
        """
        if self._poller is not None:
            raise grpc.aio.UsageError("write() is not for calls that have an iterator of requests")
        await self._write(request)

    async def done_writing(self) -> None:
        """No more requests."""
        if self._poller is not None:
            raise grpc.aio.UsageError("done_writing() is not for calls that have an iterator of requests")
        self._end_writing()

    def write_now(self, request: Any) -> bool:
        """Send one request without waiting; False, and nothing is sent, while the server or the network takes no more.

        After False, `on_writable` of `listen` tells when to try again. What is sent leaves at the end of this turn of
        the event loop, or with `flush` at once. Raises as `write` does.
        """
        if self.over or self._done_writing:
            self._refuse_write()
        protocol = self.protocol
        if protocol is None or self.pending is not None or protocol.connection.sender.congested:
            self._refused = True
            if protocol is not None and self.pending is None:
                protocol.writers[self.stream_id] = self
            return False
        raw = self.method.serialized(request)
        protocol.connection.sender.message(self, framed(raw), raw)
        protocol.sent()
        return True

    def flush(self) -> None:
        """Give to the socket what was written, now."""
        if self.protocol is not None:
            self.protocol.flush()

    def writable(self) -> None:
        """See Stream."""
        super().writable()
        self._tell_writable()

    def end(self, status: int, details: str, trailing: Any = ()) -> None:
        """See ClientCall."""
        if self.over:
            return
        super().end(status, details, trailing)
        if self.protocol is not None:
            self.protocol.writers.pop(self.stream_id, None)
        if self._poller is not None and not self._poller.done():
            self._poller.cancel()

    def _tell_writable(self) -> None:
        if not self._refused or self.on_writable is None or self.over:
            return
        self._refused = False
        try:
            self.on_writable()
        except Exception:  # noqa: BLE001 - whatever it raises, the connection's other calls go on
            log.exception("on_writable of %s raised", self.method.path)
            self.give_up(Status.INTERNAL, "the caller could not write")

    def _refuse_write(self) -> None:
        if self.over:
            self.raise_for_status()
            raise asyncio.InvalidStateError("RPC already finished.")
        raise asyncio.InvalidStateError('RPC is half closed after calling "done_writing".')

    async def _write(self, request: Any) -> None:
        if self.over or self._done_writing:
            self._refuse_write()
        try:
            await self._room()
            raw = self.method.serialized(request)
            self.connection.sender.message(self, framed(raw), raw)
            if self.protocol is not None:
                self.protocol.sent()
            await self._room()
        except asyncio.CancelledError:
            self.cancel()
            raise

    async def _room(self) -> None:
        """Until the call is on a stream, nothing of it is pending, and the socket takes more."""
        while self.protocol is None or self.pending is not None or self.connection.sender.congested:
            if self.over:
                break
            if self.protocol is not None and self.pending is None:
                self.protocol.writers[self.stream_id] = self
            await self.changed()
        if self.over:
            self._refuse_write()

    def _end_writing(self) -> None:
        if self.over or self._done_writing:
            return
        self._done_writing = True
        if self.protocol is not None:
            self.connection.sender.half_close(self)
            self.protocol.sent_by(self)

    async def _poll(self, requests: "AsyncIterable[Any] | Iterable[Any]") -> None:
        """The body of the task that takes requests from an iterator; it never fails."""
        try:
            if isinstance(requests, AsyncIterable):
                async for request in requests:
                    await self._write(request)
            else:
                for request in requests:
                    await self._write(request)
            self._end_writing()
        except asyncio.CancelledError:
            self.cancel()
        except Exception as error:  # noqa: BLE001 - an iterator may raise anything; the call says what became of it
            if not self.over:
                log.debug("the requests of %s broke off: %r", self.method.path, error)
                self.cancel()


class _TakesOne(ClientCall):
    """One answer, which is awaited."""

    _answer: bytes | None = None

    def take(self, message: bytes) -> None:
        """See ClientCall."""
        if self._answer is not None:
            raise CallFailure(Status.INTERNAL, "more than one answer of a method that gives one")
        self._answer = message

    def end(self, status: int, details: str, trailing: Any = ()) -> None:
        """See ClientCall."""
        if status == Status.OK and self._answer is None:
            status, details = Status.INTERNAL, "the server ended the call without an answer"
        super().end(status, details, trailing)

    def __await__(self) -> Generator[Any, None, Any]:
        """The answer. Raises AioRpcError, and CancelledError when the call was cancelled here."""
        try:
            while not self.over:
                yield from self.changed().__await__()
        except asyncio.CancelledError:
            self.cancel()
            raise
        self.raise_for_status()
        return self.method.deserialized(self._answer or b"")


class _TakesMany(ClientCall):
    """Answers that are read one by one, or handed to a function."""

    _queue: "deque[bytes]"
    _arrived: "asyncio.Future[None] | None" = None
    _on_message: OnMessage | None = None

    def prepare(self) -> None:
        """To be called once, before anything else."""
        self._queue = deque()

    def take(self, message: bytes) -> None:
        """See ClientCall."""
        if self._on_message is not None:
            self._hand_over(message)
            return
        self._queue.append(message)
        self.connection.hold(self, len(message) + PART_OVERHEAD)
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    async def read(self) -> Any:
        """The next answer; `grpc.aio.EOF` after the last. Raises as awaiting a call does when it has failed."""
        while not self._queue:
            if self.over:
                self.raise_for_status()
                return grpc.aio.EOF
            if self._arrived is not None or self._on_message is not None:
                raise grpc.aio.UsageError("only one read at a time, and none of a call that is listened to")
            self._arrived = self.channel.loop.create_future()
            try:
                await self._arrived
            except asyncio.CancelledError:
                self.cancel()
                raise
            finally:
                self._arrived = None
        message = self._queue.popleft()
        if not self.closed:
            self.connection.release(self, len(message) + PART_OVERHEAD)
            if self.protocol is not None:
                self.protocol.sent()
        try:
            return self.method.deserialized(message)
        except grpc.aio.AioRpcError:
            self.give_up(Status.INTERNAL, "Exception deserializing response!")
            raise

    def __aiter__(self) -> AsyncIterator[Any]:
        """The answers, until the last. Who stops before should cancel the call."""
        return self

    async def __anext__(self) -> Any:
        """See `read`."""
        message = await self.read()
        if message is grpc.aio.EOF:
            raise StopAsyncIteration
        return message

    def end(self, status: int, details: str, trailing: Any = ()) -> None:
        """See ClientCall."""
        super().end(status, details, trailing)
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    def fail(self, status: int, details: str) -> None:
        """See ClientCall."""
        self._queue.clear()
        super().fail(status, details)

    def hand_to(self, on_message: OnMessage) -> None:
        """Answers go to `on_message` from now on, those first that wait already."""
        if self._arrived is not None:
            raise grpc.aio.UsageError("somebody reads this call")
        self._on_message = on_message
        while self._queue:
            message = self._queue.popleft()
            if not self.closed:
                self.connection.release(self, len(message) + PART_OVERHEAD)
            self._hand_over(message)
        if self.protocol is not None:
            self.protocol.sent()

    def _hand_over(self, message: bytes) -> None:
        assert self._on_message is not None
        try:
            self._on_message(message if self.method.deserialize is None else self.method.deserialize(message))
        except Exception:  # noqa: BLE001 - whatever the listener raises, the connection's other calls go on
            log.exception("an answer of %s could not be taken", self.method.path)
            self.give_up(Status.INTERNAL, "an answer could not be taken")


class UnaryUnaryCall(_SendsOne, _TakesOne, grpc.aio.UnaryUnaryCall[Any, Any]):
    """One request, one answer."""


class UnaryStreamCall(_SendsOne, _TakesMany, grpc.aio.UnaryStreamCall[Any, Any]):
    """One request, a stream of answers."""


class StreamUnaryCall(_SendsMany, _TakesOne, grpc.aio.StreamUnaryCall[Any, Any]):
    """A stream of requests, one answer."""


class StreamStreamCall(_SendsMany, _TakesMany, grpc.aio.StreamStreamCall[Any, Any]):
    """Streams both ways."""

    def listen(
        self,
        on_message: OnMessage,
        *,
        on_end: "Callable[[grpc.StatusCode, str], object] | None" = None,
        on_writable: "Callable[[], object] | None" = None,
    ) -> None:
        """Answers are handed to `on_message`, in the turn of the event loop that brought them; nobody may read.

        `on_end(status, details)` is called once, when the call has ended, in whatever way. `on_writable()` is called
        when `write_now` has said no and would say yes again.
        """
        self.on_writable = on_writable
        if on_end is not None:
            self.add_done_callback(lambda call: call.tell_end(on_end))
        self.hand_to(on_message)
        self._tell_writable()

    def tell_end(self, on_end: "Callable[[grpc.StatusCode, str], object]") -> None:
        """Tell how the call ended."""
        error = self.error()
        on_end(error.code(), error.details() or "")
