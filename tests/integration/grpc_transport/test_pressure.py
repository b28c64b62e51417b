"""Back-pressure: who is slow waits alone, and nothing grows without bound."""

import asyncio
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import grpc
import pytest

from tandemmq.common.grpc_transport import room_for
from tests.grpc_probe import DRIP_SIZE
from tests.integration.grpc_transport.hosting import (
    OWN,
    PATIENCE,
    Hosted,
    channel_to,
    failure,
    hosted,
    in_time,
    sending,
    settled,
    until,
    within,
)
from tests.integration.grpc_transport.wire import INITIAL_WINDOW_SIZE, WIDE, WINDOW_UPDATE, frame, settings, wired

STANDING = 20
"""A counter that is the same at so many looks in a row, 10 ms apart, stands."""


async def standstill(count: Callable[[], int]) -> int:
    """Waits until a counter has begun to grow and grows no more; gives where it stands."""
    await until(lambda: count() > 0)
    async with asyncio.timeout(PATIENCE):
        last, same = count(), 0
        while same < STANDING:
            await asyncio.sleep(0.01)
            last, same = count(), same + 1 if count() == last else 0
    return last


def dripped(server: Hosted) -> Callable[[], int]:
    return lambda: server.probe.dripped


async def test_a_reader_that_opens_no_window_holds_only_itself(transport: str) -> None:
    async with hosted(transport) as server, wired(server.target) as wire:
        stream = wire.call("Drip", b"")
        window = 65_535
        await wire.wait_for(lambda: len(wire.answers[stream].data) >= window)
        stood = await standstill(dripped(server))
        assert len(wire.answers[stream].data) == window, "to the last byte, and not one more"
        assert stood * DRIP_SIZE < window + (1 << 20)
        for name in ("Echo", "Count"):
            assert (await wire.answer(wire.call(name, b"x"))).status == "0", "on the same connection"
        assert await within(server.method("Echo")(b"x")) == b"x"
        wire.write(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 10_000)))
        await wire.wait_for(lambda: len(wire.answers[stream].data) == window + 10_000)
        wire.cancel(stream)
        await settled(server)


async def test_a_connection_whose_window_is_shut_holds_only_itself(transport: str) -> None:
    """Each time that it opens a bit, calls that came while it was shut have their turn beside one that fills it."""
    async with hosted(transport) as server, wired(server.target, (INITIAL_WINDOW_SIZE, WIDE), window=0) as wire:
        first = wire.answers[wire.call("Drip", b"")]
        window, openings = 65_535, 0
        await wire.wait_for(lambda: len(first.data) >= window)
        answers = [first, *(wire.answers[wire.call("Drip", b"")] for _ in range(4))]
        stood = await standstill(dripped(server))
        assert sum(len(answer.data) for answer in answers) == window
        assert stood * DRIP_SIZE < window + 5 * (1 << 20)
        assert await within(server.method("Echo")(b"x")) == b"x"
        while not all(answer.data for answer in answers):
            assert openings < 6 or transport == "grpcio", "one more in each turn, at least"
            wire.write(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 100_000)))
            window, openings = window + 100_000, openings + 1
            await wire.wait_for(lambda: sum(len(answer.data) for answer in answers) == window)  # noqa: B023
    await settled(server)


async def test_calls_are_begun_beside_streams_that_fill_the_window_each_time_that_it_opens() -> None:
    """What opens is less than what they have waiting: nothing of it is ever left. Nothing begins before it opens."""

    async def out(_request: bytes, _context: Any) -> AsyncIterator[bytes]:
        while True:
            yield bytes(256 << 10)

    async def unary(request: bytes, _context: Any) -> bytes:
        begun.append(request)
        return request

    begun = list[bytes]()
    wide = (INITIAL_WINDOW_SIZE, WIDE)
    async with hosted("fast", out=out, unary=unary) as server, wired(server.target, wide, window=0) as wire:
        answers = [wire.answers[wire.call(f"/{OWN}/out", b"")] for _ in range(5)]
        window, openings = 65_535, 0
        await wire.wait_for(lambda: sum(len(answer.data) for answer in answers) == window)
        asked = [wire.answers[wire.call(f"/{OWN}/unary", name)] for name in (b"a", b"b", b"c", b"d")]
        answers += asked
        while not all(answer.ended for answer in asked):
            assert openings < 20, "each has waited for the one before it, and for the turns of five streams"
            assert len(begun) <= openings
            wire.write(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 100_000)))
            window, openings = window + 100_000, openings + 1
            await wire.wait_for(lambda: sum(len(answer.data) for answer in answers) == window)  # noqa: B023
    assert begun == [b"a", b"b", b"c", b"d"]


