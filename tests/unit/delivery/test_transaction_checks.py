"""Check back: producers are asked when it is due, as often as is allowed, and what nobody ends is given up."""

from pathlib import Path

import pytest

from tandemmq.store.broker.preparing import HALF_TOPIC
from tandemmq.store.delivery.transactions.checking import TransactionRules
from tandemmq.store.delivery.transactions.half_message import DISCARD_TOPIC, OP_TOPIC
from tandemmq.store.format.record import decode_record
from tests.manual_timers import ManualTimers
from tests.unit.delivery.transaction_kit import COMMIT, ROLLBACK, UNKNOWN, Positions, scene

HOUR = 3_600


async def test_a_producer_is_asked_after_six_seconds_and_then_each_thirty(tmp_path: Path) -> None:
    async with scene(tmp_path) as on:
        producer = on.producer()
        await on.advance(3.7)  # not at the beat of any clock
        await on.half("a")
        on.pending()
        await on.advance(5.9)
        assert producer() == []
        await on.advance(0.2)
        assert producer() == ["a"]
        for _ in range(3):
            await on.advance(29.8)
            assert producer() == []
            await on.advance(0.2)
            assert producer() == ["a"]


async def test_what_has_ended_is_not_asked_about(tmp_path: Path) -> None:
    async with scene(tmp_path) as on:
        producer = on.producer()
        a, b, c = [await on.half(key) for key in "abc"]
        await on.end(a, COMMIT)
        await on.end(b, ROLLBACK)
        await on.end(c, UNKNOWN)
        await on.advance(300)
        assert set(producer()) == {"c"}


async def test_the_answer_to_a_check_ends_it_whichever_handle_it_names(tmp_path: Path) -> None:
    async with scene(tmp_path) as on:
        producer = on.producer()
        first, second, third = [await on.half(key) for key in "xyz"]
        on.pending()
        await on.advance(6)
        asked = {one.transaction_id: one for one in producer.asked}
        assert [decode_record(one.record).body for one in producer.asked] == [b"x", b"y", b"z"]
        assert (asked["x"].topic, asked["x"].group) == ("orders", "g")
        await on.end(asked["x"].handle, COMMIT)
        await on.end(second, COMMIT)
        await on.end("z", COMMIT)
        await on.end(first, COMMIT)
        await on.end(third, COMMIT)
        assert on.bodies() == [b"x", b"y", b"z"]
        await on.advance(100)
        assert on.bodies() == [b"x", b"y", b"z"]
    async with scene(tmp_path) as on:
        assert on.pending() == []


async def test_a_check_appends_the_half_message_again_as_rocketmq_does(tmp_path: Path) -> None:
    """But with its flag and times (trap T14), and with an op that says of the record before that it counts no more."""
    async with scene(tmp_path) as on:
        on.producer()
        await on.half("a", TAGS="t", CHECK_IMMUNITY_TIME_IN_SECONDS="1")
        on.pending()
        await on.advance(31)
        records = on.delivered(HALF_TOPIC, 0)
        assert [one.properties.get("TRANSACTION_CHECK_TIMES") for one in records] == [None, "1", "2"]
        assert {(one.body, one.tags, one.unique_key, one.sys_flag) for one in records} == {(b"a", "t", "a", 0)}
        kept = ("TRAN_MSG", "PGROUP", "REAL_TOPIC", "REAL_QID", "__transactionId__")
        assert len({tuple(one.properties[name] for name in kept) for one in records}) == 1
        assert [one.body for one in on.delivered(OP_TOPIC, 0)] == [b"0", b"1"]
        assert on.pending() == ["a"]


async def test_after_fifteen_checks_it_is_given_up(tmp_path: Path) -> None:
    async with scene(tmp_path) as on:
        producer = on.producer()
        handle = await on.half("a", body=b"lost", KEYS="k")
        on.pending()
        await on.advance(6 + 14 * 30)
        assert len(producer()) == 15
        assert on.pending() == ["a"]
        await on.advance(30)
        assert on.pending() == []
        (one,) = on.delivered(DISCARD_TOPIC, 0)
        assert (one.body, one.keys) == (b"lost", ["k"])
        assert (one.properties["REAL_TOPIC"], one.properties["REAL_QID"]) == ("orders", "1")
        assert "TRAN_MSG" not in one.properties
        await on.advance(300)
        assert producer() == []
        assert on.bodies() == []
        await on.end(handle, ROLLBACK)  # it was, in a way
    async with scene(tmp_path) as on:
        assert on.pending() == []
        assert len(on.delivered(DISCARD_TOPIC, 0)) == 1


