"""The broker port: the order of a send, who may write where, and what is counted."""

from pathlib import Path

import pytest

from tandemmq.store.broker.errors import ForbiddenTopic, IllegalMessage
from tandemmq.store.broker.group_transfer import InSyncReplicasNotEnough, PutStatus, ReplicationRules
from tandemmq.store.broker.pulled import PullStatus, Wanted
from tandemmq.store.broker.send import NewBatch, NewMessage
from tandemmq.store.format.batch import encode_client_batch
from tests.unit.broker.broker_kit import HOST, broker, records

DELAYED = "SCHEDULE_TOPIC_XXXX"


def new(topic: str = "orders", body: bytes = b"x", **properties: str) -> NewMessage:
    return NewMessage(topic, HOST, body, dict(properties), 0)


async def test_a_send_that_would_wait_for_too_few_replicas_is_refused_and_makes_no_topic(tmp_path: Path) -> None:
    async with broker(tmp_path, broker_role="SYNC_MASTER") as kit:
        kit.broker.acknowledgement.transfer._rules = ReplicationRules(min_in_sync=2)
        for refused in (new(), new(WAIT="true")):
            with pytest.raises(InSyncReplicasNotEnough):
                await kit.broker.send(refused)
        with pytest.raises(InSyncReplicasNotEnough):
            await kit.broker.append([new(WAIT="false"), new()], [])
        with pytest.raises(InSyncReplicasNotEnough):
            await kit.broker.append([], [NewBatch("orders", HOST, encode_client_batch([(0, b"x", b"")]), 0)])
        with pytest.raises(IllegalMessage):  # what is wrong with it comes first: to wait would not help
            await kit.broker.send(new(body=b"x" * 100_000))
        assert (kit.store.commit_log.max_offset, kit.topics.get("orders")) == (0, None)
        for taken in (await kit.broker.send(new(), wait=False), await kit.broker.send(new(WAIT=" False "))):
            assert taken.status is PutStatus.PUT_OK
        sent = await kit.broker.append([new(WAIT="false"), new(WAIT="false")], [])
        assert await kit.broker.acknowledged(sent) is PutStatus.PUT_OK


async def test_clients_may_read_what_the_broker_alone_may_write(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        with pytest.raises(ForbiddenTopic):
            await kit.broker.send(new(DELAYED))
        receipt = await kit.broker.send(new(body=b"later", DELAY="1"))
        await kit.dispatched()
        with pytest.raises(ForbiddenTopic):  # also now that it is there
            await kit.broker.send(new(DELAYED))
        (record,) = records(await kit.broker.pull(Wanted(DELAYED, 0, 0, 32, 1 << 20)))
        assert record.physical_offset == receipt.place.physical_offset
        assert record.properties["REAL_TOPIC"] == "orders"
    async with broker(tmp_path) as kit:
        assert kit.pull(DELAYED).count == 1


async def test_what_comes_and_goes_is_counted_once_by_whoever_asks(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        size = (await kit.broker.send(new())).place.size
        sent = await kit.broker.append(
            [new(), new(), new("bills")], [NewBatch("orders", HOST, encode_client_batch([(0, b"x", b"")] * 2), 0)]
        )
        assert await kit.broker.acknowledged(sent) is PutStatus.PUT_OK
        await kit.dispatched()
        nothing = await kit.broker.pull(Wanted("orders", 0, 5, 32, 1 << 20, group="g"))
        found = await kit.broker.pull(Wanted("orders", 0, 0, 2, 1 << 20, group="g"))
        assert (nothing.status, found.status) == (PullStatus.OFFSET_OVERFLOW_ONE, PullStatus.FOUND)
        counted = {
            (sample.name, sample.labels["topic"]): sample.value
            for metric in kit.traffic.collect()
            for sample in metric.samples
            if sample.name in ("rocketmq_messages_in_total", "rocketmq_messages_out_total")
        }
        assert counted == {
            ("rocketmq_messages_in_total", "orders"): 5,
            ("rocketmq_messages_in_total", "bills"): 1,
            ("rocketmq_messages_out_total", "orders"): 2,
        }
        assert size < 2 * len(found.records)


async def test_messages_of_one_group_lie_in_one_queue_and_groups_in_several(tmp_path: Path) -> None:
    async with broker(tmp_path) as kit:
        queues: dict[str, set[int]] = {}
        for number in range(40):
            name = f"customer-{number % 10}"
            given = NewMessage("orders", HOST, b"x", {"__SHARDINGKEY": name})
            queues.setdefault(name, set()).add((await kit.broker.send(given)).ready.queue_id)
        assert all(len(found) == 1 for found in queues.values())
        assert len(set.union(*queues.values())) > 1
        named = NewMessage("orders", HOST, b"x", {"__SHARDINGKEY": "customer-1"}, queue_id=3)
        assert (await kit.broker.send(named)).ready.queue_id == 3
