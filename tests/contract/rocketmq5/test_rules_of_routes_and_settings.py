"""Rules of RocketMQ 5 clients about routes, settings and sends, by their numbers in the description of the protocol."""

import socket
from itertools import count
from typing import Any

import grpc
import pytest

from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.rocketmq5.v2 import telemetry_pb2
from tests.contract.rocketmq5.v2_client import SERVICE, V2Client, message

_numbers = count(1)


@pytest.fixture
def topic() -> str:
    return f"rules-{next(_numbers)}"


def test_rule_1_the_path_is_that_of_the_official_service(v2: V2Client, topic: str) -> None:
    unknown: Any = v2.channel.unary_unary(f"/{SERVICE}/QueryRout")
    with pytest.raises(grpc.RpcError, match="UNIMPLEMENTED"):
        unknown(b"", timeout=10)
    assert v2.route(topic).status.code == pb.OK


def test_rules_2_and_3_a_refusal_is_a_status_of_its_own_in_an_answer(v2: V2Client) -> None:
    refused = v2.route("not a name!")
    assert refused.status.code == pb.ILLEGAL_TOPIC
    assert "a-z" in refused.status.message


METHODS = [
    "QueryRoute",
    "QueryAssignment",
    "Heartbeat",
    "NotifyClientTermination",
    "SendMessage",
    "AckMessage",
    "ChangeInvisibleDuration",
    "ForwardMessageToDeadLetterQueue",
    "EndTransaction",
    "RecallMessage",
    "UpdateOffset",
    "GetOffset",
    "QueryOffset",
    "SyncLiteSubscription",
]


@pytest.mark.parametrize("method", METHODS)
def test_rule_3_an_answer_always_has_a_status(v2: V2Client, method: str) -> None:
    assert v2.ask(method).status.code >= pb.OK
    del v2.headers["x-mq-client-id"]
    assert v2.ask(method).status.code == pb.CLIENT_ID_REQUIRED


def test_rule_4_a_route_has_all_that_clients_need(v2: V2Client, topic: str) -> None:
    for queue in v2.route(topic).message_queues:
        assert queue.broker.endpoints.scheme == pb.IPv4
        assert (queue.broker.id, queue.broker.name != "") == (0, True)
        assert queue.permission == pb.READ_WRITE
        assert list(queue.accept_message_types) == [pb.NORMAL, pb.FIFO, pb.DELAY, pb.TRANSACTION]
        assert queue.topic.name == topic


def test_rule_5_there_is_a_queue_0(v2: V2Client, topic: str) -> None:
    assert [queue.id for queue in v2.route(topic).message_queues] == [0, 1, 2, 3]


@pytest.mark.parametrize("scheme", [pb.DOMAIN_NAME, pb.IPv4])
def test_rule_6_clients_are_sent_where_they_came(v2: V2Client, topic: str, scheme: pb.AddressScheme.ValueType) -> None:
    dialled = pb.Endpoints(scheme=scheme, addresses=[pb.Address(host="broker.example", port=4711)])
    queues = v2.route(topic, endpoints=dialled).message_queues
    assert {queue.broker.endpoints.SerializeToString() for queue in queues} == {dialled.SerializeToString()}
    group = pb.Resource(name="g")
    asked = v2.ask("QueryAssignment", topic=pb.Resource(name=topic), group=group, endpoints=dialled)
    assert asked.assignments[0].message_queue.broker.endpoints == dialled


def test_rule_6_who_says_nothing_is_sent_to_the_address_of_the_store(v2: V2Client, topic: str) -> None:
    queues = v2.route(topic, endpoints=pb.Endpoints()).message_queues
    assert queues[0].broker.endpoints == v2.endpoints


def test_rule_7_settings_are_answered_on_the_same_command_with_ok(v2: V2Client, topic: str) -> None:
    stream = v2.stream()
    stream.say(v2.producer(topic))
    answer = stream.next()
    assert answer.WhichOneof("command") == "settings"
    assert answer.status.code == pb.OK
    assert answer.settings.publishing.max_body_size > 0
    assert [one.name for one in answer.settings.publishing.topics] == [topic]


def test_rule_8_a_producer_gets_an_exponential_policy(v2: V2Client, topic: str) -> None:
    stream = v2.stream()
    stream.say(v2.producer(topic))
    policy = stream.next().settings.backoff_policy
    assert policy.WhichOneof("strategy") == "exponential_backoff"
    assert policy.max_attempts == 3


@pytest.mark.parametrize(
    ("language", "strategy"),
    [(pb.NODE_JS, "exponential_backoff"), (pb.JAVA, "customized_backoff"), (pb.PYTHON, "customized_backoff")],
)
def test_rule_9_a_push_consumer_gets_the_policy_that_its_language_knows(
    v2: V2Client, topic: str, language: pb.Language.ValueType, strategy: str
) -> None:
    stream = v2.stream()
    stream.say(v2.consumer(pb.PUSH_CONSUMER, "rules-9", topic, language=language))
    answer = stream.next().settings
    assert answer.backoff_policy.WhichOneof("strategy") == strategy
    assert answer.backoff_policy.max_attempts == 17
    assert answer.subscription.receive_batch_size == 32
    assert answer.subscription.long_polling_timeout.seconds == 20
    assert answer.subscription.HasField("fifo")
    if strategy == "customized_backoff":
        waits = answer.backoff_policy.customized_backoff.next
        assert [wait.seconds for wait in waits][:5] == [1, 5, 10, 30, 60]
        assert not any(wait.nanos for wait in waits)  # some clients keep whole seconds only
    else:
        assert answer.backoff_policy.exponential_backoff.initial.seconds == 1


