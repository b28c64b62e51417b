"""Whole tables as classic tools read them: as if made in one piece, but in slices, and kept until they change."""

import asyncio
import zlib
from typing import Any

import pytest

from tandemmq.common.slices import Slices
from tandemmq.common.wire.remoting.java_objects import QueueKey, dumps, pieces
from tandemmq.store.fronts.remoting.administration.sliced import Document, VersionedTable, sliced
from tandemmq.store.log.event import Event
from tests.manual_timers import ManualTimers
from tests.turn_counter import TurnCounter

LONG: dict[str, Any] = {
    "first": {"counter": 0},
    "empty": {},
    "none": [],
    "number": 7,
    "table": {f"topic-{number}": {"name": "é\ud800", "queues": [1, 2], "more": {}} for number in range(1_000)},
    "offsets": {QueueKey("T", "b", number): {3: number} for number in range(1_000)},
    "list": [{"group": [{"offsetTable": {}}]}, 1, "two"],
}


@pytest.mark.parametrize("document", [{}, {"a": {}}, {"a": []}, {"a": {1: 2}}, {"a": None}, LONG])
@pytest.mark.parametrize("depth", [0, 1, 2, 3, 9])
def test_pieces_are_those_of_one_body(document: dict[str, Any], depth: int) -> None:
    assert b"".join(pieces(document, depth)) == dumps(document)


class Table:
    """Is read in slices."""

    def __init__(self, count: TurnCounter) -> None:
        self.count = count
        self.document: Document = LONG
        self.reads = 0

    async def read(self, slices: Slices) -> Document:
        self.reads += 1
        for _ in range(1_000):
            self.count()
            await slices.pause()
        return self.document


async def test_a_table_is_made_in_slices_once_until_it_changes() -> None:
    timers, changed = ManualTimers(), Event()
    timers.each_look = 0.0003
    with TurnCounter.counting() as count:
        source = Table(count)
        table = VersionedTable(timers, source.read, changed)
        bodies = await asyncio.gather(*(table.body(3, 17) for _ in range(5)), table.body(4, 17))
        version = {"counter": zlib.crc32(dumps(LONG)), "stateVersion": 3, "timestamp": 17}
        assert set(bodies[:5]) == {dumps({"dataVersion": version, **LONG})}
        assert bodies[5] == dumps({"dataVersion": version | {"stateVersion": 4}, **LONG})
        assert await table.body(3, 17) == bodies[0]
        assert (source.reads, count.most) == (1, 4)
        source.document = {"table": {}}
        changed()
        assert (await table.body(3, 17)).endswith(b'},"table":{}}')
        assert source.reads == 2


async def test_what_changes_while_it_is_made_is_not_kept() -> None:
    changed = Event()
    with TurnCounter.counting() as count:
        source = Table(count)
        table = VersionedTable(ManualTimers(), source.read, changed)
        read = source.read

        async def change(slices: Slices) -> Document:
            document = await read(slices)
            changed()
            return document

        table._document = change
        await table.body(1, 1)
        await table.body(1, 1)
        assert source.reads == 2


async def test_one_that_changes_all_the_time_is_never_kept() -> None:
    with TurnCounter.counting() as count:
        source = Table(count)
        table = VersionedTable(ManualTimers(), source.read)
        assert await table.body(1, 1) == await table.body(1, 1)
        assert source.reads == 2


async def test_a_body_is_written_in_slices() -> None:
    timers = ManualTimers()
    timers.each_look = 0.0003
    slices = Slices(timers)
    with TurnCounter.counting() as count:

        class Counted(dict[str, Any]):
            def items(self) -> Any:
                for item in super().items():
                    count()
                    yield item

        assert await sliced({"table": Counted(LONG["table"])}, slices) == dumps({"table": LONG["table"]})
        assert count.all == 1_000
        assert count.most <= 4
