"""Damaged answers: whatever a server says, however it is cut, the client's end neither raises nor keeps anything."""

import os
import random

import pytest

from tandemmq.common.grpc_transport.http2.limits import Limits
from tests.unit.grpc_transport.test_client_connection import HEAD, OK, Asked, Client
from tests.unit.grpc_transport.wire import (
    Setting,
    continuation,
    data,
    goaway,
    headers,
    literals,
    message,
    ping,
    rst_stream,
    settings,
    window_update,
)

ROUNDS = 2000
SEEDS = [
    [settings([(Setting.INITIAL_WINDOW_SIZE, 100_000)]), settings(ack=True)],
    [headers(1, HEAD), data(1, message(b"hello")), headers(1, OK, end=True)],
    [headers(3, HEAD), data(3, message(b"a") + message(b"b"), padding=5), rst_stream(3, 8)],
    [headers(5, HEAD, more=True), continuation(5, b""), headers(5, literals([(b"grpc-status", b"5")]), end=True)],
    [headers(7, literals([(b":status", b"404"), (b"content-length", b"0")]), end=True)],
    [window_update(0, 1000), window_update(9, 70_000), ping(), ping(ack=True)],
    [goaway(5, 0, b"bye")],
]


def damaged(script: bytes, dice: random.Random) -> bytes:
    """The script with a few bytes changed, dropped, doubled or made up."""
    broken = bytearray(script)
    for _ in range(dice.randrange(4)):
        at = dice.randrange(len(broken))
        what = dice.randrange(5)
        if what == 0:
            broken[at] = dice.randrange(256)
        elif what == 1:
            broken[at] ^= 1 << dice.randrange(8)
        elif what == 2:
            del broken[at : at + dice.randrange(20)]
        elif what == 3:
            broken[at:at] = broken[max(0, at - 30) : at]
        else:
            broken[at:at] = dice.randbytes(dice.randrange(20))
        if not broken:
            return b""
    return bytes(broken)


def play(said: bytes, cuts: list[int]) -> tuple[object, list[tuple[list[object], bytes]], bytes]:
    """What a client with five calls makes of it."""
    client = Client(Limits(max_header_list_size=1000), greeted=False)
    calls: list[Asked] = [client.ask(None if at % 2 else bytes(100)) for at in range(5)]
    written = client.output()
    for begin, end in zip([0, *cuts], [*cuts, len(said)], strict=True):
        client.connection.receive(said[begin:end])
        written += client.output()
    connection = client.connection
    outcome = connection.failed
    connection.gone = "the test is over"
    connection.lost()
    assert not connection.streams
    assert (connection.held, connection.sender.pending_bytes, connection.sender.ready) == (0, 0, {})
    assert all(call.closed for call in calls)
    return outcome, [(call.told, call.body) for call in calls], written


@pytest.mark.parametrize("part", range(4))
def test_damage_ends_calls_or_connections_and_nothing_else(part: int) -> None:
    seed = int(os.environ.get("TANDEM_SEED", "1")) * 4 + part
    dice = random.Random(seed)
    for at in range(ROUNDS // 4):
        script = b"".join(SEEDS[0] + [frame for frames in dice.sample(SEEDS[1:], 4) for frame in frames])
        said = damaged(script, dice) if at % 10 else script
        whole = play(said, [])
        cuts = sorted(dice.randrange(len(said) + 1) for _ in range(dice.randrange(6)))
        assert play(said, cuts) == whole, f"TANDEM_SEED={seed}: {said.hex()} cut at {cuts}"
