"""The reactor: busy connections are read and answered by it, and given back where something is the transport's."""

import asyncio
import os
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import grpc
import pytest

from tandemmq.common.grpc_transport import server as make_server
from tandemmq.common.grpc_transport.aio import lanes
from tandemmq.common.grpc_transport.aio.handlers import HELD
from tandemmq.store.compiled_core import core_problem
from tests.integration.grpc_transport.conftest import Certificates
from tests.integration.grpc_transport.hosting import OWN, hosted, until, within
from tests.integration.grpc_transport.wire import (
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    PREFACE,
    SETTINGS,
    WIDE,
    WINDOW_UPDATE,
    frame,
    header_block,
    message,
    settings,
)

pytestmark = pytest.mark.skipif(core_problem() != "", reason=core_problem() or "it is there")

HEAD = header_block(f"/{OWN}/unary")
LARGE = 15_000
FRAME_SIZE = 9


class Caller:
    """A connection whose bytes the test chooses."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.stream = -1
        self.seen = b""

    @classmethod
    async def to(cls, target: str) -> "Caller":
        host, _, port = target.rpartition(":")
        caller = cls(*await asyncio.open_connection(host, int(port)))
        caller.writer.write(PREFACE + settings() + frame(WINDOW_UPDATE, 0, 0, WIDE.to_bytes(4, "big")))
        await caller.come(frame(SETTINGS, 1, 0))
        caller.writer.write(frame(SETTINGS, 1, 0))
        return caller

    async def come(self, wanted: bytes) -> None:
        """Read until it has come; what stands before it is forgotten."""
        while wanted not in self.seen:
            data = await within(self.reader.read(1 << 16))
            assert data, "the connection has ended"
            self.seen += data
        self.seen = self.seen.partition(wanted)[2]

    def request(self, body: bytes) -> bytes:
        self.stream += 2
        head = frame(HEADERS, END_HEADERS, self.stream, HEAD)
        return head + frame(DATA, END_STREAM, self.stream, message(body))

    async def ask(self, body: bytes) -> None:
        """A call, and its answer."""
        self.writer.write(self.request(body))
        await self.come(message(b"direct " + body))

    @classmethod
    async def busy(cls, server: Any) -> "Caller":
        """One that the reactor reads."""
        caller = await cls.to(server.target)
        before = watched(server)
        for _ in range(3):
            await caller.ask(b"busy")
        assert watched(server) == before + 1
        return caller

    async def close(self) -> None:
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


class Direct:
    """Answers all but what begins with `h`; counts what it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.then: Callable[[bytes], None] = lambda _request: None
        self.answer: Callable[[bytes, Any], Any] = self.answer_plainly

    def __call__(self, request: bytes, call: Any) -> Any:
        self.asked += 1
        self.then(request)
        return self.answer(request, call)

    def answer_plainly(self, request: bytes, _call: Any) -> bytes | None:
        return None if request.startswith(b"h") else b"direct " + request

    def prepare(self, server: Any) -> None:
        server.add_direct_method(f"/{OWN}/unary", self)
        server.use_lanes()


async def handle(request: bytes, _context: Any) -> bytes:
    return b"direct " + request


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "READS_BEFORE", 1)
    monkeypatch.setattr(lanes, "LEAST_BUSY", 1)


def watched(server: Any) -> int:
    return int(server.server.lanes.reactor.watched)


def taken(server: Any) -> int:
    return int(server.server.lanes.taken)


def connections(server: Any) -> list[Any]:
    return list(server.server.protocols)


async def test_it_answers_connections_that_are_busy() -> None:
    direct = Direct()
    async with hosted("fast", unary=handle, prepare=direct.prepare) as server:
        callers = [await Caller.to(server.target) for _ in range(20)]
        for number in range(5):
            await asyncio.gather(*(caller.ask(b"%d of %d" % (number, at)) for at, caller in enumerate(callers)))
        assert watched(server) == 20
        assert direct.asked == 100
        assert taken(server) == 100
        for caller in callers:
            await caller.close()
        await until(lambda: not watched(server))
        await until(lambda: not connections(server))


async def test_few_connections_stay_the_transports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "LEAST_BUSY", 3)
    async with hosted("fast", unary=handle, prepare=Direct().prepare) as server:
        callers = [await Caller.to(server.target) for _ in range(2)]
        for number in range(40):
            for caller in callers:
                await caller.ask(b"%d" % number)
        assert watched(server) == 0
        for caller in callers:
            await caller.close()


