"""Requests of RocketMQ 5 clients that break rules: each is answered with its own code, and the store goes on."""

import hashlib
import time
import zlib
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from tandemmq.rocketmq5.v2 import calls_pb2, message_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tests.contract.rocketmq5.v2_client import SERVICE, V2Client, message

TOPIC = "hostile"

Change = Callable[[Any], None]


def system(**fields: Any) -> Change:
    """Sets system properties."""

    def change(one: Any) -> None:
        one.system_properties.MergeFrom(message_pb2.SystemProperties(**fields))

    return change


def user(properties: dict[str, str]) -> Change:
    """Sets user properties."""
    return lambda one: one.user_properties.update(properties)


def without_id(one: Any) -> None:
    one.system_properties.message_id = "  "


def digest(kind: message_pb2.DigestType.ValueType, checksum: str) -> Change:
    return system(body_digest=message_pb2.Digest(type=kind, checksum=checksum))


FAR = Timestamp(seconds=1 << 37)
BODY = b"body"
CRC = zlib.crc32(BODY)
REFUSED: dict[str, tuple[Change, int]] = {
    "blank id": (without_id, pb.ILLEGAL_MESSAGE_ID),
    "long id": (system(message_id="x" * 129), pb.ILLEGAL_MESSAGE_ID),
    "tag with |": (system(tag="a|b"), pb.ILLEGAL_MESSAGE_TAG),
    "blank tag": (system(tag=" "), pb.ILLEGAL_MESSAGE_TAG),
    "control in tag": (system(tag="a\x02b"), pb.ILLEGAL_MESSAGE_TAG),
    "blank key": (system(keys=["a", " "]), pb.ILLEGAL_MESSAGE_KEY),
    "long group": (system(message_type=pb.FIFO, message_group="g" * 65), pb.ILLEGAL_MESSAGE_GROUP),
    "fifo without group": (system(message_type=pb.FIFO), pb.ILLEGAL_MESSAGE_GROUP),
    "delay without time": (system(message_type=pb.DELAY), pb.ILLEGAL_DELIVERY_TIME),
    "delay of two days": (
        system(message_type=pb.DELAY, delivery_timestamp=Timestamp(seconds=int(time.time()) + 2 * 86_400)),
        pb.ILLEGAL_DELIVERY_TIME,
    ),
    "delay too far": (system(message_type=pb.DELAY, delivery_timestamp=FAR), pb.ILLEGAL_DELIVERY_TIME),
    "lite": (system(message_type=pb.LITE, lite_topic="l"), pb.UNSUPPORTED),
    "no such type": (system(message_type=99), pb.BAD_REQUEST),
    "property of the broker": (user({"TAGS": "x"}), pb.ILLEGAL_MESSAGE_PROPERTY_KEY),
    "property with a separator": (user({"a": "x\x02PGROUP\x01y"}), pb.ILLEGAL_MESSAGE_PROPERTY_KEY),
    "property without a name": (user({"": "x"}), pb.ILLEGAL_MESSAGE_PROPERTY_KEY),
    "too many properties": (user({f"p{i}": "x" for i in range(129)}), pb.MESSAGE_PROPERTIES_TOO_LARGE),
    "too large properties": (user({"p": "x" * (16 << 10)}), pb.MESSAGE_PROPERTIES_TOO_LARGE),
    "wrong MD5": (digest(message_pb2.MD5, "00" * 16), pb.MESSAGE_CORRUPTED),
    "wrong SHA1": (digest(message_pb2.SHA1, "00" * 20), pb.MESSAGE_CORRUPTED),
    "wrong CRC32": (digest(message_pb2.CRC32, "1"), pb.MESSAGE_CORRUPTED),
    "no such digest": (digest(77, "1"), pb.BAD_REQUEST),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_message_that_breaks_a_rule_has_a_code_of_its_own(v2: V2Client, what: str) -> None:
    change, code = REFUSED[what]
    one = message(TOPIC, BODY)
    change(one)
    answer = v2.send(one)
    assert (answer.status.code, answer.entries[0].status.code) == (code, code)
    assert v2.send(message(TOPIC)).status.code == pb.OK


GOOD = {
    "MD5": digest(message_pb2.MD5, hashlib.md5(BODY).hexdigest()),
    "SHA1": digest(message_pb2.SHA1, hashlib.sha1(BODY).hexdigest().upper()),
    "CRC32": digest(message_pb2.CRC32, f"{CRC:08X}"),
    "CRC32 unpadded": digest(message_pb2.CRC32, f"{CRC:x}"),
    "CRC32 decimal": digest(message_pb2.CRC32, str(CRC)),
    "a priority": system(priority=3),
    "a key with blanks around": system(keys=["a", "b"]),
    "no type": system(message_type=pb.MESSAGE_TYPE_UNSPECIFIED),
}


@pytest.mark.parametrize("what", GOOD)
def test_a_message_with_all_of_that_is_taken(v2: V2Client, what: str) -> None:
    one = message(TOPIC, BODY)
    GOOD[what](one)
    assert v2.send(one).status.code == pb.OK


@pytest.mark.parametrize("name", ["", "a b", "ü", "x" * 128, "a\x00"])
def test_a_name_that_is_none_makes_no_topic(v2: V2Client, name: str) -> None:
    assert v2.route(name).status.code == pb.ILLEGAL_TOPIC
    assert v2.send(message(name)).status.code == pb.ILLEGAL_TOPIC


@pytest.mark.parametrize("name", ["%DLQ%nobody", "%RETRY%nobody"])
def test_topics_of_groups_are_not_made_by_asking(v2: V2Client, name: str) -> None:
    assert v2.route(name).status.code == pb.TOPIC_NOT_FOUND


@pytest.mark.parametrize("name", ["TBW102", "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "rmq_sys_wheel_timer"])
def test_topics_of_the_broker_are_no_topics_of_clients(v2: V2Client, name: str) -> None:
    assert v2.route(name).status.code == pb.ILLEGAL_TOPIC
    assert v2.send(message(name)).status.code == pb.ILLEGAL_TOPIC
    assert [part.status.code for part in v2.parts("workers", name)] == [pb.ILLEGAL_TOPIC]


@pytest.mark.parametrize("namespace", ["a%b", "n" * 65, "a b"])
def test_a_namespace_that_is_none_is_refused(v2: V2Client, namespace: str) -> None:
    answer = v2.ask("QueryRoute", topic=pb.Resource(resource_namespace=namespace, name="t"))
    assert answer.status.code == pb.BAD_REQUEST


def test_an_unreadable_request_ends_its_call_only(v2: V2Client) -> None:
    raw: Any = v2.channel.unary_unary(f"/{SERVICE}/SendMessage")
    with pytest.raises(grpc.RpcError):
        raw(b"\xff\xff\xff", timeout=10, metadata=v2.metadata)
    assert v2.send(message(TOPIC)).status.code == pb.OK


def test_too_many_messages_are_refused_as_a_whole(v2: V2Client) -> None:
    answer = v2.send(*[message(TOPIC)] * 1025)
    assert (answer.status.code, len(answer.entries)) == (pb.BAD_REQUEST, 0)
    assert v2.send().status.code == pb.BAD_REQUEST


def test_a_group_that_is_none_is_refused(v2: V2Client) -> None:
    for group in ("", "g" * 121, "a b", "DEFAULT_CONSUMER", "CID_RMQ_SYS_mine"):
        parts = v2.parts(group, TOPIC)
        assert [part.status.code for part in parts] == [pb.ILLEGAL_CONSUMER_GROUP]


def test_the_text_of_a_refusal_names_its_code(v2: V2Client) -> None:
    """Java's client shows the number of the code and the text; programs look for words of RocketMQ in it."""
    assert v2.route("a b").status.message.startswith("ILLEGAL_TOPIC: ")
    for milliseconds, words in (
        (999, "the invisibleTime is too small"),
        (43_200_001, "the invisibleTime is too large"),
    ):
        [part] = v2.parts(
            "g", TOPIC, invisible_duration=Duration(seconds=milliseconds // 1_000, nanos=milliseconds % 1_000 * 10**6)
        )
        assert (part.status.code, words in part.status.message) == (pb.ILLEGAL_INVISIBLE_TIME, True)


def test_properties_of_a_client_are_bounded(v2: V2Client) -> None:
    for properties in ({"n" * 65: "v"}, {"n": "v" * 257}, {f"n{i}": "v" for i in range(33)}):
        stream = v2.stream()
        settings = v2.producer(TOPIC)
        settings.client_properties.update(properties)
        stream.say(settings)
        assert stream.next().status.code == pb.INVALID_CLIENT_PROPERTIES


def test_numbers_that_make_no_sense_are_refused(v2: V2Client) -> None:
    assert v2.parts("g", TOPIC, batch_size=-1)[0].status.code == pb.BAD_REQUEST
    answer = v2.ask("AckMessage", group=pb.Resource(name="g"), topic=pb.Resource(name=TOPIC))
    assert answer.status.code == pb.BAD_REQUEST
    resolution = calls_pb2.EndTransactionRequest(
        topic=pb.Resource(name=TOPIC),
        transaction_id="x",
        message_id="x",
        resolution=9,  # type: ignore[arg-type]
    )
    assert v2.ask("EndTransaction", resolution).status.code == pb.BAD_REQUEST
    blank = v2.ask("EndTransaction", topic=pb.Resource(name=TOPIC), resolution=calls_pb2.COMMIT)
    assert blank.status.code == pb.INVALID_TRANSACTION_ID


def test_lite_topics_are_unsupported(v2: V2Client) -> None:
    assert v2.ask("SyncLiteSubscription", topic=pb.Resource(name=TOPIC)).status.code == pb.UNSUPPORTED
