"""ResendMessages: copies of dead letters go back where they came from, as the producer sent them."""

from typing import Any

import grpc
import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.client import StoreClient
from tandemmq.store.v1 import message_pb2, store_pb2
from tests.admin_process import AdminProcess
from tests.faults.pair import Node

pytestmark = pytest.mark.xdist_group("calm admin")

DEADLINE = 60


@pytest.fixture(scope="module")
def node(calm_node: Node) -> Node:
    """Shared with other modules."""
    return calm_node


@pytest.fixture(scope="module")
def admin(calm_admin: AdminProcess) -> AdminProcess:
    """The same."""
    return calm_admin


BROKERS_OWN = {
    "RETRY_TOPIC": "d-orders",
    "REAL_TOPIC": "%RETRY%d-group",
    "REAL_QID": "0",
    "RECONSUME_TIME": "16",
    "MAX_RECONSUME_TIMES": "16",
    "ORIGIN_MESSAGE_ID": "7F00000100002A9F0000000000000000",
    "MIN_OFFSET": "0",
    "MAX_OFFSET": "7",
    "CLUSTER": "c",
    "1ST_POP_TIME": "1",
}
"""What RocketMQ leaves in a message on its way."""


def bury(client: StoreClient, group: str, body: bytes = b"body", **more: Any) -> store_pb2.SendReceipt:
    """A dead letter, as RocketMQ's broker stores one."""
    fields = {"queue_id": 0, "reconsume_times": 16, **more}
    message = message_pb2.Message(topic=f"%DLQ%{group}", body=body, **fields)
    return client.stub.Send(store_pb2.SendRequest(message=message), timeout=DEADLINE).receipt


def resend(admin: AdminProcess, group: str, **fields: Any) -> pb.ResendMessagesResponse:
    return admin.stub.ResendMessages(pb.ResendMessagesRequest(group=group, **fields), timeout=DEADLINE)


def messages(admin: AdminProcess, topic: str) -> list[message_pb2.StoredMessage]:
    request = pb.FindMessagesRequest(topic=topic, time=pb.TimeRange(), limit=1000, with_bodies=True)
    return [one.message for one in admin.stub.FindMessages(request, timeout=DEADLINE).messages]


def test_a_copy_goes_back_with_what_the_producer_gave_it(admin: AdminProcess, node: Node) -> None:
    with node.client() as client:
        client.send("d-orders", b"first")
        given = {"customer": "7", "UNIQ_KEY": "D" * 32}
        letter = bury(
            client, "d-group", b"body", tag="A", keys=["k1", "k2"], properties={**given, **BROKERS_OWN}, flag=9,
            sys_flag=1, born_timestamp=1234567890123, born_host="10.1.2.3:4567",
        )  # fmt: skip
    dry = resend(admin, "d-group", dry_run=True)
    assert [(one.message_id, one.topic, one.problem, one.HasField("receipt")) for one in dry.messages] == [
        (letter.message_id, "d-orders", "", False)
    ]
    assert len(messages(admin, "d-orders")) == 1, "a dry run sends nothing"

    (sent,) = resend(admin, "d-group").messages
    assert (sent.receipt.status, sent.problem, sent.resent_ms) == (store_pb2.PUT_OK, "", 0)
    assert (list(sent.keys), sent.tag, sent.tries) == (["k1", "k2"], "A", 16)
    copy = messages(admin, "d-orders")[-1]
    assert (copy.message_id, copy.body, copy.tag, list(copy.keys)) == (
        sent.receipt.message_id, b"body", "A", ["k1", "k2"],
    )  # fmt: skip
    assert dict(copy.properties) == {
        **given,
        "TAGS": "A",
        "KEYS": "k1 k2",
        "TANDEM_RESENT_FROM": f"%DLQ%d-group/{letter.message_id}",
    }
    assert (copy.flag, copy.sys_flag & 3, copy.reconsume_times) == (9, 1, 0)
    assert (copy.born_timestamp, copy.born_host) == (1234567890123, "10.1.2.3:4567")
    assert len(messages(admin, "%DLQ%d-group")) == 1, "the letter stays"


