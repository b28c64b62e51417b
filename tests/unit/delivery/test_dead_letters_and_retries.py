"""What a consumer cannot deal with: dead letters, and classic consumers' messages that come again."""

import asyncio
from pathlib import Path

import pytest

from tandemmq.store.broker.errors import MessageNotFound
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.receiving.place_reader import Absence, PlaceReader
from tandemmq.store.delivery.retries.copies import internal_copy
from tandemmq.store.log.errors import QueueNotReady
from tests.manual_timers import turns
from tests.unit.broker.broker_kit import HOST
from tests.unit.delivery.receiving_kit import GROUP, INVISIBLE_MS, TOPIC, Scene, bodies, numbers, scene

SECONDS = INVISIBLE_MS / 1000
DEAD = f"%DLQ%{GROUP}"


async def deliver(at: Scene, times: int) -> None:
    for number in range(1, times + 1):
        assert numbers(await at.take()) == [number]
        await at.timers.advance(SECONDS)


async def dead(at: Scene) -> None:
    """The next receive finds what is dead, makes the topic, and tries again later."""
    assert await at.take() == []
    while not at.receiving.graveyard.has_topic(GROUP):
        await asyncio.sleep(0.01)
    await at.timers.advance(5)
    assert await at.take() == []


async def test_a_message_that_was_given_out_as_often_as_may_be_is_a_dead_letter(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with scene(tmp_path) as at:
        at.groups.put(retry_max_times=2)
        (physical,) = at.send("bad", KEYS="k1", TAGS="red", color="blue")
        await deliver(at, 3)
        await dead(at)
        (letter,) = at.records(DEAD)
        assert letter.body == b"bad"
        assert letter.reconsume_times == 3
        given = letter.properties
        assert (given["KEYS"], given["TAGS"], given["color"]) == ("k1", "red", "blue")
        assert (given["RETRY_TOPIC"], given["DLQ_ORIGIN_TOPIC"]) == (TOPIC, TOPIC)
        assert given["ORIGIN_MESSAGE_ID"].endswith(f"{physical:016X}")
        assert given["DLQ_ORIGIN_MESSAGE_ID"] == given["UNIQ_KEY"]
        assert at.cursor() == 1
        config = at.kit.topics.get(DEAD)
        assert config is not None
        assert (config.read_queues, config.write_queues, config.perm) == (1, 1, 6)
        assert at.receiving.graveyard.buried == {(GROUP, TOPIC): 1}
        assert [one for one in caplog.messages if "became dead letters" in one]
        assert bodies(await at.take(topic=DEAD)) == ["bad"], "a new group on a dead-letter topic begins at its begin"


async def test_a_group_that_retries_for_ever_has_no_dead_letters(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.groups.put(retry_max_times=-1)
        at.send("bad")
        await deliver(at, 30)


async def test_a_message_that_cannot_be_read_now_is_not_forwarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its queue was being put right: it was taken for one that had expired, and was nowhere any more."""
    async with scene(tmp_path) as at:
        at.send("bad")
        (one,) = await at.take()
        with monkeypatch.context() as patch:
            patch.setattr(PlaceReader, "one", lambda *_: Absence.LATER)
            with pytest.raises(QueueNotReady, match="put right"):
                await at.receiving.forward(GROUP, TOPIC, one.handle)
        assert at.cursor() == 0
        await at.receiving.forward(GROUP, TOPIC, one.handle)
        (letter,) = at.records(DEAD)
        assert (letter.body, at.cursor()) == (b"bad", 1)


async def test_a_message_is_forwarded_once(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a", "b")
        first = await at.take()
        await at.receiving.forward(GROUP, TOPIC, first[0].handle)
        await at.receiving.forward(GROUP, TOPIC, first[0].handle)
        assert [letter.body for letter in at.records(DEAD)] == [b"a"]
        assert at.cursor() == 1


async def test_an_order_to_the_broker_is_not_in_a_dead_letter(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.send("a")
        (record,) = at.records(TOPIC)
        extra = {"DELAY": "3", "TRAN_MSG": "true", "REAL_TOPIC": "x", "REAL_QID": "0", "POP_CK": "y"}
        at.kit.store.append(internal_copy(record, TOPIC, 0, HOST, extra=extra))
        for one in await at.take():
            await at.receiving.forward(GROUP, TOPIC, one.handle)
        assert len(at.records(DEAD)) == 2
        assert not any(extra.keys() & letter.properties.keys() for letter in at.records(DEAD))


async def test_what_a_classic_consumer_sends_back_waits_in_its_level(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        (physical,) = at.send("a")
        await at.receiving.send_back(GROUP, physical, 0, 0)
        (waiting,) = at.records("SCHEDULE_TOPIC_XXXX", 2)
        given = waiting.properties
        assert waiting.reconsume_times == 1
        assert (given["DELAY"], given["REAL_TOPIC"], given["RETRY_TOPIC"]) == ("3", f"%RETRY%{GROUP}", TOPIC)
        await at.receiving.send_back(GROUP, physical, 5, 0)
        assert len(at.records("SCHEDULE_TOPIC_XXXX", 4)) == 1
        await at.receiving.send_back(GROUP, physical, -1, 0)
        assert [letter.body for letter in at.records(DEAD)] == [b"a"]
        with pytest.raises(MessageNotFound):
            await at.receiving.send_back(GROUP, physical + 1, 0, 0)


async def test_what_is_sent_back_waits_by_the_groups_own_policy(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.groups.put(retry_policy=(7_000, 90_000))
        (physical,) = at.send("a")
        await at.receiving.send_back(GROUP, physical, 0, 0)
        (waiting,) = at.records("rmq_sys_wheel_timer")
        given = waiting.properties
        assert int(given["TIMER_DELIVER_MS"]) == at.clock.now_ms() + 7_000
        assert (given["REAL_TOPIC"], given["RETRY_TOPIC"]) == (f"%RETRY%{GROUP}", TOPIC)
        await at.receiving.send_back(GROUP, waiting.physical_offset, 0, 0)
        _, second = at.records("rmq_sys_wheel_timer")
        assert int(second.properties["TIMER_DELIVER_MS"]) == at.clock.now_ms() + 90_000
        await at.receiving.send_back(GROUP, physical, 5, 0)
        assert len(at.records("SCHEDULE_TOPIC_XXXX", 4)) == 1, "a level that is asked for counts"


def retry(at: Scene, topic: str, body: str, times: int = 1) -> None:
    """A message in the group's retry topic, as it is there when its wait is over."""
    own = f"%RETRY%{GROUP}"
    at.kit.topics._entries[own] = TopicConfig(own, 1, 1)
    at.topic("scratch")
    at.send(body, topic="scratch")
    record = at.records("scratch")[-1]
    at.kit.store.append(internal_copy(record, own, 0, HOST, extra={"RETRY_TOPIC": topic}, reconsume_times=times))


async def test_the_retry_topic_is_received_as_the_topic_it_came_from(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.topic("others")
        retry(at, TOPIC, "a", 3)
        retry(at, "others", "b")
        retry(at, TOPIC, "c")
        messages = await at.take()
        assert bodies(messages) == ["a", "c"]
        assert numbers(messages) == [4, 2]
        assert {one.topic for one in messages} == {TOPIC}
        await at.acknowledge(messages)
        others = await at.take(topic="others")
        assert bodies(others) == ["b"]
        assert [one.error for one in await at.acknowledge(others, topic="others")] == [None]
        assert at.cursor(topic=f"%RETRY%{GROUP}") == 3


async def test_who_waits_for_another_topic_is_told_of_its_retries(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.topic("others")
        retry(at, "others", "x")
        await at.take(topic="others")
        waiting = asyncio.create_task(at.take(topic="others", wait_ms=20_000))
        await turns()
        retry(at, "others", "b")
        await at.take()
        assert bodies(await waiting) == ["b"]


async def test_deliveries_before_a_retry_count_for_the_dead_letters(tmp_path: Path) -> None:
    async with scene(tmp_path) as at:
        at.groups.put(retry_max_times=2)
        retry(at, TOPIC, "a", 2)
        assert numbers(await at.take()) == [3]
        await at.timers.advance(SECONDS)
        await dead(at)
        assert [letter.reconsume_times for letter in at.records(DEAD)] == [3]


@pytest.mark.parametrize("sign", ["_", "+"])
async def test_retries_of_a_java_brokers_pop_are_received_as_their_topic(tmp_path: Path, sign: str) -> None:
    """They name no origin but in their topic, as RocketMQ 5 writes them."""
    own = f"%RETRY%{GROUP}{sign}{TOPIC}"
    async with scene(tmp_path) as at:
        at.groups.put(retry_max_times=2)
        at.topic(own)
        at.topic("scratch")
        at.send("a", topic="scratch")
        at.kit.store.append(internal_copy(at.records("scratch")[0], own, 0, HOST, reconsume_times=1))
        (message,) = await at.take()
        assert (message.topic, message.number, bodies([message])) == (TOPIC, 2, ["a"])
        await at.timers.advance(SECONDS)
        (again,) = await at.take()
        assert again.number == 3
        assert [one.error for one in await at.acknowledge([message])] != [None], "it was given out again"
        await at.timers.advance(SECONDS)
        await dead(at)
        (letter,) = at.records(DEAD)
        assert (letter.reconsume_times, letter.body) == (3, b"a")
        assert at.cursor(topic=own) == 1
