"""A slave's store: bytes of any cut become the master's log, queues and index; and it can be promoted."""

import asyncio
import errno
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import strategies as st

from tandemmq.common.errors import Kind
from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.store.format.replica_stretch import decode_mark
from tandemmq.store.log.errors import CorruptReplica, ForkedLog, NotWritable, WrongRole
from tandemmq.store.log.replica.replica_mark import NAME, ReplicaMark
from tandemmq.store.log.segments.mapped_file import file_name
from tests.campaigns import examples
from tests.unit.log.replica_kit import FILE_SIZE, derived, log_of, master_log, message, opened

SIZES = [100, 3_000, 0, 700, 9_000] * 12


async def feed(store, log: bytes, begin: int, pieces: list[int]) -> int:  # type: ignore[no-untyped-def]
    """The log from `begin` on in pieces of these sizes; gives where it came to."""
    for size in pieces:
        store.append_replica(begin, memoryview(log)[begin : begin + size])
        begin = min(begin + size, len(log))
        await asyncio.sleep(0)
    return begin


@examples(
    6, 25, st.lists(st.integers(1, 40_000), min_size=1, max_size=60), st.sampled_from(["ASYNC_FLUSH", "SYNC_FLUSH"])
)
def test_however_the_log_is_cut_into_pieces_the_slave_gets_the_same_files(pieces: list[int], flush: str) -> None:
    async def follow(directory: Path) -> None:
        log = await master_log(directory / "master", SIZES)
        slave = opened(directory / "slave", "SLAVE", flush_disk_type=flush)
        at = await feed(slave, log, 0, pieces)
        await feed(slave, log, at, [len(log)])
        assert log_of(slave) == log
        assert await slave.wait_flushed(len(log))
        await slave._dispatcher.drain()
        assert slave.dispatched_offset == len(log)
        await slave.close()
        assert not (directory / "slave" / "abort").exists()
        assert derived(directory / "slave") == derived(directory / "master")
        again = opened(directory / "slave", "SLAVE")
        assert log_of(again) == log
        assert again.recovery.clean_exit
        await again.close()

    with TemporaryDirectory() as directory:
        asyncio.run(follow(Path(directory)))


async def test_half_a_record_is_no_error_and_is_gone_after_a_clean_end(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "master", SIZES)
    slave = opened(tmp_path / "slave", "SLAVE")
    await feed(slave, log, 0, [5_000])
    whole = slave.commit_log.max_offset
    assert whole < slave.commit_log.written_offset == 5_000
    await slave._dispatcher.drain()
    assert slave.dispatched_offset == whole
    assert not slave.flags.failed
    await slave.close()
    again = opened(tmp_path / "slave", "SLAVE")
    assert again.recovery.clean_exit
    assert again.commit_log.max_offset == whole
    assert again.damage == []
    await feed(again, log, whole, [len(log)])
    assert log_of(again) == log
    await again.close()
    assert derived(tmp_path / "slave") == derived(tmp_path / "master")


async def test_an_empty_slave_begins_where_its_master_does(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "master", SIZES)
    slave = opened(tmp_path / "slave", "SLAVE")
    begin = 2 * FILE_SIZE
    with pytest.raises(ForkedLog, match="multiple of"):
        slave.append_replica(begin + 1, memoryview(log)[begin + 1 :])
    await feed(slave, log, begin, [10_000, len(log)])
    assert (slave.commit_log.min_offset, slave.commit_log.max_offset) == (begin, len(log))
    assert log_of(slave) == log[begin:]
    queue = slave.queue("Topic0", 0)
    assert queue is not None
    assert queue.min_offset > 0, "the messages before are not there"
    await slave.close()
    assert sorted(path.name for path in (tmp_path / "slave" / "commitlog").iterdir())[0] == file_name(begin)
    again = opened(tmp_path / "slave", "SLAVE")
    assert (again.commit_log.min_offset, again.commit_log.max_offset) == (begin, len(log))
    found = again.queue("Topic0", 0)
    assert found is not None
    assert (found.min_offset, found.max_offset) == (queue.min_offset, queue.max_offset)
    await again.close()


