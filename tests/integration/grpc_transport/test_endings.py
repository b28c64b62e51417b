"""Calls that end early: callers that cancel or vanish, and what handlers get to know of it."""

import asyncio
import gc
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import grpc
import pytest

from tests.integration.grpc_transport.hosting import (
    PATIENCE,
    Hosted,
    channel_to,
    everything,
    failure,
    hosted,
    in_time,
    sending,
    settled,
    until,
    within,
)
from tests.integration.grpc_transport.wire import wired
from tests.integration.grpc_transport.witness import KINDS, Witness, begin


@pytest.mark.parametrize("kind", KINDS)
async def test_a_caller_cancels(transport: str, kind: str) -> None:
    witness = Witness()
    async with hosted(transport, **witness.behaviors) as server:
        call = begin(server, kind)
        await within(witness.begun.wait())
        call.cancel()
        await witness.judge(transport)
        with pytest.raises(asyncio.CancelledError):
            await (call if kind in ("unary", "into") else call.read())
        assert await server.method("Echo")(b"lives") == b"lives"
    assert witness.called_back == witness.contexts


@pytest.mark.parametrize("kind", KINDS)
async def test_a_caller_cancels_before_the_request_is_whole(transport: str, kind: str) -> None:
    """Streams begin at once; what takes one request never gets to run."""
    witness = Witness()
    async with hosted(transport, **witness.behaviors) as server, wired(server.target) as wire:
        stream = wire.call(f"/tandemmq.test.Own/{kind}", ended=False)
        if kind in ("into", "both"):
            await within(witness.begun.wait())
        wire.cancel(stream)
        echo = await wire.answer(wire.call("Echo", b"x"))
        assert echo.status == "0"
        if kind in ("into", "both"):
            await witness.judge(transport)
        else:
            assert not witness.begun.is_set()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_a_caller_cancels_in_the_packet_of_its_request(transport: str, kind: str) -> None:
    """The handler runs not at all (grpcio) or is cancelled as any other: what it began must be cleaned up."""
    witness = Witness()
    async with hosted(transport, **witness.behaviors) as server, wired(server.target) as wire:
        for _ in range(5):
            request = [b""] if kind in ("unary", "out") else []
            wire.cancel(wire.call(f"/tandemmq.test.Own/{kind}", *request, ended=kind in ("unary", "out")))
        assert (await wire.answer(wire.call("Echo", b"x"))).status == "0"
        await until(lambda: len(witness.contexts) == len(witness.called_back))
        await until(lambda: len(witness.contexts) == len(witness.ended) or transport == "grpcio")
    gc.collect()  # what was never awaited would say so here


@pytest.mark.parametrize("kind", KINDS)
async def test_the_connection_vanishes(transport: str, kind: str) -> None:
    witness = Witness()
    async with hosted(transport, **witness.behaviors) as server:
        async with wired(server.target) as wire:
            wire.call(
                f"/tandemmq.test.Own/{kind}",
                *([b""] if kind in ("unary", "out") else []),
                ended=kind in ("unary", "out"),
            )
            await within(witness.begun.wait())
        await witness.judge(transport)
        assert await server.method("Echo")(b"lives") == b"lives"
    assert len(witness.called_back) == 1


CALLER = """
import sys, grpc
channel = grpc.insecure_channel(sys.argv[1])
answers = channel.unary_stream("/tandemmq.test.Probe/Drip")(b"")
waiting = channel.unary_unary("/tandemmq.test.Probe/Wait").future(b"")
next(answers)
print("begun", flush=True)
for answer in answers:
    pass
"""


async def test_the_caller_is_killed(transport: str) -> None:
    async with hosted(transport) as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CALLER, server.target, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        assert await within(process.stdout.readline()) == b"begun\n"
        await until(lambda: server.probe.active == 2)
        process.send_signal(signal.SIGKILL)
        await within(process.wait())
        await settled(server)
        assert server.probe.cancelled == 2


async def test_many_calls_of_a_connection_vanish_together(transport: str) -> None:
    async with hosted(transport) as server:
        async with wired(server.target) as wire:
            for _ in range(200):
                wire.call("Wait", b"")
            await until(lambda: server.probe.active == 200)
        await settled(server)
        assert server.probe.cancelled == 200


