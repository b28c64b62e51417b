"""Rebuilt consume queues and index, taken over by a store that goes on taking and giving messages."""

import asyncio
import errno
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tandemmq.store.format.record import decode_record
from tandemmq.store.format.staged import FILE_NAME, StagedManifest
from tandemmq.store.format.unit import UNIT_SIZE
from tandemmq.store.log.adoption.adoption import ADOPTED
from tandemmq.store.log.adoption.staged_files import TAIL, StagedFiles
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import AdoptionRefused, BadStagingName, DiskFull, NoStaging, StoreClosed, UnusableStaging
from tandemmq.store.log.message_store import MessageStore
from tests.unit.log.replica_kit import FILE_SIZE, config, master_log, message, opened
from tests.unit.log.staging_kit import NAME, contents, sequential, stage

MANY = 6_000
"""Messages that are sent at most during an adoption: the longer a busy machine needs for it, the more they would be."""


def send(store: MessageStore, begin: int, end: int) -> None:
    for number in range(begin, end):
        store.append(message(number))


async def dispatched(store: MessageStore) -> int:
    """Wait until everything is in queues and index; gives the end of the log."""
    async with asyncio.timeout(60):
        while store.dispatched_offset < store.commit_log.max_offset:
            await asyncio.sleep(0.001)
    return store.dispatched_offset


async def check(store: MessageStore) -> None:
    """Close the store; its queues and index are then what sequential dispatch makes of its log, byte for byte."""
    end = await dispatched(store)
    for queue in store.queues():
        assert queue.max_offset == store.commit_log.offsets[queue.topic, queue.queue_id]
        for at, unit in enumerate(queue.read(queue.min_offset, 1 << 20), queue.min_offset):
            data = store.read_record(unit.physical_offset, unit.size)
            assert data is not None
            record = decode_record(data)
            assert (record.topic, record.queue_id, record.queue_offset) == (queue.topic, queue.queue_id, at)
            assert record.unique_key is not None
            assert unit.physical_offset in store.query_index(record.topic, record.unique_key, 0, 1 << 60)
    await store.close()
    assert contents(store.config.store_path_root_dir) == sequential(store.config, end)


async def test_the_store_adds_what_came_after_the_rebuild(tmp_path: Path) -> None:
    store = opened(tmp_path)
    send(store, 0, 700)
    stage(store.config, await dispatched(store))
    send(store, 700, 1000)
    adopted = await store.adoption.adopt(NAME)
    assert (adopted.messages, adopted.tail_messages, adopted.queues, adopted.index_entries) == (700, 300, 6, 2000)
    assert adopted.position == store.dispatched_offset
    assert not (tmp_path / NAME).exists()
    send(store, 1000, 1300)
    await check(store)
    again = opened(tmp_path)
    assert not again.rebuilding
    assert again.recovery.manifest_current
    assert again.recovery.records == 0
    await again.close()


async def test_what_was_lost_and_spoilt_is_whole_again(tmp_path: Path) -> None:
    """The whole point: files that nobody noticed to be wrong."""
    store = opened(tmp_path)
    send(store, 0, 900)
    stage(store.config, await dispatched(store))
    spoilt = store.queue("Topic1", 1)
    assert spoilt is not None
    spoilt.put(20, bytes(30 * UNIT_SIZE))
    index = store._parts.index
    assert index is not None
    index.files[0].file.map[40:200] = bytes(160)
    await store.adoption.adopt(NAME)
    await check(store)


async def test_files_that_were_removed_under_a_running_store_come_back(tmp_path: Path) -> None:
    store = opened(tmp_path)
    send(store, 0, 500)
    stage(store.config, await dispatched(store))
    shutil.rmtree(tmp_path / "consumequeue")
    shutil.rmtree(tmp_path / "index")
    await store.adoption.adopt(NAME)
    send(store, 500, 800)
    await check(store)


async def test_queues_stay_the_same_objects_and_who_waits_at_them_is_woken(tmp_path: Path) -> None:
    store = opened(tmp_path)
    send(store, 0, 60)
    stage(store.config, await dispatched(store))
    queue = store.queue("Topic0", 0)
    assert queue is not None
    waiting, nothing_yet = queue.wait_beyond(queue.max_offset), store.ensure_queue("New", 0).wait_beyond(0)
    await store.adoption.adopt(NAME)
    assert store.queue("Topic0", 0) is queue
    assert not waiting.done()
    store.append(message(60))
    store.append(replace(message(61), topic="New", queue_id=0))
    await asyncio.wait_for(asyncio.gather(waiting, nothing_yet), 60)
    await check(store)


