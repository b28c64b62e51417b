"""Observers that fail: the client's work goes on as without them."""

import asyncio
from collections.abc import Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager, suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tandemmq.client import ClientObserver, MessageContent, NotReplicated, Outgoing, Sent, aio
from tandemmq.client.cluster import Cluster
from tandemmq.client.holding import Holding
from tandemmq.client.observing import Ended, observed_handling
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.v1 import store_pb2
from tests.manual_timers import ManualTimers

MESSAGE = cast(MessageContent, SimpleNamespace(topic="t"))


class Broken(ClientObserver):
    """Fails in everything."""

    def sending(self, topic: str, properties: MutableMapping[str, str]) -> Ended:
        def ended(sent: Sent | None, error: BaseException | None) -> None:
            raise KeyError("at the end")

        return ended

    def settled(self, group: str, topic: str, ending: str) -> None:
        raise KeyError("settled")

    @contextmanager
    def handling(self, group: str, message: MessageContent) -> Iterator[None]:
        try:
            yield
        finally:
            raise KeyError("handled")


class Unmade(ClientObserver):
    """Cannot even begin."""

    def sending(self, topic: str, properties: MutableMapping[str, str]) -> Ended:
        raise KeyError("sending")

    def handling(self, group: str, message: MessageContent) -> AbstractContextManager[None]:
        raise KeyError("handling")


class Hiding(ClientObserver):
    """Would make a success of a failure."""

    @contextmanager
    def handling(self, group: str, message: MessageContent) -> Iterator[None]:
        with suppress(ValueError):
            yield


class Noting(ClientObserver):
    """Notes the ends of sends."""

    def __init__(self) -> None:
        self.ends: list[tuple[str, str, str]] = []

    def sending(self, topic: str, properties: MutableMapping[str, str]) -> Ended:
        def ended(sent: Sent | None, error: BaseException | None) -> None:
            self.ends.append(
                (topic, "" if sent is None else sent.status, "" if error is None else type(error).__name__)
            )

        return ended


class Answering:
    """A cluster whose every call succeeds."""

    timers = ManualTimers()

    async def call(self, which: object, request: Any, answer_type: Any, **_options: object) -> Any:
        if answer_type is store_pb2.SendResponse:
            return store_pb2.SendResponse(receipt=store_pb2.SendReceipt(unique_key="k", status=store_pb2.PUT_OK))
        if answer_type is store_pb2.SendBatchResponse:
            statuses = (store_pb2.PUT_OK, store_pb2.FLUSH_SLAVE_TIMEOUT)
            return store_pb2.SendBatchResponse(receipts=[store_pb2.SendReceipt(status=one) for one in statuses])
        return delivery_pb2.AcknowledgeResponse(outcomes=[delivery_pb2.Outcome() for _ in request.handles])

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("observer", [Broken(), Unmade()])
async def test_a_send_that_was_stored_stays_one(observer: ClientObserver) -> None:
    async with aio.Producer("a:1", observers=[observer]) as producer:
        producer._cluster = cast(Cluster, Answering())
        assert (await producer.send("t", b"x")).unique_key == "k"


async def test_an_acknowledgement_does_not_wait_for_ever() -> None:
    consumer = aio.Consumer("a:1", group="g", topic="t", observers=[Broken()])
    holding = Holding(cast(Cluster, Answering()), "g", "t", 30.0, consumer._settled)
    await asyncio.wait_for(holding.acknowledge(holding.take("h", 30_000)), 10)
    assert len(holding) == 0


@pytest.mark.parametrize("observer", [Broken(), Unmade(), Hiding()])
def test_a_handler_ends_as_without_them(observer: ClientObserver) -> None:
    with observed_handling([observer], "g", MESSAGE):
        pass
    with pytest.raises(ValueError, match="the handler's"), observed_handling([observer], "g", MESSAGE):
        raise ValueError("the handler's")


async def test_each_message_of_a_batch_has_its_own_end() -> None:
    noting = Noting()
    async with aio.Producer("a:1", observers=[noting]) as producer:
        producer._cluster = cast(Cluster, Answering())
        with pytest.raises(NotReplicated):
            await producer.send_batch([Outgoing("safe", b"x"), Outgoing("less", b"x")])
    assert sorted(noting.ends) == [("less", "FLUSH_SLAVE_TIMEOUT", "NotReplicated"), ("safe", "PUT_OK", "")]
