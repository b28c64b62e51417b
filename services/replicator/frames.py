"""RocketMQ's HA protocol as bytes: what is sent, and readers that are fed with what arrives. No I/O, no clock.

::

    REPORT    slave to master    offset: int64                                       8 bytes
    TRANSFER  master to slave    offset: int64, size: int32, `size` bytes of log     12 bytes and the body

Integers are big-endian and signed. A REPORT says "I have everything below this offset"; the first one of a connection
also asks for what comes from there on. A TRANSFER without a body is a heartbeat: its offset is that of the next body.
Bodies are stretches of the log, cut anywhere but never across two files.
"""

from struct import Struct
from typing import NamedTuple

from tandemmq.common.errors import Kind, TandemError

REPORT_SIZE = 8
HEADER_SIZE = 12
MAX_FRAME_SIZE = 4 << 20
"""The receive buffer of a RocketMQ slave: a larger frame would stall it for ever."""
MAX_BODY_SIZE = MAX_FRAME_SIZE - HEADER_SIZE
MAX_OFFSET = (1 << 63) - 1
_MANY = 256
"""Heartbeats that are compared at once."""

_REPORT = Struct(">q")
_HEADER = Struct(">qi")


class BadFrame(TandemError):
    """A peer sent what no frame can be; the connection is of no more use."""

    kind = Kind.DAMAGED
    remedy = "is the peer a RocketMQ or TandemMQ master on its HA port, with enableControllerMode=false?"


class BodyTooLarge(BadFrame):
    """The size in a TRANSFER header is beyond MAX_BODY_SIZE."""


class NegativeSize(BadFrame):
    """The size in a TRANSFER header is below 0."""


class BadOffset(BadFrame):
    """The offset in a TRANSFER header is below 0, or the body would end beyond the largest offset."""


def encode_report(offset: int) -> bytes:
    """A REPORT. Raises struct.error when `offset` is no int64."""
    return _REPORT.pack(offset)


def encode_header(offset: int, size: int) -> bytes:
    """The header of a TRANSFER with a body of `size` bytes that lies at `offset`; without one it is a heartbeat.

    Raises struct.error.
    """
    return _HEADER.pack(offset, size)


class ReportReader:
    """Reads a slave's reports. Like RocketMQ it takes the last complete one of each read; the earlier ones say less."""

    __slots__ = ("_rest", "received")

    def __init__(self) -> None:
        self._rest = b""
        self.received = 0
        """Complete reports so far, those that were passed over included."""

    def feed(self, data: bytes) -> int | None:
        """Takes what one read brought; gives the last report that is complete now, None if no new one is."""
        if self._rest:
            data = self._rest + data
        complete, partial = divmod(len(data), REPORT_SIZE)
        self._rest = data[-partial:] if partial else b""
        if not complete:
            return None
        self.received += complete
        value: int = _REPORT.unpack_from(data, (complete - 1) * REPORT_SIZE)[0]
        return value


class Heartbeat(NamedTuple):
    """A TRANSFER without a body."""

    offset: int
    """The master's next offset for this slave."""


class Body(NamedTuple):
    """A stretch of the log that has arrived: a whole body, or as much of it as one read brought."""

    offset: int
    """Of its first byte in the log."""
    position: int
    """Where that byte lies, in the caller's count (see `TransferReader.feed`)."""
    size: int


class TransferReader:
    """Reads a master's frames where they lie; a body is given piece by piece, as it arrives, and never copied."""

    __slots__ = ("_header", "frames", "missing", "next_offset")

    def __init__(self) -> None:
        self._header = b""
        """The beginning of a header that is not complete yet."""
        self.next_offset = 0
        """Of the next byte of the body that is being received."""
        self.missing = 0
        """Bytes of that body that have not arrived yet; 0 between frames."""
        self.frames = 0
        """Headers read so far."""

    @property
    def between_frames(self) -> bool:
        """Whether the last frame has arrived completely, and nothing of the next one."""
        return not self.missing and not self._header

    def feed(self, data: memoryview | bytes, position: int = 0) -> list[Heartbeat | Body]:
        """Takes what one read brought; gives what it meant, in order.

        `position` is where the first byte of `data` lies, in any count that the caller likes: a place in a file, a
        number of bytes received so far. Any number of heartbeats is legal; of equal ones in a row the first is given.

        Raises:
            BodyTooLarge, NegativeSize, BadOffset: and from then on the reader must not be fed any more.
        """
        events: list[Heartbeat | Body] = []
        at, end = 0, len(data)
        while at < end:
            if self.missing:
                size = min(self.missing, end - at)
                events.append(Body(self.next_offset, position + at, size))
                self.next_offset += size
                self.missing -= size
                at += size
                continue
            wanted = HEADER_SIZE - len(self._header)
            header = self._header + bytes(data[at : at + wanted])
            at += wanted
            if len(header) < HEADER_SIZE:
                self._header = header
                break
            self._header = b""
            self._begin(header)
            if not self.missing:
                events.append(Heartbeat(self.next_offset))
                at = self._skip_copies(header, data, at)
        return events

    def _skip_copies(self, heartbeat: bytes, data: memoryview | bytes, at: int) -> int:
        """Passes over repetitions of a heartbeat, which say nothing new; gives where they end.

        RocketMQ 5 sends them by the million while its flow control holds the log back.
        """
        for count in (_MANY, 1):
            block, size = heartbeat * count, HEADER_SIZE * count
            while data[at : at + size] == block:
                at += size
                self.frames += count
        return at

    def _begin(self, header: bytes) -> None:
        offset, size = _HEADER.unpack(header)
        if size < 0:
            raise NegativeSize(f"a frame of {size} bytes at offset {offset}")
        if size > MAX_BODY_SIZE:
            raise BodyTooLarge(f"a frame of {size} bytes at offset {offset}; the most is {MAX_BODY_SIZE}")
        if not 0 <= offset <= MAX_OFFSET - size:
            raise BadOffset(f"a frame of {size} bytes at offset {offset}")
        self.frames += 1
        self.next_offset, self.missing = offset, size
