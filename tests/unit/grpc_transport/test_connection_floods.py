"""Floods: what costs a client nothing is bounded, and what an honest client does is not; RFC 9113 section 10.5."""

from collections.abc import Callable

import pytest

from tandemmq.common.grpc_transport.http2.limits import Limits
from tests.unit.grpc_transport.peer import Peer
from tests.unit.grpc_transport.wire import (
    Code,
    Setting,
    Type,
    call,
    continuation,
    data,
    frame,
    headers,
    literals,
    message,
    ping,
    priority,
    request_fields,
    rst_stream,
    settings,
    window_update,
)

HEAD = literals(request_fields())
MALFORMED = literals([*request_fields(), (b"connection", b"close")])
TOO_LARGE = literals([*request_fields(), (b"x", b"y" * 17_000)])
TIGHT = Limits(
    overhead_per_second=100,
    settings_per_second=10,
    resets_burst=100,
    resets_per_second=10,
    max_concurrent_streams=50,
)

FLOODS: dict[str, Callable[[int], bytes]] = {
    "PING": lambda _at: ping(),
    "PING ack": lambda _at: ping(ack=True),
    "SETTINGS": lambda _at: settings(),
    "SETTINGS ack": lambda _at: settings(ack=True),
    "SETTINGS with windows": lambda at: settings([(Setting.INITIAL_WINDOW_SIZE, at)]),
    "PRIORITY": lambda _at: priority(1),
    "GOAWAY": lambda _at: frame(Type.GOAWAY, 0, 0, bytes(8)),
    "unknown": lambda _at: frame(0xEE),
    "empty DATA": lambda _at: data(1),
    "DATA of padding": lambda _at: data(1, padding=9),
    "connection WINDOW_UPDATE": lambda _at: window_update(0, 1),
    "stream WINDOW_UPDATE": lambda _at: window_update(1, 1),
    "closed stream WINDOW_UPDATE": lambda _at: window_update(3, 1),
    "RST_STREAM on a closed stream": lambda _at: rst_stream(3),
    "rapid reset (CVE-2023-44487)": lambda at: headers(5 + 2 * at, HEAD) + rst_stream(5 + 2 * at),
    "made you reset (CVE-2025-8671)": lambda at: headers(5 + 2 * at, HEAD) + window_update(5 + 2 * at, 0),
    "made you reset by DATA": lambda at: headers(5 + 2 * at, HEAD, end=True) + data(5 + 2 * at, b"x"),
    "made you reset by HEADERS": lambda at: headers(5 + 2 * at, HEAD, end=True) + headers(5 + 2 * at, HEAD, end=True),
    "made you reset by PRIORITY": lambda at: headers(5 + 2 * at, HEAD) + priority(5 + 2 * at, 5 + 2 * at),
    "malformed requests": lambda at: headers(5 + 2 * at, MALFORMED),
    "header lists that are too large": lambda at: headers(5 + 2 * at, TOO_LARGE),
    "streams over the limit": lambda at: headers(5 + 2 * at, HEAD),
    "HEADERS on a stream that we reset": lambda _at: headers(5, MALFORMED),
}


def flooded(limits: Limits) -> Peer:
    peer = Peer(limits)
    peer.open(1)
    peer.open(3, end=True).answer()
    peer.collect()
    return peer


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_ends_the_connection(name: str) -> None:
    peer = flooded(TIGHT)
    for at in range(1000):
        peer.send(FLOODS[name](at))
        if peer.failed is not None:
            break
    assert peer.failed == Code.ENHANCE_YOUR_CALM
    assert not peer.connection.streams


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_in_one_read_ends_the_connection(name: str) -> None:
    peer = flooded(TIGHT)
    peer.send(*[FLOODS[name](at) for at in range(1000)])
    assert peer.failed == Code.ENHANCE_YOUR_CALM


@pytest.mark.slow
@pytest.mark.parametrize("name", FLOODS)
def test_the_defaults_know_floods_too(name: str) -> None:
    peer = flooded(Limits())
    for at in range(0, 60_000, 1000):
        peer.send(*[FLOODS[name](at + more) for more in range(1000)])
        if peer.failed is not None:
            break
    assert peer.failed == Code.ENHANCE_YOUR_CALM


