"""The known faults of RocketMQ's store, by their numbers in docs/known-faults.md: one test or more for each."""

import asyncio
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.errors import Kind
from tandemmq.store.format.record import decode_record, record_size
from tandemmq.store.format.unit import BLANK_UNIT, UNIT_SIZE
from tandemmq.store.log.edges.disk import DiskUsage, LocalDisk
from tandemmq.store.log.errors import NotWritable, RecordTooLarge
from tandemmq.store.log.marks.running_flags import Reason
from tandemmq.store.log.message_store import MessageStore
from tests.faults.harness import (
    ENTRIES,
    LOG_FILE,
    QUEUE_FILE,
    QUEUES,
    SEED,
    SLOTS,
    audit,
    message,
    missing_keys,
    read_queue,
    records_on_disk,
    settle,
    small_config,
    until,
)
from tests.faults.power_disk import PowerDisk
from tests.faults.test_bad_directories import everything_is_there, fingerprint, opened

QUEUE = QUEUES[0]
HOUR_MS = 3_600_000
NEVER: dict[str, Any] = {
    "flush_interval_commit_log": 1 << 40,
    "flush_interval_consume_queue": 1 << 40,
    "clean_resource_interval": 1 << 40,
}
"""Nothing happens by itself."""


class HandClock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_750_000_000_000

    def now_ms(self) -> int:
        return self.now


async def fill(store: MessageStore, count: int, producer: str = "c1-p0") -> None:
    for number in range(count):
        store.append(message(QUEUES[number % len(QUEUES)], f"{producer}-{number}"))
    await settle(store)


def crashed(root: Path) -> Path:
    """The directory as a process that is killed now would leave it."""
    copy = root.with_name(root.name + "-crashed")
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("*.tmp"))  # the store lives on, and renames such
    return copy


def values(store: MessageStore, queue: tuple[str, int] = QUEUE) -> dict[int, str]:
    return {offset: value for offset, value, _, _ in read_queue(store, queue, 0)}


async def test_t01_what_was_cut_does_not_come_back(tmp_path: Path) -> None:
    """Three records of equal size, the last two damaged and cut: a new one must not bring the third back."""
    root = tmp_path / "store"
    async with opened(root) as store:
        places = [store.append(message(QUEUE, f"c1-p0-{at}")) for at in (10, 10, 10)]
        await settle(store)
        copy = crashed(root)
    size = places[0].size
    path = copy / "commitlog" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    for place in places[1:]:
        data[place.physical_offset + size // 2] ^= 1
    path.write_bytes(data)
    for name in ("tandem.manifest", "checkpoint", "tandem.end"):  # nothing knows how far the log had come
        (copy / name).unlink(missing_ok=True)
    async with opened(copy) as store:
        assert store.commit_log.max_offset == size
        assert store.recovery.cut_bytes == 2 * size
        assert not path.read_bytes()[size:].strip(b"\0"), "what was cut must be zeroed"
        units = (copy / "consumequeue" / QUEUE[0] / "0" / f"{0:020d}").read_bytes()
        assert not units[UNIT_SIZE:].strip(b"\0"), "so must its units"
        assert sum(len(kept.read_bytes()) for kept in (copy / "broken").iterdir()) == 2 * size, "a copy is kept"
        again = store.append(message(QUEUE, "c1-p0-10"))
        assert (again.size, again.queue_offset) == (size, 1)
        await settle(store)
        after = crashed(copy)
    async with opened(after) as store:
        assert len(values(store)) == 2
        assert store.commit_log.max_offset == 2 * size


async def test_t01_a_record_that_names_another_place_is_no_record(tmp_path: Path) -> None:
    root = tmp_path / "store"
    async with opened(root) as store:
        one = store.append(message(QUEUE, "c1-p0-0"))
        await settle(store)
        copy = crashed(root)
    path = copy / "commitlog" / f"{0:020d}"
    with path.open("r+b") as file:
        stale = file.read(one.size)
        file.seek(one.size)
        file.write(stale)
    async with opened(copy) as store:
        assert values(store) == {0: "c1-p0-0"}
        assert store.commit_log.max_offset == one.size


async def test_t02_the_lock_comes_first(tmp_path: Path) -> None:
    """In one process here; with a second one in test_bad_directories.py."""
    root = tmp_path / "store"
    async with opened(root, **NEVER) as store:
        await fill(store, 50)
        before = fingerprint(root)
        with pytest.raises(Exception, match="in use"):
            MessageStore.open(small_config(root))
        assert fingerprint(root) == before


async def test_t03_a_record_that_can_never_fit_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path / "store", max_message_size=1 << 20) as store:
        store.append(message(QUEUE, "c1-p0-0"))
        await settle(store)
        before, files = store.commit_log.max_offset, [*(tmp_path / "store" / "commitlog").iterdir()]
        large = message(QUEUE, "x")
        large.body = b"x" * LOG_FILE
        with pytest.raises(RecordTooLarge) as caught:
            store.append(large)
        assert caught.value.kind is Kind.TOO_LARGE
        with pytest.raises(RecordTooLarge):
            store.append_messages([message(QUEUE, "c1-p0-1"), large])
        large.body = b""
        large.body = b"x" * (LOG_FILE - 8 - record_size(large))
        one_more = message(QUEUE, "x")
        one_more.body = large.body + b"x"
        with pytest.raises(RecordTooLarge):
            store.append(one_more)
        assert store.commit_log.max_offset == before
        assert {*(tmp_path / "store" / "commitlog").iterdir()} == {*files}
        placed = store.append(large)  # exactly as much as a file can hold
        assert placed.physical_offset == LOG_FILE
        await settle(store)


