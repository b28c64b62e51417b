"""Flow control both ways; RFC 9113 sections 5.2 and 6.9: what a client may send, and what it has to be sent when."""

from hypothesis import given
from hypothesis import strategies as st

from tandemmq.common.grpc_transport.http2.limits import Limits
from tests.unit.grpc_transport.peer import Peer, Taken
from tests.unit.grpc_transport.wire import (
    WINDOW,
    WINDOW_MAX,
    Code,
    Frame,
    Setting,
    Type,
    data,
    rst_stream,
    settings,
    window_update,
)

SMALL = Limits(stream_window=WINDOW, connection_window=4 * WINDOW)
LARGE = b"0123456789abcdef" * 20_000


def keeping(peer: Peer, stream: int) -> Taken:
    """A call whose handler does not read."""
    taken = peer.open(stream)
    taken.keeps = True
    return taken


def sent_to(frames: list[Frame], stream: int) -> int:
    """Bytes of DATA that the server sent on a stream."""
    return sum(len(one.payload) for one in frames if one.type == Type.DATA and one.stream == stream)


def answer_of(body: bytes) -> bytes:
    return b"\0" + len(body).to_bytes(4) + body


# ------------------------------------------------------------------------------------------------- what comes in


def test_a_stream_takes_its_window_and_not_a_byte_more() -> None:
    peer = Peer(SMALL)
    taken = keeping(peer, 1)
    assert peer.send(data(1, b"x" * WINDOW)) == []
    assert taken.body == b"x" * WINDOW
    assert peer.send(data(1, b"x")) == [Frame(Type.RST_STREAM, 0, 1, Code.FLOW_CONTROL_ERROR.to_bytes(4))]
    assert taken.was_reset == Code.FLOW_CONTROL_ERROR
    assert peer.failed is None
    assert peer.connection.held == 0


def test_padding_counts() -> None:
    peer = Peer(SMALL)
    keeping(peer, 1)
    peer.send(data(1, b"x" * (WINDOW - 256), padding=255))
    assert peer.reading.answers == {}
    peer.send(data(1, b"x"))
    assert peer.reading.answer(1).reset == Code.FLOW_CONTROL_ERROR


def test_a_frame_is_judged_by_its_header_before_its_bytes_come() -> None:
    peer = Peer(SMALL)
    taken = keeping(peer, 1)
    whole = data(1, b"x" * (WINDOW + 1))
    peer.send(whole[:10])
    assert peer.reading.answer(1).reset == Code.FLOW_CONTROL_ERROR
    peer.send(whole[10:])
    assert taken.body == b""
    assert peer.failed is None


def test_who_reads_gets_more() -> None:
    peer = Peer(SMALL)
    taken = keeping(peer, 1)
    peer.send(data(1, b"x" * WINDOW))
    taken.read()
    peer.collect()
    assert peer.reading.updates[1] == WINDOW
    for _ in range(100):
        peer.send(data(1, b"x" * 30_000))
        taken.read()
    peer.collect()
    assert peer.failed is None
    assert WINDOW // 2 <= WINDOW + peer.reading.updates[1] - len(taken.body) <= WINDOW


def test_who_does_not_read_holds_only_itself() -> None:
    peer = Peer(SMALL)
    keeping(peer, 1)
    peer.send(data(1, b"x" * WINDOW))
    quick = peer.open(3)
    for _ in range(1000):
        peer.send(data(3, b"x" * 10_000))
    assert quick.body == b"x" * 10_000_000
    assert peer.failed is None
    assert 1 not in peer.reading.updates


def test_the_connection_stays_shut_while_too_much_is_held() -> None:
    """What max_buffered, the connection's window and nothing else let a client store with us."""
    limits = Limits(
        stream_window=WINDOW, connection_window=2 * WINDOW, max_buffered=4 * WINDOW, max_receive_message_length=1
    )
    peer = Peer(limits)
    stream = 1
    while peer.failed is None:
        keeping(peer, stream)
        peer.send(*[data(stream, b"x" * 10_000)] * 5)
        assert peer.connection.held <= limits.max_buffered + limits.connection_window
        stream += 2
    assert peer.failed == Code.FLOW_CONTROL_ERROR
    assert peer.connection.held == 0


def test_the_connection_opens_again_when_it_is_read() -> None:
    limits = Limits(stream_window=WINDOW, connection_window=WINDOW, max_buffered=30_000, max_receive_message_length=1)
    peer = Peer(limits)
    taken = [keeping(peer, stream) for stream in (1, 3)]
    for _ in range(50):
        peer.send(data(1, b"x" * 25_000), data(3, b"x" * 25_000))
        assert peer.failed is None
        for one in taken:
            one.read()
        peer.collect()
    assert [len(one.body) for one in taken] == [1_250_000] * 2


def test_data_for_streams_that_are_gone_costs_no_window() -> None:
    peer = Peer(SMALL)
    for stream in range(1, 200, 2):
        keeping(peer, stream)
        peer.send(data(stream, b"x" * 60_000), rst_stream(stream))
        peer.send(*[data(stream, b"x" * 10_000)] * 3)
    assert peer.failed is None
    assert peer.connection.held == 0


