"""HTTP requests to a console, byte by byte where it matters."""

import base64
import http.client
import json
import ssl
from typing import Any, NamedTuple
from urllib.parse import urlsplit

JSON = {"Content-Type": "application/json"}
PATIENCE = 60
"""Seconds."""


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """gRPC's name of what went wrong."""
        return str(self.json["code"])

    @property
    def message(self) -> str:
        """What went wrong, in words."""
        return str(self.json["message"])


def connect(url: str, tls: ssl.SSLContext | None = None) -> http.client.HTTPConnection:
    """A connection to a console."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    if parts.scheme == "https":
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=PATIENCE, context=tls)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE)


def ask(
    url: str,
    path: str,
    body: bytes | str | None = None,
    *,
    method: str = "",
    tls: ssl.SSLContext | None = None,
    **headers: Any,
) -> Answer:
    """One request; headers as keyword arguments: `content_type="text/plain"`."""
    connection = connect(url, tls)
    try:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method or ("GET" if body is None else "POST"), path, body, sent)
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


def call(url: str, name: str, request: dict[str, Any] | None = None, **headers: str) -> Answer:
    """POST /api/Name."""
    sent: dict[str, Any] = {"content_type": "application/json", **headers}
    return ask(url, f"/api/{name}", json.dumps(request or {}), **sent)


def basic(user: str, secret: str) -> str:
    """The value of the header Authorization."""
    return "Basic " + base64.b64encode(f"{user}:{secret}".encode()).decode()
