"""RemotingServer: the ports on which classic clients are served, and the limits that keep them from each other."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.grpc_transport.aio.first_byte import Context, FirstByte
from tandemmq.common.grpc_transport.aio.listen import BACKLOG, Bound, listen
from tandemmq.common.log_output import get_log
from tandemmq.store.fronts.remoting.connection import Connection, Held, Served

log = get_log(__name__)

_TICK_SECONDS = 1.0
_HANDSHAKE_SECONDS = 10.0
_CLOSE_SECONDS = 1.0
"""Clients have so long to take what was sent to them before the store ended."""


class PortTaken(TandemError):
    """Classic clients cannot be served where the settings say."""

    kind = Kind.AWAY
    remedy = "Does another broker listen there? Set listenPort to another port, or remotingMode=off."


@dataclass(frozen=True, slots=True)
class RemotingLimits:
    """What clients may take up."""

    connections: int = 10_000
    requests: int = 10_000
    """Of one connection, unanswered."""
    memory: int = 256 << 20
    """Bytes of half frames, of all connections together."""
    idle_seconds: float = 120.0
    """A connection on which nothing goes for so long ends."""
    slow_seconds: float = 60.0
    """A client that takes no answers, or does not go on with a frame, for so long is cut off."""


class RemotingServer:
    """Listens, and makes a `Connection` of each that comes."""

    def __init__(self, served: Served, limits: RemotingLimits, tls: ssl.SSLContext | Context | None) -> None:
        """`tls`: None: plain text only; a context: TLS only; what gives one: both, by the first byte."""
        self._served = served
        self._limits = limits
        self._tls = tls
        self._held = Held(limits.memory, limits.requests)
        self._bound: list[Bound] = []
        self._listeners: list[asyncio.Server | FirstByte] = []
        self._connections: set[Connection] = set()
        self._empty = asyncio.Event()
        """Set when the last connection ends."""
        self._ticking: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Connections that are open."""
        return len(self._connections)

    def bind(self, host: str, port: int) -> int:
        """Take a port; gives its number. Raises PortTaken."""
        try:
            found = listen(f"{host}:{port}", reuse_port=False)
        except RuntimeError as error:
            raise PortTaken(f"cannot serve classic clients on {host}:{port}") from error
        self._bound += found
        return found[0].port

    async def start(self) -> None:
        """Accept connections."""
        loop = asyncio.get_running_loop()
        for bound in self._bound:
            self._listeners.append(await self._listen(loop, bound.socket))
        self._ticking = loop.call_later(_TICK_SECONDS, self._tick, loop)

    async def _listen(self, loop: asyncio.AbstractEventLoop, bound: socket.socket) -> asyncio.Server | FirstByte:
        tls = self._tls
        if callable(tls):
            return FirstByte(bound, self._connection, tls, _HANDSHAKE_SECONDS, self._is_full)
        seconds = None if tls is None else _HANDSHAKE_SECONDS
        return await loop.create_server(
            self._connection, sock=bound, ssl=tls, backlog=BACKLOG, ssl_handshake_timeout=seconds
        )

    def drain(self) -> None:
        """Accept no more."""
        for listener in self._listeners:
            listener.close()
        if not self._listeners:
            for bound in self._bound:
                bound.socket.close()

    async def stop(self) -> None:
        """End all connections, behind what was sent on them."""
        self.drain()
        if self._ticking is not None:
            self._ticking.cancel()
        for connection in list(self._connections):
            connection.close()
        with suppress(TimeoutError):
            while self._connections:
                self._empty.clear()
                await asyncio.wait_for(self._empty.wait(), _CLOSE_SECONDS)
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0)

    # -- connections ------------------------------------------------------------------------------------------------

    def _connection(self) -> Connection:
        return Connection(_Watched(self._served, self._gone), self._held, self._opened)

    def _gone(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if not self._connections:
            self._empty.set()

    def _opened(self, connection: Connection) -> bool:
        if self._is_full(0):
            return False
        self._connections.add(connection)
        return True

    def _is_full(self, waiting: int) -> bool:
        return len(self._connections) + waiting >= self._limits.connections

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        self._ticking = loop.call_later(_TICK_SECONDS, self._tick, loop)
        now, limits = loop.time(), self._limits
        for connection in list(self._connections):
            slow_since = min(connection.paused_at or now, connection.begun_at or now)
            if now - slow_since > limits.slow_seconds:
                log.info("a connection ends: its client is too slow", peer=str(connection.peer))
                connection.abort()
            elif now - connection.active_at > limits.idle_seconds:
                connection.close()


class _Watched:
    """`Served`, and the server hears of ends too."""

    __slots__ = ("_gone", "frame", "lost_too", "read")

    def __init__(self, served: Served, gone: Callable[[Connection], None]) -> None:
        self.frame = served.frame
        self.read = served.read
        self.lost_too = served.lost
        self._gone = gone

    def lost(self, connection: Connection) -> None:
        self._gone(connection)
        self.lost_too(connection)
