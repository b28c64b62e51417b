"""Receiving with acknowledgement over a real store."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.errors import Kind
from tandemmq.store.broker.errors import NoSuchQueue, QueueOutOfRange, StoreStopping
from tandemmq.store.delivery.errors import (
    BadDelivery,
    BadHandle,
    BadInvisibleTime,
    ForbiddenGroup,
    HandleExpired,
    TooMuchInFlight,
    UnknownGroup,
)
from tandemmq.store.delivery.journal.facts import Forgotten, Place
from tandemmq.store.delivery.port import GivenMessage, Subscription
from tandemmq.store.delivery.receiving import receiver, receiving
from tandemmq.store.delivery.receiving.receive_rules import ReceiveRules
from tandemmq.store.format.record import decode_record
from tests.manual_timers import turns
from tests.unit.delivery.receiving_kit import GROUP, INVISIBLE_MS, TOPIC, bodies, numbers, scene

SECONDS = INVISIBLE_MS / 1000


async def test_what_is_acknowledged_never_comes_again(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a", "b", "c")
        first = await at.take(2)
        assert bodies(first) == ["a", "b"]
        assert numbers(first) == [1, 1]
        assert [one.error for one in await at.acknowledge(first)] == [None, None]
        assert at.cursor() == 2
        await at.timers.advance(10 * SECONDS)
        assert bodies(await at.take()) == ["c"]


async def test_what_is_not_acknowledged_comes_again_with_its_number(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a", "b", "c")
        first = await at.take()
        await at.acknowledge(first[1:2])
        assert await at.take() == []
        await at.timers.advance(SECONDS - 0.001)
        assert await at.take() == []
        await at.timers.advance(0.001)
        again = await at.take()
        assert bodies(again) == ["a", "c"]
        assert numbers(again) == [2, 2]
        outcomes = await at.acknowledge(first)
        assert [type(one.error) for one in outcomes] == [HandleExpired, type(None), HandleExpired]
        assert at.cursor() == 0
        await at.acknowledge(again)
        assert at.cursor() == 3


async def test_a_late_acknowledgement_counts_until_the_message_is_given_out_again(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a")
        first = await at.take()
        await at.timers.advance(2 * SECONDS)
        assert [one.error for one in await at.acknowledge(first)] == [None]
        assert await at.take() == []
        assert [one.error for one in await at.acknowledge(first)] == [None], "a repeat is fine"


async def test_who_wants_it_is_refused_when_the_invisible_time_is_over(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a")
        (first,) = await at.take()
        await at.timers.advance(SECONDS - 0.001)
        put_off = await at.retry_after(first, 1_000)
        await at.timers.advance(1.001)
        (late,) = await at.receiving.acknowledge(GROUP, TOPIC, [put_off], in_time=True)
        assert isinstance(late.error, HandleExpired)
        (again,) = await at.take()
        (outcome,) = await at.receiving.acknowledge(GROUP, TOPIC, [again.handle], in_time=True)
        assert (outcome.error, at.cursor()) == (None, 1)


async def test_a_retry_comes_when_it_was_asked_for(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a")
        (first,) = await at.take()
        assert await at.retry_after(first, 5_000) == first.handle
        await at.timers.advance(4.999)
        assert await at.take() == []
        await at.timers.advance(0.001)
        (second,) = await at.take()
        assert second.number == 2
        with pytest.raises(HandleExpired):
            await at.retry_after(first, 0)
        await at.retry_after(second, 0)
        assert numbers(await at.take()) == [3]


async def test_bad_handles_are_told_one_by_one(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.topic("others")
        at.send("a")
        (first,) = await at.take()
        outcomes = await at.receiving.acknowledge(GROUP, TOPIC, ["rubbish", first.handle, first.handle + "A"])
        assert [type(one.error) for one in outcomes] == [BadHandle, type(None), BadHandle]
        outcomes = await at.receiving.acknowledge("strangers", TOPIC, [first.handle])
        assert [type(one.error) for one in outcomes] == [BadHandle]
        outcomes = await at.receiving.acknowledge(GROUP, "others", [first.handle])
        assert [type(one.error) for one in outcomes] == [BadHandle]
        with pytest.raises(BadHandle):
            await at.receiving.forward(GROUP, TOPIC, "")


async def test_an_answer_that_never_left_counts_for_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a", "b")
        batch = await at.receive()
        batch.release()
        batch.release()
        again = await at.take()
        assert (bodies(again), numbers(again)) == (["a", "b"], [1, 1])
        assert at.cursor() == 0


async def test_what_was_sent_is_not_released(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a")
        batch = await at.receive()
        batch.sent(lambda: True)
        batch.release()
        assert await at.take() == []


async def test_a_repeated_attempt_gets_the_same_messages_with_the_same_numbers(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a", "b", "c")
        first = await at.take(2, attempt_id="one")
        again = await at.take(2, attempt_id="one")
        assert [(one.handle, one.number) for one in again] == [(one.handle, one.number) for one in first]
        assert bodies(await at.take(2, attempt_id="two")) == ["c"]
        await at.acknowledge(first[:1])
        assert bodies(await at.take(2, attempt_id="one")) == ["b"]


async def test_an_answer_that_never_left_takes_nothing_from_the_repeat_of_its_attempt(tmp_path: Path) -> None:
    """The connection of the first is known to be gone only when the client has asked again on another one."""
    async with scene(tmp_path) as at:
        at.send("a", "b")
        lost = await at.receive(attempt_id="one")
        again = await at.receive(attempt_id="one")
        lost.release()
        assert await at.take() == []
        again.release()
        given = await at.take(attempt_id="two")
        assert (bodies(given), numbers(given)) == (["a", "b"], [1, 1])
        lost.release()
        again.release()
        assert await at.take() == []
        assert [one.error for one in await at.acknowledge(given)] == [None, None]


async def test_tags_that_do_not_match_are_passed_for_good(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a", TAGS="red")
        at.send("b", "c", TAGS="blue")
        at.send("d", TAGS="red")
        at.send("e")
        messages = await at.take(subscription=Subscription("red"))
        assert bodies(messages) == ["a", "d"]
        await at.acknowledge(messages)
        assert at.cursor() == 5
        assert await at.take() == []


async def test_all_queues_are_received_from_in_turn(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.topic(queues=4)
        for queue in range(4):
            at.send(f"{queue}a", f"{queue}b", queue=queue)
        seen = [bodies(await at.take(1))[0] for _ in range(4)]
        assert sorted(one[0] for one in seen) == ["0", "1", "2", "3"]
        assert len(await at.take()) == 4
        assert await at.take(queue=2) == []


async def test_new_messages_come_beside_those_that_come_again(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send(*[f"old{number}" for number in range(20)])
        await at.take()
        await at.timers.advance(SECONDS)
        at.send(*[f"new{number}" for number in range(20)])
        seen = [bodies(await at.take(1))[0][:3] for _ in range(10)]
        assert seen.count("new") == 2
        assert seen.count("old") == 8


@pytest.mark.parametrize("queues", [2, 3, 4, 5, 6])
async def test_new_messages_of_each_queue_come_beside_those_that_come_again(tmp_path: Path, queues: int) -> None:
    async with scene(tmp_path) as at:
        at.topic(queues=queues)
        for queue in range(queues):
            at.send(*[f"old{number}" for number in range(40)], queue=queue)
        for _ in range(2 * queues):
            await at.take()
        await at.timers.advance(SECONDS)
        for queue in range(queues):
            at.send(*[f"new{number}" for number in range(40)], queue=queue)
        for kind in (b"new", b"old"):
            seen = [decode_record(one.record) for _ in range(10 * (queues + 1)) for one in await at.take(1)]
            from_queues = {one.queue_id for one in seen if one.body.startswith(kind)}
            assert from_queues == set(range(queues)), kind


async def test_a_receive_waits_for_a_new_message(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        waiting = asyncio.create_task(at.take(wait_ms=20_000))
        await turns()
        assert not waiting.done()
        at.send("a")
        assert bodies(await waiting) == ["a"]
        assert len(at.receiving.waiters) == 0


async def test_a_receive_waits_for_a_retry_and_comes_in_time(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a")
        (first,) = await at.take()
        waiting = asyncio.create_task(at.take(wait_ms=20_000))
        await at.timers.advance(1)
        await at.retry_after(first, 2_000)
        await at.timers.advance(1.999)
        assert not waiting.done()
        await at.timers.advance(0.001)
        assert numbers(await waiting) == [2]


async def test_a_receive_ends_when_its_time_is_over(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        waiting = asyncio.create_task(at.take(wait_ms=3_000))
        await at.timers.advance(2.999)
        assert not waiting.done()
        await at.timers.advance(0.001)
        assert await waiting == []
        assert len(at.receiving.waiters) == 0


async def test_each_of_many_who_wait_gets_one(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        waiting = [asyncio.create_task(at.take(1, wait_ms=20_000)) for _ in range(5)]
        await turns()
        at.send("a", "b", "c")
        at.kit.store.catch_up()
        await turns()
        assert sorted(bodies([one for task in waiting if task.done() for one in task.result()])) == ["a", "b", "c"]
        at.send("d", "e")
        got = [await task for task in waiting]
        assert sorted(bodies([one for messages in got for one in messages])) == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("most", "size", "wanted", "rules"),
    [
        (20, 100, {}, ReceiveRules()),
        (10, 15_000, {}, ReceiveRules()),
        (32, 2_000, {"most_bytes": 5_000}, ReceiveRules()),
        (20, 100, {}, ReceiveRules(most_in_flight=30)),
    ],
    ids=["read ahead", "large", "few bytes", "in flight"],
)
async def test_all_who_wait_are_woken_while_there_is_something(
    tmp_path: Path, most: int, size: int, wanted: dict[str, Any], rules: ReceiveRules
) -> None:
    """One that got less than it may have was taken for the last one: what it left waited for the next message."""
    async with scene(tmp_path, rules, mapped_file_size_commit_log=4 << 20) as at:
        await at.take()
        waiting = [asyncio.create_task(at.take(most, wait_ms=20_000, **wanted)) for _ in range(8)]
        await turns()
        at.send(*["x" * size for _ in range(8 * most)])
        at.kit.store.catch_up()
        given: list[GivenMessage] = []
        for _ in range(8):
            await turns()
            given = [one for task in waiting if task.done() for one in task.result()]
            if rules.most_in_flight == 30:
                await at.acknowledge(given)
        assert [task.done() for task in waiting] == [True] * 8
        assert len({one.handle for one in given}) == len(given) >= 8


async def test_a_group_that_is_forgotten_and_receives_again_begins_anew(tmp_path: Path) -> None:
    """Where a receive looks is kept; the places there are made again where they have gone."""
    async with scene(tmp_path) as at:
        at.send("a", "b")
        await at.acknowledge(await at.take())
        assert await at.take() == []
        at.journal.note(Forgotten(Place(GROUP, TOPIC, 0)))
        assert bodies(await at.take()) == ["a", "b"]


async def test_one_that_leaves_passes_its_wake_on(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        first = asyncio.create_task(at.take(1, wait_ms=20_000))
        await turns()
        second = asyncio.create_task(at.take(1, wait_ms=20_000))
        await turns()
        at.send("a")
        at.kit.store.catch_up()
        await asyncio.sleep(0)  # the first is awake now, and has not looked yet
        first.cancel()
        await turns()
        assert second.done()
        assert bodies(await second) == ["a"]


async def test_waits_end_when_the_store_stops(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        waiting = asyncio.create_task(at.take(wait_ms=20_000))
        await turns()
        at.receiving.drain()
        with pytest.raises(StoreStopping):
            await waiting
        with pytest.raises(StoreStopping):
            await at.take(wait_ms=20_000)


async def test_the_limit_in_flight_holds_and_room_is_told(tmp_path: Path) -> None:
    async with scene(tmp_path, ReceiveRules(most_in_flight=3)) as at:
        at.send(*"abcde")
        first = await at.take()
        assert bodies(first) == ["a", "b", "c"]
        with pytest.raises(TooMuchInFlight) as told:
            await at.take()
        assert told.value.kind is Kind.EXHAUSTED
        waiting = asyncio.create_task(at.take(wait_ms=20_000))
        await turns()
        assert not waiting.done()
        await at.acknowledge(first[:1])
        assert bodies(await waiting) == ["d"]
        await at.retry_after(first[1], 60_000)
        assert bodies(await at.take()) == ["e"], "what waits for a retry is not in flight"


async def test_retries_that_are_due_make_no_room_beyond_the_limit(tmp_path: Path) -> None:
    async with scene(tmp_path, ReceiveRules(most_in_flight=3)) as at:
        at.send(*"abcdefgh")
        first = await at.take()
        for one in first[:2]:
            await at.retry_after(one, 2_000)
        assert bodies(await at.take()) == ["d", "e"]
        await at.timers.advance(3)
        with pytest.raises(TooMuchInFlight):
            await at.take()


async def test_the_limit_of_the_whole_store_holds(tmp_path: Path) -> None:
    async with scene(tmp_path, ReceiveRules(most_in_flight_in_all=2)) as at:
        at.topic("others")
        at.send("a", "b")
        at.send("c", topic="others")
        first = await at.take()
        with pytest.raises(TooMuchInFlight):
            await at.take(topic="others")
        waiting = asyncio.create_task(at.take(topic="others", wait_ms=20_000))
        await turns()
        await at.acknowledge(first)
        assert bodies(await waiting) == ["c"]


async def test_who_waits_for_room_in_the_whole_store_has_it_when_a_group_is_reset(tmp_path: Path) -> None:
    async with scene(tmp_path, ReceiveRules(most_in_flight_in_all=2)) as at:
        at.topic("others")
        at.send("a", "b")
        at.send("c", topic="others")
        await at.take()
        waiting = asyncio.create_task(at.take(topic="others", wait_ms=20_000))
        await turns()
        await at.receiving.reset(GROUP, TOPIC, {0: 2})
        assert bodies(await waiting) == ["c"]


async def test_what_makes_no_sense_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path, ReceiveRules(create_groups=False)) as at:
        at.groups.put("lazy", consume_enable=False)
        at.groups.put()
        at.send("a")
        for wanted, refusal in (
            ({"group": "nobody"}, UnknownGroup),
            ({"group": "lazy"}, ForbiddenGroup),
            ({"group": "no name"}, BadDelivery),
            ({"group": ""}, BadDelivery),
            ({"topic": "nowhere"}, NoSuchQueue),
            ({"queue": 1}, QueueOutOfRange),
            ({"queue": -2}, BadDelivery),
            ({"most": 0}, BadDelivery),
            ({"most": 1_025}, BadDelivery),
            ({"most_bytes": 0}, BadDelivery),
            ({"wait_ms": -1}, BadDelivery),
            ({"invisible_ms": 999}, BadInvisibleTime),
            ({"invisible_ms": 12 * 3_600_000 + 1}, BadInvisibleTime),
            ({"invisible_ms": -1}, BadInvisibleTime),
            ({"renew": True}, BadDelivery),
            ({"attempt_id": "x" * 129}, BadDelivery),
        ):
            with pytest.raises(refusal):
                await at.take(**wanted)
        (first,) = await at.take()
        for invisible_ms in (-1, 12 * 3_600_000 + 1, 365 * 86_400_000):
            with pytest.raises(BadInvisibleTime):
                await at.retry_after(first, invisible_ms)
        assert first.number == 1


async def test_a_commit_is_the_same_cursor(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send(*"abcd")
        first = await at.take(2)
        await at.receiving.commit(GROUP, TOPIC, 0, 3)
        assert at.cursor() == 3
        await at.receiving.commit(GROUP, TOPIC, 0, 1)
        assert at.cursor() == 3, "it never goes back"
        assert [one.error for one in await at.acknowledge(first)] == [None, None]
        assert bodies(await at.take()) == ["d"]
        await at.receiving.commit(GROUP, TOPIC, 0, 1_000)
        assert at.cursor() == 4, "not beyond the end"
        with pytest.raises(BadDelivery):
            await at.receiving.commit(GROUP, TOPIC, 0, -1)
        with pytest.raises(QueueOutOfRange):
            await at.receiving.commit(GROUP, TOPIC, 7, 1)


async def test_a_reset_calls_back_what_is_in_flight(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send(*"abc")
        first = await at.take()
        await at.acknowledge(first[:2])
        waiting = asyncio.create_task(at.take(wait_ms=20_000))
        await turns()
        await at.receiving.reset(GROUP, TOPIC, {0: 1})
        again = await waiting
        assert (bodies(again), numbers(again)) == (["b", "c"], [1, 1])
        assert [type(one.error) for one in await at.acknowledge(first)] == [HandleExpired] * 3
        assert at.cursor() == 1


async def test_a_new_group_begins_at_the_first_message_that_is_near_and_all_queues_are_fixed(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.topic(queues=2)
        at.send("a")
        at.groups.put(attributes={"consumeFromWhere": "CONSUME_FROM_LAST_OFFSET"})
        assert await at.take(queue=0) == []
        at.send("b")
        at.send("c", queue=1)
        assert sorted(bodies(await at.take())) == ["b", "c"]
        assert bodies(await at.take(group="others")) == ["a", "b", "c"]


async def test_a_message_does_not_come_twice_in_one_answer_that_took_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "_TURN_MOST", 1)
    async with scene(tmp_path) as at:
        at.send("m0", "m1", "m2", "m3", "m4")
        first = await at.take()
        await at.timers.advance(INVISIBLE_MS / 1000)
        monkeypatch.setattr(receiving, "my_turn", lambda timers: timers.advance(0.3 * INVISIBLE_MS / 1000))
        second = await at.take()
        assert len(first) == 5
        assert bodies(second) == ["m0", "m1"], "it goes before what is in it is due again"
        third = await at.take(1)
        assert (bodies(third), numbers(third)) == (["m2"], [2]), "what it has left others have"
