"""Every number that bounds what a peer may cost, in one place."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one connection may hold, send and ask for.

    Memory of a connection is bounded by about ``max_buffered + connection_window + max_pending`` bytes of messages, and
    by ``max_concurrent_streams`` times 2 KiB of bookkeeping; that of all connections of a server by ``memory_budget``.
    A well-behaved client costs some 10 KiB.
    """

    max_concurrent_streams: int = 10_000
    """SETTINGS_MAX_CONCURRENT_STREAMS: calls in flight on a connection; more are refused with REFUSED_STREAM."""
    stream_window: int = 1 << 20
    """SETTINGS_INITIAL_WINDOW_SIZE, bytes: what a stream may send ahead of its reader."""
    connection_window: int = 16 << 20
    """Receive window of a whole connection, bytes; at least 65,535."""
    max_frame_size: int = 1 << 20
    """SETTINGS_MAX_FRAME_SIZE, bytes: DATA is taken as it comes, so large frames cost no memory."""
    max_header_list_size: int = 16 << 10
    """SETTINGS_MAX_HEADER_LIST_SIZE, bytes as RFC 9113 counts them (name + value + 32 for each field)."""
    max_buffered: int = 64 << 20
    """Received bytes that no handler has taken yet; beyond it, calls fail with RESOURCE_EXHAUSTED and windows stay
    shut."""
    max_pending: int = 64 << 20
    """Answers that the peer does not take (its windows are shut); beyond it, calls fail with RESOURCE_EXHAUSTED."""
    max_receive_message_length: int = 4 << 20
    """Longest gRPC message received, bytes, after decompression; longer: RESOURCE_EXHAUSTED."""
    max_send_message_length: int = (1 << 31) - 1
    """Longest gRPC message sent, bytes; longer: RESOURCE_EXHAUSTED."""
    max_connections: int = 10_000
    """Connections at a time; more are closed as soon as they come."""
    memory_budget: int = 1 << 30
    """Bytes that a server holds for all its peers together: answers that are not taken, requests that are not
    complete or not handled, and what keeping streams and connections costs."""
    slow_peer_seconds: float = 60.0
    """A call whose caller takes nothing of its answer, or sends nothing more of a request that it has begun, for so
    long ends with RESOURCE_EXHAUSTED; a connection whose socket takes nothing for so long is closed."""
    pressed_seconds: float = 2.0
    """The same for those who hold most, while more than half of the memory budget is used."""
    room_seconds: float = 5.0
    """A call whose handler asks for room for its answer waits so long for it."""
    turn_seconds: float = 0.002
    """What connections send more than can be read in so long, all together, waits for the next turn of the event loop;
    likewise large answers that take longer to make."""

    overhead_per_second: int = 10_000
    """Frames a second that carry nothing (PING, PRIORITY, unknown ones, empty DATA …); more: ENHANCE_YOUR_CALM."""
    settings_burst: int = 100
    """SETTINGS frames at once; each may touch every stream."""
    settings_per_second: int = 10
    """And for ever; more: ENHANCE_YOUR_CALM."""
    resets_burst: int = 1_000
    """RST_STREAM frames, and stream errors, at once, besides as many as there were streams open at the same time: all
    of them may be cancelled together."""
    resets_per_second: int = 500
    """And for ever: more is a rapid reset attack (CVE-2023-44487), ENHANCE_YOUR_CALM."""

    handshake_seconds: float = 20.0
    """From the connection to the client's preface, and from our SETTINGS to their acknowledgement."""
    frame_seconds: float = 20.0
    """For a header block or a frame (but DATA) that has begun to come to its end."""
    keepalive_seconds: float = 60.0
    """A connection that was silent so long is asked with a PING; 0: never."""
    keepalive_timeout_seconds: float = 20.0
    """And closed when it answers nothing so long."""
    idle_seconds: float = 0.0
    """Connections without a call for so long are closed with GOAWAY; 0: never."""
    drain_seconds: float = 5.0
    """How long a connection that said goodbye may stay open for a peer that does not close it."""

    def __post_init__(self) -> None:
        """Raises ValueError for numbers that HTTP/2 does not allow, or that would block every call."""
        if not 65_535 <= self.stream_window < 1 << 31 or not 65_535 <= self.connection_window < 1 << 31:
            raise ValueError("windows must be of 65,535 bytes to 2 GiB - 1")
        if not 16_384 <= self.max_frame_size < 1 << 24:
            raise ValueError("max_frame_size must be of 16,384 bytes to 16 MiB - 1")
        if self.max_buffered < self.max_receive_message_length:
            raise ValueError("max_buffered must have room for the longest message")
