"""A client in front of a Connection without a socket between: sends bytes, reads and checks what comes back."""

from collections.abc import Callable, Iterable

from tandemmq.common.grpc_transport.http2.connection import Connection
from tandemmq.common.grpc_transport.http2.headers import HeadCache, literal, status
from tandemmq.common.grpc_transport.http2.limits import Limits
from tandemmq.common.grpc_transport.http2.request import RequestHead
from tandemmq.common.grpc_transport.http2.sender import Envelope
from tandemmq.common.grpc_transport.http2.stream import Stream
from tests.unit.grpc_transport.reading import Reading, frames
from tests.unit.grpc_transport.wire import Frame, Type, headers, hello, literals, request_fields, settings

OK = Envelope(status(200) + literal(b"content-type", b"application/grpc"), literal(b"grpc-status", b"0"))


class Taken(Stream):
    """A stream that notes what it is told, and answers when the test says so."""

    def __init__(self, connection: Connection, stream_id: int, head: RequestHead) -> None:
        super().__init__(connection, stream_id)
        self.head = head
        self.body = b""
        self.whole = False
        self.was_reset: int | None = None
        self.writables = 0
        self.on_ended: Callable[[Taken], None] = lambda _stream: None
        self.keeps = False
        """Whether body bytes stay unread until `read` is called."""

    def data(self, buffer: bytes, start: int, stop: int, ended: bool) -> None:
        assert not self.whole, "data behind the end"
        assert self.was_reset is None, "data behind a reset"
        assert 0 <= start <= stop <= len(buffer)
        self.body += buffer[start:stop]
        if self.keeps:
            self.connection.hold(self, stop - start)
        if ended:
            self.ended()

    def ended(self) -> None:
        assert not self.whole, "ended twice"
        assert self.was_reset is None, "ended behind a reset"
        self.whole = True
        self.on_ended(self)

    def reset(self, code: int) -> None:
        assert self.was_reset is None, "reset twice"
        self.was_reset = code

    def writable(self) -> None:
        self.writables += 1

    def read(self) -> None:
        """Takes all body bytes that were kept."""
        self.connection.release(self, self.held)

    def answer(self, message: bytes = b"answer") -> None:
        """A whole answer of one message."""
        prefix = b"\0" + len(message).to_bytes(4)
        self.connection.sender.answer(self, OK, prefix, message)


class Peer:
    """One client and the Connection that serves it."""

    def __init__(self, limits: Limits | None = None, *, greet: bool = True, acknowledge: bool = True) -> None:
        """``greet``: preface and empty settings are sent at once; ``acknowledge``: so is the answer to theirs."""
        self.now = 1000.0
        self.limits = limits or Limits()
        self.connection = Connection(self.limits, self, HeadCache(), self.now)
        self.streams: dict[int, Taken] = {}
        """Every stream that the connection made, by id."""
        self.reading = Reading()
        self.on_request: Callable[[Taken], None] = lambda _stream: None
        self.connection.initiate()
        self.collect()
        if greet:
            self.send(hello(), settings(ack=True) if acknowledge else b"")

    def request(self, connection: Connection, stream_id: int, head: RequestHead) -> Taken:
        """See Sink."""
        assert stream_id not in self.streams, "the same stream twice"
        self.streams[stream_id] = Taken(connection, stream_id, head)
        self.on_request(self.streams[stream_id])
        return self.streams[stream_id]

    def output_ready(self) -> None:
        """See Sink."""

    def send(self, *parts: bytes) -> list[Frame]:
        """What the server answers to these bytes, given to it at once."""
        self.connection.receive(b"".join(parts))
        return self.collect()

    def send_each(self, parts: Iterable[bytes]) -> list[Frame]:
        """The same in as many reads as there are parts."""
        for part in parts:
            self.connection.receive(part)
        return self.collect()

    def collect(self) -> list[Frame]:
        """The frames that the server has queued; checked."""
        output = self.connection.sender.output
        written = b"".join(bytes(part) for part in output)
        output.clear()
        self.connection.sender.size = 0
        found = frames(written)
        self.reading.read(found)
        if self.connection.failed is not None:
            assert not found or found[-1].type == Type.GOAWAY, "something behind the last GOAWAY"
        return found

    def tick(self, seconds: float = 1.0) -> list[Frame]:
        """Time passes, a second at a time as the server's clock does."""
        found = []
        while seconds > 0:
            self.now += min(1.0, seconds)
            seconds -= 1.0
            self.connection.tick(self.now)
            found += self.collect()
        return found

    def open(self, stream: int = 1, *, end: bool = False, method: str = "Echo") -> Taken:
        """A call that has begun."""
        self.send(headers(stream, literals(request_fields(method)), end=end))
        return self.streams[stream]

    @property
    def failed(self) -> int | None:
        return self.connection.failed