def test_what_a_reset_stream_held_is_free_again() -> None:
    peer = Peer(SMALL)
    for stream in range(1, 1001, 2):
        keeping(peer, stream)
        peer.send(data(stream, b"x" * WINDOW), rst_stream(stream))
    assert peer.failed is None
    assert peer.connection.held == 0


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40_000), st.booleans()), max_size=60))
def test_we_never_grant_more_than_the_windows(steps: list[tuple[int, int, bool]]) -> None:
    """A client that keeps to our windows is never refused, and gets no more than they are."""
    limits = Limits(
        stream_window=WINDOW, connection_window=2 * WINDOW, max_buffered=WINDOW, max_receive_message_length=1
    )
    peer = Peer(limits)
    taken = {stream: keeping(peer, stream) for stream in (1, 3, 5)}
    sent = dict.fromkeys(taken, 0)
    for which, size, reads in steps:
        stream = (1, 3, 5)[which]
        left = limits.stream_window + peer.reading.updates.get(stream, 0) - sent[stream]
        total = WINDOW + peer.reading.updates.get(0, 0) - sum(sent.values())
        assert 0 <= left <= limits.stream_window
        assert 0 <= total <= limits.connection_window
        size = min(size, left, total)
        peer.send(data(stream, b"x" * size))
        sent[stream] += size
        if reads:
            taken[stream].read()
            peer.collect()
    assert peer.failed is None
    assert {stream: len(one.body) for stream, one in taken.items()} == sent


# ------------------------------------------------------------------------------------------------- what goes out


def test_a_long_answer_waits_for_windows_and_is_whole_in_the_end() -> None:
    peer = Peer()
    taken = peer.open(1, end=True)
    taken.answer(LARGE)
    assert sent_to(peer.collect(), 1) == 65_535
    assert peer.send(window_update(1, 100)) == [], "the connection's window is shut"
    assert sent_to(peer.send(window_update(0, 1000)), 1) == 100
    assert sent_to(peer.send(window_update(1, 1 << 20)), 1) == 900
    assert peer.reading.answer(1).trailers is None
    peer.send(window_update(0, 1 << 20))
    answer = peer.reading.answer(1)
    assert answer.body == answer_of(LARGE)
    assert answer.status == 0
    assert not peer.connection.streams
    assert peer.connection.sender.pending_bytes == 0


def test_frames_are_as_large_as_the_client_takes_them() -> None:
    peer = Peer()
    peer.send(settings([(Setting.INITIAL_WINDOW_SIZE, 1 << 20)]), window_update(0, 1 << 20))
    peer.open(1, end=True).answer(LARGE)
    assert max(len(one.payload) for one in peer.collect()) == 16_384
    peer.send(settings([(Setting.MAX_FRAME_SIZE, 100_000)]))
    peer.reading.frame_size = 100_000
    peer.open(3, end=True).answer(LARGE)
    assert max(len(one.payload) for one in peer.collect()) == 100_000
    assert peer.reading.answer(3).body == peer.reading.answer(1).body == answer_of(LARGE)


def test_settings_open_streams_that_exist() -> None:
    """Section 6.9.2."""
    peer = Peer()
    peer.send(settings([(Setting.INITIAL_WINDOW_SIZE, 0)]))
    peer.open(1, end=True).answer(b"x" * 100)
    assert [one.type for one in peer.collect()] == [Type.HEADERS]
    assert sent_to(peer.send(settings([(Setting.INITIAL_WINDOW_SIZE, 10)])), 1) == 10
    assert sent_to(peer.send(settings([(Setting.INITIAL_WINDOW_SIZE, 30)])), 1) == 20
    peer.send(settings([(Setting.INITIAL_WINDOW_SIZE, 1000)]))
    assert peer.reading.answer(1).status == 0


def test_a_window_may_become_negative() -> None:
    """Section 6.9.2: then nothing goes until updates have made up for it."""
    peer = Peer()
    taken = peer.open(1, end=True)
    taken.answer(b"x" * 70_000)
    peer.collect()
    peer.send(window_update(0, 1 << 20), settings([(Setting.INITIAL_WINDOW_SIZE, 1000)]))
    assert taken.send_window == 1000 - 65_535
    assert peer.send(window_update(1, 64_535)) == []
    assert sent_to(peer.send(window_update(1, 7)), 1) == 7
    assert peer.failed is None


def test_a_stream_that_nobody_reads_holds_only_itself() -> None:
    peer = Peer()
    peer.send(settings([(Setting.INITIAL_WINDOW_SIZE, 1000)]), window_update(0, 1 << 20))
    peer.open(1, end=True).answer(LARGE)
    for stream in range(3, 103, 2):
        peer.open(stream, end=True).answer(b"x" * 900)
        peer.collect()
        assert peer.reading.answer(stream).status == 0
    assert len(peer.reading.answer(1).body) == 1000


