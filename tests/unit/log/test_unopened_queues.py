"""A start does not look at queues that the manifest knows: the first who asks does, and what is gone is made again."""

import asyncio
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import FileSizeMismatch
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.observer import NullObserver
from tests.unit.log.replica_kit import config, derived, message, opened

MESSAGES, QUEUES = 1_500, 6
LAST = "consumequeue/Topic2/1"
"""The queue that a start does not try the settings on."""


class OpeningDisk(LocalDisk):
    """Knows what was opened."""

    def __init__(self) -> None:
        self.opened: list[Path] = []

    def open(self, path: Path, flags: int) -> int:
        self.opened.append(path)
        return super().open(path, flags)


class Told(NullObserver):
    """Files that could not be used."""

    def __init__(self) -> None:
        self.files: list[str] = []

    def unusable(self, file: str) -> None:
        self.files.append(file)


Filled = Callable[[bool], Path]
"""Gives a store's directory after a clean stop, or as kill -9 leaves it: with messages since the last checkpoint."""


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """One of each, to be copied."""
    return {killed: asyncio.run(fill(tmp_path_factory.mktemp("filled") / "a", killed)) for killed in (False, True)}


@pytest.fixture
def filled(originals: dict[bool, Path], tmp_path: Path) -> Filled:
    return lambda killed: Path(shutil.copytree(originals[killed], tmp_path / "a"))


async def fill(root: Path, killed: bool) -> Path:
    store = opened(root)
    for number in range(MESSAGES):
        store.append(message(number, 50))
    store.catch_up()
    await store._checkpointer.take()
    if not killed:
        await store.close()
        return root
    for _ in range(10):
        store.append(message(0, 50))
    store.catch_up()
    copy = root.with_name("killed")
    shutil.copytree(root, copy)
    await store.close()
    return copy


