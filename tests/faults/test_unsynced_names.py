"""New files of queues and index are made without waiting for the disk: whatever a power cut leaves, all is there.

File and name are synced with the next checkpoint, in a thread. Until then a name may be gone, or the file empty.
"""

import errno
import os
import random
import shutil
import threading
from pathlib import Path

import pytest

from tandemmq.store.log import dispatch
from tandemmq.store.log.errors import FlushFailed
from tandemmq.store.log.message_store import MessageStore
from tests.campaigns import in_campaigns, rows_in_campaigns
from tests.faults.faulty_disk import Fault, FaultyDisk
from tests.faults.harness import QUEUES, SEED, audit, message, settle, small_config, until, within
from tests.faults.power_disk import PowerDisk
from tests.faults.test_traps import NEVER

QUEUE = QUEUES[0]


async def fill(store: MessageStore, first: int, count: int, *, topics: int = 0) -> None:
    """Messages for one queue, or for one queue each of so many new topics; dispatched, and the log durable."""
    for number in range(first, first + count):
        queue = (f"topic-{number % topics}", 0) if topics else QUEUE
        store.append(message(queue, f"c1-p0-{number}"))
    await settle(store)


async def check(root: Path, messages: int) -> int:
    """Start on what is left: all messages are in the log, their queues and the index. Gives the queues made anew."""
    store = MessageStore.open(small_config(root, **NEVER))
    store.start()
    found = await audit(store)
    assert len(found.records) == messages
    assert sum(len(view.messages) for view in found.queues.values()) == messages
    assert not found.missing_keys
    await store.close()
    return store.recovery.queues_to_rebuild


class LoopDisk(FaultyDisk):
    """Notes what its own thread, the loop's, waits for."""

    def __init__(self) -> None:
        super().__init__()
        self._loop_thread = threading.get_ident()
        self.waited: list[str] = []

    def sync(self, fd: int) -> None:
        if threading.get_ident() == self._loop_thread:
            self.waited.append(os.readlink(f"/proc/self/fd/{fd}"))
        super().sync(fd)

    def sync_dir(self, path: Path) -> None:
        if threading.get_ident() == self._loop_thread:
            self.waited.append(str(path))
        super().sync_dir(path)


async def test_the_loop_waits_for_no_disk_where_files_are_made(tmp_path: Path) -> None:
    disk = LoopDisk()
    store = MessageStore.open(small_config(tmp_path / "store", mapped_file_size_commit_log=1 << 20, **NEVER), disk=disk)
    store.start()
    disk.waited.clear()  # to open a store blocks
    await fill(store, 0, 150)
    await fill(store, 150, 40, topics=20)
    queue = store.queue(*QUEUE)
    assert queue is not None
    assert len(queue.files) > 1
    assert len(store.index_counts()) > 1
    await store._checkpointer.take()
    assert not disk.waited
    await store.close()


class CutDisk(PowerDisk):
    """The power may go at each sync, before it and after it."""

    def __init__(self, root: Path, images: Path, chance: random.Random) -> None:
        super().__init__(root)
        self._target, self._chance = images, chance
        self.armed = False
        self.images: list[Path] = []

    def take_image(self) -> None:
        if self.armed:
            self.images.append(self._target / f"{len(self.images)}")
            self.image(self.images[-1], self._chance)

    def sync(self, fd: int) -> None:
        self.take_image()
        super().sync(fd)

    def sync_dir(self, path: Path) -> None:
        self.take_image()
        super().sync_dir(path)
        self.take_image()


@pytest.mark.slow
@pytest.mark.parametrize("turn", [0, *in_campaigns(*range(1, 12))])
async def test_a_power_cut_at_any_sync_of_a_checkpoint_loses_nothing(tmp_path: Path, turn: int) -> None:
    """The manifest never claims a file whose name may be lost: no start has to rebuild a queue."""
    root = tmp_path / "store"
    root.mkdir()
    disk = CutDisk(root, tmp_path / "images", random.Random(SEED + turn))
    store = MessageStore.open(small_config(root, **NEVER), disk=disk)
    store.start()
    await fill(store, 0, 60)
    await store._checkpointer.take()
    await fill(store, 60, 100)  # one more file of the queue, and of the index
    await fill(store, 160, 6, topics=3)
    disk.armed = True
    disk.take_image()
    await store._checkpointer.take()
    disk.take_image()
    disk.armed = False
    await store.close()
    disk.forget()
    assert len(disk.images) > 12
    for image in disk.images[turn % 3 :: 3]:
        assert not await check(image, 166), f"{image}: a queue had to be made anew"


