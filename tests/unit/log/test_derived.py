"""What is derived from the log gets each record, in order, from its own position on, whatever fails meanwhile."""

import asyncio
from pathlib import Path

import pytest

from tandemmq.store.format.walker import Walk
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.recovery.damage import DamagedRange
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


async def fed(derived: Keys, number: int) -> None:
    async with asyncio.timeout(60):
        while len(derived.seen) < number:
            await asyncio.sleep(0.001)


async def test_one_that_comes_late_gets_what_it_missed_and_then_what_comes(tmp_path: Path) -> None:
    store = opened(tmp_path)
    append(store, 0, 300)
    store.catch_up()
    late = Keys()
    store.feed(late)
    append(store, 300, 310)
    await fed(late, 310)
    append(store, 310, 320)
    await fed(late, 320)
    assert late.seen == keys(0, 320)
    assert late.position == store.dispatched_offset == store.commit_log.max_offset
    store.starve(late)
    append(store, 320, 321)
    store.catch_up()
    assert len(late.seen) == 320
    await store.close()


async def test_one_that_fails_gets_each_record_once_and_queues_stay_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tandemmq.store.log.dispatch._RETRY_SECONDS", 0.01)
    store = opened(tmp_path)
    append(store, 0, 200)
    derived = Keys()
    derived.failures = 1
    store.feed(derived)  # fails while it is behind
    await fed(derived, 200)
    derived.failures = 1
    append(store, 200, 220)  # and then with the others
    await fed(derived, 220)
    async with asyncio.timeout(60):
        while store.why_not_writable or store.dispatched_offset < store.commit_log.max_offset:
            await asyncio.sleep(0.001)
    assert derived.seen == keys(0, 220)
    assert sum(queue.max_offset for queue in store.queues()) == 220
    await store.close()


async def test_one_that_begins_in_the_middle_is_led_around_damage(tmp_path: Path) -> None:
    store = opened(tmp_path)
    offsets = [store.append(message(number)).physical_offset for number in range(30)]
    store.catch_up()
    store._parts.note_damage(DamagedRange(offsets[15], offsets[20], "rot", "a test"))
    derived = Keys(offsets[10])
    store.feed(derived)
    await fed(derived, 15)
    assert derived.seen == [*keys(10, 15), *keys(20, 30)]
    await store.close()


async def test_dispatch_tells_its_listeners(tmp_path: Path) -> None:
    store = opened(tmp_path)
    told: list[int] = []
    store.dispatched.listen(lambda: told.append(store.dispatched_offset))
    append(store, 0, 3)
    store.catch_up()
    assert told[-1] == store.commit_log.max_offset
    await store.close()
