"""Messages that are sent together: how many requests, and whose failure is whose."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from tandemmq.client import ClientFault, Outgoing, Producer, Refused, RequestFailed, SendStatus, StoreUnreachable
from tandemmq.client.cluster import Cluster
from tandemmq.client.errors import refused
from tandemmq.client.lingering import MOST_MESSAGES, Lingering
from tandemmq.client.outgoing import Sent
from tandemmq.store.v1 import store_pb2
from tests.manual_timers import ManualTimers

LONG = 3600.0
"""Seconds that no test waits."""


class Store:
    """Takes what it is sent; refuses bodies that begin with `bad`."""

    def __init__(self) -> None:
        self.requests: list[list[bytes]] = []
        self.failure: Exception | None = None

    async def send_all(self, messages: Sequence[Outgoing]) -> list[Sent]:
        bodies = [one.body for one in messages]
        self.requests.append(bodies)
        if self.failure is not None:
            raise self.failure
        if any(body.startswith(b"bad") for body in bodies):
            raise Refused("a bad one", "INVALID_ARGUMENT", "MESSAGE_ILLEGAL")
        return [Sent(one.topic, one.body.decode(), "", 0, 0, SendStatus.PUT_OK) for one in messages]

    async def send_one(self, message: Outgoing) -> Sent:
        return (await self.send_all([message]))[0]


def of(*bodies: bytes) -> list[Outgoing]:
    return [Outgoing("t", body) for body in bodies]


async def test_what_is_sent_meanwhile_goes_along() -> None:
    store = Store()
    lingering = Lingering(5, store.send_all, store.send_one, timers := ManualTimers())
    sending = asyncio.gather(*(lingering.send(one) for one in of(b"1", b"2", b"3")))
    await timers.advance(4)
    assert store.requests == []
    await timers.advance(1)
    sent = await sending
    assert [one.unique_key for one in sent] == ["1", "2", "3"]
    assert store.requests == [[b"1", b"2", b"3"]]


async def test_a_full_request_does_not_wait() -> None:
    store = Store()
    lingering = Lingering(LONG, store.send_all, store.send_one, ManualTimers())
    await asyncio.gather(*(lingering.send(one) for one in of(*[b"x"] * MOST_MESSAGES)))
    big = b"x" * (300 << 10)
    await asyncio.gather(*(lingering.send(one) for one in of(big, big)))
    assert [len(one) for one in store.requests] == [MOST_MESSAGES, 2]


async def test_the_end_sends_what_waits() -> None:
    store = Store()
    lingering = Lingering(LONG, store.send_all, store.send_one, ManualTimers())
    sending = asyncio.create_task(lingering.send(of(b"last")[0]))
    await asyncio.sleep(0)
    await lingering.close()
    assert (await sending).unique_key == "last"


async def test_what_is_called_off_in_time_is_not_sent() -> None:
    store = Store()
    lingering = Lingering(LONG, store.send_all, store.send_one, ManualTimers())
    sending = [asyncio.create_task(lingering.send(one)) for one in of(b"1", b"2", b"3")]
    await asyncio.sleep(0)
    sending[1].cancel()
    await asyncio.gather(sending[1], return_exceptions=True)
    await lingering.close()
    assert store.requests == [[b"1", b"3"]]


async def test_a_message_that_is_refused_is_refused_alone() -> None:
    store = Store()
    lingering = Lingering(5, store.send_all, store.send_one, timers := ManualTimers())
    sending = asyncio.gather(*(lingering.send(one) for one in of(b"good", b"bad", b"better")), return_exceptions=True)
    await timers.advance(5)
    ends = await sending
    assert isinstance(ends[1], Refused)
    assert [one.unique_key for one in (ends[0], ends[2]) if isinstance(one, Sent)] == ["good", "better"]


@pytest.mark.parametrize(
    ("failure", "raised"),
    [
        (StoreUnreachable("gone", "UNAVAILABLE"), StoreUnreachable),
        (refused("an incident", "INTERNAL", "UNKNOWN_ERROR"), RequestFailed),  # it may be stored
        (KeyError("x"), ClientFault),
    ],
)
async def test_a_failure_is_everybodys(failure: Exception, raised: type[Exception]) -> None:
    store = Store()
    store.failure = failure
    lingering = Lingering(5, store.send_all, store.send_one, timers := ManualTimers())
    sending = asyncio.gather(*(lingering.send(one) for one in of(b"1", b"2")), return_exceptions=True)
    await timers.advance(5)
    ends = await sending
    assert [type(one) for one in ends] == [raised, raised]
    assert len(store.requests) == 1


def test_the_end_of_a_plain_producer_sends_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async def call(_self: Cluster, _which: object, request: Any, answer_type: type[Any], **_options: object) -> Any:
        receipt = store_pb2.SendReceipt(status=store_pb2.PUT_OK)
        if answer_type is store_pb2.SendResponse:  # one that came alone, after the end had begun
            return store_pb2.SendResponse(receipt=receipt)
        return store_pb2.SendBatchResponse(receipts=[receipt for _ in request.messages])

    monkeypatch.setattr(Cluster, "call", call)
    producer = Producer("127.0.0.1:1", linger=LONG)
    soon = [producer.send_soon("t", b"x") for _ in range(3)]
    ending = threading.Thread(target=producer.close, daemon=True)
    ending.start()
    ending.join(20)
    assert not ending.is_alive()
    assert [one.result().status for one in soon] == [SendStatus.PUT_OK] * 3
