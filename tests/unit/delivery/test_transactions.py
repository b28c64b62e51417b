"""How transactions end: committed, rolled back, twice, the other way, unknown; and after a restart."""

from pathlib import Path

import pytest

from tandemmq.store.broker.preparing import HALF_TOPIC
from tandemmq.store.delivery.errors import NotDelivering, TransactionEnded, UnknownTransaction
from tandemmq.store.delivery.queue_cursor import QueueCursor
from tandemmq.store.delivery.transactions.half_message import OP_TOPIC
from tandemmq.store.log.errors import QueueInDoubt
from tests.unit.broker.broker_kit import HOST
from tests.unit.delivery.transaction_kit import COMMIT, ROLLBACK, UNKNOWN, Positions, scene


async def test_a_committed_message_is_delivered_once_as_its_producer_gave_it(tmp_path: Path) -> None:
    async with scene(tmp_path) as on:
        handle = await on.half("a", body=b"order", TAGS="t", KEYS="k", DELAY="3", mine="yes")
        assert on.delivered() == []
        assert on.pending() == ["a"]
        await on.end(handle)
        (one,) = on.delivered()
        assert (one.body, one.queue_id, one.sys_flag, one.born_host) == (b"order", 1, 8, HOST)
        given = {"TAGS": "t", "KEYS": "k", "mine": "yes", "UNIQ_KEY": "a", "PGROUP": "g"}
        assert one.properties == given | {"TRAN_MSG": "true", "__transactionId__": "a"}, "consumers know it by these"
        assert one.prepared_transaction_offset == int(handle.split("~")[2])
        assert on.pending() == []
    async with scene(tmp_path) as on:
        assert on.bodies() == [b"order"]
        assert on.pending() == []


async def test_op_records_have_the_form_that_every_rocketmq_reads(tmp_path: Path) -> None:
    async with scene(tmp_path) as on:
        for key, ending in (("a", COMMIT), ("b", ROLLBACK)):
            await on.end(await on.half(key), ending)
        ops = on.delivered(OP_TOPIC, 0)
        assert [(one.body, one.tags, one.sys_flag) for one in ops] == [(b"0", "d", 0), (b"1", "d", 0)]


async def test_a_message_that_was_rolled_back_is_never_delivered(tmp_path: Path) -> None:
    async with scene(tmp_path) as on:
        await on.end(await on.half("a"), ROLLBACK)
    async with scene(tmp_path) as on:
        assert (on.bodies(), on.pending()) == ([], [])


@pytest.mark.parametrize("again", [False, True])
async def test_the_same_ending_again_is_fine_and_the_other_is_not(tmp_path: Path, again: bool) -> None:
    positions = Positions()
    async with scene(tmp_path, positions) as on:
        a, b = await on.half("a"), await on.half("b")
        await on.end(a, COMMIT)
        await on.end(b, ROLLBACK)
        if not again:
            await _twice(on, a, b)
    if again:
        async with scene(tmp_path, positions) as on:
            await _twice(on, a, b)


async def _twice(on, a: str, b: str) -> None:  # type: ignore[no-untyped-def]
    await on.end(a, COMMIT)
    await on.end("a", COMMIT)
    await on.end(b, ROLLBACK)
    with pytest.raises(TransactionEnded, match="as commit"):
        await on.end(a, ROLLBACK)
    with pytest.raises(TransactionEnded, match="as rollback"):
        await on.end("b", COMMIT)
    assert on.bodies() == [b"a"]


async def test_unknown_changes_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path) as on:
        handle = await on.half("a")
        before = on.kit.store.commit_log.max_offset
        await on.end(handle, UNKNOWN)
        assert on.kit.store.commit_log.max_offset == before
        assert on.pending() == ["a"]


async def test_what_nobody_knows_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    async with scene(tmp_path) as on:
        handle = await on.half("a")
        before = on.kit.store.commit_log.max_offset
        for bad in ("", "b", "t~0~0~b", "t~x~0~a", "t~0", "t~999~999999~%zz", "\0", "t~-1~5~a"):
            with pytest.raises(UnknownTransaction):
                await on.end(bad)
        with pytest.raises(UnknownTransaction, match="group other"):
            await on.end(handle, group="other")
        assert (on.kit.store.commit_log.max_offset, on.pending()) == (before, ["a"])
        await on.end(handle, ROLLBACK)
        with pytest.raises(UnknownTransaction, match="group other"):
            await on.end(handle, ROLLBACK, group="other")


