"""Each fault of a client, with the error code of RFC 9113 and its scope: the connection, or the stream alone."""

import pytest
from _pytest.mark import ParameterSet

from tandemmq.common.grpc_transport.http2.limits import Limits
from tests.unit.grpc_transport.peer import Peer
from tests.unit.grpc_transport.wire import (
    ACK,
    END_HEADERS,
    END_STREAM,
    PADDED,
    PREFACE,
    PRIORITY,
    WINDOW_MAX,
    Code,
    Frame,
    Setting,
    Type,
    call,
    continuation,
    data,
    frame,
    goaway,
    headers,
    hello,
    indexed,
    literals,
    message,
    ping,
    priority,
    priority_field,
    push_promise,
    request_fields,
    rst_stream,
    settings,
    split_headers,
    window_update,
)

HEAD = literals(request_fields())
LARGE = (1 << 20) + 1
OPEN, WHOLE, CLOSED, NEXT = 1, 3, 5, 7
"""Stream ids of the peer below: half a request, a whole one without an answer, an answered one; the next free id."""


def case(name: str, sent: bytes, code: Code) -> ParameterSet:
    return pytest.param(sent, code, id=name)


def is_short(sent: object) -> bool:
    return isinstance(sent, bytes) and len(sent) < LARGE


def busy_peer() -> Peer:
    peer = Peer()
    peer.open(OPEN)
    peer.open(WHOLE, end=True)
    peer.open(CLOSED, end=True).answer()
    peer.collect()
    return peer


