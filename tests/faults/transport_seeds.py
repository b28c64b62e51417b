"""Seeds of the transport's fuzzer: what honest clients send, each as a list of frames behind the preface."""

import gzip
import random

from hpack import Encoder

from tests.unit.grpc_transport import wire
from tests.unit.grpc_transport.wire import Setting, data, headers, literals, message, request_fields, settings

Seed = list[bytes]
"""The preface, then one element for each frame."""

FIRST = [wire.PREFACE, settings(), settings(ack=True)]


def split(sent: bytes) -> Seed:
    """A client's bytes as a seed; what is left of a frame that was cut is the last element."""
    found, at = [sent[: len(wire.PREFACE)]], len(wire.PREFACE)
    while at < len(sent):
        stop = at + wire.HEADER_SIZE + int.from_bytes(sent[at : at + 3])
        found.append(sent[at:stop])
        at = stop
    return found


def _unary() -> Seed:
    return [*FIRST, *_call(1, "Echo", b"hello"), *_call(3, "Echo", b"x" * 300), *_call(5, "Nowhere", b"?")]


def _call(stream: int, method: str, *bodies: bytes) -> Seed:
    frames = [headers(stream, literals(request_fields(method)), end=not bodies)]
    return frames + [data(stream, message(body), end=at == len(bodies)) for at, body in enumerate(bodies, 1)]


def _streams() -> Seed:
    """Streams of all kinds at a time, their frames mixed."""
    kinds = {1: "Collect", 3: "Converse", 5: "Repeat", 7: "Keep"}
    frames = [headers(stream, literals(request_fields(name))) for stream, name in kinds.items()]
    for at in range(3):
        frames += [data(stream, message(b"part %d" % at)) for stream in (1, 3, 7)]
    frames += [data(5, message(b"3:50"), end=True), data(1, end=True), data(3, message(b"last"), end=True)]
    return [*FIRST, *frames, data(7, message(b"kept")[:6]), data(7, message(b"kept")[6:], end=True)]


def _odd_frames() -> Seed:
    block = literals(request_fields("Echo", (b"x-a", b"1"), (b"x-b-bin", b"AAE"), timeout=b"10S"))
    whole = message(b"0123456789")
    return [
        *FIRST,
        headers(1, block, padding=7, priority=wire.priority_field(0, 15)),
        data(1, whole[:2], padding=0),
        data(1, whole[2:9], padding=30),
        data(1),
        wire.priority(1, 3),
        data(1, whole[9:], end=True, padding=255),
        *wire.split_headers(3, block, [0, 1, 20, len(block)]),
        data(3, whole),
        headers(3, literals([(b"x-trailer", b"1")]), end=True),
        wire.frame(0xEE, 0xFF, 3, b"unknown"),
    ]


def _windows() -> Seed:
    return [
        wire.PREFACE,
        settings([(Setting.INITIAL_WINDOW_SIZE, 10), (Setting.MAX_FRAME_SIZE, 20_000), (Setting.ENABLE_PUSH, 0)]),
        settings(ack=True),
        *_call(1, "Repeat", b"4:100"),
        wire.window_update(1, 30),
        *_call(3, "Echo", b"y" * 50),
        wire.window_update(0, 1 << 20),
        settings([(Setting.INITIAL_WINDOW_SIZE, 100)]),
        wire.window_update(3, 1000),
        settings([(Setting.INITIAL_WINDOW_SIZE, 1 << 20)]),
        wire.window_update(1, 1 << 20),
    ]


def _ends() -> Seed:
    return [
        *FIRST,
        wire.ping(b"are you?"),
        *_call(1, "Wait", b"long"),
        *_call(3, "Wait", b"longer"),
        wire.rst_stream(1),
        headers(5, literals(request_fields("Converse"))),
        data(5, message(b"one")),
        wire.rst_stream(5),
        wire.ping(b"keepaliv", ack=True),
        wire.goaway(0, 0, b"done"),
        *_call(7, "Echo", b"after all"),
        wire.ping(b"draining", ack=True),
    ]


def _compressed() -> Seed:
    zipped = request_fields("Collect", (b"grpc-encoding", b"gzip"), (b"grpc-accept-encoding", b"identity,gzip"))
    body = message(b"z" * 200, zipped=True)
    bomb = message(gzip.compress(bytes(100_000), mtime=0), flag=1)
    return [
        *FIRST,
        headers(1, literals(zipped)),
        data(1, body + message(b"plain")),
        data(1, body, end=True),
        headers(3, literals(zipped)),
        data(3, bomb, end=True),
        headers(5, literals(request_fields("Echo", (b"grpc-encoding", b"snappy")))),
        data(5, body, end=True),
    ]