@pytest.mark.slow
async def test_sends_during_an_adoption_are_neither_missed_nor_doubled(tmp_path: Path) -> None:
    store = opened(tmp_path, mapped_file_size_commit_log=128 * 1024)
    send(store, 0, 3000)
    stage(store.config, await dispatched(store))
    adopting = asyncio.create_task(store.adoption.adopt(NAME))
    number = 3000
    while not adopting.done():
        if number < MANY:
            send(store, number, number + 7)
            number += 7
        await asyncio.sleep(0.0005)
    adopted = await adopting
    assert adopted.messages == 3000
    assert number > 3010
    await check(store)


@pytest.mark.slow
async def test_many_queues_are_taken_over_in_turns_between_which_dispatch_goes_on(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for number in range(400):
        store.append(replace(message(number), topic=f"Many{number % 200}", queue_id=0))
    stage(store.config, await dispatched(store))
    adopting = asyncio.create_task(store.adoption.adopt(NAME))
    number = 400
    while not adopting.done():
        for _ in range(5 if number < MANY else 0):
            store.append(replace(message(number), topic=f"Many{number % 220}", queue_id=0))  # 20 of them are new
            number += 1
        await asyncio.sleep(0.001)
    assert (await adopting).queues >= 200
    await check(store)


async def test_the_topics_that_were_not_rebuilt_keep_their_files(tmp_path: Path) -> None:
    store = opened(tmp_path)
    send(store, 0, 600)
    stage(store.config, await dispatched(store), topics={"Topic1"}, index=False)
    before = {path: path.stat().st_ino for path in (tmp_path / "consumequeue").glob("*/*")}
    index = sorted(path.stat().st_ino for path in (tmp_path / "index").iterdir())
    send(store, 600, 700)
    adopted = await store.adoption.adopt(NAME)
    assert (adopted.queues, adopted.index_entries) == (2, 0)
    after = {path: path.stat().st_ino for path in (tmp_path / "consumequeue").glob("*/*")}
    assert {path.parent.name for path in before if before[path] != after[path]} == {"Topic1"}
    assert sorted(path.stat().st_ino for path in (tmp_path / "index").iterdir()) == index
    await check(store)


async def test_the_index_alone(tmp_path: Path) -> None:
    store = opened(tmp_path)
    send(store, 0, 600)
    staged = stage(store.config, await dispatched(store), queues=False)
    assert not staged.all_topics
    inodes = {path: path.stat().st_ino for path in (tmp_path / "consumequeue").glob("*/*")}
    send(store, 600, 700)
    assert (await store.adoption.adopt(NAME)).queues == 0
    assert inodes == {path: path.stat().st_ino for path in (tmp_path / "consumequeue").glob("*/*")}
    await check(store)


async def test_a_topic_without_messages_that_are_left_goes_on_counting(tmp_path: Path) -> None:
    """Its messages have expired, so no rebuild knows of it; its next message must not be number 0."""
    store = opened(tmp_path)
    for number in range(50):
        store.append(replace(message(number), topic="Old", queue_id=0))
    while store.commit_log.min_offset == 0:
        send(store, 0, 100)
        await dispatched(store)
        if len(store.commit_log.files.files) > 2:
            store._parts.files.drop_first()
            await store._retention._after(store.commit_log.min_offset)
    staged = stage(store.config, await dispatched(store))
    assert ("Old", 0) not in staged.queues
    await store.adoption.adopt(NAME)
    queue = store.queue("Old", 0)
    assert queue is not None
    assert (queue.min_offset, queue.max_offset) == (50, 50)
    assert store.append(replace(message(1), topic="Old", queue_id=0)).queue_offset == 50
    await dispatched(store)
    assert len(queue.read(50, 10)) == 1
    await store.close()


async def test_the_log_loses_old_files_between_rebuild_and_adoption(tmp_path: Path) -> None:
    store = opened(tmp_path)
    send(store, 0, 1500)
    stage(store.config, await dispatched(store))
    for _ in range(4):
        store._parts.files.drop_first()
    await store._retention._after(store.commit_log.min_offset)
    wanted = {(queue.topic, queue.queue_id): (queue.min_offset, queue.max_offset) for queue in store.queues()}
    await store.adoption.adopt(NAME)
    assert {(q.topic, q.queue_id): (q.min_offset, q.max_offset) for q in store.queues()} == wanted
    send(store, 1500, 1600)
    await dispatched(store)
    await store.close()
    again = opened(tmp_path)
    assert not again.rebuilding
    assert again.recovery.records == 0
    await again.close()


async def test_offsets_that_were_given_away_are_not_given_again(tmp_path: Path) -> None:
    """The last messages of a queue are damaged: the rebuilt queue is shorter, the next offset is not."""
    store = opened(tmp_path)
    send(store, 0, 300)
    last = store.append(replace(message(300), topic="Topic0", queue_id=0))
    await dispatched(store)
    send(store, 301, 304)
    end = await dispatched(store)
    at = last.physical_offset
    file = store._parts.files.find(at)
    assert file is not None
    file.map[at - file.start + 4 : at - file.start + 8] = b"rot!"
    queue = store.queue("Topic0", 0)
    assert queue is not None
    bounds = queue.min_offset, queue.max_offset
    ends = [{"begin": at, "end": last.end_offset, "kind": "rot", "reason": "made so"}]
    staged = stage(store.config, end, damage=ends)
    if staged.queues["Topic0", 0][1] == bounds[1]:
        pytest.skip("another message came behind it")
    assert staged.queues["Topic0", 0] == (0, bounds[1] - 1)
    await store.adoption.adopt(NAME)
    assert (queue.min_offset, queue.max_offset) == bounds
    unit = queue.unit(bounds[1] - 1)
    assert unit is not None
    assert unit.physical_offset == at
    assert store.append(replace(message(1), topic="Topic0", queue_id=0)).queue_offset == bounds[1]
    await store.close()


async def test_a_slave_whose_log_ends_inside_a_record(tmp_path: Path) -> None:
    data = await master_log(tmp_path / "master", [100] * 600)
    store = opened(tmp_path / "slave", "SLAVE")
    half = len(data) * 2 // 3 + 17
    store.append_replica(0, memoryview(data)[:half])
    async with asyncio.timeout(60):
        while store.dispatched_offset < half - 1000:
            await asyncio.sleep(0.001)
    assert store.dispatched_offset < store.commit_log.written_offset
    stage(store.config, store.dispatched_offset)
    await store.adoption.adopt(NAME)
    store.append_replica(half, memoryview(data)[half:])
    await dispatched(store)
    await store.close()
    assert contents(tmp_path / "slave") == sequential(store.config, len(data))


# -- refusals ------------------------------------------------------------------------------------------------

Spoil = Callable[[Path, StagedManifest], Any]


def rewrite(**changes: Any) -> Spoil:
    return lambda staging, manifest: (staging / FILE_NAME).write_bytes(replace(manifest, **changes).encode())


def flip(staging: Path, manifest: StagedManifest) -> None:
    data = bytearray((staging / FILE_NAME).read_bytes())
    data[len(data) // 2] ^= 1
    (staging / FILE_NAME).write_bytes(data)


def of_another_log(staging: Path, manifest: StagedManifest) -> None:
    """Units of two queues change places."""
    one, other = staging / "consumequeue/Topic0/0", staging / "consumequeue/Topic1/1"
    one.rename(staging / "between")
    other.rename(one)
    (staging / "between").rename(other)


def linked(staging: Path, manifest: StagedManifest) -> None:
    (staging / "consumequeue").rename(staging / "elsewhere")
    (staging / "consumequeue").symlink_to(staging / "elsewhere")


def end_inside_a_record(staging: Path, manifest: StagedManifest) -> None:
    rewrite(end=manifest.end - 50)(staging, manifest)


def cut_file(staging: Path, manifest: StagedManifest) -> None:
    path = next((staging / "consumequeue/Topic0/0").iterdir())
    path.write_bytes(path.read_bytes()[:-20])


def lose_index_file(staging: Path, manifest: StagedManifest) -> None:
    next((staging / "index").iterdir()).unlink()


SPOILT: dict[str, Spoil] = {
    "no manifest": lambda staging, _: (staging / FILE_NAME).unlink(),
    "a flipped bit": flip,
    "other sizes of queue files": rewrite(consume_queue_file_size=4000),
    "other slots": rewrite(index_slots=51),
    "other entries": rewrite(index_entries=501),
    "an end beyond dispatch": rewrite(end=1 << 40),
    "a begin behind the log's": rewrite(begin=FILE_SIZE),
    "an end inside a record": end_inside_a_record,
    "a missing queue": lambda staging, _: shutil.rmtree(staging / "consumequeue/Topic0/0"),
    "a queue that leads out": rewrite(queues={("../../x", 0): (0, 1)}),
    "a queue file of another size": cut_file,
    "more than the files hold": rewrite(queues={("Topic0", 0): (0, 5000)}),
    "another log's queues": of_another_log,
    "a missing index file": lose_index_file,
    "a symbolic link": linked,
}


@pytest.mark.slow
@pytest.mark.parametrize("what", SPOILT)
async def test_files_that_are_not_right_are_refused_and_nothing_changes(tmp_path: Path, what: str) -> None:
    store = opened(tmp_path)
    send(store, 0, 600)
    end = await dispatched(store)
    staged = stage(store.config, end)
    send(store, 600, 650)
    await dispatched(store)
    before = contents(tmp_path)
    SPOILT[what](tmp_path / NAME, staged)
    with pytest.raises(UnusableStaging) as refusal:
        await store.adoption.adopt(NAME)
    assert refusal.value.remedy or what == "an end inside a record"
    assert contents(tmp_path) == before
    assert (tmp_path / NAME).is_dir()
    stage(store.config, end)
    await store.adoption.adopt(NAME)
    await check(store)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "consumequeue", "tandem.rebuild/..", "../tandem.rebuild", "tandem.rebuild\0"]
)
async def test_a_name_that_is_none_of_a_staging_directory(tmp_path: Path, name: str) -> None:
    store = opened(tmp_path)
    with pytest.raises(BadStagingName):
        await store.adoption.adopt(name)
    await store.close()