async def test_all_that_a_connection_says_is_understood() -> None:
    """Frames in pieces, control frames, calls of the handler, and many calls in one read."""
    async with hosted("fast", unary=handle, prepare=Direct().prepare) as server:
        caller = await Caller.busy(server)
        data = caller.request(b"in pieces")
        for at in range(len(data)):
            caller.writer.write(data[at : at + 1])
            await asyncio.sleep(0)
        await caller.come(message(b"direct in pieces"))
        caller.writer.write(frame(PING, 0, 0, b"are you?"))
        await caller.come(frame(PING, 1, 0, b"are you?"))
        await caller.ask(b"handled")
        caller.writer.write(b"".join(caller.request(b"%d" % number) for number in range(300)))
        for number in range(300):
            await caller.come(message(b"direct %d" % number))
        await caller.ask(b"z" * LARGE)
        while not watched(server):  # what came in pieces is Python's for a while
            await caller.ask(b"and on")
        assert watched(server) == 1
        await caller.close()


async def test_answers_that_the_socket_does_not_take_come_whole_and_in_order() -> None:
    """Who reads nothing for a while gets all answers later: what is left of one goes by the transport."""
    direct = Direct()
    async with hosted("fast", unary=handle, prepare=direct.prepare) as server:
        caller = await Caller.busy(server)
        socket: Any = caller.writer.transport
        socket.pause_reading()
        count = 400
        for number in range(count):
            caller.writer.write(caller.request(b"%d " % number + b"a" * LARGE))
            await asyncio.sleep(0)
        (protocol,) = connections(server)
        await until(lambda: protocol._transport.get_write_buffer_size() > 0)
        socket.resume_reading()
        for number in range(count):
            await caller.come(message(b"direct %d " % number + b"a" * LARGE))
        await caller.ask(b"last")
        assert direct.asked > 1
        await caller.close()


async def test_a_caller_that_goes_in_the_middle_of_everything() -> None:
    async with hosted("fast", unary=handle, prepare=Direct().prepare) as server:
        staying = await Caller.busy(server)
        for number in range(30):
            going = await Caller.busy(server)
            going.writer.write(going.request(b"never read") + going.request(b"half")[: 3 + number])
            going.writer.transport.abort()
            await staying.ask(b"%d" % number)
            await until(lambda: watched(server) == 1)
        await until(lambda: len(connections(server)) == 1)
        assert watched(server) == 1
        await staying.close()


async def test_a_connection_that_fails_hears_why() -> None:
    async with hosted("fast", unary=handle, prepare=Direct().prepare) as server:
        caller = await Caller.busy(server)
        caller.writer.write(frame(DATA, 0, 0, b"of no stream"))
        while data := await within(caller.reader.read(1 << 16)):
            caller.seen += data
        assert frame(GOAWAY, 0, 0)[3:] in caller.seen, "GOAWAY, and then the end"
        await until(lambda: not watched(server))
        await caller.close()


async def test_a_server_that_stops_says_goodbye() -> None:
    async with hosted("fast", unary=handle, prepare=Direct().prepare) as server:
        caller = await Caller.busy(server)
        stopping = asyncio.ensure_future(server.server.stop(5))
        await caller.come(b"draining")
        caller.writer.write(frame(PING, 1, 0, b"draining"))
        while await within(caller.reader.read(1 << 16)):
            pass
        await within(stopping)
        assert watched(server) == 0
        await caller.close()


def say(caller: Caller, data: bytes) -> None:
    """Put it in the caller's socket now, not at the end of the turn."""
    assert os.write(caller.writer.get_extra_info("socket").fileno(), data) == len(data)


async def test_connections_that_always_have_more_do_not_keep_others_waiting() -> None:
    """More are ready than there is time for in a turn: those that were served come after those that were not."""
    direct, most = Direct(), 2000
    async with hosted("fast", unary=handle, prepare=direct.prepare) as server:
        eager = [await Caller.busy(server) for _ in range(8)]
        patient = await Caller.busy(server)

        def and_again(request: bytes) -> None:
            if request.startswith(b"eager"):
                time.sleep(0.0004)
                if direct.asked < most:
                    say(eager[int(request[5:])], eager[int(request[5:])].request(request))

        direct.then = and_again
        for number, caller in enumerate(eager):
            say(caller, caller.request(b"eager%d" % number))
        before = direct.asked
        await patient.ask(b"patient")
        assert direct.asked - before < 200
        await until(lambda: direct.asked >= most)
        for caller in [*eager, patient]:
            await caller.close()