CONNECTION_FAULTS = [
    # frame sizes: 4.2, and each frame's own section
    case("frame over our SETTINGS_MAX_FRAME_SIZE (4.2)", data(OPEN, b"x" * LARGE), Code.FRAME_SIZE_ERROR),
    case("the same of an unknown type (4.2)", frame(0xEE, 0, 0, b"x" * LARGE), Code.FRAME_SIZE_ERROR),
    case("RST_STREAM of 3 bytes (6.4)", frame(Type.RST_STREAM, 0, OPEN, b"xxx"), Code.FRAME_SIZE_ERROR),
    case("RST_STREAM of 5 bytes (6.4)", frame(Type.RST_STREAM, 0, OPEN, b"xxxxx"), Code.FRAME_SIZE_ERROR),
    case("SETTINGS of 5 bytes (6.5)", frame(Type.SETTINGS, 0, 0, b"xxxxx"), Code.FRAME_SIZE_ERROR),
    case("SETTINGS ack with payload (6.5)", frame(Type.SETTINGS, ACK, 0, bytes(6)), Code.FRAME_SIZE_ERROR),
    case("PING of 7 bytes (6.7)", ping(b"1234567"), Code.FRAME_SIZE_ERROR),
    case("PING of 9 bytes (6.7)", ping(b"123456789"), Code.FRAME_SIZE_ERROR),
    case("PING of no bytes (6.7)", ping(b""), Code.FRAME_SIZE_ERROR),
    case("PING of 100,000 bytes (6.7)", ping(b"x" * 100_000), Code.FRAME_SIZE_ERROR),
    case("PING ack of 7 bytes (6.7)", ping(b"1234567", ack=True), Code.FRAME_SIZE_ERROR),
    case("GOAWAY of 7 bytes (6.8)", frame(Type.GOAWAY, 0, 0, b"1234567"), Code.FRAME_SIZE_ERROR),
    case("WINDOW_UPDATE of 3 bytes (6.9)", frame(Type.WINDOW_UPDATE, 0, 0, b"xxx"), Code.FRAME_SIZE_ERROR),
    case("WINDOW_UPDATE of 5 bytes (6.9)", frame(Type.WINDOW_UPDATE, 0, OPEN, b"xxxxx"), Code.FRAME_SIZE_ERROR),
    case("padded DATA without pad length (6.1)", frame(Type.DATA, PADDED, OPEN), Code.FRAME_SIZE_ERROR),
    case("padded HEADERS without pad length (6.2)", frame(Type.HEADERS, PADDED | 4, NEXT), Code.FRAME_SIZE_ERROR),
    case("HEADERS too short for its priority (6.2)", frame(Type.HEADERS, PRIORITY | 4, NEXT, b"1234"), Code(6)),
    # padding: 6.1, 6.2
    case("DATA: padding as long as the payload (6.1)", frame(Type.DATA, PADDED, OPEN, b"\x01"), Code.PROTOCOL_ERROR),
    case("DATA: padding longer (6.1)", frame(Type.DATA, PADDED, OPEN, b"\xff" + b"x" * 9), Code.PROTOCOL_ERROR),
    case("HEADERS: padding longer (6.2)", frame(Type.HEADERS, 12, NEXT, b"\xff" + HEAD), Code.PROTOCOL_ERROR),
    case(
        "HEADERS: padding reaches into the priority (6.2)",
        frame(Type.HEADERS, PADDED | PRIORITY | END_HEADERS, NEXT, b"\x01" + priority_field()),
        Code.PROTOCOL_ERROR,
    ),
    # stream ids: 5.1.1, and each frame's own section
    case("HEADERS on stream 0 (6.2)", headers(0, HEAD), Code.PROTOCOL_ERROR),
    case("HEADERS on an even stream (5.1.1)", headers(8, HEAD), Code.PROTOCOL_ERROR),
    case("HEADERS on a stream that was skipped (5.1.1)", headers(99, HEAD) + headers(97, HEAD), Code.PROTOCOL_ERROR),
    case("HEADERS on a closed stream (5.1)", headers(CLOSED, HEAD, end=True), Code.STREAM_CLOSED),
    case(
        "HEADERS on a closed stream, too large (5.1)",
        headers(CLOSED, literals([(b"x", b"y" * 20_000)]), end=True),
        Code.STREAM_CLOSED,
    ),
    case("DATA on stream 0 (6.1)", data(0, b"x"), Code.PROTOCOL_ERROR),
    case("DATA on an idle stream (5.1)", data(NEXT, b"x"), Code.PROTOCOL_ERROR),
    case("DATA on an even stream (5.1)", data(2, b"x"), Code.PROTOCOL_ERROR),
    case("RST_STREAM on stream 0 (6.4)", rst_stream(0), Code.PROTOCOL_ERROR),
    case("RST_STREAM on an idle stream (6.4)", rst_stream(NEXT), Code.PROTOCOL_ERROR),
    case("RST_STREAM on an even stream (6.4)", rst_stream(2), Code.PROTOCOL_ERROR),
    case("WINDOW_UPDATE on an idle stream (5.1)", window_update(NEXT, 1), Code.PROTOCOL_ERROR),
    case("WINDOW_UPDATE on an even stream (5.1)", window_update(2, 1), Code.PROTOCOL_ERROR),
    case("PRIORITY on stream 0 (6.3)", priority(0), Code.PROTOCOL_ERROR),
    case("SETTINGS on a stream (6.5)", frame(Type.SETTINGS, 0, OPEN), Code.PROTOCOL_ERROR),
    case("SETTINGS ack on a stream (6.5)", frame(Type.SETTINGS, ACK, OPEN), Code.PROTOCOL_ERROR),
    case("PING on a stream (6.7)", frame(Type.PING, 0, OPEN, bytes(8)), Code.PROTOCOL_ERROR),
    case("GOAWAY on a stream (6.8)", frame(Type.GOAWAY, 0, OPEN, bytes(8)), Code.PROTOCOL_ERROR),
    # header blocks: 4.3, 6.2, 6.10
    case("HEADERS, then DATA of another stream (6.2)", headers(7, HEAD, more=True) + data(1), Code.PROTOCOL_ERROR),
    case("HEADERS, then HEADERS (6.2)", headers(7, HEAD, more=True) + headers(9, HEAD), Code.PROTOCOL_ERROR),
    case("HEADERS, then PING (6.2)", headers(7, HEAD, more=True) + ping(), Code.PROTOCOL_ERROR),
    case("HEADERS, then SETTINGS (6.2)", headers(7, HEAD, more=True) + settings(), Code.PROTOCOL_ERROR),
    case("HEADERS, then PRIORITY (6.2)", headers(7, HEAD, more=True) + priority(7), Code.PROTOCOL_ERROR),
    case("HEADERS, then an unknown frame (5.5)", headers(7, HEAD, more=True) + frame(0xEE), Code.PROTOCOL_ERROR),
    case("CONTINUATION of another stream (6.10)", headers(7, HEAD, more=True) + continuation(9, b""), Code(1)),
    case("CONTINUATION of stream 0 (6.10)", headers(7, HEAD, more=True) + continuation(0, b""), Code(1)),
    case("CONTINUATION alone (6.10)", continuation(OPEN, b""), Code.PROTOCOL_ERROR),
    case("CONTINUATION behind END_HEADERS (6.10)", headers(7, HEAD) + continuation(7, b""), Code.PROTOCOL_ERROR),
    case(
        "CONTINUATION behind the last CONTINUATION (6.10)",
        b"".join(split_headers(7, HEAD, [9])) + continuation(7, b""),
        Code.PROTOCOL_ERROR,
    ),
    case("a block that cannot be decoded (4.3)", headers(NEXT, HEAD + indexed(0)), Code.COMPRESSION_ERROR),
    case("the same as trailers (4.3)", headers(OPEN, indexed(0), end=True), Code.COMPRESSION_ERROR),
    case("the same on a closed stream (4.3)", headers(CLOSED, indexed(0), end=True), Code.COMPRESSION_ERROR),
    case("a block cut in the middle of a field (4.3)", headers(NEXT, HEAD[:-1]), Code.COMPRESSION_ERROR),
    # settings: 6.5.2
    case("ENABLE_PUSH 2", settings([(Setting.ENABLE_PUSH, 2)]), Code.PROTOCOL_ERROR),
    case("MAX_FRAME_SIZE 16,383", settings([(Setting.MAX_FRAME_SIZE, 16_383)]), Code.PROTOCOL_ERROR),
    case("MAX_FRAME_SIZE 2^24", settings([(Setting.MAX_FRAME_SIZE, 1 << 24)]), Code.PROTOCOL_ERROR),
    case("INITIAL_WINDOW_SIZE 2^31", settings([(Setting.INITIAL_WINDOW_SIZE, 1 << 31)]), Code.FLOW_CONTROL_ERROR),
    case(
        "INITIAL_WINDOW_SIZE that overflows a stream's window (6.9.2)",
        window_update(OPEN, WINDOW_MAX - 65_535) + settings([(Setting.INITIAL_WINDOW_SIZE, 65_536)]),
        Code.FLOW_CONTROL_ERROR,
    ),
    case("the second of two pairs is illegal", settings([(9, 9), (Setting.ENABLE_PUSH, 9)]), Code.PROTOCOL_ERROR),
    # flow control: 6.9
    case("connection WINDOW_UPDATE of 0 (6.9)", window_update(0, 0), Code.PROTOCOL_ERROR),
    case("the same with the reserved bit (6.9)", window_update(0, 1 << 31), Code.PROTOCOL_ERROR),
    case("connection window over 2^31-1 (6.9.1)", window_update(0, WINDOW_MAX), Code.FLOW_CONTROL_ERROR),
    case("the same in two steps (6.9.1)", window_update(0, WINDOW_MAX - 65_535) + window_update(0, 50), Code(3)),
    # others
    case("PUSH_PROMISE (8.4)", push_promise(OPEN, 2, HEAD), Code.PROTOCOL_ERROR),
    case("HEADERS: depends on itself (5.3.1 of RFC 7540)", headers(7, HEAD, priority=priority_field(7)), Code(1)),
]


