"""A flipped bit that makes QUEUEOFFSET larger: no checksum covers it, and it must hide no other message."""

import asyncio
import shutil
from pathlib import Path

import pytest

from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.observer import NullObserver
from tests.campaigns import rows_in_campaigns
from tests.unit.log.replica_kit import FILE_SIZE, config, log_of, master_log, message, opened

MESSAGES, QUEUE, END = 1_500, ("Topic0", 0), 250
QUEUE_OFFSET_AT = 20
Killed = tuple[Path, dict[int, int]]
"""A store's directory, and of each number of the queue, where its message is."""
OTHER_FLIPS = [(100, 1 << 0), (101, 1 << 1), (100, 1 << 7), (1, 1 << 1), (1, 1 << 3)]


class Told(NullObserver):
    """Counts what was found."""

    def __init__(self) -> None:
        self.messages = 0

    def found(self, kind: str, count: int) -> None:
        self.messages += count if kind == "message" else 0


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """A store that was killed after it had checkpointed."""
    root = tmp_path_factory.mktemp("killed") / "store"
    return root, asyncio.run(filled(root))


async def filled(root: Path) -> dict[int, int]:
    live = root.with_name("live")
    store = opened(live, checkpoint_log_bytes=1 << 30)
    for number in range(MESSAGES):
        store.append(message(number, 50))
        if number == MESSAGES // 3:
            store.catch_up()
            await store._checkpointer.take()
    store.catch_up()
    queue = store.queue(*QUEUE)
    assert queue is not None
    places = {offset: unit.physical_offset for offset in range(END) if (unit := queue.unit(offset)) is not None}
    shutil.copytree(live, root)
    await store.close()
    shutil.rmtree(live)
    return places


def copied(killed: Killed, root: Path) -> dict[int, int]:
    """One for a test alone; gives the places."""
    original, places = killed
    shutil.copytree(original, root)
    return places


def flip(root: Path, place: int, bit: int) -> None:
    with (root / "commitlog" / f"{place - place % FILE_SIZE:020d}").open("r+b") as file:
        file.seek(place % FILE_SIZE + QUEUE_OFFSET_AT)
        number = int.from_bytes(file.read(8), "big")
        assert number ^ bit > number
        file.seek(place % FILE_SIZE + QUEUE_OFFSET_AT)
        file.write((number ^ bit).to_bytes(8, "big"))


def lose(root: Path, what: str) -> None:
    for name in what.split():
        if (root / name).is_dir():
            shutil.rmtree(root / name)
        else:
            (root / name).unlink()


def check(store: MessageStore, places: dict[int, int], damaged: int) -> None:
    queue = store.queue(*QUEUE)
    assert queue is not None
    assert queue.max_offset == END
    for offset, place in places.items():
        unit = queue.unit(offset)
        assert unit is not None
        if offset != damaged:
            assert unit.physical_offset == place, offset
    others = [(one.min_offset, one.max_offset) for one in store.queues() if (one.topic, one.queue_id) != QUEUE]
    assert others == [(0, END)] * 5


LOSSES = [
    "",
    "consumequeue/Topic0/0",
    "consumequeue",
    "tandem.manifest",
    "tandem.manifest checkpoint",
    "tandem.manifest consumequeue",
    "tandem.manifest consumequeue checkpoint",
]


@pytest.mark.slow
@pytest.mark.parametrize("lost", LOSSES)
@pytest.mark.parametrize(
    ("damaged", "bit"), [(100, 1 << 3), (240, 1 << 8), *rows_in_campaigns(*OTHER_FLIPS, (240, 1 << 2))]
)
async def test_messages_after_it_stay_where_they_are(
    tmp_path: Path, killed: Killed, lost: str, damaged: int, bit: int
) -> None:
    """Whether it lies before or after the checkpoint, and whatever of the derived files is gone."""
    root = tmp_path / "store"
    places = copied(killed, root)
    flip(root, places[damaged], bit)
    lose(root, lost)
    told = Told()
    store = MessageStore.open(config(root), observer=told)
    store.start()
    await store.rebuilt()
    check(store, places, damaged)
    if "consumequeue" in lost:
        assert told.messages
    assert store.append(message(0, 50)).queue_offset == END
    await store.close()
    store = opened(root)
    await store.rebuilt()
    queue = store.queue(*QUEUE)
    assert queue is not None
    assert queue.max_offset == END + 1
    await store.close()


@pytest.mark.parametrize("lost", ["", "tandem.manifest", "tandem.manifest consumequeue"])
async def test_the_last_one_of_its_queue(tmp_path: Path, killed: Killed, lost: str) -> None:
    """Its unit knows its number. Without that nothing does: a gap stays, and no number is given twice."""
    root = tmp_path / "store"
    places = copied(killed, root)
    flip(root, places[END - 1], 1 << 8)
    lose(root, lost)
    store = opened(root)
    await store.rebuilt()
    appended = store.append(message(0, 50))
    assert appended.queue_offset == (END if "consumequeue" not in lost else (END - 1 ^ 1 << 8) + 1)
    await store.close()


@pytest.mark.parametrize(("damaged", "bit"), [(100, 1 << 3), (100, 1 << 10)])
async def test_a_scrub_meets_it_before_anybody_asks(tmp_path: Path, killed: Killed, damaged: int, bit: int) -> None:
    root, told = tmp_path / "store", Told()
    places = copied(killed, root)
    await opened(root).close()
    flip(root, places[damaged], bit)
    store = MessageStore.open(config(root), observer=told)
    store.start()
    await store.rebuilt()
    before = told.messages
    await store.scrub.once()
    assert (before, told.messages) == (0, 1)
    check(store, places, damaged)
    queue = store.queue(*QUEUE)
    assert queue is not None
    unit = queue.unit(damaged)
    assert unit is not None
    assert unit.physical_offset == places[damaged]
    await store.close()


@pytest.mark.slow
@pytest.mark.parametrize(("damaged", "bit"), [(100, 1 << 3), *rows_in_campaigns(*OTHER_FLIPS)])
async def test_a_slave_s_queue_goes_on_too(tmp_path: Path, damaged: int, bit: int) -> None:
    """The bytes come as they are on the master's disk, piece by piece."""
    log = bytearray(await master_log(tmp_path / "a", [50] * MESSAGES))
    places: dict[int, int] = {}
    reference = opened(tmp_path / "b", "SLAVE")
    reference.append_replica(0, memoryview(bytes(log)))
    reference.catch_up()
    queue = reference.queue(*QUEUE)
    assert queue is not None
    places = {offset: unit.physical_offset for offset in range(END) if (unit := queue.unit(offset)) is not None}
    await reference.close()
    at = places[damaged] + QUEUE_OFFSET_AT
    log[at : at + 8] = (int.from_bytes(log[at : at + 8], "big") ^ bit).to_bytes(8, "big")
    told = Told()
    slave = MessageStore.open(config(tmp_path / "c", "SLAVE"), observer=told)
    slave.start()
    for begin in range(0, len(log), 3_000):
        slave.append_replica(begin, memoryview(bytes(log[begin : begin + 3_000])))
        slave.catch_up()
    check(slave, places, damaged)
    assert told.messages == 1
    assert log_of(slave) == bytes(log)
    await slave.close()
