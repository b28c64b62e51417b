"""Receiving as a group over the contract: what is given, what becomes of it, and what is refused."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any, cast

import grpc
import pytest

from tandemmq.client import StoreClient, decode_records
from tandemmq.delivery.v1 import delivery_pb2 as pb
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.store.v1 import message_pb2
from tests.contract.refusals import statuses
from tests.contract.store_process import StoreProcess

WAIT_MS = 20_000
"""How long a receive may wait for what certainly comes; it comes much sooner."""


def receive(stub: DeliveryStub, group: str, topic: str, most: int = 32, **more: Any) -> list[pb.ReceivedMessage]:
    request = pb.ReceiveRequest(group=group, topic=topic, max_messages=most, **more)
    return list(stub.Receive(request, timeout=60).messages)


def receive_all(stub: DeliveryStub, group: str, topic: str, messages: int) -> list[pb.ReceivedMessage]:
    found: list[pb.ReceivedMessage] = []
    while len(found) < messages:
        some = receive(stub, group, topic, messages - len(found), wait_ms=WAIT_MS)
        assert some, f"{len(found)} of {messages}"
        found += some
    return found


def bodies(messages: Sequence[pb.ReceivedMessage]) -> list[bytes]:
    return [decode_records(one.record)[0].body for one in messages]


def acknowledge(stub: DeliveryStub, group: str, topic: str, *handles: str) -> list[pb.Outcome]:
    request = pb.AcknowledgeRequest(group=group, topic=topic, handles=handles)
    return list(stub.Acknowledge(request, timeout=60).outcomes)


def told(outcome: pb.Outcome) -> tuple[str, str]:
    return outcome.refusal.code, outcome.refusal.rocketmq_status


def refusal(call: Any, request: Any) -> tuple[str, str | None, str]:
    with pytest.raises(grpc.RpcError) as raised:
        call(request, timeout=60)
    return *statuses(raised.value), cast(Any, raised.value).details()


EXPIRED = ("FAILED_PRECONDITION", "INVALID_RECEIPT_HANDLE")
FOREIGN = ("INVALID_ARGUMENT", "INVALID_RECEIPT_HANDLE")
INVISIBLE = ("INVALID_ARGUMENT", "ILLEGAL_INVISIBLE_TIME")
ILLEGAL = ("INVALID_ARGUMENT", "MESSAGE_ILLEGAL")
TRANSACTION = "INVALID_TRANSACTION_ID"


def test_each_message_is_given_once_and_is_gone_when_it_is_acknowledged(
    client: StoreClient, delivery: DeliveryStub
) -> None:
    for number in range(10):
        client.send("given", b"%d" % number, tag="t", keys=["k"])
    given = receive_all(delivery, "g1", "given", 10)
    assert sorted(bodies(given)) == [b"%d" % number for number in range(10)]
    assert {one.delivery_number for one in given} == {1}
    assert {one.topic for one in given} == {"given"}
    assert all(0 < len(one.handle) <= 200 and one.invisible_ms > 0 for one in given)
    assert receive(delivery, "g1", "given") == []
    outcomes = acknowledge(delivery, "g1", "given", *(one.handle for one in given))
    assert [one.HasField("refusal") for one in outcomes] == [False] * 10
    again = acknowledge(delivery, "g1", "given", given[0].handle)
    assert not again[0].HasField("refusal"), "once more is fine"
    assert len(receive_all(delivery, "g2", "given", 10)) == 10, "another group has its own"


def test_both_forms_of_a_message(client: StoreClient, delivery: DeliveryStub) -> None:
    client.send("formed", b"x", tag="t", keys=["k"], queue_id=1)
    (raw,) = receive_all(delivery, "g1", "formed", 1)
    (decoded,) = receive(delivery, "g2", "formed", wait_ms=WAIT_MS, form=message_pb2.DECODED)
    record = decode_records(raw.record)[0]
    assert not decoded.record
    assert (decoded.message.body, decoded.message.tag, list(decoded.message.keys)) == (b"x", "t", ["k"])
    assert decoded.message.physical_offset == record.physical_offset


def test_what_is_made_visible_comes_again_with_the_next_number(client: StoreClient, delivery: DeliveryStub) -> None:
    client.send("again", b"x")
    (first,) = receive_all(delivery, "g", "again", 1)
    change = pb.InvisibleChange(handle=first.handle, invisible_ms=0)
    changed = delivery.ChangeInvisible(pb.ChangeInvisibleRequest(group="g", topic="again", changes=[change]))
    assert not changed.outcomes[0].HasField("refusal")
    assert changed.outcomes[0].handle
    (second,) = receive_all(delivery, "g", "again", 1)
    assert (second.delivery_number, bodies([second])) == (2, [b"x"])
    late = acknowledge(delivery, "g", "again", first.handle, second.handle)
    assert told(late[0]) == EXPIRED
    assert not late[1].HasField("refusal")


def test_what_nobody_has_looked_at_comes_again_with_the_same_number(
    client: StoreClient, delivery: DeliveryStub
) -> None:
    client.send("unseen", b"x")
    for _ in range(3):
        (one,) = receive_all(delivery, "g", "unseen", 1)
        assert one.delivery_number == 1
        change = pb.InvisibleChange(handle=one.handle, unseen=True)
        changed = delivery.ChangeInvisible(pb.ChangeInvisibleRequest(group="g", topic="unseen", changes=[change]))
        assert not changed.outcomes[0].HasField("refusal")
    (one,) = receive_all(delivery, "g", "unseen", 1)
    change = pb.InvisibleChange(handle=one.handle, unseen=True, invisible_ms=1)
    changed = delivery.ChangeInvisible(pb.ChangeInvisibleRequest(group="g", topic="unseen", changes=[change]))
    assert told(changed.outcomes[0]) == INVISIBLE
    assert not acknowledge(delivery, "g", "unseen", one.handle)[0].HasField("refusal")
    change = pb.InvisibleChange(handle=one.handle, unseen=True)
    delivery.ChangeInvisible(pb.ChangeInvisibleRequest(group="g", topic="unseen", changes=[change]))
    assert not receive(delivery, "g", "unseen"), "what is dealt with does not come again"


def test_a_dead_letter_is_in_the_groups_topic(client: StoreClient, delivery: DeliveryStub) -> None:
    client.send("deadly", b"x")
    (one,) = receive_all(delivery, "graves", "deadly", 1)
    request = pb.ForwardToDeadLettersRequest(group="graves", topic="deadly", handles=[one.handle])
    assert not delivery.ForwardToDeadLetters(request).outcomes[0].HasField("refusal")
    (record,) = client.pull("%DLQ%graves", 0, 0, wait_seconds=10).records
    assert record.body == b"x"
    assert receive(delivery, "graves", "deadly") == []


def test_filters(client: StoreClient, delivery: DeliveryStub) -> None:
    for number in range(6):
        client.send("filtered", b"%d" % number, tag="even" if number % 2 == 0 else "odd", properties={"n": str(number)})
    tags = pb.Filter(expression="even")
    sql = pb.Filter(kind=pb.SQL92, expression="n > 3")
    assert sorted(bodies(receive(delivery, "tags", "filtered", filter=tags, wait_ms=WAIT_MS))) == [b"0", b"2", b"4"]
    assert sorted(bodies(receive(delivery, "sql", "filtered", filter=sql, wait_ms=WAIT_MS))) == [b"4", b"5"]


def test_pulling_consumers_commit(client: StoreClient, delivery: DeliveryStub) -> None:
    for number in range(4):
        client.send("committed", b"%d" % number, queue_id=0)
    commit = pb.OffsetCommit(topic="committed", queue_id=0, offset=3)
    answer = delivery.CommitOffsets(pb.CommitOffsetsRequest(group="classic", commits=[commit]))
    assert [one.HasField("refusal") for one in answer.outcomes] == [False]
    assert bodies(receive_all(delivery, "classic", "committed", 1)) == [b"3"]


def test_transactions_end_once(client: StoreClient, delivery: DeliveryStub) -> None:
    def half() -> pb.EndTransactionRequest:
        receipt = client.send("halves", b"x", properties={"TRAN_MSG": "true", "PGROUP": "p"})
        return pb.EndTransactionRequest(topic="halves", handle=receipt.transaction_handle, group="p")

    committed, dropped = half(), half()
    committed.ending, dropped.ending = pb.COMMIT, pb.ROLLBACK
    for request in (committed, dropped, committed, dropped):  # a repeat is fine
        delivery.EndTransaction(request)
    (one,) = receive_all(delivery, "g", "halves", 1)
    assert receive(delivery, "g", "halves") == []
    assert bodies([one]) == [b"x"]
    committed.ending = pb.ROLLBACK
    assert refusal(delivery.EndTransaction, committed)[:2] == ("FAILED_PRECONDITION", TRANSACTION)
    unknown = pb.EndTransactionRequest(topic="halves", handle="t~0~99999999~none", ending=pb.COMMIT)
    assert refusal(delivery.EndTransaction, unknown)[:2] == ("NOT_FOUND", TRANSACTION)
    unknown.ending = 7  # type: ignore[assignment]
    assert refusal(delivery.EndTransaction, unknown)[:2] == ILLEGAL


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "code", "status", "words"),
    [
        ({"group": ""}, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "group"),
        ({"group": "no spaces"}, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "group"),
        ({"topic": "none"}, "NOT_FOUND", "NO_MATCHED_LOGIC_QUEUE", "none"),
        ({"queue_id": 99}, "OUT_OF_RANGE", "NO_MATCHED_LOGIC_QUEUE", "99"),
        ({"queue_id": -2}, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "queue_id"),
        ({"invisible_ms": 1}, *INVISIBLE, "1"),
        ({"invisible_ms": 365 * 86_400_000}, *INVISIBLE, "43,200,000"),
        ({"invisible_ms": -1}, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "invisible_ms"),
        ({"wait_ms": 300_001}, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "300,000"),
        ({"max_messages": -1}, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "max_messages"),
        ({"max_bytes": -1}, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "max_bytes"),
        ({"renew": True}, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "client_id"),
        ({"attempt_id": "a" * 129}, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "attempt_id"),
        ({"filter": pb.Filter(kind=7)}, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "filter.kind"),  # type: ignore[arg-type]
        ({"filter": pb.Filter(kind=pb.SQL92, expression="a >")}, "INVALID_ARGUMENT", "ILLEGAL_FILTER_EXPRESSION", ""),
        (
            {"filter": pb.Filter(kind=pb.SQL92, expression="(" * 5_000 + "a = 1" + ")" * 5_000)},
            "INVALID_ARGUMENT",
            "ILLEGAL_FILTER_EXPRESSION",
            "",
        ),
        (
            {"filter": pb.Filter(kind=pb.SQL92, expression=" OR ".join(["a = 1"] * 50_000))},
            "INVALID_ARGUMENT",
            "ILLEGAL_FILTER_EXPRESSION",
            "",
        ),
    ],
    ids=lambda value: str(value)[:60] if isinstance(value, dict) else "",
)
def test_a_receive_that_makes_no_sense(
    client: StoreClient, delivery: DeliveryStub, fields: dict[str, Any], code: str, status: str, words: str
) -> None:
    client.send("sense", b"x", queue_id=0)
    request = pb.ReceiveRequest(**{"group": "sense-g", "topic": "sense", **fields})
    found = refusal(delivery.Receive, request)
    assert found[:2] == (code, status), found
    assert words in found[2]


def test_a_group_that_may_not_be_made(transport: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp(f"strict-{transport}") / "store"
    with StoreProcess(directory, auto_create_subscription_group=False) as store, store.delivery() as stub:
        with store.client() as client:
            receipt = client.send("orders", b"x")
        found = refusal(stub.Receive, pb.ReceiveRequest(group="stranger", topic="orders"))
        assert found[:2] == ("NOT_FOUND", "CONSUMER_GROUP_NOT_FOUND")
        assert "stranger" in found[2]
        one = pb.OffsetCommit(topic="orders", queue_id=0, offset=1)
        commit = pb.CommitOffsetsRequest(group="stranger", commits=[one])
        assert refusal(stub.CommitOffsets, commit)[:2] == found[:2]
        back = pb.SendBackRequest(group="stranger", physical_offset=receipt.physical_offset)
        assert refusal(stub.SendBack, back)[:2] == found[:2]


def test_handles_of_others(client: StoreClient, delivery: DeliveryStub) -> None:
    for topic in ("theirs", "ours"):
        client.send(topic, b"x")
    (one,) = receive_all(delivery, "g", "theirs", 1)
    for group, topic, handle in (
        ("h", "theirs", one.handle),
        ("g", "ours", one.handle),
        ("g", "theirs", one.handle[:-3] + "AAA"),
        ("g", "theirs", "no handle at all"),
        ("g", "theirs", ""),
        ("g", "theirs", "x" * 5_000),
    ):
        assert told(acknowledge(delivery, group, topic, handle)[0]) == FOREIGN, (group, topic, handle)
        change = pb.InvisibleChange(handle=handle, invisible_ms=0)
        changed = delivery.ChangeInvisible(pb.ChangeInvisibleRequest(group=group, topic=topic, changes=[change]))
        assert told(changed.outcomes[0]) == FOREIGN
        forward = pb.ForwardToDeadLettersRequest(group=group, topic=topic, handles=[handle])
        assert told(delivery.ForwardToDeadLetters(forward).outcomes[0]) == FOREIGN
    assert not acknowledge(delivery, "g", "theirs", one.handle)[0].HasField("refusal"), "nothing was changed"


def test_one_bad_handle_spoils_no_other(client: StoreClient, delivery: DeliveryStub) -> None:
    for _ in range(2):
        client.send("mixed", b"x")
    first, second = receive_all(delivery, "g", "mixed", 2)
    outcomes = acknowledge(delivery, "g", "mixed", first.handle, "bad", second.handle)
    assert [one.HasField("refusal") for one in outcomes] == [False, True, False]


def test_too_many_at_once(delivery: DeliveryStub) -> None:
    for handles in ([], ["x"] * 1_025):
        request = pb.AcknowledgeRequest(group="g", topic="t", handles=handles)
        assert refusal(delivery.Acknowledge, request)[:2] == ILLEGAL
    changes = [pb.InvisibleChange(handle="x")] * 1_025
    assert refusal(delivery.ChangeInvisible, pb.ChangeInvisibleRequest(changes=changes))[:2] == ILLEGAL
    forward = pb.ForwardToDeadLettersRequest(group="g", topic="t", handles=["x"] * 1_025)
    assert refusal(delivery.ForwardToDeadLetters, forward)[:2] == ILLEGAL


def test_a_handle_that_has_expired(client: StoreClient, delivery: DeliveryStub) -> None:
    client.send("expired", b"x")
    (old,) = receive_all(delivery, "g", "expired", 1)
    now = pb.InvisibleChange(handle=old.handle, invisible_ms=0)
    delivery.ChangeInvisible(pb.ChangeInvisibleRequest(group="g", topic="expired", changes=[now]))
    (new,) = receive_all(delivery, "g", "expired", 1)
    assert told(acknowledge(delivery, "g", "expired", old.handle)[0]) == EXPIRED
    changed = delivery.ChangeInvisible(pb.ChangeInvisibleRequest(group="g", topic="expired", changes=[now]))
    assert told(changed.outcomes[0]) == EXPIRED
    forward = pb.ForwardToDeadLettersRequest(group="g", topic="expired", handles=[old.handle])
    assert told(delivery.ForwardToDeadLetters(forward).outcomes[0]) == EXPIRED
    assert not acknowledge(delivery, "g", "expired", new.handle)[0].HasField("refusal"), "it still counts"


def test_a_time_that_is_past_means_now(client: StoreClient, delivery: DeliveryStub) -> None:
    client.send("past", b"x", properties={"TIMER_DELIVER_MS": "1000"})
    assert bodies(receive_all(delivery, "g", "past", 1)) == [b"x"]


def test_times_of_a_change(client: StoreClient, delivery: DeliveryStub) -> None:
    client.send("times", b"x")
    (one,) = receive_all(delivery, "g", "times", 1)
    for wrong in (-1, 365 * 86_400_000):
        change = pb.InvisibleChange(handle=one.handle, invisible_ms=wrong)
        changed = delivery.ChangeInvisible(pb.ChangeInvisibleRequest(group="g", topic="times", changes=[change]))
        assert told(changed.outcomes[0]) == INVISIBLE
    assert not acknowledge(delivery, "g", "times", one.handle)[0].HasField("refusal")


@pytest.mark.parametrize(
    "properties",
    [
        {"DELAY": "many"},
        {"TIMER_DELAY_MS": str(41 * 86_400_000)},
        {"TIMER_DELAY_SEC": "-5"},
        {"TIMER_DELIVER_MS": "tomorrow"},
        {"TIMER_DELIVER_MS": "9" * 15},
    ],
    ids=str,
)
def test_delays_that_cannot_be_kept(client: StoreClient, properties: dict[str, str]) -> None:
    with pytest.raises(Exception, match=r".") as raised:
        client.send("later", b"x", properties=properties)
    assert (cast(Any, raised.value).code, cast(Any, raised.value).status) == ILLEGAL


def test_recalls_of_what_is_none(delivery: DeliveryStub) -> None:
    for handle in ("", "none", "x" * 1_000):
        code, status, _ = refusal(delivery.Recall, pb.RecallRequest(topic="later", handle=handle))
        assert (code, status) in (FOREIGN, ("NOT_FOUND", "MESSAGE_ILLEGAL")), handle


# -- who is there ------------------------------------------------------------------------------------------------------


def member(client_id: str, group: str, **more: Any) -> pb.HeartbeatRequest:
    return pb.HeartbeatRequest(client_id=client_id, memberships=[pb.Membership(group=group, **more)], language="PYTHON")


def test_heartbeats(delivery: DeliveryStub) -> None:
    assert delivery.Heartbeat(member("one", "g", subscriptions={"t": pb.Filter()})).next_ms > 0
    delivery.Leave(pb.LeaveRequest(client_id="one", groups=["g"]))
    delivery.Leave(pb.LeaveRequest(client_id="one", groups=["g"]))
    for wrong in (
        pb.HeartbeatRequest(client_id="one"),
        member("", "g"),
        member("x" * 256, "g"),
        member("one", ""),
        member("one", "g", subscriptions={"t": pb.Filter(kind=7)}),  # type: ignore[arg-type]
    ):
        assert refusal(delivery.Heartbeat, wrong)[:2] == ILLEGAL


@pytest.mark.slow
def test_a_producer_is_asked_how_its_transaction_has_ended(
    transport: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp(f"asked-{transport}") / "store"
    soon = {"transaction_time_out": 500, "transaction_check_interval": 500}
    over = threading.Event()

    def beats() -> Iterator[pb.HeartbeatRequest]:
        yield member("one", "p", producer=True)
        over.wait()

    with StoreProcess(directory, **soon) as store, store.delivery() as stub, store.client() as client:
        call: Any = stub.Attend(beats(), timeout=60)
        assert next(call).welcome.next_ms > 0
        receipt = client.send("asked", b"x", properties={"TRAN_MSG": "true", "PGROUP": "p"})
        question = next(call).check_transaction
        assert (question.group, question.topic, question.transaction_id) == ("p", "asked", receipt.unique_key)
        assert decode_records(question.record)[0].body == b"x"
        answer = pb.EndTransactionRequest(
            topic="asked", handle=question.handle, group="p", ending=pb.COMMIT, checked=True
        )
        stub.EndTransaction(answer)
        over.set()
        assert bodies(receive_all(stub, "g", "asked", 1)) == [b"x"]
