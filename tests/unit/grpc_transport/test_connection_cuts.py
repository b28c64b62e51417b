"""TCP cuts bytes where it likes: what a server answers and hands on must not depend on it."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tandemmq.common.grpc_transport.http2.errors import ErrorCode
from tandemmq.common.grpc_transport.http2.limits import Limits
from tests.unit.grpc_transport.peer import Peer, Taken
from tests.unit.grpc_transport.wire import (
    Code,
    Setting,
    continuation,
    data,
    frame,
    goaway,
    headers,
    hello,
    literals,
    message,
    ping,
    priority,
    priority_field,
    request_fields,
    rst_stream,
    settings,
    split_headers,
    window_update,
)

HEAD = literals(request_fields())
LIMITS = Limits(
    stream_window=65_535,
    connection_window=65_535,
    max_buffered=50_000,
    max_receive_message_length=1,
    overhead_per_second=8,
)


class Sent(bytes):
    """Bytes that are shown short enough to be read."""

    def __repr__(self) -> str:
        return f"{self[:60].hex()}{'...' if len(self) > 60 else ''} ({len(self)} bytes)"


streams = st.integers(0, 9)
bodies = st.one_of(st.binary(max_size=40), st.integers(0, 30_000).map(bytes))
paddings = st.one_of(st.none(), st.integers(0, 255))
blocks = st.one_of(st.just(HEAD), st.just(literals([(b"x-trailer", b"1")])), st.binary(max_size=5))
FRAMES = st.one_of(
    st.builds(
        lambda stream, block, end, padding, depends: headers(stream, block, end=end, padding=padding, priority=depends),
        streams,
        blocks,
        st.booleans(),
        paddings,
        st.one_of(st.none(), st.integers(0, 9).map(priority_field)),
    ),
    st.builds(
        lambda stream, cuts, end: b"".join(split_headers(stream, HEAD, cuts, end=end)),
        streams,
        st.lists(st.integers(0, len(HEAD)), min_size=1, max_size=4),
        st.booleans(),
    ),
    st.builds(
        lambda stream, body, end, pad: data(stream, body, end=end, padding=pad),
        streams,
        bodies,
        st.booleans(),
        paddings,
    ),
    st.builds(lambda stream, body: data(stream, message(body), end=True), streams, bodies),
    st.builds(window_update, streams, st.sampled_from([0, 1, 1000, 1 << 30, (1 << 31) - 1])),
    st.builds(rst_stream, streams),
    st.builds(priority, streams, streams),
    st.builds(
        settings,
        st.lists(st.tuples(st.sampled_from(Setting), st.sampled_from([0, 1, 100, 20_000, 1 << 31])), max_size=3),
    ),
    st.builds(ping, st.binary(min_size=8, max_size=8)),
    st.builds(goaway),
    st.builds(continuation, streams, st.binary(max_size=9)),
    st.builds(frame, st.integers(0, 20), st.integers(0, 255), streams, st.binary(max_size=40)),
    st.builds(
        lambda kind, size: frame(kind, 0, 0, bytes(size)), st.integers(0, 20), st.sampled_from([0, 16_384, 60_000])
    ),
    st.binary(max_size=12),
)


def answering(taken: Taken) -> None:
    """Streams whose id is 3 more than a multiple of four keep what they get; all answer at the end."""
    taken.keeps = taken.stream_id % 4 == 3
    taken.on_ended = lambda stream: stream.answer(b"x" * (stream.stream_id * 20))


def outcome(parts: list[bytes]) -> tuple[object, ...]:
    peer = Peer(LIMITS, greet=False)
    peer.on_request = answering
    out = peer.send_each(parts)
    told = {at: (one.body, one.whole, one.was_reset) for at, one in peer.streams.items()}
    connection = peer.connection
    return out, told, peer.failed, connection.held, sorted(connection.streams), connection.sender.pending_bytes


def cut(sent: bytes, places: list[int]) -> list[bytes]:
    at = [0, *sorted({place % (len(sent) + 1) for place in places}), len(sent)]
    return [sent[start:stop] for start, stop in pairwise(at)]


@given(st.lists(FRAMES.map(Sent), max_size=14), st.lists(st.integers(0, 1 << 20), max_size=30), st.booleans())
def test_cuts_change_nothing(found: list[Sent], places: list[int], acknowledged: bool) -> None:
    sent = hello() + (settings(ack=True) if acknowledged else b"") + b"".join(found)
    whole = outcome([sent])
    assert outcome(cut(sent, places)) == whole
    if len(sent) < 3000:
        assert outcome([sent[at : at + 1] for at in range(len(sent))]) == whole


def test_a_call_byte_by_byte() -> None:
    sent = hello() + settings(ack=True) + headers(1, HEAD, padding=9, priority=priority_field(0))
    sent += data(1, message(b"12345")[:3], padding=2) + data(1, message(b"12345")[3:], padding=0, end=True)
    _out, told, failed, *_rest = whole = outcome([sent])
    assert told == {1: (message(b"12345"), True, None)}
    assert failed is None
    assert outcome([sent[at : at + 1] for at in range(len(sent))]) == whole


def test_a_huge_block_is_not_read_in_part() -> None:
    """The first read ends where a shorter block could have ended."""
    sent = headers(1, HEAD + literals([(b"x-more", b"y" * 200_000)]))
    peer = Peer()
    peer.send(sent[: 9 + len(HEAD)])
    peer.send(sent[9 + len(HEAD) :])
    assert not peer.streams
    assert peer.failed == Code.ENHANCE_YOUR_CALM


def test_the_end_is_told_when_all_of_it_has_come() -> None:
    """END_STREAM of a frame whose padding is still under way."""
    for padding in (None, 0, 100):
        peer = Peer()
        peer.open(1)
        sent = data(1, b"body", end=True, padding=padding)
        told = []
        for part in (sent[:-1], sent[-1:]):
            peer.send(part)
            told.append(peer.streams[1].whole)
        assert told == [False, True]
        assert peer.streams[1].body == b"body"


def test_a_stream_that_is_given_up_in_the_middle_of_a_frame() -> None:
    peer = Peer()
    taken = peer.open(1)
    sent = data(1, b"x" * 1000, end=True)
    peer.send(sent[:100])
    peer.connection.cancel(taken, ErrorCode.CANCEL)
    assert [one.payload for one in peer.collect()] == [Code.CANCEL.to_bytes(4)]
    peer.send(sent[100:], ping())
    assert len(taken.body) == 91
    assert peer.failed is None
    assert peer.reading.pongs == [b"12345678"]
