"""The event loop as handlers find it: tasks, context variables, timeouts, from their first step on."""

import asyncio
import contextvars
import gc
import time
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import pytest

from tests.integration.grpc_transport.hosting import everything, failure, hosted, sending, settled, until, within
from tests.integration.grpc_transport.wire import wired

current: contextvars.ContextVar[str] = contextvars.ContextVar("current", default="none")


async def test_context_variables_are_a_calls_own(transport: str) -> None:
    async def handler(request: bytes, _context: Any) -> bytes:
        before = current.get()
        current.set(request.decode())
        await asyncio.sleep(0.01 if request.endswith(b"0") else 0)
        assert current.get() == request.decode()
        return before.encode()

    async def at_once(request: bytes, _context: Any) -> AsyncIterator[bytes]:
        yield current.get().encode()
        current.set(request.decode())
        yield current.get().encode()

    async with hosted(transport, unary=handler, out=at_once) as server:
        answers = await asyncio.gather(*(server.unary(b"%d" % number) for number in range(30)))
        assert answers == [b"none"] * 30
        for word in (b"a", b"b"):
            assert await everything(server.out(word)) == [b"none", word]
    assert current.get() == "none"


@pytest.mark.parametrize("turns", range(4))
async def test_what_is_put_off_does_not_run_with_the_variables_of_who_put_it_off(transport: str, turns: int) -> None:
    """Calls come in the turn in which another one has answered, more of them than fit into a slice of reading."""
    waits, released = asyncio.Event(), asyncio.Event()

    async def handler(request: bytes, _context: Any) -> bytes:
        before = current.get()
        current.set(request.decode())
        if request == b"first":
            waits.set()
            await released.wait()
        else:
            time.sleep(0.005)  # longer than a slice  # noqa: ASYNC251
        return before.encode()

    async with hosted(transport, unary=handler) as server, wired(server.target) as wire:
        first = wire.call("/tandemmq.test.Own/unary", b"first")
        await waits.wait()
        released.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        others = [wire.call("/tandemmq.test.Own/unary", b"%d" % number) for number in range(12)]
        for stream in (first, *others):
            assert (await wire.answer(stream)).messages == [b"none"]


async def test_context_variables_reach_the_tasks_of_a_handler(transport: str) -> None:
    async def child() -> str:
        await asyncio.sleep(0)
        return current.get()

    async def handler(request: bytes, _context: Any) -> bytes:
        token = current.set(request.decode())
        found = await asyncio.create_task(child())
        current.reset(token)
        return f"{found} {current.get()}".encode()

    async with hosted(transport, unary=handler) as server:
        assert await server.unary(b"here") == b"here none"


async def test_a_handler_runs_in_a_task_of_its_own(transport: str) -> None:
    """From its first step to its last, and each call in another one."""
    seen: list[tuple[asyncio.Task[Any] | None, ...]] = []

    async def handler(request: bytes, _context: Any) -> bytes:
        first = asyncio.current_task()
        await asyncio.sleep(0)
        seen.append((first, asyncio.current_task()))
        return request

    async with hosted(transport, unary=handler) as server:
        outside = asyncio.current_task()
        await asyncio.gather(server.unary(b""), server.unary(b""))
    tasks = {task for pair in seen for task in pair}
    assert len(tasks) == 2
    assert None not in tasks
    assert outside not in tasks
    assert all(first is second for first, second in seen)


async def test_current_task_in_a_handler_that_never_waits(transport: str) -> None:
    seen: list[Any] = []

    async def handler(request: bytes, _context: Any) -> bytes:
        seen.append(asyncio.current_task())
        assert asyncio.get_running_loop().is_running()
        return request

    async with hosted(transport, unary=handler) as server:
        await asyncio.gather(*(server.unary(b"") for _ in range(3)))
        assert asyncio.current_task() not in seen
    if transport == "grpcio":
        assert None not in seen


