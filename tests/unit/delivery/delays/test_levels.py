"""Delay levels: in time, in order, each once, whatever the clock does."""

from pathlib import Path

import pytest

from tandemmq.store.broker.send import NewMessage
from tandemmq.store.format import properties
from tandemmq.store.format.unit import SCHEDULE_TOPIC
from tests.unit.broker.broker_kit import HOST
from tests.unit.delivery.delays.delay_kit import BEGIN, delaying


async def test_a_message_comes_when_its_time_is_over_and_not_before(tmp_path: Path) -> None:
    async with delaying(tmp_path) as kit:
        await kit.send(b"ten", DELAY="3", a="b", queue_id=1)
        await kit.send(b"one", DELAY="1")
        await kit.send(b"now")
        await kit.pass_time(0.999)
        assert kit.bodies() == [b"now"]
        await kit.pass_time(0.002)
        assert kit.bodies() == [b"now", b"one"]
        await kit.pass_time(8.998)
        assert kit.bodies(queue_id=1) == []
        await kit.pass_time(0.002)
        (ten,) = kit.found(queue_id=1)
        assert ten.body == b"ten"
        assert set(ten.properties) == {"a", "UNIQ_KEY"}
        assert (ten.topic, ten.queue_id, ten.queue_offset) == ("orders", 1, 0)
        assert (kit.counts.delivered, kit.levels.states()) == (2, [])


async def test_after_a_clean_stop_nothing_comes_twice_and_nothing_is_missing(tmp_path: Path) -> None:
    async with delaying(tmp_path) as kit:
        for number in range(5):
            await kit.send(b"%d" % number, DELAY="1")
            await kit.pass_time(0.4)
        assert kit.bodies() == [b"0", b"1", b"2"][: len(kit.bodies())]
        seen = len(kit.bodies())
        assert 0 < seen < 5
        now = kit.wall.now_ms()
    async with delaying(tmp_path, now=now) as kit:
        assert len(kit.bodies()) == seen
        await kit.pass_time(2)
        assert kit.bodies() == [b"0", b"1", b"2", b"3", b"4"]
    async with delaying(tmp_path, now=now + 60_000) as kit:
        await kit.pass_time(10)
        assert kit.bodies() == [b"0", b"1", b"2", b"3", b"4"]


async def test_what_was_due_while_the_store_was_down_comes_at_once(tmp_path: Path) -> None:
    async with delaying(tmp_path, starts=False) as kit:
        for level in ("1", "5", "18"):
            await kit.send(level.encode(), DELAY=level)
    async with delaying(tmp_path, now=BEGIN + 3_600_000) as kit:
        assert [state.level for state in kit.levels.states()] == [1, 5, 18]
        assert kit.levels.states()[0].late_ms == 3_599_000
        await kit.pass_time(0)
        assert sorted(kit.bodies()) == [b"1", b"5"]


async def test_a_thousand_at_once_are_delivered_in_their_order(tmp_path: Path) -> None:
    async with delaying(tmp_path) as kit:
        for number in range(1_000):
            await kit.send(b"%d" % number, DELAY="1")
        await kit.pass_time(1.1)
        assert kit.bodies() == [b"%d" % number for number in range(1_000)]
        records = len(kit.found("TANDEM_SYS_DELIVERY"))
        assert records < 1_000, "facts of a turn are written together"


@pytest.mark.parametrize("step_ms", [-3_600_000, 3_600_000])
async def test_a_clock_that_is_set_makes_nobody_wait_for_an_hour(tmp_path: Path, step_ms: int) -> None:
    async with delaying(tmp_path) as kit:
        for number in range(3):
            await kit.send(b"%d" % number, DELAY="3")
        await kit.pass_time(5)
        kit.wall.ahead_ms += step_ms
        await kit.pass_time(0.5)
        await kit.send(b"later", DELAY="3")
        await kit.pass_time(1)
        assert kit.bodies() == ([] if step_ms < 0 else [b"0", b"1", b"2"])
        await kit.pass_time(9.6)
        assert kit.bodies() == [b"0", b"1", b"2", b"later"]


