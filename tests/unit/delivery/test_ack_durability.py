"""What an acknowledgement waits for: as a send, or more, or less, as the group asks."""

import asyncio
import os
import threading
from pathlib import Path

import pytest

from tandemmq.store.broker.acknowledgement import Durability
from tandemmq.store.delivery.errors import NotSafe
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.port import Wish
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.settings import FlushDiskType
from tests.unit.delivery.delivery_kit import DeliveringStore, delivering

GROUP, TOPIC = "workers", "orders"


class HeldDisk(LocalDisk):
    """A disk on which nothing of the log becomes durable until it is let go."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.free.set()

    def sync(self, fd: int) -> None:
        if "/commitlog/" in os.readlink(f"/proc/self/fd/{fd}"):
            self.free.wait(60)
        super().sync(fd)


async def begun(at: DeliveringStore, durability: str) -> str:
    """A message that a group holds; gives its handle."""
    await at.delivery.groups.add([GroupConfig(GROUP, attributes={"ackDurability": durability})])
    await at.send(TOPIC, 1)
    assert await at.store.wait_flushed(at.store.commit_log.max_offset)
    at.store.catch_up()
    (message,) = (await at.delivery.receive(Wish(GROUP, TOPIC))).messages
    return message.handle


async def acknowledged(at: DeliveringStore, handle: str) -> None:
    (outcome,) = await at.delivery.acknowledge(GROUP, TOPIC, [handle])
    assert outcome.error is None


@pytest.mark.parametrize(
    ("flush", "durability", "waits"),
    [
        (FlushDiskType.ASYNC_FLUSH, "", False),
        (FlushDiskType.ASYNC_FLUSH, "PAGE_CACHE", False),
        (FlushDiskType.ASYNC_FLUSH, "DISK", True),
        (FlushDiskType.SYNC_FLUSH, "", True),
        (FlushDiskType.SYNC_FLUSH, "PAGE_CACHE", False),
        (FlushDiskType.SYNC_FLUSH, "DISK", True),
        (FlushDiskType.SYNC_FLUSH, "rubbish", True),
    ],
)
async def test_the_disk_is_waited_for_as_the_group_asks(
    tmp_path: Path, flush: FlushDiskType, durability: str, waits: bool
) -> None:
    disk = HeldDisk()
    async with delivering(tmp_path / "store", disk=disk, flush_disk_type=flush) as at:
        handle = await begun(at, durability)
        disk.free.clear()
        try:
            acknowledging = asyncio.create_task(acknowledged(at, handle))
            done, _ = await asyncio.wait([acknowledging], timeout=0.5 if waits else 60)
            assert bool(done) is not waits
        finally:
            disk.free.set()
        await acknowledging
        copy = at.killed(tmp_path / "copy")
    async with delivering(copy) as again:
        progress = again.delivery.ledger.progress(Place(GROUP, TOPIC, 0))
        assert progress is not None
        assert progress.cursor == 1
        config = again.delivery.groups.get(GROUP)
        assert config is not None
        assert config.ack_durability is (Durability.AS_SENDS if durability == "rubbish" else Durability(durability))


async def test_replicas_are_waited_for_where_sends_do_not(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        handle = await begun(at, "REPLICAS")
        with pytest.raises(NotSafe, match="SLAVE_NOT_AVAILABLE"):
            await acknowledged(at, handle)
        transfer = at.broker.acknowledgement.transfer
        transfer.begin()
        transfer.progress(True, 0, 1)
        acknowledging = asyncio.create_task(acknowledged(at, handle))
        done, _ = await asyncio.wait([acknowledging], timeout=0.2)
        assert not done
        transfer.progress(True, at.store.commit_log.max_offset, 1)
        await acknowledging
