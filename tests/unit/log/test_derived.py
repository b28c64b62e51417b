"""What is derived from the log gets each record once, in order, whatever fails meanwhile."""

import asyncio
from pathlib import Path

import pytest

from tandemmq.store.format.walker import Walk
from tandemmq.store.log.message_store import MessageStore
from tests.unit.log.replica_kit import message, opened


class Keys:
    """Remembers the unique keys of the records that it was given; fails when it is told to."""

    def __init__(self, position: int = 0) -> None:
        self.position = position
        self.seen: list[str | None] = []
        self.failures = 0

    def take(self, walk: Walk, end: int) -> None:
        for row in walk.rows():
            if row.position >= self.position:
                self.seen.append(row.unique_key)
        self.position = end
        if self.failures:
            self.failures -= 1
            raise OSError("no room")


def keys(first: int, behind: int) -> list[str]:
    return [f"{number:032X}" for number in range(first, behind)]


def append(store: MessageStore, first: int, behind: int) -> None:
    for number in range(first, behind):
        store.append(message(number))


async def test_one_that_fails_gets_each_record_once_and_queues_stay_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandemmq.store.log.dispatch._RETRY_SECONDS", 0.01)
    store = opened(tmp_path)
    derived = Keys()
    store._dispatcher._fed.insert(1, derived)  # after the index, before the queues
    append(store, 0, 200)
    store.catch_up()
    derived.failures = 1
    append(store, 200, 220)
    async with asyncio.timeout(60):
        while store.why_not_writable or store.dispatched_offset < store.commit_log.max_offset:
            await asyncio.sleep(0.001)
    assert derived.seen == keys(0, 220)
    assert sum(queue.max_offset for queue in store.queues()) == 220
    await store.close()


async def test_dispatch_tells_its_listeners(tmp_path: Path) -> None:
    store = opened(tmp_path)
    told: list[int] = []
    store.dispatched.listen(lambda: told.append(store.dispatched_offset))
    append(store, 0, 3)
    store.catch_up()
    assert told[-1] == store.commit_log.max_offset
    await store.close()
