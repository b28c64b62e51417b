"""What a peer may cost, and how often that was too much."""

from dataclasses import dataclass

from tandemmq.common.wire.remoting.frames import FRAME_BYTES_MAX

REQUEST_COST = 1024
"""Bytes that a request in work counts for beside its frame: a task, a held pull."""


@dataclass(frozen=True)
class RemotingLimits:
    """Of one server or client. Bytes, and seconds."""

    frame_bytes: int = FRAME_BYTES_MAX
    """The largest frame that is taken; a larger one ends its connection."""
    turn_seconds: float = 0.001
    """How long one connection's frames are handled before it is the turn of others; at least one frame a turn."""
    connections: int = 20_000
    """That are open at the same time; more are closed at once."""
    connection_request_bytes: int = 64 << 20
    """Of one connection's requests in work, each with REQUEST_COST; more are answered SYSTEM_BUSY."""
    held_bytes: int = 512 << 20
    """Of incomplete frames of all connections together; beyond, the connection that holds most is closed."""
    output_bytes: int = 64 << 20
    """That wait for one peer to read; a connection beyond is closed."""
    waiting_bytes: int = 512 << 20
    """That wait for all peers together to read; beyond, the connection for which most waits is closed."""
    stalled_seconds: float = 30.0
    """How long a peer may read nothing of what waits for it."""
    idle_seconds: float = 120.0
    """Without a byte in either direction a connection is closed, as RocketMQ does; 0: never."""
    handshake_seconds: float = 10.0
    """For the first byte, and for the handshake of TLS."""
    asks: int = 10_000
    """Requests of ours that one peer has not answered yet."""


@dataclass
class RemotingCounts:
    """How often since the start, for metrics."""

    turned_away: int = 0
    """Connections over the limit."""
    misbehaved: int = 0
    """Connections closed as what came was no frame, or as they held too much of incomplete ones."""
    slow: int = 0
    """Connections closed as their peers did not read."""
    idle: int = 0
    """Connections closed as nothing went over them."""
    busy: int = 0
    """Requests answered SYSTEM_BUSY."""
    unknown: int = 0
    """Requests with a code that nothing answers."""
    failed: int = 0
    """Requests whose handler failed by a fault of the program."""