def _tables() -> Seed:
    """A client that uses its dynamic table until it knows that we have none."""
    encoder = Encoder()
    blocks = [encoder.encode(list(request_fields(name, (b"x-id", b"%d" % at)))) for at, name in enumerate(["Echo"] * 3)]
    encoder.header_table_size = 0
    blocks += [encoder.encode(list(request_fields("Echo", (b"x-id", b"9"))), huffman=flag) for flag in (True, False)]
    calls: Seed = []
    for at, block in enumerate(blocks):
        calls += [headers(1 + 2 * at, block), data(1 + 2 * at, message(b"m"), end=True)]
    return [
        wire.PREFACE,
        settings([(Setting.HEADER_TABLE_SIZE, 4096)]),
        *calls[:6],
        settings(ack=True),
        *calls[6:],
    ]


def _no_grpc() -> Seed:
    get = literals([(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"probe")])
    sized = literals(request_fields("Echo", (b"content-length", b"10")))
    large = literals(request_fields("Echo", (b"x", b"y" * 700)))
    wrong = literals(request_fields("Echo", (b"connection", b"close")))
    return [
        *FIRST,
        headers(1, get, end=True),
        headers(3, sized),
        data(3, message(b"right"), end=True),
        headers(5, large),
        data(5, message(b"large"), end=True),
        headers(7, wrong),
        data(7, b"late"),
        headers(9, literals(request_fields("Echo", timeout=b"1n"))),
        data(9, message(b"", length=1 << 31)),
    ]


def _many() -> Seed:
    rng = random.Random(1)
    frames = [frame for stream in range(1, 25, 2) for frame in _call(stream, rng.choice(["Echo", "Wait"]), b"m")]
    return [*FIRST, *frames, *[wire.rst_stream(stream) for stream in range(1, 25, 2)]]


SEEDS = [_unary(), _streams(), _odd_frames(), _windows(), _ends(), _compressed(), _tables(), _no_grpc(), _many()]

TOKENS = [
    *[bytes((size,)) * count for size in (0, 1, 0x7F, 0x80, 0xFF) for count in (1, 4)],
    *[number.to_bytes(4) for number in (1, 9, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFE, 65_535, 65_536, 16_384)],
    *[wire.indexed(at) for at in (0, 1, 3, 16, 61, 62, 127, 5000)],
    wire.table_size(0),
    wire.table_size(4096),
    wire.string(b"application/grpc"),
    wire.string(b"x-bin", huffman=True),
    b"\x40\x01x\x01y",
    b"\x00\x0cgrpc-timeout\x031Sx",
    b"\x00\x0cgrpc-timeout\x0999999999H",
    b"\x00\x0egrpc-encoding\x04gzip",
    b"\x00\x0econtent-length\x011",
    b"\x00\x05x-bin\x03A,=",
    b"\x00\x06:path\x01/",
    message(b""),
    message(b"x" * 9, flag=1),
    b"\x00\xff\xff\xff\xff",
    b"\x00\x00\x00\x00\x7f",
]
"""Pieces that mean something somewhere."""

INTERESTING_FRAMES = [
    settings([(Setting.INITIAL_WINDOW_SIZE, 0)]),
    settings([(Setting.INITIAL_WINDOW_SIZE, 0x7FFF_FFFF)]),
    settings([(Setting.MAX_FRAME_SIZE, 16_384)]),
    settings([(Setting.HEADER_TABLE_SIZE, 0)]),
    settings(ack=True),
    wire.window_update(0, 1),
    wire.window_update(0, 0x7FFF_0000),
    wire.window_update(1, 0),
    wire.window_update(3, 0x7FFF_FFFF),
    wire.ping(),
    wire.rst_stream(1),
    wire.rst_stream(3, 0),
    wire.priority(1, 1),
    wire.goaway(),
    data(1),
    data(3, b"", end=True, padding=200),
    data(1, bytes(3000)),
    headers(99, literals(request_fields("Repeat"))),
    headers(11, literals(request_fields("Echo")), more=True),
    wire.continuation(11, b""),
    wire.push_promise(1, 2, b""),
    wire.frame(0xFE, 1, 1, b"x"),
    wire.PREFACE,
]
