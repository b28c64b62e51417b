"""The client's end of a connection, byte by byte: what it sends, and what it makes of what comes."""

import pytest

from tandemmq.common.grpc_transport.http2.client import ClientConnection, Exchange
from tandemmq.common.grpc_transport.http2.errors import ErrorCode
from tandemmq.common.grpc_transport.http2.limits import Limits
from tandemmq.common.grpc_transport.http2.response import ResponseCache, ResponseHead
from tests.unit.grpc_transport.reading import frames
from tests.unit.grpc_transport.wire import (
    END_HEADERS,
    END_STREAM,
    PREFACE,
    Code,
    Frame,
    Indexing,
    Literal,
    Setting,
    Type,
    continuation,
    data,
    goaway,
    headers,
    indexed,
    literals,
    ping,
    rst_stream,
    settings,
    window_update,
)

HEAD = literals([(b":status", b"200"), (b"content-type", b"application/grpc")])
OK = literals([(b"grpc-status", b"0")])
BLOCK = b"the block"


class Asked(Exchange):
    """A stream that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.body = b""
        self.writables = 0
        self.keeps = False

    def answer_begins(self, head: ResponseHead, ended: bool) -> None:
        self.told.append((head.status, list(head.fields), ended))

    def answer_ends(self, trailers: ResponseHead) -> None:
        self.told.append(list(trailers.fields))

    def data(self, buffer: bytes, start: int, stop: int, ended: bool) -> None:
        self.body += buffer[start:stop]
        if self.keeps:
            self.connection.hold(self, stop - start)
        if ended:
            self.told.append("ended")
            self.connection.finish(self)

    def reset(self, code: int) -> None:
        self.told.append(("reset", code))

    def refused(self) -> None:
        self.told.append("refused")

    def too_large(self) -> None:
        self.told.append("too large")

    def writable(self) -> None:
        self.writables += 1


class Client:
    """A ClientConnection without a socket."""

    def __init__(self, limits: Limits | None = None, *, greeted: bool = True) -> None:
        self.now = 100.0
        self.going = 0
        self.cache = ResponseCache()
        self.connection = ClientConnection(limits or Limits(), self.cache, self.now, self._going)
        self.connection.initiate()
        self.hello = self.output()
        if greeted:
            self.say(settings(), settings(ack=True))

    def _going(self) -> None:
        self.going += 1

    def output(self) -> bytes:
        sender = self.connection.sender
        written = b"".join(bytes(part) for part in sender.output)
        sender.output.clear()
        sender.size = 0
        return written

    def say(self, *parts: bytes) -> list[Frame]:
        """The server says something; the frames that answer it."""
        self.connection.receive(b"".join(parts))
        return frames(self.output())

    def ask(self, message: bytes | None = b"x") -> Asked:
        """A call with a whole request, or (None) with one that goes on."""
        asked = Asked()
        asked.open(self.connection)
        if message is None:
            self.connection.sender.headers(asked, BLOCK)
        else:
            self.connection.sender.request(asked, BLOCK, b"\0" + len(message).to_bytes(4), message)
        return asked

    def tick(self, seconds: float) -> list[Frame]:
        self.now += seconds
        self.connection.tick(self.now)
        return frames(self.output())


def usable(client: Client) -> bool:
    return client.connection.usable


def test_the_first_bytes() -> None:
    client = Client(Limits(stream_window=100_000, connection_window=200_000, max_frame_size=20_000), greeted=False)
    assert client.hello == (
        PREFACE
        + bytes.fromhex("00001e 04 00 00000000")
        + bytes.fromhex("0001 00000000  0004 000186a0  0005 00004e20  0006 00004000  0002 00000000")
        + bytes.fromhex("000004 08 00 00000000") + (200_000 - 65_535).to_bytes(4)
    )  # fmt: skip
    assert not usable(client), "the server has not introduced itself"
    assert client.say(settings([(Setting.MAX_CONCURRENT_STREAMS, 7)])) == [Frame(Type.SETTINGS, 1)]
    assert usable(client)
    assert client.connection.max_streams == 7


def test_a_whole_request_and_its_answer() -> None:
    client = Client()
    asked = client.ask(b"hello")
    assert client.output() == (
        bytes.fromhex("000009 01 04 00000001") + BLOCK + bytes.fromhex("00000a 00 01 00000001 00 00000005") + b"hello"
    )
    assert client.say(headers(1, HEAD), data(1, b"\0\0\0\0\2hi"), headers(1, OK, end=True)) == []
    assert asked.told == [(200, [(b"content-type", b"application/grpc")], False), [(b"grpc-status", b"0")]]
    assert asked.body == b"\0\0\0\0\2hi"
    assert asked.closed
    assert not client.connection.streams
    assert client.ask().stream_id == 3


def test_a_request_larger_than_the_windows_goes_as_they_open() -> None:
    client = Client()
    asked = client.ask(bytes(70_000))
    sent = frames(client.output())
    assert [len(frame.payload) for frame in sent] == [len(BLOCK), 16_384, 16_384, 16_384, 16_383]
    assert not any(frame.flags & END_STREAM for frame in sent)
    assert client.say(window_update(1, 100_000)) == []
    rest = client.say(window_update(0, 100_000))
    assert [(len(frame.payload), frame.flags) for frame in rest] == [(70_005 - 65_535, END_STREAM)]
    assert asked.writables == 1
    assert asked.local_ended


def test_a_request_that_goes_on_ends_with_an_empty_frame() -> None:
    client = Client()
    asked = client.ask(None)
    assert client.connection.sender.message(asked, b"\0\0\0\0\1", b"a")
    client.connection.sender.half_close(asked)
    assert frames(client.output()) == [
        Frame(Type.HEADERS, END_HEADERS, 1, BLOCK),
        Frame(Type.DATA, 0, 1, b"\0\0\0\0\1a"),
        Frame(Type.DATA, END_STREAM, 1),
    ]
    assert not asked.closed
    client.say(headers(1, HEAD), headers(1, OK, end=True))
    assert asked.closed


def test_an_answer_that_ends_early_ends_the_request_too() -> None:
    client = Client()
    asked = client.ask(None)
    client.output()
    assert client.say(headers(1, literals([(b":status", b"200"), (b"grpc-status", b"5")]), end=True)) == [
        Frame(Type.DATA, END_STREAM, 1)
    ]
    assert asked.closed
    assert client.say(rst_stream(1, Code.NO_ERROR)) == [], "our server's word for the same"
    assert client.connection.failed is None


def test_an_early_answer_to_a_request_that_could_not_leave_resets_it() -> None:
    client = Client()
    asked = client.ask(bytes(70_000))
    client.output()
    assert client.say(headers(1, HEAD), headers(1, OK, end=True)) == [Frame(Type.RST_STREAM, 0, 1, bytes(4))]
    assert asked.closed
    assert client.connection.sender.pending_bytes == 0


def test_many_streams_that_end_early_are_no_flood() -> None:
    client = Client(Limits(resets_burst=10))
    for stream in range(1, 201, 2):
        client.ask(None)
        client.say(headers(stream, HEAD), headers(stream, OK, end=True), rst_stream(stream, Code.NO_ERROR))
    assert client.connection.failed is None


def test_blocks_that_were_seen_before_are_not_decoded_again() -> None:
    client = Client()
    client.ask(), client.ask()
    for stream in (1, 3):
        client.say(headers(stream, HEAD), headers(stream, OK, end=True))
    assert list(client.cache.heads) == [HEAD]
    assert list(client.cache.trailers) == [OK]


def test_a_dynamic_table_is_understood_until_settings_are_acknowledged() -> None:
    client = Client(greeted=False)
    client.say(settings())
    remembered = Literal(b"x-key", b"value", Indexing.INCREMENTAL).encode()
    first, second = client.ask(), client.ask()
    client.say(headers(1, indexed(8) + remembered), headers(3, indexed(8) + indexed(62)))
    assert first.told == second.told == [(200, [(b"x-key", b"value")], False)]
    client.say(settings(ack=True), headers(1, indexed(62), end=True))
    assert client.connection.failed == ErrorCode.COMPRESSION_ERROR


def test_a_late_block_still_changes_the_table() -> None:
    client = Client(greeted=False)
    client.say(settings())
    given_up, second = client.ask(), client.ask()
    client.connection.cancel(given_up, ErrorCode.CANCEL)
    remembered = Literal(b"x-key", b"value", Indexing.INCREMENTAL).encode()
    client.say(headers(1, indexed(8) + remembered), headers(3, indexed(8) + indexed(62)))
    assert second.told == [(200, [(b"x-key", b"value")], False)]


@pytest.mark.parametrize(
    "said",
    [
        headers(1, HEAD, more=True) + continuation(1, b"") + headers(1, OK, end=True),
        headers(1, HEAD, padding=7, priority=bytes(5)) + headers(1, OK, end=True),
        headers(1, literals([(b":status", b"103")])) + headers(1, HEAD) + headers(1, OK, end=True),
        b"\0\0\3\xfa\0\0\0\0\1abc" + headers(1, HEAD) + headers(1, OK, end=True),
    ],
)
def test_legal_ways_to_answer(said: bytes) -> None:
    for size in (1, 2, 7, len(said)):
        client = Client()
        asked = client.ask()
        client.output()
        for at in range(0, len(said), size):
            assert client.say(said[at : at + size]) == []
        assert asked.told == [(200, [(b"content-type", b"application/grpc")], False), [(b"grpc-status", b"0")]]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (headers(1, literals([(b"a", b"b")])), Code.PROTOCOL_ERROR),
        (headers(1, literals([(b":status", b"20")])), Code.PROTOCOL_ERROR),
        (headers(1, literals([(b":status", b"200"), (b":status", b"200")])), Code.PROTOCOL_ERROR),
        (headers(1, literals([(b":status", b"200"), (b":path", b"/")])), Code.PROTOCOL_ERROR),
        (headers(1, literals([(b":status", b"200"), (b"X", b"")])), Code.PROTOCOL_ERROR),
        (headers(1, literals([(b":status", b"200"), (b"x", b"a\nb")])), Code.PROTOCOL_ERROR),
        (headers(1, literals([(b":status", b"101")])), Code.PROTOCOL_ERROR),
        (headers(1, literals([(b":status", b"100")]), end=True), Code.PROTOCOL_ERROR),
        (headers(1, HEAD) + headers(1, OK), Code.PROTOCOL_ERROR),
        (headers(1, HEAD) + headers(1, literals([(b":status", b"200")]), end=True), Code.PROTOCOL_ERROR),
        (headers(1, literals([(b":status", b"200"), (b"content-length", b"1")]), end=True), Code.PROTOCOL_ERROR),
        (window_update(1, 0), Code.PROTOCOL_ERROR),
        (window_update(1, 2**31 - 1), Code.FLOW_CONTROL_ERROR),
    ],
)
def test_faults_of_a_stream_end_the_stream(said: bytes, code: int) -> None:
    client = Client()
    asked, other = client.ask(None), client.ask(None)
    client.output()
    assert client.say(said) == [Frame(Type.RST_STREAM, 0, 1, code.to_bytes(4))]
    assert asked.told[-1] == ("reset", code)
    client.say(headers(3, HEAD), headers(1, HEAD), data(1, b"late"))
    assert len(other.told) == 1
    assert client.connection.failed is None


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (headers(5, HEAD), Code.PROTOCOL_ERROR),
        (headers(2, HEAD), Code.PROTOCOL_ERROR),
        (data(5, b"x"), Code.PROTOCOL_ERROR),
        (data(0, b"x"), Code.PROTOCOL_ERROR),
        (rst_stream(5), Code.PROTOCOL_ERROR),
        (continuation(1, b""), Code.PROTOCOL_ERROR),
        (b"\0\0\4\5\4\0\0\0\1\0\0\0\2", Code.PROTOCOL_ERROR),
        (settings([(Setting.ENABLE_PUSH, 1)]), Code.PROTOCOL_ERROR),
        (settings([(Setting.MAX_FRAME_SIZE, 1)]), Code.PROTOCOL_ERROR),
        (headers(1, indexed(70)), Code.COMPRESSION_ERROR),
        (b"\xff\xff\xff\0\0\0\0\0\1", Code.FRAME_SIZE_ERROR),
        (b"\0\0\3\3\0\0\0\0\1abc", Code.FRAME_SIZE_ERROR),
        (b"\0\0\4\7\0\0\0\0\0abcd", Code.FRAME_SIZE_ERROR),
        (b"\0\xff\xff\7\0\0\0\0\0", Code.ENHANCE_YOUR_CALM),
        (headers(1, b"", more=True) + continuation(1, b"", more=True) * 200, Code.ENHANCE_YOUR_CALM),
        (ping() * 10_001, Code.ENHANCE_YOUR_CALM),
    ],
)
def test_faults_of_the_connection_end_it(said: bytes, code: int) -> None:
    client = Client()
    asked = client.ask(None)
    client.output()
    assert client.say(said)[-1] == Frame(
        Type.GOAWAY, 0, 0, bytes(4) + code.to_bytes(4) + client.connection.reason.encode()
    )
    assert client.connection.failed == code
    assert asked.told == [("reset", Code.CANCEL)]
    assert not client.connection.takes_calls


def test_the_first_frame_must_be_settings() -> None:
    client = Client(greeted=False)
    client.say(ping())
    assert client.connection.failed == ErrorCode.PROTOCOL_ERROR


def test_goaway_refuses_what_it_did_not_see() -> None:
    client = Client()
    seen, unseen = client.ask(), client.ask()
    said = goaway(1, Code.NO_ERROR, b"bye")
    client.say(said[:12])
    assert client.going == 0
    client.say(said[12:])
    assert (client.going, client.connection.goaway) == (1, (0, "bye"))
    assert (seen.told, unseen.told) == ([], ["refused"])
    assert not client.connection.takes_calls
    assert not client.connection.done
    client.say(goaway(1), headers(1, HEAD), headers(1, OK, end=True))
    assert client.going == 1
    assert client.connection.done


def test_a_refused_stream_may_be_opened_again() -> None:
    client = Client()
    asked = client.ask(None)
    client.say(rst_stream(1, Code.REFUSED_STREAM))
    assert asked.told == ["refused"]
    asked.closed_unseen()
    asked.open(client.connection)
    assert (asked.stream_id, asked.closed, asked.local_ended) == (3, False, False)


def test_metadata_over_the_limit_ends_the_call_only() -> None:
    client = Client(Limits(max_header_list_size=1000))
    asked = client.ask()
    client.output()
    huge = literals([(b":status", b"200"), (b"x", b"v" * 1000)])
    assert client.say(headers(1, huge)) == [Frame(Type.RST_STREAM, 0, 1, Code.CANCEL.to_bytes(4))]
    assert asked.told == ["too large"]
    assert client.connection.failed is None


def test_windows_open_as_answers_are_taken() -> None:
    client = Client(Limits(stream_window=65_535, connection_window=65_535))
    asked = client.ask()
    client.output()
    asked.keeps = True
    client.say(headers(1, HEAD))
    assert client.say(data(1, bytes(16_384)), data(1, bytes(16_384))) == []
    client.connection.release(asked, 32_768)
    opened = (32_768).to_bytes(4)
    assert frames(client.output()) == [
        Frame(Type.WINDOW_UPDATE, 0, 1, opened),
        Frame(Type.WINDOW_UPDATE, 0, 0, opened),
    ]
    assert client.say(*[data(1, bytes(16_384))] * 4)[-1] == Frame(
        Type.RST_STREAM, 0, 1, Code.FLOW_CONTROL_ERROR.to_bytes(4)
    )


def test_a_silent_server_is_asked_while_calls_wait() -> None:
    client = Client(Limits(keepalive_seconds=10, keepalive_timeout_seconds=5))
    assert client.tick(1) == client.tick(30) == [], "nobody waits for it"
    client.ask()
    client.output()
    assert [frame.type for frame in client.tick(1)] == [Type.PING]
    client.say(ping(b"keepaliv", ack=True))
    assert client.tick(1) == []
    assert [frame.type for frame in client.tick(11)] == [Type.PING]
    assert [frame.type for frame in client.tick(16)] == [Type.GOAWAY]
    assert client.connection.reason == "the server does not answer"


def test_a_server_that_does_not_acknowledge_is_left() -> None:
    client = Client(Limits(handshake_seconds=5), greeted=False)
    client.say(settings())
    client.tick(6)
    assert client.connection.failed == ErrorCode.SETTINGS_TIMEOUT


def test_a_connection_without_calls_is_closed_if_so_wanted() -> None:
    client = Client(Limits(idle_seconds=5))
    assert [frame.type for frame in client.tick(6)] == [Type.GOAWAY]
    assert client.connection.done
    assert client.going == 1