async def test_a_directory_that_is_not_there_or_elsewhere(tmp_path: Path) -> None:
    store = opened(tmp_path / "store")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "store" / "tandem.rebuild-2").symlink_to(tmp_path / "elsewhere")
    for name in ("tandem.rebuild", "tandem.rebuild-2"):
        with pytest.raises(NoStaging):
            await store.adoption.adopt(name)
    await store.close()


async def test_one_at_a_time(tmp_path: Path) -> None:
    store = opened(tmp_path)
    send(store, 0, 600)
    stage(store.config, await dispatched(store))
    first = asyncio.create_task(store.adoption.adopt(NAME))
    await asyncio.sleep(0)
    with pytest.raises(AdoptionRefused):
        await store.adoption.adopt(NAME)
    await first
    await check(store)


async def test_not_while_the_store_restores_its_own(tmp_path: Path) -> None:
    store = opened(tmp_path)
    send(store, 0, 600)
    end = await dispatched(store)
    await store.close()
    shutil.rmtree(tmp_path / "consumequeue")
    stage(store.config, end)
    store = opened(tmp_path)
    assert store.rebuilding
    with pytest.raises(AdoptionRefused):
        await store.adoption.adopt(NAME)
    await store.rebuilt()
    await store.adoption.adopt(NAME)
    await check(store)


