"""The power goes when old files have just expired: no offset is given twice, although no record of it is left."""

import random
from pathlib import Path

import pytest

from tandemmq.store.log.message_store import MessageStore
from tests.faults.harness import LOG_FILE, QUEUES, message, settle, small_config
from tests.faults.power_disk import PowerDisk
from tests.faults.test_bad_directories import opened
from tests.faults.test_traps import HOUR_MS, NEVER, HandClock


@pytest.mark.parametrize("cut", range(8))
async def test_a_queue_whose_messages_have_all_expired_goes_on_where_it_was(tmp_path: Path, cut: int) -> None:
    """Nothing but the manifest knows its next offset then, and none was written since: files that expire wait for one.

    Found by power cuts on a machine so slow that files expired before the checkpoint that knew of them.
    """
    root, (quiet, busy) = tmp_path / "store", QUEUES[:2]
    root.mkdir()
    disk, clock = PowerDisk(root), HandClock()
    store = MessageStore.open(small_config(root, file_reserved_time=2, **NEVER), disk=disk, clock=clock)
    store.start()
    for number in range(100):
        store.append(message(quiet, f"c1-p0-{number}"))
    number = 0
    while store.commit_log.max_offset < 2 * LOG_FILE:
        store.append(message(busy, f"c1-p1-{number}"))
        number += 1
    await settle(store)
    clock.now += 3 * HOUR_MS
    assert await store._retention.run_once() == 2
    disk.image(tmp_path / "image", random.Random(cut))
    await store.close()
    disk.forget()
    async with opened(tmp_path / "image", **NEVER) as store:
        await settle(store)
        assert store.append(message(quiet, "c2-p0-0")).queue_offset == 100
        assert store.append(message(busy, "c2-p1-0")).queue_offset == number