async def timeout_that_strikes(_request: Any, _context: Any) -> bytes:
    try:
        async with asyncio.timeout(0.02):
            await asyncio.Event().wait()
    except TimeoutError:
        return b"timed out"
    return b"?"


async def timeout_that_does_not(_request: Any, _context: Any) -> bytes:
    async with asyncio.timeout(40):  # noqa: ASYNC100
        pass
    async with asyncio.timeout(40):
        await asyncio.sleep(0)
    return b"in time"


async def task_group(_request: Any, _context: Any) -> bytes:
    async def square(number: int) -> int:
        await asyncio.sleep(0)
        return number * number

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(square(number)) for number in range(4)]
    return str([task.result() for task in tasks]).encode()


async def failing_task_group(_request: Any, _context: Any) -> bytes:
    async def broken() -> None:
        raise ValueError("bug")

    async def in_a_group() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(broken())
            group.create_task(asyncio.sleep(60))

    with pytest.raises(ExceptionGroup):
        await in_a_group()
    return b"group failed"


async def wait_for(_request: Any, _context: Any) -> bytes:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.Event().wait(), 0.02)
    return b"waited"


async def gathered(_request: Any, _context: Any) -> bytes:
    return b"".join(await asyncio.gather(*(asyncio.sleep(0, letter) for letter in (b"a", b"b"))))


async def shielded(_request: Any, _context: Any) -> bytes:
    return await asyncio.shield(asyncio.sleep(0, b"shielded"))


async def in_a_thread(_request: Any, _context: Any) -> bytes:
    return await asyncio.to_thread(lambda: b"thread")


async def locked(_request: Any, _context: Any) -> bytes:
    lock = asyncio.Lock()
    async with lock:
        waiting = asyncio.ensure_future(lock.acquire())
        await asyncio.sleep(0)
    await waiting
    return b"locked"


async def nothing_to_wait_for(_request: Any, _context: Any) -> bytes:
    future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    future.set_result(b"done before")
    return await future


async def yielding_bare(_request: Any, _context: Any) -> bytes:
    for _ in range(10):
        await asyncio.sleep(0)
    return b"ten turns"


async def cancelling_itself(_request: Any, _context: Any) -> bytes:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    try:
        await asyncio.sleep(10)
    except asyncio.CancelledError:
        task.uncancel()
        return b"came back"
    return b"?"


@pytest.mark.parametrize(
    ("handler", "answer"),
    [
        (timeout_that_strikes, b"timed out"),
        (timeout_that_does_not, b"in time"),
        (task_group, b"[0, 1, 4, 9]"),
        (failing_task_group, b"group failed"),
        (wait_for, b"waited"),
        (gathered, b"ab"),
        (shielded, b"shielded"),
        (in_a_thread, b"thread"),
        (locked, b"locked"),
        (nothing_to_wait_for, b"done before"),
        (yielding_bare, b"ten turns"),
        (cancelling_itself, b"came back"),
    ],
)
async def test_asyncio_works_in_the_first_step_of_a_handler(transport: str, handler: Any, answer: bytes) -> None:
    async def streaming(request: bytes, context: Any) -> AsyncIterator[bytes]:
        yield await handler(request, context)
        yield await handler(request, context)

    async with hosted(transport, unary=handler, into=handler, out=streaming, both=streaming) as server:
        assert await within(server.unary(b"")) == answer
        assert await within(server.into(sending())) == answer
        assert await within(everything(server.out(b""))) == [answer, answer]
        assert await within(everything(server.both(sending()))) == [answer, answer]


async def test_a_timeout_around_a_read_of_the_context(transport: str) -> None:
    """The read that timed out loses no request."""

    async def handler(_requests: Any, context: Any) -> bytes:
        found = [await context.read()]
        if transport == "fast":
            try:
                async with asyncio.timeout(0.02):
                    found.append(await context.read())
            except TimeoutError:
                found.append(b"timeout")
        await context.send_initial_metadata((("x-go", "on"),))
        while (request := await context.read()) is not grpc.aio.EOF:
            found.append(request)
        return b"/".join(found)

    async with hosted(transport, into=handler) as server:
        call = server.into()
        await call.write(b"1")
        await within(call.initial_metadata())
        await call.write(b"2")
        await call.done_writing()
        assert await within(call) == (b"1/timeout/2" if transport == "fast" else b"1/2")


