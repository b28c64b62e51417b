"""Legal traffic by choice: calls of all kinds, their frames mixed, split, padded and reset, and what must come of them.

A Script is what one client does on one connection. `assembled` gives its bytes, the same for every server but for the
padding, which grpcio's server takes for data and refuses; `Expected` is what a call must get. Nothing here is ever
illegal: header blocks stay together, windows are kept, the dynamic table is used until the server's SETTINGS are
acknowledged and given up then.

Left out, as grpcio has no opinion worth following: a unary request without a message (it never answers) and with two
(it takes the first).
"""

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from hpack import Encoder
from hypothesis import strategies as st

from tests.grpc_probe import DETAILS, FAILURE_METADATA
from tests.unit.grpc_transport import wire
from tests.unit.grpc_transport.wire import Setting

BODY_MAX = 3000
CALLS_MAX = 7
STATUSES = {
    "CANCELLED": 1,
    "UNKNOWN": 2,
    "NOT_FOUND": 5,
    "RESOURCE_EXHAUSTED": 8,
    "INTERNAL": 13,
    "UNAUTHENTICATED": 16,
}


@dataclass(frozen=True)
class Expected:
    """What a call gets when nobody resets it; messages None: they are not compared."""

    messages: tuple[bytes, ...] | None
    status: int
    details: str | None = None
    trailers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True)