async def test_a_clock_that_is_set_back_and_forth_delivers_nothing_early(tmp_path: Path) -> None:
    async with delaying(tmp_path) as kit:
        await kit.send(DELAY="4")
        for _ in range(29):
            kit.wall.ahead_ms -= 700_000
            await kit.pass_time(0.5)
            kit.wall.ahead_ms += 700_000
            await kit.pass_time(0.4)
            assert kit.bodies() == []
        await kit.pass_time(4)
        assert kit.bodies() == [b"x"]


async def test_levels_that_the_settings_do_not_know_any_more_are_delivered(tmp_path: Path) -> None:
    async with delaying(tmp_path) as kit:
        await kit.send(DELAY="6")
    async with delaying(tmp_path, delays_ms=(1_000, 5_000)) as kit:
        await kit.pass_time(119)
        assert kit.bodies() == []
        await kit.pass_time(2)
        assert kit.bodies() == [b"x"]


async def test_what_can_be_delivered_nowhere_holds_up_nobody(tmp_path: Path) -> None:
    wrong = [{}, {"REAL_TOPIC": "a b"}, {"REAL_TOPIC": "RMQ_SYS_TRANS_HALF_TOPIC"}, {"REAL_TOPIC": SCHEDULE_TOPIC}]
    async with delaying(tmp_path) as kit:
        for given in wrong:
            kit.append(SCHEDULE_TOPIC, b"wrong", DELAY="1", **given)
        kit.append(SCHEDULE_TOPIC, b"odd", DELAY="1", REAL_TOPIC="orders", REAL_QID="-5")
        await kit.send(b"good", DELAY="1")
        await kit.pass_time(1.1)
        assert kit.bodies() == [b"odd", b"good"]
        assert kit.counts.undeliverable == 4
    async with delaying(tmp_path, now=BEGIN + 60_000) as kit:
        await kit.pass_time(5)
        assert kit.counts.undeliverable == 0


async def test_a_message_that_is_damaged_is_passed_over(tmp_path: Path) -> None:
    async with delaying(tmp_path, starts=False) as kit:
        record = await kit.send(b"damaged body", DELAY="1")
        await kit.send(b"good", DELAY="1")
    log = next((tmp_path / "commitlog").iterdir())
    data = bytearray(log.read_bytes())
    at = data.index(b"damaged body", record.physical_offset)
    data[at] ^= 1
    log.write_bytes(data)
    async with delaying(tmp_path, now=BEGIN + 2_000) as kit:
        await kit.pass_time(0.1)
        assert (kit.bodies(), kit.counts.unreadable) == ([b"good"], 1)


async def test_a_retry_keeps_its_count_and_origin(tmp_path: Path) -> None:
    async with delaying(tmp_path) as kit:
        message = NewMessage("%RETRY%g", HOST, b"again", {"DELAY": "3", "RETRY_TOPIC": "orders", "TAGS": "t"}, 0)
        message.reconsume_times, message.flag, message.born_timestamp = 2, 7, 12_345
        await kit.kit.broker.send(message)
        await kit.pass_time(10.1)
        (again,) = kit.found("%RETRY%g")
        assert (again.reconsume_times, again.flag, again.born_timestamp) == (2, 7, 12_345)
        assert (again.properties["RETRY_TOPIC"], again.tags) == ("orders", "t")
        assert properties.REAL_TOPIC not in again.properties


async def test_a_level_that_comes_to_be_later_is_served(tmp_path: Path) -> None:
    async with delaying(tmp_path) as kit:
        await kit.pass_time(100)
        await kit.send(DELAY="2")
        await kit.pass_time(5.05)
        assert kit.bodies() == [b"x"]