@pytest.mark.parametrize(("sent", "code"), CONNECTION_FAULTS)
def test_the_connection_ends(sent: bytes, code: Code) -> None:
    peer = busy_peer()
    out = peer.send(sent)
    assert peer.failed == code, peer.connection.reason
    assert out[-1].type == Type.GOAWAY
    assert peer.reading.codes == [code]
    assert not peer.connection.streams
    assert peer.streams[OPEN].was_reset is not None
    assert peer.streams[WHOLE].was_reset is not None
    assert peer.send(ping()) == [], "nothing that comes later is read"


@pytest.mark.parametrize(("sent", "code"), [fault for fault in CONNECTION_FAULTS if is_short(fault.values[0])])
def test_the_connection_ends_as_well_when_the_bytes_come_one_by_one(sent: bytes, code: Code) -> None:
    whole, bytewise = busy_peer(), busy_peer()
    assert bytewise.send_each(sent[at : at + 1] for at in range(len(sent))) == whole.send(sent)
    assert bytewise.failed == code


STREAM_FAULTS = [
    case("PRIORITY of 4 bytes (6.3)", frame(Type.PRIORITY, 0, OPEN, b"1234"), Code.FRAME_SIZE_ERROR),
    case("PRIORITY: depends on itself (5.3.1 of RFC 7540)", priority(OPEN, OPEN), Code.PROTOCOL_ERROR),
    case("WINDOW_UPDATE of 0 (6.9)", window_update(OPEN, 0), Code.PROTOCOL_ERROR),
    case("window over 2^31-1 (6.9.1)", window_update(OPEN, WINDOW_MAX), Code.FLOW_CONTROL_ERROR),
    case("trailers without END_STREAM (8.1)", headers(OPEN, literals([(b"x", b"y")])), Code.PROTOCOL_ERROR),
    case("a pseudo-header in trailers (8.1)", headers(OPEN, literals([(b":path", b"/")]), end=True), Code(1)),
    case("a bad name in trailers (8.2.1)", headers(OPEN, literals([(b"X", b"y")]), end=True), Code.PROTOCOL_ERROR),
    case("trailers too large", headers(OPEN, literals([(b"x", b"y" * 17_000)]), end=True), Code.ENHANCE_YOUR_CALM),
]


