"""What a refusal becomes: by its kind, RocketMQ's name and gRPC's code; and the names of statuses."""

import pytest

from tandemmq.client import (
    ClientError,
    GroupRefused,
    NotDurable,
    NotMaster,
    NotReplicated,
    NotTaken,
    PulledStatus,
    Recovering,
    Refused,
    RequestFailed,
    Retriable,
    SendStatus,
)
from tandemmq.client.errors import from_refusal, refused
from tandemmq.client.outgoing import Sent, check_ok
from tandemmq.store.v1 import store_pb2

ELSEWHERE = "SERVICE_NOT_AVAILABLE"


@pytest.mark.parametrize(
    ("code", "status", "kind", "error"),
    [
        ("INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "INVALID", Refused),
        ("PERMISSION_DENIED", "UNKNOWN_ERROR", "NOT_PERMITTED", Refused),
        ("NOT_FOUND", "CONSUMER_GROUP_NOT_FOUND", "UNKNOWN_GROUP", GroupRefused),
        ("UNAVAILABLE", ELSEWHERE, "STARTING", Recovering),
        ("UNAVAILABLE", ELSEWHERE, "REBUILDING", Recovering),
        ("UNAVAILABLE", ELSEWHERE, "NOT_DELIVERING", Recovering),
        ("UNAVAILABLE", ELSEWHERE, "READ_ONLY", NotTaken),
        ("RESOURCE_EXHAUSTED", ELSEWHERE, "DISK_FULL", NotTaken),
        ("RESOURCE_EXHAUSTED", "SYSTEM_BUSY", "EXHAUSTED", NotTaken),
        ("RESOURCE_EXHAUSTED", "", "", Refused),  # gRPC's own: larger than the store takes
        ("UNAVAILABLE", "IN_SYNC_REPLICAS_NOT_ENOUGH", "FEW_REPLICAS", NotReplicated),
        ("DATA_LOSS", "FLUSH_DISK_TIMEOUT", "NOT_DURABLE", NotDurable),
        ("INTERNAL", "UNKNOWN_ERROR", "INTERNAL", RequestFailed),
    ],
)
def test_what_a_refusal_becomes(code: str, status: str, kind: str, error: type[RequestFailed]) -> None:
    found = refused("why", code, status, kind)
    assert type(found) is error
    assert (found.code, found.status, found.message) == (code, status, "why")
    assert found.retriable == isinstance(found, Retriable) == issubclass(error, Retriable)


@pytest.mark.parametrize("master", ["", "10.0.0.2:8081"])
def test_who_is_no_master_says_who_is(master: str) -> None:
    refusal = store_pb2.Refusal(code="UNAVAILABLE", rocketmq_status=ELSEWHERE, message="a slave", master_address=master)
    found = from_refusal(refusal)
    assert isinstance(found, NotMaster)
    assert isinstance(found, Retriable)
    assert found.leader == master


def receipt(status: SendStatus) -> Sent:
    return Sent("orders", "u", "m", 0, 7, status)


def test_a_receipt_that_is_not_ok_is_an_error_with_what_is_stored() -> None:
    good, unsafe, lost = (
        receipt(one) for one in (SendStatus.PUT_OK, SendStatus.SLAVE_NOT_AVAILABLE, SendStatus.SERVICE_NOT_AVAILABLE)
    )
    check_ok(good, good)
    with pytest.raises(NotReplicated, match="orders ended with SLAVE_NOT_AVAILABLE") as failed:
        check_ok(good, unsafe, lost)
    assert failed.value.sent == (good, unsafe)
    with pytest.raises(NotTaken) as nothing:
        check_ok(lost)
    assert nothing.value.sent == ()
    with pytest.raises(NotDurable):
        check_ok(receipt(SendStatus.FLUSH_DISK_TIMEOUT))


def test_the_names_are_those_of_the_contract() -> None:
    assert list(SendStatus) == store_pb2.SendStatus.keys()[1:]
    assert list(PulledStatus) == store_pb2.PullStatus.keys()[1:]
    stored = [one for one in SendStatus if one.stored]
    assert stored == ["PUT_OK", "FLUSH_DISK_TIMEOUT", "FLUSH_SLAVE_TIMEOUT", "SLAVE_NOT_AVAILABLE"]
    assert f"{SendStatus.PUT_OK}" == "PUT_OK"
    assert issubclass(Retriable, ClientError)
