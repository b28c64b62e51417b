"""Pop: messages with receipts, acknowledged, made to come again; and which queues a consumer is told to have."""

import json
from typing import Any

import pytest

from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.store.format import properties as names
from tandemmq.store.fronts.remoting.assignments import share
from tests.contract.remoting.classic_client import Answer, ClassicClient, document, records
from tests.contract.remoting.conftest import Connect


def pop(client: ClassicClient, topic: str, poll: int = 60_000, invisible: int = 10_000, **more: object) -> Answer:
    """POP_MESSAGE."""
    fields: dict[str, object] = {"consumerGroup": "poppers", "topic": topic, "queueId": -1, "maxMsgNums": 32}
    fields |= {"invisibleTime": invisible, "pollTime": poll, "bornTime": 0, "initMode": 0, "expType": "TAG", "exp": "*"}
    return client.call(RequestCode.POP_MESSAGE, fields | more)


def receipt(topic: str, record: object, text: str) -> dict[str, object]:
    """The header of what is said about one message."""
    fields: dict[str, object] = {"consumerGroup": "poppers", "topic": topic, "extraInfo": text}
    return fields | {"queueId": record.queue_id, "offset": record.queue_offset}  # type: ignore[attr-defined]


def test_messages_are_popped_acknowledged_and_come_again(client: ClassicClient) -> None:
    for number in range(3):
        client.send("popped", b"%d" % number, number)
    answer = pop(client, "popped")
    found = records(answer)
    assert sorted(one.body for one in found) == [b"0", b"1", b"2"]
    assert set(answer.fields) >= {
        "popTime",
        "invisibleTime",
        "reviveQid",
        "restNum",
        "startOffsetInfo",
        "msgOffsetInfo",
    }
    receipts = [one.properties[names.POP_CK] for one in found]
    assert receipts[0].split(" ")[5:8] == ["broker-a", str(found[0].queue_id), "0"]
    for one, text in zip(found[:2], receipts, strict=False):
        client.ask(RequestCode.ACK_MESSAGE, receipt("popped", one, text))
    changed = client.ask(
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME, receipt("popped", found[2], receipts[2]) | {"invisibleTime": 0}
    )
    assert changed.fields["invisibleTime"] == "0"
    (again,) = records(pop(client, "popped"))
    assert (again.body, again.reconsume_times) == (found[2].body, 1)
    stale = client.call(RequestCode.ACK_MESSAGE, receipt("popped", found[2], receipts[2]))
    assert stale.code == ResponseCode.MESSAGE_ILLEGAL
    client.ask(RequestCode.ACK_MESSAGE, receipt("popped", again, again.properties[names.POP_CK]))
    nothing = pop(client, "popped", poll=100)
    assert (nothing.code, set(nothing.fields) >= {"popTime", "restNum"}) == (ResponseCode.POLLING_TIMEOUT, True)


def test_a_receipt_of_somebody_else_is_refused(client: ClassicClient) -> None:
    client.send("receipts")
    (one,) = records(pop(client, "receipts"))
    for text in ("0 1 2 3 0 broker-a 0 0", "0 1 2 3 0 broker-a 0 0 nonsense"):
        answer = client.call(RequestCode.ACK_MESSAGE, receipt("receipts", one, text))
        assert answer.code == ResponseCode.MESSAGE_ILLEGAL
    unordered = pop(client, "receipts", order=True)
    assert unordered.code == ResponseCode.SYSTEM_ERROR


def test_a_group_that_consumes_in_order_pops_in_order(client: ClassicClient) -> None:
    said = {"groupName": "poppers_in_order", "consumeMessageOrderly": True}
    client.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=json.dumps(said).encode())
    for number in range(3):
        client.send("popped_in_order", b"%d" % number, 0)
    named: dict[str, Any] = {"order": True, "consumerGroup": "poppers_in_order"}
    first = records(pop(client, "popped_in_order", maxMsgNums=1, **named))
    assert [one.body for one in first] == [b"0"]
    waiting = pop(client, "popped_in_order", poll=100, **named)
    assert waiting.code == ResponseCode.POLLING_TIMEOUT, "the next one waits for the one before it"
    text = receipt("popped_in_order", first[0], first[0].properties[names.POP_CK])
    client.ask(RequestCode.ACK_MESSAGE, text | {"consumerGroup": "poppers_in_order"})
    assert [one.body for one in records(pop(client, "popped_in_order", **named))] == [b"1", b"2"]


def test_the_broker_tells_consumers_their_queues(connect: Connect) -> None:
    clients = [connect(name) for name in ("q1", "q2", "q3")]
    clients[0].send("assigned")
    for one in clients:
        one.heartbeat(consumes={"assigned": {"assigned": "*"}})

    def asked(client: ClassicClient, model: str = "CLUSTERING") -> list[tuple[int, str]]:
        body = {"consumerGroup": "assigned", "topic": "assigned", "clientId": client.client_id, "messageModel": model}
        answer = document(client.ask(RequestCode.QUERY_ASSIGNMENT, None, json.dumps(body).encode()))
        return [(one["messageQueue"]["queueId"], one["mode"]) for one in answer["messageQueueAssignments"]]

    assert [asked(one) for one in clients] == [[(0, "PULL"), (1, "PULL")], [(2, "PULL")], [(3, "PULL")]]
    assert len(asked(clients[0], "BROADCASTING")) == 4
    mode = {"consumerGroup": "assigned", "topic": "assigned", "mode": "POP"}
    clients[0].ask(RequestCode.SET_MESSAGE_REQUEST_MODE, None, json.dumps(mode).encode())
    assert asked(clients[1]) == [(-1, "POP")]


@pytest.mark.parametrize(("queues", "clients"), [(1, 3), (4, 3), (8, 3), (8, 8), (0, 2)])
@pytest.mark.parametrize("by_circle", [True, False])
def test_every_queue_goes_to_one_client(queues: int, clients: int, by_circle: bool) -> None:
    ids = [f"c{number}" for number in range(clients)]
    parts = [share(list(range(queues)), ids, one, by_circle=by_circle) for one in ids]
    assert sorted(queue for part in parts for queue in part) == list(range(queues))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert share([0], ids, "stranger", by_circle=by_circle) == []
