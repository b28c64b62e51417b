"""A message that begins a transaction: stored where nobody who asks for its topic sees it, as RocketMQ does."""

from pathlib import Path

import pytest

from tandemmq.store.broker.errors import ForbiddenTopic, IllegalMessage, NotSupported, UnknownQueue
from tandemmq.store.broker.preparing import HALF_TOPIC
from tandemmq.store.broker.send import NewBatch, NewMessage
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.format.batch import ClientMessage, encode_client_batch
from tests.unit.broker.broker_kit import HOST, broker, records


def half(topic: str = "orders", **properties: str) -> NewMessage:
    return NewMessage(topic, HOST, b"body", {"TRAN_MSG": "true", "PGROUP": "g", **properties}, queue_id=2, flag=7)


async def test_it_lies_in_the_half_topic_and_says_where_it_belongs(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        await kit.broker.send(half())
        given = half(UNIQ_KEY="id", TAGS="t", DELAY="3", TIMER_DELAY_MS="5", TRANSACTION_CHECK_TIMES="9")
        given.sys_flag = 5
        receipt = await kit.broker.send(given)
        assert (receipt.ready.transaction, receipt.ready.unique_key) == (True, "id")
        assert (receipt.place.queue_offset, receipt.ready.queue_id) == (1, 2)
        assert kit.topics.get("orders") is not None
        at = receipt.place.physical_offset
    async with broker(tmp_path) as kit:
        assert kit.store.queue("orders", 2) is None
        one = records(kit.pull(HALF_TOPIC))[1]
        assert (one.physical_offset, one.queue_offset, one.body, one.flag, one.sys_flag) == (at, 1, b"body", 7, 1)
        assert one.properties == {
            "TRAN_MSG": "true", "PGROUP": "g", "UNIQ_KEY": "id", "TAGS": "t",
            "__transactionId__": "id", "REAL_TOPIC": "orders", "REAL_QID": "2",
        }  # fmt: skip


async def test_without_a_key_it_gets_one(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        receipt = await kit.broker.send(half())
        (one,) = records(kit.pull(HALF_TOPIC))
        assert one.properties["__transactionId__"] == one.unique_key == receipt.ready.unique_key


async def test_a_copy_within_the_window_names_the_first(tmp_path: Path) -> None:
    async with broker(tmp_path, window=60_000) as kit:
        first = await kit.broker.send(half(UNIQ_KEY="id"))
        copy = await kit.broker.send(half(UNIQ_KEY="id"))
        assert copy.place == first.place
        assert copy.ready.copy
        assert copy.ready.transaction


async def test_it_is_checked_as_any_message_of_its_topic(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        kit.topics._entries["read"] = TopicConfig("read", 4, 4, 4)
        with pytest.raises(ForbiddenTopic):
            await kit.broker.send(half("read"))
        with pytest.raises(ForbiddenTopic):
            await kit.broker.send(half(HALF_TOPIC))
        bad = half()
        bad.queue_id = 9
        with pytest.raises(UnknownQueue):
            await kit.broker.send(bad)
        with pytest.raises(IllegalMessage):
            await kit.broker.send(NewMessage("orders", HOST, sys_flag=4))
        assert kit.store.commit_log.max_offset == 0


async def test_what_comes_back_is_no_transaction(tmp_path: Path) -> None:
    """RocketMQ: a consumer's send-back of a message that was once committed still says TRAN_MSG."""
    async with broker(tmp_path) as kit:
        again = half("%RETRY%g")
        again.reconsume_times = 1
        for given in (again, NewMessage("orders", HOST, properties={"TRAN_MSG": "false"})):
            assert not (await kit.broker.send(given)).ready.transaction
        assert kit.store.queue(HALF_TOPIC, 0) is None


async def test_not_within_an_encoded_batch(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        blob = encode_client_batch([ClientMessage(0, b"x", b"TRAN_MSG\x01true\x02")])
        with pytest.raises(NotSupported, match="encoded batch"):
            await kit.broker.append([], [NewBatch("orders", HOST, blob, 0)])
