"""The short way of a unary method: what it answers, what it leaves to the handler, and what becomes of its faults."""

import asyncio
import struct
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from tandemmq.common.grpc_transport import HELD, DirectCall, HeldCall, Server, channel, framed
from tandemmq.common.grpc_transport.aio import lanes
from tandemmq.common.grpc_transport.http2.frames import PING, SETTINGS, WINDOW_UPDATE
from tandemmq.store.compiled_core import core_problem
from tests.integration.grpc_transport.hosting import OWN, PATIENCE, failure, hosted, until, within
from tests.integration.grpc_transport.wire import INITIAL_WINDOW_SIZE, frame, wired

PATH = f"/{OWN}/unary"
_NEEDS_CORE = pytest.mark.skipif(core_problem() != "", reason="the core is not built")


class Direct:
    """Answers what begins with `d`."""

    by_lane = False
    """Whether connections have one."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.peers: set[str] = set()
        self.held: list[tuple[bytes, DirectCall]] = []
        self.sent_along: list[Any] = []

    def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
        self.asked.append(message)
        self.sent_along.append(dict(call.invocation_metadata()).get("who"))
        self.peers.add(call.peer())
        if message == b"broken":
            raise ValueError("it broke")
        if message.startswith(b"later"):
            self.held.append((message, call))
            return HELD
        return b"direct " + message if message.startswith(b"d") else None

    def answer_all(self) -> None:
        for message, call in self.held:
            assert dict(call.invocation_metadata()).get("who") == self.sent_along[self.asked.index(message)]
            call.answer_later(b"at last " + message)
        self.held.clear()

    def prepare(self, server: Any) -> None:
        server.add_direct_method(PATH, self)
        if self.by_lane:
            server.use_lanes()


@pytest.fixture(
    autouse=True,
    params=["python", pytest.param("lane", marks=_NEEDS_CORE), pytest.param("reactor", marks=_NEEDS_CORE)],
)
def _all_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Direct, "by_lane", request.param != "python")
    if request.param == "reactor":
        monkeypatch.setattr(lanes, "READS_BEFORE", 1)
        monkeypatch.setattr(lanes, "LEAST_BUSY", 1)


async def handle(request: bytes, _context: Any) -> bytes:
    return b"handled " + request


async def test_what_it_does_not_answer_is_the_handlers() -> None:
    direct = Direct()
    async with hosted("fast", unary=handle, prepare=direct.prepare) as server:
        answers = await within(asyncio.gather(*(server.unary(request) for request in (b"d1", b"h", b"d2", b""))))
        assert answers == [b"direct d1", b"handled h", b"direct d2", b"handled "]
        assert sorted(direct.asked) == [b"", b"d1", b"d2", b"h"]
        assert all(peer.startswith("ipv4:127.0.0.1:") for peer in direct.peers)


async def test_where_it_fails_nobody_tries_again(caplog: pytest.LogCaptureFixture) -> None:
    direct = Direct()
    handled: list[bytes] = []

    async def noted(request: bytes, _context: Any) -> bytes:
        handled.append(request)
        return b""

    async with hosted("fast", unary=noted, prepare=direct.prepare) as server:
        assert (await failure(server.unary(b"broken"))).code() is grpc.StatusCode.UNKNOWN
        assert await within(server.unary(b"d")) == b"direct d"
        assert handled == []
    assert "it broke" in caplog.text


async def test_answers_that_come_later() -> None:
    direct = Direct()
    async with hosted("fast", unary=handle, prepare=direct.prepare) as server:
        calls = [server.unary(b"later %d" % number) for number in range(3)]
        await until(lambda: len(direct.held) == 3)
        assert await within(server.unary(b"d")) == b"direct d", "others are not held up"
        direct.answer_all()
        assert await within(asyncio.gather(*calls)) == [b"at last later %d" % number for number in range(3)]


async def test_it_sees_what_the_caller_sent_along() -> None:
    direct = Direct()
    async with hosted("fast", unary=handle, prepare=direct.prepare) as server:
        for number in range(3):
            assert await within(server.unary(b"d", metadata=(("who", f"caller {number}"),))) == b"direct d"
        held = server.unary(b"later", metadata=(("who", "a fourth"),))
        await until(lambda: len(direct.held) == 1)
        direct.answer_all()
        assert await within(held) == b"at last later"
    assert direct.sent_along == ["caller 0", "caller 1", "caller 2", "a fourth"]


async def test_who_waits_no_more_is_not_answered() -> None:
    """A deadline that passes, a caller that cancels, one that is gone: the late answer does nothing."""
    direct = Direct()
    async with hosted("fast", unary=handle, prepare=direct.prepare) as server:
        late, seconds = None, 0.05
        while not direct.held:  # on a slow machine the deadline may pass before the call is there
            late = await failure(server.unary(b"later", timeout=seconds))
            seconds *= 2
        assert late is not None
        assert late.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        cancelled = server.unary(b"later")
        await until(lambda: len(direct.held) == 2)
        cancelled.cancel()
        async with wired(server.target) as wire:
            wire.call(PATH, b"later")
            await until(lambda: len(direct.held) == 3)
        ours = server.server
        assert isinstance(ours, Server)
        await until(lambda: ours.active == 0)
        direct.answer_all()
        assert await within(server.unary(b"d")) == b"direct d"


async def test_a_held_call_can_be_handed_over_to_the_handler() -> None:
    direct = Direct()

    async def slowly(request: bytes, _context: Any) -> bytes:
        await asyncio.sleep(0)
        return b"handled " + request

    async with hosted("fast", unary=slowly, prepare=direct.prepare) as server:
        calls = [server.unary(b"later %d" % number, timeout=30) for number in range(3)]
        cancelled = server.unary(b"later")
        await until(lambda: len(direct.held) == 4)
        ours = server.server
        assert isinstance(ours, Server)
        assert [call.gone for _, call in direct.held] == [False] * 4
        assert all(call.has_room for _, call in direct.held)
        cancelled.cancel()
        await until(lambda: ours.active == 3)
        assert [call.gone for message, call in direct.held if message == b"later"] == [True]
        for message, call in direct.held:
            call.hand_over(message)
        assert await within(asyncio.gather(*calls)) == [b"handled later %d" % number for number in range(3)]
        assert await within(server.unary(b"d")) == b"direct d"
        await until(lambda: ours.active == 0)


async def test_a_held_call_has_no_room_while_another_answer_waits_for_the_peer() -> None:
    direct = Direct()
    async with (
        hosted("fast", unary=handle, prepare=direct.prepare) as server,
        wired(server.target, (INITIAL_WINDOW_SIZE, 1 << 20), window=0) as wire,
    ):
        wire.write(frame(SETTINGS, 1, 0))
        await wire.answer(wire.call(PATH, b"d"))
        held = wire.call(PATH, b"later")
        await until(lambda: len(direct.held) == 1)
        ((_, call),) = direct.held
        assert taken(server.server) == (2 if Direct.by_lane else 0)
        assert call.has_room
        large = wire.call(PATH, b"d" * 70_000)
        await until(lambda: not call.has_room)
        wire.write(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 20)))
        await wire.answer(large)
        assert call.has_room
        direct.answer_all()
        assert (await wire.answer(held)).messages == [b"at last later"]


async def test_a_held_call_can_end_with_an_error() -> None:
    direct = Direct()
    async with hosted("fast", unary=handle, prepare=direct.prepare) as server:
        call, other = server.unary(b"later"), server.unary(b"later too", timeout=30)
        await until(lambda: len(direct.held) == 2)
        for _, held in direct.held:
            held.end_with(grpc.StatusCode.DATA_LOSS, "it is lost", (("kind", "LOST"),))
            held.end_with(grpc.StatusCode.ABORTED, "nobody hears of it", ())
            held.answer_later(b"nor of that")
        for one in (call, other):
            failed = await failure(one)
            assert (failed.code(), failed.details()) == (grpc.StatusCode.DATA_LOSS, "it is lost")
            assert ("kind", "LOST") in tuple(failed.trailing_metadata())
        assert await within(server.unary(b"d")) == b"direct d"
        ours = server.server
        assert isinstance(ours, Server)
        await until(lambda: ours.active == 0)


async def test_a_server_that_stops_waits_for_those_who_are_held() -> None:
    direct = Direct()
    async with hosted("fast", unary=handle, prepare=direct.prepare) as server:
        call = server.unary(b"later")
        await until(lambda: bool(direct.held))
        stopping = asyncio.ensure_future(server.server.stop(PATIENCE))
        await asyncio.sleep(0)
        direct.answer_all()
        assert await within(call) == b"at last later"
        await within(stopping)


async def test_requests_in_pieces_compressed_and_with_a_deadline() -> None:
    direct = Direct()
    options = {"compression": grpc.Compression.Gzip}
    async with hosted("fast", unary=handle, prepare=direct.prepare, server_options=options) as server:
        large = b"d" * 300_000
        assert await within(server.unary(large, timeout=30, compression=grpc.Compression.Gzip)) == b"direct " + large
        assert await within(server.unary(b"d", timeout=30)) == b"direct d"


async def test_requests_that_wait_for_their_turn_are_answered_in_it() -> None:
    """The connection's window is used up: requests are kept until an answer could leave."""
    direct = Direct()
    async with hosted("fast", unary=handle, prepare=direct.prepare) as server:
        async with wired(server.target, (INITIAL_WINDOW_SIZE, 1 << 20), window=0) as wire:
            large = wire.call(PATH, b"d" * 70_000)
            streams = [wire.call(PATH, request) for request in (b"d1", b"h", b"d2")]
            wire.write(frame(PING, 0, 0, bytes(8)))
            await wire.wait_for(lambda: wire.arrived(PING))
            assert direct.asked == [b"d" * 70_000]
            wire.write(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 20)))
            answers = [await wire.answer(stream) for stream in (large, *streams)]
        assert [one.messages for one in answers[1:]] == [[b"direct d1"], [b"handled h"], [b"direct d2"]]
        assert len(answers[0].messages[0]) == 70_007