async def test_names_that_a_killed_process_left_are_synced_too(tmp_path: Path) -> None:
    """They are in the page cache only: the next process must not take a checkpoint that relies on them."""
    before = MessageStore.open(small_config(tmp_path / "store", **NEVER))
    before.start()
    await fill(before, 0, 60)
    await before._checkpointer.take()
    await fill(before, 60, 100)
    await fill(before, 160, 8, topics=4)
    killed = tmp_path / "killed"
    shutil.copytree(tmp_path / "store", killed)
    disk = PowerDisk(killed)
    for directory, names in disk._names.items():
        if directory.is_relative_to(killed / "consumequeue") or directory == killed / "index":
            names.clear()
    store = MessageStore.open(small_config(killed, **NEVER), disk=disk)
    store.start()
    await settle(store)
    await store._checkpointer.take()
    for path in [path for queue in store.queues() for path in queue.files]:
        assert path.name in disk._names[path.parent], f"the name of {path} is not durable"
    assert {name for name, _ in store.index_counts()} <= disk._names[killed / "index"].keys()
    await store.close()
    await before.close()
    disk.forget()


@pytest.mark.slow
@pytest.mark.parametrize("left", ["gone", "empty"])
@pytest.mark.parametrize("manifest", [True, False], ids=["manifest", "no manifest"])
@pytest.mark.parametrize(
    ("queue_files", "index_files"),
    [((-1,), (-1,)), ((-2,), (-2,)), *rows_in_campaigns(((-2, -1), (-2, -1)), ((0, 1), (0, 1)))],
)
async def test_whatever_is_left_of_new_files_is_made_good(
    tmp_path: Path, left: str, manifest: bool, queue_files: tuple[int, ...], index_files: tuple[int, ...]
) -> None:
    store = MessageStore.open(small_config(tmp_path / "store", **NEVER))
    store.start()
    await fill(store, 0, 60)
    await store._checkpointer.take()
    await fill(store, 60, 240)
    cut = tmp_path / "cut"
    shutil.copytree(tmp_path / "store", cut)
    await store.close()
    queue, index = cut / "consumequeue" / QUEUE[0] / str(QUEUE[1]), cut / "index"
    chosen = [sorted(queue.iterdir())[at] for at in queue_files] + [sorted(index.iterdir())[at] for at in index_files]
    for path in chosen:
        if left == "gone":
            path.unlink()
        else:
            os.truncate(path, 0)
    if not manifest:
        (cut / "tandem.manifest").unlink()
    await check(cut, 300)


async def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dispatch stands still until there is room; then it goes on with the file that it could not make."""
    monkeypatch.setattr(dispatch, "_RETRY_SECONDS", 0.001)
    for kind in ("open", "truncate", "rename", "allocate"):
        disk = FaultyDisk()
        root = tmp_path / kind
        store = MessageStore.open(small_config(root, **NEVER), disk=disk)
        store.start()
        await fill(store, 0, 5)
        end = store.append(message(("new", 0), "c1-p0-5")).end_offset
        disk._fault = Fault(kind, disk.counts[kind] + 1, errno.ENOSPC, lasting=True)
        await within(store.wait_flushed(end))
        await until(lambda: not store.writable)  # noqa: B023 - of this turn
        assert "No space left" in store.why_not_writable
        assert not [*root.rglob("*.tmp")]
        disk.repair()
        await until(lambda: store.writable)  # noqa: B023 - of this turn
        await settle(store)
        queue = store.queue("new", 0)
        assert queue is not None
        assert queue.max_offset == 1
        await store.close()
        assert not await check(root, 6)


async def test_no_checkpoint_counts_where_a_name_cannot_be_made_durable(tmp_path: Path) -> None:
    """Where it was not even tried, as without descriptors, the next checkpoint tries; what has failed is final."""
    disk = FaultyDisk()
    store = MessageStore.open(small_config(tmp_path / "store", **NEVER), disk=disk)
    store.start()
    await fill(store, 0, 5)
    disk._fault = Fault("sync_dir", disk.counts["sync_dir"] + 1, errno.EMFILE)
    with pytest.raises(OSError, match="Too many open files"):
        await store._checkpointer.take()
    assert store.writable
    await store._checkpointer.take()
    assert store._checkpointer.recorded == store.commit_log.max_offset
    await fill(store, 5, 4, topics=2)
    recorded = store._checkpointer.recorded
    disk._fault = Fault("sync_dir", disk.counts["sync_dir"] + 1, errno.EIO)
    with pytest.raises(FlushFailed):
        await store._checkpointer.take()
    assert store._checkpointer.recorded == recorded
    assert "could not be made durable" in store.why_not_writable
    await store.close()
    await check(tmp_path / "store", 9)
