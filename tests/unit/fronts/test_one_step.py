"""Sends that need not wait for the disk are answered without being suspended: the transport makes no task for them."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from tandemmq.store.assembly import make_broker, open_topics
from tandemmq.store.broker.errors import IllegalMessage
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.format.batch import encode_client_batch
from tandemmq.store.format.host import Host
from tandemmq.store.format.message_id import encode_offset_id
from tandemmq.store.fronts.native.store_servicer import Context, StoreServicer
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.settings import load_settings
from tandemmq.store.v1 import store_pb2
from tandemmq.store.v1.message_pb2 import EncodedBatch, Message
from tests.unit.broker.broker_kit import in_one_step


class _Peer:
    """The part of a call's context that sends use."""

    def peer(self) -> str:
        return "ipv4:10.1.2.3:4567"


CONTEXT = cast(Context, _Peer())


@asynccontextmanager
async def _service(root: Path, **settings: object) -> AsyncIterator[tuple[StoreServicer, MessageStore]]:
    file = root / "broker.conf"
    given = {
        "storePathRootDir": root / "store",
        "brokerIP1": "10.0.0.1",
        "mappedFileSizeCommitLog": 1 << 20,
        "maxHashSlotNum": 50,
        "maxIndexNum": 500,
        "compiledWalker": "never",
    }
    file.write_text("".join(f"{name}={value}{os.linesep}" for name, value in {**given, **settings}.items()))
    loaded = load_settings(file, "server")
    servicer = StoreServicer(loaded.service_limits(), StoreMetrics("cluster", "node"))
    store = MessageStore.open(loaded.store_config(), observer=servicer.metrics)
    store.start()
    topics, _ = open_topics(loaded)
    await topics.add([TopicConfig("orders", 4, 4), TopicConfig("bills", 4, 4)])
    servicer.attach(make_broker(loaded, store, topics, servicer.metrics))
    yield servicer, store
    await store.close()


async def test_a_send_is_answered_in_one_step(tmp_path: Path) -> None:
    """Also those of batches; but the first one, which makes a topic, waits for the topic's file."""
    async with _service(tmp_path) as (servicer, store):
        for number in range(3):
            request = store_pb2.SendRequest(message=Message(topic="orders", queue_id=1, body=b"x", tag="t"))
            receipt = in_one_step(servicer.Send(request, CONTEXT)).receipt
            assert receipt == store_pb2.SendReceipt(
                status=store_pb2.PUT_OK,
                message_id=encode_offset_id(Host("10.0.0.1", 10911), receipt.physical_offset),
                unique_key=receipt.unique_key,
                queue_id=1,
                queue_offset=number,
                physical_offset=receipt.physical_offset,
                store_timestamp=receipt.store_timestamp,
            )
        many = store_pb2.SendBatchRequest(
            messages=[Message(topic="orders", queue_id=1), Message(topic="bills", queue_id=0, keys=["k"])],
            batches=[EncodedBatch(topic="orders", queue_id=1, messages=encode_client_batch([(0, b"x", b"")] * 4))],
        )
        answer = in_one_step(servicer.SendBatch(many, CONTEXT))
        assert [(one.queue_offset, one.queue_id) for one in answer.receipts] == [(3, 1), (0, 0)]
        assert [(one.first_queue_offset, one.count) for one in answer.batch_receipts] == [(4, 4)]
        queue = store.queue("orders", 1)
        assert queue is not None
        assert queue.max_offset == 8


async def test_a_refusal_is_one_step_too_and_counted(tmp_path: Path) -> None:
    """By its RocketMQ name."""
    async with _service(tmp_path) as (servicer, _store):
        with pytest.raises(IllegalMessage):
            in_one_step(servicer.Send(store_pb2.SendRequest(message=Message(topic="")), CONTEXT))
        assert set(servicer.metrics._calls) == {("grpc", "Send", "MESSAGE_ILLEGAL", False)}


async def test_a_send_that_must_be_durable_waits(tmp_path: Path) -> None:
    """And one that need not be does not."""
    async with _service(tmp_path, flushDiskType="SYNC_FLUSH", syncFlushTimeout="60000") as (servicer, store):
        quick = store_pb2.SendRequest(message=Message(topic="orders"), no_wait=True)
        assert in_one_step(servicer.Send(quick, CONTEXT)).receipt.status == store_pb2.PUT_OK
        durable = store_pb2.SendRequest(message=Message(topic="orders"))
        answer = await asyncio.wait_for(servicer.Send(durable, CONTEXT), 60)
        assert answer.receipt.status == store_pb2.PUT_OK
        assert store.flushed_offset > answer.receipt.physical_offset
