"""What another broker does to our directory: files deleted under us, a log written on behind our back."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tandemmq.store.format.host import Host
from tandemmq.store.format.record import Message, decode_record
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.recovery.damage import NAME as DAMAGE

HERE = Host("127.0.0.1", 10911)
FILE = 64 * 1024


def config(root: Path) -> StoreConfig:
    return StoreConfig(
        root, mapped_file_size_commit_log=FILE, mapped_file_size_consume_queue=4_000, max_hash_slot_num=100,
        max_index_num=500, prefault_bytes=0, flush_interval_commit_log=10, sync_flush_timeout=60_000,
    )  # fmt: skip


def message(number: int, size: int = 900) -> Message:
    return Message("t", 0, b"%06d" % number + bytes(size), b"", born_host=HERE, store_host=HERE)


def bodies(store: MessageStore) -> list[int]:
    queue = store.queue("t", 0)
    assert queue is not None
    found = []
    for offset in range(queue.min_offset, queue.max_offset):
        unit = queue.unit(offset)
        assert unit is not None
        data = store.read_record(unit.physical_offset, unit.size)
        if data is not None:
            found.append(int(decode_record(data).body[:6]))
    return found


async def look(root: Path) -> tuple[list[int], MessageStore]:
    store = MessageStore.open(config(root))
    store.start()
    await store.rebuilt()
    try:
        return bodies(store), store
    finally:
        await store.close()


def reopened(root: Path) -> tuple[list[int], MessageStore]:
    return asyncio.run(look(root))


async def test_log_files_deleted_by_another_process_are_put_back(tmp_path: Path) -> None:
    """The one made ahead before it is used, and those in use with the next flush or at the end."""
    store = MessageStore.open(config(tmp_path))
    store.start()
    for number in range(20):
        store.append(message(number))
    made_ahead = tmp_path / "commitlog" / f"{FILE:020d}"
    while not made_ahead.exists():
        await asyncio.sleep(0.001)
    made_ahead.unlink()
    for number in range(20, 99):
        store.append(message(number))
    assert made_ahead.exists()
    made_ahead.unlink()
    store.append(message(99))
    assert await store.wait_flushed(store.commit_log.max_offset)
    assert made_ahead.exists()
    (tmp_path / "commitlog" / f"{0:020d}").unlink()
    for number in range(100, 150):
        store.append(message(number))
    await store.close()
    assert (await look(tmp_path))[0] == list(range(150))


async def test_a_log_file_that_was_replaced_stops_the_store(tmp_path: Path) -> None:
    store = MessageStore.open(config(tmp_path))
    store.start()
    store.append(message(0))
    file = tmp_path / "commitlog" / f"{0:020d}"
    file.unlink()
    file.write_bytes(b"not ours")
    assert not await store.wait_flushed(store.commit_log.max_offset)
    assert not store.writable
    assert "replaced" in store.why_not_writable
    await store.close()
    assert file.read_bytes() == b"not ours"
    assert (tmp_path / "abort").exists()


@pytest.mark.parametrize("left", [b"", b"4711"])
def test_after_the_crash_of_another_broker_the_manifest_is_not_believed(tmp_path: Path, left: bytes) -> None:
    async def fill() -> None:
        store = MessageStore.open(config(tmp_path))
        store.start()
        for number in range(50):
            store.append(message(number))
        await store.close()

    asyncio.run(fill())
    assert reopened(tmp_path)[1].recovery.manifest_current
    (tmp_path / "abort").write_bytes(left)
    found, store = reopened(tmp_path)
    assert found == list(range(50))
    assert not store.recovery.manifest_current


def test_damage_that_was_written_over_is_forgotten(tmp_path: Path) -> None:
    """RocketMQ cuts the log at a damaged record and writes on there."""

    async def fill() -> tuple[int, int]:
        store = MessageStore.open(config(tmp_path))
        store.start()
        placed = [store.append(message(number)) for number in range(20)]
        await store.close()
        return placed[10].physical_offset, placed[10].size

    at, size = asyncio.run(fill())
    log = tmp_path / "commitlog" / f"{0:020d}"
    whole = log.read_bytes()
    log.write_bytes(whole[: at + 200] + b"\1" + whole[at + 201 :])

    async def verify() -> None:
        store = MessageStore.open(replace(config(tmp_path), verify_whole_log_on_start=True))
        assert [damage.begin for damage in store.damage] == [at]
        await store.close()

    asyncio.run(verify())
    found, store = reopened(tmp_path)
    assert found == [number for number in range(20) if number != 10]
    assert [(damage.begin, damage.end) for damage in store.damage] == [(at, at + size)]
    queue = store.queue("t", 0)
    assert queue is not None
    unit = queue.unit(10)
    assert unit is not None
    assert unit.physical_offset == at, "RocketMQ must see that this unit points behind the end of its log"

    log.write_bytes(whole)
    (tmp_path / "abort").touch()
    found, store = reopened(tmp_path)
    assert found == list(range(20))
    assert store.damage == []
    assert str(at) not in (tmp_path / DAMAGE).read_text()


def test_the_parts_of_a_damaged_stretch_that_are_good_again_are_read(tmp_path: Path) -> None:
    """One stretch covers two neighbours; the first of them is put back."""

    async def fill() -> list[int]:
        store = MessageStore.open(config(tmp_path))
        store.start()
        places = [store.append(message(number)).physical_offset for number in range(20)]
        await store.close()
        return places

    places = asyncio.run(fill())
    log = tmp_path / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    for number in (10, 11, 12):
        data[places[number] + 5] ^= 1
    log.write_bytes(data)

    async def verify() -> None:
        store = MessageStore.open(replace(config(tmp_path), verify_whole_log_on_start=True))
        assert [(damage.begin, damage.end) for damage in store.damage] == [(places[10], places[13])]
        await store.close()

    asyncio.run(verify())
    for number in (10, 12):
        data[places[number] + 5] ^= 1
    log.write_bytes(data)
    (tmp_path / "abort").touch()
    found, store = reopened(tmp_path)
    assert [(damage.begin, damage.end) for damage in store.damage] == [(places[11], places[12])]
    assert found == [number for number in range(20) if number != 11]
