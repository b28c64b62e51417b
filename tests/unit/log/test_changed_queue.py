"""A changed byte that makes the last record of a queue one of another queue: no checksum covers it, a unit tells it."""

import shutil
from pathlib import Path

import pytest

from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.observer import NullObserver
from tests.unit.broker.broker_kit import bodies, broker, records
from tests.unit.log.replica_kit import FILE_SIZE, config, master_log, message, opened

MESSAGES, QUEUE, LAST, BODY = 600, ("Topic0", 0), 99, 50
QUEUE_ID_AT, SYS_FLAG_AT, TOPIC_AT = 15, 39, 88 + BODY + 1
CHANGES = {
    "another queue": (QUEUE_ID_AT, 1),
    "a queue that never was": (QUEUE_ID_AT, 8),
    "another topic": (TOPIC_AT + len("Topic"), 1),
}
TAKEN = {"another queue", "another topic"}
"""There the number is another message's, which comes later in the log: that one is not served, and told as well."""


class Heard(NullObserver):
    """Counts the messages that were found missing."""

    def __init__(self) -> None:
        self.messages = 0

    def found(self, kind: str, count: int) -> None:
        self.messages += count if kind == "message" else 0


async def killed_master(root: Path) -> None:
    """As kill -9 leaves it: with messages since the last checkpoint."""
    store = opened(root.with_name("live"))
    for number in range(MESSAGES):
        store.append(message(number, BODY))
        if number == MESSAGES // 2:
            store.catch_up()
            await store._checkpointer.take()
    await leave(store, root)


async def killed_slave(root: Path) -> None:
    log = await master_log(root.with_name("master"), [BODY] * MESSAGES)
    store, half = opened(root.with_name("live"), "SLAVE"), len(log) // 2
    store.append_replica(0, memoryview(log)[:half])
    store.catch_up()
    await store._checkpointer.take()
    store.append_replica(half, memoryview(log)[half:])
    await leave(store, root)


async def leave(store: MessageStore, root: Path) -> None:
    store.catch_up()
    shutil.copytree(root.with_name("live"), root, ignore=shutil.ignore_patterns("lock"))
    await store.close()


def place_of(root: Path, number: int) -> int:
    """Where a record of the queue lies, as its unit says."""
    (path,) = (root / "consumequeue" / QUEUE[0] / str(QUEUE[1])).iterdir()
    return int.from_bytes(path.read_bytes()[number * 20 :][:8], "big")


def place_of_last(root: Path) -> int:
    return place_of(root, LAST)


def change(root: Path, at: int, bits: int) -> None:
    """Flip bits of a byte of the log."""
    path = root / "commitlog" / f"{at - at % FILE_SIZE:020d}"
    data = bytearray(path.read_bytes())
    data[at % FILE_SIZE] ^= bits
    path.write_bytes(data)


ROLES = {"ASYNC_MASTER": killed_master, "SLAVE": killed_slave}


