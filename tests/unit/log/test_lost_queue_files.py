"""Queue files that are gone while nobody knows where the queue began: the records in the log tell."""

import shutil
from pathlib import Path

import pytest

from tests.unit.log.replica_kit import derived, message, opened


@pytest.mark.parametrize("gone", [(0,), (0, 1), (0, 1, 2), (1,), (0, 2)])
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


async def test_they_begin_with_the_first_message_that_has_not_expired_at_every_start(tmp_path: Path) -> None:
    store = opened(tmp_path / "a", file_reserved_time=0, delete_when=tuple(range(24)), delete_file_batch_max=2)
    for number in range(2_500):
        store.append(message(number, 50))
    store.catch_up()
    assert await store._retention.run_once() == 2
    queue = store.queue("Topic0", 0)
    assert queue is not None
    first, end = queue.min_offset, queue.max_offset
    assert first % queue.units_per_file, "the queue begins within a file"
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
