"""The end of a server: what happens to calls in flight, and to those that come too late."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import grpc
import pytest

from tests.faults.pair_process import free_port
from tests.grpc_probe import Probe, add_probe, make_server
from tests.integration.grpc_transport.hosting import PATIENCE, channel_to, everything, failure, hosted, until, within
from tests.integration.grpc_transport.wire import GOAWAY, wired

GONE = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


class Gate:
    """Handlers that go on when they are told."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.begun = 0
        self.ended: list[str] = []

    async def unary(self, request: bytes, _context: Any) -> bytes:
        self.begun += 1
        try:
            await self.opened.wait()
        except asyncio.CancelledError:
            self.ended.append("cancelled")
            raise
        self.ended.append("finished")
        return request

    async def out(self, request: bytes, context: Any) -> AsyncIterator[bytes]:
        yield b"first"
        yield await self.unary(request, context)

    async def both(self, requests: AsyncIterator[bytes], _context: Any) -> AsyncIterator[bytes]:
        self.begun += 1
        async for request in requests:
            yield request
        self.ended.append("finished")

    @property
    def behaviors(self) -> dict[str, Any]:
        return {"unary": self.unary, "out": self.out, "both": self.both}


async def judge_cancelled(transport: str, gate: Gate, count: int) -> None:
    """A stop is over when all handlers are; grpcio does not always wait for them."""
    if transport == "grpcio":
        await until(lambda: len(gate.ended) == count)
    assert gate.ended == ["cancelled"] * count


async def test_calls_in_flight_finish_within_the_grace(transport: str) -> None:
    gate = Gate()
    async with hosted(transport, **gate.behaviors) as server:
        unary, out, both = server.unary(b"x"), server.out(b"y"), server.both()
        assert await within(out.read()) == b"first"
        await until(lambda: gate.begun == 3)
        stopping = asyncio.ensure_future(server.server.stop(PATIENCE))
        await both.write(b"said after the stop began")
        assert await within(both.read()) == b"said after the stop began"
        await both.done_writing()
        gate.opened.set()
        assert await within(unary) == b"x"
        assert [await within(out.read()), await within(out.read())] == [b"y", grpc.aio.EOF]
        assert await within(both.read()) is grpc.aio.EOF
        await within(stopping)
    assert gate.ended == ["finished"] * 3


async def test_the_stop_is_over_when_the_last_call_is(transport: str) -> None:
    gate = Gate()
    async with hosted(transport, **gate.behaviors) as server:
        call = server.unary(b"x")
        await until(lambda: gate.begun == 1)
        stopping = asyncio.ensure_future(server.server.stop(60))
        gate.opened.set()
        assert await within(call) == b"x"
        await within(stopping)


async def test_without_calls_a_stop_takes_no_grace(transport: str) -> None:
    async with hosted(transport) as server:
        assert await server.method("Echo")(b"x") == b"x"
        await within(server.server.stop(60))


async def test_calls_beyond_the_grace_are_cancelled(transport: str) -> None:
    gate = Gate()
    async with hosted(transport, **gate.behaviors) as server:
        unary, out = server.unary(b"x"), server.out(b"y")
        assert await within(out.read()) == b"first"
        await until(lambda: gate.begun == 2)
        await within(server.server.stop(0.1))
        await judge_cancelled(transport, gate, 2)
        assert (await failure(unary)).code() in GONE
        assert (await failure(out)).code() in GONE


@pytest.mark.parametrize("grace", [None, 0])
async def test_a_stop_without_grace_cancels_at_once(transport: str, grace: float | None) -> None:
    gate = Gate()
    async with hosted(transport, **gate.behaviors) as server:
        call = server.unary(b"x")
        await until(lambda: gate.begun == 1)
        await within(server.server.stop(grace))
        await judge_cancelled(transport, gate, 1)
        assert (await failure(call)).code() in GONE


async def test_a_stop_waits_for_handlers_that_clean_up(transport: str) -> None:
    cleaned = []
    begun = asyncio.Event()

    async def handler(_request: bytes, _context: Any) -> bytes:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
            cleaned.append("yes")
        return b""

    async with hosted(transport, unary=handler) as server:
        call = server.unary(b"x")
        await within(begun.wait())
        await within(server.server.stop(None))
        if transport == "fast":
            assert cleaned == ["yes"]
        await failure(call)
        await until(lambda: cleaned == ["yes"])


async def test_a_stop_waits_for_a_handler_whose_caller_has_gone(transport: str) -> None:
    """The handler may still use what its owner closes behind the stop."""
    cleaned = []
    begun = asyncio.Event()
    cleaning = asyncio.Event()

    async def handler(_request: bytes, _context: Any) -> bytes:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await asyncio.sleep(0.1)
            cleaned.append("yes")
        return b""

    async with hosted(transport, unary=handler) as server:
        call = server.unary(b"x")
        await within(begun.wait())
        call.cancel()
        await within(cleaning.wait())
        await within(server.server.stop(PATIENCE))
        if transport == "fast":
            assert cleaned == ["yes"]
        await until(lambda: cleaned == ["yes"])


