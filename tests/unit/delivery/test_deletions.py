"""Groups and topics that the metadata service has deleted, while the store delivers and while it is away."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.broker.watched_topics import WatchedTopicTable
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.ledger.deletions import Deletions
from tandemmq.store.delivery.members.groups import GroupConfig, WatchedGroupTable
from tandemmq.store.log.edges.disk import LocalDisk
from tests.unit.delivery.delivery_kit import PLACE, DeliveringStore, begin, delivering

RETRY = Place("workers", "%RETRY%workers", 0)
OTHERS = Place("others", "orders", 0)
BILLS = Place("others", "bills", 0)


async def come_true(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.02)


async def tables(root: Path) -> tuple[WatchedGroupTable, WatchedTopicTable]:
    """With what the metadata service has said before."""
    groups, topics = WatchedGroupTable(root, LocalDisk()), WatchedTopicTable(root, LocalDisk())
    if not list(groups.all()):
        groups.replace([GroupConfig("workers"), GroupConfig("others")], "1")
        topics.replace([TopicConfig("orders", 1, 1), TopicConfig("bills", 1, 1)], "1")
        await groups.save()
        await topics.save()
    return groups, topics


def places(at: DeliveringStore) -> set[Place]:
    return {progress.place for progress in at.delivery.ledger.all()}


async def test_a_deletion_becomes_a_fact_whenever_it_was(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    await tables(tmp_path / "tables")
    async with delivering(tmp_path / "store", whole=False) as at:
        await at.send("orders", 20)
        for place in (PLACE, RETRY, OTHERS, BILLS):
            begin(at.delivery, place)
    groups, topics = await tables(tmp_path / "tables")
    groups.replace([GroupConfig("others")], "2")  # it has come, and nobody could note it
    await groups.save()
    groups, topics = await tables(tmp_path / "tables")
    assert groups.gone == {"workers"}
    async with delivering(tmp_path / "store", whole=False) as at:
        told: list[Place] = []
        at.delivery.journal.moved_outside.append(lambda places, _reset: told.extend(places))
        deletions = Deletions(at.delivery.journal, groups, topics, at.store.timers)
        deletions.start()
        await come_true(lambda: not groups.gone)
        assert places(at) == {OTHERS, BILLS}
        assert set(told) == {PLACE, RETRY}
        topics.change([], ["bills"], "3")
        await come_true(lambda: not topics.gone)
        assert places(at) == {OTHERS}
        copy = at.killed(tmp_path / "copy")
        await deletions.stop()
        topics.change([], ["orders"], "4")
        await asyncio.sleep(0.05)
        assert topics.gone == {"orders"}, "nobody delivers"
    for root in (copy, tmp_path / "store"):
        async with delivering(root, whole=False) as at:
            assert places(at) == {OTHERS}


async def test_what_is_made_again_before_anybody_saw_to_it_is_not_gone(tmp_path: Path) -> None:
    groups, _ = await tables(tmp_path)
    groups.change([], ["workers"], "2")
    groups.change([GroupConfig("workers")], [], "3")
    assert groups.gone == frozenset()
