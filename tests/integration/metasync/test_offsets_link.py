"""A store's journal and the metadata service's consumer offsets: one position, whoever moves it."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.store.delivery.journal.facts import Dealt, LevelDone, Moved, Place
from tandemmq.store.offsets_link import OffsetsLink
from tests.metasync_process import MetasyncProcess
from tests.unit.delivery.delivery_kit import PLACE, DeliveringStore, begin, delivering

PULLERS = Place("pullers", "orders", 0)


async def come_true(condition: Callable[[], bool], what: str) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.02)
    assert condition(), what


def stands(metasync: MetasyncProcess, group: str) -> tuple[int, int]:
    """Offset and resets of a group in queue 0 of the topic; -1 where it has none."""
    with metasync.stub() as stub:
        query = pb.OffsetQuery(group=group, topic="orders")
        found = stub.QueryOffsets(pb.QueryOffsetsRequest(queries=[query]), timeout=60).offsets
    return (found[0].offsets.get(0, -1), found[0].resets.get(0, 0)) if found else (-1, 0)


def commit(metasync: MetasyncProcess, offset: int, *, reset: bool = False) -> None:
    with metasync.stub() as stub:
        one = pb.OffsetCommit(topic="orders", group="pullers", queue_id=0, offset=offset)
        stub.CommitOffsets(pb.CommitOffsetsRequest(commits=[one], reset=reset), timeout=60)


def cursor(one: DeliveringStore, place: Place) -> tuple[int, int]:
    progress = one.delivery.ledger.progress(place)
    return (-1, 0) if progress is None else (progress.cursor, progress.resets)


async def test_one_position_whoever_moves_it(tmp_path: Path) -> None:
    with MetasyncProcess(tmp_path / "metasync") as metasync:
        with metasync.stub() as stub:
            stub.PutTopics(pb.PutTopicsRequest(topics=[pb.TopicConfig(name="orders")]), timeout=60)
            groups = [pb.SubscriptionGroupConfig(name=name) for name in ("workers", "pullers")]
            stub.PutGroups(pb.PutGroupsRequest(groups=groups), timeout=60)
        async with delivering(tmp_path / "store", whole=False, metasync_address=metasync.address) as one:
            await one.send("orders", 20)
            begin(one.delivery)
            one.delivery.journal.note(Dealt(PLACE, 0, 3), LevelDone(3, 7))
            await come_true(lambda: stands(metasync, "workers") == (3, 0), "told")
            commit(metasync, 6)
            await come_true(lambda: cursor(one, PULLERS) == (6, 0), "a commit comes")
            commit(metasync, 2, reset=True)
            await come_true(lambda: cursor(one, PULLERS) == (2, 1), "a reset comes")
            one.delivery.journal.note(Moved(PLACE, 1, 1))
            await come_true(lambda: stands(metasync, "workers") == (1, 1), "a reset is told")
            one.delivery.journal.note(Dealt(PLACE, 1))
            await come_true(lambda: stands(metasync, "workers") == (2, 1), "and what comes after it")
            assert cursor(one, PLACE) == (2, 1)
            one.delivery.journal.note(Dealt(PULLERS, 2, 2))
        assert stands(metasync, "pullers") == (4, 1)  # told at the end
        async with delivering(tmp_path / "store", whole=False, metasync_address=metasync.address) as two:
            assert cursor(two, PLACE) == (2, 1)
            [link] = [one for one in two.delivery.services if isinstance(one, OffsetsLink)]
            await come_true(link._known.is_set, "it watches")
            with metasync.stub() as stub:
                assert [one.offset for one in stub.GetDelayOffsets(pb.GetDelayOffsetsRequest()).offsets] == [7]
                stub.DeleteGroups(pb.DeleteGroupsRequest(names=["pullers"]), timeout=60)
            await come_true(lambda: cursor(two, PULLERS) == (-1, 0), "a deleted group is forgotten")
            assert stands(metasync, "workers") == (2, 1)
