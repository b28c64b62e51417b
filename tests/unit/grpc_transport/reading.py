"""What a server wrote: taken apart, checked for being legal HTTP/2 of a server, put together as answers to calls."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes

from hpack import Decoder

from tests.unit.grpc_transport.wire import (
    ACK,
    END_HEADERS,
    END_STREAM,
    HEADER_SIZE,
    PADDED,
    WINDOW_MAX,
    Code,
    Fields,
    Frame,
    Type,
)

FIXED_SIZES: dict[int, int] = {Type.PRIORITY: 5, Type.RST_STREAM: 4, Type.PING: 8, Type.WINDOW_UPDATE: 4}
FLAGS: dict[int, int] = {
    Type.DATA: END_STREAM | PADDED,
    Type.HEADERS: END_STREAM | END_HEADERS | PADDED,
    Type.SETTINGS: ACK,
    Type.PING: ACK,
    Type.CONTINUATION: END_HEADERS,
}
"""The flags that a server has reason to set."""

ON_STREAMS = {Type.DATA, Type.HEADERS, Type.RST_STREAM, Type.CONTINUATION}
ON_CONNECTION = {Type.SETTINGS, Type.PING, Type.GOAWAY}
NEVER_FROM_SERVERS = {Type.PRIORITY, Type.PUSH_PROMISE}


class IllegalOutput(AssertionError):
    """A server wrote what RFC 9113 does not allow it to write."""


def split(written: bytes) -> tuple[list[Frame], bytes]:
    """The whole frames at the beginning, and what is left."""
    found, at, size = [], 0, len(written)
    while size - at >= HEADER_SIZE:
        stop = at + HEADER_SIZE + int.from_bytes(written[at : at + 3])
        if stop > size:
            break
        stream = int.from_bytes(written[at + 5 : at + 9])
        found.append(Frame(written[at + 3], written[at + 4], stream, written[at + HEADER_SIZE : stop]))
        at = stop
    return found, written[at:]


def frames(written: bytes) -> list[Frame]:
    """All frames; the last one must be whole."""
    found, rest = split(written)
    if rest:
        raise IllegalOutput(f"output ends inside a frame: {rest[:40].hex()}")
    return found


@dataclass
class Answer:
    """What came back on one stream."""

    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    trailers: list[tuple[bytes, bytes]] | None = None
    ended: bool = False
    reset: int | None = None

    def value(self, name: bytes) -> bytes | None:
        """A field of the trailers, or of the headers if the answer is trailers only."""
        fields = self.headers if self.trailers is None else self.trailers
        return next((value for key, value in fields if key == name), None)

    @property
    def http_status(self) -> bytes:
        return dict(self.headers)[b":status"]

    @property
    def status(self) -> int | None:
        """grpc-status, if it came."""
        found = self.value(b"grpc-status")
        return None if found is None or not self.ended else int(found)

    @property
    def details(self) -> str:
        return unquote_to_bytes(self.value(b"grpc-message") or b"").decode()

    @property
    def messages(self) -> list[bytes]:
        """The whole messages of the body, uncompressed ones only."""
        return [body for _flag, body in split_messages(self.body)]


def split_messages(body: bytes) -> Iterator[tuple[int, bytes]]:
    """Flag and content of each whole length-prefixed message."""
    at = 0
    while len(body) - at >= 5:
        stop = at + 5 + int.from_bytes(body[at + 1 : at + 5])
        if stop > len(body):
            return
        yield body[at], body[at + 5 : stop]
        at = stop


class Decode:
    """Header blocks of one connection."""

    def __init__(self) -> None:
        self._decoder = Decoder()

    def __call__(self, block: bytes) -> Fields:
        return [(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)]


class Reading:
    """Reads a server's frames in order; raises IllegalOutput as soon as one breaks a rule."""

    def __init__(self, frame_size: int = 16_384, decode: Callable[[bytes], Fields] | None = None) -> None:
        """``decode`` reads header blocks; by default with a dynamic table, as a client's decoder does."""
        self.frame_size = frame_size
        self._decode = decode or Decode()
        self.answers: dict[int, Answer] = {}
        self.settings: dict[int, int] | None = None
        self.settings_acks = 0
        self.pongs: list[bytes] = []
        self.pings: list[bytes] = []
        self.updates: dict[int, int] = {}
        self.goaways: list[tuple[int, int, bytes]] = []
        self._block: tuple[int, bool, bytes] | None = None

    def read(self, found: list[Frame]) -> None:
        for one in found:
            try:
                self._one(one)
            except IllegalOutput as error:
                raise IllegalOutput(f"{error}: {one!r}") from None

    def answer(self, stream: int) -> Answer:
        return self.answers[stream]

    @property
    def codes(self) -> list[int]:
        """The codes of all GOAWAYs so far."""
        return [code for _last, code, _debug in self.goaways]

    def _one(self, one: Frame) -> None:
        check_layout(one, self.frame_size)
        must(self.settings is not None or one.type == Type.SETTINGS, "SETTINGS must come first")
        must((self._block is None) == (one.type != Type.CONTINUATION), "CONTINUATION follows its HEADERS at once")
        if one.type in (Type.HEADERS, Type.CONTINUATION):
            self._header_part(one)
        elif one.type == Type.DATA:
            answer = self._open(one.stream)
            must(bool(answer.headers), "DATA before HEADERS")
            answer.body += without_padding(one)
            answer.ended = bool(one.flags & END_STREAM)
        elif one.type == Type.RST_STREAM:
            answer = self.answers.setdefault(one.stream, Answer())
            must(answer.reset is None, "reset twice")
            answer.reset = int.from_bytes(one.payload)
        else:
            self._of_connection(one)

    def _of_connection(self, one: Frame) -> None:
        if one.type == Type.SETTINGS and one.flags & ACK:
            self.settings_acks += 1
        elif one.type == Type.SETTINGS:
            pairs = range(0, len(one.payload), 6)
            must(self.settings is None, "a second SETTINGS")
            self.settings = {
                int.from_bytes(one.payload[at : at + 2]): int.from_bytes(one.payload[at + 2 : at + 6]) for at in pairs
            }
        elif one.type == Type.PING:
            (self.pongs if one.flags & ACK else self.pings).append(one.payload)
        elif one.type == Type.WINDOW_UPDATE:
            self.updates[one.stream] = self.updates.get(one.stream, 0) + int.from_bytes(one.payload)
        elif one.type == Type.GOAWAY:
            last, code = int.from_bytes(one.payload[:4]), int.from_bytes(one.payload[4:8])
            must(not self.goaways or last <= self.goaways[-1][0], "a GOAWAY takes a promise back")
            self.goaways.append((last, code, one.payload[8:]))

    def _open(self, stream: int) -> Answer:
        must(stream % 2 == 1, "an answer on a stream that no client opened")
        answer = self.answers.setdefault(stream, Answer())
        must(not answer.ended, "something after END_STREAM")
        must(answer.reset is None, "something after RST_STREAM")
        return answer

    def _header_part(self, one: Frame) -> None:
        if one.type == Type.HEADERS:
            self._open(one.stream)
            stream, ended, block = one.stream, bool(one.flags & END_STREAM), without_padding(one)
        else:
            assert self._block is not None
            stream, ended, block = self._block
            must(one.stream == stream, "CONTINUATION of another stream")
            block += one.payload
        if not one.flags & END_HEADERS:
            self._block = stream, ended, block
            return
        self._block = None
        self._fields(self.answers[stream], block, ended)

    def _fields(self, answer: Answer, block: bytes, ended: bool) -> None:
        fields = list(self._decode(block))
        pseudo = [name for name, _value in fields if name.startswith(b":")]
        must(all(name == name.lower() for name, _value in fields), "a name in upper case")
        if answer.headers:
            must(ended, "trailers without END_STREAM")
            must(not pseudo, "a pseudo-header in trailers")
            answer.trailers = fields
        else:
            must(pseudo == [b":status"] and fields[0][0] == b":status", "not one :status at the beginning")
            answer.headers = fields
        answer.ended = ended


