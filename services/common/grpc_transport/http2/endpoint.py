"""Endpoint: what both ends of an HTTP/2 connection share: streams, windows, control frames, its age, and its end.

Who owns the socket gives what comes to `receive` and writes what `sender.output` holds. Nothing here waits, reads a
clock or raises: a peer's fault becomes RST_STREAM or GOAWAY, and `failed` tells that the connection is over.
See sections 5, 6 and 8.1 of RFC 9113.
"""

from collections.abc import Callable

from tandemmq.common.grpc_transport.http2 import frames
from tandemmq.common.grpc_transport.http2.errors import ConnectionFault, ErrorCode, StreamFault
from tandemmq.common.grpc_transport.http2.floods import Floods
from tandemmq.common.grpc_transport.http2.frame_reader import LARGEST_SETTINGS, FrameReader
from tandemmq.common.grpc_transport.http2.frames import ACK, MAX_WINDOW, Setting
from tandemmq.common.grpc_transport.http2.limits import Limits
from tandemmq.common.grpc_transport.http2.request import malformed
from tandemmq.common.grpc_transport.http2.sender import StreamSender
from tandemmq.common.grpc_transport.http2.stream import Stream

_KEEPALIVE = b"keepaliv"
_DRAIN = b"draining"
_REMEMBERED = 1_000
"""Streams that we reset, and of which late frames are ignored."""


