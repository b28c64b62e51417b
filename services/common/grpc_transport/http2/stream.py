"""Stream: one exchange on a connection, as the HTTP/2 layer sees it; the layer above fills it with meaning."""

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tandemmq.common.grpc_transport.http2.endpoint import Endpoint


class Stream:
    """State of a stream (RFC 9113, section 5.1). Subclasses override the four calls at the end.

    A stream that exists is open or half-closed; what is closed is forgotten by its connection. The defaults are on the
    class, so that a call which needs none of them sets none.
    """

    received = 0
    """Bytes of DATA that came, padding included: what flow control counts."""
    held = 0
    """Those of them that no reader has taken: so much smaller is the window."""
    remote_ended = False
    """The client has sent END_STREAM."""
    closed = False
    """Nothing may be sent any more: both sides ended, or reset, or the connection is gone."""
    head_size = 0
    """Bytes that its head costs, when that is more than the usual."""
    content_length = -1
    """What the request's content-length says; -1: nothing."""
    body_size = 0
    """Bytes of DATA without padding; counted only when there is a content-length."""
    pending: "deque[bytes | memoryview] | None" = None
    """Message bytes that wait for a window."""
    pending_trailers: bytes | None = None
    """The header block that ends the answer, when it must wait for pending data."""

    def __init__(self, connection: "Endpoint", stream_id: int) -> None:
        """`stream_id`: odd, as the client chose it."""
        self.connection = connection
        self.stream_id = stream_id
        self.granted = connection.limits.stream_window
        """Bytes that the client was ever allowed to send."""
        self.send_window = connection.sender.initial_window
        """Bytes that we may send; negative when the peer's SETTINGS took it back."""

    def opened(self) -> None:
        """The connection knows the stream, and its request goes on; answers may be sent from now on."""

    def data(self, buffer: bytes, start: int, stop: int, ended: bool) -> None:
        """Body bytes came: `buffer[start:stop]`; `ended`: the request is complete.

        Bytes that are not taken at once must be reported with `connection.hold` and, later, `connection.release`.
        """
        raise NotImplementedError

    def ended(self) -> None:
        """The request is complete without (further) body bytes; `opened` was not called if there were none at all."""
        raise NotImplementedError

    def reset(self, code: int) -> None:
        """The stream is over before its time: nothing can be sent on it, nothing will come. Called at most once."""
        raise NotImplementedError

    def as_call(self) -> "Stream":
        """What can say more to the peer than this: itself, but where somebody keeps the stream who only can answer."""
        return self

    def stands(self, now: float, patience: float) -> bool:
        """Whether the peer has taken or sent too little for `patience` seconds; asked about once a second."""
        return False

    def give_up_on_peer(self) -> None:
        """End the exchange for that, and say so."""

    def writable(self) -> None:
        """All that was pending has been sent."""
