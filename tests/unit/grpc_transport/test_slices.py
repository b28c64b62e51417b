"""Reading in slices: whoever sends much is read a few frames at a time, and what comes of it is the same."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemmq.common.grpc_transport import Limits
from tandemmq.common.grpc_transport.http2.errors import ErrorCode
from tests.unit.grpc_transport.lane_kit import One, run_by_hand
from tests.unit.grpc_transport.peer import Peer
from tests.unit.grpc_transport.wire import (
    call,
    data,
    headers,
    hello,
    literals,
    message,
    ping,
    request_fields,
    rst_stream,
)

HEAD = literals(request_fields())


def frames() -> bytes:
    """Calls, some of them cancelled, some in parts."""
    parts = [call(stream, b"m%d" % stream) for stream in range(1, 40, 2)]
    parts += [
        headers(41, HEAD),
        data(41, message(b"x" * 100)[:50]),
        ping(),
        data(41, message(b"x" * 100)[50:], end=True),
    ]
    parts += [headers(43, HEAD), rst_stream(43), headers(45, HEAD)]
    return b"".join(parts)


def outcome(peer: Peer) -> list[tuple[int, bytes, bool, int | None]]:
    return [(at, one.body, one.whole, one.was_reset) for at, one in sorted(peer.streams.items())]


@pytest.mark.slow
@given(st.lists(st.booleans(), max_size=60), st.integers(1, 400))
def test_pauses_change_nothing(pauses: list[bool], cut: int) -> None:
    whole, sliced = Peer(), Peer()
    whole.send(frames())
    looks = iter(pauses)
    sliced.connection.reader.enough = lambda: next(looks, False)
    sent = frames()
    for at in range(0, len(sent), cut):
        sliced.send(sent[at : at + cut])
    while sliced.connection.reader.behind:
        sliced.connection.receive(b"")
    assert sliced.failed is None
    assert outcome(sliced) == outcome(whole)


def test_who_sends_much_is_stopped() -> None:
    peer = Peer()
    peer.connection.reader.enough = lambda: True
    peer.send(frames())
    begun = len(peer.streams)
    assert peer.connection.reader.behind
    assert 0 < begun < 5
    assert peer.connection.reader.unread > 0, "what waits is counted"
    peer.connection.receive(b"")
    assert len(peer.streams) > begun


def test_who_fails_while_more_waits_is_not_looked_at_in_each_turn() -> None:
    """Until its socket is closed, which a peer that reads nothing can put off for seconds."""

    async def go() -> None:
        one = One(Limits(handshake_seconds=2), lane=False, enough=lambda: True)
        one.protocol.data_received(hello() + frames())
        assert one.connection.reader.behind
        for _ in range(3):
            one.tick()
        assert one.connection.failed is ErrorCode.SETTINGS_TIMEOUT
        for _ in range(3):
            await asyncio.sleep(0)
        assert not one.protocol._scheduled
        assert one.protocol not in one.server.turns.lagging
        one.protocol.connection_lost(None)

    run_by_hand(go())
