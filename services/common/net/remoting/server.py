"""RemotingServer: listens for remoting connections, and bounds what they cost."""

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from functools import partial

from tandemmq.common.grpc_transport.aio.first_byte import FirstByte
from tandemmq.common.grpc_transport.aio.listen import Bound, listen
from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.net.remoting.handlers import Handlers
from tandemmq.common.net.remoting.limits import RemotingCounts, RemotingLimits
from tandemmq.common.timers import LoopTimers, Timer, Timers, time_limit
from tandemmq.common.wire.remoting.frames import RemotingFrame

log = logging.getLogger(__name__)

_TICK_SECONDS = 1.0

TlsContext = Callable[[], Awaitable[ssl.SSLContext]]
"""Gives what TLS connections are served with; it is asked for each, and should remember."""


class RemotingServer:
    """A server on the running event loop. Each port takes plain connections and TLS, as the first byte says."""

    def __init__(
        self,
        handlers: Handlers,
        limits: RemotingLimits = RemotingLimits(),  # noqa: B008 - immutable
        *,
        opened: Callable[[RemotingConnection], None] | None = None,
        closed: Callable[[RemotingConnection], None] | None = None,
        timers: Timers | None = None,
    ) -> None:
        """`opened` and `closed` are called with each connection."""
        self.limits = limits
        self.connections: set[RemotingConnection] = set()
        """That are open."""
        self._handlers = handlers
        self._opened = opened
        self._closed = closed
        self._timers = timers or LoopTimers()
        self._bound: list[tuple[Bound, TlsContext | None, bool]] = []
        self._listeners: list[FirstByte] = []
        self._ticking: Timer | None = None
        self._empty = asyncio.Event()

    @property
    def told(self) -> RemotingCounts:
        """What peers were made to give up."""
        return self._handlers.told

    def add_port(self, address: str, tls: TlsContext | None = None, *, only_tls: bool = False) -> int:
        """Bind `host:port`, and give the port. Before `start`. Raises RuntimeError: the address cannot be had.

        Without `tls`, connections that begin a handshake are closed; with `only_tls`, those that do not.
        """
        found = listen(address, reuse_port=False)
        self._bound += [(bound, tls, only_tls) for bound in found]
        return found[0].port

    async def start(self) -> None:
        """Accept connections."""
        for bound, tls, only_tls in self._bound:
            receiver = _Port(self, only_tls)
            self._listeners.append(
                FirstByte(
                    bound.socket,
                    partial(self._connection, receiver),
                    tls or _no_tls,
                    self.limits.handshake_seconds,
                    self._is_full,
                )
            )
        self._ticking = self._timers.call_later(_TICK_SECONDS, self._tick)

    async def stop(self, grace: float = 0.0) -> None:
        """Accept no more; answer what is being worked at within `grace` seconds; close the connections."""
        for listener in self._listeners:
            listener.close()
        if not self._listeners:
            for bound, _, _ in self._bound:
                bound.remove(also_close=True)
        if self._ticking is not None:
            self._ticking.cancel()
        if grace:
            await self._handlers.finish(self._timers, grace)
        await self._handlers.close()
        for connection in list(self.connections):
            connection.close("the server is stopping")
        if self.connections:
            try:
                async with time_limit(self._timers, _TICK_SECONDS):
                    await self._empty.wait()
            except TimeoutError:
                for connection in list(self.connections):
                    connection.abort("the server is stopping")

    def began(self, connection: RemotingConnection) -> None:
        """A connection is open."""
        self.connections.add(connection)
        self._empty.clear()
        connection.lane = self._handlers.lane
        if self._opened is not None:
            self._opened(connection)

    def came(self, connection: RemotingConnection, frame: RemotingFrame) -> None:
        """A frame came."""
        self._handlers.came(connection, frame)

    def ended(self, connection: RemotingConnection) -> None:
        """A connection has closed."""
        known = connection in self.connections
        self.connections.discard(connection)
        if known and self._closed is not None:
            self._closed(connection)
        if not self.connections:
            self._empty.set()

    def _connection(self, owner: "_Port") -> RemotingConnection:
        made = RemotingConnection(owner, self.limits, self.told, self._timers)
        if self._handlers.reads is not None:
            made.read_by(self._handlers.reads)
        return made

    def _is_full(self, waiting: int) -> bool:
        full = len(self.connections) + waiting >= self.limits.connections
        self.told.turned_away += full
        return full

    def _tick(self) -> None:
        self._ticking = self._timers.call_later(_TICK_SECONDS, self._tick)
        now, limits, told = self._timers.time(), self.limits, self.told
        for connection in list(self.connections):
            connection.tick(now)
        told.misbehaved += self._keep_within(limits.held_bytes, _held, "too many bytes of incomplete frames")
        told.slow += self._keep_within(limits.waiting_bytes, _waiting, "too many bytes wait to be read")

    def _keep_within(self, limit: int, size: Callable[[RemotingConnection], int], reason: str) -> int:
        """Close the largest connections until all together are within a limit; how many."""
        total, closed = sum(map(size, self.connections)), 0
        if total > limit:
            for connection in sorted(self.connections, key=size, reverse=True):
                if total <= limit:
                    break
                total, closed = total - size(connection), closed + 1
                log.warning("%s is closed with %d bytes: %s", connection.peer, size(connection), reason)
                connection.abort(reason)
        return closed


def _held(connection: RemotingConnection) -> int:
    return connection.held


def _waiting(connection: RemotingConnection) -> int:
    return connection.waiting


class _Port:
    """A port's connections: those that may not be plain are closed."""

    def __init__(self, server: RemotingServer, only_tls: bool) -> None:
        self._server = server
        self._only_tls = only_tls

    def began(self, connection: RemotingConnection) -> None:
        """See Receiver."""
        if self._only_tls and not connection.tls:
            connection.abort("this port wants TLS")
            return
        self._server.began(connection)

    def came(self, connection: RemotingConnection, frame: RemotingFrame) -> None:
        """See Receiver."""
        self._server.came(connection, frame)

    def ended(self, connection: RemotingConnection) -> None:
        """See Receiver."""
        self._server.ended(connection)


async def _no_tls() -> ssl.SSLContext:
    raise OSError("this port speaks no TLS")