async def test_an_adoption_goes_on_without_its_caller(tmp_path: Path) -> None:
    store = opened(tmp_path)
    send(store, 0, 600)
    stage(store.config, await dispatched(store))
    caller = asyncio.create_task(store.adoption.adopt(NAME))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    async with asyncio.timeout(60):
        while store.adoption.running:
            await asyncio.sleep(0.001)
    assert not (tmp_path / NAME).exists()
    await check(store)


async def test_a_store_that_is_closed_meanwhile_says_so(tmp_path: Path) -> None:
    store = opened(tmp_path)
    send(store, 0, 600)
    end = await dispatched(store)
    stage(store.config, end)
    caller = asyncio.create_task(store.adoption.adopt(NAME))
    await asyncio.sleep(0)
    await store.close()
    with pytest.raises(StoreClosed):
        await caller
    with pytest.raises(StoreClosed):
        await store.adoption.adopt(NAME)
    assert contents(tmp_path) == sequential(store.config, end)


# -- failures ------------------------------------------------------------------------------------------------


class NoExchange(LocalDisk):
    """A file system that cannot exchange names."""

    def exchange(self, one: Path, other: Path) -> None:
        raise OSError(errno.EINVAL, "made to fail")


async def test_a_file_system_that_cannot_exchange_names(tmp_path: Path) -> None:
    store = MessageStore.open(config(tmp_path), disk=NoExchange())
    store.start()
    send(store, 0, 600)
    stage(store.config, await dispatched(store))
    send(store, 600, 700)
    await store.adoption.adopt(NAME)
    assert not (tmp_path / NAME).exists()
    await check(store)


