"""Rules of RocketMQ 5 clients about receiving, by their numbers in the description of the protocol."""

import hashlib
import signal
import threading
import time
from itertools import count
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from tandemmq.rocketmq5.v2 import calls_pb2, message_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tests.contract.rocketmq5.conftest import GATEWAY_IN_CAMPAIGNS
from tests.contract.rocketmq5.v2_client import V2Client, duration, message
from tests.contract.store_process import StoreProcess

_numbers = count(1)

GROUP = "receivers"


@pytest.fixture
def topic(v2: V2Client) -> str:
    """A topic that the group knows from its first message on."""
    name = f"received-{next(_numbers)}"
    v2.route(name)
    v2.receive(GROUP, name, wait=0)
    return name


def test_rule_12_a_receive_gives_messages_of_any_queue(v2: V2Client, topic: str) -> None:
    sent = {v2.send(message(topic)).entries[0].message_id for _ in range(8)}
    found: list[Any] = []
    while len(found) < 8:
        queue = pb.MessageQueue(topic=pb.Resource(name=topic), id=0)
        found += v2.receive(GROUP, topic, message_queue=queue)
    assert {one.system_properties.message_id for one in found} == sent
    assert len({one.system_properties.queue_id for one in found}) > 1


def test_rules_15_and_16_a_message_has_all_that_clients_need(v2: V2Client, topic: str) -> None:
    one = message(topic, b"the body", tag="t", keys=["k1", "k2"])
    one.user_properties["mine"] = "yes"
    v2.send(one)
    [found] = v2.take(GROUP, topic, 1)
    system = found.system_properties
    assert (found.body, found.topic.name, dict(found.user_properties)) == (b"the body", topic, {"mine": "yes"})
    assert system.body_digest.type == message_pb2.MD5
    assert system.body_digest.checksum == hashlib.md5(b"the body").hexdigest().upper()
    assert system.body_encoding == message_pb2.IDENTITY
    assert (system.message_id, system.tag, list(system.keys)) == (one.system_properties.message_id, "t", ["k1", "k2"])
    assert system.message_type == pb.NORMAL
    assert system.delivery_attempt == 1
    assert system.receipt_handle
    assert len(system.receipt_handle) <= 200
    assert system.born_host
    assert system.HasField("queue_offset")
    assert system.invisible_duration.seconds == 30
    assert system.born_host == "test"
    for absent in ("message_group", "delivery_timestamp", "dead_letter_queue", "lite_topic", "priority"):
        assert not system.HasField(absent)


def test_a_gzipped_body_comes_as_it_was_sent(v2: V2Client, topic: str) -> None:
    one = message(topic, b"\x1f\x8b\x08 as if")
    one.system_properties.body_encoding = message_pb2.GZIP
    v2.send(one)
    [found] = v2.take(GROUP, topic, 1)
    assert (found.body, found.system_properties.body_encoding) == (one.body, message_pb2.GZIP)


def test_rule_17_status_messages_time_and_the_end(v2: V2Client, topic: str) -> None:
    v2.send(message(topic))
    parts = v2.parts(GROUP, topic, invisible_duration=duration(30), long_polling_timeout=duration(10))
    assert [part.WhichOneof("content") for part in parts] == ["status", "message", "delivery_timestamp"]
    assert parts[0].status.code == pb.OK


def test_rule_18_no_message_is_40401(v2: V2Client, topic: str) -> None:
    parts = v2.parts(GROUP, topic, invisible_duration=duration(30), long_polling_timeout=duration(0.1))
    assert [part.WhichOneof("content") for part in parts] == ["status", "delivery_timestamp"]
    assert parts[0].status.code == pb.MESSAGE_NOT_FOUND


@GATEWAY_IN_CAMPAIGNS
def test_rule_19_a_poll_ends_before_the_deadline_of_its_client(v2: V2Client, topic: str) -> None:
    parts = v2.parts(
        GROUP, topic, seconds=3, invisible_duration=duration(30), long_polling_timeout=duration(3)
    )  # a deadline that is the poll's own: what one client asks
    assert parts[0].status.code == pb.MESSAGE_NOT_FOUND


@GATEWAY_IN_CAMPAIGNS
def test_a_poll_that_says_no_time_waits_as_the_settings_of_the_client_say(v2: V2Client, topic: str) -> None:
    stream = v2.stream()
    settings = v2.consumer(pb.SIMPLE_CONSUMER, GROUP, topic, language=pb.GOLANG)
    settings.subscription.long_polling_timeout.CopyFrom(duration(15))
    stream.say(settings)
    stream.next("settings")
    timer = threading.Timer(1, v2.send, [message(topic)])
    timer.start()
    parts = v2.parts(GROUP, topic, invisible_duration=duration(30))
    timer.join()
    assert [part.WhichOneof("content") for part in parts] == ["status", "message", "delivery_timestamp"]