async def check(store: MessageStore, *, more: int = 0) -> None:
    """Every queue has all its messages, at their places, and goes on after them."""
    assert len(list(store.queues())) == QUEUES
    for queue in store.queues():
        added = more if (queue.topic, queue.queue_id) == ("Topic0", 0) else 0
        assert (queue.min_offset, queue.max_offset) == (0, MESSAGES // QUEUES + added)
        assert not queue.rebuilding
        for offset in range(queue.max_offset):
            unit = queue.unit(offset)
            assert unit is not None
            assert store.read_record(unit.physical_offset, unit.size) is not None
    for number in range(QUEUES):
        appended = store.append(message(number, 50))
        assert appended.queue_offset == MESSAGES // QUEUES + (more if number == 0 else 0)


@pytest.mark.parametrize("killed", [False, True])
async def test_a_start_opens_no_queue_that_it_need_not(filled: Filled, killed: bool) -> None:
    root = filled(killed)
    disk = OpeningDisk()
    store = MessageStore.open(config(root), disk=disk)
    queues = {path.parent for path in disk.opened if "consumequeue" in path.parts}
    assert queues == ({root / "consumequeue/Topic0/0"} if killed else set())
    store.start()
    await check(store, more=10 if killed else 0)
    await store.close()
    again = opened(root)
    assert {(queue.min_offset, queue.max_offset) for queue in again.queues()} == (
        {(0, 251), (0, 261)} if killed else {(0, 251)}
    )
    await again.close()


Loss = Callable[[Path], None]


def directory(queue: Path) -> None:
    shutil.rmtree(queue)


def first_file(queue: Path) -> None:
    min(queue.iterdir()).unlink()


def last_file(queue: Path) -> None:
    max(queue.iterdir()).unlink()


def all_files(queue: Path) -> None:
    for path in queue.iterdir():
        path.unlink()


def zeros(queue: Path) -> None:
    last = max(queue.iterdir())
    last.write_bytes(bytes(last.stat().st_size))


def blanks(queue: Path) -> None:
    """What is left of a lost queue that a killed process had gone on with."""
    last = max(queue.iterdir())
    data = bytes.fromhex("0000000000000000 7FFFFFFF 0000000000000000") * (last.stat().st_size // 20)
    all_files(queue)
    last.write_bytes(data)
    (queue / f"{0:020d}").write_bytes(data)
    (queue / f"{2_000:020d}").write_bytes(data)


LOSSES = (directory, first_file, last_file, all_files, zeros, blanks)


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
async def test_what_is_lost_comes_back_though_nobody_asks(filled: Filled, loss: Loss, killed: bool) -> None:
    root = filled(killed)
    wanted = derived(root)
    loss(root / LAST)
    store = opened(root)
    await store.rebuilt()
    assert {name: data for name, data in derived(root).items() if name in wanted} == wanted
    await check(store, more=10 if killed else 0)
    await store.close()


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
async def test_whoever_asks_first_is_not_told_wrong(filled: Filled, loss: Loss, killed: bool) -> None:
    """It is known that something is missing before the queue answers, and sends go on with the right number."""
    root = filled(killed)
    wanted = derived(root)
    loss(root / LAST)
    store = opened(root)
    appended = store.append(message(5, 50))
    assert appended.queue_offset == MESSAGES // QUEUES
    queue = store.queue("Topic2", 1)
    assert queue is not None
    assert queue.rebuilding
    assert queue.max_offset == MESSAGES // QUEUES + 1
    await store.rebuilt()
    assert [(one.min_offset, one.rebuilding) for one in store.queues()] == [(0, False)] * QUEUES
    assert queue.max_offset == MESSAGES // QUEUES + 1
    unit = queue.unit(MESSAGES // QUEUES)
    assert unit is not None
    assert unit.physical_offset == appended.physical_offset
    found = derived(root)
    for name, data in wanted.items():
        if name.startswith(LAST):
            assert found[name].rstrip(b"\0").startswith(data.rstrip(b"\0"))
    await store.close()


async def test_a_loss_that_nobody_has_noticed_yet_is_found_by_the_next_start(filled: Filled) -> None:
    root = filled(False)
    wanted = derived(root)
    last_file(root / LAST)
    store = MessageStore.open(config(root))  # it is never started, so nobody looks
    await store.close()
    again = opened(root)
    await again.rebuilt()
    assert derived(root) == wanted
    await again.close()


async def test_units_behind_the_end_are_told_and_cleared(filled: Filled, caplog: pytest.LogCaptureFixture) -> None:
    """Messages that a power cut took: their units must not come back."""
    root = filled(True)
    last = max((root / LAST).iterdir())
    data = bytearray(last.read_bytes())
    at = MESSAGES // QUEUES * 20 - int(last.name)
    data[at : at + 20] = (1 << 20).to_bytes(8, "big") + (200).to_bytes(4, "big") + bytes(8)
    last.write_bytes(data)
    store = opened(root)
    with caplog.at_level(logging.WARNING):
        await store.rebuilt()
    assert "knew of messages beyond that: Topic2/1 from 250 on" in caplog.text
    assert any("Topic2/1" in note for note in store.recovery.notes)
    assert bytes(20) == last.read_bytes()[at : at + 20]
    await check(store, more=10)
    await store.close()


@pytest.mark.parametrize("killed", [False, True])
async def test_files_of_another_size_are_set_aside(filled: Filled, killed: bool) -> None:
    """Of one queue; where those of all are, the settings are wrong, and the start is refused."""
    root = filled(killed)
    wanted = derived(root)
    last = max((root / LAST).iterdir())
    with last.open("r+b") as file:
        file.truncate(1_000)
    told = Told()
    store = MessageStore.open(config(root), observer=told)
    store.start()
    await store.rebuilt()
    assert told.files == ["consumequeue/"]
    assert (root / "broken" / LAST / last.name).stat().st_size == 1_000
    assert {name: data for name, data in derived(root).items() if name in wanted} == wanted
    await check(store, more=10 if killed else 0)
    await store.close()
    with pytest.raises(FileSizeMismatch, match="mappedFileSizeConsumeQueue"):
        MessageStore.open(config(root, mapped_file_size_consume_queue=4_000))


async def test_a_disk_that_refuses_is_asked_again(filled: Filled) -> None:
    root = filled(False)

    class Refusing(OpeningDisk):
        refuses = True

        def open(self, path: Path, flags: int) -> int:
            if self.refuses and LAST in str(path):
                raise OSError(24, "Too many open files")
            return super().open(path, flags)

    disk = Refusing()
    store = MessageStore.open(config(root), disk=disk)
    store.start()
    with pytest.raises(OSError, match="Too many"):
        store.queue("Topic2", 1)
    await store.rebuilt()
    disk.refuses = False
    await check(store)
    await store.close()


@pytest.mark.parametrize("known", [True, False])
async def test_a_directory_in_place_of_a_queue_s_file_is_set_aside(filled: Filled, known: bool) -> None:
    """No rebuild could put a file there. It is so whether a manifest knows the queue, or all are looked at."""
    root = filled(False)
    wanted = derived(root)
    last = max((root / LAST).iterdir())
    last.unlink()
    last.mkdir()
    (last / "somebody's").write_text("data")
    if not known:
        (root / "tandem.manifest").unlink()
    told = Told()
    store = MessageStore.open(config(root), observer=told)
    store.start()
    await store.rebuilt()
    assert told.files == ["consumequeue/"]
    assert (root / "broken" / LAST / last.name / "somebody's").read_text() == "data"
    assert {name: data for name, data in derived(root).items() if name in wanted} == wanted
    await check(store)
    await store.close()
    again = opened(root)
    await again.rebuilt()
    assert again.recovery.notes == []
    assert [one.rebuilding for one in again.queues()] == [False] * QUEUES
    await again.close()