async def test_what_comes_after_a_half_message_that_cannot_be_read_now_is_ended_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(cursor: QueueCursor, _: object) -> None:
        raise QueueInDoubt(f"as while a record of {cursor.topic} is fetched from a replica")

    async with scene(tmp_path) as on:
        known = await on.half("a")
        assert on.pending() == ["a"]
        with monkeypatch.context() as damaged:
            damaged.setattr(QueueCursor, "record", unreadable)
            handle = await on.half("b")
            for one in (handle, "b"):
                with pytest.raises(NotDelivering, match="b cannot be ended now"):
                    await on.end(one)
            await on.end(known)
            await on.end(known)
            with pytest.raises(TransactionEnded):
                await on.end(known, ROLLBACK)
        await on.end(handle)
        assert on.bodies() == [b"a", b"b"]
        with pytest.raises(UnknownTransaction):
            await on.end("c")


async def test_the_bare_id_is_enough_and_the_group_may_be_missing(tmp_path: Path) -> None:
    async with scene(tmp_path) as on:
        await on.half("a")
        await on.end("a", COMMIT, group="")
        odd = "t~1~2~odd ~%/"
        await on.half(odd)
        await on.end(odd, COMMIT)
        handle = await on.half("x~y z")
        assert handle.endswith("~x~y%20z")
        await on.end(handle, COMMIT)
        assert on.bodies() == [b"a", odd.encode(), b"x~y z"]


async def test_two_producers_with_the_same_id_do_not_end_each_other(tmp_path: Path) -> None:
    async with scene(tmp_path) as on:
        mine = await on.half("a", body=b"mine")
        theirs = await on.half("a", body=b"theirs", PGROUP="h")
        await on.end(theirs, ROLLBACK, group="h")
        await on.end(mine, COMMIT)
        assert on.bodies() == [b"mine"]


async def test_a_half_message_that_was_sent_twice_is_delivered_once(tmp_path: Path) -> None:
    """A producer that heard nothing sends again, under the same id: both records are one transaction."""
    async with scene(tmp_path) as on:
        await on.half("a")
        await on.end(await on.half("a"))
        assert (on.bodies(), on.pending()) == ([b"a"], [])
        assert [one.body for one in on.delivered(OP_TOPIC, 0)] == [b"0", b"1"]
    async with scene(tmp_path) as on:
        assert on.pending() == []


async def test_positions_never_pass_what_is_pending(tmp_path: Path) -> None:
    positions = Positions()
    async with scene(tmp_path, positions) as on:
        handles = [await on.half(f"{number}") for number in range(10)]
        for number in (0, 1, 2, 5, 9):
            await on.end(handles[number])
        await on.timers.advance(1)
        assert on.saved() == (3, 3)  # ops 3 and 4 name 5 and 9
    async with scene(tmp_path, positions) as on:
        assert on.pending() == ["3", "4", "6", "7", "8"]
        for number in (3, 4, 6):
            await on.end(handles[number], ROLLBACK)
        await on.timers.advance(1)
        assert on.saved() == (7, 4)
        for number in (7, 8):
            await on.end(handles[number])
    async with scene(tmp_path, positions) as on:
        assert on.saved() == (10, 10)
        assert on.pending() == []
        assert sorted(on.bodies()) == [b"0", b"1", b"2", b"5", b"7", b"8", b"9"]


async def test_before_both_topics_are_read_nothing_can_be_ended(tmp_path: Path) -> None:
    async with scene(tmp_path) as on:
        handle = await on.half("a")
        await on.transactions.stop()
        with pytest.raises(NotDelivering):
            await on.end(handle)
        on.transactions.start()
        await on.timers.advance(0)
        await on.end(handle)
        assert on.bodies() == [b"a"]


async def test_with_flushes_an_ending_waits_for_the_disk(tmp_path: Path) -> None:
    async with scene(tmp_path, flush_disk_type="SYNC_FLUSH") as on:
        handle = await on.half("a")
        await on.end(handle)
        assert on.kit.store.flushed_offset == on.kit.store.commit_log.max_offset
        hasty = await on.half("b", WAIT="false")
        await on.end(hasty)
        assert on.bodies() == [b"a", b"b"]


async def test_the_half_topic_is_only_followed(tmp_path: Path) -> None:
    async with scene(tmp_path) as on:
        for number in range(300):
            await on.half(f"{number}")
        assert len(on.pending()) == 300
        assert on.transactions.pending_by_topic() == {"orders": 300}
        assert len(on.transactions.pending(10)) == 10
        assert len(on.delivered(HALF_TOPIC, 0)) == 300