async def test_bytes_that_do_not_continue_the_log_are_refused(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "master", SIZES)
    slave = opened(tmp_path / "slave", "SLAVE")
    await feed(slave, log, 0, [4_000])
    for offset in (0, 3_999, 4_001, FILE_SIZE):
        with pytest.raises(ForkedLog, match=r"ends at offset 4,000"):
            slave.append_replica(offset, memoryview(log)[offset : offset + 100])
    assert log[:4_000].startswith(log_of(slave))
    await feed(slave, log, 4_000, [len(log)])
    assert log_of(slave) == log
    await slave.close()


async def test_a_slave_takes_no_messages_and_a_master_no_bytes(tmp_path: Path) -> None:
    slave = opened(tmp_path / "slave", "SLAVE")
    with pytest.raises(NotWritable, match="slave") as refused:
        slave.append(message(1))
    assert refused.value.kind is Kind.READ_ONLY
    await slave.close()
    master = opened(tmp_path / "master")
    with pytest.raises(WrongRole, match="takes no replica bytes"):
        master.append_replica(0, memoryview(b"x" * 100))
    await master.close()


async def test_promotion_goes_on_with_the_next_queue_offsets_and_outlives_a_restart(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "master", SIZES)
    slave = opened(tmp_path / "slave", "SLAVE")
    await feed(slave, log, 0, [len(log) - 10])
    await slave.replica.promote(BrokerRole.SYNC_MASTER, 0)
    end = slave.commit_log.max_offset
    assert end < len(log) - 10, "half a record at the end is cut off"
    before = {(queue.topic, queue.queue_id): queue.max_offset for queue in slave.queues()}
    place = slave.append(message(6))  # Topic0, queue 0
    assert (place.physical_offset, place.queue_offset) == (end, before["Topic0", 0])
    with pytest.raises(WrongRole):
        slave.append_replica(slave.commit_log.max_offset, memoryview(b"more"))
    await slave.close()
    again = opened(tmp_path / "slave", "SLAVE")
    mastership = again.replica.mastership
    assert (mastership.role, mastership.epoch, mastership.overrides) == (BrokerRole.SYNC_MASTER, 2, True)
    assert mastership.epochs[-1].start_offset == end
    assert again.append(message(6)).queue_offset == before["Topic0", 0] + 1
    await again.close()


async def test_a_fenced_master_takes_no_messages_until_it_is_a_slave(tmp_path: Path) -> None:
    master = opened(tmp_path / "old")
    master.append(message(1))
    master.replica.fence(1)
    assert master.writable, "that is its own epoch"
    master.replica.fence(5)
    with pytest.raises(NotWritable, match="newer master was promoted"):
        master.append(message(2))
    await master.close()
    again = opened(tmp_path / "old")
    with pytest.raises(NotWritable, match=r"epoch 5; this one has 1"):
        again.append(message(2))
    again.replica.demote(5)
    with pytest.raises(NotWritable, match="slave"):
        again.append(message(2))
    again.replica.follow(5)
    assert again.replica.epoch == 5
    with pytest.raises(WrongRole, match="old master is not followed"):
        again.replica.follow(4)
    await again.close()


