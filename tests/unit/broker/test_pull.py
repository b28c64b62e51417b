"""Pulling from real files: rolls, expiry, damage, blanks."""

import os
import shutil
from pathlib import Path

import pytest

from tandemmq.store.broker.pulled import PullStatus, Wanted
from tandemmq.store.broker.tags import parse_tags
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.queue_cursor import QueueCursor
from tandemmq.store.delivery.receiving.place_reader import Absence, PlaceReader
from tandemmq.store.format.unit import BLANK_UNIT, pack_unit
from tandemmq.store.log.errors import QueueNotReady
from tests.unit.broker.broker_kit import bodies, broker, records


async def test_several_queues_and_files(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        for number in range(900):
            kit.send("orders", b"%d" % number, number % 3)
        await kit.dispatched()
        assert len(kit.store.commit_log.files.files) > 1
        for queue_id in range(3):
            found: list[bytes] = []
            while len(found) < 300:
                pulled = kit.pull("orders", queue_id, len(found), max_messages=70)
                assert pulled.status is PullStatus.FOUND
                found += bodies(pulled)
            assert found == [b"%d" % number for number in range(queue_id, 900, 3)]


async def test_expired_messages_are_skipped(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        for number in range(900):
            kit.send("orders", b"%d" % number)
        await kit.dispatched()
        kit.store.commit_log.files.drop_first()  # retention has not come to the queue yet
        first_left = next(n for n, at in enumerate(kit.sent) if at >= kit.store.commit_log.min_offset)
        state = kit.catalog.offsets_of("orders", 0, None)
        assert state.min_offset == first_left
        across = kit.pull("orders", offset=first_left - 5, max_messages=10)
        assert (across.status, across.min_offset) == (PullStatus.OFFSET_TOO_SMALL, first_left)
        small = kit.pull("orders")
        assert (small.status, small.next_offset) == (PullStatus.OFFSET_TOO_SMALL, first_left)
        assert bodies(kit.pull("orders", offset=first_left))[0] == b"%d" % first_left


async def test_damaged_messages_are_read_around(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        for number in range(20):
            kit.send("orders", b"%d" % number, KEYS="k")
        await kit.dispatched()
    flipped = kit.sent[7] + 12
    with (tmp_path / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(flipped + 72)
        byte = file.read(1)
        file.seek(flipped + 72)
        file.write(bytes([byte[0] ^ 0x40]))
    (tmp_path / "abort").touch()
    for name in ("tandem.manifest", "checkpoint"):
        (tmp_path / name).unlink()
    async with broker(tmp_path) as kit:
        await kit.store.rebuilt()
        assert len(kit.store.damage) == 1
        expected = [b"%d" % number for number in range(20) if number != 7]
        assert bodies(kit.pull("orders")) == expected
        assert bodies(kit.pull("orders", tags="*")) == expected
        found = kit.finder.by_key("orders", "k", 0, 0, 64, unique=False)
        assert len(found) == 19
        kit.send("orders", b"20")
        await kit.dispatched()
        assert bodies(kit.pull("orders", offset=20)) == [b"20"]


async def test_units_that_point_nowhere_are_put_right(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        for number in range(6):
            kit.send("orders", b"%d" % number, TAGS="t")
        await kit.dispatched()
        queue = kit.store.queue("orders", 0)
        assert queue is not None
        size = records(kit.pull("orders"))[0].size
        queue.put(1, BLANK_UNIT)
        queue.put(2, pack_unit(kit.sent[2] + 3, size, 116))
        queue.put(3, pack_unit(1 << 40, size, 116))
        queue.put(4, pack_unit(kit.sent[4], size + 1, 116))
        for tags in ("", "t"):
            pulled = kit.pull("orders", tags=tags)
            assert (bodies(pulled), pulled.next_offset) == ([b"%d" % number for number in range(6)], 6)
        behind = kit.pull("orders", offset=1, max_messages=1)
        assert (bodies(behind), behind.next_offset) == ([b"1"], 2)


async def test_a_missing_file_of_the_queue(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        for number in range(250):
            kit.send("orders", b"%d" % number)
        await kit.dispatched()
        queue = kit.store.queue("orders", 0)
        assert queue is not None
        os.unlink(queue.files[1])
        queue._starts.pop(1)
        assert bodies(kit.pull("orders", offset=120)) == [b"%d" % number for number in range(120, 250)]
        assert bodies(kit.pull("orders")) == [b"%d" % number for number in range(250)]
    async with broker(tmp_path) as kit:
        assert bodies(kit.pull("orders")) == [b"%d" % number for number in range(250)]


async def test_sync_flush_hides_what_is_not_on_disk(tmp_path: Path) -> None:
    async with broker(tmp_path, flush_disk_type="SYNC_FLUSH") as kit:
        at = kit.send("orders", b"x", KEYS="k")
        assert kit.pull("orders").status is PullStatus.NO_MATCHED_LOGIC_QUEUE
        assert kit.catalog.offsets_of("orders", 0, None).max_offset == 0
        assert kit.store.confirm_offset <= at
        assert await kit.store.wait_flushed(kit.store.commit_log.max_offset)
        await kit.dispatched()
        assert bodies(kit.pull("orders")) == [b"x"]


async def test_a_queue_that_is_gone_with_its_manifest_is_not_an_empty_one(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        for number in range(1000):
            kit.send("orders", b"%d" % number, number % 4)
        await kit.dispatched()
    shutil.rmtree(tmp_path / "consumequeue" / "orders" / "0")
    (tmp_path / "tandem.manifest").unlink()
    async with broker(tmp_path) as kit:
        if not kit.store.commit_log.offsets.all_known:  # recovery had no reason to read the whole log
            with pytest.raises(QueueNotReady):
                kit.pull("orders")
            assert kit.catalog.offsets_of("orders", 0, None).rebuilding
        await kit.store.rebuilt()
        assert bodies(kit.pull("orders")) == [b"%d" % number for number in range(0, 1000, 4)]


async def test_nobody_skips_what_a_lost_first_file_had_where_the_manifest_is_gone_too(tmp_path: Path) -> None:
    """Such a queue looks as one whose first messages have expired, until it was compared with the log."""
    async with broker(tmp_path) as kit:
        for number in range(250):
            kit.send("orders", b"%d" % number)
            kit.send("orders", bytes(2000), 1)
            kit.clock.now += 1_000
        await kit.dispatched()
        queue = kit.store.queue("orders", 0)
        assert queue is not None
        first = queue.files[0]
    first.unlink()
    (tmp_path / "tandem.manifest").unlink()
    async with broker(tmp_path) as kit:
        assert not kit.store.commit_log.offsets.all_known, "recovery had no reason to read the whole log"
        place = Place("g", "orders", 0)
        assert PlaceReader(kit.store, kit.puller).one(place, 7) is Absence.LATER
        assert kit.catalog.offsets_of("orders", 0, None).rebuilding
        with pytest.raises(QueueNotReady):
            kit.pull("orders")
        cursor = QueueCursor(kit.store, "orders", 0)
        cursor.begin(7)
        with pytest.raises(QueueNotReady):
            cursor.pass_expired()
        await kit.store.rebuilt()
        assert not kit.catalog.offsets_of("orders", 0, None).rebuilding
        assert bodies(kit.pull("orders")) == [b"%d" % number for number in range(250)]
        assert isinstance(PlaceReader(kit.store, kit.puller).one(place, 7), bytes)
        assert (cursor.pass_expired(), cursor.next) == (0, 7)


async def test_nobody_is_sent_back_while_a_queue_is_being_rebuilt(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        for number in range(200):
            kit.send("orders", b"%d" % number)
            kit.send("orders", b"%d" % number, 1)
        await kit.dispatched()
    shutil.rmtree(tmp_path / "consumequeue" / "orders" / "0")
    async with broker(tmp_path) as kit:
        assert kit.store.rebuilding
        with pytest.raises(QueueNotReady):
            kit.pull("orders", offset=150)
        with pytest.raises(QueueNotReady):
            kit.pull("orders")
        assert kit.pull("orders", offset=200).status is PullStatus.OFFSET_OVERFLOW_ONE, "its number is known"
        assert kit.catalog.offsets_of("orders", 0, None).rebuilding
        assert bodies(kit.pull("orders", 1, 150))[0] == b"150"
        await kit.store.rebuilt()
        assert not kit.catalog.offsets_of("orders", 0, None).rebuilding
        assert bodies(kit.pull("orders", offset=150))[0] == b"150"
        kit.send("orders")
        await kit.dispatched()
        assert kit.pull("orders").max_offset == 201


async def test_how_much_an_answer_may_take(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        for number in range(40):
            kit.send("orders", bytes(100 + number), TAGS="tea")
        await kit.dispatched()
        most = 1 << 20
        for offset, count in ((0, 1), (5, 32), (30, 1000)):
            pulled = kit.pull("orders", 0, offset, max_messages=count)
            assert kit.puller.most_bytes(Wanted("orders", 0, offset, count, most)) == len(pulled.records) > 0
        assert kit.puller.most_bytes(Wanted("orders", 0, 0, 33, most)) == most, "many are not added up"
        assert kit.puller.most_bytes(Wanted("orders", 0, 0, 8, most, parse_tags("tea"))) == most
        assert kit.puller.most_bytes(Wanted("orders", 0, 0, 8, 300)) == 300
        for offset in (40, 41, 99):
            assert kit.puller.most_bytes(Wanted("orders", 0, offset, 8, most)) == 0
        assert kit.puller.most_bytes(Wanted("nowhere", 0, 0, 8, most)) == 0


async def test_a_filter_by_tags_looks_at_some_units_in_a_call(tmp_path: Path) -> None:
    """Others have their turn before it goes on: it says how far it has come."""
    async with broker(tmp_path, mapped_file_size_commit_log=1 << 20) as kit:
        for _ in range(2_050):
            kit.send("orders", b"", TAGS="A")
        await kit.dispatched()
        first = kit.pull("orders", tags="B")
        assert (first.status, first.next_offset) == (PullStatus.NO_MATCHED_MESSAGE, 2_048)
        second = kit.pull("orders", offset=first.next_offset, tags="B")
        assert (second.status, second.next_offset) == (PullStatus.NO_MATCHED_MESSAGE, 2_050)


async def test_messages_that_do_not_lie_side_by_side_are_read_some_in_a_call(tmp_path: Path) -> None:
    async with broker(tmp_path, mapped_file_size_commit_log=1 << 20) as kit:
        for number in range(2_500):
            kit.send(("orders", "others")[number % 2], b"")
        await kit.dispatched()
        found = [kit.pull("orders", offset=offset, max_messages=5_000) for offset in (0, 1_024)]
        assert [(one.count, one.next_offset) for one in found] == [(1_024, 1_024), (226, 1_250)]
