"""ClientCall: a call as its caller sees it (`grpc.aio.Call`): status, metadata, deadline, cancellation.

One object is the HTTP/2 stream and the call. Until its connection is there it is on no stream.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import grpc

from tandemmq.common.grpc_transport.http2.client import Exchange
from tandemmq.common.grpc_transport.http2.errors import ErrorCode, StreamFault
from tandemmq.common.grpc_transport.http2.response import ResponseHead
from tandemmq.common.grpc_transport.rpc import outcome, requests
from tandemmq.common.grpc_transport.rpc.compression import IDENTITY
from tandemmq.common.grpc_transport.rpc.messages import MessageReader, pack_prefix
from tandemmq.common.grpc_transport.rpc.metadata import Metadatum
from tandemmq.common.grpc_transport.rpc.status import CallFailure, Status

if TYPE_CHECKING:
    from tandemmq.common.grpc_transport.aio.channel import Channel
    from tandemmq.common.grpc_transport.aio.client_protocol import ClientProtocol

log = logging.getLogger(__name__)

Metadata = Iterable[tuple[str, str | bytes]]
CODES: "dict[int, grpc.StatusCode]" = {code.value[0]: code for code in grpc.StatusCode}
LOCALLY_CANCELLED = "Locally cancelled by application!"


class ClientMethod:
    """A method of a channel: what is the same in all its calls."""

    __slots__ = ("channel", "deserialize", "head", "path", "serialize")

    def __init__(
        self,
        channel: "Channel",
        path: str,
        serialize: Callable[[Any], bytes] | None,
        deserialize: Callable[[bytes], Any] | None,
    ) -> None:
        """Raises ValueError for what is no method's path."""
        self.channel = channel
        self.path = path
        self.serialize = serialize
        self.deserialize = deserialize
        self.head = requests.head(path, channel.authority, channel.secure)

    def serialized(self, message: Any) -> bytes:
        """A request as bytes. Raises what the serializer raises, and AioRpcError when it is too long."""
        raw = message if self.serialize is None else self.serialize(message)
        if not isinstance(raw, bytes):
            raise TypeError(f"{self.path} takes bytes when it has no serializer, not {type(raw).__name__}")
        limit = self.channel.limits.max_send_message_length
        if len(raw) > limit:
            details = f"Sent message larger than max ({len(raw)} vs. {limit})"
            raise grpc.aio.AioRpcError(grpc.StatusCode.RESOURCE_EXHAUSTED, details=details)
        return raw

    def deserialized(self, message: bytes) -> Any:
        """An answer as the stub wants it. Raises AioRpcError when it cannot be read."""
        if self.deserialize is None:
            return message
        try:
            return self.deserialize(message)
        except Exception as error:
            log.debug("an answer of %s cannot be read: %r", self.path, error)
            raise grpc.aio.AioRpcError(grpc.StatusCode.INTERNAL, details="Exception deserializing response!") from error