@pytest.mark.parametrize("what", CHANGES)
@pytest.mark.parametrize("role", ROLES)
async def test_it_is_told_and_its_number_is_not_given_again(
    tmp_path: Path, role: str, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    root, heard = tmp_path / "store", Heard()
    await ROLES[role](root)
    place = place_of_last(root)
    change(root, place + CHANGES[what][0], CHANGES[what][1])
    store = MessageStore.open(config(root, role), observer=heard)
    store.start()
    await store.rebuilt()
    check(store, place)
    assert heard.messages == (2 if what in TAKEN else 1)
    assert f"Message {LAST} of queue 0 of topic Topic0 is damaged: its record at log offset {place} says" in caplog.text
    await store.close()
    store = opened(root, role)
    await store.rebuilt()
    check(store, place)
    if role != "SLAVE":
        assert store.append(message(0, BODY)).queue_offset == LAST + 1
    await store.close()


def check(store: MessageStore, place: int) -> None:
    queue = store.queue(*QUEUE)
    assert queue is not None
    unit = queue.unit(LAST)
    assert (queue.max_offset, unit is not None and unit.physical_offset) == (LAST + 1, place)


async def test_of_two_messages_with_one_number_the_later_one_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "store"
    await killed_master(root)
    change(root, place_of_last(root) + QUEUE_ID_AT, 1)
    store = opened(root)
    await store.rebuilt()
    other = store.queue("Topic0", 1)
    assert other is not None
    unit = other.unit(LAST)
    assert unit is not None
    assert unit.physical_offset == place_of_last(root)
    assert "are not served: queue 1 of topic Topic0 has their numbers for others" in caplog.text
    await store.close()


async def test_readers_go_on_behind_it_and_it_is_told_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    root = tmp_path / "store"
    await killed_master(root)
    change(root, place_of_last(root) + QUEUE_ID_AT, 1)
    for number in range(2):
        async with broker(root, mapped_file_size_commit_log=FILE_SIZE) as kit:
            await kit.store.rebuilt()
            caplog.clear()
            kit.send(*QUEUE[:1], b"later", QUEUE[1])
            await kit.dispatched()
            pulled = kit.pull(*QUEUE, LAST)
            assert bodies(pulled) == [b"later"] * (number + 1)
            assert f"Messages {LAST} to {LAST} of queue 0 of topic Topic0 are not in the log" in caplog.text


@pytest.mark.parametrize("number", [20, 80])
async def test_readers_notice_one_in_the_middle_of_its_queue(
    tmp_path: Path, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    """After the last checkpoint, where recovery walks, and before it."""
    root = tmp_path / "store"
    await killed_master(root)
    change(root, place_of(root, number) + QUEUE_ID_AT, 1)
    async with broker(root, mapped_file_size_commit_log=FILE_SIZE) as kit:
        await kit.store.rebuilt()
        pulled = kit.pull(*QUEUE, number - 1)
        assert [record.queue_offset for record in records(pulled)][:3] == [number - 1, number + 1, number + 2]
        assert f"Messages {number} to {number} of queue 0 of topic Topic0 are not in the log" in caplog.text


async def test_readers_of_a_slave_that_got_it_so_notice_it_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    number = 80
    log = bytearray(await master_log(tmp_path / "master", [BODY] * MESSAGES))
    log[place_of(tmp_path / "master", number) + QUEUE_ID_AT] ^= 1
    root = tmp_path / "slave"
    async with broker(root, mapped_file_size_commit_log=FILE_SIZE, broker_role="SLAVE") as kit:
        kit.store.append_replica(0, memoryview(bytes(log)))
        kit.store.catch_up()
        pulled = kit.pull(*QUEUE, number - 1)
        assert [record.queue_offset for record in records(pulled)][:3] == [number - 1, number + 1, number + 2]
        assert f"Messages {number} to {number} of queue 0 of topic Topic0 are not in the log" in caplog.text


async def test_a_record_that_says_it_is_in_no_queue_is_told(tmp_path: Path) -> None:
    root, heard = tmp_path / "store", Heard()
    await killed_master(root)
    change(root, place := place_of_last(root) + SYS_FLAG_AT, 4)
    store = MessageStore.open(config(root), observer=heard)
    store.start()
    await store.rebuilt()
    check(store, place - SYS_FLAG_AT)
    assert heard.messages == 1
    await store.close()


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("cut", [False, True])
async def test_nothing_is_told_of_a_log_whose_records_are_as_they_were(tmp_path: Path, role: str, cut: bool) -> None:
    """Nor where the power took the last records, but not their units."""
    root, heard = tmp_path / "store", Heard()
    await ROLES[role](root)
    place = place_of_last(root)
    if cut:
        path = root / "commitlog" / f"{place - place % FILE_SIZE:020d}"
        path.write_bytes(path.read_bytes()[: place % FILE_SIZE].ljust(FILE_SIZE, b"\0"))
        (root / "tandem.end").unlink()
    store = MessageStore.open(config(root, role), observer=heard)
    store.start()
    await store.rebuilt()
    queue = store.queue(*QUEUE)
    assert queue is not None
    assert (queue.max_offset, heard.messages) == (LAST if cut else LAST + 1, 0)
    await store.close()


@pytest.mark.parametrize("role", ROLES)
async def test_without_a_manifest_units_behind_the_end_prove_nothing(
    tmp_path: Path, role: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Another broker may have cut the log, gone on in it, and left them."""
    root = tmp_path / "store"
    await ROLES[role](root)
    change(root, place_of_last(root) + QUEUE_ID_AT, 1)
    (root / "tandem.manifest").unlink()
    store = opened(root, role)
    await store.rebuilt()
    queue = store.queue(*QUEUE)
    assert queue is not None
    assert queue.max_offset == LAST
    assert "is damaged: its record" not in caplog.text
    await store.close()
