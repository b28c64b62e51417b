"""Pools whose threads run before there is work."""

import asyncio
import threading

import pytest

from tandemmq.common.processes.started_pool import COMPUTING, NoThreads, start_loop_threads, started_pool


def test_all_threads_run_before_there_is_work(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = started_pool(3, "early")
    try:
        assert sum(thread.name.startswith("early") for thread in threading.enumerate()) == 3
        monkeypatch.setattr(threading.Thread, "start", _refuse)
        meeting = threading.Barrier(3)
        assert {done.result(timeout=60) for done in [pool.submit(meeting.wait) for _ in range(3)]} == {0, 1, 2}
    finally:
        pool.shutdown()


@pytest.mark.parametrize("started", [0, 2])
def test_a_thread_that_cannot_be_started_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch, started: int) -> None:
    start, left = threading.Thread.start, [started]

    def start_some(thread: threading.Thread) -> None:
        if not left[0]:
            _refuse(thread)
        left[0] -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_some)
    with pytest.raises(NoThreads, match="can't start new thread"):
        started_pool(3, "short")
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("short")]


def _refuse(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def test_computing_waits_for_no_disk() -> None:
    """The loop's own threads are busy for as long as the disk takes; what computes goes on."""
    start_loop_threads()
    disk = threading.Event()
    waiting = [asyncio.create_task(asyncio.to_thread(disk.wait, 60)) for _ in range(8)]
    async with asyncio.timeout(60):
        assert await COMPUTING.do(sum, [1, 2]) == 3
    assert not any(task.done() for task in waiting)
    disk.set()
    await asyncio.gather(*waiting)