async def test_a_reader_that_takes_nothing_from_its_socket_holds_only_itself(transport: str) -> None:
    """All windows are open: what stops the server is the socket."""
    async with hosted(transport) as server, wired(server.target, (INITIAL_WINDOW_SIZE, WIDE)) as wire:
        wire.call("Drip", b"")
        await until(lambda: server.probe.dripped > 0)
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        stood = await standstill(dripped(server))
        assert stood * DRIP_SIZE < 64 << 20, "what fits into the buffers of two sockets, and not all memory"
        assert await within(server.method("Echo")(b"x")) == b"x"
    await settled(server)


async def test_a_grpc_caller_that_does_not_read_holds_only_itself(transport: str) -> None:
    """The caller's windows stay as they are: where it measures the line on a busy machine it opens them by 256 MiB."""
    async with hosted(transport, client_options=[("grpc.http2.bdp_probe", 0)]) as server:
        call = server.method("Drip")(b"")
        assert len(await within(call.read())) == DRIP_SIZE
        stood = await standstill(dripped(server))
        assert stood * DRIP_SIZE < 64 << 20
        assert await within(server.method("Echo")(b"x")) == b"x", "on the same connection"
        for _ in range(stood + 1000):
            await within(call.read())
        assert server.probe.dripped > stood
        call.cancel()
        await settled(server)


