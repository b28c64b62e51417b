"""Queue files that are gone while nobody knows where the queue began: the records in the log tell."""

import shutil
from pathlib import Path

import pytest

from tandemmq.store.log.message_store import MessageStore
from tests.campaigns import in_campaigns
from tests.unit.log.replica_kit import config, derived, message, opened


@pytest.mark.slow
@pytest.mark.parametrize("gone", [(0,), (0, 2), *in_campaigns((0, 1), (0, 1, 2), (1,))])
@pytest.mark.parametrize("keep_checkpoint", [True, False])
async def test_the_first_files_of_a_queue_come_back(
    tmp_path: Path, gone: tuple[int, ...], keep_checkpoint: bool
) -> None:
    store = opened(tmp_path / "a")
    for number in range(2_500):
        store.append(message(number, 50))
    store.catch_up()
    copy = tmp_path / "b"
    shutil.copytree(tmp_path / "a", copy)  # as kill -9 leaves it, without a checkpoint or manifest of this life
    await store.close()
    wanted = {name: data for name, data in derived(tmp_path / "a").items() if name.startswith("consumequeue")}
    (copy / "tandem.manifest").unlink(missing_ok=True)
    if not keep_checkpoint:
        (copy / "checkpoint").unlink(missing_ok=True)
    files = sorted((copy / "consumequeue" / "Topic0" / "0").iterdir())
    assert len(files) > 3
    for at in gone:
        files[at].unlink()
    again = opened(copy)
    await again.rebuilt()
    queue = again.queue("Topic0", 0)
    assert queue is not None
    assert (queue.min_offset, queue.max_offset) == (0, 417)
    await again.close()
    assert {name: data for name, data in derived(copy).items() if name.startswith("consumequeue")} == wanted


class SlowClock:
    """Each look at it finds it 10 ms later: the log's files are seconds apart."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000

    def now_ms(self) -> int:
        self.now += 10
        return self.now


async def expired(root: Path, messages: int = 2_500, files: int = 2) -> tuple[MessageStore, int, int]:
    """A store whose first log files have expired, and the bounds of a queue that begins within a file."""
    settings = config(root, file_reserved_time=0, delete_when=tuple(range(24)), delete_file_batch_max=files)
    store = MessageStore.open(settings, clock=SlowClock())
    store.start()
    for number in range(messages):
        store.append(message(number, 50))
    store.catch_up()
    assert await store._retention.run_once() == files
    queue = store.queue("Topic0", 0)
    assert queue is not None
    assert queue.min_offset % queue.units_per_file
    return store, queue.min_offset, queue.max_offset


async def test_they_begin_with_the_first_message_that_has_not_expired_at_every_start(tmp_path: Path) -> None:
    store, first, end = await expired(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    await store.close()
    min((tmp_path / "b" / "consumequeue" / "Topic0" / "0").iterdir()).unlink()
    for _ in range(2):
        for name in ("tandem.manifest", "checkpoint"):
            (tmp_path / "b" / name).unlink(missing_ok=True)
        again = opened(tmp_path / "b")
        queue = again.queue("Topic0", 0)
        assert queue is not None
        assert (queue.min_offset, queue.max_offset) == (first, end)
        await again.rebuilt()
        assert (queue.min_offset, queue.max_offset) == (first, end)
        await again.close()


async def test_queues_that_were_made_again_begin_there_too(tmp_path: Path) -> None:
    """The first unit that is written is the newest; older ones of the same file come with the rebuild."""
    store, first, end = await expired(tmp_path / "a", 2_760, 15)
    assert end // 100 == first // 100
    await store.close()
    shutil.rmtree(tmp_path / "a" / "consumequeue")
    store = opened(tmp_path / "a")
    store.append(message(0, 50))
    store.catch_up()
    await store.rebuilt()
    await store._checkpointer.take()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    await store.close()
    (tmp_path / "b" / "tandem.manifest").unlink()  # the checkpoint lets the next start read the newest file only
    again = opened(tmp_path / "b")
    assert again.recovery.began_at > again.commit_log.min_offset
    queue = again.queue("Topic0", 0)
    assert queue is not None
    assert (queue.min_offset, queue.max_offset) == (first, end + 1)
    await again.close()


async def test_a_rebuild_that_was_killed_before_its_first_step_is_begun_again(tmp_path: Path) -> None:
    """The newest unit is there by then, with blanks before it; the manifest does not say yet that units are missing."""
    store = opened(tmp_path / "a")
    first = store.append(message(6))
    store.catch_up()
    await store._checkpointer.take()
    second = store.append(message(12))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    await store.close()
    shutil.rmtree(tmp_path / "b" / "consumequeue")
    recovered = MessageStore.open(config(tmp_path / "b"))
    shutil.copytree(tmp_path / "b", tmp_path / "c")
    recovered.start()
    await recovered.close()
    again = opened(tmp_path / "c")
    await again.rebuilt()
    queue = again.queue("Topic0", 0)
    assert queue is not None
    assert (queue.min_offset, queue.max_offset) == (0, 2)
    units = [queue.unit(0), queue.unit(1)]
    assert [unit.physical_offset for unit in units if unit is not None] == [
        first.physical_offset,
        second.physical_offset,
    ]
    await again.close()


async def test_what_a_power_cut_took_from_the_head_of_a_queue_is_blank_after_its_rebuild(tmp_path: Path) -> None:
    """Else a later start, which compares nothing, takes what was never written for messages."""
    store, first, end = await expired(tmp_path / "a", 2_760, 13)
    await store.close()
    head = min((tmp_path / "a" / "consumequeue" / "Topic0" / "0").iterdir())
    begin = int(head.name) // 20
    assert begin < first
    data = bytearray(head.read_bytes())
    data[: (first - begin) * 20] = bytes((first - begin) * 20)
    head.write_bytes(data)
    (tmp_path / "a" / "tandem.manifest").unlink()
    (tmp_path / "a" / "checkpoint").unlink()
    store = opened(tmp_path / "a")  # all of the log is read, and the queues are compared with it
    await store.rebuilt()
    await store._checkpointer.take()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    await store.close()
    (tmp_path / "b" / "tandem.manifest").unlink()
    again = opened(tmp_path / "b")  # only the newest file of the log is
    assert again.recovery.began_at > again.commit_log.min_offset
    queue = again.queue("Topic0", 0)
    assert queue is not None
    assert (queue.min_offset, queue.max_offset) == (first, end)
    await again.close()