def test_rule_20_a_stale_handle_is_named_and_a_dead_letter_of_one_is_fine(v2: V2Client, topic: str) -> None:
    names = {"group": pb.Resource(name=GROUP), "topic": pb.Resource(name=topic)}
    entries = [calls_pb2.AckMessageEntry(message_id="m", receipt_handle="rubbish")]
    answer = v2.ask("AckMessage", entries=entries, **names)  # type: ignore[arg-type]
    assert answer.status.code == answer.entries[0].status.code == pb.INVALID_RECEIPT_HANDLE
    changed = v2.change(GROUP, topic, "rubbish", 1)
    assert changed.status.code == pb.INVALID_RECEIPT_HANDLE
    assert changed.receipt_handle == "rubbish"  # rule 21
    forward = v2.ask("ForwardMessageToDeadLetterQueue", receipt_handle="rubbish", **names)  # type: ignore[arg-type]
    assert forward.status.code == pb.OK


@GATEWAY_IN_CAMPAIGNS
def test_rule_20_what_was_acknowledged_can_be_changed_and_forwarded_without_effect(v2: V2Client, topic: str) -> None:
    v2.send(message(topic))
    [one] = v2.take(GROUP, topic, 1)
    handle = one.system_properties.receipt_handle
    assert v2.acknowledge(GROUP, one).status.code == pb.OK
    assert v2.change(GROUP, topic, handle, 0).status.code in (pb.OK, pb.INVALID_RECEIPT_HANDLE)
    names = {"group": pb.Resource(name=GROUP), "topic": pb.Resource(name=topic)}
    forward = v2.ask("ForwardMessageToDeadLetterQueue", receipt_handle=handle, **names)  # type: ignore[arg-type]
    assert forward.status.code == pb.OK
    assert v2.receive(GROUP, topic, wait=1) == []


def test_rule_21_a_refused_change_gives_the_handle_back(v2: V2Client, topic: str) -> None:
    v2.send(message(topic))
    [one] = v2.take(GROUP, topic, 1)
    handle = one.system_properties.receipt_handle
    for group, seconds in (("not a group", 1), (GROUP, -1), (GROUP, 1e9)):
        refused = v2.change(group, topic, handle, seconds)
        assert refused.status.code in (pb.ILLEGAL_CONSUMER_GROUP, pb.ILLEGAL_INVISIBLE_TIME)
        assert refused.receipt_handle == handle
    assert v2.change(GROUP, topic, handle, 60).receipt_handle == handle
    assert v2.acknowledge(GROUP, one).status.code == pb.OK


@GATEWAY_IN_CAMPAIGNS
def test_an_acknowledged_message_is_gone_and_a_repeat_is_fine(v2: V2Client, topic: str) -> None:
    v2.send(message(topic))
    found = v2.take(GROUP, topic, 1, invisible=1)
    while (answer := v2.acknowledge(GROUP, *found)).status.code == pb.INVALID_RECEIPT_HANDLE:
        found = v2.take(GROUP, topic, 1, invisible=1)  # it took more than a second to say so: the message came again
    for each in (answer, v2.acknowledge(GROUP, *found)):
        assert (each.status.code, each.entries[0].status.code) == (pb.OK, pb.OK)
    assert v2.receive(GROUP, topic, wait=2) == []


@pytest.mark.parametrize("language", ["JAVA", "GO"])
def test_an_acknowledgement_that_comes_too_late_is_refused(v2: V2Client, topic: str, language: str) -> None:
    """Go's simple consumer does not hear of it: there it counts until the message is given out again."""
    v2.headers["x-mq-language"] = language
    v2.send(message(topic))
    [late] = v2.take(GROUP, topic, 1)
    v2.change(GROUP, topic, late.system_properties.receipt_handle, 0)
    answer = v2.acknowledge(GROUP, late)
    if language == "GO":
        assert answer.status.code == pb.OK
    else:
        assert answer.status.code == answer.entries[0].status.code == pb.INVALID_RECEIPT_HANDLE
        assert "INVALID_RECEIPT_HANDLE" in answer.status.message
        assert v2.acknowledge(GROUP, *v2.take(GROUP, topic, 1)).status.code == pb.OK


@pytest.mark.parametrize("seconds", [0, 0.001, 1])
def test_rules_21_and_22_a_message_can_come_again_at_once(v2: V2Client, topic: str, seconds: float) -> None:
    v2.send(message(topic))
    [first] = v2.take(GROUP, topic, 1)
    handle = first.system_properties.receipt_handle
    changed = v2.change(GROUP, topic, handle, seconds)
    assert changed.status.code == pb.OK
    assert changed.receipt_handle
    [again] = v2.receive(GROUP, topic, wait=8)
    assert again.system_properties.delivery_attempt == 2
    assert again.system_properties.message_id == first.system_properties.message_id


