"""Old files go in a thread, and what follows from it in slices: the loop serves others meanwhile."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.timers import Timers
from tandemmq.store.log.edges.disk import DiskUsage, LocalDisk
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.mapped_file import MappedFile
from tests.manual_timers import ManualTimers
from tests.unit.log.replica_kit import FILE_SIZE, config, message

MESSAGES = 600


class HeldDisk(LocalDisk):
    """A disk that takes its time over removing the files of one directory, but for those removed on the event loop."""

    def __init__(self, directory: str = "commitlog") -> None:
        super().__init__()
        self.directory = directory
        self.reached, self.go_on = threading.Event(), threading.Event()
        self.where: list[str] = []

    def unlink(self, path: Path) -> None:
        if path.parent.name == self.directory and path.name.isdigit():
            self.where.append(threading.current_thread().name)
            self.reached.set()
            assert threading.current_thread() is threading.main_thread() or self.go_on.wait(60)
        super().unlink(path)


def filled(root: Path, disk: LocalDisk, timers: Timers | None = None) -> MessageStore:
    settings: dict[str, Any] = {
        "file_reserved_time": 0,
        "delete_when": tuple(range(24)),
        "clean_resource_interval": 10_000_000,
    }
    store = MessageStore.open(config(root, **settings), disk=disk, timers=timers)
    store.start()
    for number in range(MESSAGES):
        store.append(message(number))
    store.catch_up()
    return store


async def test_the_loop_serves_others_while_files_go(tmp_path: Path) -> None:
    disk = HeldDisk()
    store = filled(tmp_path, disk)
    files = len(store.commit_log.files.files)
    assert files > 3
    going = asyncio.create_task(store._retention.run_once())
    await asyncio.to_thread(disk.reached.wait, 60)
    place = store.append(message(MESSAGES))
    assert store.read_record(place.physical_offset) is not None
    assert store.read_record(0) is not None, "what goes can be read until it is gone"
    assert store.commit_log.min_offset == 0
    disk.go_on.set()
    assert await asyncio.wait_for(going, 60) == files - 1
    assert store.commit_log.min_offset == (files - 1) * FILE_SIZE
    assert all(name != threading.main_thread().name for name in disk.where)
    await store.close()
    assert len(list((tmp_path / "commitlog").iterdir())) == 1


async def test_the_loop_serves_others_while_index_files_go(tmp_path: Path) -> None:
    disk = HeldDisk("index")
    store = filled(tmp_path, disk)
    going = asyncio.create_task(store._retention.run_once())
    await asyncio.to_thread(disk.reached.wait, 60)
    assert threading.main_thread().name not in disk.where
    place = store.append(message(MESSAGES))
    store.catch_up()
    newest = f"{MESSAGES:032X}"
    assert list(store.query_index(f"Topic{MESSAGES % 3}", newest, 0, 1 << 60)) == [place.physical_offset]
    disk.go_on.set()
    await asyncio.wait_for(going, 60)
    assert len(disk.where) > 1
    left = {path.name for path in (tmp_path / "index").iterdir()}
    await store.close()
    assert left == {path.name for path in (tmp_path / "index").iterdir()}
    assert len(left) == 1


async def test_index_files_stay_where_a_new_index_is_on_its_way(tmp_path: Path) -> None:
    store = filled(tmp_path, LocalDisk())
    before = sorted(path.name for path in (tmp_path / "index").iterdir())
    async with store._checkpointer.held():
        await store._retention._drop_index_files(store.commit_log.max_offset)
    assert sorted(path.name for path in (tmp_path / "index").iterdir()) == before
    await store._retention._drop_index_files(store.commit_log.max_offset)
    assert [path.name for path in (tmp_path / "index").iterdir()] == before[-1:]
    await store.close()


@pytest.mark.parametrize("flushed", [False, True])
async def test_the_blocks_of_what_goes_are_freed_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flushed: bool
) -> None:
    """The name goes at once, the blocks with the last reference: a GiB of them takes a while.

    The task that flushes at intervals had one, to the file that it flushed last.
    """
    timers = ManualTimers()
    store = filled(tmp_path, LocalDisk(), timers)
    if flushed:
        await timers.advance(1.0)
        assert await store.wait_flushed(store.commit_log.max_offset)
        await timers.advance(0.0)
    freed: list[tuple[Path, str]] = []
    real = MappedFile.__del__

    def seen(file: MappedFile) -> None:
        freed.append((file.path, threading.current_thread().name))
        real(file)

    monkeypatch.setattr(MappedFile, "__del__", seen)
    count = await store._retention.run_once()
    assert len([path for path, _ in freed if path.parent.name == "commitlog"]) == count
    assert [path for path, _ in freed if path.parent.name == "index"]
    assert threading.main_thread().name not in {where for _, where in freed}
    await store.close()


async def test_a_store_that_is_closed_meanwhile_brings_no_file_back(tmp_path: Path) -> None:
    disk = HeldDisk()
    store = filled(tmp_path, disk)
    going = asyncio.create_task(store._retention.run_once())
    await asyncio.to_thread(disk.reached.wait, 60)
    going.cancel()
    disk.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(going, 60)
    begin = store.commit_log.min_offset
    assert begin > 0
    await store.close()
    assert min(int(path.name) for path in (tmp_path / "commitlog").iterdir()) == begin
    again = MessageStore.open(config(tmp_path))
    assert again.damage == []
    assert sum(queue.max_offset for queue in again.queues()) == MESSAGES
    again.start()
    await again.close()


async def test_queues_are_put_right_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandemmq.common.slices._SLICE_SECONDS", 0.0)
    disk = HeldDisk()
    disk.go_on.set()
    store = filled(tmp_path, disk)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1 if store.commit_log.min_offset else 0

    ticking = asyncio.create_task(others())
    await store._retention.run_once()
    ticking.cancel()
    assert turns >= len(list(store.queues()))
    assert all(queue.min_offset > 0 for queue in store.queues())
    await store.close()


class UsedDisk(LocalDisk):
    """A disk of which so many percent are used."""

    used = 0

    def usage(self, path: Path) -> DiskUsage:
        return DiskUsage(total=100, used=self.used, free=100 - self.used)


async def test_a_store_says_that_old_messages_go_before_they_expire(tmp_path: Path) -> None:
    disk = UsedDisk()
    store = MessageStore.open(config(tmp_path, disk_space_clean_forcibly_ratio=80), disk=disk)
    try:
        for disk.used, told in ((79, False), (80, True), (79, False)):
            await store._retention.run_once()
            assert bool(store.problems()) is told
        disk.used = 85
        await store._retention.run_once()
        assert "the disk is 85 % full" in store.problems()[0]
        assert "diskSpaceCleanForciblyRatio is 80" in store.problems()[0]
    finally:
        await store.close()
