"""What takes too long, and what says goodbye: `tick` and `drain`, with a clock that is set by hand."""

import pytest

from tandemmq.common.grpc_transport.http2.limits import Limits
from tests.unit.grpc_transport.peer import Peer
from tests.unit.grpc_transport.wire import (
    ACK,
    PREFACE,
    WINDOW_MAX,
    Code,
    Frame,
    Type,
    call,
    continuation,
    data,
    headers,
    literals,
    message,
    ping,
    request_fields,
    rst_stream,
    settings,
)

HEAD = literals(request_fields())
LIMITS = Limits(
    handshake_seconds=10, frame_seconds=10, keepalive_seconds=60, keepalive_timeout_seconds=20, drain_seconds=5
)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(PREFACE[:10], id="half a preface"),
        pytest.param(PREFACE, id="no settings"),
        pytest.param(PREFACE + settings()[:5], id="half a settings frame"),
        pytest.param(PREFACE + settings(), id="our settings are not acknowledged"),
    ],
)
def test_a_connection_that_does_not_introduce_itself(sent: bytes) -> None:
    peer = Peer(LIMITS, greet=False)
    peer.send(sent)
    peer.tick(9)
    assert peer.failed is None
    peer.tick(3)
    assert peer.failed in (Code.SETTINGS_TIMEOUT, Code.ENHANCE_YOUR_CALM)


def test_a_preface_that_drips_in_does_not_stop_the_clock() -> None:
    peer = Peer(LIMITS, greet=False)
    for at in range(12):
        peer.send(PREFACE[at : at + 1])
        peer.tick()
    assert peer.failed is not None


@pytest.mark.parametrize("begun", [ping()[:3], ping()[:12], headers(1, HEAD)[:20]])
def test_a_frame_that_does_not_come_to_its_end(begun: bytes) -> None:
    peer = Peer(LIMITS)
    peer.send(begun)
    peer.tick(9)
    assert peer.failed is None
    peer.tick(3)
    assert peer.failed == Code.ENHANCE_YOUR_CALM


def test_a_frame_that_drips_in() -> None:
    peer = Peer(LIMITS)
    whole = headers(1, HEAD)
    for at in range(13):
        peer.send(whole[at : at + 1])
        peer.tick()
    assert peer.failed == Code.ENHANCE_YOUR_CALM


def test_a_header_block_that_does_not_come_to_its_end() -> None:
    peer = Peer(LIMITS)
    peer.send(headers(1, HEAD, more=True))
    peer.tick(12)
    assert peer.failed == Code.ENHANCE_YOUR_CALM


def test_a_header_block_that_drips_in() -> None:
    """Each CONTINUATION is whole; the block is not."""
    peer = Peer(LIMITS)
    peer.send(headers(1, HEAD[:5], more=True))
    for at in range(5, 17):
        peer.send(continuation(1, HEAD[at : at + 1], more=True))
        peer.tick()
    assert peer.failed == Code.ENHANCE_YOUR_CALM


def test_data_may_take_its_time() -> None:
    """A slow line is no crime: what came is with the reader already."""
    peer = Peer(LIMITS)
    peer.open(1)
    whole = data(1, message(b"x" * 50), end=True)
    for at in range(len(whole)):
        peer.send(whole[at : at + 1])
        peer.tick(0.1)
    assert peer.failed is None
    assert peer.streams[1].whole


def test_a_busy_connection_is_cut_somewhere_at_every_tick() -> None:
    """Reads end in the middle of a frame more often than not; it is never the same frame."""
    peer = Peer(LIMITS)
    rest = b""
    for stream in range(1, 121, 2):
        sent = rest + call(stream, b"m")
        cut = len(sent) - 7 - stream % 50
        peer.send(sent[:cut])
        rest = sent[cut:]
        peer.tick()
    assert peer.failed is None, peer.connection.reason


def test_a_silent_client_is_asked_and_then_left() -> None:
    peer = Peer(LIMITS)
    peer.tick(1)
    assert peer.tick(59) == []
    asked = peer.tick(3)
    assert [(one.type, one.flags) for one in asked] == [(Type.PING, 0)]
    peer.tick(17)
    assert peer.failed is None
    peer.tick(5)
    assert peer.failed == Code.NO_ERROR


def test_a_client_that_answers_is_asked_again() -> None:
    peer = Peer(LIMITS)
    pings = 0
    for _ in range(300):
        for one in peer.tick():
            assert one.type == Type.PING
            pings += 1
            peer.send(ping(one.payload, ack=True))
    assert 4 <= pings <= 5
    assert peer.failed is None


def test_no_keepalive_when_it_is_off() -> None:
    peer = Peer(Limits(keepalive_seconds=0))
    assert peer.tick(1000) == []
    assert peer.failed is None


