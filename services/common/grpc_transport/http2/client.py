"""ClientConnection: the client's end of an HTTP/2 connection as a state machine (RFC 9113); calls out, answers in.

It reads and sends as the server's end does, and differs in what begins: streams are opened here, answers come, and
the peer's SETTINGS and GOAWAY say how many streams there may be, and when no more.
"""

from collections.abc import Callable

from tandemmq.common.grpc_transport.http2 import frames
from tandemmq.common.grpc_transport.http2.endpoint import Endpoint
from tandemmq.common.grpc_transport.http2.errors import ConnectionFault, ErrorCode, StreamFault
from tandemmq.common.grpc_transport.http2.frames import Setting
from tandemmq.common.grpc_transport.http2.headers import HeaderListTooLarge
from tandemmq.common.grpc_transport.http2.limits import Limits
from tandemmq.common.grpc_transport.http2.request import malformed
from tandemmq.common.grpc_transport.http2.response import ResponseCache, ResponseDecoder, ResponseHead
from tandemmq.common.grpc_transport.http2.stream import Stream

_LAST_STREAM = (1 << 31) - 1
"""The highest stream id that there is; after it a connection is used up."""


class Exchange(Stream):
    """A stream that we opened. Subclasses override what is called when the answer comes.

    It may exist before it is on a connection; `open` puts it there.
    """

    connection: "ClientConnection"
    local_ended = False
    """We have sent END_STREAM."""
    answered = False
    """The head of the answer has come."""

    def open(self, connection: "ClientConnection") -> None:
        """Take the next stream of a connection, which must be `usable`."""
        connection.last_stream_id += 2
        super().__init__(connection, connection.last_stream_id)
        connection.streams[self.stream_id] = self

    def closed_unseen(self) -> None:
        """Forget that there was a stream, so that `open` may be called once more."""
        for state in ("closed", "local_ended", "remote_ended", "pending", "pending_trailers", "received", "held"):
            self.__dict__.pop(state, None)

    def answer_begins(self, head: ResponseHead, ended: bool) -> None:
        """The head of the answer came; `ended`: it is all of it."""
        raise NotImplementedError

    def answer_ends(self, trailers: ResponseHead) -> None:
        """The trailers came. An answer that ends without them ends with `data`."""
        raise NotImplementedError

    def too_large(self) -> None:
        """Head or trailers are over the limit; the stream has been reset for it."""
        raise NotImplementedError

    def refused(self) -> None:
        """The server has not looked at the stream, and will not: its call may be repeated elsewhere."""
        raise NotImplementedError

    def ended(self) -> None:
        """Never called on a client."""


