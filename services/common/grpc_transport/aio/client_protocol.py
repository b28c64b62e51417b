"""ClientProtocol: one socket of a channel; between asyncio's calls and the connection's bytes."""

import asyncio
import logging
import socket
from typing import TYPE_CHECKING, cast

from tandemmq.common.grpc_transport.aio.flushing import WRITE_BUFFER, Flushing
from tandemmq.common.grpc_transport.aio.identity import peer_name
from tandemmq.common.grpc_transport.http2.client import ClientConnection

if TYPE_CHECKING:
    from tandemmq.common.grpc_transport.aio.channel import Channel
    from tandemmq.common.grpc_transport.aio.client_call import ClientCall

log = logging.getLogger(__name__)

_BEFORE_A_WORD = "at once (is TLS on one side only, or our certificate not to its liking?)"
"""How a connection ends that never was one, with servers that say nothing of what they think."""


class ClientProtocol(Flushing):
    """asyncio's side of a connection that we opened."""

    connection: ClientConnection

    def __init__(self, channel: "Channel") -> None:
        super().__init__()
        self.channel = channel
        self.loop = channel.loop
        self.peer = ""
        self.connection = ClientConnection(channel.limits, channel.responses, self.loop.time(), self._going)
        self.greeted: asyncio.Future[None] = self.loop.create_future()
        """Done when the server has introduced itself; fails with OSError when it is gone before."""
        self.writers: dict[int, ClientCall] = {}
        """Calls that wait until the socket takes more."""
        self._closing_since: float | None = None

    # -- asyncio's calls ----------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The server has answered the door."""
        self._transport = cast(asyncio.Transport, transport)
        self.channel.protocols.add(self)
        plain: socket.socket = transport.get_extra_info("socket")
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() != "h2":
            self.connection.gone = "the server does not speak HTTP/2 over TLS (ALPN)"
            self.abort()
            return
        self._transport.set_write_buffer_limits(WRITE_BUFFER)
        try:
            self.peer = peer_name(transport.get_extra_info("peername"), plain.family)
            if plain.family != socket.AF_UNIX:
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except (OSError, TypeError) as error:
            log.debug("a connection ended before it began: %s", error)
            self.abort()
            return
        self.connection.initiate()
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        connection = self.connection
        connection.receive(data)
        if connection.sender.output:
            self.flush()
        if connection.done:
            self._finish()
        elif connection.sender.congested:
            self.pause_reading()
        if not self.greeted.done():
            self._greet()
        if self.channel.waiting:
            self.channel.serve()

    def eof_received(self) -> bool:
        """The server has ended its side: HTTP/2 knows no half-open connections, so it is gone."""
        self.connection.gone = self.connection.gone or "the server closed the connection"
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed: its calls end with UNAVAILABLE."""
        self._transport = None
        connection = self.connection
        connection.gone = connection.gone or (f"the connection broke: {exc}" if exc else "the connection was closed")
        if not self.greeted.done():
            self.greeted.set_exception(ConnectionError(f"{self.why()} {_BEFORE_A_WORD}"))
            self.greeted.exception()  # whoever waited may have left
        self.channel.gone(self)
        connection.lost()
        self.writers.clear()

    # -- calls --------------------------------------------------------------------------------------------------------

    @property
    def open(self) -> bool:
        """Bytes can still be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def begin(self, call: "ClientCall") -> None:
        """Put a call on a stream of its own; the connection must be `usable`."""
        call.open(self.connection)
        call.opened_on(self)
        self.sent()

    def why(self) -> str:
        """What ended the connection, for people."""
        connection = self.connection
        if connection.failed is not None:
            return f"{connection.reason} ({connection.failed.name})"
        if connection.goaway is not None and connection.goaway[0]:
            return f"the server said goodbye: {connection.goaway[1] or 'no reason'} (code {connection.goaway[0]})"
        return connection.gone or "the connection was closed"

    def sent_by(self, call: "ClientCall") -> None:
        """A call has ended, or queued what should leave; its stream may be another's now."""
        if call.closed and self.channel.waiting and not self.connection.receiving:
            self._schedule()
        self.sent()

    # -- life ---------------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """About once a second."""
        self.connection.tick(now)
        self.flush()
        if self.connection.done:
            self._finish()
        if self._closing_since is not None and now - self._closing_since > self.channel.limits.drain_seconds:
            self.abort()

    def go_on(self) -> None:
        """What was put off to a turn of its own: waiting writers, waiting calls, then a flush."""
        sender = self.connection.sender
        if not sender.congested:
            sender.flush_all()
            for call in list(self.writers.values()):
                self.writers.pop(call.stream_id, None)
                call.writable()
        if self.channel.waiting:
            self.channel.serve()
        self.flush()
        if self.connection.done:
            self._finish()

    def close(self) -> None:
        """Say goodbye and close when everything is written."""
        self.connection.drain(self.loop.time())
        self.flush()
        self._finish()

    def _greet(self) -> None:
        if self.connection.failed is not None:
            self.greeted.set_exception(ConnectionError(self.why()))
            self.greeted.exception()
        elif self.connection.greeted:
            self.greeted.set_result(None)

    def _finish(self) -> None:
        if self._transport is not None and self._closing_since is None:
            self._closing_since = self.loop.time()
            self._transport.close()

    def _going(self) -> None:
        """No more calls can begin here."""
        self.channel.going(self)
