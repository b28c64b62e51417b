"""Those who wait for the disk: told together when it answers, and told in time when it does not."""

import asyncio
import threading
from pathlib import Path

from tandemmq.common.timers import LoopTimers
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.log.config import SYNC_FLUSH, StoreConfig
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.edges.offset_waiters import OffsetWaiters
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.observer import NullObserver

HOST = Host("10.0.0.1", 10911)
MESSAGE = Message("Topic", 0, b"body", born_host=HOST, store_host=HOST)


class _HeldDisk(LocalDisk):
    """A disk that answers a sync only when it is let."""

    def __init__(self) -> None:
        self.let = threading.Event()
        self.let.set()

    def sync(self, fd: int) -> None:
        self.let.wait(60)
        super().sync(fd)


class _Groups(NullObserver):
    """Counts the group commits."""

    def __init__(self) -> None:
        self.count = 0

    def flushed(self, seconds: float, size: int) -> None:
        self.count += 1


def _open(root: Path, disk: LocalDisk, timeout_ms: int, groups: NullObserver) -> MessageStore:
    config = StoreConfig(
        root,
        mapped_file_size_commit_log=64 << 10,
        mapped_file_size_consume_queue=2_000,
        max_hash_slot_num=50,
        max_index_num=500,
        flush_disk_type=SYNC_FLUSH,
        sync_flush_timeout=timeout_ms,
        compiled_walker="never",
    )
    return MessageStore.open(config, disk=disk, observer=groups)


async def test_all_who_wait_are_told_by_one_sync(tmp_path: Path) -> None:
    """However many they are."""
    groups = _Groups()
    store = _open(tmp_path, LocalDisk(), 60_000, groups)
    store.start()
    waiting = [asyncio.ensure_future(store.wait_flushed(store.append(MESSAGE).end_offset)) for _ in range(100)]
    assert await asyncio.gather(*waiting) == [True] * 100
    assert groups.count == 1
    await store.close()


async def test_a_disk_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    """Earlier and later ones get their False when their own time is over, one that was cancelled gets nothing."""
    disk = _HeldDisk()
    store = _open(tmp_path, disk, 50, NullObserver())
    store.start()
    disk.let.clear()
    loop = asyncio.get_running_loop()
    begun = loop.time()
    first, cancelled, second = (
        asyncio.ensure_future(store.wait_flushed(store.append(MESSAGE).end_offset)) for _ in range(3)
    )
    patient = store._flush.wait(store.commit_log.max_offset)
    cancelled.cancel()
    assert await first is False
    third = asyncio.ensure_future(store.wait_flushed(store.append(MESSAGE).end_offset))
    assert await second is False
    assert not third.done()
    assert await third is False
    assert loop.time() - begun >= 0.09
    assert cancelled.cancelled()
    assert not patient.done()
    disk.let.set()
    assert await patient is True
    assert await store._flush.wait(store.append(MESSAGE).end_offset), "it answers again, however slowly"
    await store.close()


async def test_one_that_cannot_be_told_does_not_leave_the_others_waiting() -> None:
    """Neither where the log fails, nor where it takes too long."""

    def broken(_answer: bool) -> None:
        raise RuntimeError("it is in pieces")

    waiters, told = OffsetWaiters(LoopTimers()), list[bool]()
    waiters.add(1, broken)
    waiters.add(1, told.append)
    waiters.fail()
    assert told == [False]
    assert not waiters
    late: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    waiters.add(1, broken, 0.001)
    waiters.add(1, late.set_result, 0.001)
    async with asyncio.timeout(60):
        assert await late is False
    assert not waiters