@pytest.mark.parametrize(("sent", "code"), STREAM_FAULTS)
def test_the_stream_ends_and_nothing_else(sent: bytes, code: Code) -> None:
    peer = busy_peer()
    assert peer.send(sent) == [Frame(Type.RST_STREAM, 0, OPEN, code.to_bytes(4))]
    assert peer.failed is None
    assert peer.streams[OPEN].was_reset == code
    assert peer.streams[WHOLE].was_reset is None
    assert list(peer.connection.streams) == [WHOLE]
    assert peer.send(data(OPEN, b"late"), window_update(OPEN, 1), rst_stream(OPEN), priority(OPEN)) == []
    peer.send(call(NEXT, b"hello"))
    assert peer.streams[NEXT].body == message(b"hello")


@pytest.mark.parametrize("late", [data(WHOLE, b"x"), data(WHOLE, end=True), headers(WHOLE, HEAD, end=True)])
def test_what_comes_behind_the_end_of_a_request(late: bytes) -> None:
    """Half-closed (remote); RFC 9113 section 5.1."""
    peer = busy_peer()
    assert peer.send(late) == [Frame(Type.RST_STREAM, 0, WHOLE, Code.STREAM_CLOSED.to_bytes(4))]
    assert peer.streams[WHOLE].was_reset == Code.STREAM_CLOSED
    assert peer.failed is None


def test_data_on_a_closed_stream() -> None:
    """Section 5.1: a stream error, or a connection error; once, not for each frame."""
    peer = busy_peer()
    assert peer.send(data(CLOSED, b"x")) == [Frame(Type.RST_STREAM, 0, CLOSED, Code.STREAM_CLOSED.to_bytes(4))]
    assert peer.send(data(CLOSED, b"x") * 10) == []
    assert peer.failed is None


