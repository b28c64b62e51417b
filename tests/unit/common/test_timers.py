"""Waiting by timers that are handed in: for so long, and no longer than that."""

import asyncio

import pytest

from tandemmq.common.timers import LoopTimers, Timers, first_of, time_limit
from tests.manual_timers import ManualTimers


async def limited(timers: Timers, seconds: float, event: asyncio.Event) -> str:
    try:
        async with time_limit(timers, seconds):
            await event.wait()
    except TimeoutError:
        return "too late"
    return "in time"


async def test_what_takes_too_long_is_ended() -> None:
    timers, event = ManualTimers(), asyncio.Event()
    waiting = asyncio.create_task(limited(timers, 5, event))
    await timers.advance(4.9)
    assert not waiting.done()
    await timers.advance(0.2)
    assert await waiting == "too late"


async def test_what_ends_in_time_is_left_alone_later() -> None:
    timers, event = ManualTimers(), asyncio.Event()
    waiting = asyncio.create_task(limited(timers, 5, event))
    await timers.advance(4.9)
    event.set()
    assert await waiting == "in time"
    await timers.advance(10)


async def test_who_is_cancelled_is_not_late() -> None:
    timers, event = ManualTimers(), asyncio.Event()
    waiting = asyncio.create_task(limited(timers, 5, event))
    await timers.advance(1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize("timers", [ManualTimers(), LoopTimers()], ids=["by hand", "of the loop"])
async def test_no_time_at_all(timers: Timers) -> None:
    waiting = asyncio.create_task(limited(timers, -1, asyncio.Event()))
    if isinstance(timers, ManualTimers):
        await timers.advance(0)
    assert await waiting == "too late"


async def test_the_first_of_several_is_waited_for() -> None:
    timers = ManualTimers()
    one, other = (asyncio.get_running_loop().create_future() for _ in range(2))
    for seconds in (None, 5.0):
        waiting = asyncio.create_task(first_of(timers, (one, other), seconds))
        await timers.advance(4)
        assert not waiting.done()
        other.set_result(None)
        await waiting
        assert not one.done()
        other = asyncio.get_running_loop().create_future()


async def test_none_of_several_in_time() -> None:
    timers = ManualTimers()
    one: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(first_of(timers, (one,), 5))
    await timers.advance(5)
    await waiting
    assert not one.done(), "it may be waited for again"


async def test_a_call_that_is_cancelled_does_not_come() -> None:
    for timers in (ManualTimers(), LoopTimers()):
        called: list[int] = []
        for when in (timers.call_soon(called.append, 1), timers.call_later(0, called.append, 2)):
            when.cancel()
        timers.call_at(timers.time(), called.append, 3)
        await (timers.advance(0) if isinstance(timers, ManualTimers) else timers.sleep(0.001))
        assert called == [3]
