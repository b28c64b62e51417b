"""A full disk: messages are refused, and consumers can still drain what there is."""

import errno
from contextlib import suppress
from pathlib import Path

import pytest

from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.port import Wish
from tandemmq.store.format.message import Message
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import DiskFull, StoreError
from tandemmq.store.log.marks.running_flags import Reason
from tests.unit.delivery.delivery_kit import HOST, SMALL, DeliveringStore, delivering

PLACE = Place("workers", "orders", 0)
RESERVE = SMALL["mapped_file_size_commit_log"] // 16


class FillingDisk(LocalDisk):
    """A disk that has no room for another log file while it is `full`."""

    full = False

    def allocate(self, fd: int, offset: int, length: int) -> None:
        if self.full and length >= SMALL["mapped_file_size_commit_log"]:
            raise OSError(errno.ENOSPC, "made to fail")
        super().allocate(fd, offset, length)


async def fill(at: DeliveringStore, disk: FillingDisk) -> int:
    """Send until the disk is full; gives how many messages are stored."""
    await at.broker.topics.add([TopicConfig("orders", 1, 1)])
    disk.full = True
    stored = 0
    with suppress(DiskFull):
        while True:
            at.store.append(Message("orders", 0, b"x" * 500, store_host=HOST))
            stored += 1
    assert "No space left" in at.store.why_not_writable or "made to fail" in at.store.why_not_writable
    at.store.catch_up()
    return stored


async def drain(at: DeliveringStore, most: int = 64) -> int:
    """Receive and acknowledge all there is; gives how many were."""
    done = 0
    while messages := (await at.delivery.receive(Wish(*PLACE[:2], most=most))).messages:
        outcomes = await at.delivery.acknowledge(*PLACE[:2], [one.handle for one in messages])
        assert [one.error for one in outcomes] == [None] * len(messages)
        done += len(messages)
    return done


def cursor(at: DeliveringStore) -> int:
    progress = at.delivery.ledger.progress(PLACE)
    return 0 if progress is None else progress.cursor


async def test_consumers_drain_what_is_there_while_sends_are_refused(tmp_path: Path) -> None:
    disk = FillingDisk()
    async with delivering(tmp_path / "store", disk=disk) as at:
        stored = await fill(at, disk)
        file = at.store.commit_log.files.last
        assert file is not None
        assert RESERVE <= file.end - at.store.commit_log.max_offset < RESERVE + 1_000
        with pytest.raises(DiskFull):
            at.store.append_messages([Message("orders", 0, b"x" * 500, store_host=HOST)])
        assert await drain(at) == stored
        copy = at.killed(tmp_path / "copy")
    async with delivering(copy) as again:
        assert cursor(again) == stored
        assert await drain(again) == 0


async def test_when_the_reserve_is_used_up_nothing_is_acknowledged_until_there_is_room(tmp_path: Path) -> None:
    disk = FillingDisk()
    async with delivering(tmp_path / "store", disk=disk) as at:
        stored = await fill(at, disk)
        handle = ""
        with suppress(DiskFull):
            while True:
                (message,) = (await at.delivery.receive(Wish(*PLACE[:2], most=1))).messages
                handle = message.handle
                await at.delivery.acknowledge(*PLACE[:2], [handle])
        with pytest.raises(DiskFull):
            await at.delivery.acknowledge(*PLACE[:2], [handle])
        done = cursor(at)
        assert done > 10
        disk.full = False
        at.store.flags.clear(Reason.LOG_DISK_FULL)
        (outcome,) = await at.delivery.acknowledge(*PLACE[:2], [handle])
        assert outcome.error is None
        assert await drain(at) == stored - done
        at.store.append(Message("orders", 0, b"x", store_host=HOST))
        copy = at.killed(tmp_path / "copy")
    async with delivering(copy) as again:
        assert await drain(again) == 1


async def test_a_disk_that_is_too_full_by_the_settings_does_not_keep_consumers_from_draining(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        await at.send("orders", 10)
        at.store.flags.set(Reason.LOG_DISK_FULL, "the disk is 95% full")
        assert await drain(at) == 10
        at.store.flags.set(Reason.FENCED, "there is a newer master")
        with pytest.raises(StoreError):
            at.store.append(Message("orders", 0, b"x", store_host=HOST), reserved=True)


async def test_with_a_next_file_the_reserve_is_anybodys(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        files = at.store.commit_log.files
        for _ in range(400):
            at.store.append(Message("orders", 0, b"x" * 500, store_host=HOST))
        assert len(files.files) > 3
        for number, file in enumerate(files.files[:-1]):
            assert b"xxx" in file.map[-700:], number
