"""Every disk operation of a store's life fails in turn: a clear error or a read-only store, and nothing is lost.

The same short life (open, send, roll, checkpoint, close, open again, send, close) is lived once for each operation
there is, with that one failing, and a few times with the disk failing for good. Then the disk is well again and
everything that was acknowledged must be there.
"""

import asyncio
import errno
import zlib
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from tandemmq.common.errors import Kind
from tandemmq.store.format.record import decode_record
from tandemmq.store.log import dispatch
from tandemmq.store.log.errors import StoreError
from tandemmq.store.log.message_store import MessageStore
from tests.faults.checker import Ack, Checker
from tests.faults.faulty_disk import KINDS, Fault, FaultyDisk
from tests.faults.harness import (
    LOG_FILE,
    PATIENCE_MS,
    QUEUES,
    audit,
    batch,
    body_of,
    message,
    small_config,
    value_parts,
    within,
)

FOREVER_MS = 1 << 40
ENOSPC, EIO = errno.ENOSPC, errno.EIO


class Script:
    """One short life of a store on a disk that may fail, and what was promised in it."""

    def __init__(self, root: Path, disk: FaultyDisk) -> None:
        self.disk = disk
        self.checker = Checker()
        self.errors: list[StoreError] = []
        self.config = small_config(
            root,
            flush_interval_commit_log=FOREVER_MS,
            flush_interval_consume_queue=FOREVER_MS,
            clean_resource_interval=FOREVER_MS,
            sync_flush_timeout=PATIENCE_MS,
        )

    async def live(self, number: int) -> None:
        self.checker.begin(number)
        try:
            store = MessageStore.open(self.config, disk=self.disk)
        except StoreError as error:
            self.errors.append(error)
            return
        store.start()
        try:
            for step in range(24):
                await self.send(store, f"c{number}-p0", 30 * step)
                if step == 12:
                    await self.checkpoint(store)
            self.check_reads(store)
        finally:
            await within(store.close())

    async def send(self, store: MessageStore, producer: str, first: int) -> None:
        """One batch, some singles with long bodies, each waited for."""
        queue = QUEUES[first % len(QUEUES)]
        try:
            values = [f"{producer}-{first + at}" for at in range(10)]
            placed = store.append_batch(batch(queue, values))
            ends = [*placed.physical_offsets[1:], placed.end_offset]
            offsets = zip(placed.physical_offsets, ends, strict=True)
            acks = [
                self.ack(store, value, queue, placed.first_queue_offset + at, begin, end - begin)
                for at, (value, (begin, end)) in enumerate(zip(values, offsets, strict=True))
            ]
            await self.promise(store, acks, placed.end_offset)
            value = f"{producer}-{first + 10}"
            one = store.append(message(queue, value))
            acks = [self.ack(store, value, queue, one.queue_offset, one.physical_offset, one.size)]
            await self.promise(store, acks, one.end_offset)
        except StoreError as error:
            self.errors.append(error)
            await asyncio.sleep(0)

    @staticmethod
    def ack(store: MessageStore, value: str, queue: tuple[str, int], offset: int, physical: int, size: int) -> Ack:
        data = store.read_record(physical, size)
        assert data is not None
        return Ack(value, *value_parts(value), queue, offset, physical, size, zlib.crc32(data))

    async def promise(self, store: MessageStore, acks: list[Ack], end: int) -> None:
        if await within(store.wait_flushed(end)):
            assert not self.disk.log_sync_failed, "acknowledged after a failed flush"
            for ack in acks:
                self.checker.ack(ack)
        else:
            assert not store.writable
            assert store.why_not_writable

    async def checkpoint(self, store: MessageStore) -> None:
        with suppress(StoreError, OSError):
            await within(store._checkpointer.take())

    def check_reads(self, store: MessageStore) -> None:
        """Reads go on, whatever has happened."""
        for ack in self.checker.acks.values():
            data = store.read_record(ack.physical, ack.size)
            assert data is not None
            assert decode_record(data).body == body_of(ack.value)


async def live_twice(root: Path, disk: FaultyDisk) -> Script:
    """The script, and a second life on the same disk; then the disk is repaired and everything is compared."""
    script = Script(root, disk)
    await script.live(1)
    disk.log_sync_failed = False  # a new process may believe what it finds, once it has synced it itself
    await script.live(2)
    disk.repair()
    store = MessageStore.open(script.config)
    store.start()
    script.checker.begin(3)
    try:
        script.checker.audit(await audit(store))
    finally:
        await store.close()
    return script


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "_RETRY_SECONDS", 0.001)


async def operations(root: Path) -> Counter[str]:
    """How many operations of each kind the script needs where nothing fails."""
    disk = FaultyDisk()
    script = await live_twice(root, disk)
    assert not script.errors
    assert not script.checker.problems
    assert len(script.checker.acks) == 2 * 24 * 11
    assert script.checker.acked_total * 250 > 2 * LOG_FILE, "the log must roll"
    return disk.counts


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("allocate", ENOSPC),
        ("pwrite", ENOSPC),
        ("pwrite", EIO),
        ("truncate", ENOSPC),
        ("sync", EIO),
        ("sync_dir", EIO),
        ("rename", EIO),
        ("open", EIO),
        ("open", ENOSPC),
        ("unlink", EIO),
        ("map", errno.ENOMEM),
    ],
    ids=lambda value: errno.errorcode[value] if isinstance(value, int) else value,
)
async def test_each_operation_fails_in_turn(quick_path: Path, kind: str, code: int) -> None:
    assert kind in KINDS
    total = (await operations(quick_path / "well"))[kind]
    assert total
    for number in range(1, total + 1):
        disk = FaultyDisk(Fault(kind, number, code))
        script = await live_twice(quick_path / f"{number}", disk)
        assert not script.checker.problems, f"{kind} number {number} on {disk.failed_on}: {script.checker.problems}"
    for number in (1, total // 3 + 1, total // 2 + 1, total):
        disk = FaultyDisk(Fault(kind, number, code, lasting=True))
        script = await live_twice(quick_path / f"from {number}", disk)
        assert not script.checker.problems, f"{kind} from {number} on: {disk.failed_on[:3]}: {script.checker.problems}"


async def test_nothing_is_acknowledged_after_a_failed_flush_and_it_is_not_tried_again(tmp_path: Path) -> None:
    """RocketMQ #2706: the error was logged, the flushed position moved on, the producer got SEND_OK."""
    disk = FaultyDisk()
    script = Script(tmp_path / "store", disk)
    store = MessageStore.open(script.config, disk=disk)
    store.start()
    try:
        first = store.append(message(QUEUES[0], "c1-p0-0"))
        assert await store.wait_flushed(first.end_offset)
        second = store.append(message(QUEUES[0], "c1-p0-1"))
        disk._fault = Fault("sync", disk.counts["sync"] + 1, EIO)
        assert not await store.wait_flushed(second.end_offset)
        assert disk.log_sync_failed
        syncs = disk.counts["sync"]
        assert not await store.wait_flushed(second.end_offset)
        assert disk.counts["sync"] == syncs, "tried again"
        assert not store.writable
        assert "Input/output error" in store.why_not_writable
        with pytest.raises(StoreError) as caught:
            store.append(message(QUEUES[0], "c1-p0-2"))
        assert caught.value.kind is Kind.READ_ONLY
        assert store.confirm_offset == first.end_offset, "what is not on disk is not shown"
        assert store.read_record(first.physical_offset) is not None
    finally:
        await store.close()
    assert (tmp_path / "store" / "abort").exists(), "this was no clean shutdown"
