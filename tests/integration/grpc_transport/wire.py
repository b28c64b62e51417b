"""A caller of HTTP/2 frames by hand: for what no gRPC library would do, or would hide."""

import asyncio
import struct
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from hpack import Decoder

from tests.grpc_probe import SERVICE

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
CANCEL = 8
INITIAL_WINDOW_SIZE = 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FRAME_SIZE = 16_384
WIDE = 1 << 30
"""A window that no test fills."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame."""
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


def header_block(path: str, *more: tuple[bytes, bytes]) -> bytes:
    """A gRPC request's header list as literals that no table remembers."""
    fields: list[tuple[bytes, bytes]] = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", path.encode()),
        (b":authority", b"localhost"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
        *more,
    ]
    return b"".join([b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in fields])


def message(body: bytes, compressed: int = 0) -> bytes:
    """A gRPC message with its prefix."""
    return struct.pack(">BI", compressed, len(body)) + body


def settings(*pairs: tuple[int, int]) -> bytes:
    """A SETTINGS frame."""
    return frame(SETTINGS, 0, 0, b"".join([struct.pack(">HI", *pair) for pair in pairs]))


@dataclass
class Answer:
    """What came on one stream."""

    head: list[tuple[str, str]] = field(default_factory=list)
    trailers: list[tuple[str, str]] = field(default_factory=list)
    data: bytes = b""
    ended: bool = False
    reset: int | None = None

    @property
    def status(self) -> str | None:
        """grpc-status of the trailers, or of an answer without messages."""
        return dict(self.trailers or self.head).get("grpc-status")

    @property
    def messages(self) -> list[bytes]:
        """The messages that came whole, as they were on the wire (compressed ones stay so)."""
        found, at = [], 0
        while at + 5 <= len(self.data):
            length = int.from_bytes(self.data[at + 1 : at + 5], "big")
            found.append(self.data[at + 5 : at + 5 + length])
            at += 5 + length
        return found


class Wire:
    """A connection: frames out, answers in. Reads all the time; acknowledges SETTINGS and PING, opens no window."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.answers: dict[int, Answer] = {}
        self.frames: list[tuple[int, int, int, bytes]] = []
        """All frames that came but DATA and HEADERS: kind, flags, stream, payload."""
        self.closed = False
        """The server closed the connection."""
        self.changed = asyncio.Condition()
        self._decoder = Decoder()
        self._last_stream = -1

    def write(self, *frames: bytes) -> None:
        """Sends frames."""
        self.writer.write(b"".join(frames))

    def call(self, name: str, *messages: bytes, ended: bool = True, more: Iterable[tuple[bytes, bytes]] = ()) -> int:
        """Begins a call of the probe (or of another path) and gives its stream."""
        self._last_stream += 2
        stream = self._last_stream
        self.answers[stream] = Answer()
        path = name if name.startswith("/") else f"/{SERVICE}/{name}"
        self.write(frame(HEADERS, END_HEADERS, stream, header_block(path, *more)))
        if messages or ended:
            self.send(stream, b"".join([message(each) for each in messages]), ended)
        return stream

    def send(self, stream: int, body: bytes, ended: bool) -> None:
        """Sends bytes of a request's body in frames that any server takes."""
        parts = [body[at : at + FRAME_SIZE] for at in range(0, len(body), FRAME_SIZE)] or [b""]
        for part in parts:
            self.write(frame(DATA, END_STREAM if ended and part is parts[-1] else 0, stream, part))

    def cancel(self, stream: int) -> None:
        """Ends a call as a caller that has lost interest does."""
        self.write(frame(RST_STREAM, 0, stream, struct.pack(">I", CANCEL)))

    async def wait_for(self, condition: Any) -> None:
        """Waits until a condition on answers and frames has become true."""
        async with asyncio.timeout(60), self.changed:
            await self.changed.wait_for(condition)

    async def answer(self, stream: int) -> Answer:
        """The whole answer of a call."""
        answer = self.answers[stream]
        await self.wait_for(lambda: answer.ended or answer.reset is not None or self.closed)
        return answer

    def abort(self) -> None:
        """Drops the connection as a killed process does."""
        self.writer.transport.abort()

    async def read(self) -> None:
        """Takes in frames until the connection ends."""
        try:
            while True:
                head = await self.reader.readexactly(9)
                length, (kind, flags, stream) = int.from_bytes(head[:3], "big"), struct.unpack(">BBI", head[3:])
                payload = await self.reader.readexactly(length)
                async with self.changed:
                    self._take(kind, flags, stream, payload)
                    self.changed.notify_all()
        except (asyncio.IncompleteReadError, ConnectionError):
            async with self.changed:
                self.closed = True
                self.changed.notify_all()

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        answer = self.answers.setdefault(stream, Answer())
        if kind == DATA:
            answer.data += payload
        elif kind == HEADERS:
            fields = [(str(name), str(value)) for name, value in self._decoder.decode(payload)]
            if answer.head:
                answer.trailers = fields
            else:
                answer.head = fields
        else:
            self.frames.append((kind, flags, stream, payload))
            if kind == SETTINGS and not flags & ACK:
                self.write(frame(SETTINGS, ACK, 0))
            if kind == PING and not flags & ACK:
                self.write(frame(PING, ACK, 0, payload))
            if kind == RST_STREAM:
                answer.reset = int.from_bytes(payload, "big")
        if kind in (DATA, HEADERS) and flags & END_STREAM:
            answer.ended = True

    def arrived(self, kind: int) -> list[tuple[int, int, int, bytes]]:
        """Frames of a kind that came."""
        return [each for each in self.frames if each[0] == kind]


@asynccontextmanager
async def wired(target: str, *pairs: tuple[int, int], window: int = WIDE, **options: Any) -> AsyncIterator[Wire]:
    """A connection with SETTINGS of `pairs` and a receive window for all its streams; `options` as TLS ones."""
    host, _, port = target.rpartition(":")
    reader, writer = await asyncio.open_connection(host.strip("[]"), int(port), **options)
    wire = Wire(reader, writer)
    wire.write(PREFACE, settings(*pairs))
    if window:
        wire.write(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", window)))
    reading = asyncio.ensure_future(wire.read())
    try:
        yield wire
    finally:
        wire.abort()
        await reading
