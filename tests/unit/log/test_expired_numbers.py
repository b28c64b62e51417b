"""A queue whose messages have all expired keeps its numbers, though its directory and the checkpoint are gone."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tandemmq.store.log.marks import abort_file
from tandemmq.store.log.message_store import MessageStore
from tests.campaigns import in_campaigns
from tests.unit.log.replica_kit import config, message, opened
from tests.unit.log.test_lost_queue_files import SlowClock

EXPIRED, GIVEN = ("Topic1", 1), 40


@pytest.fixture(scope="module")
def expired(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of which one queue has no message left, stopped cleanly."""
    root = tmp_path_factory.mktemp("expired") / "store"
    asyncio.run(let_expire(root))
    return root


async def let_expire(root: Path) -> None:
    settings = config(root, file_reserved_time=0, delete_when=tuple(range(24)), delete_file_batch_max=3)
    store = MessageStore.open(settings, clock=SlowClock())
    store.start()
    for _ in range(GIVEN):
        store.append(message(1, 50))
    for number in range(2_500):
        store.append(message(6 * number, 50))
    store.catch_up()
    assert await store._retention.run_once() == 3
    queue = store.queue(*EXPIRED)
    assert queue is not None
    assert queue.min_offset == queue.max_offset == GIVEN
    await store.close()


def no_checkpoint(root: Path) -> None:
    (root / "checkpoint").unlink()


def another_checkpoint(root: Path) -> None:
    """As RocketMQ leaves it: other times."""
    path = root / "checkpoint"
    data = bytearray(path.read_bytes())
    for at in (0, 8, 16):
        data[at : at + 8] = (int.from_bytes(data[at : at + 8], "big") + 1).to_bytes(8, "big")
    data[24:] = bytes(len(data) - 24)
    path.write_bytes(data)


def another_crash(root: Path) -> None:
    """RocketMQ was killed in this directory."""
    (root / "abort").write_text("4711")
    assert abort_file.last_exit(root) is abort_file.Exit.CRASH_OF_ANOTHER


def nothing(root: Path) -> None:
    pass


@pytest.mark.parametrize("what", [nothing, no_checkpoint, another_checkpoint, another_crash])
@pytest.mark.parametrize("verified", [False, *in_campaigns(True)])
async def test_no_number_is_given_again(
    tmp_path: Path, expired: Path, what: Callable[[Path], None], verified: bool
) -> None:
    shutil.copytree(expired, tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "consumequeue" / EXPIRED[0])
    what(tmp_path)
    for _ in range(3):  # the end outlives starts in which nothing comes
        store = opened(tmp_path, verify_whole_log_on_start=verified)
        await store.rebuilt()
        queue = store.queue(*EXPIRED)
        assert queue is not None
        assert (queue.min_offset, queue.max_offset) == (GIVEN, GIVEN)
        await store.close()
    store = opened(tmp_path)
    assert store.append(message(1, 50)).queue_offset == GIVEN
    store.catch_up()
    queue = store.queue(*EXPIRED)
    assert queue is not None
    assert (queue.min_offset, queue.max_offset) == (GIVEN, GIVEN + 1)
    assert queue.unit(GIVEN) is not None
    await store.close()
    again = opened(tmp_path)
    await again.rebuilt()
    queue = again.queue(*EXPIRED)
    assert queue is not None
    assert (queue.min_offset, queue.max_offset) == (GIVEN, GIVEN + 1)
    await again.close()