class ClientCall(Exchange, grpc.aio.Call):
    """What calls of all kinds share. As in Stream, defaults are on the class."""

    protocol: "ClientProtocol | None" = None
    """Where the call is on a stream; None: it waits for a connection."""
    over = False
    """The call has its status."""
    _status = 0
    _details = ""
    _initial: tuple[Metadatum, ...] = ()
    _trailing: tuple[Metadatum, ...] = ()
    _head_came = False
    _cancelled = False
    _reader: MessageReader | None = None
    """Collects messages that do not come in one piece."""
    _encoding = IDENTITY
    _callbacks: "tuple[Callable[[Any], object], ...]" = ()
    _waiters: "tuple[asyncio.Future[None], ...]" = ()
    """Who waits for the head, the end, or room to write."""
    _timer: asyncio.TimerHandle | None = None
    _deadline: float | None = None

    def __init__(
        self, method: ClientMethod, timeout: float | None, metadata: Metadata | None, wait_for_ready: bool | None
    ) -> None:
        """`timeout`: seconds. Raises TypeError, ValueError for metadata that cannot be sent."""
        self.method = method
        self.channel = method.channel
        self.wait_for_ready = bool(wait_for_ready)
        of_all = self.channel.metadata
        self._metadata = requests.encoded(metadata if of_all is None else (*of_all(), *(metadata or ())))
        if timeout is not None:
            loop = self.channel.loop
            self._deadline = loop.time() + timeout
            self._timer = loop.call_at(self._deadline, self._expire)

    # -- what a caller may know ---------------------------------------------------------------------------------------

    def cancelled(self) -> bool:
        """The call was cancelled, here or by the server."""
        return self.over and self._status == Status.CANCELLED

    def done(self) -> bool:
        """The call has its status; messages may still wait to be read."""
        return self.over

    def time_remaining(self) -> float | None:
        """Seconds to the deadline, at least 0; None without one."""
        return None if self._deadline is None else max(0.0, self._deadline - self.channel.loop.time())

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        """`callback(call)` is called once when the call has its status; at once if it has."""
        if self.over:
            callback(self)
        else:
            self._callbacks = (*self._callbacks, callback)

    def cancel(self) -> bool:
        """Give the call up, and tell the server; False when it was over."""
        return self.give_up(Status.CANCELLED, LOCALLY_CANCELLED, local=True)

    async def initial_metadata(self) -> grpc.aio.Metadata:
        """What the server sent before its first answer; waits for it, or for the end."""
        while not self._head_came and not self.over:
            await self.changed()
        return _metadata(self._initial)

    async def trailing_metadata(self) -> grpc.aio.Metadata:
        """What the server sent beside the status; waits for it."""
        await self.ending()
        return _metadata(self._trailing)

    async def code(self) -> grpc.StatusCode:
        """The status; waits for it."""
        await self.ending()
        return CODES[self._status]

    async def details(self) -> str:
        """The text beside the status; waits for it."""
        await self.ending()
        return self._details

    async def debug_error_string(self) -> str:
        """The same as `details`."""
        return await self.details()

    async def wait_for_connection(self) -> None:
        """Until the call is on a connection. Raises AioRpcError when it has failed."""
        while self.protocol is None and not self.over:
            await self.changed()
        if self.over:
            self.raise_for_status()

    # -- waiting ------------------------------------------------------------------------------------------------------

    async def changed(self) -> None:
        """Until something about the call has changed."""
        waiter = self.channel.loop.create_future()
        self._waiters += (waiter,)
        try:
            await waiter
        finally:
            self._waiters = tuple(other for other in self._waiters if other is not waiter)

    async def ending(self) -> None:
        """Until the call has its status."""
        while not self.over:
            await self.changed()

    def wake(self) -> None:
        """Something has changed."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    def raise_for_status(self) -> None:
        """Nothing, if the call ended with OK. Raises CancelledError if it was cancelled here, else AioRpcError."""
        if self._cancelled:
            raise asyncio.CancelledError
        if self._status:
            raise self.error()

    def error(self) -> grpc.aio.AioRpcError:
        """The status as an exception."""
        return grpc.aio.AioRpcError(
            CODES[self._status],
            _metadata(self._initial),
            _metadata(self._trailing),
            details=self._details,
            debug_error_string=self._details,
        )

    # -- the channel's and the connection's calls ---------------------------------------------------------------------

    def opened_on(self, protocol: "ClientProtocol") -> None:
        """The call is on a stream: send its head, and what there is to send."""
        self.protocol = protocol
        self.start(self.method.head + requests.extras(self.time_remaining(), self._metadata))
        if self._waiters:
            self.wake()

    def start(self, block: bytes) -> None:
        """Send the head of the request, and all that is ready."""
        raise NotImplementedError

    def take(self, message: bytes) -> None:
        """A message came. Raises CallFailure."""
        raise NotImplementedError

    def answer_begins(self, head: ResponseHead, ended: bool) -> None:
        """See Exchange."""
        self._head_came = True
        if ended:
            self._conclude(head)
            return
        view = head.view
        if view is None:
            view = head.view = outcome.AnswerHead(head)
        if view.refusal is not None:
            self.give_up(view.refusal.status, view.refusal.details)
            return
        self._initial = view.metadata
        self._encoding = view.encoding
        if self._waiters:
            self.wake()

    def data(self, buffer: bytes, start: int, stop: int, ended: bool) -> None:
        """See Stream. A whole message in a whole frame, as almost all come, is cut out once and not copied again."""
        if not self.answered:
            raise StreamFault(ErrorCode.PROTOCOL_ERROR, "DATA before the head of an answer")
        if self.over:
            return
        try:
            if (
                self._reader is None
                and stop - start >= 5
                and not buffer[start]
                and int.from_bytes(buffer[start + 1 : start + 5], "big") == stop - start - 5
                and stop - start - 5 <= self.connection.limits.max_receive_message_length
            ):
                self.take(buffer[start + 5 : stop])
            else:
                self._take_parts(buffer, start, stop)
        except CallFailure as failure:
            self.give_up(failure.status, failure.details)
            return
        if ended:
            self.end(Status.UNKNOWN, "the server ended the call without a status")
            self.connection.finish(self)

    def _take_parts(self, buffer: bytes, start: int, stop: int) -> None:
        reader = self._reader
        if reader is None:
            reader = self._reader = MessageReader(self._encoding, self.connection.limits.max_receive_message_length)
        messages = reader.feed(buffer, start, stop)
        if not reader.incomplete:
            self._reader = None
        for message in messages:
            self.take(reader.plain(message))
            if self.over:
                return

    def answer_ends(self, trailers: ResponseHead) -> None:
        """See Exchange."""
        self._conclude(trailers)

    def _conclude(self, end: ResponseHead) -> None:
        view = end.view
        if view is None:
            view = end.view = outcome.CallOutcome(end)
        if self._reader is not None and view.status == Status.OK:
            self.end(Status.INTERNAL, "the answer ended inside a message")
            return
        self.end(view.status, view.details, view.metadata)

    def too_large(self) -> None:
        """See Exchange."""
        self.fail(Status.RESOURCE_EXHAUSTED, "received metadata larger than max")

    def reset(self, code: int) -> None:
        """See Stream: by the server, for its fault, or as the connection is gone."""
        connection, protocol = self.connection, self.protocol
        if protocol is not None and (connection.gone or connection.failed is not None):
            self.fail(Status.UNAVAILABLE, protocol.why())
            return
        found = outcome.of_reset(code)
        late = self._deadline is not None and self.channel.loop.time() >= self._deadline
        if found.status is Status.CANCELLED and late:
            self.fail(Status.DEADLINE_EXCEEDED, "Deadline Exceeded")
        else:
            self.fail(found.status, found.details)

    def refused(self) -> None:
        """See Exchange."""
        self.fail(Status.UNAVAILABLE, "the server refused the call before it looked at it")

    # -- ends ---------------------------------------------------------------------------------------------------------

    def give_up(self, status: int, details: str, *, local: bool = False) -> bool:
        """End the call from this side; False when it was over."""
        if self.over:
            return False
        self._cancelled = local
        self.fail(status, details)
        if self.protocol is not None and not self.closed:
            self.connection.cancel(self, ErrorCode.CANCEL)
            self.protocol.sent_by(self)
        return True

    def fail(self, status: int, details: str) -> None:
        """End the call; what came and was not read is dropped."""
        self.end(status, details)

    def end(self, status: int, details: str, trailing: tuple[Metadatum, ...] = ()) -> None:
        """The call has its status."""
        if self.over:
            return
        self.over = True
        self._status, self._details, self._trailing = int(status), details, trailing
        self._reader = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.protocol is None:
            self.channel.waiting.pop(self, None)
        if self._waiters:
            self.wake()
        callbacks, self._callbacks = self._callbacks, ()
        for callback in callbacks:
            try:
                callback(self)
            except Exception:
                log.exception("a done callback of %s raised", self.method.path)

    def writable(self) -> None:
        """See Stream; also called when the socket takes more."""
        if self._waiters:
            self.wake()

    def _expire(self) -> None:
        self._timer = None
        self.give_up(Status.DEADLINE_EXCEEDED, "Deadline Exceeded")


def framed(message: bytes) -> bytes:
    """The prefix of a message that is not compressed."""
    return pack_prefix(0, len(message))


def _metadata(pairs: Iterable[tuple[str, str | bytes]]) -> grpc.aio.Metadata:
    return grpc.aio.Metadata(*((key, value) for key, value in pairs))