class Call:
    """One call, and how its bytes are divided into frames."""

    method: str
    bodies: tuple[bytes, ...]
    expected: Expected
    metadata: tuple[tuple[bytes, bytes], ...] = ()
    header_cuts: tuple[int, ...] = ()
    """Where the header block is divided into HEADERS and CONTINUATIONs; per cent of it."""
    sizes: tuple[int, ...] = ()
    """Sizes of the first DATA frames; the last one takes what is left."""
    paddings: tuple[int | None, ...] = ()
    """Padding of HEADERS, then of the DATA frames."""
    priority: bool = False
    zipped: bool = False
    """Messages are sent with gzip."""
    ends_alone: bool = False
    """END_STREAM on an empty DATA frame of its own."""
    reset_after: int | None = None
    """RST_STREAM after so many frames (a header block counts as one)."""

    @property
    def ends(self) -> bool:
        """Whether the request is sent to its end."""
        return self.reset_after is None or self.reset_after >= len(self.parts()) + 1

    def padding(self, at: int) -> int | None:
        return self.paddings[at] if at < len(self.paddings) else None

    def unpadded(self) -> "Call":
        """The same call for a server that knows no padding."""
        return replace(self, paddings=())

    def parts(self) -> list[tuple[bytes, bool, int | None]]:
        """Body, END_STREAM and padding of each DATA frame."""
        rest = b"".join(wire.message(body, zipped=self.zipped) for body in self.bodies)
        found: list[tuple[bytes, bool, int | None]] = []
        for size in self.sizes:
            if size < len(rest):
                found.append((rest[:size], False, self.padding(len(found) + 1)))
                rest = rest[size:]
        found.append((rest, not self.ends_alone, self.padding(len(found) + 1)))
        return [*found, (b"", True, None)] if self.ends_alone else found

    def frames(self, stream: int, encoder: Encoder) -> Iterator[bytes]:
        """Frame by frame; each is made when it is asked for, as header blocks depend on those before."""
        zipped = [(b"grpc-encoding", b"gzip")] if self.zipped else []
        fields = wire.request_fields(self.method, *zipped, *self.metadata)
        if self.reset_after == 0:
            yield self._headers(stream, encoder.encode(list(fields))) + wire.rst_stream(stream)
            return
        yield self._headers(stream, encoder.encode(list(fields)))
        for made, (body, ended, padding) in enumerate(self.parts(), 1):
            if made == self.reset_after:
                yield wire.rst_stream(stream)
                return
            yield wire.data(stream, body, end=ended, padding=padding)
        if self.reset_after is not None:
            yield wire.rst_stream(stream)

    def _headers(self, stream: int, block: bytes) -> bytes:
        cuts = sorted({len(block) * cut // 100 for cut in self.header_cuts})
        if cuts:
            return b"".join(wire.split_headers(stream, block, cuts))
        field = wire.priority_field(0, 200) if self.priority else None
        return wire.headers(stream, block, padding=self.padding(0), priority=field)


@dataclass(frozen=True)
class Script:
    """What a client does on one connection."""

    calls: tuple[Call, ...]
    order: tuple[int, ...]
    """Which call sends its next frame (or, above their number, which noise comes); numbers wrap around."""
    noise: tuple[bytes, ...]
    initial_window: int | None
    ack_at: int
    """Before which step our SETTINGS are acknowledged."""
    cuts: tuple[int, ...] = field(default=())
    """Where the bytes are divided into writes; per mille of them."""

    def hello(self) -> bytes:
        pairs = [] if self.initial_window is None else [(Setting.INITIAL_WINDOW_SIZE, self.initial_window)]
        return wire.hello([(Setting.ENABLE_PUSH, 0), *pairs])

    def assembled(self) -> list[bytes]:
        """What follows the hello, in writes."""
        sent = b"".join(self._units())
        places = [0, *sorted({len(sent) * cut // 1000 for cut in self.cuts}), len(sent)]
        return [sent[start:stop] for start, stop in zip(places, [*places[1:], len(sent)], strict=True) if start < stop]

    def unpadded(self) -> "Script":
        return replace(self, calls=tuple(call.unpadded() for call in self.calls))

    def streams(self) -> dict[int, Call]:
        """Calls by stream; they begin in their order, as ids must grow."""
        return {1 + 2 * at: call for at, call in enumerate(self.calls)}

    def _units(self) -> Iterator[bytes]:
        encoder = Encoder()
        waiting = [call.frames(stream, encoder) for stream, call in self.streams().items()]
        begun: list[Iterator[bytes]] = []
        noise = list(self.noise)
        step = -1
        for step, choice in enumerate((*self.order, *range(1000))):
            if step == self.ack_at:
                yield wire.settings(ack=True)
                encoder.header_table_size = 0
            if noise and choice % 3 == 2:
                yield noise.pop()
                continue
            if waiting and (not begun or choice % 4 == 0):
                begun.append(waiting.pop(0))
                yield next(begun[-1])
            if not begun:
                break
            at = choice % len(begun)
            frame = next(begun[at], None)
            if frame is None:
                del begun[at]
            else:
                yield frame
        yield from noise
        if self.ack_at > step:
            yield wire.settings(ack=True)
        yield wire.settings([(Setting.INITIAL_WINDOW_SIZE, 1 << 20)]) + wire.window_update(0, 1 << 20)


# ------------------------------------------------------------------------------------------------- strategies


class Body(bytes):
    """A message that is shown short enough to be read."""

    def __repr__(self) -> str:
        return super().__repr__() if len(self) <= 30 else f"{len(self)} bytes"


bodies = st.one_of(st.binary(max_size=30), st.integers(0, BODY_MAX).map(lambda size: b"x" * size)).map(Body)
texts = st.text("abcXYZ 0189!~%", min_size=1, max_size=20).map(lambda text: text.strip().encode() or b"-")
metadata_fields = st.one_of(
    st.tuples(st.sampled_from([b"x-a", b"x-b"]), texts),
    st.tuples(st.just(b"x-c-bin"), st.binary(max_size=20).map(lambda value: b64encode(value).rstrip(b"="))),
)


@st.composite
def asked(draw: Any) -> tuple[str, tuple[bytes, ...], Expected, tuple[tuple[bytes, bytes], ...]]:
    """A method, its requests, what it answers, and metadata."""
    method = draw(st.sampled_from(["Echo", "Collect", "Repeat", "Converse", "Fail", "Mirror", "Crash", "Nowhere"]))
    body = draw(bodies)
    many = tuple(draw(st.lists(bodies, max_size=4)))
    if method == "Echo":
        return method, (body,), Expected((body,), 0), ()
    if method == "Collect":
        return method, many, Expected((b"|".join(many),), 0), ()
    if method == "Repeat":
        count, size = draw(st.integers(0, 6)), draw(st.integers(0, 5000))
        return method, (b"%d:%d" % (count, size),), Expected((b"r" * size,) * count, 0), ()
    if method == "Converse":
        return method, many, Expected(tuple(one.upper() for one in many), 0), ()
    if method == "Fail":
        name = draw(st.sampled_from(sorted(STATUSES)))
        (key, value), (binary, _bytes) = FAILURE_METADATA
        trailers = ((key.encode(), str(value).encode()), (binary.encode(), b"AAH/"))
        return method, (name.encode(),), Expected((), STATUSES[name], DETAILS, trailers), ()
    if method == "Mirror":
        metadata = tuple(draw(st.lists(metadata_fields, max_size=4)))
        return method, (body,), Expected(None, 0, None, metadata), metadata
    if method == "Crash":
        return method, (body,), Expected((), 2), ()
    assert method == "Nowhere"
    return method, many, Expected((), 12), ()


@st.composite
def calls(draw: Any) -> Call:
    method, requests, expected, metadata = draw(asked())
    divided = draw(st.booleans())
    return Call(
        method,
        requests,
        expected,
        metadata,
        header_cuts=tuple(draw(st.lists(st.integers(0, 100), max_size=3))) if divided else (),
        sizes=tuple(draw(st.lists(st.integers(0, 50), max_size=5))) if divided else (),
        paddings=tuple(draw(st.lists(st.one_of(st.none(), st.integers(0, 255)), max_size=4))),
        priority=draw(st.booleans()),
        zipped=draw(st.booleans()),
        ends_alone=draw(st.booleans()),
        reset_after=draw(st.one_of(st.none(), st.none(), st.integers(0, 8))),
    )


noises = st.one_of(
    st.binary(min_size=8, max_size=8).map(wire.ping),
    st.builds(lambda size: wire.settings([(Setting.INITIAL_WINDOW_SIZE, size)]), st.integers(0, 200_000)),
    st.builds(lambda size: wire.settings([(Setting.MAX_FRAME_SIZE, size)]), st.integers(16_384, 100_000)),
    st.builds(lambda size: wire.settings([(0xF0F0, size), (Setting.MAX_CONCURRENT_STREAMS, 0)]), st.integers(0, 9)),
    st.builds(wire.window_update, st.just(0), st.integers(1, 10_000)),
    st.builds(wire.priority, st.sampled_from([1, 3, 5, 201]), st.sampled_from([0, 7, 9])),
    st.builds(lambda payload: wire.frame(0xBE, 0, 0, payload), st.binary(max_size=30)),
)

scripts = st.builds(
    Script,
    st.lists(calls(), min_size=1, max_size=CALLS_MAX).map(tuple),
    st.lists(st.integers(0, 60), max_size=60).map(tuple),
    st.lists(noises, max_size=6).map(tuple),
    st.one_of(st.none(), st.integers(0, 100_000)),
    st.integers(0, 40),
    st.lists(st.integers(0, 1000), max_size=6).map(tuple),
)
