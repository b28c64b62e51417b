"""Waiting by timers that are handed in: for so long, and no longer than that."""

import asyncio
import re

import pytest

from tandemmq.common.timers import LoopTimers, Timers, first_of, my_turn, time_limit
from tests.manual_timers import ManualTimers
from tests.test_structure import name_of, sources
from tests.turn_counter import TurnCounter


async def limited(timers: Timers, seconds: float | None, event: asyncio.Event) -> str:
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


async def test_without_a_limit_there_is_no_end() -> None:
    timers, event = ManualTimers(), asyncio.Event()
    waiting = asyncio.create_task(limited(timers, None, event))
    await timers.advance(1_000_000)
    event.set()
    assert await waiting == "in time"


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


OF_THEIR_OWN = {
    "services/common/timers.py",  # the timers of a loop are made there
    "services/node/child.py",  # processes, which have no other clock
    "services/node/supervisor.py",  # the same
    "services/admin/jobs/job_process.py",  # the same
}
"""At the edges. They wait by the loop itself."""
THE_TRANSPORT = "services/common/grpc_transport/"
"""Knows nothing of the project, nor its timers."""
WITH_TIMERS = ("store", "replicator", "metasync", "admin", "gateway", "naming", "node", "hooks", "client", "common")

WAITS = re.compile(
    r"loop\(?\)?\.(time|call_later|call_at)\b|asyncio\.(timeout\(|wait_for\()|asyncio\.sleep\((?!0\))|asyncio\.wait\(.*timeout="
)


@pytest.mark.parametrize("service", WITH_TIMERS)
def test_services_wait_by_timers_that_are_handed_in(service: str) -> None:
    found = {
        name_of(path)
        for path in sources(f"services/{service}")
        if not name_of(path).startswith(THE_TRANSPORT)
        and any(WAITS.search(line) for line in path.read_text().splitlines() if not line.lstrip().startswith("#"))
    }
    assert found == {name for name in OF_THEIR_OWN if name.startswith(f"services/{service}/")}


@pytest.mark.parametrize(
    "line",
    [
        "await asyncio.sleep(0.1)",
        "await asyncio.sleep(pause)",
        "async with asyncio.timeout(5):",
        "self._loop.call_later(1, f)",
        "asyncio.get_running_loop().call_at(1, f)",
        "await asyncio.wait((one,), timeout=5)",
    ],
)
def test_who_waits_otherwise_is_found(line: str) -> None:
    assert WAITS.search(line)
    assert not WAITS.search("await asyncio.sleep(0)")


@pytest.mark.parametrize("by_hand", [True, False], ids=["by hand", "of the loop"])
async def test_of_those_in_the_line_each_turn_has_one(by_hand: bool) -> None:
    """Ten long works that went on in every turn made it ten times as long as one."""
    timers: Timers = ManualTimers() if by_hand else LoopTimers()
    done: list[int] = []
    with TurnCounter.counting() as count:

        async def work(number: int) -> None:
            for _ in range(5):
                await my_turn(timers)
                count()
                done.append(number)

        def call(left: int) -> None:
            count()
            done.append(9)
            if left:
                timers.call_in_line(lambda: call(left - 1))

        call(4)
        await asyncio.gather(*(work(number) for number in range(3)))
        assert (count.all, count.most) == (20, 1)
    begin = done.index(2)
    assert sorted(done[begin : begin + 4]) == sorted(done[begin + 1 : begin + 5]) == [0, 1, 2, 9], "each in its turn"
