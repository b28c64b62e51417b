"""Callers who are known and may: the compiled core takes their calls. All others hear from the handler why not."""

from collections.abc import Iterator

import grpc
import pytest

from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.compiled_core import core_problem
from tandemmq.store.fronts.rocketmq5.identity import signature
from tandemmq.store.v1 import message_pb2, store_pb2
from tandemmq.store.v1.store_pb2_grpc import StoreStub
from tests.access_users import access_text, credentials
from tests.contract.access.test_permissions import denied
from tests.contract.rocketmq5.v2_client import V2Client, message
from tests.contract.store_process import StoreProcess

pytestmark = pytest.mark.skipif(bool(core_problem()), reason="the core is not built")

DATE = "20260131T120000Z"
PRODUCER, CONSUMER = credentials("producer"), credentials("consumer")


@pytest.fixture(scope="package", autouse=True)
def transport() -> str:
    """Our own: grpcio has no short ways."""
    return "fast"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """A store that asks who calls."""
    directory = tmp_path_factory.mktemp("short-ways")
    access = directory / "access.toml"
    access.write_text(access_text())
    (directory / "access.signing.toml").touch(0o600)
    (directory / "access.signing.toml").write_text('[secrets]\nproducer = "a"\nconsumer = "b"\n')
    with StoreProcess(directory / "store", access_file=access) as store:
        yield store


def taken(store: StoreProcess, call: str) -> float:
    """Calls that the core took."""
    lines = [line for line in store.scrape() if line.startswith(f'tandem_compiled_calls_total{{call="{call}"')]
    return float(lines[0].split()[-1]) if lines else 0.0


def send(stub: StoreStub, topic: str, who: tuple[tuple[str, str], ...]) -> store_pb2.SendResponse:
    request = store_pb2.SendRequest(message=message_pb2.Message(topic=topic, queue_id=0, body=b"x"))
    return stub.Send(request, metadata=who, timeout=60)


def test_sends_receives_and_acknowledgements(store: StoreProcess) -> None:
    with grpc.insecure_channel(store.address) as channel:
        stub, delivery = StoreStub(channel), DeliveryStub(channel)
        send(stub, "mine-a", PRODUCER)  # makes the topic
        before = taken(store, "Send")
        offsets = [send(stub, "mine-a", PRODUCER).receipt.queue_offset for _ in range(5)]
        assert offsets == [1, 2, 3, 4, 5]
        assert taken(store, "Send") == before + 5
        for who, words in ((CONSUMER, "user consumer may not PUBLISH"), (credentials("nobody"), "user nobody may not")):
            with denied(words):
                send(stub, "mine-a", who)
        with denied("PUBLISH to topic foreign"):
            send(stub, "foreign", PRODUCER)
        with denied("there are no credentials", grpc.StatusCode.UNAUTHENTICATED):
            send(stub, "mine-a", ())
        with denied("no user 'producer' with this secret", grpc.StatusCode.UNAUTHENTICATED):
            send(stub, "mine-a", credentials("producer", "wrong"))
        batch = message_pb2.EncodedBatch(topic="mine-a", queue_id=0, messages=b"")
        for topic in ("foreign", "mine-a"):
            batch.topic = topic
            with pytest.raises(grpc.RpcError):
                stub.SendBatch(store_pb2.SendBatchRequest(batches=[batch]), metadata=PRODUCER, timeout=60)
        wish = delivery_pb2.ReceiveRequest(group="mine-g", topic="mine-a", max_messages=2, invisible_ms=60_000)
        got = [delivery.Receive(wish, metadata=CONSUMER, timeout=60) for _ in range(3)]
        handles = [one.handle for answer in got for one in answer.messages]
        assert len(handles) == 6
        done = delivery_pb2.AcknowledgeRequest(group="mine-g", topic="mine-a", handles=handles)
        for request_who in (PRODUCER, credentials("reader")):
            with denied("may not use group mine-g"):
                delivery.Receive(wish, metadata=request_who, timeout=60)
            with denied("may not use group mine-g"):
                delivery.Acknowledge(done, metadata=request_who, timeout=60)
        outcomes = delivery.Acknowledge(done, metadata=CONSUMER, timeout=60).outcomes
        assert list(outcomes) == [delivery_pb2.Outcome()] * 6
        assert taken(store, "Send") == before + 5, "nothing of what was refused was stored"


def signed(store: StoreProcess, user: str, secret: str) -> V2Client:
    client = V2Client(store.address, x_mq_date_time=DATE)
    digits = signature(secret, DATE).hex()
    client.headers["authorization"] = f"MQv2-HMAC-SHA1 Credential={user}, Signature={digits}"
    return client


def test_rocketmq_5_clients(store: StoreProcess) -> None:
    with signed(store, "producer", "a") as producer, signed(store, "consumer", "b") as consumer:
        for _ in range(4):
            producer.send(message("mine-b"))  # the first of each queue
        before = taken(store, "SendMessage")
        for _ in range(3):
            assert producer.send(message("mine-b")).status.code == pb.OK
        assert taken(store, "SendMessage") == before + 3
        assert producer.send(message("foreign")).status.code == pb.FORBIDDEN
        assert consumer.send(message("mine-b")).status.code == pb.FORBIDDEN
        with signed(store, "producer", "wrong") as other:
            assert other.send(message("mine-b")).status.code == pb.UNAUTHORIZED
        assert taken(store, "SendMessage") == before + 3
        got = consumer.take("mine-g", "mine-b", 7)
        assert [part.status.code for part in producer.parts("mine-g", "mine-b")] == [pb.FORBIDDEN]
        assert producer.acknowledge("mine-g", *got).status.code == pb.FORBIDDEN
        assert consumer.acknowledge("mine-g", *got).status.code == pb.OK
