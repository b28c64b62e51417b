"""CallContext: a call as its handler sees it (`grpc.aio.ServicerContext`), and how its answers are sent.

One object is the HTTP/2 stream, the call and the handler's context: making three would cost more than most handlers do.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import grpc

from tandemmq.common.grpc_transport.aio.checks import CODES, Metadata, checked, number, text
from tandemmq.common.grpc_transport.aio.flushing import FLUSH_AT
from tandemmq.common.grpc_transport.http2.budget import Account
from tandemmq.common.grpc_transport.http2.connection import Connection
from tandemmq.common.grpc_transport.http2.stream import Stream
from tandemmq.common.grpc_transport.rpc import answers, compression
from tandemmq.common.grpc_transport.rpc.call_head import CallHead
from tandemmq.common.grpc_transport.rpc.messages import pack_prefix
from tandemmq.common.grpc_transport.rpc.metadata import Metadatum
from tandemmq.common.grpc_transport.rpc.status import CallFailure, Status

if TYPE_CHECKING:
    from tandemmq.common.grpc_transport.aio.first_step import StandIn
    from tandemmq.common.grpc_transport.aio.handlers import Method
    from tandemmq.common.grpc_transport.aio.protocol import Protocol

log = logging.getLogger(__name__)

TASK_STEP_SECONDS = 0.0001
"""What a task that is begun or cancelled costs in the turn after this one. That of thousands is not to be one turn."""


class CallContext(Stream, grpc.aio.ServicerContext[Any, Any]):
    """The handler's side of a call. As in Stream, defaults are on the class: most calls set none of them."""

    task: "asyncio.Task[None] | None" = None
    """What runs the handler, once it cannot be run at once."""
    stand_in: "StandIn | None" = None
    """What to cancel in its stead, when it began without."""
    over = False
    """The status has been sent, or nobody waits for it any more."""
    head_sent = False
    untidy = False
    """The call keeps something that others count or know: `tidy` must be called."""
    _metadata: tuple[Metadatum, ...] | None = None
    _code: int | None = None
    _details = ""
    _trailing: Metadata = ()
    _callbacks: "tuple[Callable[[Any], None], ...]" = ()
    _aborted = False
    _cancelled = False
    _encoding = compression.IDENTITY
    _next_plain = False
    _lead = b""
    """What goes before the answer that was serialized last: the large part of that is not copied to be joined to it."""
    appended: tuple[bytes, ...] = ()
    """What follows the next answer as it is serialized: see `answering.append_field`."""
    _rooms: "tuple[asyncio.Future[None], ...]" = ()
    """Where writers wait for pending data to go out."""
    _timer: asyncio.TimerHandle | None = None
    _deadline: float | None = None

    def __init__(
        self, protocol: "Protocol", connection: Connection, stream_id: int, head: CallHead, method: "Method"
    ) -> None:
        super().__init__(connection, stream_id)
        self.protocol = protocol
        self.head = head
        self.method = method
        if head.timeout is not None:
            self._deadline = protocol.loop.time() + head.timeout
        if protocol.server.compression is not None:
            self.set_compression(protocol.server.compression)
        protocol.server.active += 1

    # -- what a handler may know --------------------------------------------------------------------------------------

    def invocation_metadata(self) -> tuple[Metadatum, ...]:  # type: ignore[override]
        """What the caller sent along."""
        return self.head.metadata

    def peer(self) -> str:
        """`ipv4:address:port`, `ipv6:%5Baddress%5D:port` or `unix:`."""
        return self.protocol.peer

    @property
    def account(self) -> Account:
        """What its connection holds, and whose it is."""
        return self.protocol.account

    def peer_identities(self) -> Iterable[bytes] | None:
        """Names in the caller's certificate; None without one."""
        key = self.peer_identity_key()
        return None if key is None else self.auth_context().get(key)

    def peer_identity_key(self) -> str | None:
        """Which property of `auth_context` identifies the caller."""
        return self.protocol.identity.key

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """What TLS knows of the caller; empty without TLS."""
        return self.protocol.identity.properties

    def time_remaining(self) -> float | None:  # type: ignore[override]
        """Seconds to the deadline, at least 0; None: the caller waits for ever."""
        return None if self._deadline is None else max(0.0, self._deadline - self.protocol.loop.time())

    def cancelled(self) -> bool:
        """The caller has given up, or its time is over."""
        return self._cancelled

    def done(self) -> bool:
        """The call has ended, in whatever way."""
        return self.over

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """`callback(context)` is called once when the call ends; at once if it has."""
        if self.over:
            callback(self)
        else:
            self._callbacks = (*self._callbacks, callback)

    # -- what a handler may say ---------------------------------------------------------------------------------------

    def set_code(self, code: "grpc.StatusCode | int") -> None:
        """The status of the call when its handler returns."""
        self._code = number(code)

    def code(self) -> "grpc.StatusCode":
        """What `set_code` or `abort` said; None before."""
        return CODES.get(self._code)  # type: ignore[return-value]

    def set_details(self, details: str) -> None:
        """The text beside the status."""
        self._details = text(details)

    def details(self) -> str:
        """What `set_details` or `abort` said."""
        return self._details

    def set_trailing_metadata(self, trailing_metadata: Metadata) -> None:
        """Metadata beside the status."""
        self._trailing = checked(trailing_metadata)

    def trailing_metadata(self) -> Metadata:  # type: ignore[override]
        """What `set_trailing_metadata` or `abort` said."""
        return self._trailing

    def set_compression(self, compression: grpc.Compression) -> None:
        """How answers are compressed, if the caller can read that; before the first answer."""
        if self.head_sent:
            raise RuntimeError("Compression setting must be specified before sending initial metadata")
        wanted = {grpc.Compression.Gzip: b"gzip", grpc.Compression.Deflate: b"deflate"}.get(compression, b"identity")
        self._encoding = wanted if wanted in self.head.accepted else b"identity"

    def disable_next_message_compression(self) -> None:
        """The next answer goes as it is."""
        self._next_plain = True

    async def send_initial_metadata(self, initial_metadata: Metadata) -> None:
        """Send the head of the answer now, with metadata. Raises UsageError the second time."""
        if self.over:
            raise grpc.aio.UsageError("the call has ended: no metadata can be sent")
        if self.head_sent:
            raise grpc.aio.UsageError("Send initial metadata failed: already sent")
        self._send_head(checked(initial_metadata))
        self.protocol.sent()

    async def abort(self, code: "grpc.StatusCode", details: str = "", trailing_metadata: Metadata = ()) -> NoReturn:
        """End the call with an error, now. Always raises AbortError, which the handler should let pass."""
        if number(code) == 0:
            self.end(Status.UNKNOWN, "abort() called with StatusCode.OK")
            raise grpc.aio.UsageError("abort() called with StatusCode.OK")
        if self._aborted:
            raise grpc.aio.UsageError("Abort already called!")
        self._aborted = True
        self.set_code(code)
        self._details = text(details) or self._details
        if trailing_metadata:
            self._trailing = checked(trailing_metadata)
        self.end(self._code or 0, self._details)
        raise grpc.aio.AbortError("Locally aborted.")

    async def abort_with_status(self, status: grpc.Status) -> NoReturn:
        """The same, from a `grpc.Status`."""
        await self.abort(status.code, status.details, status.trailing_metadata or ())

    async def read(self) -> Any:
        """The next request of a stream; `grpc.aio.EOF` after the last."""
        raise grpc.aio.UsageError("read() is for methods that take a stream of requests")

    async def write(self, message: Any) -> None:
        """Send one answer of a stream; waits while the caller or the network takes no more."""
        if not self.method.response_streaming:
            raise grpc.aio.UsageError("write() is for methods that answer with a stream")
        if not self.send(self.serialized(message)):
            await self.room()

    async def write_all(self, messages: Sequence[bytes]) -> None:
        """Send several answers of a stream, each as bytes, in one piece; waits as `write` does."""
        if len(messages) == 1:
            await self.write(messages[0])  # not copied where it is long
        elif not self.send(b"".join([part for one in messages for part in self._framed(one)]), framed=True):
            await self.room()

    # -- sending ------------------------------------------------------------------------------------------------------

    def serialized(self, message: Any) -> bytes:
        """An answer as bytes, to be sent next; its beginning may be in `_lead`. Raises CallFailure."""
        serialize = self.method.serialize
        if serialize is None:
            raw = message
        else:
            try:
                raw = serialize(message)
            except Exception as error:
                log.exception("an answer of %s cannot be serialized", self.head.path)
                raise CallFailure(Status.INTERNAL, "Failed to serialize response!") from error
        if not isinstance(raw, bytes):
            log.error("%s answered with %s instead of a message", self.head.path, type(raw).__name__)
            raise CallFailure(Status.INTERNAL, "Failed to serialize response!")
        if self.appended:
            *before, last = self.appended
            self.appended = ()
            self._lead = b"".join((raw, *before))
            return last
        return raw

    def send(self, message: bytes, *, framed: bool = False) -> bool:
        """Queue one answer; False when the writer must await `room` before the next. Raises CallFailure, UsageError.

        `framed`: it has its prefix already, or is several of which each has.
        """
        if self.over:
            raise grpc.aio.UsageError("the call has ended: nothing can be sent")
        sender = self.connection.sender
        if sender.pending_bytes:
            self.protocol.claim(len(message))
        prefix, message = (b"", message) if framed else self._framed(message)
        if not self.head_sent:
            self._send_head(())
        went = sender.message(self, prefix, message)
        if not went:
            self.protocol.settle()
        if sender.size > FLUSH_AT:
            self.protocol.flush()
        else:
            self.protocol.sent()
        return went and not sender.congested

    async def room(self) -> None:
        """Until what is pending has been sent, and the socket takes more."""
        while not self.over and (self.pending is not None or self.connection.sender.congested):
            room = self.protocol.loop.create_future()
            self._rooms += (room,)
            self.protocol.writers[self.stream_id] = self
            try:
                await room
            finally:
                self._rooms = tuple(other for other in self._rooms if other is not room)
                if not self._rooms:
                    self.protocol.writers.pop(self.stream_id, None)

    def writable(self) -> None:
        """See Stream; also called when the socket takes more."""
        if self.over and self.pending is None:
            self._stop_timer()
        for room in self._rooms:
            if not room.done():
                room.set_result(None)

    def answer(self, message: bytes) -> None:
        """The one answer of a call, or all of a stream in one piece, and its end. Raises CallFailure."""
        if self.over:
            return
        sender = self.connection.sender
        if sender.pending_bytes:
            self.protocol.claim(len(message))
        plain = self._encoding is compression.IDENTITY and not self.head_sent
        if plain and not self._trailing and not self._details:
            framed = self.method.response_streaming
            lead, self._lead = self._lead, b""
            length = len(lead) + len(message)
            if length > self.connection.limits.max_send_message_length and not framed:
                raise self._too_long(length)
            self.over = True
            sender.answer(self, answers.OK, lead if framed else pack_prefix(0, length) + lead, message)
            if sender.pending_bytes:
                self.protocol.settle()
            if sender.size > FLUSH_AT:
                self.protocol.flush()
            elif not self.connection.receiving:
                self.protocol.output_ready()
            self._finish()
            return
        self.send(message, framed=self.method.response_streaming)
        self.end(Status.OK, self._details)

    def end(self, code: int, details: str) -> None:
        """The status of the call, with the trailing metadata; nothing can be sent after it."""
        if self.over:
            return
        self.over = True
        try:
            block = answers.trailers_with(code, details, self._trailing)
        except Exception:
            log.exception("trailing metadata of %s cannot be sent", self.head.path)
            block = answers.trailers(Status.INTERNAL, "the server's trailing metadata cannot be sent")
        if not self.closed:
            if self.pending is not None and code != Status.OK:
                self.connection.sender.forget(self)  # a message breaks off; its reader learns why
            self.connection.sender.trailers(self, block if self.head_sent else answers.HEAD + block)
        self.protocol.sent()
        self._finish()

    def fail(self, error: BaseException) -> None:
        """The handler raised: a status that says no more than the caller may know."""
        if isinstance(error, grpc.aio.AbortError) or self.over:
            self.end(Status.UNKNOWN, "")
        elif isinstance(error, CallFailure):
            self.end(error.status, error.details)
        elif isinstance(error, asyncio.CancelledError):
            self.end(Status.CANCELLED, "the handler was cancelled")
        else:
            incident = self.protocol.server.incident()
            log.error("%s raised (incident %s)", self.head.path, incident, exc_info=error)
            code = self._code or Status.UNKNOWN
            self.end(code, f"the handler failed; the server's log has the details under incident {incident}")

    # -- ends ---------------------------------------------------------------------------------------------------------

    def reset(self, code: int) -> None:
        """The caller has given up, or is gone, or has broken the protocol."""
        self._cancelled = True
        self._give_up()

    def expire(self) -> None:
        """The deadline has come."""
        self._timer = None
        if not self.over:
            self._cancelled = True
            self.end(Status.DEADLINE_EXCEEDED, "Deadline Exceeded")
            self._give_up()
        else:
            self.break_off(Status.DEADLINE_EXCEEDED, "Deadline Exceeded")

    def expire_now(self) -> None:
        """The deadline has come, by somebody else's timer."""
        self._stop_timer()
        self.expire()

    def break_off(self, status: Status, details: str) -> None:
        """The answer was given and nobody took it in time: what has not gone is dropped, and the caller told."""
        self._stop_timer()
        if self.pending is not None and not self.closed:
            self.connection.sender.forget(self)
            self.connection.sender.trailers(self, answers.trailers(status, details))
            self.protocol.sent()

    def tidy(self) -> None:
        """Let go of what the call still keeps; called when it is over, if it is `untidy`."""

    def start_timer(self) -> None:
        """Watch the deadline. Calls that are answered at once need not."""
        if self._deadline is not None and self._timer is None and (not self.over or self.pending is not None):
            self._timer = self.protocol.loop.call_at(self._deadline, self.expire)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._stop_timer()
        if not self.over:
            self.over = True
            self._finish()
        self.cancel_task()

    def cancel_task(self) -> None:
        """Cancel the handler, if it runs."""
        if self.task is not None:
            (self.stand_in or self.task).cancel()
            self.protocol.slice_ends -= TASK_STEP_SECONDS

    def _finish(self) -> None:
        """Once, when the call is over."""
        self.protocol.server.active -= 1
        if self.untidy:
            self.tidy()
        if self.pending is not None:
            self.start_timer()
        else:
            self._stop_timer()
        if self._callbacks:
            for callback in self._callbacks:
                try:
                    callback(self)
                except Exception:
                    log.exception("a done callback of %s raised", self.head.path)
            self._callbacks = ()

    def _send_head(self, metadata: Metadata) -> None:
        plain = not metadata and self._encoding is compression.IDENTITY
        self.connection.sender.headers(self, answers.HEAD if plain else answers.head(self._encoding, metadata))
        self.head_sent = True

    def _framed(self, message: bytes) -> tuple[bytes, bytes]:
        compressed = self._encoding != compression.IDENTITY and not self._next_plain
        self._next_plain = False
        lead, self._lead = self._lead, b""
        if compressed:
            lead, message = b"", compression.compressor(self._encoding)(lead + message)
        length = len(lead) + len(message)
        if length > self.connection.limits.max_send_message_length:
            raise self._too_long(length)
        return pack_prefix(compressed, length) + lead, message

    def _too_long(self, length: int) -> CallFailure:
        limit = self.connection.limits.max_send_message_length
        return CallFailure(Status.RESOURCE_EXHAUSTED, f"Sent message larger than max ({length} vs. {limit})")