class ClientConnection(Endpoint):
    """One connection of a client."""

    peer_role = "server"
    largest_goaway = 16 << 10
    streams: dict[int, Exchange]  # type: ignore[assignment]

    def __init__(
        self, limits: Limits, cache: ResponseCache, now: float = 0.0, going: Callable[[], None] = lambda: None
    ) -> None:
        """`cache` may be shared; `now`: seconds of the clock that `tick` will tell; `going`: see `goaway`."""
        super().__init__(limits, self._sent_all, now, prefaced=True)
        self._promised = 0  # and opens no streams
        self._headers = ResponseDecoder(cache, limits.max_header_list_size)
        self._going = going
        self.max_streams = limits.max_concurrent_streams
        """Calls at a time that both sides allow."""
        self.greeted = False
        """The server's SETTINGS have come."""
        self.goaway: tuple[int, str] | None = None
        """The server takes no more calls: its error code, and its text for people; `going` is called with it."""
        self.gone = ""
        """Why the socket is gone, if that is what ends the streams."""

    def initiate(self) -> None:
        """The preface, our SETTINGS, and a connection window that suits us: the first bytes that we send."""
        self.sender.control(frames.PREFACE)
        super().initiate()

    def our_settings(self) -> dict[Setting, int]:
        """See Endpoint; nothing may be pushed, and the number of streams is the server's to say."""
        ours = super().our_settings()
        del ours[Setting.MAX_CONCURRENT_STREAMS]
        ours[Setting.ENABLE_PUSH] = 0
        return ours

    @property
    def usable(self) -> bool:
        """Whether a call may begin now."""
        return self.takes_calls and len(self.streams) < self.max_streams

    @property
    def takes_calls(self) -> bool:
        """Whether calls may begin now or when others have ended."""
        return self.greeted and not self.draining and self.failed is None and self.last_stream_id < _LAST_STREAM

    @property
    def may_ask(self) -> bool:
        """See Endpoint; while no call waits for anything, servers count it as misuse."""
        return self.limits.keepalive_seconds > 0 and bool(self.streams)

    def drain(self, now: float) -> None:
        """No more calls begin; the connection is `done` when its last one has ended."""
        if not self.draining and self.failed is None:
            self.draining = self.draining_finally = True
            self.sender.control(frames.goaway(0, ErrorCode.NO_ERROR))
            self._going()

    def finish(self, stream: Exchange) -> None:
        """The server has said all on a stream: what we have not said, nobody waits for."""
        if stream.closed:
            return
        if stream.local_ended:
            self._forget(stream)
        elif stream.pending is None:
            self.sender.half_close(stream)
        else:
            self.cancel(stream, ErrorCode.NO_ERROR)

    # -- answers ------------------------------------------------------------------------------------------------------

    def block(self, block: bytes, stream_id: int, ended: bool) -> None:
        """A whole header block: the head of an answer, or its trailers."""
        if stream_id > self.last_stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "an answer on a stream that was never opened")
        stream = self.streams.get(stream_id)
        try:
            if stream is None or stream.remote_ended:
                self._stray_block(block, stream)
            elif stream.answered:
                self._on_trailers(stream, self._headers.trailers(block), ended)
            else:
                self._on_head(stream, self._headers.response(block), ended)
        except StreamFault as fault:
            self.reset_stream(stream_id, fault.code)
        except HeaderListTooLarge:
            if stream is not None:
                self.cancel(stream, ErrorCode.CANCEL)
                stream.too_large()

    def _stray_block(self, block: bytes, stream: Exchange | None) -> None:
        """Of a stream that ended: still on its way when we gave it up, or the server's fault."""
        self.floods.overhead()
        if not self._headers.stateless:
            self._headers.fields(block)  # it may change the table
        if stream is not None:
            raise StreamFault(ErrorCode.STREAM_CLOSED, "HEADERS after the end of an answer")

    def _on_head(self, stream: Exchange, head: ResponseHead, ended: bool) -> None:
        if head.status < 200:
            if ended or head.status == 101:
                raise malformed("an informational answer that ends the stream, or a switch of protocols")
            self.floods.overhead()
            return
        stream.answered = True
        if head.content_length >= 0:
            stream.content_length = head.content_length
            if ended:
                self.check_length(stream)
        stream.remote_ended = ended
        stream.answer_begins(head, ended)
        if ended:
            self.finish(stream)

    def _on_trailers(self, stream: Exchange, trailers: ResponseHead, ended: bool) -> None:
        if not ended:
            raise malformed("trailers that do not end the stream")
        self.check_length(stream)
        stream.remote_ended = True
        stream.answer_ends(trailers)
        self.finish(stream)

    def on_acknowledged(self) -> None:
        """The server knows our SETTINGS: its header blocks use no dynamic table any more."""
        self._headers.acknowledged()

    def on_stray_data(self, stream_id: int, stream: Stream | None) -> None:
        """DATA for a stream that takes none: mostly what was on its way when we gave it up."""
        if stream_id == 0 or not stream_id & 1 or stream_id > self.last_stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "DATA on a stream that was never opened")
        self.floods.overhead()
        if stream is not None:
            self.reset_stream(stream_id, ErrorCode.STREAM_CLOSED)

    def _sent_all(self, stream: Stream) -> None:
        """Our side of a stream has ended."""
        if isinstance(stream, Exchange):
            stream.local_ended = True
        if stream.remote_ended:
            self._forget(stream)

    # -- what the server says of the connection -----------------------------------------------------------------------

    def on_settings(self, values: dict[int, int]) -> None:
        """See Endpoint."""
        self.greeted = True
        most = values.get(Setting.MAX_CONCURRENT_STREAMS)
        if most is not None:
            self.max_streams = min(most, self.limits.max_concurrent_streams)

    def check_setting(self, identifier: int, value: int) -> None:
        """See Endpoint."""
        if identifier == Setting.ENABLE_PUSH and value:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a server that asks for pushes")
        super().check_setting(identifier, value)

    def _on_goaway(self, data: bytes, begin: int, stop: int, flags: int, stream_id: int) -> None:
        super()._on_goaway(data, begin, stop, flags, stream_id)
        last = int.from_bytes(data[begin : begin + 4], "big") & 0x7FFF_FFFF
        code = int.from_bytes(data[begin + 4 : begin + 8], "big")
        text = data[begin + 8 : min(stop, begin + 208)].decode("utf-8", "replace")
        first, self.goaway = self.goaway is None, (code, text)
        self.draining = self.draining_finally = True
        for stream in [stream for identifier, stream in self.streams.items() if identifier > last]:
            self._forget(stream)
            stream.refused()
        if first:
            self._going()

    def _on_rst_stream(self, data: bytes, begin: int, stop: int, flags: int, stream_id: int) -> None:
        if stop - begin != 4:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "RST_STREAM is not of four bytes")
        self._check_not_idle(stream_id)
        stream = self.streams.get(stream_id)
        if stream is None:
            self.floods.overhead()
            return
        self._forget(stream)
        code = int.from_bytes(data[begin:stop], "big")
        if code == ErrorCode.REFUSED_STREAM and not stream.answered:
            stream.refused()
        else:
            stream.reset(code)
