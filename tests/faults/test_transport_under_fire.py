"""A real server process under damaged traffic and abuse: other clients never notice, and its memory stays bounded."""

import asyncio
import socket
import struct
import tempfile
import time
from collections.abc import Iterator
from typing import IO

import pytest

from tests.faults.harness import SEED
from tests.faults.transport_mutations import Mutator
from tests.faults.transport_probe import PATIENCE, RawClient, Served, serving
from tests.faults.transport_recording import record
from tests.faults.transport_under_fire import check_complaints, healthy, under_fire, until_quiet
from tests.unit.grpc_transport import wire
from tests.unit.grpc_transport.wire import Setting, data, headers, literals, message, request_fields

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

INPUTS = 3000
OFFER_SECONDS = 4.0
"""How long a greedy client goes on when the server takes no more."""
MEBIBYTE = 1 << 20
BOUND = (64 + 16 + 64) * MEBIBYTE
"""What one connection may make it hold, as Limits states it: max_buffered, the connection's window, max_pending."""


@pytest.fixture
def complaints() -> Iterator[IO[str]]:
    with tempfile.TemporaryFile("w+") as file:
        yield file


@pytest.fixture
def fast(complaints: IO[str]) -> Iterator[Served]:
    """Our server. It must have no reason to complain but handlers that raised."""
    with serving("fast", complaints) as served:
        yield served
    check_complaints(complaints)


def test_damaged_traffic_hurts_nobody_else(fast: Served) -> None:
    recorded = record()
    asyncio.run(under_fire(fast, Mutator(SEED, recorded), INPUTS))


# ------------------------------------------------------------------------------------------------- greed


def push(client: RawClient, sent: bytes, limit: int) -> int:
    """Sends the same again and again until the server reads no more, or has had `limit` bytes; never reads."""
    client.socket.setblocking(False)
    total, last = 0, time.monotonic()
    while total < limit and time.monotonic() - last < 0.5:
        try:
            total += client.socket.send(sent[total % len(sent) :])
            last = time.monotonic()
        except BlockingIOError:
            time.sleep(0.005)
        except ConnectionError:
            break
    return total


def greet(served: Served, pairs: list[tuple[int, int]] | None = None) -> RawClient:
    client = RawClient(served)
    client.send(wire.hello(pairs or []), wire.settings(ack=True))
    deadline = time.monotonic() + PATIENCE
    while client.reading.settings is None:
        assert client.read_once(deadline)
    return client


def unread(method: str, count: int, body: bytes, *, end: bool = True, first: int = 1) -> bytes:
    block = literals(request_fields(method))
    streams = range(first, first + 2 * count, 2)
    return b"".join(headers(stream, block) + data(stream, message(body), end=end) for stream in streams)


def test_answers_that_nobody_reads(fast: Served) -> None:
    """Trailers-only answers, then echoes: the server stops reading when its socket is full."""
    for method, body in (("Nowhere", b""), ("Echo", b"x" * 10)):
        before = fast.memory
        client = greet(fast, [(Setting.INITIAL_WINDOW_SIZE, wire.WINDOW_MAX)])
        client.send(wire.window_update(0, 1 << 30))
        push(client, unread(method, 200_000, body), 1 << 30)
        assert fast.memory - before < 64 * MEBIBYTE
        client.close()


def test_pings_whose_answers_nobody_reads(fast: Served) -> None:
    before = fast.memory
    client = greet(fast)
    push(client, wire.ping() * 10_000, 64 * MEBIBYTE)
    assert fast.memory - before < 16 * MEBIBYTE
    client.close()


def offer(
    client: RawClient,
    method: str,
    body: bytes,
    streams: range,
    *,
    end: bool = False,
    used: int = 0,
    patience: float = 0.2,
) -> int:
    """Sends `body` on each of these streams, as far as the server's windows allow; the bytes that it took.

    `used`: bytes of the connection's window that were sent before. `patience`: seconds until a server whose windows are
    shut is taken to want no more.
    """
    begun, reading, sent = time.monotonic(), client.reading, used
    block = literals(request_fields(method))
    for stream in streams:
        client.send(headers(stream, block))
        on_stream = 0
        while on_stream < len(body) and not is_over(client, stream):
            window = min(
                wire.WINDOW + reading.updates.get(0, 0) - sent,
                MEBIBYTE + reading.updates.get(stream, 0) - on_stream,
                1 << 18,
            )
            if window > 0:
                part = body[on_stream : on_stream + window]
                on_stream += len(part)
                sent += len(part)
                client.send(data(stream, part, end=end and on_stream == len(body)))
            elif not client.read_once(time.monotonic() + patience):
                break
        if client.closed or time.monotonic() - begun > OFFER_SECONDS:
            break
    return sent