async def test_t04_dispatch_goes_on_behind_an_unreadable_record(tmp_path: Path) -> None:
    async with opened(tmp_path / "store") as store:
        places = [store.append(message(QUEUE, f"c1-p0-{at}")) for at in range(3)]
        file = store._parts.files.find(places[1].physical_offset)
        assert file is not None
        at = places[1].physical_offset - file.start
        file.map[at + 4 : at + 8] = b"rott"
        await settle(store)
        assert values(store) == {0: "c1-p0-0", 2: "c1-p0-2"}
        assert [(known.begin, known.end) for known in store.damage] == [
            (places[1].physical_offset, places[2].physical_offset)
        ]


@pytest.mark.parametrize("with_log", [False, True])
async def test_t05_blank_units_are_no_messages(tmp_path: Path, with_log: bool) -> None:
    """A queue that holds pre-fill only: RocketMQ takes its end for the log's, and drops every later unit."""
    root = tmp_path / "store"
    if with_log:
        async with opened(root) as store:
            store.append(message(QUEUES[1], "c1-p0-0"))
            await settle(store)
    directory = root / "consumequeue" / QUEUE[0] / str(QUEUE[1])
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{0:020d}").write_bytes((BLANK_UNIT * 50).ljust(QUEUE_FILE, b"\0"))
    for name in ("tandem.manifest", "checkpoint"):
        (root / name).unlink(missing_ok=True)
    async with opened(root) as store:
        await settle(store)
        first = store.append(message(QUEUE, "c1-p0-1"))
        await settle(store)
        queue = store.queue(*QUEUE)
        assert queue is not None
        assert values(store) == {first.queue_offset: "c1-p0-1"}
        assert queue.min_offset == first.queue_offset
        if with_log:
            assert values(store, QUEUES[1]) == {0: "c1-p0-0"}
    async with opened(root) as store:
        assert values(store) == {first.queue_offset: "c1-p0-1"}


async def test_t06_an_empty_unit_is_no_message(tmp_path: Path) -> None:
    root = tmp_path / "store"
    async with opened(root) as store:
        store.append(message(QUEUES[1], "c1-p0-0"))
        await settle(store)
    directory = root / "consumequeue" / QUEUE[0] / str(QUEUE[1])
    directory.mkdir(parents=True)
    (directory / f"{0:020d}").write_bytes(bytes(QUEUE_FILE))
    for name in ("tandem.manifest", "checkpoint"):
        (root / name).unlink(missing_ok=True)
    async with opened(root) as store:
        await settle(store)
        queue = store.queue(*QUEUE)
        assert queue is None or queue.max_offset == 0
        assert store.append(message(QUEUE, "c1-p0-1")).queue_offset == 0
        await settle(store)
        assert values(store) == {0: "c1-p0-1"}


