"""What a slave's store does with bytes that are no records: refuses, forgets, and takes for damage what is proven."""

import asyncio
import random
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import strategies as st
from isal.isal_zlib import crc32

from tandemmq.common.errors import Kind
from tandemmq.store.format.walker import python_walker
from tandemmq.store.log.errors import CorruptReplica
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.recovery.damage import DamagedRange
from tests.campaigns import examples
from tests.unit.log.replica_kit import FILE_SIZE, derived, log_of, master_log, message, opened

SIZES = [100, 3_000, 0, 700, 9_000] * 12
BODY = 88
"""Where the body begins in a record of IPv4 hosts."""


def places(log: bytes) -> list[tuple[int, int]]:
    """Offset and size of every record of a log."""
    found: list[tuple[int, int]] = []
    for base in range(0, len(log), FILE_SIZE):
        data = log[base : base + FILE_SIZE]
        walk = python_walker().walk(data, 0, len(data), base, check_crc=True)
        found += [(row.position, row.size) for row in walk.rows()]
    return found


def spoiled(log: bytes, *offsets: int) -> bytes:
    """The log with a bit flipped in the body of each record that begins there."""
    changed = bytearray(log)
    for offset in offsets:
        changed[offset + BODY] ^= 4
    return bytes(changed)


def take(slave: MessageStore, log: bytes, begin: int | None = None, end: int | None = None) -> None:
    """A new connection, which brings everything from the end of the slave's log on."""
    slave.replica.follow(0)
    begin = slave.commit_log.max_offset if begin is None else begin
    slave.append_replica(begin, memoryview(log)[begin:end])


def prove(slave: MessageStore) -> None:
    """The replicator has found that what was refused is the master's own."""
    assert slave.replica.check.refused is not None
    slave.replica.check.begin(slave.replica.check.refused.which)


async def test_a_flipped_bit_is_refused_and_what_was_before_it_is_taken(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "master", SIZES)
    bad, _ = places(log)[6]
    slave = opened(tmp_path / "slave", "SLAVE")
    with pytest.raises(CorruptReplica, match=f"offset {bad:,}: a record fails its checksum") as refused:
        take(slave, spoiled(log, bad))
    assert refused.value.kind is Kind.DAMAGED
    assert slave.commit_log.max_offset == slave.commit_log.written_offset == bad
    file = slave.commit_log.files.files[0]
    assert not any(file.map[bad:]), "nothing of it is left"
    await slave._dispatcher.drain()
    assert slave.dispatched_offset == bad
    take(slave, log)
    assert slave.replica.check.refused is None
    assert log_of(slave) == log
    assert slave.damage == []
    await slave.close()
    assert derived(tmp_path / "slave") == derived(tmp_path / "master")


async def test_the_same_bytes_are_counted_and_others_are_not(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "master", SIZES)
    bad, size = places(log)[5]
    slave = opened(tmp_path / "slave", "SLAVE")
    for times in (1, 2, 3):
        with pytest.raises(CorruptReplica):
            take(slave, spoiled(log, bad))
        refused = slave.replica.check.refused
        assert refused is not None
        assert refused.which == (bad, size, crc32(spoiled(log, bad)[bad : bad + size]))
        assert refused.times == times
    other = bytearray(log)
    other[bad + BODY + 1] ^= 8
    with pytest.raises(CorruptReplica):
        take(slave, bytes(other))
    assert slave.replica.check.refused is not None
    assert slave.replica.check.refused.times == 1
    await slave.close()


async def test_what_an_older_master_sent_is_forgotten(tmp_path: Path) -> None:
    """The next one may end where those bytes would begin, and nothing is to be waited for then."""
    log = await master_log(tmp_path / "master", SIZES)
    bad, _ = places(log)[5]
    slave = opened(tmp_path / "slave", "SLAVE")
    slave.replica.follow(1)
    with pytest.raises(CorruptReplica):
        slave.append_replica(0, memoryview(spoiled(log, bad)))
    waited_for = []
    for epoch in (1, 2):
        slave.replica.follow(epoch)
        waited_for.append(slave.replica.check.refused is not None)
    assert waited_for == [True, False]
    await slave.close()


