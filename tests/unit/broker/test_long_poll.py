"""Waiting: many at once, and what ends it."""

import asyncio
from pathlib import Path

import pytest

from tandemmq.store.broker.errors import StoreStopping
from tandemmq.store.broker.pulled import PullStatus, Wanted
from tests.unit.broker.broker_kit import Kit, bodies, broker


async def begun(kit: Kit, count: int) -> None:
    """Turns of the loop until so many wait."""
    async with asyncio.timeout(60):
        while len(kit.polls) != count:
            await asyncio.sleep(0)


async def test_a_thousand_who_wait_are_all_answered(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        kit.send("orders", b"old")
        await kit.dispatched()
        wanted = [Wanted("orders", number % 4, 1 if number % 4 == 0 else 0, 32, 1 << 20) for number in range(1000)]
        waiting = [asyncio.create_task(kit.polls.pull(kit.puller, one, 60)) for one in wanted]
        await begun(kit, 1000)
        for queue_id in range(4):
            kit.send("orders", b"new", queue_id)
        answers = await asyncio.gather(*waiting)
        assert all(bodies(answer) == [b"new"] for answer in answers)
        assert len(kit.polls) == 0


async def test_stopping_ends_all_waits(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        kit.send("orders")
        await kit.dispatched()
        wanted = Wanted("orders", 0, 1, 32, 1 << 20)
        waiting = [asyncio.create_task(kit.polls.pull(kit.puller, wanted, 60)) for _ in range(10)]
        await begun(kit, 10)
        kit.polls.stop()
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(outcome, StoreStopping) for outcome in outcomes)
        with pytest.raises(StoreStopping):
            await kit.polls.pull(kit.puller, wanted, 20)


async def test_a_cancelled_wait_leaves_nothing_behind(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        kit.send("orders")
        await kit.dispatched()
        task = asyncio.create_task(kit.polls.pull(kit.puller, Wanted("orders", 0, 1, 32, 1 << 20), 60))
        await begun(kit, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(kit.polls) == 0


async def test_no_news(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        kit.send("orders")
        await kit.dispatched()
        pulled = await kit.polls.pull(kit.puller, Wanted("orders", 0, 1, 32, 1 << 20), 0.02)
        assert pulled.status is PullStatus.NO_NEW_MESSAGE
