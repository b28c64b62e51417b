"""A consume queue over time and beside damage: waiters that gave up are forgotten, absurd numbers are not believed."""

import asyncio
from pathlib import Path

from tandemmq.store.format.unit import pack_unit
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.edges.file_cache import FileCache
from tandemmq.store.log.queues.consume_queue import ConsumeQueue


def _queue(root: Path) -> ConsumeQueue:
    disk = LocalDisk()
    return ConsumeQueue(root / "Topic" / "0", 2_000, disk, FileCache(disk))


async def test_who_stops_waiting_is_forgotten(tmp_path: Path) -> None:
    """A quiet queue is polled for years; each poll that ends must not leave anything behind."""
    queue = _queue(tmp_path)
    for _ in range(1_000):
        queue.wait_beyond(0).cancel()
    await asyncio.sleep(0)
    assert len(queue._waiters) == 0


async def test_who_waits_is_woken_when_the_message_is_there(tmp_path: Path) -> None:
    """And only then."""
    queue = _queue(tmp_path)
    first, second = queue.wait_beyond(0), queue.wait_beyond(1)
    queue.append_run(0, pack_unit(0, 100, 0), 100)
    assert first.done()
    assert not second.done()
    queue.append_run(1, pack_unit(100, 100, 0), 200)
    assert second.done()


def test_a_queue_offset_that_the_log_has_no_room_for_is_not_believed(tmp_path: Path) -> None:
    """No checksum covers QUEUEOFFSET; a flipped high bit must not fill the disk, nor hide all messages behind it."""
    queue = _queue(tmp_path)
    queue.append_run(0, pack_unit(0, 100, 0), 100)
    assert queue.append_run(1 | 1 << 50, pack_unit(100, 100, 0), 200) == 0
    assert queue.append_run(2, pack_unit(200, 100, 0), 300) == 1
    assert queue.max_offset == 3


def test_a_queue_that_has_expired_begins_behind_the_gap_that_follows(tmp_path: Path) -> None:
    """Files may go while a rebuild reads them: what it skips is blank, and must not count as readable."""
    queue = _queue(tmp_path)
    queue.append_run(0, b"".join(pack_unit(at * 100, 100, 0) for at in range(5)), 500)
    queue.correct_min_offset(10_000)
    assert (queue.min_offset, queue.max_offset) == (5, 5)
    queue.append_run(8, pack_unit(10_000, 100, 0), 10_100)
    assert (queue.min_offset, queue.max_offset) == (8, 9)


def test_a_gap_behind_messages_hides_none_of_them(tmp_path: Path) -> None:
    queue = _queue(tmp_path)
    queue.append_run(0, pack_unit(0, 100, 0), 100)
    queue.append_run(3, pack_unit(300, 100, 0), 400)
    assert (queue.min_offset, queue.max_offset) == (0, 4)