async def test_answers_that_wait_for_the_window_come_in_the_end(transport: str) -> None:
    """A thousand calls whose answers may not leave: some are cancelled, some run out of time, all others come."""
    async with hosted(transport) as server, wired(server.target, window=0) as wire:
        streams = [wire.call("Repeat", b"1:10000") for _ in range(300)]
        hasty = [wire.call("Repeat", b"1:10000", more=[(b"grpc-timeout", b"300m")]) for _ in range(30)]
        await wire.wait_for(lambda: sum(len(wire.answers[stream].data) for stream in streams) == 65_535)
        for stream in streams[200:]:
            wire.cancel(stream)
        for stream in hasty:
            answer = await wire.answer(stream)
            assert answer.status == "4" or answer.reset is not None
        wire.write(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", WIDE)))
        for stream in streams[:200]:
            answer = await wire.answer(stream)
            assert (answer.status, [len(each) for each in answer.messages]) == ("0", [10_000])
        assert (await wire.answer(wire.call("Echo", b"x"))).messages == [b"x"]
        await settled(server)


async def test_an_answer_that_nobody_takes_is_dropped_at_its_deadline(transport: str) -> None:
    async def large(_request: bytes, _context: Any) -> bytes:
        return b"x" * 200_000

    soon = [(b"grpc-timeout", b"200m")]
    async with hosted(transport, unary=large) as server, wired(server.target) as wire:
        answer = await wire.answer(wire.call("/tandemmq.test.Own/unary", b"", more=soon))
        assert answer.status == "4" or answer.reset
        assert len(answer.data) == 65_535


async def test_answers_that_nobody_takes_are_bounded(transport: str) -> None:
    """A caller that shuts its windows and goes on asking is refused in the end. (grpcio keeps all it is asked for.)"""
    if transport == "grpcio":
        pytest.skip("grpcio has no such bound")

    async def large(_request: bytes, _context: Any) -> bytes:
        return b"x" * (1 << 20)

    async with hosted(transport, unary=large) as server, wired(server.target, (INITIAL_WINDOW_SIZE, 0)) as wire:
        streams = [wire.call("/tandemmq.test.Own/unary", b"") for _ in range(120)]
        answers = [wire.answers[stream] for stream in streams]
        await wire.wait_for(lambda: answers[-1].ended)
        refused = [answer for answer in answers if answer.ended]
        assert all(answer.status == "8" for answer in refused)
        assert 20 < len(answers) - len(refused) < 80
        for stream in streams:
            wire.cancel(stream)
        wire.write(settings((INITIAL_WINDOW_SIZE, WIDE)))
        assert (await wire.answer(wire.call("Echo", b"x"))).messages == [b"x"]


async def test_who_asks_for_little_is_answered_while_those_who_took_much_hold_the_memory() -> None:
    """A method with large answers: how large this one is, its handler says, and nobody guesses it from the others."""

    async def sized(request: bytes, context: Any) -> bytes:
        size = int(request)
        return b"x" * size if await room_for(context, size) else b"no room"

    held, options = 7, {"memory_budget": 8 << 20}
    async with hosted("fast", unary=sized, server_options=options) as server, AsyncExitStack() as stack:
        for _ in range(held):
            greedy = await stack.enter_async_context(wired(server.target, (INITIAL_WINDOW_SIZE, 0)))
            greedy.call(f"/{OWN}/unary", b"%d" % (1 << 20))
        await until(lambda: server.server.load.held > held << 20)  # type: ignore[attr-defined]
        async with wired(server.target) as wire:
            assert (await wire.answer(wire.call(f"/{OWN}/unary", b"10"))).messages == [b"x" * 10]
        assert server.server.load.held > held << 20, "nobody had to be ended for it"  # type: ignore[attr-defined]


async def test_those_who_find_room_at_the_same_time_are_answered_a_turn_each() -> None:
    """A connection ends that held much: what is made for those who waited for that must not be one long turn."""
    turn = waiting = 0
    made: list[int] = []

    def turns_over() -> None:
        nonlocal turn
        turn += 1
        asyncio.get_running_loop().call_soon(turns_over)

    async def sized(request: bytes, context: Any) -> bytes:
        nonlocal waiting
        waiting += request == b"waits"
        while not await room_for(context, 512 << 10):
            assert not context.done()
        if request == b"waits":
            made.append(turn)
            time.sleep(0.02)  # noqa: ASYNC251 - longer than a turn should be: it stands for making the answer
        return b"x" * (512 << 10)

    options = {"memory_budget": 4 << 20}
    async with hosted("fast", unary=sized, server_options=options) as server, AsyncExitStack() as stack:

        def held() -> int:
            return int(server.server.load.held)  # type: ignore[attr-defined]

        async with wired(server.target, (INITIAL_WINDOW_SIZE, 0)) as much:
            for _ in range(3):
                much.call(f"/{OWN}/unary", b"holds")
            await until(lambda: held() > 3 << 19)
            for _ in range(4):  # who holds nothing finds room as long as there is some: in the end there is none
                one = await stack.enter_async_context(wired(server.target, (INITIAL_WINDOW_SIZE, 0)))
                one.call(f"/{OWN}/unary", b"holds")
            await until(lambda: held() > 7 << 19)
            channels = [await stack.enter_async_context(channel_to(server.target)) for _ in range(6)]
            asyncio.get_running_loop().call_soon(turns_over)
            calls = [asyncio.ensure_future(server.own("unary", channel)(b"waits")) for channel in channels]
            await until(lambda: waiting == len(calls))
        assert {len(answer) for answer in await within(asyncio.gather(*calls))} == {512 << 10}
    assert len(set(made)) == len(calls), "two in a turn"


async def test_large_answers_to_a_slow_reader_come_whole(transport: str) -> None:
    size = 3_000_000
    async with hosted(transport) as server, wired(server.target) as wire:
        stream = wire.call("Repeat", b"2:%d" % size)
        answer = wire.answers[stream]
        seen = 65_535
        while seen < 2 * (size + 5):
            await wire.wait_for(lambda: len(answer.data) == seen)  # noqa: B023
            wire.write(frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 500_000)))
            seen += 500_000
        await wire.answer(stream)
        assert answer.messages == [b"r" * size] * 2
        assert answer.status == "0"