async def test_a_kill_between_two_renames(tmp_path: Path) -> None:
    """What was being replaced has no name at that moment: the next start gives it the rebuilt one."""
    store = opened(tmp_path)
    send(store, 0, 600)
    end = await dispatched(store)
    await store.close()
    stage(store.config, end)
    staging = tmp_path / NAME
    (staging / FILE_NAME).rename(staging / ADOPTED)
    aside = staging / "replaced/consumequeue/Topic1"
    aside.mkdir(parents=True)
    (tmp_path / "consumequeue/Topic1/1").rename(aside / "1")
    (tmp_path / "index").rename(staging / "replaced/index")
    rebuilt = (staging / "consumequeue/Topic1/1").stat().st_ino
    store = opened(tmp_path)
    assert (tmp_path / "consumequeue/Topic1/1").stat().st_ino == rebuilt
    assert not store.rebuilding
    async with asyncio.timeout(60):
        while staging.exists():
            await asyncio.sleep(0.001)
    await check(store)


async def test_a_full_disk_leaves_the_present_files_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    send(store, 0, 600)
    stage(store.config, await dispatched(store))
    send(store, 600, 700)
    await dispatched(store)
    before = contents(tmp_path)

    def full(self: StagedFiles, limit: int) -> None:
        raise OSError(errno.ENOSPC, "made to fail")

    with monkeypatch.context() as patch:
        patch.setattr(StagedFiles, "catch_up", full)
        with pytest.raises(DiskFull):
            await store.adoption.adopt(NAME)
    assert contents(tmp_path) == before
    assert (tmp_path / NAME / FILE_NAME).is_file()
    assert (tmp_path / NAME / TAIL).is_file()
    await store.adoption.adopt(NAME)
    await check(store)


async def test_a_second_try_does_not_double_what_the_first_has_added(tmp_path: Path) -> None:
    store = opened(tmp_path)
    send(store, 0, 600)
    stage(store.config, await dispatched(store))
    send(store, 600, 900)
    store.append(replace(message(900), topic="New", queue_id=3))
    end = await dispatched(store)
    first = StagedFiles.open(store._parts, NAME, end)
    first.catch_up(end)
    first.close()
    await store.adoption.adopt(NAME)
    await check(store)


async def test_a_power_cut_after_a_first_try_may_have_kept_half_of_an_index_file(tmp_path: Path) -> None:
    """New slots, and the header as the job has left it: the chains of older entries would be lost."""
    store = opened(tmp_path)
    send(store, 0, 600)
    stage(store.config, await dispatched(store))
    newest = max((tmp_path / NAME / "index").iterdir())
    header = newest.read_bytes()[:40]
    send(store, 600, 620)
    end = await dispatched(store)
    first = StagedFiles.open(store._parts, NAME, end)
    first.catch_up(end)
    first.close()
    assert newest.read_bytes()[:40] != header
    with newest.open("r+b") as file:
        file.write(header)
    await store.adoption.adopt(NAME)
    await check(store)


# -- at the next start ------------------------------------------------------------------------------------------------


async def test_a_start_leaves_alone_what_a_job_may_yet_go_on_with(tmp_path: Path) -> None:
    store = opened(tmp_path)
    send(store, 0, 600)
    end = await dispatched(store)
    await store.close()
    for name in ("tandem.rebuild", "tandem.rebuild-2"):
        stage(store.config, end, name=name)
    (tmp_path / "tandem.rebuild-2" / FILE_NAME).unlink()
    before = [contents(tmp_path / name) for name in ("tandem.rebuild", "tandem.rebuild-2")]
    store = opened(tmp_path)
    assert not store.rebuilding
    await asyncio.sleep(0.05)
    assert [contents(tmp_path / name) for name in ("tandem.rebuild", "tandem.rebuild-2")] == before
    await store.adoption.adopt(NAME)
    await check(store)


async def test_a_start_removes_what_an_interrupted_adoption_has_left(tmp_path: Path) -> None:
    store = opened(tmp_path)
    send(store, 0, 100)
    end = await dispatched(store)
    stage(store.config, end)
    (tmp_path / NAME / FILE_NAME).rename(tmp_path / NAME / ADOPTED)
    await store.close()
    store = opened(tmp_path)
    async with asyncio.timeout(60):
        while (tmp_path / NAME).exists():
            await asyncio.sleep(0.001)
    await check(store)
