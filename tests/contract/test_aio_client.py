"""The asyncio client: the same calls, awaited."""

from collections.abc import AsyncIterator

import pytest

from tandemmq.client import Outgoing, RequestFailed
from tandemmq.client.aio import StoreClient
from tests.contract.store_process import StoreProcess


async def test_every_call(shared_store: StoreProcess) -> None:
    async with StoreClient(shared_store.address) as store:
        receipt = await store.send("aio", b"one", tag="t", keys=["k"], queue_id=0)
        await store.send_batch([Outgoing("aio", b"two", queue_id=0), Outgoing("aio-too", b"")])
        encoded = await store.send_encoded([Outgoing("aio", b"three"), Outgoing("aio", b"four")], queue_id=0)
        assert (encoded.first_queue_offset, encoded.count) == (2, 2)

        async def batches() -> AsyncIterator[list[Outgoing]]:
            for number in range(10):
                yield [Outgoing("aio", b"%d" % number)] * 2

        counts = [answer.count async for answer in store.send_stream("aio", batches(), queue_id=0)]
        assert counts == [2] * 10
        pulled = await store.pull("aio", 0, 0)
        assert [record.body for record in pulled.records[:4]] == [b"one", b"two", b"three", b"four"]
        streamed: list[bytes] = []
        async for some in store.pull_stream("aio", 0, 0, max_messages=7):
            streamed += [record.body for record in some.records]
            if some.next_offset == 24:
                break
        assert streamed == [record.body for record in pulled.records]
        assert await store.view(receipt.message_id) == pulled.records[0]
        assert await store.query("aio", key="k") == [pulled.records[0]]
        assert (await store.offsets("aio", 0))[0].max_offset == 24
        assert (await store.queues("aio")).topics[0].topic == "aio"


async def test_refusals(shared_store: StoreProcess) -> None:
    async with StoreClient(shared_store.address) as store:
        with pytest.raises(RequestFailed) as raised:
            await store.send("a b", b"")
        assert (raised.value.code, raised.value.status) == ("INVALID_ARGUMENT", "MESSAGE_ILLEGAL")

        async def bad() -> AsyncIterator[list[Outgoing]]:
            yield [Outgoing("a b", b"")]

        with pytest.raises(RequestFailed, match="'a b'"):
            _ = [answer async for answer in store.send_stream("a b", bad())]
        with pytest.raises(ValueError, match="either"):
            await store.query("aio")
