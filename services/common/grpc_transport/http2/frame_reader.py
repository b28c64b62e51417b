"""FrameReader: bytes in, frames out: what both ends of an HTTP/2 connection do with what comes (RFC 9113, section 4).

Who owns the socket gives what comes to `receive` and writes what `sender.output` holds. Nothing here waits, reads a
clock or raises: a peer's fault becomes RST_STREAM or GOAWAY, and `failed` tells that the connection is over.

The path of almost every frame (a DATA or HEADERS frame that is whole) is short on purpose: one unpack, one look-up of
its stream, one call. A DATA frame need not be whole: what came of it is passed on.
"""

from collections.abc import Callable

from tandemmq.common.grpc_transport.http2 import frames
from tandemmq.common.grpc_transport.http2.bodies import Bodies, padding_length
from tandemmq.common.grpc_transport.http2.control import LARGEST_SETTINGS, FrameHandler
from tandemmq.common.grpc_transport.http2.errors import ConnectionFault, ErrorCode
from tandemmq.common.grpc_transport.http2.frames import CONTINUATION, DATA, HEADERS, SETTINGS, unpack_header
from tandemmq.common.grpc_transport.http2.headers import BLOCK_FACTOR
from tandemmq.common.grpc_transport.http2.limits import Limits
from tandemmq.common.grpc_transport.http2.stream import Stream

_WHOLE = {frames.PRIORITY: 5, frames.RST_STREAM: 4, frames.PING: 8, frames.WINDOW_UPDATE: 4}
"""Lengths of the frames that have only one."""
_MOST_FRAMES_OF_A_BLOCK = 128
_AT_A_TIME = 4
"""Frames between two looks at the clock."""