@GATEWAY_IN_CAMPAIGNS
def test_rule_22_a_push_consumer_of_node_does_not_get_its_message_in_a_hot_loop(v2: V2Client, topic: str) -> None:
    stream = v2.stream()
    stream.say(v2.consumer(pb.PUSH_CONSUMER, GROUP, topic, language=pb.NODE_JS))
    stream.next("settings")
    v2.send(message(topic))
    [first] = v2.take(GROUP, topic, 1)
    v2.change(GROUP, topic, first.system_properties.receipt_handle, 0.001)
    assert v2.receive(GROUP, topic, wait=0) == []
    assert len(v2.receive(GROUP, topic, wait=10)) == 1


@GATEWAY_IN_CAMPAIGNS
def test_a_refused_message_comes_again_in_time_to_a_poll_that_waited_before(v2: V2Client, topic: str) -> None:
    v2.send(message(topic))
    [first] = v2.take(GROUP, topic, 1)
    waiting = v2.begin_receive(GROUP, topic, invisible_duration=duration(30), long_polling_timeout=duration(20))
    waiting.initial_metadata()  # it has begun
    v2.change(GROUP, topic, first.system_properties.receipt_handle, 1)
    changed = time.monotonic()
    parts = list(waiting)
    assert time.monotonic() - changed < 15  # not at the end of the poll
    [again] = [part.message for part in parts if part.HasField("message")]
    assert again.system_properties.delivery_attempt == 2


@GATEWAY_IN_CAMPAIGNS
def test_a_due_message_wakes_a_poll_that_waits(v2: V2Client, topic: str) -> None:
    v2.send(message(topic))
    v2.take(GROUP, topic, 1, invisible=2)
    begun = time.monotonic()
    [again] = v2.receive(GROUP, topic, wait=20)
    assert again.system_properties.delivery_attempt == 2
    assert time.monotonic() - begun < 15  # not at the end of the poll


def test_rule_23_receipts_count_after_a_restart(own_store: StoreProcess) -> None:
    with V2Client(own_store.address) as client:
        client.route("restarted")
        client.receive(GROUP, "restarted", wait=0)
        client.send(message("restarted"))
        found = client.take(GROUP, "restarted", 1, invisible=60)
    own_store.restart()
    with V2Client(own_store.address) as client:
        assert client.acknowledge(GROUP, *found).status.code == pb.OK
        assert client.receive(GROUP, "restarted", wait=1) == []


def test_rule_24_a_message_that_is_sent_again_is_stored_once(own_store: StoreProcess) -> None:
    with V2Client(own_store.address) as client:
        client.route("sent-again")
        client.receive(GROUP, "sent-again", wait=0)
        one = message("sent-again")
        first, second = client.send(one), client.send(one)
        assert first.entries[0].offset == second.entries[0].offset
        half = message("sent-again", kind=pb.TRANSACTION)
        assert client.send(half).entries[0].transaction_id == client.send(half).entries[0].transaction_id
    own_store.restart(signal.SIGKILL)
    with V2Client(own_store.address) as client:
        assert client.send(one).entries[0].offset == first.entries[0].offset
        client.take(GROUP, "sent-again", 1)
        assert client.receive(GROUP, "sent-again", wait=1) == []


def test_messages_of_a_client_that_goes_come_again(v2: V2Client, topic: str) -> None:
    v2.send(message(topic))
    held = v2.take(GROUP, topic, 1, auto_renew=True, invisible=None)
    assert v2.ask("NotifyClientTermination", group=pb.Resource(name=GROUP)).status.code == pb.OK
    [again] = v2.receive(GROUP, topic, wait=20)
    assert again.system_properties.message_id == held[0].system_properties.message_id


def test_an_acknowledgement_that_a_client_sent_before_it_ended_counts(v2: V2Client, topic: str) -> None:
    """Clients end while acknowledgements are on their way, on another stream of the connection."""
    for _ in range(3):  # a machine that is busy may take a second for it
        v2.send(message(topic))
        held = v2.take(GROUP, topic, 1, auto_renew=True, invisible=None)
        v2.ask("NotifyClientTermination", group=pb.Resource(name=GROUP))
        if v2.acknowledge(GROUP, *held).status.code == pb.OK:
            return
        v2.acknowledge(GROUP, *v2.take(GROUP, topic, 1))
    raise AssertionError("no acknowledgement counted")


