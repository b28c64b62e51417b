"""Stores whose transactions a Java broker began: carried on, in each form that RocketMQ gave them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.documents import java_json
from tandemmq.store.broker.preparing import HALF_TOPIC
from tandemmq.store.delivery.errors import TransactionEnded
from tandemmq.store.delivery.journal.facts import Moved
from tandemmq.store.delivery.journal.images import read_offsets
from tandemmq.store.delivery.transactions.half_log import HALF_PLACE, OP_PLACE
from tandemmq.store.delivery.transactions.half_message import DISCARD_TOPIC, OP_TOPIC
from tandemmq.store.format import properties as names
from tandemmq.store.format.message import Message
from tandemmq.store.format.unit import pack_unit
from tests.golden import copy_of, golden_store
from tests.unit.broker.broker_kit import HOST
from tests.unit.delivery.transaction_kit import COMMIT, ROLLBACK, Positions, Scene, scene

OF_GOLDEN: dict[str, Any] = {
    "mapped_file_size_commit_log": 1 << 20,
    "mapped_file_size_consume_queue": 10_000,
    "max_hash_slot_num": 2_000,
    "max_index_num": 8_000,
}


def append(on: Scene, topic: str, body: bytes, **given: str) -> int:
    """What a Java broker appends, as it does."""
    message = Message(topic, 0, body, names.encode(given, trailing=False), born_host=HOST, store_host=HOST)
    return on.kit.store.append(message).queue_offset


def java_half(on: Scene, key: str, **more: str) -> int:
    given = {"TRAN_MSG": "true", "PGROUP": "g", "UNIQ_KEY": key, "REAL_TOPIC": "orders", "REAL_QID": "1", **more}
    return append(on, HALF_TOPIC, key.encode(), **given)


def java_op(on: Scene, body: str) -> int:
    return append(on, OP_TOPIC, body.encode(), TAGS="d")


@pytest.mark.parametrize("form", ["{0}", "{0},"])
async def test_ops_of_one_offset(tmp_path: Path, form: str) -> None:
    async with scene(tmp_path) as on:
        for key in "abc":
            java_half(on, key)
        java_op(on, form.format(1))
    async with scene(tmp_path) as on:
        assert on.pending() == ["a", "c"]
        await on.end("b", COMMIT)  # nobody knows how it ended: fine, and nothing is done
        await on.end("b", ROLLBACK)
        assert on.bodies() == []


async def test_ops_of_many_offsets(tmp_path: Path) -> None:
    """RocketMQ 5.1 and later; what is no number is passed."""
    positions = Positions()
    async with scene(tmp_path) as on:
        for number in range(8):
            java_half(on, f"{number}")
        java_op(on, "0,2,3,")
        java_op(on, "")
        java_op(on, ",x,-1,99999999999999999999,5,")
        java_op(on, "700")  # of a half message that is not there: none may be taken for it later
    async with scene(tmp_path, positions) as on:
        assert on.pending() == ["1", "4", "6", "7"]
        await on.timers.advance(1)
        assert on.saved() == (1, 0)
        await on.end("1", COMMIT)
        await on.timers.advance(1)
        assert on.saved() == (4, 2)
    async with scene(tmp_path, positions) as on:
        assert on.pending() == ["4", "6", "7"]
        assert on.bodies() == [b"1"]


async def test_what_was_appended_again_for_a_check_is_one_transaction(tmp_path: Path) -> None:
    """A Java broker names only the newest record when it ends, and nothing of the one before when it checks."""
    async with scene(tmp_path) as on:
        java_half(on, "ended")
        java_half(on, "ended", TRANSACTION_CHECK_TIMES="1")
        java_half(on, "open")
        java_half(on, "open", TRANSACTION_CHECK_TIMES="1")
        java_half(on, "open", TRANSACTION_CHECK_TIMES="2")
        java_op(on, "1")
    async with scene(tmp_path) as on:
        assert [(one.transaction_id, one.checks) for one in on.transactions.pending()] == [("open", 2)]
        await on.end("open")
        assert on.bodies() == [b"open"]
        assert [one.body for one in on.delivered(OP_TOPIC, 0)] == [b"1", b"2", b"3", b"4"]


async def test_what_was_put_back_for_its_immunity_knows_its_first_record(tmp_path: Path) -> None:
    """An op may name that one; and what we write names both."""
    positions = Positions()
    async with scene(tmp_path) as on:
        java_half(on, "ended")
        java_half(on, "open")
        for key, first in (("ended", "0"), ("open", "1")):
            java_half(on, key, TRAN_PREPARED_QUEUE_OFFSET=first, CHECK_IMMUNITY_TIME_IN_SECONDS="60")
        java_op(on, "0")
    positions.ledger.apply(Moved(HALF_PLACE, 2, 0))
    async with scene(tmp_path, positions) as on:
        assert on.pending() == ["open"]
        await on.end("open")
        assert [one.body for one in on.delivered(OP_TOPIC, 0)] == [b"0", b"3", b"1"]


async def test_a_position_beyond_the_end_is_put_right(tmp_path: Path) -> None:
    """Or half messages with numbers below it would never be asked about."""
    positions = Positions()
    positions.ledger.apply(Moved(HALF_PLACE, 50, 0))
    async with scene(tmp_path, positions) as on:
        assert on.saved()[0] == 0
        await on.half("a")
        await on.timers.advance(1)
    async with scene(tmp_path, positions) as on:
        assert on.pending() == ["a"]


async def test_a_half_message_whose_unit_is_wrong_is_not_passed(tmp_path: Path) -> None:
    """Its unit is put right from the log. What is passed is never asked about again, also after the next start."""
    async with scene(tmp_path) as on:
        await on.half("a")
        await on.half("b")
        await on.transactions.stop()
        queue = on.kit.store.queue(HALF_TOPIC, 0)
        assert queue is not None
        queue.put(1, pack_unit(7, 200, 0))
        on.transactions.start()
        await on.timers.advance(0)
        assert on.pending() == ["a", "b"]


async def test_half_messages_that_expire_while_they_are_read_are_passed(tmp_path: Path) -> None:
    """Or none is ever known, and no transaction can be ended."""
    async with scene(tmp_path) as on:
        for number in range(101):
            await on.half(f"{number}")
        await on.transactions.stop()
        queue, following = on.kit.store.queue(HALF_TOPIC, 0), on.transactions._following
        assert queue is not None
        assert queue.units_per_file == 100
        while following._begin():
            pass
        queue._starts.remove(0)
        queue.min_offset = 100
        while following._read_ops() or following._read_halves():
            pass
        assert [one.half.transaction_id for one in on.transactions.halves] == ["100"]


async def test_half_messages_without_what_they_need(tmp_path: Path) -> None:
    async with scene(tmp_path) as on:
        append(on, HALF_TOPIC, b"no topic", UNIQ_KEY="x")
        append(on, HALF_TOPIC, b"nothing", REAL_TOPIC="orders", REAL_QID="many")
        append(on, OP_TOPIC, b"\xff\xfe")
    async with scene(tmp_path) as on:
        (one,) = on.transactions.pending()
        await on.advance(100)
        await on.end(one.handle, group="")
        assert on.bodies(queue=0) == [b"nothing"]


@pytest.mark.parametrize("name", ["clean", "aged"])
async def test_the_transactions_of_a_real_broker(tmp_path: Path, name: str) -> None:
    """What its clients saw end is over; what they left open is asked about, or was given up."""
    golden = golden_store(name)
    root = copy_of(golden / "store", tmp_path)
    expected = json.loads((golden / "expected.json").read_text())
    halves = [one for one in expected["messages"] if one["kind"] == "half"]
    left = {one["uniqKey"] for one in halves if one["end"] == "pending"}
    positions = Positions()
    for one in read_offsets(java_json.loads((root / "config" / "consumerOffset.json").read_bytes())):
        positions.ledger.apply(Moved(*one))
    for place in (HALF_PLACE, OP_PLACE):
        progress = positions.ledger.progress(place)
        assert progress is not None
        assert progress.cursor > 0
    async with scene(root, positions, **OF_GOLDEN) as on:
        await on.kit.store.rebuilt()
        pending, given_up = set(on.pending()), {one.unique_key for one in on.delivered(DISCARD_TOPIC, 0)}
        assert pending | given_up >= left
        assert pending <= left
        assert pending
        for key in sorted(pending):
            await on.end(key, COMMIT, group="")
        for key in pending:
            with pytest.raises(TransactionEnded):
                await on.end(key, ROLLBACK, group="")
    async with scene(root, positions, **OF_GOLDEN) as on:
        assert on.pending() == []
