"""Dialing: from an address as gRPC writes it to a connected socket."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import unquote

P = TypeVar("P", bound=asyncio.Protocol)


@dataclass(frozen=True)
class Target:
    """Where a channel leads."""

    text: str
    """As it was given."""
    path: str | None
    """Of a unix socket; with NUL in front it is an abstract one."""
    host: str
    port: int
    authority: str
    """`:authority` of requests."""

    @property
    def server_name(self) -> str:
        """What the server's certificate must name."""
        return self.host or "localhost"


def parse(address: str) -> Target:
    """`host:port`, `[v6]:port` (with `dns:///`, `ipv4:`, `ipv6:` before), `unix:path`, `unix-abstract:name`.

    Raises ValueError.
    """
    if address.startswith("unix-abstract:"):
        return Target(address, "\0" + address.removeprefix("unix-abstract:"), "", 0, "localhost")
    if address.startswith("unix:"):
        return Target(address, address.removeprefix("unix:").removeprefix("//"), "", 0, "localhost")
    plain = address
    for scheme in ("dns:///", "dns:", "ipv4:", "ipv6:"):
        plain = plain.removeprefix(scheme)
    plain = unquote(plain)
    host, separator, port = plain.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not separator or not bare or not port.isdigit() or int(port) > 65_535 or not plain.isascii():
        raise ValueError(f"{address!r} is no address: it should read host:port, [v6]:port or unix:path")
    return Target(address, None, bare, int(port), plain)


async def dial(
    target: Target,
    factory: Callable[[], P],
    tls: ssl.SSLContext | None,
    server_name: str | None,
) -> P:
    """Connects; the protocol has had its `connection_made`. Raises OSError, ValueError."""
    loop = asyncio.get_running_loop()
    name = (server_name or target.server_name) if tls is not None else None
    if target.path is not None:
        plain = await _unix_socket(target.path)
        _, protocol = await loop.create_unix_connection(factory, sock=plain, ssl=tls, server_hostname=name)
    else:
        _, protocol = await loop.create_connection(factory, target.host, target.port, ssl=tls, server_hostname=name)
    return protocol


async def _unix_socket(path: str) -> socket.socket:
    """A connected socket. By hand, as uvloop knows no abstract ones."""
    plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        plain.setblocking(False)
        await asyncio.get_running_loop().sock_connect(plain, path)
    except BaseException:
        plain.close()
        raise
    return plain