async def test_what_a_killed_slave_was_writing_is_zeroed_at_the_next_start(tmp_path: Path) -> None:
    """Even where what it wrote looks whole: nobody was told of it."""
    log = await master_log(tmp_path / "master", SIZES)
    root = tmp_path / "slave"
    slave = opened(root, "SLAVE")
    await feed(slave, log, 0, [20_000])
    await slave._dispatcher.drain()
    whole = slave.dispatched_offset
    await slave.close()
    # As after kill -9 while [whole, 30,000) was being copied: its end has arrived, its beginning has not.
    again = opened(root, "SLAVE")
    again.append_replica(whole, memoryview(log)[whole:30_000])
    begun = ReplicaMark(root, again._parts.disk, again._parts.boot)
    begun.begin(whole, 30_000)
    begun.close()
    file = again.commit_log.files.files[0]
    file.map[whole : whole + 3_000] = bytes(3_000)
    mark = decode_mark((root / NAME).read_bytes())
    assert (mark.begin, mark.end) == (whole, 30_000)
    again._lock.release()
    third = opened(root, "SLAVE")
    assert third.commit_log.max_offset == whole
    assert third.damage == [], "zeros, not rot"
    await feed(third, log, whole, [len(log)])
    assert log_of(third) == log
    await third.close()
    again._dispatcher.stop()
    await again.close()


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
async def test_half_a_record_of_the_old_master_is_cut_off_when_a_new_one_comes(tmp_path: Path, flush: str) -> None:
    """The new master has cut off its own half record, and sends something else from there on."""
    log = await master_log(tmp_path / "master", SIZES)
    slave = opened(tmp_path / "slave", "SLAVE", flush_disk_type=flush)
    slave.replica.follow(1)
    slave.append_replica(0, memoryview(log)[:5_000])
    assert slave.commit_log.written_offset == 5_000
    slave.replica.follow(2)
    end = slave.commit_log.max_offset
    assert 0 < end == slave.commit_log.written_offset < 5_000
    assert slave.replica.mastership.epochs[-1] == (2, end)
    await feed(slave, log, end, [len(log)])
    assert log_of(slave) == log
    await slave.close()
    assert derived(tmp_path / "slave") == derived(tmp_path / "master")


async def test_a_record_that_cannot_be_read_freezes_no_queue(tmp_path: Path) -> None:
    """Once it is proven that the master has it so, a slave reads around it as the master does."""
    sizes = [300] * 40
    log = bytearray(await master_log(tmp_path / "master", sizes))
    store = opened(tmp_path / "master")
    place = store.queue("Topic0", 0)
    assert place is not None
    unit = place.unit(3)
    assert unit is not None
    await store.close()
    log[unit.physical_offset + 4] ^= 0xFF  # its magic number
    slave = opened(tmp_path / "slave", "SLAVE")
    with pytest.raises(CorruptReplica):
        await feed(slave, bytes(log), 0, [len(log)])
    assert slave.commit_log.max_offset == unit.physical_offset
    refused = slave.replica.check.refused
    assert refused is not None
    slave.replica.follow(0)
    slave.replica.check.begin(refused.which)
    await feed(slave, bytes(log), unit.physical_offset, [1_000] * 20)
    await slave._dispatcher.drain()
    assert slave.dispatched_offset == len(log)
    assert [(known.begin, known.kind) for known in slave.damage] == [(unit.physical_offset, "rot")]
    queue = slave.queue("Topic0", 0)
    assert queue is not None
    assert queue.max_offset == place.max_offset
    assert not slave.flags.failed
    await slave.close()


async def test_a_disk_that_fails_takes_no_more_and_nothing_half_written_is_left(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "master", SIZES)
    root = tmp_path / "slave"
    slave = opened(root, "SLAVE")
    await feed(slave, log, 0, [10_000])
    await slave._dispatcher.drain()
    whole = slave.dispatched_offset
    file = slave.commit_log.files.files[0]
    written = file._disk.pwrite

    def failing(fd: int, data: bytes | memoryview, offset: int) -> None:
        written(fd, data[: len(data) // 2], offset)
        raise OSError(errno.EIO, "made to fail")

    file._disk.pwrite = failing  # type: ignore[method-assign]
    with pytest.raises(NotWritable, match="made to fail|Input/output|I/O"):
        slave.append_replica(10_000, memoryview(log)[10_000:30_000])
    file._disk.pwrite = written  # type: ignore[method-assign]
    assert slave.commit_log.max_offset == whole
    with pytest.raises(NotWritable):
        slave.append_replica(10_000, memoryview(log)[10_000:])
    with pytest.raises(NotWritable, match="cannot become a master"):
        await slave.replica.promote(BrokerRole.SYNC_MASTER, 0)
    await slave.close()
    again = opened(root, "SLAVE")
    assert again.commit_log.max_offset == whole
    assert again.damage == []
    await feed(again, log, whole, [len(log)])
    assert log_of(again) == log
    await again.close()
