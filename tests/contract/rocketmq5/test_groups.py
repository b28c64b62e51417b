"""Groups that were made with settings: order, and how often a message comes before it is a dead letter."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tests.contract.rocketmq5.v2_client import V2Client, message
from tests.contract.store_process import StoreProcess

GROUPS: dict[str, dict[str, Any]] = {
    "ordered": {"consumeMessageOrderly": True, "retryMaxTimes": 2},
    "in-go": {"consumeMessageOrderly": True},
    "few": {"retryMaxTimes": 1},
    "patient": {
        "retryMaxTimes": 2,
        "groupRetryPolicy": {"type": "CUSTOMIZED", "customizedRetryPolicy": {"next": [5_000, 86_400_000]}},
    },
}


@pytest.fixture(scope="module")
def grouped(transport: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """A store with groups that somebody made."""
    directory: Path = tmp_path_factory.mktemp(f"grouped-{transport}") / "store"
    (directory / "config").mkdir(parents=True)
    groups = {name: {"groupName": name, **settings} for name, settings in GROUPS.items()}
    table = {"subscriptionGroupTable": groups, "dataVersion": {"counter": 1, "timestamp": 1}}
    (directory / "config" / "subscriptionGroup.json").write_text(json.dumps(table))
    with StoreProcess(directory) as store:
        yield store


def test_rule_13_a_group_in_order_has_an_assignment_for_each_queue(grouped: StoreProcess) -> None:
    with V2Client(grouped.address) as client:
        topic, name = pb.Resource(name="in-order"), pb.Resource(name="ordered")
        answer = client.ask("QueryAssignment", topic=topic, group=name, endpoints=client.endpoints)
        assert [one.message_queue.id for one in answer.assignments] == [0, 1, 2, 3]
        stream = client.stream()
        stream.say(client.consumer(pb.PUSH_CONSUMER, "ordered", "in-order"))
        settings = stream.next("settings").settings
        assert settings.subscription.fifo
        assert settings.backoff_policy.max_attempts == 3


def test_a_group_waits_no_longer_than_its_clients_may_ask(grouped: StoreProcess) -> None:
    """Who asks for more is refused, and would ask again for ever."""
    with V2Client(grouped.address) as client:
        stream = client.stream()
        stream.say(client.consumer(pb.PUSH_CONSUMER, "patient", "waits"))
        waits = [one.ToSeconds() for one in stream.next("settings").settings.backoff_policy.customized_backoff.next]
        assert waits == [5, 43_200]
        client.send(message("waits"))
        [given] = client.take("patient", "waits", 1)
        handle = given.system_properties.receipt_handle
        assert client.change("patient", "waits", handle, waits[-1]).status.code == pb.OK


def test_messages_of_a_group_come_in_order_and_lock_it(grouped: StoreProcess) -> None:
    with V2Client(grouped.address) as client:
        client.route("locked")
        for number in range(3):
            client.send(message("locked", str(number).encode(), pb.FIFO, message_group="one"))
        found = client.take("ordered", "locked", 3)
        assert [one.body for one in found] == [b"0", b"1", b"2"]
        assert {one.system_properties.message_group for one in found} == {"one"}
        client.send(message("locked", b"3", pb.FIFO, message_group="one"))
        assert client.receive("ordered", "locked", wait=0) == []  # locked until all are dealt with
        client.send(message("locked", b"other", pb.FIFO, message_group="two"))
        assert [one.body for one in client.take("ordered", "locked", 1)] == [b"other"]
        assert client.acknowledge("ordered", *found).status.code == pb.OK
        assert [one.body for one in client.take("ordered", "locked", 1)] == [b"3"]


def test_a_run_comes_again_from_the_first_that_was_not_acknowledged_on(grouped: StoreProcess) -> None:
    with V2Client(grouped.address) as client:
        client.route("first-not-acked")
        for number in range(5):
            client.send(message("first-not-acked", str(number).encode(), pb.FIFO, message_group="one"))
        first = client.take("ordered", "first-not-acked", 3, batch_size=3)
        assert client.acknowledge("ordered", *first[1:]).status.code == pb.OK
        assert client.receive("ordered", "first-not-acked", wait=0) == []
        client.change("ordered", "first-not-acked", first[0].system_properties.receipt_handle, 0)
        again = client.take("ordered", "first-not-acked", 3, batch_size=3)
        assert [(one.body, one.system_properties.delivery_attempt) for one in again] == [
            (b"0", 2),
            (b"1", 2),
            (b"2", 2),
        ]
        assert client.acknowledge("ordered", *again).status.code == pb.OK
        assert [one.body for one in client.take("ordered", "first-not-acked", 2)] == [b"3", b"4"]


@pytest.mark.parametrize("known", [True, False])
def test_a_push_consumer_of_go_gets_one_message_of_a_group_at_a_time(grouped: StoreProcess, known: bool) -> None:
    topic = f"go-{known}"
    with V2Client(grouped.address, x_mq_language="GO") as client:
        client.route(topic)
        if known:
            stream = client.stream()
            stream.say(client.consumer(pb.PUSH_CONSUMER, "in-go", topic, language=pb.GOLANG))
            stream.next("settings")
        for number in range(3):
            client.send(message(topic, str(number).encode(), pb.FIFO, message_group="one"))
        for number in range(3):
            [one] = client.receive("in-go", topic, invisible=None, auto_renew=True)
            assert one.body == str(number).encode()
            assert client.acknowledge("in-go", one).status.code == pb.OK


def test_a_message_comes_once_more_than_it_is_retried_and_is_a_dead_letter_then(grouped: StoreProcess) -> None:
    with V2Client(grouped.address) as client:
        client.route("given-up")
        assert client.route("%DLQ%few").status.code == pb.TOPIC_NOT_FOUND
        sent = message("given-up", b"bad", tag="t", keys=["k"])
        sent.user_properties["mine"] = "yes"
        client.send(sent)
        for attempt in (1, 2):
            [one] = client.take("few", "given-up", 1)
            assert one.system_properties.delivery_attempt == attempt
            client.change("few", "given-up", one.system_properties.receipt_handle, 0)
        assert client.receive("few", "given-up", wait=2) == []
        [letter] = client.take("readers", "%DLQ%few", 1)  # a new group begins with the first of them
        assert (letter.topic.name, letter.body, letter.system_properties.tag) == ("%DLQ%few", b"bad", "t")
        assert (list(letter.system_properties.keys), dict(letter.user_properties)) == (["k"], {"mine": "yes"})
        assert letter.system_properties.message_id == sent.system_properties.message_id
        assert client.acknowledge("readers", letter).status.code == pb.OK
        assert [one.permission for one in client.route("%DLQ%few").message_queues] == [pb.READ_WRITE]


def test_a_group_that_nobody_made_is_an_ordinary_one(grouped: StoreProcess) -> None:
    with V2Client(grouped.address) as client:
        client.route("plain")
        stream = client.stream()
        stream.say(client.consumer(pb.PUSH_CONSUMER, "nobody-made-it", "plain"))
        settings = stream.next("settings").settings
        assert (settings.subscription.fifo, settings.backoff_policy.max_attempts) == (False, 17)
        client.send(message("plain"))
        [one] = client.take("nobody-made-it", "plain", 1, invisible=None, auto_renew=True)
        assert client.acknowledge("nobody-made-it", one).status.code == pb.OK
