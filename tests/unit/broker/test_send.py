"""Sending: all or nothing, turns, what the log is given."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tandemmq.store.broker.errors import IllegalMessage, TableNotSaved, UnknownTopic
from tandemmq.store.broker.group_transfer import PutStatus
from tandemmq.store.broker.send import NewBatch, NewMessage, Ready
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.format.batch import encode_client_batch
from tandemmq.store.format.message import Message
from tandemmq.store.format.record import verify_crc_property
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import DiskFull, NotWritable, RecordTooLarge
from tandemmq.store.log.marks.running_flags import Reason
from tandemmq.store.log.segments.commit_log import Appended
from tests.manual_timers import ManualTimers
from tests.turn_counter import TurnCounter
from tests.unit.broker.broker_kit import HOST, bodies, broker, records


async def test_what_is_stored_can_be_pulled(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        for number in range(5):
            kit.send("orders", b"%d" % number)
        await kit.dispatched()
        assert bodies(kit.pull("orders")) == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_message_made_in_a_far_time_stops_no_other(tmp_path: Path) -> None:
    """Of what has no key of its own, and gets one made of that time; and a time that a record has no room for."""
    async with broker(tmp_path) as kit:
        kit.send("orders", b"0")
        for far in (1 << 47, (1 << 63) - 1, 0):
            assert kit.broker.store_at_once(NewMessage("orders", HOST, b"far", born_timestamp=far)) is not None
        before = kit.store.commit_log.max_offset
        with pytest.raises(IllegalMessage, match="no room in 64 bits"):
            kit.broker.store_at_once(NewMessage("orders", HOST, b"x", {"UNIQ_KEY": "k"}, born_timestamp=1 << 63))
        assert kit.store.commit_log.max_offset == before


async def test_what_is_stored_at_once_needs_no_topic_to_be_made(tmp_path: Path) -> None:
    told: list[PutStatus] = []
    async with broker(tmp_path) as kit:
        assert kit.broker.store_at_once(NewMessage("new", HOST, b"x")) is None, "its topic must be made first"
        assert list(kit.topics.all()) == []
        kit.send("orders", b"0")
        end = kit.store.commit_log.max_offset
        stored = kit.broker.store_at_once(NewMessage("orders", HOST, b"1"))
        assert stored is not None
        assert (stored[1].physical_offset, stored[1].queue_offset) == (end, 1)
        kit.broker.acknowledgement.when_safe(stored[1].end_offset, told.append, wait=True)
        assert told == [PutStatus.PUT_OK]
        with pytest.raises(IllegalMessage):
            kit.broker.store_at_once(NewMessage("orders", HOST, properties={"a": "\x01"}))
        await kit.dispatched()
        assert bodies(kit.pull("orders")) == [b"0", b"1"]
    async with broker(tmp_path, flush_disk_type="SYNC_FLUSH") as kit:
        await kit.topics.add([TopicConfig("orders", 1, 1)])
        stored = kit.broker.store_at_once(NewMessage("orders", HOST, b"2"))
        assert stored is not None
        kit.broker.acknowledgement.when_safe(stored[1].end_offset, told.append, wait=True)
        assert len(told) == 1, "the disk must be waited for"
        assert await kit.store.wait_flushed(stored[1].end_offset)
        assert told[1] is PutStatus.PUT_OK
        assert bodies(kit.pull("orders")) == [b"0", b"1", b"2"]


async def test_an_illegal_message_creates_no_topic(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        good, bad = NewMessage("new", HOST), NewMessage("new too", HOST)
        with pytest.raises(IllegalMessage):
            await kit.sender.send_all([good, bad], [])
        with pytest.raises(IllegalMessage):
            await kit.sender.send_all([good], [NewBatch("x", HOST, b"\0" * 30)])
        with pytest.raises(IllegalMessage):
            await kit.broker.send(NewMessage("alone", HOST, properties={"a": "\x01"}))
        assert list(kit.topics.all()) == []
        assert kit.store.commit_log.max_offset == 0


async def test_a_store_that_takes_nothing_creates_no_topic(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        kit.send("there")
        end = kit.store.commit_log.max_offset
        kit.store.flags.set(Reason.LOG_DISK_FULL, "the disk is full")
        for topic, error in (("new", NotWritable), ("there", DiskFull)):
            with pytest.raises(error, match="disk is full"):
                await kit.broker.send(NewMessage(topic, HOST))
            with pytest.raises(NotWritable):
                await kit.sender.send_all([NewMessage(topic, HOST)], [])
        assert [topic.name for topic in kit.topics.all()] == ["there"]
        kit.store.flags.clear(Reason.LOG_DISK_FULL)
        kit.send("new")
        assert kit.store.commit_log.max_offset > end


async def test_messages_too_large_together_say_how_far_they_came(tmp_path: Path) -> None:
    class FullDisk(LocalDisk):
        full = False

        def allocate(self, fd: int, offset: int, length: int) -> None:
            if self.full:
                raise OSError(28, "No space left on device")
            super().allocate(fd, offset, length)

    disk = FullDisk()
    async with broker(tmp_path, disk=disk) as kit:
        kit.send("orders")
        kit.store.commit_log.files._maker.submit(int).result()  # the next file was made ahead
        disk.full = True
        messages = [NewMessage("orders", HOST, bytes(15_000), queue_id=0) for _ in range(12)]
        sent = await kit.sender.send_all(messages, [])
        stored = [one.place is not None for one in sent.messages]
        assert stored == sorted(stored, reverse=True)
        assert 0 < sum(stored) < 12
        failures = {type(one.failure) for one in sent.messages if one.place is None}
        assert failures == {DiskFull}
        assert sent.end_offset == kit.store.commit_log.max_offset
        with pytest.raises(DiskFull):
            await kit.sender.send_all(messages, [])
        disk.full = False
        await kit.dispatched()
        assert kit.pull("orders").max_offset == 1 + sum(stored)


async def test_a_message_that_no_file_could_hold(tmp_path: Path) -> None:
    async with broker(tmp_path, rules={"max_message_size": 1 << 20}) as kit:
        with pytest.raises(RecordTooLarge):
            kit.send("orders", bytes(70_000))
        with pytest.raises(RecordTooLarge):
            await kit.sender.send_all([NewMessage("orders", HOST, bytes(70_000))], [])
        assert kit.store.commit_log.max_offset == 0


async def test_the_checksum_over_the_record(tmp_path: Path) -> None:
    async with broker(tmp_path, rules={"append_crc": True}, enabled_append_prop_crc=True) as kit:
        kit.send("orders", b"one", **{"__CRC32#": "a client's"})
        await kit.sender.send_all([], [NewBatch("orders", HOST, encode_client_batch([(0, b"two", b"TAGS\x01t")]), 0)])
        kit.send("orders", b"", long="x" * (32_767 - 21 - len("UNIQ_KEY\x01\x02long\x01\x02") - 32))
        with pytest.raises(IllegalMessage):
            kit.send("orders", b"", long="x" * (32_767 - 20 - len("UNIQ_KEY\x01\x02long\x01\x02") - 32))
        await kit.dispatched()
        found = records(kit.pull("orders"))
        assert [verify_crc_property(record.encode()) for record in found] == [True, True, True]
        assert found[1].tags == "t"


async def test_without_auto_creation(tmp_path: Path) -> None:
    async with broker(tmp_path, rules={"auto_create_topics": False}) as kit:
        with pytest.raises(UnknownTopic):
            await kit.broker.send(NewMessage("orders", HOST))


async def test_a_table_that_cannot_be_saved_refuses_the_message(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        (tmp_path / "config").write_text("not a directory")
        with pytest.raises(TableNotSaved):
            await kit.broker.send(NewMessage("orders", HOST))
        assert kit.store.commit_log.max_offset == 0


@pytest.mark.parametrize("compiled", ["always", "never"])
@pytest.mark.parametrize("append_crc", [False, True])
async def test_batches_to_a_topic_of_more_bytes_than_characters_lie_whole(
    tmp_path: Path, compiled: str, append_crc: bool
) -> None:
    """RocketMQ's table may name such a topic; each record must be as long as it was measured."""
    async with broker(tmp_path, compiled_walker=compiled, enabled_append_prop_crc=append_crc) as kit:
        await kit.topics.add([TopicConfig("größe", 1, 1)])
        blob = encode_client_batch([(0, b"one", b"TAGS\x01t"), (0, b"two", b"")])
        for _ in range(3):
            await kit.sender.send_all([], [NewBatch("größe", HOST, blob, 0)])
        await kit.dispatched()
        pulled = kit.pull("größe")
        assert pulled.count == 6
        assert not kit.store.damage