async def test_what_is_proven_to_be_the_master_s_own_is_damage_up_to_the_next_good_record(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "master", SIZES)
    first, second, third = places(log)[5], places(log)[6], places(log)[20]
    rotten = spoiled(log, first[0], second[0], third[0])
    slave = opened(tmp_path / "slave", "SLAVE")
    with pytest.raises(CorruptReplica, match=f"offset {first[0]:,}"):
        take(slave, rotten)
    prove(slave)
    with pytest.raises(CorruptReplica, match=f"offset {third[0]:,}"):
        slave.append_replica(first[0], memoryview(rotten)[first[0] :])
    prove(slave)
    slave.append_replica(third[0], memoryview(rotten)[third[0] :])
    assert log_of(slave) == rotten
    ends = [second[0] + second[1], third[0] + third[1]]
    assert [(known.begin, known.end) for known in slave.damage] == list(zip([first[0], third[0]], ends, strict=True))
    assert all(slave.read_record(place) is None for place, _ in (first, second, third))
    await slave._dispatcher.drain()
    await slave.close()
    again = opened(tmp_path / "slave", "SLAVE")
    assert [known.begin for known in again.damage] == [first[0], third[0]]
    assert log_of(again) == rotten
    await again.close()


async def test_a_proof_of_other_bytes_proves_nothing(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "master", SIZES)
    bad, _ = places(log)[5]
    slave = opened(tmp_path / "slave", "SLAVE")
    with pytest.raises(CorruptReplica):
        take(slave, spoiled(log, bad))
    prove(slave)
    other = bytearray(spoiled(log, bad))
    other[bad + BODY + 1] ^= 1
    with pytest.raises(CorruptReplica):
        slave.append_replica(bad, memoryview(bytes(other))[bad:])
    assert slave.damage == []
    assert slave.commit_log.max_offset == bad
    await slave.close()


async def test_bad_bytes_at_the_end_are_proven_when_the_next_good_record_has_come(tmp_path: Path) -> None:
    """Where damage ends is not known before. Until then nothing is acknowledged, and nothing refused again."""
    log = await master_log(tmp_path / "master", [300] * 20)
    (bad, size), (following, _) = places(log)[18:]
    rotten = bytearray(log)
    rotten[bad + 4] ^= 0xFF  # no magic code: nothing tells how long it is
    slave = opened(tmp_path / "slave", "SLAVE")
    with pytest.raises(CorruptReplica, match="no record begins here"):
        take(slave, bytes(rotten), end=following)
    prove(slave)
    assert slave.replica.check.refused is not None
    assert slave.replica.check.refused.size < size
    slave.append_replica(bad, memoryview(rotten)[bad:following])
    assert (slave.commit_log.max_offset, slave.commit_log.written_offset) == (bad, following)
    with pytest.raises(CorruptReplica):  # now all of it is known, and has to be proven
        slave.append_replica(following, memoryview(rotten)[following:])
    assert slave.replica.check.refused.which[:2] == (bad, size)
    prove(slave)
    slave.append_replica(bad, memoryview(rotten)[bad:])
    assert log_of(slave) == bytes(rotten)
    assert [(known.begin, known.end) for known in slave.damage] == [(bad, following)]
    await slave.close()


async def test_damage_up_to_the_end_of_a_file(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "master", SIZES)
    bad = max(place for place, _ in places(log) if place < FILE_SIZE)
    rotten = bytearray(log)
    rotten[bad:FILE_SIZE] = random.Random(5).randbytes(FILE_SIZE - bad)
    slave = opened(tmp_path / "slave", "SLAVE")
    with pytest.raises(CorruptReplica):
        take(slave, bytes(rotten))
    prove(slave)
    slave.append_replica(bad, memoryview(rotten)[bad:])
    assert log_of(slave) == bytes(rotten)
    assert [(known.begin, known.end) for known in slave.damage] == [(bad, FILE_SIZE)]
    await slave.close()


async def test_what_fills_the_end_of_a_file_may_be_anything_that_the_master_has_there(tmp_path: Path) -> None:
    """A RocketMQ with transientStorePoolEnable leaves old bytes there. They are no damage: nobody reads them."""
    log = bytearray(await master_log(tmp_path / "master", SIZES))
    last, size = max(place for place in places(bytes(log)) if place[0] < FILE_SIZE)
    log[FILE_SIZE - 10 : FILE_SIZE] = b"old bytes."
    slave = opened(tmp_path / "slave", "SLAVE")
    with pytest.raises(CorruptReplica, match="not zeros"):
        take(slave, bytes(log))
    assert slave.commit_log.max_offset == last + size
    prove(slave)
    slave.append_replica(last + size, memoryview(log)[last + size :])
    assert log_of(slave) == bytes(log)
    assert slave.damage == []
    await slave.close()


async def test_damage_that_was_cut_off_is_forgotten_when_the_bytes_come_right(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "master", [300] * 20)
    bad, _ = places(log)[19]
    slave = opened(tmp_path / "slave", "SLAVE")
    take(slave, log, end=bad)
    slave.replica._parts.damage.add(damage_at(bad, len(log)))
    take(slave, log)
    assert slave.damage == []
    assert slave.read_record(bad) is not None
    await slave.close()


