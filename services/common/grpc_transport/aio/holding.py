"""Holding: what one connection of a server holds, told to the server's budget, and peers that make it hold it too long.

What is held is counted where it grows; here it is added up, at the end of each read and each turn, once a second, and
before anything more is taken.
"""

from ipaddress import IPv6Network
from typing import TYPE_CHECKING, Any

from tandemmq.common.grpc_transport.aio.flushing import Flushing
from tandemmq.common.grpc_transport.http2.budget import CONNECTION_COST, NEXT_TO_NOTHING, STREAM_COST, Account
from tandemmq.common.grpc_transport.http2.connection import Connection
from tandemmq.common.grpc_transport.http2.errors import ErrorCode
from tandemmq.common.grpc_transport.rpc.status import CallFailure, Status

if TYPE_CHECKING:
    from tandemmq.common.grpc_transport.aio.server import Server

NO_ROOM = "the server holds as much for this caller as it may: read the answers that are there, then ask again"
PROGRESS = 16 << 10
"""Bytes that a peer must take or send within its time, or all that is left: less is nothing."""


class ServerHolding(Flushing):
    """The part of a server's protocol that keeps account."""

    server: "Server"
    connection: Connection
    account: Account

    def __init__(self) -> None:
        super().__init__()
        self._taken = 0
        """Bytes that the socket had taken when it last made progress, and when that was."""
        self._taken_at: float | None = None

    def settle(self) -> None:
        """Tell the budget what is held now."""
        connection, transport = self.connection, self._transport
        held = CONNECTION_COST + connection.sender.pending_bytes + connection.held + connection.buffered
        held += connection.heads_size + connection.reader.unread + STREAM_COST * len(connection.streams)
        if transport is not None:
            held += transport.get_write_buffer_size()
        self.account.settle(held)

    @property
    def holds(self) -> bool:
        """Whether there may be something to tell the budget."""
        return bool(self.connection.streams) or self.account.used > NEXT_TO_NOTHING

    def may_hold(self, size: int) -> bool:
        """Whether so many bytes more may be held for this connection, now."""
        self.settle()
        sender = self.connection.sender
        return sender.pending_bytes + size <= self.connection.limits.max_pending and self.account.admits(size)

    def claim(self, size: int) -> None:
        """Before so many bytes more are held. Raises CallFailure when they may not be."""
        if not self.may_hold(size):
            self.server.told.refused += 1
            raise CallFailure(Status.RESOURCE_EXHAUSTED, NO_ROOM)

    @property
    def patience(self) -> float:
        """Seconds that the peer has: few, when memory is short and it is one of those who hold most."""
        limits = self.connection.limits
        pressed = self.server.budget.tight and self.account.greedy
        return min(limits.pressed_seconds, limits.slow_peer_seconds) if pressed else limits.slow_peer_seconds

    def end_slow(self, now: float) -> None:
        """Tell calls that do not get on, and close the connection if its socket takes nothing."""
        connection = self.connection
        if self._socket_stands(now):
            self.server.told.slow_connections += 1
            connection.fail(ErrorCode.ENHANCE_YOUR_CALM, "it does not read its answers")
            self.flush()
            self.abort()
            return
        patience = self.patience
        for stream in list(connection.streams.values()):
            if stream.stands(now, patience):
                self.server.told.slow_calls += 1
                stream.give_up_on_peer()

    def _socket_stands(self, now: float) -> bool:
        transport = self._transport
        left = 0 if transport is None else transport.get_write_buffer_size()
        if not left or not self.connection.sender.congested:
            self._taken_at = None
            return False
        taken = self.written - left
        if self._taken_at is None or taken - self._taken >= PROGRESS:
            self._taken, self._taken_at = taken, now
        return now - self._taken_at > self.patience


def owner_of(address: Any) -> str:
    """Who a connection is counted for until its user is known: an IPv4 address, or the /64 network of an IPv6 one."""
    if not isinstance(address, tuple) or not address:
        return "unix"
    host = str(address[0])
    if ":" not in host or host.startswith("::ffff:"):
        return host.removeprefix("::ffff:")
    return str(IPv6Network((host.partition("%")[0], 64), strict=False))
