"""A broker asks its clients; they are there for it at each store that they know."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import grpc
import pytest

from tandemmq.client import aio
from tandemmq.client.cluster import Cluster
from tandemmq.store.v1 import store_pb2

SLAVE, MASTER = "a:1", "b:2"


class Asking:
    """Stores that note who attends; the slave names the master."""

    def __init__(self) -> None:
        self.attended: list[str] = []
        self.news = asyncio.Event()

    def stubs(self, address: str) -> Any:
        async def attend(_heartbeats: object) -> AsyncIterator[object]:
            self.attended.append(address)
            self.news.set()
            await asyncio.Event().wait()
            yield None

        async def send(_request: object, timeout: float) -> store_pb2.SendResponse:
            if address == SLAVE:
                told = grpc.aio.Metadata(("rocketmq-status", "SERVICE_NOT_AVAILABLE"), ("tandem-master", MASTER))
                raise grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), told, "a slave")
            return store_pb2.SendResponse(receipt=store_pb2.SendReceipt(status=store_pb2.PUT_OK))

        return SimpleNamespace(delivery=SimpleNamespace(Attend=attend), store=SimpleNamespace(Send=send))


async def test_a_master_that_is_told_is_attended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else nobody answers what it asks about the transactions of a producer that was given the slave only."""
    asking = Asking()
    monkeypatch.setattr(Cluster, "stubs", lambda _self, address: asking.stubs(address))
    async with aio.Producer(SLAVE, group="shop", check=lambda record: aio.TransactionState.UNKNOWN) as producer:
        await asyncio.wait_for(asking.news.wait(), 10)
        assert asking.attended == [SLAVE]
        asking.news.clear()
        await producer.send("t", b"x")
        await asyncio.wait_for(asking.news.wait(), 10)
        await producer.send("t", b"x")
        assert asking.attended == [SLAVE, MASTER]