def test_where_a_letter_comes_from_and_what_if_it_does_not_say(admin: AdminProcess, node: Node) -> None:
    with node.client() as client:
        client.send("d-five", b"x")
        bury(client, "d-ways", b"1", properties={"DLQ_ORIGIN_TOPIC": "d-five", "RETRY_TOPIC": "d-never"})
        bury(client, "d-ways", b"2", properties={"DLQ_ORIGIN_TOPIC": "%RETRY%d-ways", "RETRY_TOPIC": "d-five"})
        bury(client, "d-ways", b"3")
        bury(client, "d-ways", b"4", properties={"RETRY_TOPIC": "d-gone"})
        bury(client, "d-ways", b"5", properties={"RETRY_TOPIC": "d-five"})
    found = resend(admin, "d-ways").messages
    assert [one.topic for one in found] == ["d-five", "d-five", "", "d-gone", "d-five"]
    assert [bool(one.problem) for one in found] == [False, False, True, True, False]
    assert "does not say" in found[2].problem
    assert "no topic d-gone" in found[3].problem
    assert [one.body for one in messages(admin, "d-five")] == [b"x", b"1", b"2", b"5"]
    with pytest.raises(grpc.RpcError) as raised:
        messages(admin, "d-gone")
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND, "it is not created"


def test_a_letter_is_sent_again_once_unless_the_caller_wants_more(admin: AdminProcess, node: Node) -> None:
    with node.client() as client:
        client.send("d-once", b"x")
        bury(client, "d-twice", b"letter", properties={"RETRY_TOPIC": "d-once", "UNIQ_KEY": "E" * 32})
        bury(client, "d-twice", b"other", properties={"RETRY_TOPIC": "d-once", "UNIQ_KEY": "F" * 32})
    first = resend(admin, "d-twice", limit=1).messages[0].receipt
    letter, other = resend(admin, "d-twice").messages
    assert (letter.HasField("receipt"), letter.resent_ms) == (False, first.store_timestamp)
    assert "sent before" in letter.problem
    assert (other.receipt.status, other.problem) == (store_pb2.PUT_OK, "")
    assert [one.body for one in messages(admin, "d-once")] == [b"x", b"letter", b"other"]
    both = resend(admin, "d-twice", again=True).messages
    assert [(one.receipt.status, one.problem, one.resent_ms > 0) for one in both] == [(store_pb2.PUT_OK, "", True)] * 2
    assert len(messages(admin, "d-once")) == 5


def test_some_of_many(admin: AdminProcess, node: Node) -> None:
    with node.client() as client:
        client.send("d-many", b"x")
        letters = [bury(client, "d-some", b"%d" % n, properties={"RETRY_TOPIC": "d-many"}) for n in range(30)]
    wanted = [letters[4].message_id, letters[2].message_id]
    assert [one.message_id for one in resend(admin, "d-some", message_ids=wanted, dry_run=True).messages] == wanted
    page = resend(admin, "d-some", limit=10, dry_run=True)
    assert [one.message_id for one in page.messages] == [one.message_id for one in letters[:10]]
    assert page.more
    times = [one.store_timestamp for one in letters]
    late = resend(admin, "d-some", begin_ms=times[20], end_ms=times[25], dry_run=True)
    assert len(late.messages) == sum(times[20] <= one <= times[25] for one in times)
    assert [one.store_ms for one in late.messages] == [one for one in times if times[20] <= one <= times[25]]
    assert not late.more
    assert len(resend(admin, "d-some").messages) == 30
    assert [one.body for one in messages(admin, "d-many")[1:]] == [b"%d" % n for n in range(30)]


def test_what_cannot_be_resent(admin: AdminProcess, node: Node) -> None:
    with node.client() as client:
        other = client.send("d-other", b"x")
        bury(client, "d-here")
    for fields, code in (
        ({"group": ""}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"group": "d-nobody"}, grpc.StatusCode.NOT_FOUND),
        ({"group": "d-here", "limit": 1001}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"group": "d-here", "message_ids": [other.message_id]}, grpc.StatusCode.NOT_FOUND),
        ({"group": "d-here", "message_ids": ["a" * 32, "b" * 32], "limit": 1}, grpc.StatusCode.INVALID_ARGUMENT),
        ({"group": "d-here", "broker": "zeta"}, grpc.StatusCode.NOT_FOUND),
    ):
        with pytest.raises(grpc.RpcError) as raised:
            resend(admin, **fields)
        assert raised.value.code() == code, fields
