"""Flush and dispatch when something goes wrong that is no error of the disk."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.log.config import SYNC_FLUSH, StoreConfig
from tandemmq.store.log.disk import LocalDisk
from tandemmq.store.log.index import Index
from tandemmq.store.log.message_store import MessageStore

HOST = Host("10.0.0.1", 10911)
MESSAGE = Message("Topic", 0, b"body", b"KEYS\x01key\x02", born_host=HOST, store_host=HOST)


def _open(root: Path, flush: str = "ASYNC_FLUSH", disk: LocalDisk | None = None) -> MessageStore:
    return MessageStore.open(
        StoreConfig(
            root,
            mapped_file_size_commit_log=64 << 10,
            mapped_file_size_consume_queue=2_000,
            max_hash_slot_num=50,
            max_index_num=500,
            flush_disk_type=flush,
            compiled_walker="never",
        ),
        disk=disk,
    )


async def test_a_sync_that_was_cancelled_acknowledges_nothing(tmp_path: Path) -> None:
    """It has not said that the disk has the message."""
    store = _open(tmp_path, SYNC_FLUSH)
    store.start()
    appended = store.append(MESSAGE)
    before = store.flushed_offset
    cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    cancelled.cancel()
    store._flush._end_group(cancelled, appended.end_offset, 0, 0.0)
    assert store.flushed_offset == before
    assert not store.writable
    await store.close()


async def test_dispatch_that_meets_an_unforeseen_error_says_so_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else sends would go on, and nobody would ever see their messages."""
    monkeypatch.setattr("tandemmq.store.log.dispatch._RETRY_SECONDS", 0.01)
    store = _open(tmp_path)
    store.start()
    append, broken = store._parts.queues.append, True

    def failing(runs: object) -> None:
        if broken:  # the next try too, if it comes before the test has looked
            raise ValueError("unforeseen")
        append(runs)  # type: ignore[arg-type]

    monkeypatch.setattr(store._parts.queues, "append", failing)
    store.append(MESSAGE)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert "unforeseen" in store.why_not_writable
    broken = False
    async with asyncio.timeout(60):
        while store.why_not_writable:
            await asyncio.sleep(0.01)
    queue = store.queue("Topic", 0)
    assert queue is not None
    assert queue.max_offset == 1
    await store.close()


async def test_an_index_that_takes_the_place_of_a_lost_one_is_durable_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut behind the swap must not leave holes in files that no later start looks into."""
    store = _open(tmp_path)
    store.start()
    for _ in range(10):
        store.append(MESSAGE)
    await store.close()
    shutil.rmtree(tmp_path / "index")
    synced: list[str] = []
    disk = LocalDisk()

    def sync(fd: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))
        os.fdatasync(fd)

    def replace_by(present: Index, fresh: Index) -> None:
        assert {str(file.file.path) for file in fresh.files} <= set(synced)
        swapped(present, fresh)

    swapped = Index.replace_by
    monkeypatch.setattr(disk, "sync", sync)
    monkeypatch.setattr(Index, "replace_by", replace_by)
    store = _open(tmp_path, disk=disk)
    store.start()
    await store.rebuilt()
    assert store.recovery.index_complete
    await store.close()