async def test_t07_index_files_outlive_a_crash(tmp_path: Path) -> None:
    """RocketMQ deletes the newest file (#8007); keys of older messages in it are lost for good."""
    root = tmp_path / "store"
    async with opened(root) as store:
        await fill(store, 300)
        await store._checkpointer.take()
        await fill(store, 20, "c1-p1")
        names = sorted(path.name for path in (root / "index").iterdir())
        copy = crashed(root)
    async with opened(copy) as store:
        assert store.recovery.index_complete
        assert sorted(path.name for path in (copy / "index").iterdir())[: len(names) - 1] == names[:-1]
        found = await audit(store)
        assert not found.missing_keys
        assert len(found.records) == 320


async def test_t07_slots_that_outran_their_header_do_not_hide_older_keys(tmp_path: Path) -> None:
    """A power cut keeps new slots and loses the header and entries that go with them."""
    root = tmp_path / "store"
    async with opened(root, **NEVER) as store:
        await fill(store, 20)
        await store._checkpointer.take()
        copy = crashed(root)
    path = max((copy / "index").iterdir())
    data = bytearray(path.read_bytes())
    count = int.from_bytes(data[36:40], "big")
    assert 1 < count < ENTRIES
    for slot in range(SLOTS):
        data[40 + 4 * slot : 44 + 4 * slot] = count.to_bytes(4, "big")
    path.write_bytes(data)
    async with opened(copy) as store:
        assert not (await audit(store)).missing_keys


async def test_t08_exact_times_find_every_key(tmp_path: Path) -> None:
    """Whole seconds, a per-file base, clocks set back: RocketMQ's range queries miss messages."""
    chance, clock = random.Random(SEED), HandClock()
    store = MessageStore.open(small_config(tmp_path / "store"), clock=clock)
    store.start()
    for number in range(300):
        clock.now += chance.choice((0, 1, 999, 1000, 1001, 90_000, -5_000))
        store.append(message(QUEUES[number % 6], f"c1-p0-{number}"))
    await settle(store)
    assert len(store._parts.index.files if store._parts.index else []) > 2
    for physical, _, record in records_on_disk(tmp_path / "store", store.commit_log.max_offset):
        assert not missing_keys(store, physical, record)
    await store.close()


@pytest.mark.slow
async def test_t10_units_that_were_never_synced_are_made_again(tmp_path: Path) -> None:
    """Power goes before any unit or checkpoint was synced; the log was."""
    chance = random.Random(SEED)
    root = tmp_path / "store"
    root.mkdir()
    disk = PowerDisk(root)
    store = MessageStore.open(small_config(root, **NEVER), disk=disk)
    store.start()
    await fill(store, 200)
    await store._checkpointer.take()
    await fill(store, 200, "c1-p1")
    store._parts.files._maker.submit(int).result()
    for number in range(10):
        disk.image(tmp_path / f"{number}", chance)
    await store.close()
    disk.forget()
    for number in range(10):
        async with opened(tmp_path / f"{number}") as store:
            assert len((await audit(store)).records) == 400
        await everything_is_there(tmp_path / f"{number}")


@pytest.mark.slow
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
@pytest.mark.parametrize("manifest", [True, False], ids=["manifest", "no manifest"])
async def test_t11_one_lost_queue_is_rebuilt_while_others_are_whole(
    tmp_path: Path, clean: bool, manifest: bool
) -> None:
    root = tmp_path / "store"
    async with opened(root) as store:
        await fill(store, 300)
        if not clean:
            root = crashed(root)
    shutil.rmtree(root / "consumequeue" / QUEUE[0] / str(QUEUE[1]))
    if not manifest:
        (root / "tandem.manifest").unlink(missing_ok=True)
    async with opened(root) as store:
        found = await audit(store)
        assert len(found.queues[QUEUE].messages) == 50
        assert store.append(message(QUEUE, "c2-p0-0")).queue_offset == 50
    await everything_is_there(root, 301, verify_whole_log_on_start=True)


async def test_t12_the_visible_end_is_the_end_of_the_last_record(tmp_path: Path) -> None:
    root = tmp_path / "store"
    async with opened(root) as store:
        await fill(store, 10)
        end = store.commit_log.max_offset
        copy = crashed(root)
    for directory in (root, copy):
        async with opened(directory) as store:
            assert store.confirm_offset == store.commit_log.max_offset == end
            assert len((await audit(store)).records) == 10


