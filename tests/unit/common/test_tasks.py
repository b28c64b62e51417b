"""Ending what runs in the background."""

import asyncio

import pytest

from tandemmq.common.tasks import end_tasks
from tests.manual_timers import ManualTimers


async def stubborn(cancels: int) -> None:
    """Ends when it has been cancelled so often."""
    while cancels:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancels -= 1


async def test_a_task_is_cancelled_until_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    timers = ManualTimers()
    tasks = [asyncio.create_task(stubborn(cancels)) for cancels in (0, 1, 4, 6)]
    await timers.advance(0)
    ending = asyncio.create_task(end_tasks(timers, None, *tasks))
    ended = []
    for _ in range(6):
        await timers.advance(1.01)
        ended.append([task.done() for task in tasks])
    assert ended[1] == [True, True, False, False]
    assert ended[5] == [True, True, True, False]
    await ending
    assert [record.message for record in caplog.records] == ["a background task does not end"]
    tasks[-1].cancel()
    await asyncio.wait(tasks)