async def test_a_connection_whose_short_way_raises_what_is_no_exception_is_broken_off() -> None:
    """As a transport does: nobody would answer what it has asked."""
    direct = Direct()

    def cancelled(request: bytes) -> None:
        if request == b"cancelled":
            raise asyncio.CancelledError

    direct.then = cancelled
    async with hosted("fast", unary=handle, prepare=direct.prepare) as server:
        caller, other = await Caller.busy(server), await Caller.busy(server)
        say(caller, caller.request(b"cancelled"))
        say(other, other.request(b"other"))
        await other.come(message(b"direct other"))
        with suppress(ConnectionResetError):
            assert not await within(caller.reader.read(1 << 16))
        await until(lambda: watched(server) == 1)
        for one in (caller, other):
            await one.close()


async def test_answers_that_were_held_come_whole_and_in_order() -> None:
    """Each leaves by the reactor as long as the socket takes all of it; the rest goes by the transport."""
    direct, held = Direct(), list[Any]()

    def hold(request: bytes, call: Any) -> Any:
        held.append((request, call))
        return HELD

    async with hosted("fast", unary=handle, prepare=direct.prepare) as server:
        caller = await Caller.busy(server)
        direct.answer = hold
        socket: Any = caller.writer.transport
        socket.pause_reading()
        (protocol,) = connections(server)
        count = 0
        while not protocol._transport.get_write_buffer_size():
            caller.writer.write(caller.request(b"%d " % count + b"a" * LARGE))
            await until(lambda: bool(held))
            request, call = held.pop()
            before = protocol.written
            call.answer_later(b"direct " + request)
            assert protocol.written > before + LARGE, "nothing else could leave with it"
            count += 1
        socket.resume_reading()
        for number in range(count):
            await caller.come(message(b"direct %d " % number + b"a" * LARGE))
        direct.answer = direct.answer_plainly
        await caller.ask(b"last")
        await caller.close()


async def test_an_answer_to_one_that_is_behind_does_not_read_on_for_it() -> None:
    """A short way wakes the held call of another connection, with more to read: that is for a turn of its own."""
    direct, held = Direct(), list[Any]()

    def hold_and_wake(request: bytes, call: Any) -> Any:
        if request == b"hold":
            held.append(call)
            return HELD
        if request == b"wake":
            held.pop().answer_later(b"direct woken")
        return b"direct " + request

    async with hosted("fast", unary=handle, prepare=direct.prepare) as server:
        behind, waking = await Caller.busy(server), await Caller.busy(server)
        direct.answer = hold_and_wake
        transport: Any = server.server
        transport.turns.slice_ends = lambda: 0.0
        say(behind, behind.request(b"hold") + b"".join(behind.request(b"%d" % number) for number in range(5)))
        first, second = waking.request(b"wake"), waking.request(b"second")
        begins = FRAME_SIZE + len(HEAD)
        say(waking, first[:begins] + second[:begins] + first[begins:] + second[begins:])
        await waking.come(message(b"direct wake"))
        await waking.come(message(b"direct second"))
        await behind.come(message(b"direct 4"))
        assert not held
        for caller in (behind, waking):
            await caller.close()


async def test_tls_stays_the_transports(certificates: Certificates) -> None:
    """Bytes of its socket are not those of the connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server, certificates.server_key)
    direct, server = Direct(), make_server()
    handlers: dict[str, Any] = {"unary": grpc.unary_unary_rpc_method_handler(handle)}
    server.add_registered_method_handlers(OWN, handlers)
    direct.prepare(server)
    port = server.add_secure_port("localhost:0", context)
    await server.start()
    credentials = grpc.ssl_channel_credentials(certificates.authority.read_bytes())
    async with grpc.aio.secure_channel(f"localhost:{port}", credentials) as channel:
        ask: Any = channel.unary_unary(f"/{OWN}/unary")
        for number in range(5):
            assert await within(ask(b"%d" % number)) == b"direct %d" % number
    assert server.lanes is not None
    assert server.lanes.reactor.watched == 0
    await server.stop(1)