class Endpoint:
    """The state machine of a connection; `Connection` and `ClientConnection` add what one end only does."""

    __slots__ = (  # what the compiled core reads and writes where it lies
        "__dict__",
        "_granted",
        "_received",
        "acknowledged",
        "buffered",
        "draining",
        "failed",
        "heads_size",
        "heard",
        "held",
        "last_stream_id",
        "receiving",
    )

    peer_role = "client"
    """What the other side is, for people."""
    largest_goaway: int | None = None
    """See FrameReader."""

    def __init__(self, limits: Limits, finished: Callable[[Stream], None], now: float, *, prefaced: bool) -> None:
        """`finished`: see Sender; `now`: seconds, as `tick` will tell them; `prefaced`: the peer sends no preface."""
        self.limits = limits
        self.sender = StreamSender(limits.max_pending, finished)
        self.floods = Floods(limits)
        self.streams: dict[int, Stream] = {}
        """Streams that are open or half-closed."""
        self.last_stream_id = -1
        """The highest id that the client (on a client: we) has used."""
        self.held = 0
        """Received bytes that no reader has taken, and for which the windows are smaller."""
        self.buffered = 0
        """Received bytes of messages that are not complete; whoever collects them counts them here."""
        self.heads_size = 0
        """What large heads of open streams cost, bytes."""
        self.acknowledged = False
        """The client has acknowledged our SETTINGS."""
        self.failed: ErrorCode | None = None
        """Why the connection is over, once it is; what is queued is the last that is sent."""
        self.reason = ""
        self.receiving = False
        """Inside `receive`: whoever takes the output will come by anyway."""
        self.heard = False
        """Something came since the last `tick`."""
        self.draining = False
        """GOAWAY was sent; calls that the client began before it knew are still taken."""
        self.draining_finally = False
        """New streams are refused."""
        self._received = 0
        self._granted = frames.DEFAULT_WINDOW
        self._low_window = limits.connection_window // 2
        self._low_stream_window = limits.stream_window // 2
        self._reset_by_us: dict[int, None] = {}
        self._began = self._spoke = self._last_tick = self._busy_at = now
        self._promised = MAX_WINDOW
        """The last stream id that our last GOAWAY named: a later one may not name a higher."""
        self._drain_since: float | None = None
        self._pinged = False
        handlers = {
            frames.PRIORITY: self._on_priority,
            frames.RST_STREAM: self._on_rst_stream,
            frames.SETTINGS: self._on_settings,
            frames.PUSH_PROMISE: self._on_push_promise,
            frames.PING: self._on_ping,
            frames.GOAWAY: self._on_goaway,
            frames.WINDOW_UPDATE: self._on_window_update,
        }
        self.reader = FrameReader(
            limits, self.floods, self, handlers, now, prefaced=prefaced, largest_goaway=self.largest_goaway
        )

    def receive(self, data: bytes, begin: int = 0) -> None:
        """Bytes came from the peer. `begin`: see `FrameReader.read`."""
        if self.failed is not None:
            self.reader.behind = False  # what a slice has left is nobody's
            return
        self.heard = self.receiving = True
        try:
            self.reader.read(data, begin)
        except ConnectionFault as fault:
            self.fail(fault.code, fault.reason)
        finally:
            self.receiving = False

    # -- where the two ends differ ------------------------------------------------------------------------------------

    def block(self, block: bytes, stream_id: int, ended: bool) -> None:
        """See FrameTaker."""
        raise NotImplementedError

    def on_stray_data(self, stream_id: int, stream: Stream | None) -> None:
        """DATA for a stream that takes none. Raises ConnectionFault."""
        raise NotImplementedError

    def on_acknowledged(self) -> None:
        """The peer knows our SETTINGS."""
        raise NotImplementedError

    def on_settings(self, values: dict[int, int]) -> None:
        """The peer's SETTINGS, found to be legal, beside what is done about windows and frames."""

    # -- the connection's life ----------------------------------------------------------------------------------------

    def initiate(self) -> None:
        """Our SETTINGS, and a connection window that suits us: the first bytes that we send."""
        self.sender.control(frames.settings(self.our_settings()))
        self._regrant()

    def our_settings(self) -> dict[Setting, int]:
        """What we tell the peer of us."""
        limits = self.limits
        return {
            Setting.HEADER_TABLE_SIZE: 0,
            Setting.MAX_CONCURRENT_STREAMS: limits.max_concurrent_streams,
            Setting.INITIAL_WINDOW_SIZE: limits.stream_window,
            Setting.MAX_FRAME_SIZE: limits.max_frame_size,
            Setting.MAX_HEADER_LIST_SIZE: limits.max_header_list_size,
        }

    @property
    def done(self) -> bool:
        """Nothing more will happen: failed, or drained to the last call."""
        return self.failed is not None or (self.draining_finally and not self.streams)

    def fail(self, code: ErrorCode, reason: str) -> None:
        """The end: GOAWAY is queued, every stream is told, nothing that comes is read any more."""
        if self.failed is not None:
            return
        self.failed = code
        self.reason = reason
        self.sender.control(frames.goaway(min(self._promised, max(self.last_stream_id, 0)), code, reason))
        self.lost()

    def lost(self, enough: Callable[[], bool] | None = None) -> bool:
        """The socket is gone, or of no more use: every stream is told, or as many until it is `enough`.

        True when none is left; else call it again.
        """
        for stream in list(self.streams.values()):
            self._forget(stream)
            stream.reset(ErrorCode.CANCEL)
            if enough is not None and enough():
                break
        return not self.streams

    def drain(self, now: float) -> None:
        """Say goodbye: the client is asked to begin nothing more; what it has begun is finished."""
        if self.draining or self.failed is not None:
            return
        self.draining = True
        self._drain_since = now
        self.sender.control(frames.goaway(MAX_WINDOW, ErrorCode.NO_ERROR, "going away"))
        self.sender.control(frames.ping(_DRAIN))

    def tick(self, now: float) -> None:
        """Time has passed: about once a second, `now` in seconds. What took too long is ended."""
        self.floods.tick(now - self._last_tick, self.sender.data_frames)
        self._last_tick = now
        if self.failed is not None:
            return
        limits = self.limits
        if self.heard:
            self.heard, self._pinged, self._spoke = False, False, now
        if self.streams:
            self._busy_at = now
        if self._drain_since is not None and now - self._drain_since > limits.drain_seconds:
            self._refuse_new_streams()
        if not self.acknowledged and now - self._began > limits.handshake_seconds:
            self.fail(ErrorCode.SETTINGS_TIMEOUT, f"the {self.peer_role} did not introduce itself in time")
        elif self.reader.too_slow(now):
            self.fail(ErrorCode.ENHANCE_YOUR_CALM, "a frame that does not come to its end")
        elif self._pinged and now - self._spoke > limits.keepalive_seconds + limits.keepalive_timeout_seconds:
            self.fail(ErrorCode.NO_ERROR, f"the {self.peer_role} does not answer")
        elif self.may_ask and not self._pinged and now - self._spoke > limits.keepalive_seconds:
            self._pinged = True
            self.sender.control(frames.ping(_KEEPALIVE))
        elif limits.idle_seconds and now - self._busy_at > limits.idle_seconds:
            self.drain(now)

    @property
    def may_ask(self) -> bool:
        """Whether a peer that is silent may be asked with a PING if it is still there."""
        return self.limits.keepalive_seconds > 0

    def _refuse_new_streams(self) -> None:
        if not self.draining_finally:
            self.draining_finally = True
            self._promised = max(self.last_stream_id, 0)
            self.sender.control(frames.goaway(self._promised, ErrorCode.NO_ERROR))

    def _forget(self, stream: Stream) -> None:
        """The stream is closed: what it held is free."""
        stream.closed = True
        self.streams.pop(stream.stream_id, None)
        if stream.head_size:
            self.heads_size -= stream.head_size
            stream.head_size = 0
        if stream.pending is not None:
            self.sender.forget(stream)
        if stream.held:
            self.held -= stream.held
            stream.held = 0
            self._regrant()

    # -- windows that we grant ----------------------------------------------------------------------------------------

    def hold(self, stream: Stream, size: int) -> None:
        """`size` bytes of a stream wait for their reader: its window stays so much smaller."""
        stream.held += size
        self.held += size

    def release(self, stream: Stream, size: int) -> None:
        """The reader has taken them."""
        if stream.closed:
            return
        stream.held -= size
        self.held -= size
        if not stream.remote_ended:
            self.regrant_stream(stream)
        self._regrant()

    def regrant_stream(self, stream: Stream) -> None:
        """Open a stream's window again when it has become half of what it may be."""
        increment = self.limits.stream_window - stream.held - (stream.granted - stream.received)
        if increment >= self._low_stream_window:
            stream.granted += increment
            self.sender.control(frames.window_update(stream.stream_id, increment))

    def _regrant(self) -> None:
        """Open the connection's window again, unless too much waits for readers."""
        if self.failed is not None:
            return
        increment = self.limits.connection_window - (self._granted - self._received)
        if increment >= self._low_window and self.held <= self.limits.max_buffered:
            self._granted += increment
            self.sender.control(frames.window_update(0, increment))

    # -- bodies -------------------------------------------------------------------------------------------------------

    def data_begins(self, stream_id: int, length: int) -> Stream | None:
        """See FrameTaker; counted against the windows that we granted."""
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

    def deliver(self, stream: Stream, data: bytes, begin: int, stop: int, ended: bool, whole: bool = True) -> None:
        """See FrameTaker."""
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

    def check_length(self, stream: Stream) -> None:
        """What came is what content-length promised (RFC 9113, section 8.1.1)."""
        if stream.content_length >= 0 and stream.body_size != stream.content_length:
            raise malformed("a body of another length than content-length says")

    # -- streams that end before their time ---------------------------------------------------------------------------

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

    # -- frames -------------------------------------------------------------------------------------------------------

    def _on_settings(self, data: bytes, begin: int, stop: int, flags: int, stream_id: int) -> None:
        length = stop - begin
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "SETTINGS on a stream")
        if length % 6 or (flags & ACK and length):
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS of an illegal length")
        if length > LARGEST_SETTINGS:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "SETTINGS of more values than there are")
        self.floods.settings()
        if flags & ACK:
            if not self.acknowledged:
                self.acknowledged = True
                self.on_acknowledged()
            return
        values: dict[int, int] = {}
        for position in range(begin, stop, 6):
            identifier, value = frames.unpack_setting(data, position)
            self.check_setting(identifier, value)
            if identifier == Setting.HEADER_TABLE_SIZE and value < frames.DEFAULT_TABLE_SIZE:
                self.sender.block_prefix = frames.NO_TABLE  # must be said (RFC 7541, section 4.2), though we use none
            values[identifier] = value  # the last one counts: each change of the window touches every stream
        self.sender.max_frame_size = values.get(Setting.MAX_FRAME_SIZE, self.sender.max_frame_size)
        window = values.get(Setting.INITIAL_WINDOW_SIZE)
        if window is not None and not self.sender.resized(window, self.streams):
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "a window over 2^31 - 1 bytes")
        self.on_settings(values)
        self.sender.control(frames.SETTINGS_ACK)
        self.sender.flush_all()  # after the acknowledgement: before it, the peer knows of no larger windows

    def check_setting(self, identifier: int, value: int) -> None:
        """One value of SETTINGS is legal. Raises ConnectionFault."""
        if identifier == Setting.INITIAL_WINDOW_SIZE:
            if value > MAX_WINDOW:
                raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "a window over 2^31 - 1 bytes")
        elif identifier == Setting.MAX_FRAME_SIZE:
            if not frames.DEFAULT_FRAME_SIZE <= value < 1 << 24:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "an illegal SETTINGS_MAX_FRAME_SIZE")
        elif identifier == Setting.ENABLE_PUSH and value > 1:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "an illegal SETTINGS_ENABLE_PUSH")

    def _on_ping(self, data: bytes, begin: int, stop: int, flags: int, stream_id: int) -> None:
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PING on a stream")
        if stop - begin != 8:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "PING is not of eight bytes")
        self.floods.overhead()
        if not flags & ACK:
            self.sender.control(frames.ping(data[begin:stop], ACK))
        elif self.draining and data[begin:stop] == _DRAIN:
            self._refuse_new_streams()

    def _on_goaway(self, _data: bytes, begin: int, stop: int, _flags: int, stream_id: int) -> None:
        if stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "GOAWAY on a stream")
        if stop - begin < 8:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "GOAWAY is too short")
        self.floods.overhead()  # streams that are open are answered; the client closes when it has its answers

    def _on_window_update(self, data: bytes, begin: int, stop: int, _flags: int, stream_id: int) -> None:
        if stop - begin != 4:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "WINDOW_UPDATE is not of four bytes")
        increment = int.from_bytes(data[begin:stop], "big") & 0x7FFF_FFFF
        self.floods.window_update(self.sender.data_frames)
        if not stream_id:
            if not increment:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "WINDOW_UPDATE of 0")
            if not self.sender.opened_connection(increment):
                raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "a window over 2^31 - 1 bytes")
            return
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_not_idle(stream_id)
        elif not increment:
            self.reset_stream(stream_id, ErrorCode.PROTOCOL_ERROR)
        elif not self.sender.opened(stream, increment) and not stream.closed:
            self.reset_stream(stream_id, ErrorCode.FLOW_CONTROL_ERROR)

    def _on_rst_stream(self, data: bytes, begin: int, stop: int, _flags: int, stream_id: int) -> None:
        if stop - begin != 4:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "RST_STREAM is not of four bytes")
        self._check_not_idle(stream_id)
        self.floods.reset(len(self.streams))
        stream = self.streams.get(stream_id)
        if stream is not None:
            self._forget(stream)
            stream.reset(int.from_bytes(data[begin:stop], "big"))

    def _on_priority(self, data: bytes, begin: int, stop: int, _flags: int, stream_id: int) -> None:
        """Priorities are obsolete (RFC 9113, section 5.3.2) and ignored; their form is checked."""
        if not stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PRIORITY of no stream")
        self.floods.overhead()
        if stop - begin != 5:
            self._fault_of(stream_id, ErrorCode.FRAME_SIZE_ERROR, "PRIORITY is not of five bytes")
        elif int.from_bytes(data[begin : begin + 4], "big") & 0x7FFF_FFFF == stream_id:
            self._fault_of(stream_id, ErrorCode.PROTOCOL_ERROR, "a stream that depends on itself")

    def _on_push_promise(self, _data: bytes, _begin: int, _stop: int, _flags: int, _stream_id: int) -> None:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, f"PUSH_PROMISE from a {self.peer_role}")

    def _fault_of(self, stream_id: int, code: ErrorCode, reason: str) -> None:
        """A stream error; of the connection when there is no such stream to reset (RFC 9113, section 5.4)."""
        if stream_id not in self.streams:
            raise ConnectionFault(code, reason)
        self.reset_stream(stream_id, code)

    def _check_not_idle(self, stream_id: int) -> None:
        if not stream_id or not stream_id & 1 or stream_id > self.last_stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a frame for a stream that was never opened")