async def test_only_methods_that_are_there() -> None:
    with pytest.raises(KeyError):
        async with hosted("fast", unary=handle, prepare=lambda server: server.add_direct_method("/a/b", Direct())):  # type: ignore[attr-defined]
            pass


async def test_interceptors_come_first() -> None:
    direct = Direct()

    class Passing(grpc.aio.ServerInterceptor):
        async def intercept_service(self, continuation: Any, details: Any) -> Any:
            return await continuation(details)

    options = {"interceptors": [Passing()]}
    async with hosted("fast", unary=handle, prepare=direct.prepare, server_options=options) as server:
        assert await within(server.unary(b"d")) == b"handled d"


def taken(hosted_server: Any) -> int:
    """Calls that lanes took, of the connections that are open."""
    lanes = [protocol.connection.reader.lane for protocol in hosted_server.protocols]
    return sum(lane.taken for lane in lanes if lane is not None)


@pytest.mark.parametrize("ours", [True, False], ids=["our channel", "grpcio"])
async def test_the_calls_of_real_clients_are_taken(ours: bool) -> None:
    """At least 95 of 100, each with a deadline and an id of its own."""
    async with hosted("fast", unary=handle, prepare=Direct().prepare) as server:
        other = channel(server.target) if ours else server.channel
        call = other.unary_unary(PATH)

        async def send(number: int) -> bytes:
            return await call(b"d" * 1000, timeout=10 + number / 7, metadata=(("x-mq-request-id", f"id-{number}"),))  # type: ignore[no-any-return]

        await within(send(0))
        for number in range(100):
            await within(send(number))
        for at in range(20):
            await within(asyncio.gather(*(send(100 * at + number) for number in range(20))))
        assert taken(server.server) >= (475 if Direct.by_lane else 0)
        if ours:
            await other.close()


