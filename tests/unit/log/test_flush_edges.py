"""Flush and dispatch when something goes wrong that is no error of the disk."""

import asyncio
import errno
import os
import shutil
import threading
from pathlib import Path

import pytest

from tandemmq.common.timers import Timers
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.log.config import SYNC_FLUSH, StoreConfig
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.index.index import Index
from tandemmq.store.log.index.index_file import IndexFile
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.recovery.rebuild import rebuild_index
from tandemmq.store.log.segments.syncing import error_of
from tests.manual_timers import ManualTimers

HOST = Host("10.0.0.1", 10911)
MESSAGE = Message("Topic", 0, b"body", b"KEYS\x01key\x02", born_host=HOST, store_host=HOST)


def _open(
    root: Path, flush: str = "ASYNC_FLUSH", disk: LocalDisk | None = None, timers: Timers | None = None
) -> MessageStore:
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
        timers=timers,
    )


async def test_a_sync_that_was_cancelled_acknowledges_nothing(tmp_path: Path) -> None:
    """It has not said that the disk has the message."""
    store = _open(tmp_path, SYNC_FLUSH)
    store.start()
    appended = store.append(MESSAGE)
    before = store.flushed_offset
    cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    cancelled.cancel()
    store._flush._end_group(error_of(cancelled), appended.end_offset, 0.0)
    assert store.flushed_offset == before
    assert not store.writable
    await store.close()


async def test_whatever_goes_wrong_in_a_flush_is_a_failed_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the store would take messages that nobody ever makes durable, and could not be stopped."""
    store = _open(tmp_path, SYNC_FLUSH)
    store.start()

    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(asyncio.get_running_loop(), "run_in_executor", refused, raising=False)
    monkeypatch.setattr(store._parts.files, "put_back_deleted", refused)
    appended = store.append(MESSAGE)
    async with asyncio.timeout(60):
        assert not await store.wait_flushed(appended.end_offset)
        assert not store.writable
        assert "can't start new thread" in store.why_not_writable
        monkeypatch.undo()
        await store.close()
    assert (tmp_path / "abort").exists()


async def test_whatever_goes_wrong_when_a_flush_is_told_is_a_failed_flush(tmp_path: Path) -> None:
    """Who waits for it must hear of it."""
    store = _open(tmp_path, SYNC_FLUSH)
    store.start()
    appended = store.append(MESSAGE)

    def unforeseen() -> None:
        raise MemoryError

    store._flush._on_flushed = unforeseen
    async with asyncio.timeout(60):
        assert not await store.wait_flushed(appended.end_offset)
        assert "MemoryError" in store.why_not_writable
        await store.close()


async def test_a_queue_file_that_cannot_be_opened_to_be_synced_is_synced_later(tmp_path: Path) -> None:
    """Too many open files: its pages are as dirty as before, and the disk is well."""

    class NoDescriptors(LocalDisk):
        short = False

        def open(self, path: Path, flags: int) -> int:
            if self.short:
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
            return super().open(path, flags)

    disk = NoDescriptors()
    store = _open(tmp_path, disk=disk)
    store.start()
    store.append(MESSAGE)
    store.catch_up()
    disk.short = True
    with pytest.raises(OSError, match="Too many open files"):
        await store._checkpointer.take()
    assert store.writable
    assert any(queue.is_dirty for queue in store.queues())
    disk.short = False
    await store.close()
    assert not (tmp_path / "abort").exists()


async def test_dispatch_that_meets_an_unforeseen_error_says_so_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else sends would go on, and nobody would ever see their messages."""
    timers = ManualTimers()
    store = _open(tmp_path, timers=timers)
    store.start()
    append, broken = store._parts.queues.append, True

    def failing(runs: object) -> None:
        if broken:
            raise ValueError("unforeseen")
        append(runs)  # type: ignore[arg-type]

    monkeypatch.setattr(store._parts.queues, "append", failing)
    store.append(MESSAGE)
    await timers.advance(0.9)
    assert "unforeseen" in store.why_not_writable
    broken = False
    await timers.advance(0.2)
    assert not store.why_not_writable
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

    def replace_by(present: Index, fresh: Index) -> list[IndexFile]:
        assert {str(file.file.path) for file in fresh.files} <= set(synced)
        return swapped(present, fresh)

    swapped = Index.replace_by
    monkeypatch.setattr(disk, "sync", sync)
    monkeypatch.setattr(Index, "replace_by", replace_by)
    store = _open(tmp_path, disk=disk)
    store.start()
    await store.rebuilt()
    assert store.recovery.index_complete
    await store.close()


async def test_a_new_index_is_put_in_place_without_the_disk_on_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are large: taking them away, and making names durable, would hold up all sends."""
    store = _open(tmp_path)
    store.start()
    for _ in range(10):
        store.append(MESSAGE)
    await store.close()
    shutil.rmtree(tmp_path / "index")
    (tmp_path / "index.old").mkdir()
    disk, loop, waited = LocalDisk(), threading.get_ident(), []
    rmtree, sync_dir = shutil.rmtree, disk.sync_dir

    def removed(path: Path, ignore_errors: bool = False) -> None:
        waited.append((path.name, threading.get_ident()))
        rmtree(path, ignore_errors)

    def synced(path: Path) -> None:
        waited.append((path.name, threading.get_ident()))
        sync_dir(path)

    store = _open(tmp_path, disk=disk)
    store.start()
    await store.rebuilt()
    (tmp_path / "index.old").mkdir()
    monkeypatch.setattr(shutil, "rmtree", removed)
    monkeypatch.setattr(disk, "sync_dir", synced)
    await rebuild_index(store._parts)
    assert [name for name, _ in waited[-2:]] == [tmp_path.name, "index.old"]
    assert loop not in {thread for _, thread in waited}
    assert not (tmp_path / "index.old").exists()
    await store.close()


async def test_answers_leave_before_dispatch_and_who_has_one_finds_the_message(tmp_path: Path) -> None:
    store = _open(tmp_path, SYNC_FLUSH)
    order: list[str] = []
    loop, both = asyncio.get_running_loop(), asyncio.Event()

    def dispatched() -> None:
        order.append("dispatched")
        both.set()

    store.dispatched.listen(dispatched)

    def answered(_: bool) -> None:
        loop.call_soon(order.append, "answered")

    store.when_flushed(store.append(MESSAGE).end_offset, answered)
    await both.wait()
    assert order == ["answered", "dispatched"]
    found: list[int] = []

    def look(_: bool) -> None:
        queue = store.queue("Topic", 0)
        found.append(0 if queue is None else queue.max_offset)

    store.when_flushed(store.append(MESSAGE).end_offset, look)
    while not found:
        await asyncio.sleep(0)
    assert found == [2]
    await store.close()
