"""Ordered groups: one message of a message group at a time, or a run of them in one answer."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tandemmq.store.delivery.journal.facts import Dealt, Fact, Place
from tandemmq.store.delivery.port import GivenMessage, Outcome
from tandemmq.store.delivery.receiving import receiver, receiving
from tandemmq.store.delivery.receiving.receive_rules import ReceiveRules
from tests.manual_timers import turns
from tests.unit.delivery.receiving_kit import GROUP, INVISIBLE_MS, TOPIC, Scene, bodies, numbers, scene

SECONDS = INVISIBLE_MS / 1000


async def acknowledge(at: Scene, messages: Sequence[GivenMessage]) -> list[Outcome]:
    """As clients of RocketMQ 5 do, whose acknowledgements count when all before them do."""
    return await at.acknowledge(messages, in_time=True)


def ordered(at: Scene, *messages: str, queue: int = 0) -> None:
    """Messages whose first letter is their message group."""
    at.groups.put(consume_message_orderly=True)
    for message in messages:
        at.send(message, queue=queue, __SHARDINGKEY=message[0])


async def test_a_run_comes_in_one_answer_and_the_rest_waits(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        ordered(at, "x0", "y0", "x1", "x2", "z0")
        first = await at.take(2)
        assert bodies(first) == ["x0", "y0"]
        assert bodies(await at.take()) == ["z0"]
        assert await at.take() == []
        await acknowledge(at, first[:1])
        run = await at.take()
        assert bodies(run) == ["x1", "x2"]
        await acknowledge(at, [run[1], run[0]])
        assert await at.take() == []


async def test_a_failed_message_holds_up_its_own_message_group_only(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        ordered(at, "x0", "x1", "y0")
        (first,) = await at.take(1)
        await at.retry_after(first, 10_000)
        ordered(at, "y1", "x2")
        assert bodies(await at.take()) == ["y0", "y1"]
        await at.timers.advance(9.999)
        assert await at.take() == []
        await at.timers.advance(0.001)
        again = await at.take()
        assert bodies(again) == ["x0", "x1", "x2"]
        assert numbers(again) == [2, 1, 1]


async def test_a_run_whose_time_is_over_comes_again_in_order(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        ordered(at, "x0", "x1", "x2")
        first = await at.take()
        await acknowledge(at, first[1:2])
        await at.timers.advance(SECONDS)
        (again,) = await at.take(1)
        assert (bodies([again]), again.number) == (["x0"], 2)
        assert await at.take() == []
        await acknowledge(at, [again])
        assert (bodies(last := await at.take()), numbers(last)) == (["x1", "x2"], [2, 2])


async def test_what_was_acknowledged_out_of_turn_is_dealt_with_when_its_turn_comes(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        ordered(at, "x0", "x1", "x2", "x3", "y0")
        first = await at.take(4)
        for one in (first[2], first[1], first[1]):  # a repeat is fine
            assert [outcome.error for outcome in await acknowledge(at, [one])] == [None]
        assert at.cursor() == 0
        await acknowledge(at, first[:1])
        assert at.cursor() == 3
        assert bodies(await at.take()) == ["y0"]
        await at.timers.advance(SECONDS)
        assert bodies(await at.take(1)) == ["x3"]


async def test_what_was_acknowledged_out_of_turn_comes_again_behind_what_was_not(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        ordered(at, "x0", "x1", "x2", "x3", "x4")
        first = await at.take(3)
        await acknowledge(at, first[1:])
        await at.timers.advance(SECONDS)
        again = await at.take(3)
        assert (bodies(again), numbers(again)) == (["x0", "x1", "x2"], [2, 2, 2])
        await acknowledge(at, again[1:])
        await at.retry_after(again[0], 1_000)
        await at.timers.advance(1)
        third = await at.take(2)
        assert (bodies(third), numbers(third)) == (["x0", "x1"], [3, 3]), "at once: nobody holds x1"
        await acknowledge(at, third)
        last = await at.take()
        assert bodies(last) == ["x2", "x3", "x4"]
        await acknowledge(at, last)
        assert at.cursor() == 5


async def test_a_dead_letter_settles_what_was_acknowledged_behind_it(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        ordered(at, "x0", "x1", "x2")
        at.groups.put(consume_message_orderly=True, retry_max_times=0)
        first = await at.take()
        await acknowledge(at, first[1:2])
        await at.receiving.forward(GROUP, TOPIC, first[0].handle)
        assert at.cursor() == 2
        await acknowledge(at, first[2:])
        assert at.cursor() == 3


async def test_a_dead_letter_among_what_is_due_takes_along_what_was_acknowledged_behind_it(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        ordered(at, "x0", "x1", "x2", "y0")
        at.groups.put(consume_message_orderly=True, retry_max_times=0)
        first = await at.take()
        await at.receiving.forward(GROUP, TOPIC, first[3].handle)  # makes the topic of dead letters
        await acknowledge(at, first[1:2])
        await at.timers.advance(SECONDS)
        assert await at.take() == []
        assert at.cursor() == 4
        assert await at.take() == []


async def test_what_the_group_is_now_says_whether_an_acknowledgement_waits_for_its_turn(tmp_path: Path) -> None:
    """Also before anybody has received in order: as after a start."""
    async with scene(tmp_path) as at:
        ordered(at, "x0", "x1", "x2", "x3")
        at.groups.put()
        first = await at.take()
        at.groups.put(consume_message_orderly=True)
        await acknowledge(at, first[1:2])
        assert len(at.ledger.progress(Place(GROUP, TOPIC, 0)).entries) == 4  # type: ignore[union-attr]
        await acknowledge(at, first[:1])
        assert at.cursor() == 2
        at.groups.put()
        await acknowledge(at, first[3:])
        await at.timers.advance(SECONDS)
        assert bodies(await at.take()) == ["x2"]


async def test_what_a_message_settles_is_noted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with scene(tmp_path) as at:
        ordered(at, *(f"{'xy'[number % 2]}{number}" for number in range(40)))
        given, noted = await at.take(40), list[Dealt]()
        note = at.journal.note

        def noting(*facts: Fact) -> None:
            noted.extend(fact for fact in facts if isinstance(fact, Dealt))
            note(*facts)

        monkeypatch.setattr(at.journal, "note", noting)
        await acknowledge(at, given[0::2])
        assert [(one.first, one.messages) for one in noted] == [(number, 1) for number in range(0, 40, 2)]
        await acknowledge(at, given[1::2])
        assert at.cursor() == 40
        assert len(noted) == 40


async def test_a_later_one_that_is_due_first_waits_for_the_earlier(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        ordered(at, "x0", "x1")
        first = await at.take()
        await at.retry_after(first[0], 60_000)
        await at.timers.advance(SECONDS)
        assert await at.take() == []
        await at.timers.advance(60 - SECONDS)
        again = await at.take()
        assert (bodies(again), numbers(again)) == (["x0", "x1"], [2, 2])


async def test_a_message_group_is_locked_over_all_queues(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.topic(queues=2)
        ordered(at, "x0")
        (first,) = await at.take()
        ordered(at, "x1", "y0", queue=1)
        assert bodies(await at.take()) == ["y0"]
        waiting = asyncio.create_task(at.take(wait_ms=20_000))
        await turns()
        assert not waiting.done()
        await acknowledge(at, [first])
        assert bodies(await waiting) == ["x1"]


async def test_messages_without_message_group_are_in_order_by_queue(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.topic(queues=2)
        at.groups.put(consume_message_orderly=True)
        at.send("a", "b", queue=0)
        at.send("c", queue=1)
        first, second = await at.take(1), await at.take(1)
        assert sorted(bodies(first + second)) == ["a", "c"]
        assert await at.take() == []


async def test_too_many_that_are_held_back_stop_the_queue_until_some_go(tmp_path: Path) -> None:
    async with scene(tmp_path, ReceiveRules(most_held_back=10)) as at:
        ordered(at, "x0")
        (first,) = await at.take()
        ordered(at, *[f"x{number}" for number in range(1, 100)], "y0")
        assert await at.take() == []
        got: list[str] = []
        held = [first]
        while held:
            await acknowledge(at, held)
            held = await at.take(7)
            got += bodies(held)
        assert [one for one in got if one[0] == "x"] == [f"x{number}" for number in range(1, 100)]
        assert "y0" in got
        assert at.cursor() == 101


async def test_an_answer_that_never_left_keeps_the_order(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        ordered(at, "x0", "x1", "x2")
        batch = await at.receive(2)
        assert await at.take() == []
        batch.release()
        assert bodies(again := await at.take()) == ["x0", "x1", "x2"]
        assert numbers(again) == [1, 1, 1]


async def test_dead_letters_let_the_next_go(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        ordered(at, "x0", "x1")
        (first,) = await at.take(1)
        await at.receiving.forward(GROUP, TOPIC, first.handle)
        assert bodies(await at.take()) == ["x1"]


async def test_a_reset_begins_the_lines_anew(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        ordered(at, "x0", "x1", "x2")
        await at.take(1)
        assert await at.take() == []
        await at.receiving.reset(GROUP, TOPIC, {0: 0})
        assert bodies(again := await at.take()) == ["x0", "x1", "x2"]
        assert numbers(again) == [1, 1, 1]


async def test_of_other_clients_an_acknowledgement_counts_at_once(tmp_path: Path) -> None:
    """What is answered as dealt with never comes again."""
    async with scene(tmp_path) as at:
        ordered(at, "x0", "x1", "x2")
        first = await at.take()
        await at.acknowledge(first[1:2])
        await at.timers.advance(SECONDS)
        again = await at.take()
        assert (bodies(again), numbers(again)) == (["x0", "x2"], [2, 2])
        await at.acknowledge(again)
        assert at.cursor() == 3


async def test_an_answer_that_took_long_does_not_begin_a_message_group_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "_TURN_MOST", 1)
    async with scene(tmp_path) as at:
        ordered(at, "x0", "x1", "x2", "x3", "x4")
        assert len(await at.take()) == 5
        await at.timers.advance(SECONDS)
        monkeypatch.setattr(receiving, "my_turn", lambda timers: timers.advance(0.3 * SECONDS))
        again = await at.take()
        assert (bodies(again), numbers(again)) == (["x0", "x1"], [2, 2])
        monkeypatch.undo()
        assert await at.take() == [], "the others wait for them"
        await at.acknowledge(again)
        assert bodies(await at.take()) == ["x2", "x3", "x4"]
