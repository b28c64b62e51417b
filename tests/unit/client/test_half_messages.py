"""Half messages whose sends fail: what the broker is told when it asks about them."""

from typing import Any

import pytest

from tandemmq.client import ClientError, Refused, StoreUnreachable, aio
from tandemmq.client.cluster import Cluster
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.store.v1 import store_pb2


@pytest.mark.parametrize(
    ("failure", "ends"),
    [
        (StoreUnreachable("the answer is lost", "UNAVAILABLE"), [delivery_pb2.ROLLBACK]),
        (Refused("too long", "INVALID_ARGUMENT", "MESSAGE_ILLEGAL"), [delivery_pb2.UNKNOWN]),  # it is forgotten
    ],
)
async def test_what_may_be_stored_is_rolled_back(
    monkeypatch: pytest.MonkeyPatch, failure: ClientError, ends: list[int]
) -> None:
    told: list[int] = []
    sent: list[str] = []

    async def call(_self: Cluster, _which: object, request: Any, answer_type: type[Any], **_options: object) -> Any:
        if answer_type is store_pb2.SendResponse:
            sent.append(request.message.properties["UNIQ_KEY"])
            raise failure
        told.append(request.ending)
        return answer_type()

    monkeypatch.setattr(Cluster, "call", call)
    async with aio.Producer("127.0.0.1:1", group="shop") as producer:
        async with producer.transaction() as transaction:
            with pytest.raises(type(failure)):
                await transaction.send("orders", b"x")
        assert told == [], "the block had no message"
        question = delivery_pb2.CheckTransaction(topic="orders", handle="h", transaction_id=sent[0])
        await producer._asked(delivery_pb2.AttendResponse(check_transaction=question))
    assert told == ends