def test_rule_10_metrics_are_on_and_can_be_exported_to_the_same_port(v2: V2Client, topic: str) -> None:
    stream = v2.stream()
    stream.say(v2.consumer(pb.PUSH_CONSUMER, "rules-10", topic))
    metric = stream.next().settings.metric
    assert metric.on
    assert metric.endpoints == v2.endpoints
    export: Any = v2.channel.unary_unary("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export")
    assert export(b"\x0a\x00", timeout=10) == b""


def test_rule_11_settings_are_said_again(v2: V2Client, topic: str) -> None:
    stream = v2.stream()
    stream.say(v2.producer(topic))
    assert stream.next("settings").settings == stream.next("settings").settings


def test_rule_13_an_ordinary_group_has_one_assignment(v2: V2Client, topic: str) -> None:
    group = pb.Resource(name="rules-13")
    answer = v2.ask("QueryAssignment", topic=pb.Resource(name=topic), group=group, endpoints=v2.endpoints)
    assert answer.status.code == pb.OK
    assert [one.message_queue.id for one in answer.assignments] == [-1]


def test_rule_14_messages_of_a_group_share_a_queue(v2: V2Client, topic: str) -> None:
    answers = [
        v2.send(message(topic, kind=pb.FIFO, message_group="one", queue_id=queue)).entries[0] for queue in range(4)
    ]
    assert [one.status.code for one in answers] == [pb.OK] * 4
    assert [one.offset for one in answers] == [0, 1, 2, 3]


def test_rule_23_nothing_need_be_known_of_a_client(v2: V2Client, topic: str) -> None:
    beat = v2.ask("Heartbeat", group=pb.Resource(name="rules-23"), client_type=pb.PUSH_CONSUMER)
    assert beat.status.code == pb.OK
    assert v2.ask("NotifyClientTermination", group=pb.Resource(name="rules-23")).status.code == pb.OK
    assert v2.send(message(topic)).status.code == pb.OK


def test_rule_24_the_id_of_a_message_comes_back(v2: V2Client, topic: str) -> None:
    one = message(topic)
    entry = v2.send(one).entries[0]
    assert entry.message_id == one.system_properties.message_id == entry.transaction_id


def test_rule_25_pings_without_calls_are_fine(v2: V2Client) -> None:
    ping, settings = b"\0\0\x08\x06\0\0\0\0\0" + b"tandemmq", b"\0\0\0\x04\0\0\0\0\0"
    host, _, port = v2.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings)
        reader = connection.makefile("rb")
        kinds = []
        for _ in range(10):
            connection.sendall(ping)
            kind = -1
            while kind != 6:
                head = reader.read(9)
                kind = head[3]
                reader.read(int.from_bytes(head[:3], "big"))
                kinds.append(kind)
    assert 7 not in kinds  # GOAWAY


def test_rule_25_a_body_of_the_largest_size_is_taken(v2: V2Client, topic: str) -> None:
    largest = 32 * 1024
    assert v2.send(message(topic, b"x" * largest)).status.code == pb.OK
    assert v2.send(message(topic, b"x" * (largest + 1))).status.code == pb.MESSAGE_BODY_TOO_LARGE


def test_several_messages_have_entries_in_order_and_one_status_over_them(v2: V2Client, topic: str) -> None:
    good, bad = message(topic), message(topic, b"")
    answer = v2.send(good, bad, message(topic))
    assert answer.status.code == pb.MULTIPLE_RESULTS
    assert [one.status.code for one in answer.entries] == [pb.OK, pb.MESSAGE_BODY_EMPTY, pb.OK]
    assert answer.entries[0].message_id == good.system_properties.message_id
    assert v2.send(message(topic), message(topic)).status.code == pb.OK
    assert v2.send(message(topic), message(f"{topic}-other")).status.code == pb.BAD_REQUEST


def test_a_stream_without_a_client_id_is_refused(v2: V2Client) -> None:
    del v2.headers["x-mq-client-id"]
    stream = v2.stream()
    with pytest.raises(grpc.RpcError, match="x-mq-client-id"):
        stream.next()


def test_settings_that_say_nothing_are_refused_and_the_stream_goes_on(v2: V2Client, topic: str) -> None:
    stream = v2.stream()
    empty = v2.producer(topic)
    empty.ClearField("publishing")
    stream.say(empty)
    refused: telemetry_pb2.TelemetryCommand = stream.next()
    assert refused.status.code == pb.UNRECOGNIZED_CLIENT_TYPE
    stream.say(v2.producer(topic))
    assert stream.next("settings").status.code == pb.OK
