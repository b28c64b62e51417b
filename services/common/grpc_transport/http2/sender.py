"""Sender: what goes out on a connection, within the windows that the peer has opened (RFC 9113, section 5.2).

Everything is queued in `output`, which whoever owns the socket takes away. Header blocks and control frames go at once;
DATA goes as far as the stream's window, the connection's window and the socket allow. What may not go is `pending` at
its stream, in order; the layer above sees to it that they stay within `Limits.max_pending`.
"""

from collections import deque
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING

from tandemmq.common.grpc_transport.http2.frames import (
    DATA,
    DEFAULT_FRAME_SIZE,
    DEFAULT_WINDOW,
    END_HEADERS,
    END_STREAM,
    HEADER_SIZE,
    HEADERS,
    MAX_WINDOW,
    header_frames,
    pack_header,
    rst_stream,
)

if TYPE_CHECKING:
    from tandemmq.common.grpc_transport.http2.stream import Stream

JOIN_LIMIT = 16 << 10
"""Messages longer than this, bytes, are passed on as views; shorter ones are cheaper to copy than to list."""
FAIR_SHARE = 256 << 10
"""Bytes of pending data that one stream may send before the next one has its turn."""


class Envelope:
    """What is the same in all answers of one form: their head and trailers, packed in two calls."""

    def __init__(self, head: bytes, trailers: bytes) -> None:
        """Two header blocks, each of at most a frame."""
        self.head = head
        self.trailers = trailers
        self.size = 3 * HEADER_SIZE + len(head) + len(trailers)
        """Bytes around the message."""
        self.front = Struct(f">IBI{len(head)}sIBI").pack
        self.front_begins = (len(head) << 8 | HEADERS, END_HEADERS)
        self.back = Struct(f">IBI{len(trailers)}s").pack
        self.back_begins = (len(trailers) << 8 | HEADERS, END_HEADERS | END_STREAM)


