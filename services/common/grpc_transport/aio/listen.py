"""Listening sockets for addresses as gRPC writes them."""

import errno
import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

BACKLOG = 4096
"""Connections that wait to be accepted."""


class Bound:
    """A socket that is bound, and its file if it has one."""

    def __init__(self, bound: socket.socket, path: Path | None = None) -> None:
        self.socket = bound
        self.port = 1 if bound.family == socket.AF_UNIX else int(bound.getsockname()[1])
        """1 for unix sockets, as grpcio says."""
        self._path = path
        self._inode = 0 if path is None else path.stat().st_ino

    def remove(self, also_close: bool) -> None:
        """Removes the file, unless a successor has put its own there; closes the socket where nobody else does."""
        if also_close:
            self.socket.close()
        with suppress(FileNotFoundError):
            if self._path is not None and self._path.stat().st_ino == self._inode:
                self._path.unlink()


def listen(address: str, reuse_port: bool) -> list[Bound]:
    """Sockets bound to `host:port`, `[v6]:port`, `unix:path`, `unix:///path`, `unix-abstract:name`.

    A host name with several addresses gives several sockets, all with the same port. Raises RuntimeError, as grpcio
    does, when nothing can be bound.
    """
    try:
        if address.startswith("unix-abstract:"):
            return [Bound(_bound(socket.AF_UNIX, "\0" + address.removeprefix("unix-abstract:"), False))]
        if address.startswith("unix:"):
            return [_bound_path(Path(address.removeprefix("unix:").removeprefix("//")))]
        return _bound_host(address.removeprefix("dns:///"), reuse_port)
    except (OSError, ValueError) as error:
        raise RuntimeError(f"Failed to bind to address {address}: {error}") from error


def _bound_host(address: str, reuse_port: bool) -> list[Bound]:
    host, separator, port_text = unquote(address).rpartition(":")
    if not separator or not port_text.isdigit():
        raise ValueError("it is not of the form host:port")
    port = int(port_text)
    found = socket.getaddrinfo(host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    failure: OSError | None = None
    for family, _, _, _, where in dict.fromkeys(found):
        try:
            sockets.append(_bound(family, (where[0], port, *where[2:]), reuse_port))
            port = sockets[0].getsockname()[1]
        except OSError as error:
            failure = error
    if not sockets or (failure is not None and failure.errno == errno.EADDRINUSE):
        for bound in sockets:
            bound.close()
        raise failure or OSError("the host has no address")
    return [Bound(bound) for bound in sockets]


def _bound(family: int, where: object, reuse_port: bool) -> socket.socket:
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setblocking(False)
        if family != socket.AF_UNIX:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            dual = isinstance(where, tuple) and where[0] == "::"
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if dual else 1)
        if reuse_port:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(where)  # type: ignore[arg-type]
        bound.listen(BACKLOG)
    except OSError:
        bound.close()
        raise
    return bound


def _bound_path(path: Path) -> Bound:
    """A socket file; one that nobody listens on any more is replaced."""
    if path.is_socket():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe, suppress(ConnectionRefusedError):
            probe.connect(str(path))
            raise OSError(errno.EADDRINUSE, "somebody listens there")
        path.unlink(missing_ok=True)
    return Bound(_bound(socket.AF_UNIX, str(path), False), path)