def without_padding(one: Frame) -> bytes:
    if not one.flags & PADDED:
        return one.payload
    must(bool(one.payload) and one.payload[0] < len(one.payload), "too much padding")
    return one.payload[1 : len(one.payload) - one.payload[0]]


def check_layout(one: Frame, frame_size: int) -> None:
    """The rules that a frame can break alone."""
    size = len(one.payload)
    must(one.type < len(Type) and one.type not in NEVER_FROM_SERVERS, "no frame that a server sends")
    must(size <= frame_size, "larger than the client allows")
    must(size == FIXED_SIZES.get(one.type, size), "wrong size")
    must(not one.flags & ~FLAGS.get(one.type, 0), "unknown flag")
    must(one.stream <= WINDOW_MAX, "reserved bit set")
    must(one.type not in ON_STREAMS or one.stream != 0, "stream missing")
    must(one.type not in ON_CONNECTION or one.stream == 0, "not a matter of a stream")
    if one.type == Type.SETTINGS:
        must(size % 6 == 0 and not (size and one.flags & ACK), "wrong size")
    elif one.type == Type.GOAWAY:
        must(size >= 8 and int.from_bytes(one.payload[4:8]) < len(Code), "no legal GOAWAY")
    elif one.type == Type.RST_STREAM:
        must(int.from_bytes(one.payload) < len(Code), "no legal code")
    elif one.type == Type.WINDOW_UPDATE:
        must(0 < int.from_bytes(one.payload) <= WINDOW_MAX, "no legal increment")


def must(right: bool, otherwise: str) -> None:
    if not right:
        raise IllegalOutput(otherwise)


def read(written: bytes, frame_size: int = 16_384) -> Reading:
    """All of a server's output, checked."""
    reading = Reading(frame_size)
    reading.read(frames(written))
    return reading
