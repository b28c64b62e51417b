"""Nothing of a connection stays behind when it is gone: neither its objects, nor its calls, tasks and timers."""

import asyncio
import gc
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tandemmq.common.grpc_transport.aio.context import CallContext
from tandemmq.common.grpc_transport.aio.protocol import Protocol
from tandemmq.common.grpc_transport.http2.connection import Connection
from tandemmq.common.grpc_transport.http2.stream import Stream
from tests.campaigns import in_campaigns
from tests.faults.harness import SEED
from tests.faults.transport_mutations import Mutator
from tests.faults.transport_under_fire import attack, attack_with
from tests.grpc_probe import Probe, add_probe, make_server
from tests.unit.grpc_transport import wire
from tests.unit.grpc_transport.wire import Setting, data, headers, literals, message, request_fields

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

KINDS = (Protocol, Connection, Stream, CallContext)
PATIENCE = 60.0
FOR_EVER = b"99999999H"


class Here:
    """A server in this process, which can be asked what is left in memory."""

    def __init__(self, port: int) -> None:
        self.port = port


@pytest.fixture(autouse=True)
def _nothing_is_logged() -> Iterator[None]:
    """pytest keeps log records, and they keep the frames of what a handler raised."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@asynccontextmanager
async def served() -> AsyncIterator[Any]:
    server = make_server("fast")
    add_probe(Probe(), server)
    here = Here(server.add_insecure_port("127.0.0.1:0"))
    await server.start()
    try:
        yield here
    finally:
        await server.stop(None)


def alive() -> list[object]:
    gc.collect()
    return [found for found in gc.get_objects() if isinstance(found, KINDS)]


async def until_nothing_is_left(before: list[object]) -> None:
    """A connection that failed lingers for a second; then it must be gone. `before`: what other tests have left."""
    known = set(map(id, before))  # these cannot become the ids of others: `before` keeps its objects
    deadline = time.monotonic() + PATIENCE
    while left := Counter(type(found).__name__ for found in alive() if id(found) not in known):
        assert time.monotonic() < deadline, left
        await asyncio.sleep(0.1)


def opening(method: str, *fields: tuple[bytes, bytes], timeout: bytes | None = None, window: int = 65_535) -> bytes:
    begun = wire.hello([(Setting.INITIAL_WINDOW_SIZE, window)]) + wire.settings(ack=True)
    return begun + headers(1, literals(request_fields(method, *fields, timeout=timeout)))


BODY = data(1, message(b"body"), end=True)
ENDINGS = {
    "an answer": opening("Echo") + BODY,
    "an unknown method": opening("Nowhere") + BODY,
    "an unknown encoding": opening("Echo", (b"grpc-encoding", b"snappy")) + BODY,
    "a bad timeout": opening("Echo", timeout=b"soon") + BODY,
    "a bad -bin value": opening("Mirror", (b"x-bin", b"*")) + BODY,
    "no gRPC": opening("Echo", (b"content-length", b"9")) + BODY,
    "a handler that waits": opening("Wait", timeout=FOR_EVER) + BODY,
    "a handler that is cancelled": opening("Wait", timeout=FOR_EVER) + BODY + wire.rst_stream(1),
    "a request that does not end": opening("Echo", timeout=FOR_EVER) + BODY[:12],
    "a stream that does not end": opening("Converse", timeout=FOR_EVER) + data(1, message(b"body")),
    "an answer that cannot leave": opening("Echo", timeout=FOR_EVER, window=0) + BODY,
    "and is given up": opening("Echo", timeout=FOR_EVER, window=0) + BODY + wire.rst_stream(1),
    "and leaves at last": opening("Echo", timeout=FOR_EVER, window=0) + BODY + wire.window_update(1, 1000),
    "answers that nobody takes": opening("Drip", timeout=FOR_EVER, window=0) + BODY,
    "a fault": opening("Converse", timeout=FOR_EVER) + data(1, message(b"body")) + wire.ping(b"bad"),
    "a deadline": opening("Wait", timeout=b"1m") + BODY,
}


QUICKLY_SHOWN = ("an answer", "a handler that waits", "an answer that cannot leave", "a fault")


@pytest.mark.parametrize(
    "ending", [*QUICKLY_SHOWN, *in_campaigns(*(one for one in ENDINGS if one not in QUICKLY_SHOWN))]
)
async def test_whatever_ends_a_connection(ending: str) -> None:
    before = alive()
    async with served() as here:
        for at in range(10):
            await attack(here, [ENDINGS[ending]], abort=bool(at % 2))
        await until_nothing_is_left(before)


@pytest.mark.slow
async def test_damaged_connections() -> None:
    before = alive()
    async with served() as here:
        await attack_with(here, Mutator(SEED), 0, 600)
        await until_nothing_is_left(before)