def test_an_idle_connection_says_goodbye() -> None:
    peer = Peer(Limits(idle_seconds=30, keepalive_seconds=0, drain_seconds=5))
    peer.open(1)
    peer.tick(100)
    assert not peer.reading.goaways, "a call is running"
    peer.send(rst_stream(1))
    peer.tick(40)
    assert peer.reading.goaways
    assert set(peer.reading.codes) == {Code.NO_ERROR}
    assert peer.connection.done


# ------------------------------------------------------------------------------------------------- goodbye


def test_a_graceful_goodbye() -> None:
    """RFC 9113 section 6.8: a promise for all that may be under way, a PING to learn what was, the true number."""
    peer = Peer(LIMITS)
    before = peer.open(1)
    peer.connection.drain(peer.now)
    goaway, asked = peer.collect()
    assert (goaway.type, goaway.payload[:8]) == (Type.GOAWAY, WINDOW_MAX.to_bytes(4) + bytes(4))
    assert (asked.type, asked.flags) == (Type.PING, 0)
    crossing = peer.open(3, end=True)
    peer.send(Frame(Type.PING, ACK, 0, asked.payload).encode())
    assert peer.reading.goaways[-1][:2] == (3, Code.NO_ERROR)
    assert peer.send(headers(5, HEAD)) == [Frame(Type.RST_STREAM, 0, 5, Code.REFUSED_STREAM.to_bytes(4))]
    crossing.answer()
    peer.send(data(1, message(b"m"), end=True))
    before.answer()
    peer.collect()
    assert [peer.reading.answer(stream).status for stream in (1, 3)] == [0, 0]
    assert peer.failed is None


def test_a_client_that_ignores_the_goodbye() -> None:
    peer = Peer(LIMITS)
    peer.open(1)
    peer.connection.drain(peer.now)
    peer.tick(4)
    peer.open(3)
    peer.tick(3)
    assert peer.reading.goaways[-1][0] == 3
    assert peer.send(headers(5, HEAD))[0].type == Type.RST_STREAM
    assert peer.streams[1].was_reset is None, "calls are finished, or cancelled by who drains"


def test_the_last_goodbye_takes_no_promise_back_and_makes_no_greater_one() -> None:
    peer = Peer(LIMITS)
    peer.open(1)
    peer.connection.drain(peer.now)
    peer.connection.drain(peer.now)
    assert len(peer.reading.goaways) <= 1
    peer.tick(7)
    peer.send(headers(5, HEAD))
    peer.send(ping(b"short"))
    assert peer.failed == Code.FRAME_SIZE_ERROR
    assert [last for last, _code, _debug in peer.reading.goaways] == [WINDOW_MAX, 1, 1]


def test_a_connection_without_streams_is_done_at_once_when_the_client_knows() -> None:
    peer = Peer(LIMITS)
    peer.connection.drain(peer.now)
    _goaway, asked = peer.collect()
    done = [peer.connection.done]
    peer.send(ping(asked.payload, ack=True))
    assert [*done, peer.connection.done] == [False, True]


def test_a_lost_connection_leaves_nothing() -> None:
    peer = Peer(LIMITS)
    peer.open(1).keeps = True
    peer.send(data(1, b"x" * 1000))
    peer.open(3, end=True).answer(b"x" * 100_000)
    peer.connection.lost()
    assert [peer.streams[stream].was_reset for stream in (1, 3)] == [Code.CANCEL] * 2
    assert not peer.connection.streams
    assert peer.connection.held == 0
    assert peer.connection.sender.pending_bytes == 0


def test_a_failed_connection_leaves_nothing() -> None:
    peer = Peer(Limits(connection_window=1 << 20, max_buffered=1, max_receive_message_length=1))
    peer.open(1).keeps = True
    peer.send(data(1, b"x" * 600_000))
    peer.open(3, end=True).answer(b"x" * 100_000)
    out = peer.send(ping(b"short"))
    assert out[-1].type == Type.GOAWAY
    assert not peer.connection.streams
    assert peer.connection.held == peer.connection.sender.pending_bytes == 0
    assert peer.tick(100) == []


def test_a_connection_that_fails_while_it_drains_says_its_last_word_last() -> None:
    """Both are due in the same tick: the end of the drain, and the end of patience."""
    peer = Peer(LIMITS, greet=False)
    peer.send(PREFACE[:3])
    peer.tick(6)
    peer.connection.drain(peer.now)
    peer.tick(6)
    assert peer.failed is not None
    assert peer.reading.codes[-1] == peer.failed


def test_a_drained_connection_may_still_fail_for_its_clients_fault() -> None:
    peer = Peer(LIMITS)
    peer.open(1)
    peer.connection.drain(peer.now)
    peer.send(ping(b"bad"))
    assert peer.failed == Code.FRAME_SIZE_ERROR
    assert peer.streams[1].was_reset is not None
    assert peer.reading.codes == [Code.NO_ERROR, Code.FRAME_SIZE_ERROR]