async def test_a_cancelled_handler_may_clean_up(transport: str) -> None:
    begun, cleaned = asyncio.Event(), asyncio.Event()

    async def handler(_request: bytes, _context: Any) -> bytes:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            cleaned.set()
        return b""

    async def attempt(seconds: float) -> bool:
        async with hosted(transport, unary=handler) as server:
            await failure(server.unary(b"", timeout=seconds))
            if begun.is_set():
                await within(cleaned.wait())
        return begun.is_set()

    await in_time(attempt)


async def test_a_handler_that_swallows_its_cancellation_cannot_answer(transport: str) -> None:
    outcomes: list[Any] = []
    begun = asyncio.Event()

    async def handler(_request: bytes, context: Any) -> None:
        begun.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        try:
            await context.write(b"too late")
        except Exception as error:  # noqa: BLE001
            outcomes.append(error)
        else:
            outcomes.append(None)

    async def attempt(seconds: float) -> bool:
        async with hosted(transport, out=handler) as server:
            error = await failure(server.out(b"", timeout=seconds))
            assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            if begun.is_set():
                await until(lambda: bool(outcomes))
            assert await server.method("Echo")(b"lives") == b"lives"
        return bool(outcomes)

    await in_time(attempt)


async def test_a_task_of_the_handler_outlives_a_cancelled_call_and_cannot_write(transport: str) -> None:
    outcomes: list[Any] = []
    ended = asyncio.Event()
    tasks = []

    async def late(context: Any) -> None:
        await ended.wait()
        try:
            await context.write(b"too late")
        except BaseException as error:  # noqa: BLE001
            outcomes.append(error)
        else:
            outcomes.append(None)

    async def handler(_request: bytes, context: Any) -> None:
        tasks.append(asyncio.ensure_future(late(context)))
        context.add_done_callback(lambda _context: ended.set())
        await asyncio.Event().wait()

    async def attempt(seconds: float) -> bool:
        async with hosted(transport, out=handler) as server:
            await failure(server.out(b"", timeout=seconds))
            if tasks:
                await until(lambda: bool(outcomes))
            assert await server.method("Echo")(b"lives") == b"lives"
        return bool(outcomes)

    await in_time(attempt)


async def test_writing_after_the_call_was_answered_is_an_error(transport: str) -> None:
    outcomes: list[Any] = []
    tasks = []

    async def late(context: Any, ended: asyncio.Event) -> None:
        await ended.wait()
        for attempt in (context.write(b"too late"), context.read(), context.abort(grpc.StatusCode.INTERNAL)):
            try:
                await attempt
            except Exception as error:  # noqa: BLE001
                outcomes.append(error)
            else:
                outcomes.append(None)

    async def handler(_request: bytes, context: Any) -> None:
        ended = asyncio.Event()
        tasks.append(asyncio.ensure_future(late(context, ended)))
        context.add_done_callback(lambda _context: ended.set())
        await context.write(b"in time")

    async with hosted(transport, out=handler) as server:
        assert await everything(server.out(b"")) == [b"in time"]
        await until(lambda: len(outcomes) == 3)
        assert isinstance(outcomes[0], grpc.aio.UsageError)
        assert isinstance(outcomes[1], grpc.aio.UsageError)
        assert await server.method("Echo")(b"lives") == b"lives"


@pytest.mark.parametrize("ending", ["answer", "abort", "crash"])
async def test_done_callbacks_are_called_once_with_the_context(transport: str, ending: str) -> None:
    called: list[Any] = []
    contexts: list[Any] = []

    async def handler(request: bytes, context: Any) -> bytes:
        contexts.append(context)
        for _ in range(2):
            context.add_done_callback(called.append)
        assert not context.done()
        if ending == "abort":
            await context.abort(grpc.StatusCode.ABORTED, "")
        if ending == "crash":
            raise ValueError("bug")
        return request

    async with hosted(transport, unary=handler) as server:
        with suppress(grpc.aio.AioRpcError):
            await server.unary(b"")
        await until(lambda: len(called) == 2)
    assert called == contexts * 2
    assert contexts[0].done()


