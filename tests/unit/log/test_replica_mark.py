"""``tandem.replica``: a slave killed at any moment, and files that lie: nothing acknowledged is ever zeroed."""

import mmap
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.files.boot import boot_id
from tandemmq.store.format.replica_stretch import MarkWords
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.replica.replica_mark import NAME
from tests.campaigns import in_campaigns
from tests.quiet import wait_for_files_ahead
from tests.unit.log.replica_kit import FILE_SIZE, config, derived, log_of, master_log, message, opened

SIZES = [100, 3_000, 0, 700, 9_000] * 6
PIECES = [10, 700, 20_000, 3_000, 40_000]
"""Some are copied into the mapping, some written; two cross the end of a file."""


class _Map(mmap.mmap):
    """A mapping whose stores are watched."""

    disk: "WatchedDisk"

    def __setitem__(self, key: Any, value: Any) -> None:
        at = len(value) // 2 if len(value) > 8 else 0  # eight bytes are stored at once
        if at:
            super().__setitem__(slice(key.start + at, key.stop), value[at:])
            self.disk.stored()
        super().__setitem__(key, value)
        self.disk.stored()


class WatchedDisk(LocalDisk):
    """Calls ``stored`` when half of a store has arrived (the second one), and behind each."""

    def __init__(self) -> None:
        self.stored: Callable[[], None] = lambda: None

    def map(self, fd: int, length: int) -> mmap.mmap:
        made = _Map(fd, length)
        made.disk = self
        return made

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        half = len(data) // 2
        super().pwrite(fd, data[half:], offset + half)
        self.stored()
        super().pwrite(fd, data, offset)
        self.stored()


async def lives_of(root: Path, log: bytes, copies: Path) -> list[tuple[Path, int]]:
    """What a kill leaves of a slave's directory, behind each of its stores, and what it had acknowledged then."""
    disk, found, at = WatchedDisk(), list[tuple[Path, int]](), 0
    slave = MessageStore.open(config(root, "SLAVE"), disk=disk)
    slave.start()

    def copy() -> None:
        wait_for_files_ahead(slave)
        found.append((shutil.copytree(root, copies / str(len(found)), ignore=shutil.ignore_patterns("lock")), at))

    disk.stored = copy
    for size in PIECES:
        slave.append_replica(at, memoryview(log)[at : at + size])
        at += size
    disk.stored = lambda: None
    await slave.close()
    return found


async def test_a_slave_killed_behind_each_of_its_stores(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "master", SIZES)
    assert sum(PIECES) < len(log)
    whole = [0, *record_ends(log)]
    lives = await lives_of(tmp_path / "slave", log, tmp_path)
    assert len(lives) > 30
    for root, acknowledged in lives:
        again = opened(root, "SLAVE")
        assert again._parts.problems == []
        assert again.damage == []
        end = again.commit_log.max_offset
        assert end in whole, "nothing half written"
        assert end >= max(at for at in whole if at <= acknowledged), "nothing lost"
        assert log_of(again) == log[:end]
        assert not (root / NAME).exists()
        again.append_replica(end, memoryview(log)[end:])
        assert log_of(again) == log
        await again.close()
        assert not (root / NAME).exists()
        assert derived(root) == derived(tmp_path / "master")


def record_ends(log: bytes) -> list[int]:
    ends, at = [], 0
    while at < len(log):
        at += int.from_bytes(log[at : at + 4], "big")
        ends.append(at)
    return ends


# -- marks that cannot be true ----------------------------------------------------------------------------------------


def marked(begin: int, end: int, boot: bytes | None = None) -> bytes:
    """The file, saying that ``[begin, end)`` is being written."""
    words = MarkWords(boot_id() if boot is None else boot)
    return words.fresh[:24] + b"".join(words.writing(begin, end - begin))


async def filled(root: Path, log: bytes) -> None:
    """A slave's directory with some of a master's log, closed cleanly."""
    slave = opened(root, "SLAVE")
    slave.append_replica(0, memoryview(log)[: FILE_SIZE + 10_000])
    await slave._dispatcher.drain()
    await slave.close()


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