class FrameReader(Bodies):
    """Cuts frames out of bytes and header blocks out of frames; its bases take bodies and control frames."""

    def __init__(self, limits: Limits, finished: Callable[[Stream], None], now: float) -> None:
        """See ControlFrames."""
        super().__init__(limits, finished, now)
        self._rest = b""
        """The beginning of a frame that is not whole, or what a slice has left; of that nothing is copied."""
        self._begins = 0
        """Where in `_rest` what is not read yet begins."""
        self._largest_block = BLOCK_FACTOR * limits.max_header_list_size
        self._block: list[bytes] = []
        """Parts of a header block that goes on in CONTINUATION frames."""
        self._block_of = (0, False)
        """Its stream, and whether that ends with it."""
        self.enough: Callable[[], bool] = _never
        """Asked after every few frames: whether to stop reading for now."""
        self.behind = False
        """It said so: `receive` must be called again, with no bytes if there are none."""
        self._expected: int | None = SETTINGS
        """The only type that the next frame may have: SETTINGS first, CONTINUATION in a header block."""
        self._frame_handlers: list[FrameHandler] = [self._on_unknown] * 256
        self._frame_handlers[HEADERS] = self._on_headers
        self._frame_handlers[CONTINUATION] = self._on_continuation
        for kind, handler in self.control_handlers.items():
            self._frame_handlers[kind] = handler

    # -- bytes in -----------------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Bytes came from the peer."""
        if self.failed is not None:
            return
        self.heard = self.receiving = True
        self.behind = False
        try:
            self._consume(data)
        except ConnectionFault as fault:
            self.fail(fault.code, fault.reason)
        finally:
            self.receiving = False

    def _consume(self, data: bytes) -> None:
        position = 0
        if self._rest:
            data, position = self._with_rest(data)
        if not self.prefaced:
            position = self._preface(data)
        elif self.data_left:
            position = self.on_more_data(data, 0, len(data))
        end = len(data)
        handlers, largest, read = self._frame_handlers, self.limits.max_frame_size, 0
        while end - position >= 9:
            word, flags, stream_id = unpack_header(data, position)
            kind = word & 0xFF
            begin = position + 9
            stop = begin + (word >> 8)
            stream_id &= 0x7FFF_FFFF
            if word >> 8 > largest:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a frame that is larger than we said we take")
            if self._expected is not None:
                self._check_expected(kind, flags)
            if kind == DATA:
                if stop > end:
                    if flags & frames.PADDED and begin == end:
                        break
                    self.on_part_of_data(data, begin, stop, end, flags, stream_id)
                    return
                self.on_data(data, begin, stop, flags, stream_id)
            elif stop > end and self._must_wait(kind, stop - begin):
                break
            else:
                handlers[kind](data, begin, stop, flags, stream_id)
                if stop > end:
                    self.skip(stop - end)
                    return
            position = stop
            self.progressed = True
            read += 1
            if not read % _AT_A_TIME and self.enough():
                self.behind = True
                break
        if position < end:
            self._rest, self._begins = (data, position) if self.behind else (data[position:], 0)

    def _with_rest(self, data: bytes) -> tuple[bytes, int]:
        """What was not read, with what has come since; and where it begins."""
        rest, begins = self._rest, self._begins
        self._rest, self._begins = b"", 0
        return (rest[begins:] + data, 0) if data else (rest, begins)

    @property
    def unread(self) -> int:
        """Bytes of a frame or header block that is not complete."""
        return len(self._rest) - self._begins + sum(map(len, self._block))

    @property
    def incomplete(self) -> bool:
        """A frame or a header block has begun and not ended; DATA does not count, it is taken as it comes."""
        return bool(self._rest or self._block)

    def _preface(self, data: bytes) -> int:
        """The position behind the preface, or behind what came of it."""
        preface = frames.PREFACE
        if data[: len(preface)] != preface[: len(data)]:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "this port speaks HTTP/2; the client does not")
        if len(data) < len(preface):
            self._rest = data
            return len(data)
        self.prefaced = True
        return len(preface)

    def _check_expected(self, kind: int, flags: int) -> None:
        if kind != self._expected or (kind == SETTINGS and flags & frames.ACK):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "another frame type was due: SETTINGS or CONTINUATION")
        if kind == SETTINGS:
            self._expected = None

    def _must_wait(self, kind: int, length: int) -> bool:
        """Whether an incomplete frame must be whole before it is read: if what it should be is short enough.

        The others are of a wrong size, or nothing in them matters: they are read, or refused, by their first bytes.
        """
        if kind in (HEADERS, CONTINUATION):
            return length <= self._largest_block
        return length <= LARGEST_SETTINGS if kind == SETTINGS else length == _WHOLE.get(kind)

    def _on_unknown(self, _data: bytes, _begin: int, _stop: int, _flags: int, _stream_id: int) -> None:
        """Frames of unknown types are ignored (RFC 9113, section 5.5)."""
        self.floods.overhead()

    # -- header blocks -------------------------------------------------------------------------------------------------

    def _on_headers(self, data: bytes, begin: int, stop: int, flags: int, stream_id: int) -> None:
        if stop - begin > self._largest_block:
            raise _block_too_large()
        if flags & (frames.PADDED | frames.PRIORITIZED):
            begin, stop = _unwrapped(data, begin, stop, flags, stream_id)
        if not stream_id & 1:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "HEADERS on a stream that a client cannot open")
        if flags & frames.END_HEADERS:
            self.on_block(data[begin:stop], stream_id, bool(flags & frames.END_STREAM))
            return
        self._expected = CONTINUATION
        self.block_since = self.last_tick
        self._block = [data[begin:stop]]
        self._check_block()
        self._block_of = stream_id, bool(flags & frames.END_STREAM)

    def _on_continuation(self, data: bytes, begin: int, stop: int, flags: int, stream_id: int) -> None:
        expected_id, ended = self._block_of
        if self._expected != CONTINUATION or stream_id != expected_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "CONTINUATION without the header block that it continues")
        if begin == stop or (stop - begin < 64 and not flags & frames.END_HEADERS):
            self.floods.overhead()
        if stop - begin > self._largest_block:
            raise _block_too_large()
        self._block.append(data[begin:stop])
        self._check_block()
        if flags & frames.END_HEADERS:
            block = b"".join(self._block)
            self._expected, self._block, self.block_since = None, [], None
            self.on_block(block, stream_id, ended)

    def _check_block(self) -> None:
        """A block that grows by CONTINUATION is refused by its size or by its number of frames (CVE-2024-27316)."""
        if sum(map(len, self._block)) > self._largest_block or len(self._block) > _MOST_FRAMES_OF_A_BLOCK:
            raise _block_too_large()

    def on_block(self, block: bytes, stream_id: int, ended: bool) -> None:
        """A whole header block came on an odd stream; `ended`: the stream's other side says nothing more."""
        raise NotImplementedError


def _never() -> bool:
    return False


def _block_too_large() -> ConnectionFault:
    return ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "a header block far over the limit")


def _unwrapped(data: bytes, begin: int, stop: int, flags: int, stream_id: int) -> tuple[int, int]:
    """Where the block of a HEADERS frame lies, without padding and priority. Raises ConnectionFault."""
    padding = 0
    if flags & frames.PADDED:
        padding = padding_length(data, begin, stop)
        begin += 1
    if flags & frames.PRIORITIZED:
        if stop - begin < 5:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "HEADERS too short for the priority it announces")
        if int.from_bytes(data[begin : begin + 4], "big") & 0x7FFF_FFFF == stream_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a stream that depends on itself")
        begin += 5
    if begin + padding > stop:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "padding that is longer than its frame")
    return begin, stop - padding