async def test_a_failing_done_callback_hurts_nobody(transport: str) -> None:
    called = []

    def broken(_context: Any) -> None:
        called.append(1)
        raise ValueError("bug in a callback")

    async def handler(request: bytes, context: Any) -> bytes:
        context.add_done_callback(broken)
        return request

    async with hosted(transport, unary=handler) as server:
        for count in (1, 2):
            assert await server.unary(b"x") == b"x"
            await until(lambda count=count: len(called) == count)  # type: ignore[misc]


async def test_done_and_cancelled_tell_a_watcher_how_it_ended(transport: str) -> None:
    """grpcio's `cancelled()` and `done()` do not notice callers that cancel; ours do."""
    witness = Witness()
    async with hosted(transport, **witness.behaviors) as server:
        call = server.unary(b"")
        await within(witness.begun.wait())
        context = witness.contexts[0]
        assert (context.done(), context.cancelled()) == (False, False)
        call.cancel()
        await until(lambda: len(witness.called_back) == 1)
        if transport == "fast":
            assert (context.done(), context.cancelled()) == (True, True)


async def test_a_handler_that_is_cancelled_from_within_ends_its_call(transport: str) -> None:
    """grpcio sends no status: its callers wait for their deadlines."""

    async def at_once(_request: bytes, _context: Any) -> bytes:
        raise asyncio.CancelledError

    async def later(_request: bytes, _context: Any) -> AsyncIterator[bytes]:
        yield b"1"
        task = asyncio.ensure_future(asyncio.Event().wait())
        task.cancel()
        await task

    theirs, ours = (grpc.StatusCode.DEADLINE_EXCEEDED, 0.5), (grpc.StatusCode.CANCELLED, PATIENCE)
    expected, seconds = theirs if transport == "grpcio" else ours
    async with hosted(transport, unary=at_once, out=later) as server:
        for call in (server.unary(b"", timeout=seconds), server.out(b"", timeout=seconds)):
            assert (await failure(call)).code() is expected
        assert await server.method("Echo")(b"lives") == b"lives"


async def test_a_caller_that_closes_its_channel_waits_for_its_calls(transport: str) -> None:
    begun = asyncio.Event()

    async def handler(request: bytes, _context: Any) -> bytes:
        begun.set()
        await asyncio.sleep(0.1)
        return request

    async with hosted(transport, unary=handler) as server, channel_to(server.target) as channel:
        call = server.own("unary", channel)(b"x")
        await within(begun.wait())
        await channel.close(PATIENCE)
        assert await within(call) == b"x"


async def test_cancelling_after_the_answer_is_nothing(transport: str) -> None:
    async with hosted(transport) as server:
        for _ in range(20):
            call = server.method("Echo")(b"x")
            assert await call == b"x"
            assert not call.cancel()
        assert server.probe.cancelled == 0


async def test_cancelling_at_any_moment_leaves_nothing_behind(transport: str) -> None:
    """Calls of all kinds, cancelled after more and more turns of the loop."""
    calls: list[Callable[[Hosted], Any]] = [
        lambda server: server.method("Echo")(b"x" * 20_000),
        lambda server: server.method("Collect")(sending(*[b"x"] * 30)),
        lambda server: server.method("Repeat")(b"50:1000"),
        lambda server: server.method("Converse")(sending(*[b"x"] * 30)),
    ]
    async with hosted(transport) as server:
        for turns in range(0, 60, 2):
            begun = [make(server) for make in calls]
            for _ in range(turns):
                await asyncio.sleep(0)
            for call in begun:
                call.cancel()
        await settled(server)
        assert await server.method("Echo")(b"lives") == b"lives"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_stop_after_rapid_cancels_takes_no_grace(transport: str, kind: str) -> None:
    """Whatever a server remembers of calls in flight, it has forgotten of those that ended before they began."""
    witness = Witness()
    async with hosted(transport, **witness.behaviors) as server, wired(server.target) as wire:
        for _ in range(50):
            request = [b""] if kind in ("unary", "out") else []
            wire.cancel(wire.call(f"/tandemmq.test.Own/{kind}", *request, ended=kind in ("unary", "out")))
        assert (await wire.answer(wire.call("Echo", b"x"))).status == "0"
        await within(server.server.stop(60))
