"""Long work on the loop is done in turns, by the time that it takes and by count; dispatch too."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tandemmq.common.slices import Slices, each, in_order, in_turns, joined
from tandemmq.store.format.walker import Walk
from tandemmq.store.log.edges.turn_size import TurnSize
from tests.manual_timers import ManualTimers, turns
from tests.turn_counter import TurnCounter
from tests.unit.log.replica_kit import message, opened

FEW_US, MANY_US = 0.2, 20
"""What dispatch of one record costs: compiled, and in pure Python."""


def timers_of(each_look: float) -> ManualTimers:
    timers = ManualTimers()
    timers.each_look = each_look
    return timers


async def test_a_slice_ends_when_its_time_is_over() -> None:
    slices = Slices(timers_of(0.0003))
    with TurnCounter.counting() as count:
        for _ in range(100):
            count()
            await slices.pause()
        assert (count.all, count.most) == (100, 4)


async def test_pieces_are_put_together_in_slices() -> None:
    with TurnCounter.counting() as count:

        def piece(number: int) -> bytes:
            count()
            return b"%d," % number

        whole = await joined(map(piece, range(100)), Slices(timers_of(0.0003)))
        assert whole == b"".join(b"%d," % number for number in range(100))
        assert count.most == 4


async def test_the_bounds_of_many_queues_are_of_one_moment_though_messages_come_in_between(tmp_path: Path) -> None:
    """A checkpoint names one log offset for all of them."""
    store = opened(tmp_path, flush_interval_consume_queue=1 << 40)
    queues = store._parts.queues
    for number in range(200):
        store.append(replace(message(0), queue_id=number))
    store.catch_up()
    looking = asyncio.create_task(queues.bounds_in_slices(Slices(timers_of(0.01))))
    comes = 0
    while not looking.done():
        for number in (comes % 200, 200 + comes):
            store.append(replace(message(0), queue_id=number))
        store.catch_up()
        comes += 1
        await asyncio.sleep(0)
    assert comes > 5, "it was done in slices"
    assert await looking == queues.bounds()
    await store.close()


async def test_work_without_a_task_is_done_in_turns_and_then_told() -> None:
    done: list[int] = []
    with TurnCounter.counting() as count:

        def work(_item: int) -> None:
            count()

        in_turns(timers_of(0.0003), range(100), work, lambda: done.append(count.all))
        assert 0 < count.all < 100
        while not done:
            await turns()
        assert (done, count.most) == ([100], 4)


async def test_what_fails_for_one_is_done_for_the_others() -> None:
    worked: list[int] = []

    def work(item: int) -> None:
        if item == 0:
            raise ValueError("the first")
        worked.append(item)

    with pytest.raises(ValueError, match="the first"):
        in_turns(ManualTimers(), range(3), work, lambda: worked.append(-1))
    await turns()
    assert worked == [1, 2, -1]


async def test_what_fails_between_two_is_told_and_the_end_too() -> None:
    """The end was never told: what is done again and again was not done again."""
    worked: list[int] = []

    def items() -> Iterator[int]:
        yield 0
        raise ValueError("the second")

    with pytest.raises(ValueError, match="the second"):
        in_turns(ManualTimers(), items(), worked.append, lambda: worked.append(-1))
    await turns()
    assert worked == [0, -1]


def test_turns_grow_while_they_are_short_and_shrink_at_once() -> None:
    size = TurnSize(32, 8_192, 4)
    sizes = []
    for _ in range(10):
        sizes.append(size.units)
        size.took(size.units, size.units * FEW_US / 1e6)
    assert sizes == [32, 64, 128, 256, 512, 1_024, 2_048, 4_096, 4_096, 4_096]
    size.took(10, 0.0)  # less than it might have had
    assert size.units == 4_096
    size.took(5_000, 5_000 * MANY_US / 1e6)
    assert size.units == 50
    size.took(50, 1.0)
    assert size.units == 4


class Costly:
    """Is derived from the log, and takes its time for each record."""

    def __init__(self, timers: ManualTimers, count: TurnCounter, microseconds: float) -> None:
        self.position = 0
        self._timers = timers
        self._count = count
        self._microseconds = microseconds

    def take(self, walk: Walk, end: int) -> None:
        self._count(walk.count)
        self._timers.spend(walk.count * self._microseconds / 1e6)
        self.position = end


@pytest.mark.parametrize(("microseconds", "most"), [(FEW_US, 1_024), (MANY_US, 32)])
async def test_a_turn_dispatches_what_takes_a_millisecond(tmp_path: Path, microseconds: float, most: int) -> None:
    timers = ManualTimers()
    store = opened(tmp_path, timers=timers, mapped_file_size_commit_log=2 << 20)
    with TurnCounter.counting() as count:
        store._dispatcher._fed.append(Costly(timers, count, microseconds))
        for number in range(2_500):
            store.append(message(number, 32))
        while count.all < 2_500:
            await turns()
        assert (count.all, count.most) == (2_500, most)
    await store.close()


async def test_queues_are_known_by_topic(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for number in range(12):
        store.append(message(number))
    assert sorted(store.queue_topics()) == ["Topic0", "Topic1", "Topic2"]
    assert store.queue_ids("Topic1") == [0, 1]
    store.ensure_queue("Topic1", 7)  # somebody waits for its first message
    store.ensure_queue("Topic9", 0)
    assert (store.queue_ids("Topic1"), store.queue_ids("Topic9"), store.queue_ids("Topic8")) == ([0, 1], [], [])
    await store.close()
    again = opened(tmp_path)
    assert [again.queue_ids(f"Topic{number}") for number in range(4)] == [[0, 1], [0, 1], [0, 1], []]
    await again.close()


async def test_what_is_sorted_is_sorted_in_slices() -> None:
    with TurnCounter.counting() as count:

        def key(number: int) -> int:
            count()
            return number % 1_000

        numbers = [(7 * number) % 3_001 for number in range(3_001)]
        found = await in_order(numbers, key, Slices(timers_of(0.01)))
        assert found == sorted(numbers, key=lambda number: number % 1_000)
        assert count.most <= 256
    assert await in_order([], key, Slices(timers_of(0.01))) == []


async def test_some_are_worked_on_at_a_time_and_a_few_at_once() -> None:
    with TurnCounter.counting() as count:

        def work(number: int) -> int:
            count()
            return number + 1

        assert await each(work, range(100), Slices(timers_of(0.01))) == list(range(1, 101))
        assert count.most == 32
