"""Recalls of RocketMQ 5 clients: which handles there are, and which count."""

import base64
import time

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tests.contract.rocketmq5.v2_client import V2Client, message

TOPIC = "recalled"


def later(seconds: float) -> Timestamp:
    """A time from now."""
    due = time.time() + seconds
    return Timestamp(seconds=int(due), nanos=int(due % 1 * 1e9))


def recall(client: V2Client, handle: str, topic: str = TOPIC) -> pb.Code.ValueType:
    answer = client.ask("RecallMessage", topic=pb.Resource(name=topic), recall_handle=handle)
    code: pb.Code.ValueType = answer.status.code
    return code


def test_a_message_that_waits_has_a_handle_and_others_have_none(v2: V2Client) -> None:
    waits = v2.send(message(TOPIC, kind=pb.DELAY, delivery_timestamp=later(600))).entries[0]
    past = v2.send(message(TOPIC, kind=pb.DELAY, delivery_timestamp=later(-5))).entries[0]
    assert waits.recall_handle
    assert (past.status.code, past.recall_handle) == (pb.OK, "")
    assert v2.send(message(TOPIC)).entries[0].recall_handle == ""
    answer = v2.ask("RecallMessage", topic=pb.Resource(name=TOPIC), recall_handle=waits.recall_handle)
    assert (answer.status.code, answer.message_id) == (pb.OK, waits.message_id)


NO_NUMBER = base64.b64encode(b"v1 recalled b x k").decode()


@pytest.mark.parametrize("handle", ["", "rubbish", "====", NO_NUMBER, "x" * 2_000])
def test_a_handle_that_is_none_is_a_bad_request(v2: V2Client, handle: str) -> None:
    v2.route(TOPIC)
    assert recall(v2, handle) == pb.BAD_REQUEST


def test_a_handle_of_another_topic_or_of_a_time_that_has_come_is_a_bad_request(v2: V2Client) -> None:
    sent = v2.send(message(TOPIC, kind=pb.DELAY, delivery_timestamp=later(600))).entries[0]
    v2.route("recalled-other")
    assert recall(v2, sent.recall_handle, "recalled-other") == pb.BAD_REQUEST
    over = base64.urlsafe_b64encode(b"v1 recalled broker 1 key").decode()
    assert recall(v2, over) == pb.BAD_REQUEST