@pytest.mark.parametrize("name", ["PING", "PRIORITY", "unknown", "empty DATA", "connection WINDOW_UPDATE", "SETTINGS"])
def test_the_same_frames_in_their_time_are_no_flood(name: str) -> None:
    peer = flooded(TIGHT)
    each_second = 7 if name == "SETTINGS" else 90
    for _ in range(20):
        peer.send(*[FLOODS[name](0)] * each_second)
        peer.send(ping(b"ack mine", ack=True))
        peer.tick()
    assert peer.failed is None


def test_cancellations_in_their_time_are_no_flood() -> None:
    peer = flooded(TIGHT)
    for second in range(60):
        for stream in range(18 * second + 5, 18 * second + 23, 2):
            peer.send(headers(stream, HEAD), rst_stream(stream))
        peer.tick()
    assert peer.failed is None


def test_all_streams_of_a_connection_may_be_cancelled_at_once() -> None:
    peer = Peer()
    count = peer.limits.max_concurrent_streams
    peer.send(*[headers(1 + 2 * at, HEAD) for at in range(count)])
    assert len(peer.connection.streams) == count
    peer.send(*[rst_stream(1 + 2 * at) for at in range(count)])
    assert peer.failed is None
    assert not peer.connection.streams


def test_a_client_that_answers_each_frame_with_two_updates_is_no_flood() -> None:
    """What grpcio does when it reads fast: one for the stream, one for the connection."""
    peer = Peer(TIGHT)
    for stream in range(1, 4001, 2):
        peer.open(stream, end=True).answer(b"x" * 100)
        peer.send(window_update(0, 105), window_update(stream, 105))
        assert peer.failed is None


@pytest.mark.slow
def test_a_busy_client_is_no_flood() -> None:
    """Small messages, each in frames of its own, on many streams, without a tick between."""
    peer = Peer(TIGHT)
    peer.send(window_update(0, 1 << 30))
    for stream in range(1, 20_001, 2):
        peer.send(call(stream, b"m"))
        peer.streams[stream].answer()
        peer.collect()
    assert peer.failed is None


# ------------------------------------------------------------------------------------------------- header blocks


def test_an_endless_header_block_is_cut_off() -> None:
    """CVE-2024-27316 and its kin: CONTINUATION after CONTINUATION, never END_HEADERS."""
    for part in (b"", b"\0", b"\x20" * 60, b"\0\1x\1y" * 100, b"\0" + b"x" * 16_000):
        peer = Peer()
        peer.send(headers(1, HEAD, more=True))
        sent = 0
        while peer.failed is None:
            peer.send(continuation(1, part, more=True))
            sent += 9 + len(part)
            assert sent < 1 << 20
        assert peer.failed == Code.ENHANCE_YOUR_CALM


@pytest.mark.parametrize("end", [True, False])
def test_a_huge_header_block_is_not_decoded(end: bool) -> None:
    """However it is cut: a megabyte of one-byte fields must cost the client more than us."""
    block = HEAD + b"\x90" * 900_000
    outcomes = set()
    for size in (1 << 20, 256_000, 16_384, 5000):
        peer = Peer()
        sent = headers(1, block, end=end)
        peer.send_each(sent[at : at + size] for at in range(0, len(sent), size))
        assert not peer.streams
        outcomes.add(peer.failed)
    assert outcomes == {Code.ENHANCE_YOUR_CALM}


def test_a_block_may_come_in_many_parts() -> None:
    peer = Peer()
    peer.send(headers(1, HEAD[:1], more=True))
    peer.send(*[continuation(1, HEAD[at : at + 1], more=True) for at in range(1, len(HEAD) - 1)])
    peer.send(continuation(1, HEAD[-1:]), data(1, message(b"m"), end=True))
    assert peer.streams[1].whole
    assert peer.failed is None


def test_a_settings_frame_has_few_entries() -> None:
    """Each change of the window touches every stream: thousands in one frame are an attack."""
    peer = Peer()
    peer.send(*[headers(1 + 2 * at, HEAD) for at in range(100)])
    peer.send(settings([(Setting.INITIAL_WINDOW_SIZE, at) for at in range(2000)]))
    assert peer.failed == Code.ENHANCE_YOUR_CALM