async def test_new_calls_are_refused_while_calls_finish(transport: str) -> None:
    gate = Gate()
    async with hosted(transport, **gate.behaviors) as server:
        call = server.unary(b"x")
        await until(lambda: gate.begun == 1)
        stopping = asyncio.ensure_future(server.server.stop(PATIENCE))
        async with wired_or_refused(server.target) as refused:
            assert refused
        assert (await failure(server.method("Echo")(b"late", timeout=2))).code() in (
            grpc.StatusCode.UNAVAILABLE,
            grpc.StatusCode.DEADLINE_EXCEEDED,
            grpc.StatusCode.CANCELLED,  # grpcio's, when the call came in between
        )
        gate.opened.set()
        assert await within(call) == b"x"
        await within(stopping)


class wired_or_refused:  # noqa: N801
    """Whether a new connection gets no answer."""

    def __init__(self, target: str) -> None:
        self.target = target

    async def __aenter__(self) -> bool:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    async with wired(self.target) as wire:
                        answer = await wire.answer(wire.call("Echo", b"x"))
                        if not answer.ended:
                            return True
                except OSError:
                    return True
                await asyncio.sleep(0.01)

    async def __aexit__(self, *_: object) -> None:
        return None


async def test_open_connections_are_told_goodbye(transport: str) -> None:
    gate = Gate()
    async with hosted(transport, **gate.behaviors) as server, wired(server.target) as wire:
        stream = wire.call("/tandemmq.test.Own/unary", b"x")
        await until(lambda: gate.begun == 1)
        stopping = asyncio.ensure_future(server.server.stop(PATIENCE))
        await wire.wait_for(lambda: wire.arrived(GOAWAY))
        assert int.from_bytes(wire.arrived(GOAWAY)[0][3][4:8], "big") == 0, "no error"
        gate.opened.set()
        answer = await wire.answer(stream)
        assert (answer.status, answer.messages) == ("0", [b"x"])
        await within(stopping)
        await wire.wait_for(lambda: wire.closed)
        last = int.from_bytes(wire.arrived(GOAWAY)[-1][3][:4], "big")
        assert stream <= last


async def test_a_second_stop_is_harmless(transport: str) -> None:
    async with hosted(transport) as server:
        await within(server.server.stop(None))
        await within(server.server.stop(None))
        await within(server.server.stop(1))
        assert (await failure(server.unary(b"x"))).code() is grpc.StatusCode.UNAVAILABLE


async def test_a_second_stop_may_be_more_impatient(transport: str) -> None:
    if transport == "grpcio":
        pytest.skip("two stops at a time crash the process")
    gate = Gate()
    async with hosted(transport, **gate.behaviors) as server:
        call = server.unary(b"x")
        await until(lambda: gate.begun == 1)
        patient = asyncio.ensure_future(server.server.stop(60))
        await asyncio.sleep(0)
        await within(server.server.stop(0.05))
        await within(patient)
        assert gate.ended == ["cancelled"]
        await failure(call)


async def test_wait_for_termination(transport: str) -> None:
    """True: the time was over; False: the server has stopped."""
    async with hosted(transport) as server:
        assert await within(server.server.wait_for_termination(0.01))
        waiting = asyncio.ensure_future(server.server.wait_for_termination())
        await asyncio.sleep(0)
        await within(server.server.stop(None))
        assert not await within(waiting)
        assert not await within(server.server.wait_for_termination(1))


async def test_a_server_that_was_never_started_can_be_stopped(transport: str) -> None:
    server = make_server(transport)
    port = server.add_insecure_port(f"127.0.0.1:{free_port()}")
    await within(server.stop(None))
    del server
    if transport == "fast":
        again = make_server(transport)
        assert again.add_insecure_port(f"127.0.0.1:{port}") == port
        await within(again.stop(None))


async def test_the_port_is_free_after_the_stop(transport: str) -> None:
    async with hosted(transport, address=f"127.0.0.1:{free_port()}") as server:
        assert await server.method("Echo")(b"x") == b"x"
        port = int(server.target.rpartition(":")[2])
        await within(server.server.stop(None))
        again = make_server(transport)
        add_probe(Probe(), again)
        assert again.add_insecure_port(f"127.0.0.1:{port}") == port
        await again.start()
        async with channel_to(server.target) as channel:
            assert await within(server.method("Echo", channel)(b"again", wait_for_ready=True)) == b"again"
        await again.stop(None)


async def test_starting_twice(transport: str) -> None:
    """grpcio takes the second start as nothing."""
    async with hosted(transport) as server:
        with suppress(grpc.aio.UsageError):
            await server.server.start()
        assert await server.method("Echo")(b"lives") == b"lives"


async def test_answers_that_were_given_before_the_stop_arrive_whole(transport: str) -> None:
    async with hosted(transport) as server:
        call = server.method("Repeat")(b"7:1000000")
        assert len(await within(call.read())) == 1_000_000
        stopping = asyncio.ensure_future(server.server.stop(PATIENCE))
        rest = 0
        while await within(call.read()) is not grpc.aio.EOF:
            rest += 1
        assert rest == 6
        await within(stopping)


async def test_a_stop_in_the_middle_of_much_traffic(transport: str) -> None:
    """Every call is answered or fails; none hangs."""
    async with hosted(transport) as server:

        async def caller() -> str:
            while True:
                try:
                    await everything(server.method("Repeat")(b"20:2000"))
                    await server.method("Echo")(b"x" * 5000)
                except grpc.aio.AioRpcError as error:
                    return error.code().name

        callers = [asyncio.ensure_future(caller()) for _ in range(20)]
        await asyncio.sleep(0.1)
        await within(server.server.stop(0.1))
        assert set(await within(asyncio.gather(*callers))) <= {"UNAVAILABLE", "CANCELLED", "INTERNAL"}
