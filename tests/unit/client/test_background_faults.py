"""Faults that nobody foresaw, in what a client does in the background: they are raised or logged, and nothing hangs."""

from collections.abc import Callable
from typing import Any

import pytest

from tandemmq.client import ClientFault
from tandemmq.client.aio import Consumer
from tandemmq.client.cluster import Cluster
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.format.record import Message, encode_record

TIMEOUT = 20.0
ADDRESS = "127.0.0.1:1"


class Broken(Exception):
    """What nobody foresaw."""


def answering(monkeypatch: pytest.MonkeyPatch, receive: Callable[[], object], broken: type | None = None) -> None:
    """Calls of any cluster are answered here; requests of the type `broken` fail."""

    async def call(_self: Cluster, _which: object, request: object, answer_type: type[Any], **_: object) -> Any:
        if broken is not None and isinstance(request, broken):
            raise Broken("by chance")
        return receive() if isinstance(request, delivery_pb2.ReceiveRequest) else answer_type()

    monkeypatch.setattr(Cluster, "call", call)


def record(body: bytes) -> bytes:
    message = Message("orders", 0, body, b"KEYS\x01k\x02")
    return encode_record(message, queue_offset=0, physical_offset=0, store_timestamp=1)


def given(*records: bytes) -> delivery_pb2.ReceiveResponse:
    return delivery_pb2.ReceiveResponse(
        messages=[
            delivery_pb2.ReceivedMessage(
                topic="orders", record=one, delivery_number=1, handle=f"h{number}", invisible_ms=30_000
            )
            for number, one in enumerate(records)
        ]
    )


@pytest.mark.parametrize("broken", [delivery_pb2.ReceiveRequest, delivery_pb2.HeartbeatRequest])
async def test_a_fault_in_the_background_is_raised(monkeypatch: pytest.MonkeyPatch, broken: type) -> None:
    answering(monkeypatch, given, broken)
    async with Consumer(ADDRESS, group="g", topic="orders") as consumer:
        for _ in range(2):
            with pytest.raises(ClientFault, match=r"group g has failed: Broken: by chance") as caught:
                await consumer.receive(TIMEOUT)
            assert isinstance(caught.value.__cause__, Broken)
            assert not caught.value.retriable


async def test_what_came_before_a_fault_is_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([given(record(b"one"))])

    def receive() -> object:
        try:
            return next(answers)
        except StopIteration:
            raise Broken("by chance") from None

    answering(monkeypatch, receive)
    async with Consumer(ADDRESS, group="g", topic="orders") as consumer:
        message = await consumer.receive(TIMEOUT)
        assert message is not None
        assert message.body == b"one"
        with pytest.raises(ClientFault):
            await consumer.receive(TIMEOUT)


async def test_a_message_that_changed_on_the_way_is_left_to_come_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    bad = bytearray(record(b"two"))
    bad[bad.index(b"two")] ^= 1
    answering(monkeypatch, lambda: given(record(b"one"), bytes(bad), record(b"three")))
    async with Consumer(ADDRESS, group="g", topic="orders", prefetch=3) as consumer:
        seen = [await consumer.receive(TIMEOUT) for _ in range(2)]
        assert [one.body for one in seen if one is not None] == [b"one", b"three"]
    assert "comes again in 30 s" in caplog.text
    assert "checksum" in caplog.text


async def test_an_acknowledgement_is_never_waited_for_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, lambda: given(record(b"one")), delivery_pb2.AcknowledgeRequest)
    async with Consumer(ADDRESS, group="g", topic="orders", prefetch=0) as consumer:
        message = await consumer.receive(TIMEOUT)
        assert message is not None
        with pytest.raises(ClientFault, match="Acknowledging"):
            await message.ack()