async def test_t15_dispatch_ends_before_the_index_does(tmp_path: Path) -> None:
    root = tmp_path / "store"
    async with opened(root, sync=False, **NEVER) as store:
        for number in range(500):
            store.append(message(QUEUES[number % 6], f"c1-p0-{number}"))
        assert store.dispatched_offset == 0, "nothing was dispatched before the shutdown began"
    assert not (root / "abort").exists()
    names = sorted((root / "index").iterdir())
    store = await everything_is_there(root)
    assert store.recovery.records == 0, "a clean start has nothing to read"
    assert sorted((root / "index").iterdir()) == names


async def test_t19_a_gap_does_not_move_later_units(tmp_path: Path) -> None:
    root = tmp_path / "store"
    async with opened(root) as store:
        places = [store.append(message(QUEUE, f"c1-p0-{at}")) for at in range(6)]
        await settle(store)
    path = root / "commitlog" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[places[2].physical_offset + 4] ^= 0xFF
    path.write_bytes(data)
    shutil.rmtree(root / "consumequeue")
    (root / "tandem.manifest").unlink()
    async with opened(root) as store:
        await settle(store)
        assert values(store) == {at: f"c1-p0-{at}" for at in range(6) if at != 2}
        assert store.append(message(QUEUE, "c1-p0-6")).queue_offset == 6


async def test_t21_store_times_never_go_back(tmp_path: Path) -> None:
    clock, times = HandClock(), []
    for life in range(2):
        store = MessageStore.open(small_config(tmp_path / "store"), clock=clock)
        store.start()
        for number in range(50):
            clock.now += 1000 if number % 10 else -3 * HOUR_MS
            times.append(store.append(message(QUEUE, f"c{life}-p0-{number}")).store_timestamp)
        await settle(store)
        assert times == sorted(times)
        for offset, when in enumerate(times):
            assert store.offset_by_time(*QUEUE, when) == times.index(when)
            assert offset >= times.index(when)
        await store.close()
        clock.now -= 5 * HOUR_MS


async def test_t21_nor_when_a_crash_came_between_manifest_and_checkpoint(tmp_path: Path) -> None:
    """The manifest says where to begin, so no record tells the newest time; the checkpoint still has an older one.

    Found by power cuts: with the clock set back as well, a life's messages were older than those before them, and the
    index did not find them.
    """
    root, clock, times, checkpoints = tmp_path / "store", HandClock(), [], []
    store = MessageStore.open(small_config(root, **NEVER), clock=clock)
    store.start()
    for number in range(2):
        clock.now += HOUR_MS
        times.append(store.append(message(QUEUE, f"c0-p0-{number}")).store_timestamp)
        await settle(store)
        await store._checkpointer.take()
        checkpoints.append((root / "checkpoint").read_bytes())
    crash = crashed(root)
    (crash / "checkpoint").write_bytes(checkpoints[0])
    await store.close()
    clock.now -= 5 * HOUR_MS
    store = MessageStore.open(small_config(crash, **NEVER), clock=clock)
    assert store.recovery.manifest_current
    assert store.recovery.records == 0
    store.start()
    place = store.append(message(QUEUE, "c1-p0-0"))
    times.append(place.store_timestamp)
    await settle(store)
    assert times == sorted(times)
    assert place.physical_offset in store.query_index(QUEUE[0], "kc1-p0-0", times[-1], times[-1])
    await store.close()


async def test_t22_files_expire_by_their_records_not_by_their_mtime(tmp_path: Path) -> None:
    clock = HandClock()
    config = small_config(tmp_path / "store", file_reserved_time=2, **NEVER)
    store = MessageStore.open(config, clock=clock)
    store.start()
    await fill(store, 300)
    files = len(store._parts.files.files)
    assert files > 1
    for path in (tmp_path / "store" / "commitlog").iterdir():
        os.utime(path, (1, 1))  # as old as can be
    assert await store._retention.run_once() == 0
    clock.now += 3 * HOUR_MS
    for path in (tmp_path / "store" / "commitlog").iterdir():
        os.utime(path)  # copied just now
    assert await store._retention.run_once() == files - 1, "all but the newest"
    assert store.commit_log.min_offset == (files - 1) * LOG_FILE
    await store.close()


class FillingDisk(LocalDisk):
    """A disk that is as full as it is told to be."""

    used = 10

    def usage(self, path: Path) -> DiskUsage:
        return DiskUsage(total=100, used=self.used, free=100 - self.used)


