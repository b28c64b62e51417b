"""FrameReader: bytes in, frames out: what both ends of an HTTP/2 connection do with what comes (RFC 9113, section 4).

The path of almost every frame (a DATA or HEADERS frame that is whole) is short on purpose: one unpack, one look-up of
its stream, one call. A DATA frame need not be whole: what came of it is passed on.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from tandemmq.common.grpc_transport.http2 import frames
from tandemmq.common.grpc_transport.http2.errors import ConnectionFault, ErrorCode
from tandemmq.common.grpc_transport.http2.floods import Floods
from tandemmq.common.grpc_transport.http2.frames import CONTINUATION, DATA, HEADERS, SETTINGS, unpack_header
from tandemmq.common.grpc_transport.http2.headers import BLOCK_FACTOR
from tandemmq.common.grpc_transport.http2.limits import Limits
from tandemmq.common.grpc_transport.http2.stream import Stream

FrameHandler = Callable[[bytes, int, int, int, int], None]
"""Takes buffer, begin and stop of the payload, flags, stream id. Raises ConnectionFault."""

LARGEST_SETTINGS = 64 * 6
"""Bytes; six values are defined, and unknown ones are allowed."""
_WHOLE = {frames.PRIORITY: 5, frames.RST_STREAM: 4, frames.PING: 8, frames.WINDOW_UPDATE: 4}
"""Lengths of the frames that have only one."""
_MOST_FRAMES_OF_A_BLOCK = 128
_AT_A_TIME = 4
"""Frames between two looks at the clock."""


class FrameTaker(Protocol):
    """What a reader tells of; all three raise ConnectionFault."""

    def block(self, block: bytes, stream_id: int, ended: bool) -> None:
        """A whole header block came; `ended`: the stream's other side says nothing more."""
        ...

    def data_begins(self, stream_id: int, length: int) -> Stream | None:
        """A DATA frame of `length` bytes, padding included: the stream that takes it; None when it is to be ignored."""
        ...

    def deliver(self, stream: Stream, data: bytes, begin: int, stop: int, ended: bool, whole: bool = True) -> None:
        """Bytes of a body: `data[begin:stop]`. `whole`: they end a frame; `ended`: and the body."""
        ...


class ShortCut(Protocol):
    """Takes whole calls off the front of what came."""

    @property
    def unread(self) -> bytes:
        """Where the last `take` has set `behind`: frames before the position that it gave, to be read again."""
        ...

    def take(self, data: bytes, position: int) -> int:
        """Serve what it knows of `data` from a position on, where a frame begins; gives the position after.

        It asks `enough` as often as the reader does, sets `behind`, and tells that frames came to their ends.
        """
        ...


