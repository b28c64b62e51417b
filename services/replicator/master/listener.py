"""The port on which a master accepts slaves."""

import asyncio
import errno
import ipaddress
import socket
from collections.abc import Callable, Sequence

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.timers import Timer, Timers

log = get_log(__name__)

_BACKLOG = 512
_ACCEPTS_PER_TURN = 64
_NO_DESCRIPTORS_PAUSE = 0.5
_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

Peer = tuple[str, int]


class CannotListen(TandemError):
    """haListenHost and haListenPort cannot be had."""

    kind = Kind.AWAY
    remedy = "does another program listen there, or is the address not this machine's?"


class Peers:
    """Who may come: addresses and networks; everybody if there are none."""

    def __init__(self, allowed: Sequence[str]) -> None:
        self._networks = [ipaddress.ip_network(one.strip(), strict=False) for one in allowed]

    def allow(self, host: str) -> bool:
        """Whether a peer of that address may come."""
        if not self._networks:
            return True
        try:
            address = ipaddress.ip_address(plain_address(host))
        except ValueError:
            return False
        return any(address in network for network in self._networks if network.version == address.version)


class Listener:
    """Accepts connections; tells of each with its socket, which does not block, and its peer."""

    def __init__(self, host: str, port: int, accepted: Callable[[socket.socket, Peer], None], timers: Timers) -> None:
        self.port = port
        """What is really listened on, once open."""
        self._host = host
        self._accepted = accepted
        self._timers = timers
        self._socket: socket.socket | None = None
        self._pause: Timer | None = None

    @property
    def is_open(self) -> bool:
        """Whether slaves can come."""
        return self._socket is not None

    def open(self) -> None:
        """Listen. Raises CannotListen."""
        host = self._host.strip("[]")
        try:
            found = socket.getaddrinfo(host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            family, kind, protocol, _, address = found[0]
            listening = socket.socket(family, kind | socket.SOCK_NONBLOCK, protocol)
        except OSError as error:
            raise CannotListen(f"cannot accept slaves on {self._host}:{self.port}: {error.strerror}") from error
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            listening.bind(address)
            listening.listen(_BACKLOG)
        except OSError as error:
            listening.close()
            raise CannotListen(f"cannot accept slaves on {self._host}:{self.port}: {error.strerror}") from error
        self._socket = listening
        self.port = listening.getsockname()[1]
        asyncio.get_running_loop().add_reader(listening.fileno(), self._accept)

    def close(self) -> None:
        """Listen no more; connections stay."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def _accept(self) -> None:
        for _ in range(_ACCEPTS_PER_TURN):
            if self._socket is None:
                return
            try:
                connection, address = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _NO_DESCRIPTORS:
                    self._rest(error)
                    return
                continue  # the peer has gone already
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._accepted(connection, (plain_address(address[0]), address[1]))

    def _rest(self, error: OSError) -> None:
        assert self._socket is not None
        log.warning("no slaves are accepted for a moment", reason=error.strerror)
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._pause = self._timers.call_later(_NO_DESCRIPTORS_PAUSE, self._resume)

    def _resume(self) -> None:
        self._pause = None
        if self._socket is not None:
            asyncio.get_running_loop().add_reader(self._socket.fileno(), self._accept)


def plain_address(host: str) -> str:
    """An IPv4 address that came through an IPv6 socket, as what it is; no zone."""
    host = host.partition("%")[0].strip("[]")
    return host.removeprefix("::ffff:") if "." in host else host
