"""How a message waits that is to be delivered later."""

from pathlib import Path

import pytest
from hypothesis import given, strategies

from tandemmq.store.broker.errors import BadDelay, IllegalMessage, NotSupported
from tandemmq.store.broker.postponing import TIMER_TOPIC, DelayRules, Postponed, postpone
from tandemmq.store.broker.pulled import Wanted
from tandemmq.store.broker.send import NewMessage
from tandemmq.store.format.unit import SCHEDULE_TOPIC
from tests.unit.broker.broker_kit import HOST, Kit, broker, records

NOW = 1_760_000_000_500
RULES = DelayRules()


def asked(**properties: str) -> tuple[Postponed | None, dict[str, str]]:
    given = dict(properties)
    return postpone("orders", 3, given, NOW, RULES), given


def test_a_level_waits_in_its_queue_and_more_than_there_are_is_the_last() -> None:
    for text, level, wait in (("1", 1, 1_000), ("18", 18, 7_200_000), ("19", 18, 7_200_000), ("+3", 3, 10_000)):
        waiting, stored = asked(DELAY=text, TIMER_DELAY_MS="5", TIMER_OUT_MS="7", a="b")
        assert waiting == Postponed(SCHEDULE_TOPIC, level - 1, 18, 3, NOW + wait)
        assert stored == {"DELAY": str(level), "a": "b", "REAL_TOPIC": "orders", "REAL_QID": "3"}


def test_no_level_is_no_delay() -> None:
    for text in ("0", "-1", ""):
        assert asked(DELAY=text) == (None, {"DELAY": text})
    for text in ("soon", "1.5", "³", "1_0", "9" * 20):
        with pytest.raises(IllegalMessage, match="DELAY"):
            asked(DELAY=text)


@pytest.mark.parametrize(
    ("properties", "due"),
    [
        ({"TIMER_DELAY_SEC": "2"}, NOW + 2_000),
        ({"TIMER_DELAY_MS": "2"}, NOW + 2),
        ({"TIMER_DELIVER_MS": str(NOW + 1)}, NOW + 1),
        ({"TIMER_DELIVER_MS": "1", "TIMER_DELAY_MS": "9", "TIMER_DELAY_SEC": "1"}, NOW + 1_000),
        ({"TIMER_DELAY_SEC": "3456000", "DELAY": "0"}, NOW + 3_456_000_000),
    ],
)
def test_any_time_waits_among_the_timers_with_the_time_itself(properties: dict[str, str], due: int) -> None:
    waiting, stored = asked(**properties)
    assert waiting == Postponed(TIMER_TOPIC, 0, 1, 3, due)
    out = int(stored.pop("TIMER_OUT_MS"))
    assert (out % 1_000, 0 < due - out <= 1_000) == (0, True)
    kept = {"TIMER_DELIVER_MS": str(due), "REAL_TOPIC": "orders", "REAL_QID": "3"}
    assert stored == kept | ({"DELAY": "0"} if "DELAY" in properties else {})


def test_a_time_that_is_past_is_now() -> None:
    for name, text in (("TIMER_DELIVER_MS", str(NOW)), ("TIMER_DELIVER_MS", "0"), ("TIMER_DELAY_SEC", "0")):
        assert asked(**{name: text}) == (None, {name: text})


@pytest.mark.parametrize(
    "properties",
    [
        {"TIMER_DELAY_SEC": "3456001"},
        {"TIMER_DELAY_MS": "3456000001"},
        {"TIMER_DELIVER_MS": "9223372036854775807"},
        {"TIMER_DELIVER_MS": "1" * 20},
        {"TIMER_DELAY_MS": "-1"},
        {"TIMER_DELAY_SEC": "tomorrow"},
        {"TIMER_DELIVER_MS": "٣"},
    ],
)
def test_times_that_cannot_be_kept(properties: dict[str, str]) -> None:
    with pytest.raises(BadDelay):
        asked(**properties)


def test_timers_can_be_switched_off() -> None:
    off = DelayRules(timers=False)
    with pytest.raises(NotSupported, match="switched off"):
        postpone("orders", 0, {"TIMER_DELAY_MS": "1"}, NOW, off)
    assert postpone("orders", 0, {"DELAY": "1"}, NOW, off) is not None


@given(
    strategies.dictionaries(strategies.sampled_from(["DELAY", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"]), strategies.text())
)
def test_whatever_a_client_writes_is_a_time_or_refused(properties: dict[str, str]) -> None:
    try:
        waiting, stored = asked(**properties)
    except IllegalMessage:
        return
    assert ("REAL_TOPIC" in stored) is (waiting is not None)


def new(**properties: str) -> NewMessage:
    return NewMessage("orders", HOST, b"later", dict(properties), 2)


def due_of_the_only_unit(kit: Kit, queue_id: int) -> int:
    queue = kit.store.queue(SCHEDULE_TOPIC, queue_id)
    assert queue is not None
    (unit,) = queue.read(0, 10)
    return unit.tags_code


async def test_a_delayed_send_is_stored_where_rocketmq_stores_it(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        receipt = await kit.broker.send(new(DELAY="3", UNIQ_KEY="k"))
        assert (receipt.ready.queue_id, receipt.place.queue_offset) == (2, 0)
        timed = await kit.broker.send(new(TIMER_DELAY_MS="60000"))
        assert (timed.ready.queue_id, timed.place.queue_offset) == (2, 0)
        assert [name for name in ("orders", SCHEDULE_TOPIC, TIMER_TOPIC) if kit.topics.get(name) is None] == []
        with pytest.raises(BadDelay):
            await kit.broker.append([new(), new(TIMER_DELAY_SEC="99999999")], [])
    async with broker(tmp_path) as kit:
        assert kit.store.queue("orders", 2) is None
        assert due_of_the_only_unit(kit, 2) == receipt.place.store_timestamp + 10_000
        (waiting,) = records(kit.pull(SCHEDULE_TOPIC, 2))
        assert (waiting.properties["REAL_TOPIC"], waiting.properties["REAL_QID"]) == ("orders", "2")
        (waiting,) = records(kit.pull(TIMER_TOPIC, 0))
        assert int(waiting.properties["TIMER_DELIVER_MS"]) == kit.clock.now + 60_000


async def test_many_delayed_messages_are_sent_at_once(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        sent = await kit.broker.append([new(DELAY=str(level)) for level in range(1, 20)], [])
        assert [one.ready.message.queue_id for one in sent.messages] == [*range(18), 17]
        told: list[object] = []
        kit.broker.submit(
            [new(DELAY="1"), new(DELAY="x")], lambda number, what: told.append((number, type(what).__name__))
        )
        assert sorted(map(str, told)) == ["(0, 'Receipt')", "(1, 'IllegalMessage')"]
        await kit.dispatched()
        assert (await kit.broker.pull(Wanted(SCHEDULE_TOPIC, 0, 0, 32, 1 << 20))).count == 2


async def test_a_delayed_message_that_is_sent_again_is_recognized(tmp_path: Path) -> None:
    async with broker(tmp_path, window=60_000) as kit:
        first = await kit.broker.send(new(DELAY="3", UNIQ_KEY="k"))
        copy = await kit.broker.send(new(DELAY="3", UNIQ_KEY="k"))
        assert (copy.place, copy.ready.copy, copy.ready.queue_id) == (first.place, True, 2)
