"""Putting rebuilt files in place while no broker runs: ended at every step, refused when it must be.

A kill may leave some queues new and some old, but a store that starts on it serves the right units, and no number is
given away twice.
"""

import asyncio
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.files import exchange as exchange_module
from tandemmq.common.files.file_system import LocalFileSystem
from tandemmq.spark.errors import BadJobOption, StagingMismatch, StoreInUse
from tandemmq.spark.rebuilding import publishing, rebuild_job, staging
from tandemmq.spark.rebuilding.rebuild_job import rebuild
from tandemmq.store.format.manifest import Manifest
from tandemmq.store.format.unit import UNIT_SIZE, is_blank, is_empty, unpack_units
from tandemmq.store.log.message_store import MessageStore
from tests.campaigns import in_campaigns
from tests.faults.harness import records_on_disk
from tests.spark.kit import Files, by_store, files_of
from tests.unit.spark.small_store import FIRST, SIZES, Cores, Killed, Steps, write_log

NEXT = {"Late": 65, "Jumps": 83, "Twice": 65, "Plain": 50}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that was closed in order, all its files as they should be."""
    place = tmp_path_factory.mktemp("sound")
    write_log(place / "log", twice=False)
    by_store(place / "log", place / "store", SIZES)
    return place / "store"


@pytest.fixture
def want(sound: Path) -> Files:
    """What must be there in the end."""
    return files_of(sound)


@pytest.fixture
def root(sound: Path, tmp_path: Path) -> Path:
    """A store that has lost a queue and the index, and has rot in another queue, with a manifest that is current."""
    target = tmp_path / "store"
    shutil.copytree(sound, target)
    spoil(target)
    return target


def spoil(root: Path) -> None:
    shutil.rmtree(root / "consumequeue" / "Late")
    shutil.rmtree(root / "index")
    damaged = root / "consumequeue" / "Plain" / "0" / f"{200:020d}"
    damaged.write_bytes(bytes(200))


def publish(root: Path) -> str:
    """A whole rebuild with its publication."""
    return rebuild(SIZES.request(root, partitions=3, publish=True), Cores(2)).published


def check_with_a_store(root: Path, want: Files, next_numbers: dict[str, int] = NEXT) -> None:
    """A store opens on it, repairs what is old, gives the right next numbers, and closes; then all is equal."""

    async def once() -> None:
        store = MessageStore.open(SIZES.config(root, verify_whole_log_on_start=False))
        store.start()
        await asyncio.wait_for(store.rebuilt(), 60)
        for topic, end in next_numbers.items():
            queue = store.queue(topic, 0)
            assert queue is not None
            assert queue.max_offset == end, topic
        await store.close()

    asyncio.run(once())
    assert messages_of(files_of(root)) == messages_of(want)


def messages_of(files: Files) -> dict[str, list[tuple[int, ...]]]:
    """The messages of each queue file, with their places; blanks and files without messages left out."""
    found: dict[str, list[tuple[int, ...]]] = {}
    for name, data in files.queues.items():
        units: list[tuple[int, ...]] = [
            (offset, *unit)
            for offset, unit in enumerate(unpack_units(data[: len(data) // UNIT_SIZE * UNIT_SIZE]))
            if not is_blank(unit) and not is_empty(unit)
        ]
        if units:
            found[name] = units
    return found


def test_published_files_are_the_right_ones(root: Path, want: Files) -> None:
    before = (root / "commitlog").stat().st_mtime_ns
    assert publish(root) == "offline"
    assert files_of(root).differences(want) == []
    assert not (root / "tandem.rebuild").exists()
    manifest = Manifest.decode((root / "tandem.manifest").read_bytes())
    assert max(manifest.checkpoint) == max(record.store_timestamp for _, _, record in records_on_disk(root))
    assert (root / "commitlog").stat().st_mtime_ns == before
    check_with_a_store(root, want)
    assert files_of(root).differences(want) == []


@pytest.mark.slow
@pytest.mark.parametrize("supported", [True, *in_campaigns(False)])
@pytest.mark.parametrize("behind", [True, *in_campaigns(False)])
def test_a_kill_at_every_step(
    sound: Path, want: Files, scratch: Path, monkeypatch: pytest.MonkeyPatch, behind: bool, supported: bool
) -> None:
    """Every rename, removal, exchange and directory sync of the publication; then a store, or a rebuild, comes."""
    root, number, killed = scratch / "store", 0, True
    while killed:
        number += 1
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(sound, root)
        spoil(root)
        killed = not finishes(root, monkeypatch, number, behind, supported)
        if number % 3 == 0 and killed:
            assert publish(root) == "offline"
            assert files_of(root).differences(want) == [], number
        else:
            check_with_a_store(root, want)
    assert number > 12
    assert files_of(root).differences(want) == []


def finishes(root: Path, monkeypatch: pytest.MonkeyPatch, at: int, behind: bool, supported: bool) -> bool:
    """Rebuild, and end at step ``at`` of the publication."""
    with monkeypatch.context() as patch:
        steps = Steps(patch, at, behind=behind)
        if not supported:

            def refuse(one: Path, other: Path) -> None:
                raise OSError(exchange_module.NOT_SUPPORTED[0], "not here", str(one), None, str(other))

            patch.setattr(publishing, "exchange", refuse)
        else:
            steps.watch(publishing, "exchange")
        real = publishing.publish_offline

        def watched(*arguments: Any) -> None:
            for name in ("unlink", "mkdir"):
                steps.watch(Path, name)
            steps.watch(LocalFileSystem, "sync_dir")
            for name in ("rename", "rmdir"):
                steps.watch(os, name)
            real(*arguments)

        patch.setattr(rebuild_job, "publish_offline", watched)
        try:
            publish(root)
        except Killed:
            return False
    return True


@pytest.fixture
def broker(root: Path) -> Iterator[None]:
    """Another process that holds the store's lock, as RocketMQ and we do."""
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        fd = os.open(root / "lock", os.O_RDWR | os.O_CREAT)
        fcntl.lockf(fd, fcntl.LOCK_EX, 1, 0)
        os.write(there, b".")
        while True:
            os.read(here, 0)
            os.sched_yield()
    os.read(here, 1)
    try:
        yield
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(here)
        os.close(there)


