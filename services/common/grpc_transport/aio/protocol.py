"""Protocol: one socket of the server; between asyncio's calls and the connection's bytes."""

import asyncio
import logging
import socket
from time import monotonic
from typing import TYPE_CHECKING, cast

from tandemmq.common.grpc_transport.aio.call import UnaryRequestCall
from tandemmq.common.grpc_transport.aio.context import CallContext
from tandemmq.common.grpc_transport.aio.flushing import WRITE_BUFFER
from tandemmq.common.grpc_transport.aio.handlers import UNDECIDED, Method
from tandemmq.common.grpc_transport.aio.holding import NO_ROOM, ServerHolding, owner_of
from tandemmq.common.grpc_transport.aio.identity import ANONYMOUS, PeerIdentity, identity, peer_name
from tandemmq.common.grpc_transport.aio.refused import RefusedCall
from tandemmq.common.grpc_transport.aio.stream_call import InterceptedCall, StreamRequestCall
from tandemmq.common.grpc_transport.http2.budget import STREAM_COST
from tandemmq.common.grpc_transport.http2.connection import Connection
from tandemmq.common.grpc_transport.http2.errors import ErrorCode
from tandemmq.common.grpc_transport.http2.request import RequestHead
from tandemmq.common.grpc_transport.http2.stream import Stream
from tandemmq.common.grpc_transport.rpc import answers
from tandemmq.common.grpc_transport.rpc.call_head import OK, CallHead
from tandemmq.common.grpc_transport.rpc.status import CallFailure, Refusal, Status

if TYPE_CHECKING:
    from tandemmq.common.grpc_transport.aio.server import Server

log = logging.getLogger(__name__)

_LINGER_SECONDS = 1.0
"""How long a connection that failed is read (and ignored): closing at once could lose the GOAWAY on its way."""
_NOTSENT = 512 << 10
"""Bytes that the kernel keeps for a socket before it has sent them: without a bound it takes several MiB for each."""
_UNIMPLEMENTED = Refusal(Status.UNIMPLEMENTED, "Method not found!")
_TOO_BUSY = Refusal(Status.RESOURCE_EXHAUSTED, "Concurrent RPC limit exceeded!")
_NO_ROOM = Refusal(Status.RESOURCE_EXHAUSTED, NO_ROOM)