class Slow:
    """A handler that takes one request, and the rest when it is told."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.taken = 0

    async def into(self, requests: AsyncIterator[bytes], _context: Any) -> bytes:
        async for _ in requests:
            self.taken += 1
            await self.go_on.wait()
        return b"%d" % self.taken


class Writer:
    """Writes messages as fast as it may."""

    def __init__(self, call: Any, count: int, size: int) -> None:
        self.written = 0
        self._call = call
        self._count = count
        self._size = size

    async def run(self) -> bytes:
        for _ in range(self._count):
            await self._call.write(b"w" * self._size)
            self.written += 1
        await self._call.done_writing()
        return bytes(await self._call)


async def test_a_handler_that_reads_slowly_stops_its_caller_only(transport: str) -> None:
    slow = Slow()
    async with hosted(transport, into=slow.into) as server:
        writer = Writer(server.into(), count=1000, size=64 << 10)
        running = asyncio.ensure_future(writer.run())
        stood = await standstill(lambda: writer.written)
        assert slow.taken == 1
        # grpcio's window grows with the speed that it believes to see, within bounds of its own.
        assert stood * (64 << 10) < (16 << 20 if transport == "fast" else 48 << 20)
        assert await within(server.method("Echo")(b"x" * 100_000)) == b"x" * 100_000, "on the same connection"
        assert await within(server.method("Collect")(sending(b"a", b"b"))) == b"a|b"
        slow.go_on.set()
        assert await within(running) == b"1000"


async def test_a_handler_that_reads_by_and_by_keeps_its_caller_going(transport: str) -> None:
    async def unhurried(requests: AsyncIterator[bytes], _context: Any) -> bytes:
        total = 0
        async for request in requests:
            total += len(request)
            await asyncio.sleep(0.001)
        return b"%d" % total

    async with hosted(transport, into=unhurried) as server:
        writer = Writer(server.into(), count=200, size=50_000)
        assert await within(writer.run()) == b"10000000"


async def test_several_slow_handlers_leave_room_for_other_calls(transport: str) -> None:
    slow = Slow()
    async with hosted(transport, into=slow.into) as server:
        writers = [Writer(server.into(), count=100, size=64 << 10) for _ in range(12)]
        running = [asyncio.ensure_future(writer.run()) for writer in writers]
        await standstill(lambda: sum(writer.written for writer in writers))
        assert await within(server.method("Echo")(b"x")) == b"x", "on the same connection"
        slow.go_on.set()
        assert await within(asyncio.gather(*running))
        assert slow.taken == 1200


async def test_many_slow_handlers_end_in_a_clear_way(transport: str) -> None:
    """More than a connection may hold: every call is answered or refused in the end, and other connections live."""
    slow = Slow()
    async with hosted(transport, into=slow.into) as server:
        async with channel_to(server.target) as channel:
            writers = [Writer(server.own("into", channel)(), count=40, size=64 << 10) for _ in range(100)]
            running = [asyncio.ensure_future(writer.run()) for writer in writers]
            await standstill(lambda: sum(writer.written for writer in writers))
            assert await within(server.method("Echo")(b"x")) == b"x"
            slow.go_on.set()
            outcomes = await within(asyncio.gather(*running, return_exceptions=True))
        refused = [each for each in outcomes if isinstance(each, grpc.aio.AioRpcError)]
        assert all(each.code() is grpc.StatusCode.RESOURCE_EXHAUSTED for each in refused)
        assert len(refused) < len(outcomes)


async def test_requests_that_nobody_reads_are_thrown_away_when_the_call_ends(transport: str) -> None:
    """Else the connection's window would stay shut: 400 calls with 60 kB each that no handler looks at."""

    async def uninterested(_requests: Any, _context: Any) -> bytes:
        return b"did not look"

    async with hosted(transport, into=uninterested) as server, wired(server.target) as wire:
        body = b"w" * 60_000
        for _ in range(400):
            stream = wire.call("/tandemmq.test.Own/into", *[body] * 1, ended=False)
            answer = await wire.answer(stream)
            assert answer.status == "0"
        assert (await wire.answer(wire.call("Echo", b"x"))).messages == [b"x"]


async def test_cancelled_uploads_give_the_connection_its_window_back(transport: str) -> None:
    slow = Slow()
    async with hosted(transport, into=slow.into) as server:
        for _ in range(30):
            call = server.into()
            writer = Writer(call, count=100, size=64 << 10)
            running = asyncio.ensure_future(writer.run())
            await until(lambda writer=writer: writer.written >= 3)  # type: ignore[misc]
            call.cancel()
            await asyncio.wait([running])
            assert running.exception() if not running.cancelled() else True
        large = b"x" * (2 << 20)
        assert await within(server.method("Echo")(large)) == large


async def test_a_deadline_while_the_caller_takes_nothing(transport: str) -> None:
    async def attempt(seconds: float) -> bool:
        async with hosted(transport) as server:
            call = server.method("Drip")(b"", timeout=seconds)
            try:
                await within(call.read())
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    return False
                raise
            await settled(server)
            assert (await failure(call)).code() is grpc.StatusCode.DEADLINE_EXCEEDED
        return True

    await in_time(attempt)