async def test_two_tasks_of_a_handler_may_write(transport: str) -> None:
    """Each message comes whole, even when the caller's window cuts it. (grpcio allows one write at a time.)"""
    if transport == "grpcio":
        pytest.skip("grpcio allows one write at a time")
    size = 200_000

    async def handler(_request: bytes, context: Any) -> None:
        async def write(letter: bytes) -> None:
            for _ in range(20):
                await context.write(letter * size)

        async with asyncio.TaskGroup() as group:
            for letter in (b"a", b"b", b"c"):
                group.create_task(write(letter))

    async with hosted(transport, out=handler) as server:
        answers = await within(everything(server.out(b"")))
    assert sorted(answers) == [letter * size for letter in (b"a", b"b", b"c") for _ in range(20)]


async def test_plain_functions_may_be_handlers_of_one_request(transport: str) -> None:
    """grpcio runs them in a thread, ours on the event loop."""

    def unary(request: bytes, _context: Any) -> bytes:
        return request

    def out(request: bytes, _context: Any) -> Iterator[bytes]:
        yield request
        yield request

    async with hosted(transport, unary=unary, out=out) as server:
        assert await within(server.unary(b"x")) == b"x"
        assert await within(everything(server.out(b"x"))) == [b"x", b"x"]


def test_on_asyncios_own_event_loop(transport: str) -> None:
    async def with_timeout(request: bytes, _context: Any) -> bytes:
        async with asyncio.timeout(40):
            await asyncio.sleep(0.01)
        return request

    async def calls() -> None:
        async with hosted(transport, unary=with_timeout) as server:
            assert await within(server.unary(b"x")) == b"x"
            assert await within(server.method("Collect")(sending(b"a", b"b"))) == b"a|b"
            assert await within(everything(server.method("Repeat")(b"3:100000"))) == [b"r" * 100_000] * 3
            assert await within(everything(server.method("Converse")(sending(b"a", b"b")))) == [b"A", b"B"]
            error = await failure(server.method("Wait")(b"", timeout=0.1))
            assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            await settled(server)

    asyncio.run(calls())


async def test_a_call_that_is_over_leaves_no_cycle_behind(transport: str) -> None:
    """What only the garbage collector frees makes it run, and stops the whole server meanwhile."""
    contexts: list[weakref.ref[Any]] = []

    async def handler(request: bytes, context: Any) -> bytes:
        contexts.append(weakref.ref(context))
        if request:
            await asyncio.sleep(0)
        return request

    async def streaming(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        contexts.append(weakref.ref(context))
        async for request in requests:
            yield request

    if transport == "grpcio":
        pytest.skip("contexts of grpcio cannot be watched")
    async with hosted(transport, unary=handler, both=streaming) as server, wired(server.target) as wire:
        gc.collect()
        gc.disable()
        try:
            for request in (b"", b"x"):
                assert (await wire.answer(wire.call("/tandemmq.test.Own/unary", request))).status == "0"
            assert (await wire.answer(wire.call("/tandemmq.test.Own/both", b"1", b"2"))).status == "0"
            await until(lambda: [each for each in contexts if each() is not None] == [])
            assert len(contexts) == 3
        finally:
            gc.enable()


async def test_a_handler_that_keeps_the_loop_busy_delays_but_breaks_nothing(transport: str) -> None:
    async def handler(request: bytes, _context: Any) -> bytes:
        total = sum(range(300_000))
        return request + b"%d" % (total % 2)

    async with hosted(transport, unary=handler) as server:
        answers = await asyncio.gather(*(server.unary(b"%d:" % number) for number in range(20)))
        assert answers == [b"%d:0" % number for number in range(20)]
