"""The Prometheus endpoint: `http://host:port/metrics`, answered by a thread of its own."""

import socket
import socketserver
import time
from threading import Thread
from types import TracebackType
from typing import Any, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from tandemmq.common.errors import Kind, TandemError


class MetricsPortTaken(TandemError):
    """The metrics endpoint cannot listen where the settings say."""

    kind = Kind.AWAY
    remedy = "stop who listens there, or choose another port: metricsPort"


class MetricsEndpoint:
    """Serves one registry over HTTP until closed; listening once constructed. Raises MetricsPortTaken."""

    def __init__(self, registry: CollectorRegistry, host: str, port: int) -> None:
        kind = _Server6 if ":" in host else _Server
        try:
            self._server = make_server(host.strip("[]"), port, make_wsgi_app(registry), kind, _SilentHandler)
        except OSError as error:
            raise MetricsPortTaken(f"cannot serve metrics on {host}:{port}: {error.strerror}") from error
        self.port: int = self._server.server_port
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stops answering; returns when the port is free again."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_PAUSE_SECONDS = 0.5
"""After a connection that cannot be accepted, for want of descriptors: it stays there, and would be tried at once."""


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accepts a connection. Raises OSError, after a moment."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(_PAUSE_SECONDS)
            raise

    def handle_error(self, _request: object, _client_address: object) -> None:
        """A scrape that fails, for want of a thread or because who asked has gone, is asked for again."""

    def server_bind(self) -> None:
        """Binds without asking the name service who we are, as http.server does: that can hang for seconds."""
        socketserver.TCPServer.server_bind(self)
        self.server_name = str(self.server_address[0])
        self.server_port = int(self.server_address[1])
        self.setup_environ()


class _Server6(_Server):
    address_family = socket.AF_INET6


class _SilentHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Scrapes are not events."""

    def address_string(self) -> str:
        return str(self.client_address[0])
