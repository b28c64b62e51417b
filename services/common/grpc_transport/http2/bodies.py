"""Bodies: the DATA frames of a peer, whole or as they come, against the windows that we granted.

A base of `Connection`, in a file of its own (RFC 9113, sections 6.1, 6.9 and 8.1.1).
"""

from collections.abc import Callable

from tandemmq.common.grpc_transport.http2 import frames
from tandemmq.common.grpc_transport.http2.control import ControlFrames
from tandemmq.common.grpc_transport.http2.errors import ConnectionFault, ErrorCode, StreamFault
from tandemmq.common.grpc_transport.http2.limits import Limits
from tandemmq.common.grpc_transport.http2.request import malformed
from tandemmq.common.grpc_transport.http2.stream import Stream

_REMEMBERED = 1_000
"""Streams that we reset, and of which late frames are ignored."""


class Bodies(ControlFrames):
    """What comes in DATA, and the ends of streams before their time."""

    def __init__(self, limits: Limits, finished: Callable[[Stream], None], now: float) -> None:
        """See ControlFrames."""
        super().__init__(limits, finished, now)
        self.data_left = 0
        """Bytes still to come of a DATA frame, padding included."""
        self._padding_left = 0
        self._data_of: Stream | None = None
        self._data_ends = False

    # -- bodies -------------------------------------------------------------------------------------------------------

    def on_data(self, data: bytes, begin: int, stop: int, flags: int, stream_id: int) -> None:
        """A DATA frame that is whole: its payload is `data[begin:stop]`."""
        length = stop - begin
        if flags & frames.PADDED:
            padding = padding_length(data, begin, stop)
            begin += 1
            stop -= padding
        stream = self._receiver_of_data(stream_id, length)
        if stream is None:
            return
        ended = bool(flags & frames.END_STREAM)
        if begin == stop and not ended:
            self.floods.overhead()
        self._deliver(stream, data, begin, stop, ended)

    def on_part_of_data(self, data: bytes, begin: int, stop: int, end: int, flags: int, stream_id: int) -> None:
        """The beginning of a DATA frame: `data[begin:end]` of what will be `stop - begin` bytes."""
        length = stop - begin
        self._padding_left = 0
        if flags & frames.PADDED:
            self._padding_left = padding_length(data, begin, stop)
            begin += 1
        self._data_of = self._receiver_of_data(stream_id, length)
        self._data_ends = bool(flags & frames.END_STREAM)
        self.data_left = stop - begin
        if self._data_of is not None and self.data_left == self._padding_left and not self._data_ends:
            self.floods.overhead()
        self.on_more_data(data, begin, end)

    def on_more_data(self, data: bytes, position: int, end: int) -> int:
        """More of the DATA frame that goes on; gives the position behind it."""
        next_frame = min(end, position + self.data_left)
        stop = min(next_frame, position + self.data_left - self._padding_left)
        self.data_left -= next_frame - position
        stream = self._data_of
        whole = not self.data_left
        if whole:
            self._data_of = None
        if stream is not None and not stream.closed and (stop > position or whole):
            self._deliver(stream, data, position, max(stop, position), self._data_ends and whole, whole)
        return next_frame

    def _receiver_of_data(self, stream_id: int, length: int) -> Stream | None:
        """The stream of a DATA frame of `length` bytes, counted against the windows; None when it is to be ignored."""
        self._received += length
        if self._received > self._granted:
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "more DATA than the connection's window allows")
        if self._granted - self._received < self._low_window and self.held <= self.limits.max_buffered:
            self._regrant()
        stream = self.streams.get(stream_id)
        if stream is None or stream.remote_ended:
            self.on_stray_data(stream_id, stream)
            return None
        stream.received += length
        if stream.received > stream.granted:
            self.reset_stream(stream_id, ErrorCode.FLOW_CONTROL_ERROR)
            return None
        return stream

    def _deliver(self, stream: Stream, data: bytes, begin: int, stop: int, ended: bool, whole: bool = True) -> None:
        """Pass body bytes on. `whole`: they end a frame, so that all that was counted for it has come."""
        try:
            if stream.content_length >= 0:
                stream.body_size += stop - begin
                if ended or stream.body_size > stream.content_length:
                    self.check_length(stream)
            if ended:
                stream.remote_ended = True
            stream.data(data, begin, stop, ended)
        except StreamFault as fault:
            self.reset_stream(stream.stream_id, fault.code)
            return
        if whole and not ended and not stream.closed and stream.granted - stream.received < self._low_stream_window:
            self.regrant_stream(stream)

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

    def check_length(self, stream: Stream) -> None:
        """What came is what content-length promised (RFC 9113, section 8.1.1)."""
        if stream.content_length >= 0 and stream.body_size != stream.content_length:
            raise malformed("a body of another length than content-length says")

    def skip(self, length: int) -> None:
        """Bytes that will come and are nothing."""
        self.data_left, self._padding_left, self._data_of = length, 0, None

    def reset_stream(self, stream_id: int, code: ErrorCode) -> None:
        """End a stream for a fault of the peer, and tell both sides."""
        open_streams = len(self.streams)
        self.sender.reset(stream_id, code)
        self.remember_reset(stream_id)
        stream = self.streams.get(stream_id)
        if stream is not None:
            self._forget(stream)
            stream.reset(code)
        self.floods.reset(open_streams)

    def cancel(self, stream: Stream, code: ErrorCode) -> None:
        """The layer above gives a stream up. It is not told of it."""
        if stream.closed:
            return
        self.sender.reset(stream.stream_id, code)
        self.remember_reset(stream.stream_id)
        self._forget(stream)

    def remember_reset(self, stream_id: int) -> None:
        """Frames of this stream may still be on their way; they are to be ignored."""
        remembered = self._reset_by_us
        remembered[stream_id] = None
        if len(remembered) > _REMEMBERED:
            del remembered[next(iter(remembered))]


def padding_length(data: bytes, begin: int, stop: int) -> int:
    """The length of a frame's padding, from its first byte. Raises ConnectionFault."""
    if begin == stop:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a padded frame without the length of its padding")
    padding = data[begin]
    if begin + 1 + padding > stop:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "padding that is longer than its frame")
    return padding
