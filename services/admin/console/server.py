"""Console: the HTTP server, its addresses, TLS, start and end."""

import asyncio
import logging
import ssl

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from tandemmq.admin.actions.actions import Actions
from tandemmq.admin.console.callers import Callers
from tandemmq.admin.console.errors import ConsolePortTaken
from tandemmq.admin.console.gateway import Gateway
from tandemmq.admin.console.routes import ConsoleRoutes
from tandemmq.admin.console.visits import Visits
from tandemmq.admin.settings import AdminSettings
from tandemmq.admin.v1.admin_pb2_grpc import AdminServicer
from tandemmq.common.identity.tls import tls_context
from tandemmq.common.log_output import get_log
from tandemmq.common.serving.guard import CallGuard
from tandemmq.common.timers import Timers

log = get_log(__name__)

MOST_CONNECTIONS = 500
"""At a time: whoever opens more takes no file descriptors from the gRPC port."""

_IDLE_SECONDS = 75.0
"""A connection without a request, or with half of one, is closed after so long."""


class _NoGarbage(logging.Filter):
    """Leaves out what aiohttp says of requests that are no HTTP: anybody could fill the log with them."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError)


_http_log = logging.getLogger(f"{__name__}.http")
_http_log.addFilter(_NoGarbage())


class Console:
    """Serves pages and gateway from `start` to `stop`, in the running event loop."""

    def __init__(
        self, settings: AdminSettings, servicer: AdminServicer, guard: CallGuard, actions: Actions, timers: Timers
    ) -> None:
        """`servicer`, `guard`: the gRPC server's; the console makes the same calls under the same rules."""
        self._settings = settings
        self._callers = Callers(guard, settings.console_session_minutes * 60.0)
        self._gateway = Gateway(servicer, guard, self._callers, settings.grpc_max_message_size, timers)
        visits = Visits(settings.console_host, settings.console_names)
        routes = ConsoleRoutes(self._gateway, self._callers, visits, actions)
        application = routes.application(settings.grpc_max_message_size // 3 * 4 + 4096)  # bodies come in base64
        self._runner = web.AppRunner(
            application,
            access_log=None,
            logger=_http_log,
            handler_cancellation=True,
            keepalive_timeout=_IDLE_SECONDS,
            shutdown_timeout=settings.shutdown_grace_ms / 1000,
            auto_decompress=False,
        )
        self._listening: asyncio.Server | None = None
        self.port = 0
        """That it really listens on, once started."""

    @property
    def url(self) -> str:
        """Where a browser finds it."""
        scheme = "http" if self._settings.tls_server_cert_path is None else "https"
        host = self._settings.console_host.strip("[]")
        if host in ("0.0.0.0", "::", ""):
            host = "localhost"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}/"

    async def start(self) -> None:
        """Listens and answers. Raises ConsolePortTaken, UnreadableCertificate."""
        await self._runner.setup()
        host, port = self._settings.console_host.strip("[]"), self._settings.console_port
        loop = asyncio.get_running_loop()
        try:
            tls = console_tls(self._settings)
            self._listening = await loop.create_server(self._connection, host or None, port, ssl=tls)
        except OSError as error:
            await self._runner.cleanup()
            reason = error.strerror or str(error)
            raise ConsolePortTaken(f"cannot serve the console on {host}:{port}: {reason}") from error
        self.port = self._callers.port = self._listening.sockets[0].getsockname()[1]
        log.info("console", url=self.url)

    async def stop(self) -> None:
        """No new requests; streams end, other calls have the settings' grace."""
        if self._listening is not None:
            self._listening.close()
        self._gateway.stop()
        await self._runner.cleanup()

    def _connection(self) -> asyncio.Protocol:
        """What handles a new connection."""
        server = self._runner.server
        if server is None or len(server.connections) >= MOST_CONNECTIONS:
            return _TurnedAway()
        return server()


class _TurnedAway(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


def console_tls(settings: AdminSettings) -> ssl.SSLContext | None:
    """TLS as the settings have it. Raises UnreadableCertificate.

    Where people sign in, browsers need no certificate of their own; where nobody does, it stays what keeps others out.
    """
    context = tls_context(settings)
    if context is not None and settings.access_file is not None:
        context.verify_mode = ssl.CERT_NONE
    return context
