"""What is derived from the log gets each record once, in order, whatever fails meanwhile."""

from pathlib import Path

from tandemmq.store.format.walker import Walk
from tandemmq.store.log.message_store import MessageStore
from tests.manual_timers import ManualTimers
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


async def test_one_that_fails_gets_each_record_once_and_queues_stay_whole(tmp_path: Path) -> None:
    timers = ManualTimers()
    store = opened(tmp_path, timers=timers)
    derived = Keys()
    store._dispatcher._fed.insert(1, derived)  # after the index, before the queues
    append(store, 0, 200)
    store.catch_up()
    derived.failures = 1_000
    append(store, 200, 220)
    store.catch_up()
    await timers.advance(0.9)
    assert "no room" in store.why_not_writable
    derived.failures = 0
    await timers.advance(0.2)
    assert not store.why_not_writable
    assert store.dispatched_offset == store.commit_log.max_offset
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