async def test_many_messages_are_checked_and_stored_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are stored between them; they keep their order, and each has its place."""
    timers = ManualTimers()
    async with broker(tmp_path, timers=timers, mapped_file_size_commit_log=1 << 20) as kit:
        kit.send("orders", b"first")
        timers.each_look = 0.01
        check, append = kit.broker.sender._check, kit.store.append_messages
        with TurnCounter.counting() as checked, TurnCounter.counting() as stored:

            def counted_check(given: NewMessage, missing: dict[str, TopicConfig]) -> Ready:
                checked()
                return check(given, missing)

            def counted_append(messages: Sequence[Message]) -> list[Appended]:
                stored(len(messages))
                return append(messages)

            monkeypatch.setattr(kit.broker.sender, "_check", counted_check)
            monkeypatch.setattr(kit.store, "append_messages", counted_append)
            sending = asyncio.create_task(
                kit.broker.append(
                    [NewMessage("orders", HOST, b"%d" % number, queue_id=0) for number in range(1_000)], []
                )
            )
            while not stored.all:
                await asyncio.sleep(0)
            kit.broker.store_at_once(NewMessage("orders", HOST, b"between", queue_id=0))
            sent = await sending
            assert (checked.all, stored.all) == (1_001, 1_000)
            assert checked.most <= 32
            assert stored.most <= 128
        await kit.dispatched()
        found = bodies(kit.pull("orders", max_messages=2_000))
        assert [one for one in found if one.isdigit()] == [b"%d" % number for number in range(1_000)]
        assert found.index(b"between") == 129
        places = [one.place for one in sent.messages if one.place is not None]
        assert [place.queue_offset for place in places] == [*range(1, 129), *range(130, 1_002)]
        assert sent.end_offset == kit.store.commit_log.max_offset


async def test_a_store_that_takes_no_more_between_two_turns_says_what_it_has_taken(tmp_path: Path) -> None:
    timers = ManualTimers()
    async with broker(tmp_path, timers=timers, mapped_file_size_commit_log=1 << 20) as kit:
        kit.send("orders", b"first")
        timers.each_look = 0.01
        sending = asyncio.create_task(kit.broker.append([NewMessage("orders", HOST, b"x")] * 300, []))
        before = kit.store.commit_log.max_offset
        while kit.store.commit_log.max_offset == before:
            await asyncio.sleep(0)
        kit.store.flags.set(Reason.FLUSH_FAILED, "a test")
        sent = await sending
        assert [one.place is not None for one in sent.messages] == [True] * 128 + [False] * 172
        assert {type(one.failure) for one in sent.messages[128:]} == {NotWritable}


async def test_one_message_that_is_too_large_refuses_all_however_many_stand_before_it(tmp_path: Path) -> None:
    async with broker(tmp_path, rules={"max_message_size": 1 << 20}) as kit:
        kit.send("orders", b"first")
        before = kit.store.commit_log.max_offset
        messages = [NewMessage("orders", HOST, b"x") for _ in range(200)]
        with pytest.raises(RecordTooLarge):
            await kit.broker.append([*messages, NewMessage("orders", HOST, bytes(70 << 10))], [])
        assert kit.store.commit_log.max_offset == before
