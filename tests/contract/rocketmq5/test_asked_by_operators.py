"""What operators ask of RocketMQ 5 clients over their telemetry streams: thread stacks, and one message more."""

import itertools
import json
from collections.abc import Iterator

import grpc
import pytest
from typer.testing import CliRunner

from tandemmq.cli.main import app
from tandemmq.delivery.v1 import operations_pb2
from tandemmq.delivery.v1.operations_pb2_grpc import OperationsStub
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.format.message_id import encode_offset_id
from tests.contract.refusals import statuses
from tests.contract.rocketmq5.answering_consumer import STACK, AnsweringConsumer
from tests.contract.rocketmq5.v2_client import V2Client, message
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import until

_numbers = itertools.count()


@pytest.fixture
def operations(shared_store: StoreProcess) -> Iterator[OperationsStub]:
    with grpc.insecure_channel(shared_store.address) as channel:
        yield OperationsStub(channel)


@pytest.fixture
def consumer(v2: V2Client) -> Iterator[AnsweringConsumer]:
    topic = f"tried-{next(_numbers)}"
    v2.route(topic)
    v2.receive("tried", topic, wait=0)
    with AnsweringConsumer(v2.address, "tried", topic) as consumer:
        yield consumer


def offset_id(client: V2Client, topic: str, body: bytes, store: StoreProcess) -> str:
    """Of a message that is sent now."""
    client.send(message(topic, body))
    [one] = client.take("tried", topic, 1)
    with store.client() as native:
        [found] = native.query(topic, unique_key=one.system_properties.message_id)
        return encode_offset_id(found.store_host, found.physical_offset)


def test_the_stacks_of_a_client(consumer: AnsweringConsumer, operations: OperationsStub) -> None:
    request = operations_pb2.ShowThreadsRequest(group="tried", client_id=consumer.alive())
    answer = operations.ShowThreads(request, timeout=30)
    assert (answer.code, answer.text) == ("OK", STACK)


def test_a_client_consumes_a_message_for_a_test(
    v2: V2Client, consumer: AnsweringConsumer, operations: OperationsStub, shared_store: StoreProcess
) -> None:
    for body, code, text in ((b"good", "OK", ""), (b"bad one", "FAILED_TO_CONSUME_MESSAGE", "no good")):
        named = offset_id(v2, consumer.topic, body, shared_store)
        request = operations_pb2.TryMessageRequest(group="tried", client_id=consumer.alive(), message_id=named)
        answer = operations.TryMessage(request, timeout=30)
        assert (answer.code, answer.text) == (code, text)
    assert [one.body for one in consumer.tried] == [b"good", b"bad one"]
    assert {one.topic.name for one in consumer.tried} == {consumer.topic}
    system = consumer.tried[0].system_properties
    assert (system.delivery_attempt, system.HasField("receipt_handle")) == (1, False)
    assert system.body_digest.checksum


def test_the_command_line_asks(consumer: AnsweringConsumer, shared_store: StoreProcess) -> None:
    at = ["--address", shared_store.address]
    shown = CliRunner().invoke(app, ["client", "threads", "tried", consumer.alive(), *at])
    assert (shown.exit_code, shown.stdout.strip()) == (0, STACK)
    as_json = CliRunner().invoke(app, ["client", "threads", "tried", consumer.alive(), "--json", *at])
    assert json.loads(as_json.stdout) == {"code": "OK", "text": STACK}
    nobody = CliRunner().invoke(app, ["client", "try", "tried", consumer.alive(), "none", *at])
    assert nobody.exit_code != 0


def test_who_cannot_be_asked(v2: V2Client, operations: OperationsStub) -> None:
    request = operations_pb2.ShowThreadsRequest(group="tried", client_id="nobody")
    with pytest.raises(grpc.RpcError) as raised:
        operations.ShowThreads(request, timeout=30)
    assert statuses(raised.value)[0] == "NOT_FOUND"
    v2.ask("Heartbeat", group=pb.Resource(name="tried"), client_type=pb.PUSH_CONSUMER)  # there, and has no stream
    request.client_id = v2.headers["x-mq-client-id"]
    until(lambda: _code(operations, request) == "FAILED_PRECONDITION", 30, "it is known")


def _code(operations: OperationsStub, request: operations_pb2.ShowThreadsRequest) -> str:
    with pytest.raises(grpc.RpcError) as raised:
        operations.ShowThreads(request, timeout=30)
    return statuses(raised.value)[0]