async def test_all_messages_of_a_stream_at_once() -> None:
    """What the short way of a method with a stream of answers gives is the whole stream."""

    class Streamed(Direct):
        def __call__(self, message: bytes, call: DirectCall) -> bytes | HeldCall | None:
            if message.startswith(b"later"):
                self.held.append((message, call))
                return HELD
            return framed([b"one", b"", message]) if message.startswith(b"d") else None

        def prepare(self, server: Any) -> None:
            server.add_direct_method(f"/{OWN}/out", self)
            if self.by_lane:
                server.use_lanes()

    async def download(request: bytes, _context: Any) -> AsyncIterator[bytes]:
        yield b"handled"
        yield request

    async def read(request: bytes) -> list[bytes]:
        return [one async for one in server.out(request)]

    direct = Streamed()
    async with hosted("fast", out=download, prepare=direct.prepare) as server:
        assert await within(read(b"d")) == [b"one", b"", b"d"]
        assert await within(read(b"h")) == [b"handled", b"h"]
        large = b"d" * 300_000
        assert await within(read(large)) == [b"one", b"", large]
        readers = [asyncio.ensure_future(read(b"later %d" % number)) for number in range(3)]
        await until(lambda: len(direct.held) == 3)
        for message, call in direct.held[:2]:
            call.answer_later(framed([b"at last", message * 10_000]))
        direct.held[2][1].hand_over(direct.held[2][0])
        held = [message for message, _ in direct.held]
        found = await within(asyncio.gather(*readers))
        assert sorted(found) == sorted(
            [*([b"at last", message * 10_000] for message in held[:2]), [b"handled", held[2]]]
        )
        assert await within(read(b"d")) == [b"one", b"", b"d"]
