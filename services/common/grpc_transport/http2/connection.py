"""Connection: the server's end of an HTTP/2 connection as a state machine (RFC 9113); bytes in, calls out."""

from contextlib import suppress
from typing import Protocol

from tandemmq.common.grpc_transport.http2.endpoint import Endpoint
from tandemmq.common.grpc_transport.http2.errors import ConnectionFault, ErrorCode, StreamFault
from tandemmq.common.grpc_transport.http2.headers import HeadCache, HeaderDecoder, HeaderListTooLarge, literal, status
from tandemmq.common.grpc_transport.http2.limits import Limits
from tandemmq.common.grpc_transport.http2.request import USUAL_HEAD, Field, RequestHead, check_trailers, malformed
from tandemmq.common.grpc_transport.http2.stream import Stream

HEADERS_TOO_LARGE = status(431) + literal(b"content-type", b"text/plain")


class Sink(Protocol):
    """Who makes the streams of a connection."""

    def request(self, connection: "Connection", stream_id: int, head: RequestHead) -> Stream:
        """A request has begun: the stream that takes it."""
        ...

    def output_ready(self) -> None:
        """Something is to be sent, and it is no answer to what `receive` was given."""
        ...


class Connection(Endpoint):
    """One connection of the server: it takes requests."""

    def __init__(
        self, limits: Limits, sink: Sink, cache: HeadCache, now: float = 0.0, too_large: bytes = HEADERS_TOO_LARGE
    ) -> None:
        """`cache` may be shared; `now`: seconds of the clock that `tick` will tell.

        `too_large`: the header block that answers a request whose header list is over the limit.
        """
        super().__init__(limits, self._finished, now, prefaced=False)
        self.sink = sink
        self._too_large = too_large
        self._headers = HeaderDecoder(cache, limits.max_header_list_size)
        self._skipped: list[tuple[int, int]] = []
        """Ranges of stream ids that were never used, as higher ones were."""

    def head(self, block: bytes) -> RequestHead:
        """The request that a block describes, whatever becomes of it. Raises as `HeaderDecoder.head` does."""
        return self._headers.head(block)

    # -- requests -----------------------------------------------------------------------------------------------------

    def block(self, block: bytes, stream_id: int, ended: bool) -> None:
        """A whole header block: a request, or the trailers of one."""
        try:
            if stream_id <= self.last_stream_id:
                self._on_trailers(block, stream_id, ended)
                return
            self._opened(stream_id)
            head = self._headers.head(block)
            if self.draining_finally or len(self.streams) >= self.limits.max_concurrent_streams:
                raise StreamFault(ErrorCode.REFUSED_STREAM, "too many streams, or going away")
            stream = self.sink.request(self, stream_id, head)
            self.streams[stream_id] = stream
            if head.cost > USUAL_HEAD:
                stream.head_size = head.cost
                self.heads_size += head.cost
            if head.content_length >= 0:
                stream.content_length = head.content_length
                if ended:
                    self.check_length(stream)
            if ended:
                stream.remote_ended = True
                stream.ended()
            else:
                stream.opened()
        except StreamFault as fault:
            self.reset_stream(stream_id, fault.code)
        except HeaderListTooLarge:
            self._refuse_head(stream_id, ended)

    def _opened(self, stream_id: int) -> None:
        """A new stream: all idle ones below it are closed by that (RFC 9113, section 5.1.1)."""
        if stream_id != self.last_stream_id + 2:
            self._skipped.append((self.last_stream_id + 2, stream_id - 2))
            del self._skipped[:-64]
        self.last_stream_id = stream_id

    def _on_trailers(self, block: bytes, stream_id: int, ended: bool) -> None:
        fields: list[Field] | None = None
        with suppress(HeaderListTooLarge):
            fields = self._headers.fields(block)  # always: a block before the acknowledgement changes the table
        stream = self.streams.get(stream_id)
        if stream is None:
            if stream_id in self._reset_by_us:
                self.floods.overhead()
                return
            if self._was_skipped(stream_id):
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a stream id lower than one that was used before")
            raise ConnectionFault(ErrorCode.STREAM_CLOSED, "HEADERS on a closed stream")
        if stream.remote_ended:
            raise StreamFault(ErrorCode.STREAM_CLOSED, "HEADERS after the end of a request")
        if not ended:
            raise malformed("trailers that do not end the stream")
        if fields is None:
            raise StreamFault(ErrorCode.ENHANCE_YOUR_CALM, "trailers over the limit")
        check_trailers(fields)
        self.check_length(stream)
        stream.remote_ended = True
        stream.ended()

    def _refuse_head(self, stream_id: int, ended: bool) -> None:
        """A request whose header list was decoded and is too large: an answer that says so."""
        self.sender.header_block(stream_id, self._too_large, True)
        self.remember_reset(stream_id)
        if not ended:
            self.sender.reset(stream_id, ErrorCode.NO_ERROR)
        self.floods.reset(len(self.streams))

    def on_stray_data(self, stream_id: int, stream: Stream | None) -> None:
        """DATA for a stream that takes none. Raises ConnectionFault."""
        if stream_id == 0 or not stream_id & 1 or stream_id > self.last_stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "DATA on a stream that was never opened")
        if stream_id in self._reset_by_us:
            self.floods.overhead()
            return
        if self._was_skipped(stream_id):
            raise ConnectionFault(ErrorCode.STREAM_CLOSED, "DATA on a closed stream")
        self.reset_stream(stream_id, ErrorCode.STREAM_CLOSED)

    def _was_skipped(self, stream_id: int) -> bool:
        return any(low <= stream_id <= high for low, high in self._skipped)

    def on_acknowledged(self) -> None:
        """The client knows our SETTINGS: its header blocks use no dynamic table any more."""
        self._headers.acknowledged()

    # -- ends ---------------------------------------------------------------------------------------------------------

    def _finished(self, stream: Stream) -> None:
        """The answer is complete. A request that is not will not be read to its end (RFC 9113, section 8.1)."""
        if not stream.remote_ended:
            self.sender.reset(stream.stream_id, ErrorCode.NO_ERROR)
            self.remember_reset(stream.stream_id)
        self._forget(stream)