@pytest.mark.parametrize(
    ("method", "size", "lacking"),
    [
        pytest.param("Echo", 3 * MEBIBYTE, 0, id="whole unary requests that do not end"),
        pytest.param("Echo", 3 * MEBIBYTE, 1, id="unary requests that are not whole"),
        pytest.param("Collect", 3 * MEBIBYTE, 1, id="messages that are not whole"),
        pytest.param("Converse", 2, 0, id="small messages that nobody reads"),
        pytest.param("Converse", 200_000, 0, id="large messages that nobody reads"),
    ],
)
async def test_what_one_connection_can_make_the_server_hold(fast: Served, method: str, size: int, lacking: int) -> None:
    """300 MiB are offered and no answer is taken: what is kept is bounded. Others are served meanwhile."""
    files, before = fast.open_files, fast.memory
    body = wire.message(b"x" * size, length=size + lacking)
    async with healthy(fast) as done:
        client = greet(fast, [(Setting.INITIAL_WINDOW_SIZE, 0)])
        offered = body * (3 * MEBIBYTE // len(body))
        await asyncio.to_thread(offer, client, method, offered, range(1, 201, 2))
        growth = fast.memory - before
        so_far = done[0]
        while done[0] < so_far + 4:
            await asyncio.sleep(0.01)
        client.close()
    assert growth < BOUND
    await until_quiet(fast, files + 2)


async def test_requests_whose_answers_cannot_leave(fast: Served) -> None:
    """The client opens no window: nothing is computed for it, and no request is kept without bound."""
    files, before = fast.open_files, fast.memory
    client = greet(fast)
    first = unread("Repeat", 1, b"1:65535")
    client.send(first)
    await asyncio.to_thread(
        offer, client, "Echo", message(b"x" * 3 * MEBIBYTE), range(3, 203, 2), end=True, used=len(first)
    )
    growth = fast.memory - before
    async with healthy(fast) as done:
        while done[0] < 4:
            await asyncio.sleep(0.01)
    client.close()
    assert growth < BOUND
    await until_quiet(fast, files + 2)


def is_over(client: RawClient, stream: int) -> bool:
    answer = client.reading.answers.get(stream)
    return answer is not None and (answer.ended or answer.reset is not None)


async def test_requests_that_are_cancelled_before_their_turn(fast: Served) -> None:
    """As above, and each is reset: nothing of it may stay."""
    files, before = fast.open_files, fast.memory
    client = greet(fast)
    used = len(first := unread("Repeat", 1, b"1:65535"))
    client.send(first)
    for stream in range(3, 203, 2):
        body = message(b"x" * 3 * MEBIBYTE)
        used = await asyncio.to_thread(
            offer, client, "Echo", body, range(stream, stream + 1), end=True, used=used, patience=PATIENCE
        )
        client.send(wire.rst_stream(stream))
    client.send(wire.ping())
    await asyncio.to_thread(client.read_once, time.monotonic() + PATIENCE)
    growth = fast.memory - before
    client.close()
    assert used > 100 * MEBIBYTE
    assert growth < BOUND
    await until_quiet(fast, files + 2)


async def test_bombs_that_nobody_reads(fast: Served) -> None:
    """Half a mebibyte of messages that would be half a gibibyte when decompressed."""
    files, before = fast.open_files, fast.memory
    bomb = message(bytes(4 * MEBIBYTE), zipped=True)
    client = greet(fast, [(Setting.INITIAL_WINDOW_SIZE, 0)])
    client.send(headers(1, literals(request_fields("Converse", (b"grpc-encoding", b"gzip")))))
    client.send(*[data(1, bomb * 3)] * 40)
    client.send(wire.ping())
    while not client.reading.pongs:
        assert await asyncio.to_thread(client.read_once, time.monotonic() + 3 * PATIENCE)
    growth = fast.memory - before
    client.close()
    assert growth < BOUND
    await until_quiet(fast, files + 2)


async def test_endless_answers_that_nobody_reads(fast: Served) -> None:
    """A thousand Drips and a client that opens no window, then one that does not read its socket."""
    files, before = fast.open_files, fast.memory
    shut = greet(fast, [(Setting.INITIAL_WINDOW_SIZE, 0)])
    shut.send(unread("Drip", 1000, b""))
    wide = greet(fast, [(Setting.INITIAL_WINDOW_SIZE, wire.WINDOW_MAX)])
    wide.send(wire.window_update(0, 1 << 30), unread("Drip", 1000, b""))
    async with healthy(fast) as done:
        while done[0] < 100:
            await asyncio.sleep(0.01)
        assert fast.memory - before < BOUND
    shut.close()
    wide.close()
    await until_quiet(fast, files + 2)


async def test_connections_that_say_nothing(fast: Served) -> None:
    files, before = fast.open_files, fast.memory
    silent = [fast.connect() for _ in range(300)]
    for at, one in enumerate(silent):
        one.sendall(wire.hello()[: at % 34])
    async with healthy(fast) as done:
        while done[0] < 20:
            await asyncio.sleep(0.01)
    assert fast.memory - before < 300 * 100 * 1024
    for one in silent:
        one.close()
    await until_quiet(fast, files + 2)


async def test_clients_that_leave_at_once(fast: Served) -> None:
    """Reset before the server has even accepted them, in all states of an introduction."""
    files = fast.open_files
    sent = wire.hello() + wire.settings(ack=True) + unread("Echo", 3, b"x") + unread("Drip", 3, b"", first=7)
    for at in range(400):
        client = fast.connect()
        client.sendall(sent[: at % 40 * len(sent) // 39])
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
    await until_quiet(fast, files + 2)