def test_all_that_a_window_allows_goes_at_once() -> None:
    """The client sends no more updates until it has used up what it granted."""
    body = LARGE * 10
    for opening in (window_update(1, 1 << 23), settings([(Setting.INITIAL_WINDOW_SIZE, 1 << 23)])):
        peer = Peer()
        peer.send(window_update(0, 1 << 23))
        peer.open(1, end=True).answer(body)
        peer.collect()
        peer.send(opening)
        assert peer.reading.answer(1).body == answer_of(body)
        assert peer.reading.answer(1).status == 0


def test_streams_that_share_a_narrow_connection_take_turns() -> None:
    peer = Peer()
    peer.send(settings([(Setting.INITIAL_WINDOW_SIZE, 1 << 20)]))
    for stream in (1, 3, 5):
        peer.open(stream, end=True).answer(LARGE)
    peer.collect()
    for _ in range(30):
        peer.send(window_update(0, 20_000))
    assert all(len(peer.reading.answer(stream).body) > 100_000 for stream in (1, 3, 5))


def test_pending_data_of_a_stream_that_is_reset_is_dropped() -> None:
    peer = Peer()
    peer.open(1, end=True).answer(LARGE)
    assert peer.connection.sender.pending_bytes > 0
    peer.send(rst_stream(1))
    assert peer.connection.sender.pending_bytes == 0
    assert peer.send(window_update(0, 1 << 20), window_update(1, 1 << 20)) == []


def test_a_window_over_its_limit_is_an_error_even_when_data_waits_for_it() -> None:
    """Section 6.9.1: the sum counts, not what is left when the data has gone."""
    stream = Peer()
    stream.open(1, end=True).answer(b"x" * 70_000)
    stream.send(window_update(1, 10))
    stream.send(window_update(1, WINDOW_MAX))
    assert stream.reading.answer(1).reset == Code.FLOW_CONTROL_ERROR
    connection = Peer()
    connection.send(settings([(Setting.INITIAL_WINDOW_SIZE, 1 << 20)]))
    connection.open(1, end=True).answer(LARGE)
    connection.send(window_update(0, 1), window_update(0, WINDOW_MAX))
    connection.send(window_update(0, 1_000_000))
    assert connection.failed == Code.FLOW_CONTROL_ERROR


def test_a_congested_socket_keeps_data_back_and_nothing_else() -> None:
    peer = Peer()
    peer.connection.sender.congested = True
    peer.open(1, end=True).answer(b"x" * 100)
    assert [one.type for one in peer.collect()] == [Type.HEADERS]
    assert len(peer.send(b"\0\0\x08\x06\0\0\0\0\0" + bytes(8))) == 1
    peer.connection.sender.congested = False
    peer.connection.sender.flush_all()
    peer.collect()
    assert peer.reading.answer(1).status == 0


steps = st.one_of(
    st.tuples(st.just("answer"), st.one_of(st.integers(0, 100_000), st.just(600_000))),
    st.tuples(st.just("stream"), st.integers(1, 50_000)),
    st.tuples(st.just("connection"), st.integers(1, 50_000)),
    st.tuples(st.just("initial"), st.integers(0, 100_000)),
    st.tuples(st.just("reset"), st.just(0)),
    st.tuples(st.just("congested"), st.integers(0, 1)),
)


@given(st.lists(steps, max_size=30))
def test_we_never_send_more_than_we_may_and_all_of_it_in_the_end(found: list[tuple[str, int]]) -> None:
    peer = Peer()
    allowed, initial, connection = dict[int, int](), 65_535, 65_535
    wanted = dict[int, bytes]()
    for at, (kind, number) in enumerate(found):
        stream = 1 + 2 * (number % max(1, len(allowed)))
        if kind == "answer":
            stream = 1 + 2 * len(allowed)
            allowed[stream], wanted[stream] = initial, bytes([at]) * number
            peer.open(stream, end=True).answer(wanted[stream])
            frames = peer.collect()
        elif kind == "stream" and allowed:
            allowed[stream] += number
            frames = peer.send(window_update(stream, number))
        elif kind == "connection":
            connection += number
            frames = peer.send(window_update(0, number))
        elif kind == "initial":
            allowed = {one: window + number - initial for one, window in allowed.items()}
            initial = number
            frames = peer.send(settings([(Setting.INITIAL_WINDOW_SIZE, number)]))
        elif kind == "reset" and allowed and stream in peer.connection.streams:
            del wanted[stream]
            frames = peer.send(rst_stream(stream))
        else:
            peer.connection.sender.congested = bool(number)
            peer.connection.sender.flush_all()
            frames = peer.collect()
        for one in frames:
            if one.type == Type.DATA:
                allowed[one.stream] -= len(one.payload)
                connection -= len(one.payload)
                assert allowed[one.stream] >= 0
                assert connection >= 0
    peer.connection.sender.congested = False
    peer.send(window_update(0, 1 << 30), settings([(Setting.INITIAL_WINDOW_SIZE, 1 << 30)]))
    for stream, body in wanted.items():
        assert peer.reading.answer(stream).body == answer_of(body)
        assert peer.reading.answer(stream).status == 0
    assert peer.connection.sender.pending_bytes == 0
    assert not peer.connection.streams
