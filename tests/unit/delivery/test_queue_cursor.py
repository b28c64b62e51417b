"""Reading a queue of the broker's own from a place on, and keeping that place."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tandemmq.store.delivery.errors import NotDelivering
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.ledger.kept_positions import LevelPosition, SystemGroupPosition
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.queue_cursor import QueueCursor
from tandemmq.store.format.unit import UNIT_SIZE
from tandemmq.store.log.errors import QueueNotReady
from tests.unit.broker.broker_kit import HOST, Kit, broker

PLACE = Place("CID_RMQ_SYS_X", "orders", 0)


@asynccontextmanager
async def filled(root: Path, messages: int) -> AsyncIterator[tuple[Kit, Journal]]:
    async with broker(root) as kit:
        for number in range(messages):
            kit.send("orders", b"%d" % number)
        await kit.dispatched()
        journal = Journal(kit.store, Ledger(), kit.broker.acknowledgement, HOST)
        journal.begin(1, 0)
        yield kit, journal
        journal.close()


def waits(cursor: QueueCursor) -> bool:
    return cursor.waits


def bodies(cursor: QueueCursor, most: int = 1_000) -> list[bytes | None]:
    records = [cursor.record(unit) for unit in cursor.units(cursor.queue.max_offset, most)]
    return [None if record is None else record.body for record in records]


async def test_messages_are_taken_in_steps(tmp_path: Path) -> None:
    async with filled(tmp_path, 7) as (kit, _):
        cursor = QueueCursor(kit.store, "orders", 0)
        cursor.begin(1)
        assert bodies(cursor, 2) == [b"1", b"2"]
        assert list(cursor.units(7, 3, until=0.0)) == [cursor.queue.unit(3)], "one, though the time is over"
        assert bodies(cursor) == [b"4", b"5", b"6"]
        assert bodies(cursor) == []
        assert cursor.next == 7


async def test_one_that_is_not_dealt_with_comes_again(tmp_path: Path) -> None:
    async with filled(tmp_path, 3) as (kit, _):
        cursor = QueueCursor(kit.store, "orders", 0)
        for _unit in cursor.units(3, 10):
            if cursor.next == 1:
                break
        assert bodies(cursor, 1) == [b"1"]
        cursor.begin(1)
        reading = cursor.units(3, 10)
        assert next(reading) == next(cursor.units(3, 10)), "the first was not passed"
        assert bodies(cursor) == [b"1", b"2"]


async def test_it_waits_for_more_until_it_is_stopped(tmp_path: Path) -> None:
    async with filled(tmp_path, 1) as (kit, _):
        cursor = QueueCursor(kit.store, "orders", 0)
        cursor.begin(1)
        woken = asyncio.Event()
        cursor.wait(woken.set)
        assert waits(cursor)
        kit.send("orders", b"1")
        await kit.dispatched()
        await woken.wait()
        assert not waits(cursor)
        assert bodies(cursor) == [b"1"]
        woken.clear()
        cursor.wait(woken.set)
        cursor.stop()
        assert not waits(cursor)
        kit.send("orders", b"2")
        await kit.dispatched()
        assert not woken.is_set()


async def test_where_messages_have_expired_it_goes_on_at_the_first(tmp_path: Path) -> None:
    async with filled(tmp_path, 5) as (kit, _):
        cursor = QueueCursor(kit.store, "orders", 0)
        cursor.queue.min_offset = 3
        assert (cursor.settle(), cursor.settle()) == (3, 0)
        assert bodies(cursor) == [b"3", b"4"]


async def test_a_position_beyond_the_end_is_put_back(tmp_path: Path) -> None:
    """Or what comes would be passed over. Nothing is put back while the queue may only be incomplete."""
    async with filled(tmp_path, 5) as (kit, journal):
        positions = SystemGroupPosition(journal, PLACE), LevelPosition(journal, 3)
        for position in positions:
            position.keep(9)
            cursor = QueueCursor(kit.store, "orders", 0, position)
            cursor.begin()
            cursor.queue.rebuilding = True
            with pytest.raises(QueueNotReady):
                cursor.settle()
            assert position.kept() == 9
            cursor.queue.rebuilding = False
            cursor.settle()
            assert cursor.next == position.kept() == 5
            cursor.begin()
            assert cursor.next == 5


async def test_units_whose_file_is_gone_are_made_again_from_the_log(tmp_path: Path) -> None:
    """Nobody else looks at queues of the broker's own, and would have it done."""
    async with filled(tmp_path, 250) as (kit, _):
        cursor = QueueCursor(kit.store, "orders", 0)
        cursor.queue._starts.remove(cursor.queue.units_per_file * UNIT_SIZE)
        cursor.begin(cursor.queue.units_per_file)
        assert bodies(cursor) == [b"%d" % number for number in range(100, 250)]


async def test_what_has_expired_is_not_put_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with filled(tmp_path, 250) as (kit, _):
        cursor, doubts = QueueCursor(kit.store, "orders", 0), list[int]()
        monkeypatch.setattr(kit.store.repairs, "doubt", lambda _, offset: doubts.append(offset))
        cursor.queue._starts.remove(0)
        cursor.queue.min_offset = cursor.queue.units_per_file
        with pytest.raises(QueueNotReady):
            cursor.peek(250)
        assert doubts == []
        assert cursor.pass_expired() == 100
        assert bodies(cursor) == [b"%d" % number for number in range(100, 250)]


async def test_where_a_group_stands(tmp_path: Path) -> None:
    async with filled(tmp_path, 0) as (_, journal):
        position = SystemGroupPosition(journal, PLACE)
        position.keep(0)
        assert position.kept() is None, "nothing is noted for a group that has done nothing"
        position.keep(5)
        position.keep(3)
        assert position.kept() == 5
        position.put_back(2)
        assert position.kept() == 2
        last = SystemGroupPosition(journal, PLACE, names_last=True)
        assert last.kept() == 3
        last.keep(8)
        assert position.kept() == 7


async def test_only_a_master_keeps_positions(tmp_path: Path) -> None:
    async with filled(tmp_path, 1) as (_, journal):
        journal.drop()
        with pytest.raises(NotDelivering):
            SystemGroupPosition(journal, PLACE).keep(1)
        with pytest.raises(NotDelivering):
            LevelPosition(journal, 1).keep(1)
        assert journal.ledger.progress(PLACE) is None
        assert journal.ledger.levels == {}
