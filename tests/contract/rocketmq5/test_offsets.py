"""Queues that are read by offset: what the protocol has calls for, and no official client uses."""

from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tests.contract.rocketmq5.v2_client import SERVICE, V2Client, duration, message

at_the_store = pytest.mark.parametrize("v2", ["store"], indirect=True)

TOPIC, GROUP = "read-by-offset", "pullers"
NOW = Timestamp(seconds=1)


def queue(number: int = 0, topic: str = TOPIC) -> pb.MessageQueue:
    return pb.MessageQueue(topic=pb.Resource(name=topic), id=number)


def pull(client: V2Client, offset: int, *, wait: float = 0, **fields: Any) -> list[Any]:
    """All parts of one PullMessage."""
    fields.setdefault("message_queue", queue())
    fields.setdefault("batch_size", 32)
    request = calls_pb2.PullMessageRequest(
        group=pb.Resource(name=GROUP), offset=offset, long_polling_timeout=duration(wait), **fields
    )
    method = client.channel.unary_stream(
        f"/{SERVICE}/PullMessage",
        calls_pb2.PullMessageRequest.SerializeToString,
        calls_pb2.PullMessageResponse.FromString,
    )
    return list(method(request, timeout=wait + 30, metadata=client.metadata))


@pytest.fixture
def sent(v2: V2Client) -> int:
    """Messages of one message group, and so of one queue; gives its number, having sent five more."""
    found = [v2.send(message(TOPIC, b"x", pb.FIFO, message_group="one", tag="ab"[n % 2])) for n in range(5)]
    assert {one.status.code for one in found} == {pb.OK}
    ends = [v2.ask("QueryOffset", message_queue=queue(n), query_offset_policy=calls_pb2.END).offset for n in range(4)]
    return ends.index(max(ends))


@at_the_store
def test_a_queue_is_read_by_offset(v2: V2Client, sent: int) -> None:
    parts = pull(v2, 0, message_queue=queue(sent), batch_size=3)
    assert [one.WhichOneof("content") for one in parts] == ["status", "message", "message", "message", "next_offset"]
    assert (parts[0].status.code, parts[-1].next_offset) == (pb.OK, 3)
    assert [one.message.system_properties.queue_offset for one in parts[1:-1]] == [0, 1, 2]
    assert not parts[1].message.system_properties.HasField("receipt_handle")
    tagged = pull(v2, 0, message_queue=queue(sent), filter_expression=pb.FilterExpression(type=pb.TAG, expression="b"))
    assert {one.message.system_properties.tag for one in tagged if one.HasField("message")} == {"b"}


@at_the_store
def test_an_offset_that_holds_nothing_is_corrected_and_the_end_waits(v2: V2Client, sent: int) -> None:
    beyond = pull(v2, 10_000, message_queue=queue(sent))
    assert [one.WhichOneof("content") for one in beyond] == ["status", "next_offset"]
    assert beyond[0].status.code == pb.ILLEGAL_OFFSET
    at_end = pull(v2, beyond[-1].next_offset, message_queue=queue(sent), wait=0.2)
    assert at_end[0].status.code == pb.MESSAGE_NOT_FOUND
    assert pull(v2, -1)[0].status.code == pb.ILLEGAL_OFFSET
    assert pull(v2, 0, wait=-1)[0].status.code == pb.ILLEGAL_POLLING_TIME


@at_the_store
def test_offsets_of_groups_and_queues(v2: V2Client, sent: int) -> None:
    group, at = pb.Resource(name="offset-keepers"), queue(sent)
    assert v2.ask("GetOffset", group=group, message_queue=at).status.code == pb.OFFSET_NOT_FOUND
    assert v2.ask("UpdateOffset", group=group, message_queue=at, offset=2).status.code == pb.OK
    assert v2.ask("GetOffset", group=group, message_queue=at).offset == 2
    assert v2.ask("UpdateOffset", group=group, message_queue=at, offset=1).status.code == pb.OK
    assert v2.ask("GetOffset", group=group, message_queue=at).offset == 2, "it never goes back"
    begin = v2.ask("QueryOffset", message_queue=at, query_offset_policy=calls_pb2.BEGINNING)
    early = v2.ask("QueryOffset", message_queue=at, query_offset_policy=calls_pb2.TIMESTAMP, timestamp=NOW)
    assert (begin.status.code, begin.offset, early.offset) == (pb.OK, 0, 0)
    unknown = v2.ask("QueryOffset", message_queue=queue(0, "nobody-made-it"))
    assert unknown.status.code == pb.TOPIC_NOT_FOUND


@pytest.mark.parametrize("v2", ["gateway"], indirect=True)
def test_a_gateway_reads_no_queues(v2: V2Client) -> None:
    v2.route(TOPIC)
    assert v2.ask("QueryOffset", message_queue=queue()).status.code == pb.UNSUPPORTED