@pytest.mark.slow
async def test_a_check_that_reached_nobody_does_not_count(tmp_path: Path) -> None:
    """RocketMQ counts it and appends the message each time (trap T26): fifteen rounds without a producer roll back."""
    async with scene(tmp_path) as on:
        await on.half("a")
        on.pending()
        await on.advance(HOUR)
        assert len(on.delivered(HALF_TOPIC, 0)) == 1
        assert on.transactions.checking.undelivered > 100
        producer = on.producer()
        producer.open = False
        await on.advance(600)
        producer.open = True
        await on.advance(6 + 15 * 30)
        assert len(producer()) == 15


async def test_another_group_is_not_asked(tmp_path: Path) -> None:
    async with scene(tmp_path) as on:
        other = on.producer("other")
        await on.half("a")
        await on.half("b", PGROUP="")
        on.pending()
        for _ in range(6):
            on.sessions.register(on.sessions.producers("other")[0])
            await on.timers.advance(20)
        assert other() == []


async def test_immunity_delays_the_first_check_only(tmp_path: Path) -> None:
    async with scene(tmp_path) as on:
        producer = on.producer()
        await on.half("late", CHECK_IMMUNITY_TIME_IN_SECONDS="100")
        await on.half("soon", CHECK_IMMUNITY_TIME_IN_SECONDS="0")
        await on.half("odd", CHECK_IMMUNITY_TIME_IN_SECONDS="-7")
        on.pending()
        await on.advance(0.01)
        assert producer() == ["soon"]
        await on.advance(6)
        assert producer() == ["odd"]
        await on.advance(93)
        assert "late" not in producer()
        await on.advance(1)
        assert producer() == ["late"]


async def test_checks_go_on_after_a_restart(tmp_path: Path) -> None:
    timers, positions = ManualTimers(), Positions()
    async with scene(tmp_path, positions, timers=timers) as on:
        producer = on.producer()
        await on.half("a")
        on.pending()
        await on.advance(6 + 30)
        assert len(producer()) == 2
        await on.advance(10)
    async with scene(tmp_path, positions, timers=timers) as on:
        assert [(one.transaction_id, one.checks) for one in on.transactions.pending()] == [("a", 2)]
        producer = on.producer()
        await on.advance(19.8)
        assert producer() == []
        await on.advance(0.2)
        assert producer() == ["a"]
        await on.advance(13 * 30)
        assert len(on.delivered(DISCARD_TOPIC, 0)) == 1
        assert len(producer()) == 12


@pytest.mark.slow
async def test_what_nobody_can_be_asked_about_is_given_up_before_its_file_goes(tmp_path: Path) -> None:
    rules = TransactionRules(reserved_ms=HOUR * 1000)
    async with scene(tmp_path, rules=rules) as on:
        await on.half("a")
        on.pending()
        await on.advance(HOUR * 0.9 - 60)
        assert on.pending() == ["a"]
        await on.advance(90)
        assert on.pending() == []
        assert [one.body for one in on.delivered(DISCARD_TOPIC, 0)] == [b"a"]


async def test_many_are_asked_about_in_their_order(tmp_path: Path) -> None:
    async with scene(tmp_path, mapped_file_size_commit_log=1 << 20) as on:
        producer = on.producer()
        keys = [f"{number}" for number in range(250)]
        for key in keys:
            await on.half(key)
        on.pending()
        await on.advance(6.5)
        assert producer() == keys


async def test_what_holds_the_positions_back_is_appended_again(tmp_path: Path) -> None:
    """Or a start would have to read all that has ended since."""
    from tandemmq.store.delivery.transactions import checking

    positions = Positions()
    before, checking.MOST_BEHIND = checking.MOST_BEHIND, 20
    try:
        async with scene(tmp_path, positions) as on:
            await on.half("patient", CHECK_IMMUNITY_TIME_IN_SECONDS="1000000")
            for number in range(30):
                await on.end(await on.half(f"{number}"))
            await on.advance(1)
            assert on.saved() == (31, 31)
            assert on.pending() == ["patient"]
            assert on.transactions.pending()[0].checks == 0
            await on.advance(600)
    finally:
        checking.MOST_BEHIND = before
    async with scene(tmp_path, positions) as on:
        assert on.pending() == ["patient"]
        await on.end("patient")
        assert on.bodies()[-1] == b"patient"


async def test_the_clock_of_the_machine_goes_back(tmp_path: Path) -> None:
    """A half message seems to come from the future: it is asked about after its time-out all the same."""
    timers, positions = ManualTimers(), Positions()
    async with scene(tmp_path, positions, timers=timers) as on:
        await on.half("a")
    timers.now -= 500
    async with scene(tmp_path, positions, timers=timers) as on:
        producer = on.producer()
        await on.advance(6)
        assert producer() == ["a"]
