"""What the store does by itself, by timers that the test moves on: nothing here waits for time to pass."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tandemmq.store.log.edges.disk import DiskUsage, LocalDisk
from tandemmq.store.log.errors import DiskFull
from tandemmq.store.log.message_store import MessageStore
from tests.manual_timers import ManualTimers
from tests.unit.log.replica_kit import config, message, opened

_NEVER_MS = 1 << 40
QUIET: dict[str, Any] = {
    "flush_interval_commit_log": _NEVER_MS,
    "flush_interval_consume_queue": _NEVER_MS,
    "clean_resource_interval": _NEVER_MS,
}
"""Nothing else is due."""


async def test_the_log_is_flushed_at_its_interval(tmp_path: Path) -> None:
    timers = ManualTimers()
    store = opened(tmp_path, timers=timers, flush_interval_commit_log=500, flush_commit_log_thorough_interval=10_000)
    end = store.append(message(1)).end_offset
    await timers.advance(9.9)
    assert store.flushed_offset == 0, "less than flushCommitLogLeastPages are dirty"
    await timers.advance(0.6)
    assert await store._flush.wait(end)
    await store.close()


async def test_a_checkpoint_is_taken_at_its_interval(tmp_path: Path) -> None:
    timers = ManualTimers()
    settings: dict[str, Any] = {"flush_interval_consume_queue": 1_000, "flush_consume_queue_thorough_interval": 60_000}
    store = opened(tmp_path, timers=timers, **settings)
    store.append(message(1))
    store.catch_up()
    await timers.advance(50)
    assert not (tmp_path / "tandem.manifest").exists()
    await timers.advance(12)
    async with asyncio.timeout(60):
        while not (tmp_path / "tandem.manifest").exists():
            await asyncio.sleep(0.001)  # a thread writes it
    await store.close()


async def test_the_first_scrub_comes_after_ten_minutes_the_next_a_day_later(tmp_path: Path) -> None:
    timers = ManualTimers()
    told = []
    store = opened(tmp_path, timers=timers, **QUIET)

    async def once(*, paced: bool = False) -> None:
        told.append((timers.time(), paced))

    store.scrub.once = once  # type: ignore[method-assign]
    begun = timers.time()
    await timers.advance(599)
    assert told == []
    await timers.advance(2)
    assert told == [(begun + 600, True)]
    await timers.advance(86_400)
    assert told[1:] == [(begun + 600 + 86_400, True)]
    await store.close()


class FilledDisk(LocalDisk):
    """Has no room the first three times that somebody looks after it was filled."""

    def __init__(self, timers: ManualTimers) -> None:
        self.timers = timers
        self.looks: list[float] = []

    def usage(self, path: Path) -> DiskUsage:
        self.looks.append(self.timers.time())
        return replace(super().usage(path), free=0 if len(self.looks) < 4 else 1 << 40, used=0, total=1 << 40)


async def test_a_full_disk_is_looked_at_every_second(tmp_path: Path) -> None:
    timers = ManualTimers()
    disk = FilledDisk(timers)
    store = MessageStore.open(config(tmp_path, **QUIET), disk=disk, timers=timers)
    store.start()
    disk.looks.clear()
    store._disk_full(DiskFull("No room."))
    begun = timers.time()
    await timers.advance(3.5)
    assert disk.looks == [begun + 1, begun + 2, begun + 3]
    with pytest.raises(DiskFull):
        store.append(message(1))
    await timers.advance(1)
    assert store.append(message(1)).queue_offset == 0
    await store.close()


async def test_a_store_is_opened_in_a_thread_which_has_no_timers(tmp_path: Path) -> None:
    """As the service does it, so that its loop answers while the log is recovered."""
    for already in (0, 1):
        store = await asyncio.to_thread(MessageStore.open, config(tmp_path))
        store.start()
        assert store.append(message(1)).queue_offset == already
        await store.close()


async def test_what_nobody_was_told_of_is_dispatched_with_what_comes_and_at_its_time(tmp_path: Path) -> None:
    timers = ManualTimers()
    store = opened(tmp_path, timers=timers, **QUIET)

    def seen() -> int:
        queue = store.queue("Topic0", 0)
        return 0 if queue is None else queue.max_offset

    store.append(message(6))
    assert seen() == 1, "who was told of a message finds it"
    store.append(message(12), told=False)
    assert seen() == 1
    await timers.advance(0.01)
    assert seen() == 2
    store.append(message(18), told=False)
    store.append(message(24))
    assert seen() == 4
    store.append(message(30), told=False)
    assert seen() == 4
    store.catch_up()
    assert seen() == 5
    await timers.advance(1)
    store.append(message(36), told=False)
    await timers.advance(0.01)
    assert seen() == 5, "there is time: others may come"
    store.append(message(42), told=False)
    await timers.advance(0.01)
    assert seen() == 7
    store.append(message(48), told=False)
    await timers.advance(0.001)
    store.append(message(54))
    await timers.advance(0)
    assert store.dispatched_offset == store.commit_log.max_offset, "what somebody is told of does not wait with it"
    store.append(message(60), told=False)
    await store.close()
    again = opened(tmp_path, **QUIET)
    queue = again.queue("Topic0", 0)
    assert queue is not None
    assert queue.max_offset == 10
    await again.close()


async def test_sends_and_reads_in_turns_leave_no_timers_behind(tmp_path: Path) -> None:
    """A read dispatches what a send has scheduled a turn for: each would leave a turn, one after the other."""
    timers = ManualTimers()
    store = opened(tmp_path, timers=timers, **QUIET)
    await timers.advance(1)
    before = timers.coming
    for at in range(50):
        store.append(message(0))
        queue = store.queue("Topic0", 0)
        assert queue is not None
        assert queue.max_offset == at + 1
        await asyncio.sleep(0)
    assert timers.coming <= before + 1
    store.append(message(6))
    await timers.advance(0.002)
    assert store.dispatched_offset == store.commit_log.max_offset
    await store.close()