def test_what_a_reset_stream_still_gets_is_ignored_but_counted() -> None:
    peer = busy_peer()
    peer.send(rst_stream(OPEN))
    assert peer.streams[OPEN].was_reset == Code.CANCEL
    assert peer.send(rst_stream(OPEN), window_update(OPEN, 5), priority(OPEN, 3)) == []
    assert peer.failed is None


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(priority(2, 4), id="an even stream"),
        pytest.param(priority(99, 1), id="an idle stream"),
        pytest.param(priority(CLOSED), id="a closed stream"),
        pytest.param(priority(OPEN, 1 << 31), id="exclusive"),
        pytest.param(frame(0xEE, 0xFF, OPEN, b"whatever"), id="an unknown frame"),
        pytest.param(frame(0xEE, 0xFF, 0, b""), id="an unknown frame without payload"),
        pytest.param(frame(0x0A, 0, 99, b"x" * 100), id="ALTSVC on an idle stream"),
        pytest.param(frame(0xEE, 0, 0, b"x" * 100_000), id="a large unknown frame"),
        pytest.param(settings([(0x99, 7), (0xFFFF, 1 << 31)]), id="unknown settings"),
        pytest.param(settings([(Setting.ENABLE_PUSH, 1)] * 2), id="the same setting twice"),
        pytest.param(settings([(Setting.HEADER_TABLE_SIZE, WINDOW_MAX)]), id="a table that we do not use"),
        pytest.param(ping(ack=True), id="an answer to a PING that we did not send"),
        pytest.param(window_update(OPEN, 5) + window_update(CLOSED, 0), id="windows"),
        pytest.param(frame(Type.PING, 0xFE, 0, bytes(8)), id="undefined flags of PING"),
        pytest.param(frame(Type.WINDOW_UPDATE, 0, 1 << 31, b"\0\0\0\1"), id="the reserved bit"),
        pytest.param(goaway(0, Code.NO_ERROR, b"bye"), id="GOAWAY"),
        pytest.param(goaway(0, Code.INTERNAL_ERROR, b"x" * 100_000), id="GOAWAY with much to say"),
        pytest.param(goaway(0, 0xFFFF_FFFF), id="GOAWAY with an unknown code"),
        pytest.param(rst_stream(WHOLE, 0xFFFF_FFFF), id="RST_STREAM with an unknown code"),
    ],
)
@pytest.mark.parametrize("bytewise", [False, True])
def test_what_is_legal_and_changes_nothing(sent: bytes, bytewise: bool) -> None:
    peer = busy_peer()
    peer.send_each([sent[at : at + 1] for at in range(len(sent))] if bytewise else [sent])
    assert peer.failed is None, peer.connection.reason
    assert peer.reading.answer(CLOSED).reset is None
    assert OPEN in peer.connection.streams
    assert peer.send(ping(b"afterall")) == [Frame(Type.PING, ACK, 0, b"afterall")]
    peer.send(data(OPEN, message(b"goes on"), end=True))
    assert peer.streams[OPEN].body == message(b"goes on")


def test_padding_too_long_ends_the_connection_whatever_the_stream() -> None:
    """On a stream that we reset, DATA is ignored; not so its padding (6.1). In one read or in two."""
    sent = frame(Type.DATA, PADDED, OPEN, b"\xff" + b"x" * 20)
    for parts in ([sent], [sent[:12], sent[12:]]):
        peer = busy_peer()
        peer.send(window_update(OPEN, 0))
        peer.send_each(parts)
        assert peer.failed == Code.PROTOCOL_ERROR


def test_a_priority_fault_of_a_stream_that_nobody_opened() -> None:
    """No RST_STREAM for it: that would be illegal itself (6.4)."""
    for stream in (2, 99):
        peer = busy_peer()
        assert [one.type for one in peer.send(priority(stream, stream))] in ([Type.GOAWAY], [])
        assert peer.reading.answers.keys() == {CLOSED}