def everything(root: Path) -> dict[str, bytes]:
    """All files of a store, but for the lock."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != "lock" and "tandem.rebuild" not in path.parts
    }


def test_a_running_broker_keeps_its_files(root: Path, broker: None) -> None:
    before = everything(root)
    with pytest.raises(StoreInUse, match="A broker runs on"):
        publish(root)
    assert everything(root) == before
    assert not (root / "tandem.rebuild").exists()


def test_a_log_that_was_written_to_meanwhile(root: Path, want: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the scan and the publication: nothing is put in place, and the next run begins anew."""
    before = everything(root)
    log = sorted((root / "commitlog").iterdir())[0]
    with monkeypatch.context() as patch:
        real = staging.StagingDirectory.clear_work

        def writing(self: staging.StagingDirectory) -> None:
            real(self)
            os.utime(log, ns=(1, 1))

        patch.setattr(staging.StagingDirectory, "clear_work", writing)
        with pytest.raises(StagingMismatch, match="has changed since it was read"):
            publish(root)
    assert everything(root) == before
    assert publish(root) == "offline"
    assert files_of(root).differences(want) == []


def test_a_broker_that_starts_before_the_publication(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = everything(root)
    rebuild(SIZES.request(root, partitions=3), Cores(2))
    with monkeypatch.context() as patch:

        def taken(*_: object) -> None:
            raise OSError(11, "taken")

        real = staging.StagingDirectory.clear_work

        def starting(self: staging.StagingDirectory) -> None:
            real(self)
            patch.setattr(fcntl, "lockf", taken)

        patch.setattr(staging.StagingDirectory, "clear_work", starting)
        with pytest.raises(StoreInUse):
            publish(root)
    assert everything(root) == before


def test_some_topics_only(root: Path, want: Files) -> None:
    """The others, and the index, stay as they are; a store that starts then repairs what it finds."""
    before = everything(root)
    request = SIZES.request(root, topics=("Late",), index=False, partitions=3, publish=True)
    report = rebuild(request, Cores(2))
    assert (report.published, report.queues, report.index_files) == ("offline", 1, 0)
    after = everything(root)
    late = {name: data for name, data in after.items() if "Late" in name}
    assert late == {name: data for name, data in want.queues.items() if "Late" in name}
    after.pop("tandem.manifest", None)
    before.pop("tandem.manifest", None)
    assert {name: data for name, data in after.items() if "Late" not in name} == before


def test_the_index_only(root: Path, want: Files) -> None:
    before = files_of(root)
    report = rebuild(SIZES.request(root, queues=False, partitions=3, publish=True), Cores(2))
    assert (report.published, report.queues) == ("offline", 0)
    after = files_of(root)
    assert after.queues == before.queues
    assert after.index == want.index


def test_a_queue_without_messages_left_counts_on(root: Path, want: Files) -> None:
    """All its messages have expired with the log; its directory, and with it its next number, stays."""
    old = root / "consumequeue" / "Gone" / "0"
    shutil.copytree(root / "consumequeue" / "Jumps" / "0", old)
    publish(root)
    got = files_of(root)
    gone = {name: data for name, data in got.queues.items() if "Gone" in name}
    assert len(gone) > 1
    assert Files({n: d for n, d in got.queues.items() if n not in gone}, got.index).differences(want) == []


def test_a_staging_directory_on_another_file_system(root: Path, scratch: Path) -> None:
    """It is told before any work is done; without publication it is as good as any."""
    if os.stat(scratch).st_dev == os.stat(root).st_dev:
        pytest.skip("there is but one file system here")
    before = everything(root)
    elsewhere = scratch / "elsewhere" / "tandem.rebuild"
    with pytest.raises(BadJobOption, match="is on another file system than"):
        rebuild(SIZES.request(root, staging=elsewhere, publish=True), Cores(1))
    assert not elsewhere.exists()
    assert everything(root) == before
    rebuild(SIZES.request(root, staging=elsewhere), Cores(1))


@pytest.mark.parametrize("first", [0, FIRST])
@pytest.mark.parametrize("twice", [True, False])
def test_the_repair_of_a_store_leaves_out_what_the_rebuild_leaves_out(scratch: Path, first: int, twice: bool) -> None:
    """Numbers that cannot be, in a log begun anew at 0, or given twice; without a manifest the store compares all."""
    shutil.rmtree(scratch / "anew", ignore_errors=True)
    root = scratch / "anew"
    write_log(root, twice=twice, first=first)
    publish(root)
    published = files_of(root)
    for name in ("tandem.manifest", "checkpoint"):
        (root / name).unlink(missing_ok=True)
    check_with_a_store(root, published, NEXT | ({"Twice": 59} if twice else {}))
    assert files_of(root).differences(published) == []
