"""Messages that expire before their group has dealt with them: counted and passed, or kept where the group asks."""

from pathlib import Path
from typing import Any

import pytest

from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.port import Wish
from tandemmq.store.delivery.receiving.receiving import Receiving
from tandemmq.store.log.edges.clock import SystemClock
from tandemmq.store.log.edges.disk import DiskUsage, LocalDisk
from tests.unit.delivery.delivery_kit import DeliveringStore, delivering

GROUP, TOPIC = "workers", "orders"


async def expire(at: DeliveringStore) -> int:
    """Let all old files go that may; gives how many went."""
    gone = 0
    while removed := await at.store._retention.run_once():
        gone += removed
    return gone


def aged(at: DeliveringStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A week later, by the clock of retention."""
    clock: Any = at.store._parts.clock
    later = SystemClock().now_ms() + 7 * 86_400_000
    monkeypatch.setattr(type(clock), "now_ms", lambda self: later)


@pytest.mark.parametrize("keep", ["true", "false", ""])
async def test_files_are_kept_where_the_group_asks(tmp_path: Path, keep: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = tuple(f"{hour:02}" for hour in range(24))
    async with delivering(tmp_path, delete_when=hours) as at:
        await at.broker.topics.add([TopicConfig(TOPIC, 1, 1)])
        await at.delivery.groups.add([GroupConfig(GROUP, attributes={"keepUnconsumed": keep} if keep else {})])
        await at.delivery.receive(Wish(GROUP, TOPIC))
        await at.send(TOPIC, 400, size=1_000)
        at.store.catch_up()
        files = len(at.store.commit_log.files.files)
        assert files > 4
        (first,) = (await at.delivery.receive(Wish(GROUP, TOPIC, most=1))).messages
        await at.store.wait_flushed(at.store.commit_log.max_offset)
        aged(at, monkeypatch)
        gone = await expire(at)
        if keep == "true":
            assert gone == 0
            found = 1
            while messages := (await at.delivery.receive(Wish(GROUP, TOPIC, most=1_000))).messages:
                found += len(messages)
                await at.delivery.acknowledge(GROUP, TOPIC, [one.handle for one in messages])
            assert found == 400
            assert await expire(at) == 0, "the first is still held"
            await at.delivery.acknowledge(GROUP, TOPIC, [first.handle])
            await at.store.wait_flushed(at.store.commit_log.max_offset)
            assert await expire(at) > 2
        else:
            assert gone > 2
            receiving = at.delivery.receiving
            assert isinstance(receiving, Receiving)
            assert (await at.delivery.receive(Wish(GROUP, TOPIC, most=1))).messages
            lost = receiving.expired()[GROUP, TOPIC]
            queue = at.store.queue(TOPIC, 0)
            assert queue is not None
            assert lost == queue.min_offset - 1, "all but the one that is held"


class NearlyFull(LocalDisk):
    """A disk on which files are to go whether they have expired or not."""

    def usage(self, path: Path) -> DiskUsage:
        return DiskUsage(total=100 << 30, used=86 << 30, free=14 << 30)


async def test_a_file_that_is_kept_on_a_disk_that_is_nearly_full_is_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with delivering(tmp_path, disk=NearlyFull(), disk_space_clean_forcibly_ratio=85) as at:
        await at.delivery.groups.add([GroupConfig(GROUP, attributes={"keepUnconsumed": "true"})])
        await at.broker.topics.add([TopicConfig(TOPIC, 1, 1)])
        await at.delivery.receive(Wish(GROUP, TOPIC))
        await at.send(TOPIC, 400, size=1_000)
        at.store.catch_up()
        await at.store.wait_flushed(at.store.commit_log.max_offset)
        for _ in range(3):
            assert await expire(at) == 0
        said = [record.getMessage() for record in caplog.records if "is kept though" in record.getMessage()]
        assert len(said) == 1
        assert "00000000000000000000" in said[0]