def damage_at(begin: int, end: int) -> DamagedRange:
    return DamagedRange(begin, end, "rot", "of an earlier life")


@examples(8, 40, st.lists(st.integers(1, 40_000), min_size=1, max_size=30), st.integers(0, 1 << 30), st.integers(0, 7))
def test_whatever_bit_flips_however_it_is_cut_the_slave_has_the_master_s_records(
    pieces: list[int], place: int, bit: int
) -> None:
    """With whole-record checksums: each connection brings one flipped bit, until one does not."""

    async def follow(directory: Path) -> None:
        crc: dict[str, Any] = {"enabled_append_prop_crc": True}
        log = await master_log(directory / "master", SIZES[:20], **crc)
        slave = opened(directory / "slave", "SLAVE", **crc)
        flips = [(place * 7919 * (turn + 1)) % len(log) for turn in range(4)]
        for flip in [*flips, None]:
            data = bytearray(log)
            if flip is not None:
                data[flip] ^= 1 << bit
            slave.replica.follow(0)
            begin = slave.commit_log.max_offset
            for size in [*pieces, len(log)]:
                piece = memoryview(data)[begin : begin + size]
                try:
                    slave.append_replica(begin, piece)
                except CorruptReplica:
                    break
                begin += len(piece)
                assert log.startswith(log_of(slave)), "what belongs to the log is the master's"
        assert log_of(slave) == log
        await slave.close()

    with TemporaryDirectory() as directory:
        asyncio.run(follow(Path(directory)))


async def test_a_record_that_readers_take_is_no_damage_once_the_master_has_it_so(tmp_path: Path) -> None:
    """Written before enabledAppendPropCRC was set, with a zero byte in its properties: strange, and legal."""
    master = opened(tmp_path / "master")
    place = master.append(replace(message(1), properties=b"bytes\x01a\0b\x02"))
    log = log_of(master)
    await master.close()
    slave = opened(tmp_path / "slave", "SLAVE", enabled_append_prop_crc=True)
    with pytest.raises(CorruptReplica):
        take(slave, log)
    prove(slave)
    slave.append_replica(0, memoryview(log))
    assert log_of(slave) == log
    assert slave.damage == []
    assert slave.read_record(place.physical_offset) is not None
    await slave.close()


CRC: dict[str, Any] = {"enabled_append_prop_crc": True}


def pushed(log: bytes, place: int, size: int, by: int = 12) -> bytes:
    """The log with text doubled in a record's properties: what is after it in the record moves, and leaves it.

    So it was where a piece of a stream was lost or came twice. The record's size and the checksum of its body fit.
    """
    at = log.index(b"KEYS\x01", place)
    assert at + 2 * by < place + size
    return log[: at + by] + log[at : place + size - by] + log[place + size :]


async def test_a_record_whose_checksum_was_pushed_out_of_it_is_refused(tmp_path: Path) -> None:
    log = await master_log(tmp_path / "master", SIZES, **CRC)
    slave = opened(tmp_path / "slave", "SLAVE", **CRC)
    for by, (place, size) in enumerate(places(log)[:25], 1):
        with pytest.raises(CorruptReplica, match=f"offset {place:,}: a record fails its checksum"):
            take(slave, pushed(log, place, size, by))
        assert slave.commit_log.max_offset == place
        take(slave, log, end=place + size)
    take(slave, log)
    assert log_of(slave) == log
    await slave.close()


async def test_records_of_a_master_that_writes_no_checksum_pass_once_one_is_proven(tmp_path: Path) -> None:
    """It was set on the master later, or is set on the slave only; as soon as one comes that has it, all must."""
    master = opened(tmp_path / "master")
    for number in range(5):
        master.append(message(number))
    await master.close()
    master = opened(tmp_path / "master", **CRC)
    for number in range(5, 10):
        master.append(message(number))
    log = log_of(master)
    await master.close()
    slave = opened(tmp_path / "slave", "SLAVE", **CRC)
    with pytest.raises(CorruptReplica, match="offset 0: a record fails its checksum"):
        take(slave, log)
    prove(slave)
    ends = [place + size for place, size in places(log)]
    for begin, end in zip([0, *ends], ends[:-1], strict=False):
        slave.append_replica(begin, memoryview(log)[begin:end])
    last, size = places(log)[-1]
    with pytest.raises(CorruptReplica, match=f"offset {last:,}: a record fails its checksum"):
        take(slave, pushed(log, last, size, 24))
    take(slave, log)
    assert log_of(slave) == log
    assert slave.damage == []
    await slave.close()