class StreamSender:
    """The sending half of a connection."""

    __slots__ = (  # the compiled core reads and writes them where they lie
        "_finished",
        "_max_pending",
        "block_prefix",
        "congested",
        "data_frames",
        "initial_window",
        "max_frame_size",
        "opened_bytes",
        "output",
        "pending_bytes",
        "ready",
        "size",
        "window",
    )

    def __init__(self, max_pending: int, finished: Callable[["Stream"], None]) -> None:
        """`finished` is called when the last frame of an answer has been queued."""
        self.output: list[bytes | memoryview] = []
        self.size = 0
        """Bytes in `output`, about."""
        self.window = DEFAULT_WINDOW
        """What the connection may still send."""
        self.opened_bytes = 0
        """By how much the peer has ever opened that."""
        self.initial_window = DEFAULT_WINDOW
        """The window of new streams, as the peer's SETTINGS say."""
        self.max_frame_size = DEFAULT_FRAME_SIZE
        self.block_prefix = b""
        """What the next header block begins with: a table size update, when the peer made its table smaller."""
        self.congested = False
        """The socket takes no more for now; set by its owner, who calls `flush_all` when it has room again."""
        self.pending_bytes = 0
        """Bytes of all streams that wait for a window or the socket."""
        self.ready: dict[int, Stream] = {}
        """Streams whose pending data waits for the connection or the socket only, in the order of their turns."""
        self.data_frames = 0
        """DATA frames sent; so many WINDOW_UPDATEs may come back and be no flood."""
        self._max_pending = max_pending
        self._finished = finished

    @property
    def over_budget(self) -> bool:
        """The peer takes so little that nothing more may be kept for it; a server asks its budget besides."""
        return self.pending_bytes + self.size > self._max_pending

    @property
    def stalled(self) -> bool:
        """No answer of any stream could leave now."""
        return self.congested or self.window <= 0

    # -- what the layer above sends -----------------------------------------------------------------------------------

    def answer(self, stream: "Stream", envelope: Envelope, prefix: bytes, message: bytes) -> None:
        """A whole answer of one message: header block, `prefix` and `message` as DATA, trailers; ends the stream."""
        size = len(prefix) + len(message)
        if size > JOIN_LIMIT or size > self.window or size > stream.send_window or self.congested or self.block_prefix:
            self.headers(stream, envelope.head)
            self.message(stream, prefix, message)
            self.trailers(stream, envelope.trailers)
            return
        self.window -= size
        self.size += size + envelope.size
        self.data_frames += 1
        stream_id = stream.stream_id
        front = envelope.front(*envelope.front_begins, stream_id, envelope.head, size << 8 | DATA, 0, stream_id)
        back = envelope.back(*envelope.back_begins, stream_id, envelope.trailers)
        self.output.append(b"".join((front, prefix, message, back)))
        self._finished(stream)

    def headers(self, stream: "Stream", block: bytes) -> None:
        """The head of an answer, which goes on."""
        self.header_block(stream.stream_id, block, False)

    def message(self, stream: "Stream", prefix: bytes, message: bytes) -> bool:
        """One message as DATA; whether all of it went out. What did not is pending, and `stream.writable` will tell."""
        size = len(prefix) + len(message)
        if stream.pending is None:
            if size <= JOIN_LIMIT and size <= self.window and size <= stream.send_window and not self.congested:
                self._take(stream, size)
                header = pack_header(size << 8 | DATA, 0, stream.stream_id)
                self.output.append(b"".join((header, prefix, message)))
                return True
            stream.pending = deque()
        stream.pending.append(prefix)
        if message:
            stream.pending.append(memoryview(message) if size > JOIN_LIMIT else message)
        self.pending_bytes += size
        self._send_pending(stream, MAX_WINDOW)
        return stream.pending is None

    def trailers(self, stream: "Stream", block: bytes) -> None:
        """The end of an answer, after what is pending."""
        if stream.pending is not None:
            stream.pending_trailers = block
            return
        self._end(stream, block)

    def end(self, stream: "Stream", head: bytes, body: bytes) -> None:
        """A whole answer without trailers: a header block and a body, whose last frame ends the stream."""
        self.headers(stream, head)
        stream.pending = deque((body,))
        stream.pending_trailers = b""
        self.pending_bytes += len(body)
        self._send_pending(stream, MAX_WINDOW)

    def request(self, stream: "Stream", block: bytes, prefix: bytes, message: bytes) -> None:
        """A whole request of one message: header block, `prefix` and `message` as DATA that ends our side."""
        size = len(prefix) + len(message)
        if size > JOIN_LIMIT or size > self.window or size > stream.send_window or self.congested:
            self.headers(stream, block)
            self.message(stream, prefix, message)
            self.half_close(stream)
            return
        self.headers(stream, block)
        self._take(stream, size)
        self.output.append(b"".join((pack_header(size << 8 | DATA, END_STREAM, stream.stream_id), prefix, message)))
        self._finished(stream)

    def half_close(self, stream: "Stream") -> None:
        """Our side of a stream ends without trailers, after what is pending."""
        if stream.pending is not None:
            stream.pending_trailers = b""
            return
        self.control(pack_header(DATA, END_STREAM, stream.stream_id))
        self._finished(stream)

    def header_block(self, stream_id: int, block: bytes, ended: bool) -> None:
        """A header block on any stream."""
        if self.block_prefix:
            block, self.block_prefix = self.block_prefix + block, b""
        self.control(header_frames(stream_id, block, ended, self.max_frame_size))

    def control(self, frame: bytes) -> None:
        """A frame to which no window applies."""
        self.output.append(frame)
        self.size += len(frame)

    # -- windows ------------------------------------------------------------------------------------------------------

    def opened(self, stream: "Stream", change: int) -> bool:
        """The peer opened a stream's window; False, and no effect, when it is over the limit."""
        if stream.send_window + change > MAX_WINDOW:
            return False
        stream.send_window += change
        if stream.pending is not None and stream.send_window > 0:
            self.ready[stream.stream_id] = stream
            self.flush_all()
        return True

    def opened_connection(self, increment: int) -> bool:
        """The peer opened the connection's window; False, and no effect, when it is over the limit."""
        if self.window + increment > MAX_WINDOW:
            return False
        self.window += increment
        self.opened_bytes += increment
        self.flush_all()
        return True

    def resized(self, initial_window: int, streams: "dict[int, Stream]") -> bool:
        """The peer changed the window of all streams (RFC 9113, section 6.9.2); False when one is over the limit.

        Nothing is sent yet: `flush_all` must follow.
        """
        change = initial_window - self.initial_window
        self.initial_window = initial_window
        for stream in streams.values():
            stream.send_window += change
            if stream.pending is None:
                continue
            if stream.send_window > 0:
                self.ready[stream.stream_id] = stream
            else:
                self.ready.pop(stream.stream_id, None)
        return all(stream.send_window <= MAX_WINDOW for stream in streams.values())

    def flush_all(self) -> None:
        """Send pending data of all streams in turns, as far as it goes."""
        ready = self.ready
        while ready and self.window > 0 and not self.congested:
            stream = ready.pop(next(iter(ready)))
            self._send_pending(stream, FAIR_SHARE)

    def forget(self, stream: "Stream") -> None:
        """The stream is gone; so is what it wanted to send."""
        if stream.pending is not None:
            self.pending_bytes -= sum(map(len, stream.pending))
            stream.pending = None
            stream.pending_trailers = None
            self.ready.pop(stream.stream_id, None)

    def reset(self, stream_id: int, code: int) -> None:
        """An RST_STREAM."""
        self.control(rst_stream(stream_id, code))

    def _end(self, stream: "Stream", block: bytes) -> None:
        self.header_block(stream.stream_id, block, True)
        self._finished(stream)

    def _take(self, stream: "Stream", size: int) -> None:
        self.window -= size
        stream.send_window -= size
        self.size += size
        self.data_frames += 1

    def _send_pending(self, stream: "Stream", share: int) -> None:
        """Frames of pending data while windows, socket and `share` (bytes) allow; then it is another stream's turn."""
        pending = stream.pending
        assert pending is not None
        while pending:
            room = min(self.window, stream.send_window, share)
            if room <= 0 or self.congested:
                if stream.send_window > 0:
                    self.ready[stream.stream_id] = stream
                return
            if len(pending[0]) > self.max_frame_size <= room:
                share -= self._send_whole_frames(stream, pending, room)
                continue
            parts, size = _cut(pending, min(room, self.max_frame_size))
            self._take(stream, size)
            self.pending_bytes -= size
            share -= size
            flags = END_STREAM if not pending and stream.pending_trailers == b"" else 0
            self.output.append(pack_header(size << 8 | DATA, flags, stream.stream_id))
            self.output += parts
        stream.pending = None
        self.ready.pop(stream.stream_id, None)
        trailers, stream.pending_trailers = stream.pending_trailers, None
        if trailers:
            self._end(stream, trailers)
        elif trailers is not None:
            self._finished(stream)
        stream.writable()

    def _send_whole_frames(self, stream: "Stream", pending: "deque[bytes | memoryview]", room: int) -> int:
        """Frames as large as may be of the first part, up to `room` bytes, but for its last one; gives their bytes."""
        view = memoryview(pending.popleft())
        frame = self.max_frame_size
        frames = min(room, len(view) - 1) // frame
        size = frames * frame
        header = pack_header(frame << 8 | DATA, 0, stream.stream_id)
        for begin in range(0, size, frame):
            self.output += (header, view[begin : begin + frame])
        pending.appendleft(view[size:])
        self._take(stream, size)
        self.data_frames += frames - 1
        self.pending_bytes -= size
        return size


def _cut(pending: "deque[bytes | memoryview]", room: int) -> tuple[list[bytes | memoryview], int]:
    """Takes up to `room` bytes off the front: the parts of one frame, and their size."""
    parts: list[bytes | memoryview] = []
    size = 0
    while pending and size < room:
        part = pending.popleft()
        left = room - size
        if len(part) > left:
            view = memoryview(part)
            pending.appendleft(view[left:])
            part = view[:left]
        parts.append(part)
        size += len(part)
    return parts, size