def test_a_malformed_request_is_told_to_nobody() -> None:
    peer = busy_peer()
    bad = literals([*request_fields(), (b"connection", b"close")])
    assert peer.send(headers(NEXT, bad)) == [Frame(Type.RST_STREAM, 0, NEXT, Code.PROTOCOL_ERROR.to_bytes(4))]
    assert NEXT not in peer.streams
    assert peer.send(data(NEXT, b"its body", end=True)) == []
    peer.open(NEXT + 2)


# ------------------------------------------------------------------------------------------------- the beginning


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", id="HTTP/1.1"),
        pytest.param(PREFACE[:-1] + b"x", id="a preface that ends wrong"),
        pytest.param(PREFACE.lower(), id="a preface in lower case"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01", id="TLS on a port without"),
        pytest.param(b"\0" * 9, id="zeros"),
        pytest.param(PREFACE + ping(), id="PING before SETTINGS"),
        pytest.param(PREFACE + headers(1, HEAD), id="HEADERS before SETTINGS"),
        pytest.param(PREFACE + settings(ack=True), id="an acknowledgement before SETTINGS"),
        pytest.param(PREFACE + frame(0xEE), id="an unknown frame before SETTINGS"),
        pytest.param(PREFACE + PREFACE, id="the preface twice"),
    ],
)
@pytest.mark.parametrize("bytewise", [False, True])
def test_a_beginning_that_is_not_http2(sent: bytes, bytewise: bool) -> None:
    peer = Peer(greet=False)
    peer.send_each([sent[at : at + 1] for at in range(len(sent))] if bytewise else [sent])
    assert peer.failed is not None
    assert peer.reading.codes in ([Code.PROTOCOL_ERROR], [Code.FRAME_SIZE_ERROR])


def test_our_settings_come_first_and_theirs_are_acknowledged() -> None:
    peer = Peer(greet=False)
    limits = Limits()
    assert peer.reading.settings == {
        Setting.HEADER_TABLE_SIZE: 0,
        Setting.MAX_CONCURRENT_STREAMS: limits.max_concurrent_streams,
        Setting.INITIAL_WINDOW_SIZE: limits.stream_window,
        Setting.MAX_FRAME_SIZE: limits.max_frame_size,
        Setting.MAX_HEADER_LIST_SIZE: limits.max_header_list_size,
    }
    assert peer.reading.updates == {0: limits.connection_window - 65_535}
    assert peer.send(hello([(Setting.ENABLE_PUSH, 0)])) == [Frame(Type.SETTINGS, ACK, 0, b"")]


def test_too_many_streams_are_refused() -> None:
    """RFC 9113 section 5.1.2; the client may try again elsewhere."""
    peer = Peer(Limits(max_concurrent_streams=2))
    peer.open(1)
    peer.open(3)
    assert peer.send(headers(5, HEAD)) == [Frame(Type.RST_STREAM, 0, 5, Code.REFUSED_STREAM.to_bytes(4))]
    assert 5 not in peer.streams
    peer.send(rst_stream(1))
    peer.open(7)
    assert peer.failed is None


def test_a_header_list_that_is_too_large_is_answered() -> None:
    for end in (True, False):
        peer = Peer()
        peer.send(headers(1, literals([*request_fields(), (b"x", b"y" * 17_000)]), end=end))
        answer = peer.reading.answer(1)
        assert answer.http_status == b"431"
        assert answer.ended
        assert answer.reset == (None if end else Code.NO_ERROR)
        assert peer.failed is None
        assert not peer.streams
        assert peer.send(data(1, b"its body")) == [] or end
        peer.open(3)


def test_undefined_flags_are_ignored() -> None:
    """Section 4.1. END_HEADERS means nothing to DATA, nor PADDED to a PING."""
    peer = Peer()
    peer.send(frame(Type.HEADERS, END_HEADERS | 0xD2 & ~PADDED & ~PRIORITY, 1, HEAD))
    peer.send(frame(Type.DATA, END_STREAM | END_HEADERS | 0xF0, 1, message(b"m")))
    assert peer.streams[1].body == message(b"m")
    assert peer.streams[1].whole