LIES: dict[str, Callable[[int], bytes]] = {
    "complete": lambda end: marked(end - 5_000, end),
    "goes on behind": lambda end: marked(end - 5_000, end - 100),
    "no log file": lambda end: marked(end, end + FILE_SIZE),
    "another log file": lambda end: marked(1 << 40, (1 << 40) + 5),
    "flipped": lambda end: flipped(marked(end, end + 5_000), 24 * 8 + 60),
    "zeros": lambda _: bytes(40),
    "page": lambda _: bytes(4_096),
    "empty": lambda _: b"",
    "version 1": lambda _: boot_id() + (0).to_bytes(8, "big") + (30_000).to_bytes(8, "big") + bytes(4_064),
}


@pytest.mark.parametrize("last", ["ours crashed", *in_campaigns("clean", "another crashed")])
@pytest.mark.parametrize("lie", LIES)
async def test_a_mark_that_cannot_be_true_zeroes_nothing_and_is_reported(tmp_path: Path, lie: str, last: str) -> None:
    log = await master_log(tmp_path / "master", SIZES)
    root = tmp_path / "slave"
    await filled(root, log)
    again = opened(root, "SLAVE")
    end, before = again.commit_log.max_offset, log_of(again)
    await again.close()
    assert not (root / NAME).exists()
    (root / NAME).write_bytes(LIES[lie](end))
    if last != "clean":
        (root / "abort").write_bytes(b"1 tandemmq\n" if last == "ours crashed" else b"1")
    again = opened(root, "SLAVE")
    assert [problem.file for problem in again._parts.problems] == [NAME]
    assert any(NAME in note for note in again.recovery.notes)
    assert log_of(again) == before
    assert not (root / NAME).exists()
    await again.close()


@pytest.mark.parametrize("last", ["clean", "another crashed"])
async def test_a_true_mark_does_not_count_after_a_clean_stop_or_another_broker(tmp_path: Path, last: str) -> None:
    log = await master_log(tmp_path / "master", SIZES)
    root = tmp_path / "slave"
    await filled(root, log)
    store = opened(root, "SLAVE")
    end = store.commit_log.max_offset
    await store.close()
    (root / "tandem.manifest").unlink()  # which would tell too
    (root / NAME).write_bytes(marked(end - 5_000, end))
    if last != "clean":
        (root / "abort").write_bytes(b"1")
    store = opened(root, "SLAVE")
    assert store.commit_log.max_offset == end
    assert "were being written" in str(store._parts.problems[0])
    await store.close()


async def test_a_mark_of_before_the_last_boot_does_not_count_and_is_no_fault(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "master", SIZES)
    root = tmp_path / "slave"
    await filled(root, log)
    (root / "abort").write_bytes(b"1 tandemmq\n")
    (root / NAME).write_bytes(marked(0, 20_000, b"another boot id."))
    store = opened(root, "SLAVE")
    assert store._parts.problems == []
    assert store.commit_log.max_offset > 20_000
    await store.close()


async def test_a_mark_counts_once(tmp_path: Path) -> None:
    """A slave that was killed while writing becomes a master, is killed again: its messages stay."""
    log = await master_log(tmp_path / "master", SIZES)
    root = tmp_path / "slave"
    await filled(root, log)
    store = opened(root, "SLAVE")
    end = store.commit_log.max_offset
    await store.close()
    (root / "abort").write_bytes(b"1 tandemmq\n")
    (root / NAME).write_bytes(marked(end, end + 5_000))
    first = opened(root)
    first.append(message(1))
    assert first.commit_log.max_offset > end
    after = log_of(first)
    assert await first.wait_flushed(len(after))
    copy = shutil.copytree(root, tmp_path / "killed", ignore=shutil.ignore_patterns("lock"))
    await first.close()
    second = opened(copy)
    assert log_of(second) == after
    await second.close()