async def test_t23_reasons_not_to_write_are_kept_apart(tmp_path: Path) -> None:
    """One flag for two partitions is set and cleared in one pass; #2398: it stays when there is room again."""
    disk = FillingDisk()
    config = small_config(
        tmp_path / "store", disk_space_warning_level_ratio=90, clean_file_forcibly_enable=False, **NEVER
    )
    store = MessageStore.open(config, disk=disk)
    store.start()
    store.append(message(QUEUE, "c1-p0-0"))
    disk.used = 95
    await store._retention.run_once()
    with pytest.raises(NotWritable) as caught:
        store.append(message(QUEUE, "c1-p0-1"))
    assert caught.value.kind is Kind.DISK_FULL
    store.flags.set(Reason.QUEUE_ERROR, "a queue cannot be written")
    disk.used = 50
    await store._retention.run_once()
    assert store.why_not_writable == "a queue cannot be written"
    store.flags.clear(Reason.QUEUE_ERROR)
    store.append(message(QUEUE, "c1-p0-2"))
    await store.close()


async def test_t24_names_are_durable_before_anything_is_acknowledged(tmp_path: Path) -> None:
    root = tmp_path / "store"
    root.mkdir()
    disk = PowerDisk(root)
    store = MessageStore.open(small_config(root, **NEVER), disk=disk)
    store.start()
    for number in range(300):
        store.append(message(QUEUES[number % 6], f"c1-p0-{number}"))
    await settle(store)
    await store._checkpointer.take()
    used = [file.path for file in store._parts.files] + [path for queue in store.queues() for path in queue.files]
    used += [file.file.path for file in store._parts.index.files] if store._parts.index else []
    used += [root / "tandem.manifest", root / "checkpoint", root / "abort"]
    assert len(used) > 12
    for path in used:
        assert path.name in disk._names[path.parent], f"the name of {path} is not durable"
        for parent in path.relative_to(root).parents:
            directory = root / parent
            assert directory == root or directory.name in disk._names[directory.parent]
    await store.close()
    disk.forget()


@pytest.mark.slow
async def test_t27_old_files_are_verified_when_asked_for(tmp_path: Path) -> None:
    root = tmp_path / "store"
    async with opened(root) as store:
        await fill(store, 2000)
        assert len(store._parts.files.files) > 4
    path = root / "consumequeue" / QUEUE[0] / str(QUEUE[1]) / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[7] ^= 1
    path.write_bytes(data)
    log = root / "commitlog" / f"{0:020d}"
    record = decode_record(log.read_bytes(), 0)
    async with opened(root, verify_whole_log_on_start=True) as store:
        found = await audit(store)
        assert len(found.records) == 2000
        assert found.queues[QUEUE].messages[0][1] == record.physical_offset == 0


async def test_8239_messages_are_visible_only_when_they_are_on_disk(tmp_path: Path) -> None:
    async with opened(tmp_path / "store", **NEVER) as store:
        appended = store.append(message(QUEUE, "c1-p0-0"))
        await asyncio.sleep(0)
        assert store.confirm_offset == 0
        assert store.queue(*QUEUE) is None or not values(store)
        waiting = store.ensure_queue(*QUEUE).wait_beyond(0)
        assert not waiting.done()
        assert await store.wait_flushed(appended.end_offset)
        await until(waiting.done)
        assert values(store) == {0: "c1-p0-0"}


async def test_467_the_undispatched_tail_is_there_after_a_crash(tmp_path: Path) -> None:
    """#467, #678, #1434: checkpoint times lie, and what was not dispatched before the crash has no unit ever after."""
    root = tmp_path / "store"
    async with opened(root, sync=False, **NEVER) as store:
        await fill(store, 100)
        await store._checkpointer.take()
        for number in range(100):
            store.append(message(QUEUE, f"c1-p1-{number}"))
        copy = crashed(root)
    async with opened(copy) as store:
        found = await audit(store)
        assert len(found.records) == 200
        assert not found.missing_keys
    await everything_is_there(copy, 200)


async def test_1258_recovery_reads_what_lies_behind_the_checkpoint_only(tmp_path: Path) -> None:
    """#1258, #350: recovery took hours because queues and index were rebuilt from the log's beginning."""
    root = tmp_path / "store"
    async with opened(root, **NEVER) as store:
        await fill(store, 1000)
        await store._checkpointer.take()
        position = store.commit_log.max_offset
        await fill(store, 7, "c1-p1")
        copy = crashed(root)
    async with opened(copy) as store:
        assert store.recovery.began_at == position
        assert store.recovery.records == 7
        assert not store.rebuilding
