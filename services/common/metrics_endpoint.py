"""The Prometheus endpoint: `http://host:port/metrics`, answered by a thread of its own."""

import socket
import socketserver
from threading import Thread
from types import TracebackType
from typing import Any, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from tandemmq.common.errors import TandemError


class MetricsPortTaken(TandemError):
    """The metrics endpoint cannot listen where the settings say."""

    grpc_code = "UNAVAILABLE"


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


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True

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
