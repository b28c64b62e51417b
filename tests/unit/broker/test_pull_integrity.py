"""A unit that does not fit the log: its message is found between its neighbours, and given; never another one's."""

import asyncio
import logging
from dataclasses import replace
from pathlib import Path

import pytest

from tandemmq.store.broker.pulled import PullStatus, Wanted
from tandemmq.store.format.unit import BLANK_UNIT, UNIT_SIZE, pack_unit, unpack_units
from tandemmq.store.log.errors import QueueInDoubt, QueueNotReady
from tests.unit.broker.broker_kit import bodies, broker, records
from tests.unit.broker.listener import listening


@pytest.mark.parametrize(
    ("topic", "queue_id", "offset"),
    [("Alpha", 0, 1), ("Alpha", 1, 0), ("Gamma", 0, 0)],
    ids=["offset", "queue", "topic"],
)
async def test_a_unit_of_another_message_is_put_right(tmp_path: Path, topic: str, queue_id: int, offset: int) -> None:
    """Bit rot, or a unit that outlived a cut of the log: the record is whole, but it is not this one."""
    async with broker(tmp_path) as kit:
        for number in range(3):
            kit.send("Alpha", b"%d" % number, 0)
        kit.send("Alpha", b"0", 1)
        kit.send("Gamma", b"0", 0)
        await kit.dispatched()
        other, queue = kit.store.queue(topic, queue_id), kit.store.queue("Alpha", 0)
        assert other is not None
        assert queue is not None
        queue.put(0, other.read_bytes(offset, 1)[:UNIT_SIZE])
        pulled = kit.pull("Alpha")
        assert [record.queue_offset for record in records(pulled)] == [0, 1, 2]
        assert {record.topic for record in records(pulled)} == {"Alpha"}
        assert pulled.next_offset == 3