class FrameReader:
    """Cuts frames out of bytes, and joins header blocks, of one connection."""

    __slots__ = ("__dict__", "_progressed", "behind")  # what the compiled core reads and writes where it lies

    def __init__(
        self,
        limits: Limits,
        floods: Floods,
        taker: FrameTaker,
        handlers: Mapping[int, FrameHandler],
        now: float,
        *,
        prefaced: bool = False,
        largest_goaway: int | None = None,
    ) -> None:
        """`handlers`: of all types but DATA, HEADERS and CONTINUATION. `now`: see `too_slow`. `prefaced`: none comes.

        `largest_goaway`: a GOAWAY is read to its end, and may have so many bytes; None: its first bytes are enough.
        """
        self._limits = limits
        self._floods = floods
        self._taker = taker
        self._largest_goaway = largest_goaway
        self.prefaced = prefaced
        self.enough: Callable[[], bool] = _never
        """Asked after every few frames: whether to stop reading for now."""
        self.behind = False
        """It said so: `read` must be called again, with no bytes if there are none."""
        self._rest = b""
        """The beginning of a frame that is not whole, or what a slice has left; of that nothing is copied."""
        self._begins = 0
        """Where in `_rest` what is not read yet begins."""
        self._data_left = 0
        """Bytes still to come of a DATA frame, padding included."""
        self._padding_left = 0
        self._data_of: Stream | None = None
        self._data_ends = False
        self._largest_block = BLOCK_FACTOR * limits.max_header_list_size
        self._block: list[bytes] = []
        """Parts of a header block that goes on in CONTINUATION frames."""
        self._block_of = (0, False)
        """Its stream, and whether that ends with it."""
        self._now = now
        self._block_since: float | None = None
        """When the header block that is not complete began."""
        self._incomplete_since: float | None = None
        self._progressed = False
        """A frame came to its end since the last `too_slow`."""
        self.lane: ShortCut | None = None
        """Asked before each frame, if there is one."""
        self._expected: int | None = SETTINGS
        """The only type that the next frame may have: SETTINGS first, CONTINUATION in a header block."""
        self._handlers: list[FrameHandler] = [self._on_unknown] * 256
        self._handlers[HEADERS] = self._on_headers
        self._handlers[CONTINUATION] = self._on_continuation
        for kind, handler in handlers.items():
            self._handlers[kind] = handler

    # -- bytes in -----------------------------------------------------------------------------------------------------

    @property
    def between_frames(self) -> bool:
        """Whether what comes next is the beginning of a frame, which the lane may take."""
        whole = self.prefaced and not self._rest and not self._data_left and not self.behind
        return whole and self._expected is None and self.lane is not None

    def read(self, data: bytes, position: int = 0) -> None:
        """Bytes came from the peer. Raises ConnectionFault.

        `position`: the lane has read those before it.
        """
        self.behind = False
        if self._rest or self._data_left or not self.prefaced:
            data, position = self._resumed(data)
        end = len(data)
        handlers, largest, read = self._handlers, self._limits.max_frame_size, 0
        lane = self.lane
        while end - position >= 9:
            if lane is not None and self._expected is None:
                position = lane.take(data, position)
                if self.behind or end - position < 9:
                    break
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
                    self._part_of_data(data, begin, stop, end, flags, stream_id)
                    return
                self._data(data, begin, stop, flags, stream_id)
            elif stop > end and self._must_wait(kind, stop - begin):
                break
            else:
                handlers[kind](data, begin, stop, flags, stream_id)
                if stop > end:
                    self._data_left, self._padding_left, self._data_of = (
                        stop - end,
                        0,
                        None,
                    )  # will come, and is nothing
                    return
            position = stop
            self._progressed = True
            read += 1
            if not read % _AT_A_TIME and self.enough():
                self.behind = True
                break
        if position < end or self.behind:
            self.keep(data, position)

    def keep(self, data: bytes, position: int) -> None:
        """Keep what is not read, from a position on: the beginning of a frame, or what there was no time for."""
        again = self.lane.unread if self.behind and self.lane is not None else b""
        if again or not self.behind:
            self._rest, self._begins = again + data[position:], 0
        elif position < len(data):
            self._rest, self._begins = data, position

    def _resumed(self, data: bytes) -> tuple[bytes, int]:
        """Bytes that came, with what was not read before; and where the first frame begins that is still to be read."""
        position = 0
        if self._rest:
            data, position = self._with_rest(data)
        if not self.prefaced:
            return data, self._preface(data)
        return data, self._more_data(data, 0, len(data)) if self._data_left else position

    def _with_rest(self, data: bytes) -> tuple[bytes, int]:
        """What was not read, with what has come since; and where it begins."""
        rest, begins = self._rest, self._begins
        self._rest, self._begins = b"", 0
        return (rest[begins:] + data, 0) if data else (rest, begins)

    @property
    def unread(self) -> int:
        """Bytes of a frame or header block that is not complete."""
        return len(self._rest) - self._begins + sum(map(len, self._block))

    def too_slow(self, now: float) -> bool:
        """Whether one frame, or one header block, is still not whole after the time it had; `now`: seconds.

        DATA does not count: it is taken as it comes.
        """
        self._now = now
        if not self._rest and not self._block:
            self._incomplete_since = None
        elif self._progressed or self._incomplete_since is None:
            self._incomplete_since = now
        self._progressed = False
        begun = [since for since in (self._incomplete_since, self._block_since) if since is not None]
        return bool(begun) and now - min(begun) > self._limits.frame_seconds

    def _preface(self, data: bytes) -> int:
        """The position after the preface, or after what came of it."""
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
        if kind == frames.GOAWAY and self._largest_goaway is not None:
            if length > self._largest_goaway:
                raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "a GOAWAY with a book in it")
            return True
        return length <= LARGEST_SETTINGS if kind == SETTINGS else length == _WHOLE.get(kind)

    def _on_unknown(self, _data: bytes, _begin: int, _stop: int, _flags: int, _stream_id: int) -> None:
        """Frames of unknown types are ignored (RFC 9113, section 5.5)."""
        self._floods.overhead()

    # -- bodies -------------------------------------------------------------------------------------------------------

    def _data(self, data: bytes, begin: int, stop: int, flags: int, stream_id: int) -> None:
        """A DATA frame that is whole: its payload is `data[begin:stop]`."""
        length = stop - begin
        if flags & frames.PADDED:
            padding = _padding_length(data, begin, stop)
            begin += 1
            stop -= padding
        stream = self._taker.data_begins(stream_id, length)
        if stream is None:
            return
        ended = bool(flags & frames.END_STREAM)
        if begin == stop and not ended:
            self._floods.overhead()
        self._taker.deliver(stream, data, begin, stop, ended)

    def _part_of_data(self, data: bytes, begin: int, stop: int, end: int, flags: int, stream_id: int) -> None:
        """The beginning of a DATA frame: `data[begin:end]` of what will be `stop - begin` bytes."""
        length = stop - begin
        self._padding_left = 0
        if flags & frames.PADDED:
            self._padding_left = _padding_length(data, begin, stop)
            begin += 1
        self._data_of = self._taker.data_begins(stream_id, length)
        self._data_ends = bool(flags & frames.END_STREAM)
        self._data_left = stop - begin
        if self._data_of is not None and self._data_left == self._padding_left and not self._data_ends:
            self._floods.overhead()
        self._more_data(data, begin, end)

    def _more_data(self, data: bytes, position: int, end: int) -> int:
        """More of the DATA frame that goes on; gives the position after it."""
        next_frame = min(end, position + self._data_left)
        stop = min(next_frame, position + self._data_left - self._padding_left)
        self._data_left -= next_frame - position
        stream = self._data_of
        whole = not self._data_left
        if whole:
            self._data_of = None
        if stream is not None and not stream.closed and (stop > position or whole):
            self._taker.deliver(stream, data, position, max(stop, position), self._data_ends and whole, whole)
        return next_frame

    def replaced(self, before: object, stream: Stream) -> None:
        """Another one stands for a stream, in the midst of whose DATA frame we may be."""
        if self._data_of is before:
            self._data_of = stream

    # -- header blocks -------------------------------------------------------------------------------------------------

    def _on_headers(self, data: bytes, begin: int, stop: int, flags: int, stream_id: int) -> None:
        if stop - begin > self._largest_block:
            raise _block_too_large()
        if flags & (frames.PADDED | frames.PRIORITIZED):
            begin, stop = _unwrapped(data, begin, stop, flags, stream_id)
        if not stream_id & 1:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "HEADERS on a stream that a client cannot open")
        if flags & frames.END_HEADERS:
            self._taker.block(data[begin:stop], stream_id, bool(flags & frames.END_STREAM))
            return
        self._expected = CONTINUATION
        self._block_since = self._now
        self._block = [data[begin:stop]]
        self._check_block()
        self._block_of = stream_id, bool(flags & frames.END_STREAM)

    def _on_continuation(self, data: bytes, begin: int, stop: int, flags: int, stream_id: int) -> None:
        expected_id, ended = self._block_of
        if self._expected != CONTINUATION or stream_id != expected_id:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "CONTINUATION without the header block that it continues")
        if begin == stop or (stop - begin < 64 and not flags & frames.END_HEADERS):
            self._floods.overhead()
        if stop - begin > self._largest_block:
            raise _block_too_large()
        self._block.append(data[begin:stop])
        self._check_block()
        if flags & frames.END_HEADERS:
            block = b"".join(self._block)
            self._expected, self._block, self._block_since = None, [], None
            self._taker.block(block, stream_id, ended)

    def _check_block(self) -> None:
        """A block that grows by CONTINUATION is refused by its size or by its number of frames (CVE-2024-27316)."""
        if sum(map(len, self._block)) > self._largest_block or len(self._block) > _MOST_FRAMES_OF_A_BLOCK:
            raise _block_too_large()


def _never() -> bool:
    return False


def _block_too_large() -> ConnectionFault:
    return ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "a header block far over the limit")


def _unwrapped(data: bytes, begin: int, stop: int, flags: int, stream_id: int) -> tuple[int, int]:
    """Where the block of a HEADERS frame lies, without padding and priority. Raises ConnectionFault."""
    padding = 0
    if flags & frames.PADDED:
        padding = _padding_length(data, begin, stop)
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


def _padding_length(data: bytes, begin: int, stop: int) -> int:
    """The length of a frame's padding, from its first byte. Raises ConnectionFault."""
    if begin == stop:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a padded frame without the length of its padding")
    padding = data[begin]
    if begin + 1 + padding > stop:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "padding that is longer than its frame")
    return padding