def test_a_client_that_goes_waits_no_more(v2: V2Client, topic: str) -> None:
    waiting = v2.begin_receive(GROUP, topic, invisible_duration=duration(30), long_polling_timeout=duration(20))
    waiting.initial_metadata()  # it has begun
    with V2Client(v2.address) as other:
        staying = other.begin_receive(GROUP, topic, invisible_duration=duration(30), long_polling_timeout=duration(20))
        staying.initial_metadata()
        assert v2.ask("NotifyClientTermination", group=pb.Resource(name=GROUP)).status.code == pb.OK
        gone = time.monotonic()
        assert [part.status.code for part in waiting if part.HasField("status")] == [pb.MESSAGE_NOT_FOUND]
        assert time.monotonic() - gone < 15  # not at the end of the poll
        other.send(message(topic))
        assert [part.WhichOneof("content") for part in staying] == ["status", "message", "delivery_timestamp"]


@GATEWAY_IN_CAMPAIGNS
def test_a_message_that_was_delayed_says_until_when(v2: V2Client, topic: str) -> None:
    due = Timestamp()
    due.FromMilliseconds(time.time_ns() // 1_000_000 + 1_500)
    v2.send(message(topic, kind=pb.DELAY, delivery_timestamp=due))
    [one] = v2.take(GROUP, topic, 1)
    assert one.system_properties.message_type == pb.DELAY
    assert one.system_properties.delivery_timestamp == due
    assert one.system_properties.store_timestamp.ToMilliseconds() >= due.ToMilliseconds()


def test_a_cancelled_poll_loses_no_message(v2: V2Client, topic: str) -> None:
    waiting = v2.begin_receive(GROUP, topic, long_polling_timeout=duration(10), invisible_duration=duration(60))
    waiting.cancel()
    v2.send(message(topic))
    assert len(v2.take(GROUP, topic, 1)) == 1


def test_a_filter_that_is_none_is_refused(v2: V2Client, topic: str) -> None:
    bad = pb.FilterExpression(type=pb.SQL, expression="a = = b")
    parts = v2.parts(GROUP, topic, filter_expression=bad, invisible_duration=duration(30))
    assert [part.status.code for part in parts] == [pb.ILLEGAL_FILTER_EXPRESSION]


def test_tags_and_conditions_choose_messages(v2: V2Client, topic: str) -> None:
    for number in range(4):
        one = message(topic, tag="ab"[number % 2])
        one.user_properties["n"] = str(number)
        v2.send(one)
    tagged = pb.FilterExpression(type=pb.TAG, expression="a || c")
    found = v2.take("by-tag", topic, 2, filter_expression=tagged)
    assert {one.system_properties.tag for one in found} == {"a"}
    condition = pb.FilterExpression(type=pb.SQL, expression="n >= 2 AND TAGS = 'b'")
    [one] = v2.take("by-condition", topic, 1, filter_expression=condition)
    assert one.user_properties["n"] == "3"


def test_dead_letters_are_read_by_their_topic(v2: V2Client, topic: str) -> None:
    v2.send(message(topic, b"dead"))
    [one] = v2.take(GROUP, topic, 1)
    forwarded = v2.ask(
        "ForwardMessageToDeadLetterQueue",
        group=pb.Resource(name=GROUP),
        topic=one.topic,
        receipt_handle=one.system_properties.receipt_handle,
        message_id=one.system_properties.message_id,
    )
    assert forwarded.status.code == pb.OK
    letters = f"%DLQ%{GROUP}"
    assert v2.route(letters).status.code == pb.OK
    found = [one for one in v2.take("mourners", letters, 1) if one.body == b"dead"]
    system = found[0].system_properties
    assert found[0].topic.name == letters
    assert (system.dead_letter_queue.topic, system.message_id) == (topic, one.system_properties.message_id)
    assert v2.acknowledge("mourners", *found).status.code == pb.OK


def test_a_dead_letter_names_its_topic_as_a_client_of_a_namespace_does(v2: V2Client) -> None:
    v2.headers["x-mq-namespace"] = "shop"
    name = f"parcels-{next(_numbers)}"
    group, letters = f"packers-{name}", f"%DLQ%packers-{name}"
    v2.route(name)
    v2.receive(group, name, wait=0)
    v2.send(message(name, b"dead"))
    [one] = v2.take(group, name, 1)
    forwarded = v2.ask(
        "ForwardMessageToDeadLetterQueue",
        group=pb.Resource(name=group),
        topic=one.topic,
        receipt_handle=one.system_properties.receipt_handle,
        message_id=one.system_properties.message_id,
    )
    assert forwarded.status.code == pb.OK
    [found] = v2.take(f"mourners-{name}", letters, 1)
    assert (found.topic.name, found.system_properties.dead_letter_queue.topic) == (letters, name)