class Protocol(ServerHolding):
    """asyncio's side of a connection, and its Sink."""

    __slots__ = ("writers",)  # see Flushing

    connection: Connection

    def __init__(self, server: "Server") -> None:
        super().__init__()
        self.server = server
        self.loop = server.loop
        self.peer = ""
        self.identity: PeerIdentity = ANONYMOUS
        self.connection = Connection(server.limits, self, server.heads, self.loop.time(), answers.METADATA_TOO_LARGE)
        self.parked: dict[int, UnaryRequestCall] = {}
        """Requests whose answers could not leave: they run when the peer reads again."""
        self._opened_before = 0
        """`sender.opened_bytes` when one of them was begun last, or began to wait."""
        self.writers: dict[int, CallContext] = {}
        """Calls that wait for room to write."""
        self.slice_ends = 0.0
        """Until then frames are read and handlers begun in this turn, by `monotonic`; what they start takes from it."""
        self.connection.reader.enough = self._slice_over
        self.closing_since: float | None = None
        self._lane = None if server.lanes is None else server.lanes.lane(self)
        if self._lane is not None:  # before a transport asks: uvloop's asks once
            self.data_received = self._lane.data_received  # type: ignore[method-assign]

    @property
    def dialled(self) -> tuple[str, int] | None:
        """The address and port of ours that the peer has reached; None over a unix socket."""
        own = None if self._transport is None else self._transport.get_extra_info("sockname")
        return (own[0].removeprefix("::ffff:"), own[1]) if isinstance(own, tuple) else None

    # -- asyncio's calls ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come."""
        self._transport = cast(asyncio.Transport, transport)
        self.account = self.server.budget.account(owner_of(transport.get_extra_info("peername")))
        self.server.protocols.add(self)
        try:
            self._begin(self._transport)
        except (OSError, TypeError) as error:  # it has gone already: a socket without a peer says strange things
            log.debug("a connection ended before it began: %s", error)
            self.abort()

    def _begin(self, transport: asyncio.Transport) -> None:
        plain: socket.socket = transport.get_extra_info("socket")
        self.peer = peer_name(transport.get_extra_info("peername"), plain.family)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() != "h2":
            log.debug("%s does not speak HTTP/2 over TLS (ALPN)", self.peer)
            self.abort()
            return
        if len(self.server.protocols) > self.server.limits.max_connections:
            self.server.turned_away += 1
            self.abort()
            return
        self.identity = identity(tls)
        if self.identity.key is not None:
            self.account.belong(self.identity.properties[self.identity.key][0])
        transport.set_write_buffer_limits(WRITE_BUFFER)
        if plain.family != socket.AF_UNIX:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _NOTSENT)
        if self._lane is not None:
            lanes = self.server.lanes
            self._lane.open(self.peer, self.account, lanes.reactor if lanes is not None and tls is None else None)
            self.connection.reader.lane = self._lane
        self.connection.initiate()
        if self.server.stopping:
            self.drain()
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Bytes have come. Where there is a lane, it is asked instead, and calls `read` for what it does not do."""
        self.read(data)

    def read(self, data: bytes, begin: int = 0) -> None:
        """Bytes have come, of which those before `begin` are read."""
        self.slice_ends = self.server.turns.slice_ends()
        self.connection.receive(data, begin)
        self.have_read()

    def have_read(self) -> None:
        """Do what is due at the end of a read."""
        connection = self.connection
        if connection.reader.behind:
            self._fall_behind()
        self._unpark()  # in this turn: in the next, writers that got room would have filled the window again
        if connection.sender.output:
            self.flush()
        if self.holds:
            self.settle()
        if connection.done:
            self._finish()
        elif connection.sender.congested:
            self.pause_reading()

    def eof_received(self) -> bool:
        """The client has ended its side: HTTP/2 knows no half-open connections, so it is gone."""
        return False

    def connected(self) -> bool:
        """Whether the socket is there: it was not closed, by neither side."""
        return self._transport is not None

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed: every call on it is cancelled; where they are thousands, in slices."""
        self._transport = None
        if self._lane is not None:
            self._lane.lost()
        self._end_calls()

    def _end_calls(self) -> None:
        self.slice_ends = self.server.turns.slice_ends()
        if not self.connection.lost(self._slice_over):
            self.server.turns.lagging.add(self)
            self.loop.call_soon(self._end_calls)
            return
        self.parked.clear()
        self.account.close()
        self.server.turns.lagging.discard(self)
        self.server.gone(self)

    # -- the connection's calls ---------------------------------------------------------------------------------------

    def request(self, connection: Connection, stream_id: int, head: RequestHead) -> Stream:
        """See Sink."""
        view: CallHead | None = head.view
        if view is None:
            view = head.view = CallHead(head)
        if view.http_status != OK:
            return RefusedCall(connection, stream_id, view, None)
        try:
            found = self._method(view)
        except CallFailure as failure:
            found = Refusal(failure.status, failure.details)
        except Exception:
            incident = self.server.incident()
            log.exception("nobody could say who answers %s (incident %s)", view.path, incident)
            details = f"the server failed; its log has the details under incident {incident}"
            found = Refusal(Status.UNKNOWN, details)
        if isinstance(found, Refusal):
            return RefusedCall(connection, stream_id, view, found)
        if found is UNDECIDED:
            return InterceptedCall(self, connection, stream_id, view, found)
        kind = StreamRequestCall if found.request_streaming else UnaryRequestCall
        return kind(self, connection, stream_id, view, found)

    def _method(self, head: CallHead) -> Method | Refusal:
        """What answers a call, or why nothing does. Raises CallFailure, and what generic handlers raise."""
        server = self.server
        if head.refusal is not None:
            return head.refusal
        if server.maximum_concurrent_rpcs is not None and server.active >= server.maximum_concurrent_rpcs:
            return _TOO_BUSY
        if server.budget.tight and not self.may_hold(STREAM_COST):
            server.told.refused += 1
            return _NO_ROOM
        if head.method is not None:
            known: Method = head.method
            return known
        if server.methods.intercepted:
            return UNDECIDED
        return server.methods.find(head) or _UNIMPLEMENTED

    def output_ready(self) -> None:
        """See Sink."""
        if not self._scheduled:
            self._schedule()

    def answered(self) -> None:
        """A call that was held has its answer: where no other is open here, nothing else could leave with it.

        Nothing is begun here: who has answered may be in the middle of the calls of another connection.
        """
        connection = self.connection
        if not connection.receiving and connection.sender.output:
            if connection.streams or self._has_more:
                self.output_ready()
            else:
                self.go_on()

    # -- output -------------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Say goodbye; the connection closes when its last call has ended."""
        self.connection.drain(self.loop.time())
        self.flush()

    def tick(self, now: float) -> None:
        """See Connection; a connection that should be closed and is not, is broken off."""
        self.connection.tick(now)
        if self.connection.failed is None:
            self.end_slow(now)
        self.flush()
        self.settle()
        if self.connection.done:
            self._finish()
        if self.closing_since is not None and now - self.closing_since > self.server.limits.drain_seconds:
            self.abort()

    def cancel_calls(self) -> None:
        """End every call now; what remains of them are their tasks."""
        connection = self.connection
        for stream in [stream.as_call() for stream in connection.streams.values()]:
            if isinstance(stream, CallContext):
                stream.end(Status.UNAVAILABLE, "the server is stopping")
            if not stream.closed:
                connection.cancel(stream, ErrorCode.CANCEL)
            stream.reset(ErrorCode.CANCEL)
        self.flush()

    def close(self) -> None:
        """Close when everything is written."""
        if self._transport is not None:
            self.closing_since = self.closing_since or self.loop.time()
            self._transport.close()

    def go_on(self) -> None:
        """What was put off to a turn of its own: waiting requests and writers, then a flush."""
        if self._transport is None:
            return  # lost meanwhile: what came before that is nobody's
        sender = self.connection.sender
        if self._has_more:  # else there are answers, and nothing to begin
            self.slice_ends = self.server.turns.slice_ends()
            if self.connection.reader.behind and not self._paused:
                self._read_on()
            if not sender.congested:
                sender.flush_all()
                self._unpark()
                for call in list(self.writers.values()):
                    call.writable()
        self.flush()
        if self.holds:
            self.settle()
        if self.connection.done:
            self._finish()

    @property
    def _has_more(self) -> bool:
        """Whether anything waits to be read, begun or written."""
        connection = self.connection
        return bool(connection.reader.behind or self.parked or connection.sender.ready or self.writers)

    def _unpark(self) -> None:
        """Begin what waits, in its order, for a turn."""
        while self.parked:
            call = next(iter(self.parked.values()))
            if not self._may_begin(call):
                return
            self._opened_before = self.connection.sender.opened_bytes
            del self.parked[call.stream_id]
            call.unpark()
            if self._slice_over():
                self._schedule()
                return

    def _may_begin(self, call: UnaryRequestCall) -> bool:
        """Whether an answer could leave now, or streams fill the window each time that it opens.

        Then one call is begun for each opening, or for twice as many bytes as its answer may have: those that wait to
        be sent have their turns beside the streams, and do not become ever more.
        """
        sender = self.connection.sender
        if sender.congested:
            return False
        if sender.window > 0:
            return True
        opened = sender.opened_bytes - self._opened_before
        return opened > 2 * call.method.largest and sender.pending_bytes <= self.connection.limits.max_pending // 2

    def park(self, call: UnaryRequestCall) -> None:
        """No answer of this call could leave now: it is begun when the peer reads again."""
        if not self.parked:
            self._opened_before = self.connection.sender.opened_bytes
        self.parked[call.stream_id] = call

    def run_later(self, call: UnaryRequestCall) -> None:
        """There may be room for the answer of a call that waited for it."""
        self.park(call)
        self._schedule()

    def _slice_over(self) -> bool:
        return monotonic() > self.slice_ends

    def _fall_behind(self) -> None:
        """More has come than is read in a slice: the rest waits, and what else comes stays in the socket."""
        self._schedule()
        lagging = self.server.turns.lagging
        if self not in lagging and self._transport is not None:
            lagging.add(self)
            self._transport.pause_reading()

    def _read_on(self) -> None:
        self.connection.receive(b"")
        if self.connection.reader.behind:
            self._schedule()
            return
        self.server.turns.lagging.discard(self)
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def _finish(self) -> None:
        """The connection is over: say so to the other side, and close when it has heard."""
        transport = self._transport
        if transport is None or self.closing_since is not None:
            return
        self.closing_since = self.loop.time()
        self.server.told.misbehaved += self.connection.failed is ErrorCode.ENHANCE_YOUR_CALM
        if self.connection.failed is None:
            transport.close()
            return
        log.debug("%s: %s (%s)", self.peer, self.connection.reason, self.connection.failed.name)
        if transport.can_write_eof():
            transport.write_eof()
            self.loop.call_later(_LINGER_SECONDS, self._close_now)
        else:
            transport.close()

    def _close_now(self) -> None:
        if self._transport is not None:
            self._transport.close()
