"""RemotingClient: one kept connection to one address, dialled when it is needed."""

import asyncio
import logging
import ssl

from tandemmq.common.calling.addresses import parse_host_port
from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.net.remoting.errors import PeerGone
from tandemmq.common.net.remoting.handlers import Handlers
from tandemmq.common.net.remoting.limits import RemotingLimits
from tandemmq.common.timers import LoopTimers, Timers, time_limit
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.frames import RemotingFrame

log = logging.getLogger(__name__)


class RemotingClient:
    """Asks one server. What the server asks in its turn goes to `handlers`."""

    def __init__(
        self,
        address: str,
        handlers: Handlers | None = None,
        limits: RemotingLimits = RemotingLimits(idle_seconds=0),  # noqa: B008 - immutable
        *,
        tls: ssl.SSLContext | None = None,
        connect_seconds: float = 3.0,
        timers: Timers | None = None,
    ) -> None:
        """`address` is `host:port`. Raises ValueError for what is none."""
        self.address = address
        self._where = parse_host_port(address)
        self._handlers = handlers or Handlers()
        self._limits = limits
        self._tls = tls
        self._connect_seconds = connect_seconds
        self._timers = timers or LoopTimers()
        self._connection: RemotingConnection | None = None
        self._dialling: asyncio.Task[RemotingConnection] | None = None

    @property
    def connected(self) -> bool:
        """Whether the connection is open."""
        return self._connection is not None and not self._connection.closed

    async def ask(self, command: Command, seconds: float) -> Command:
        """The server's response; dials first if need be. Raises what `RemotingConnection.ask` does."""
        connection = await self.connection()
        return await connection.ask(command, seconds)

    async def connection(self) -> RemotingConnection:
        """The open connection. Raises PeerGone: it cannot be made."""
        if self._connection is not None and not self._connection.closed:
            return self._connection
        if self._dialling is None:
            self._dialling = asyncio.get_running_loop().create_task(self._dial(), name=f"dial {self.address}")
            self._dialling.add_done_callback(self._dialled)
        return await asyncio.shield(self._dialling)

    async def close(self) -> None:
        """Close the connection; a later `ask` dials again."""
        if self._dialling is not None:
            self._dialling.cancel()
            await asyncio.wait([self._dialling])
        if self._connection is not None:
            self._connection.close("we are done")

    async def _dial(self) -> RemotingConnection:
        loop = asyncio.get_running_loop()
        host, port = self._where
        try:
            async with time_limit(self._timers, self._connect_seconds):
                _, made = await loop.create_connection(
                    lambda: RemotingConnection(self, self._limits, self._handlers.told, self._timers),
                    host,
                    port,
                    ssl=self._tls,
                )
        except TimeoutError:
            raise PeerGone(f"{self.address} cannot be reached within {self._connect_seconds:g} s") from None
        except OSError as error:
            raise PeerGone(f"{self.address} cannot be reached: {error.strerror or error}") from error
        return made

    def _dialled(self, task: "asyncio.Task[RemotingConnection]") -> None:
        self._dialling = None
        if not task.cancelled() and task.exception() is None:
            self._connection = task.result()

    def began(self, connection: RemotingConnection) -> None:
        """See Receiver."""

    def came(self, connection: RemotingConnection, frame: RemotingFrame) -> None:
        """See Receiver."""
        self._handlers.came(connection, frame)

    def ended(self, connection: RemotingConnection) -> None:
        """See Receiver."""
        log.debug("the connection to %s is closed: %s", self.address, connection.reason)