@pytest.mark.parametrize("tags", ["", "t"])
@pytest.mark.parametrize("at", [0, 3, 7, 8, 11])
async def test_one_flipped_bit_of_a_unit_hides_nothing(
    tmp_path: Path, at: int, tags: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Its place and its size, with and without a filter; said once, counted, and right after a restart."""
    async with broker(tmp_path) as kit:
        listener = listening(kit)
        for number in range(30):
            kit.send("orders", b"%d" % number, TAGS="t")
            kit.send("orders", b"other", 1, TAGS="u")
        await kit.dispatched()
        queue = kit.store.queue("orders", 0)
        assert queue is not None
        sound = queue.read_bytes(12, 1)
        queue.put(12, bytes(byte ^ (0x40 if at == index else 0) for index, byte in enumerate(sound)))
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                assert bodies(kit.pull("orders", tags=tags)) == [b"%d" % number for number in range(30)]
        assert queue.read_bytes(12, 1) == sound
        assert listener.counts == {"unit": 1}
        assert [record for record in caplog.messages if "did not fit the log" in record] != []
    async with broker(tmp_path) as kit:
        assert bodies(kit.pull("orders", tags=tags)) == [b"%d" % number for number in range(30)]


@pytest.mark.parametrize("at", [12, 15, 16, 19])
async def test_a_wrong_tags_code_is_put_right_by_a_reader_without_a_filter(tmp_path: Path, at: int) -> None:
    """With a filter the message is passed over unread where the code is another tag's: what is no hash is noticed."""
    async with broker(tmp_path) as kit:
        listener = listening(kit)
        for number in range(5):
            kit.send("orders", b"%d" % number, TAGS="t")
        await kit.dispatched()
        queue = kit.store.queue("orders", 0)
        assert queue is not None
        sound = queue.read_bytes(2, 1)
        queue.put(2, bytes(byte ^ (0x10 if at == index else 0) for index, byte in enumerate(sound)))
        everything = [b"%d" % number for number in range(5)]
        assert (bodies(kit.pull("orders", tags="t")) == everything) is (at < 16)
        assert bodies(kit.pull("orders")) == everything
        assert queue.read_bytes(2, 1) == sound
        assert listener.counts == {"unit": 1}
        assert bodies(kit.pull("orders", tags="t")) == everything


async def test_what_the_log_does_not_have_is_said_once_and_passed_over(tmp_path: Path) -> None:
    """The record has rotted, and nobody has noticed until it is pulled."""
    async with broker(tmp_path) as kit:
        listener = listening(kit)
        for number in range(10):
            kit.send("orders", b"%d" % number, TAGS="t")
        await kit.dispatched()
        log = kit.store.commit_log.files.files[0].map
        log[kit.sent[4] + 4] ^= 1  # its magic
        for _ in range(3):
            pulled = kit.pull("orders")
            assert bodies(pulled) == [b"%d" % number for number in range(10) if number != 4]
            assert pulled.next_offset == 10
        only = kit.pull("orders", offset=4, max_messages=1)
        assert (only.status, only.next_offset) in (
            (PullStatus.NO_MATCHED_MESSAGE, 5),
            (PullStatus.FOUND, 6),
        )
        assert listener.counts == {"message": 1}
        assert [known.kind for known in kit.store.damage] == ["rot"]


async def test_a_long_way_between_neighbours_is_walked_in_the_background(tmp_path: Path) -> None:
    """Pulls wait for it: nobody is sent on behind a message that is there."""
    async with broker(tmp_path) as kit:
        for number in range(400):
            kit.send("orders", b"%d" % number, int(number not in (1, 200, 399)))
        await kit.dispatched()
        queue = kit.store.queue("orders", 0)
        assert queue is not None
        (unit,) = unpack_units(queue.read_bytes(1, 1))
        queue.put(1, pack_unit(*replace_place(unit, unit.physical_offset + 1)))
        first = kit.pull("orders")
        assert (bodies(first), first.next_offset) == ([b"1"], 1)
        with pytest.raises(QueueInDoubt):
            kit.pull("orders", offset=1)
        wanted = Wanted("orders", 0, 1, 10, 1 << 20)
        assert kit.broker.pull_at_once(wanted) is None, "it has to be waited for"
        both = await asyncio.gather(
            kit.polls.pull(kit.puller, wanted, 60), kit.polls.pull(kit.puller, replace(wanted, offset=2), 60)
        )
        assert [bodies(pulled) for pulled in both] == [[b"200", b"399"], [b"399"]]
        assert kit.broker.pull_at_once(wanted) == both[0]


def replace_place(unit: tuple[int, int, int], place: int) -> tuple[int, int, int]:
    """The unit with another place in the log."""
    return place, unit[1], unit[2]


async def test_a_page_of_zeros_and_blanks(tmp_path: Path) -> None:
    """What a lost page leaves behind: all of it comes back."""
    async with broker(tmp_path) as kit:
        listener = listening(kit)
        for number in range(90):
            kit.send("orders", b"%d" % number)
        await kit.dispatched()
        queue = kit.store.queue("orders", 0)
        assert queue is not None
        queue.put(10, bytes(UNIT_SIZE * 30))
        queue.put(50, BLANK_UNIT * 7)
        wanted = Wanted("orders", 0, 0, 1000, 1 << 20)
        got: list[bytes] = []
        while len(got) < 90:
            got += bodies(await kit.polls.pull(kit.puller, replace(wanted, offset=len(got)), 60))
        assert got == [b"%d" % number for number in range(90)]
        assert listener.counts == {"unit": 37}


@pytest.mark.parametrize("damaged", ["all of the last file", "the last offset", "the last size"])
@pytest.mark.parametrize("role", ["ASYNC_MASTER", "SYNC_MASTER"])
async def test_a_wrong_last_unit_does_not_make_a_queue_end_before_it(tmp_path: Path, damaged: str, role: str) -> None:
    """A start takes the queue's end from the manifest: readers wait until the unit is put right, and it is told."""
    async with broker(tmp_path, broker_role=role) as kit:
        for number in range(103):
            kit.send("orders", b"%d" % number)
            kit.send("others", b"%d" % number)
        await kit.dispatched()
        kit.store.replica.confirm(kit.store.commit_log.max_offset)
    path = max((tmp_path / "consumequeue" / "orders" / "0").iterdir())
    data = bytearray(path.read_bytes())
    unit = 2 * UNIT_SIZE
    begin, end = {
        "all of the last file": (6, unit + UNIT_SIZE),
        "the last offset": (unit, unit + 1),
        "the last size": (unit + 8, unit + 9),
    }[damaged]
    data[begin:end] = b"\x7f" * (end - begin)
    path.write_bytes(data)
    async with broker(tmp_path, broker_role=role) as kit:
        listener = listening(kit)
        with pytest.raises(QueueNotReady):
            kit.pull("orders", offset=102)
        await kit.store.rebuilt()
        assert bodies(kit.pull("orders", offset=100)) == [b"100", b"101", b"102"]
        assert listener.counts == {"unit": 3 if damaged == "all of the last file" else 1}
