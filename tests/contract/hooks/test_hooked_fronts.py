"""The hook of docs/hooks.md, installed as the page says, in a store that clients of every protocol talk to."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tandemmq.client import decode_records
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.format import properties
from tandemmq.store.format.batch import encode_client_batch
from tandemmq.store.v1 import store_pb2
from tandemmq.store.v1.message_pb2 import EncodedBatch, Message
from tests.contract.gateway_process import GatewayProcess
from tests.contract.hooks.hook_package import documented
from tests.contract.refusals import statuses
from tests.contract.remoting.classic_client import ClassicClient, records, send_header
from tests.contract.remoting.conftest import classic, port_of
from tests.contract.rocketmq5.v2_client import V2Client, message
from tests.contract.store_process import StoreProcess

REASON = "an order needs a key"


class AuditedStore:
    """A store, and the trail that its hook writes."""

    def __init__(self, store: StoreProcess, trail: Path) -> None:
        self.store = store
        self._trail = trail

    def trail(self, topic: str) -> list[dict[str, Any]]:
        lines = map(json.loads, self._trail.read_text().splitlines())
        return [line for line in lines if line["topic"] == topic]

    def metric(self, name: str, **labels: str) -> float:
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        found = [line for line in self.store.scrape() if line.startswith(name) and all(one in line for one in wanted)]
        return sum(float(line.split()[-1]) for line in found)


@pytest.fixture(scope="module")
def audited(
    transport: str, with_hooks: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AuditedStore]:
    root = tmp_path_factory.mktemp(f"audited-{transport}")
    with_hooks.setenv("AUDIT_FILE", str(root / "trail"))
    name = documented()["broker.conf"].split("=")[1].strip()
    with classic(root / "store", hooks=name) as store:
        yield AuditedStore(store, root / "trail")


@pytest.mark.slow
def test_native_clients_are_refused_and_audited(audited: AuditedStore) -> None:
    with audited.store.stub() as stub, audited.store.delivery() as delivery:
        batch = EncodedBatch(topic="orders-n", messages=encode_client_batch([(0, b"x", b"")]))
        calls: list[tuple[Any, Any]] = [
            (stub.Send, store_pb2.SendRequest(message=Message(topic="orders-n"))),
            (stub.SendBatch, store_pb2.SendBatchRequest(messages=[Message(topic="orders-n")])),
            (stub.SendBatch, store_pb2.SendBatchRequest(batches=[batch])),
        ]
        for call, request in calls:
            with pytest.raises(grpc.RpcError) as refused:
                call(request, timeout=60)
            assert statuses(refused.value)[0] == "PERMISSION_DENIED"
            assert REASON in str(refused.value.details())
        sent = stub.Send(store_pb2.SendRequest(message=Message(topic="orders-n", keys=["k"], queue_id=0)))
        wish = delivery_pb2.ReceiveRequest(group="g", topic="orders-n", max_messages=1, wait_ms=20_000)
        (given,) = delivery.Receive(wish, timeout=60).messages
        assert decode_records(given.record)[0].unique_key == sent.receipt.unique_key
        delivery.Acknowledge(delivery_pb2.AcknowledgeRequest(group="g", topic="orders-n", handles=[given.handle]))
    assert [line["what"] for line in audited.trail("orders-n")] == ["sent", "given", "done"]
    assert audited.trail("orders-n")[2]["message"] == "0/0"


def test_each_word_of_a_consumer_is_told(audited: AuditedStore) -> None:
    with audited.store.stub() as stub, audited.store.delivery() as delivery:
        receipts = [stub.Send(store_pb2.SendRequest(message=Message(topic="words", queue_id=0))) for _ in range(3)]
        wish = delivery_pb2.ReceiveRequest(group="g", topic="words", max_messages=3, wait_ms=20_000)
        first, second, third = (one.handle for one in delivery.Receive(wish, timeout=60).messages)
        later = delivery_pb2.InvisibleChange(handle=first, invisible_ms=60_000)
        delivery.ChangeInvisible(delivery_pb2.ChangeInvisibleRequest(group="g", topic="words", changes=[later]))
        never = delivery_pb2.ForwardToDeadLettersRequest(group="g", topic="words", handles=[second])
        delivery.ForwardToDeadLetters(never)
        mixed = delivery_pb2.AcknowledgeRequest(group="g", topic="words", handles=["no handle", third])
        assert [one.HasField("refusal") for one in delivery.Acknowledge(mixed).outcomes] == [True, False]
        at = receipts[0].receipt.physical_offset
        delivery.SendBack(delivery_pb2.SendBackRequest(group="g", physical_offset=at, delay_level=3))
    trail = [
        (line["what"], line["message"]) for line in audited.trail("words") if line["what"] not in ("sent", "given")
    ]
    assert trail == [("later", "0/0"), ("never", "0/1"), ("done", "0/2")]
    assert [line["what"] for line in audited.trail("")] == ["later"], "what is sent back is named by its log offset"


@pytest.mark.parametrize("through", ["store", "gateway"])
def test_rocketmq5_clients_are_refused_and_audited(audited: AuditedStore, through: str, tmp_path: Path) -> None:
    topic = f"orders-5-{through}"
    if through == "gateway":
        with GatewayProcess(tmp_path / "gateway", {"broker-a": [audited.store.internal]}) as gateway:
            speaks_rocketmq5(audited, gateway.address, topic)
    else:
        speaks_rocketmq5(audited, audited.store.address, topic)


def speaks_rocketmq5(audited: AuditedStore, address: str, topic: str) -> None:
    with V2Client(address) as client:
        answer = client.send(message(topic), message(topic, keys=["k"]))
        assert [entry.status.code for entry in answer.entries] == [pb.FORBIDDEN, pb.OK]
        assert REASON in answer.entries[0].status.message
        (alone,) = client.send(message(topic)).entries
        assert alone.status.code == pb.FORBIDDEN
        (given,) = client.take("g", topic, 1)
        assert client.acknowledge("g", given).status.code == pb.OK
    assert [line["what"] for line in audited.trail(topic)] == ["sent", "given", "done"]


def test_classic_clients_are_refused_and_audited(audited: AuditedStore) -> None:
    with ClassicClient(port_of(audited.store), "classic") as client:
        header = send_header("orders-c", 0, "producers", {})
        refused = client.call(RequestCode.SEND_MESSAGE_V2, header, b"x")
        assert (refused.code, REASON in str(refused.remark)) == (ResponseCode.NO_PERMISSION, True)
        parts = [(0, b"1", properties.encode({"KEYS": "k"})), (0, b"2", b"")]
        batch = client.call(RequestCode.SEND_BATCH_MESSAGE, header | {"m": "true"}, encode_client_batch(parts))
        assert (batch.code, REASON in str(batch.remark)) == (ResponseCode.NO_PERMISSION, True)
        client.send("orders-c", b"good", 0, KEYS="k")
        assert [one.body for one in records(client.pull("g", "orders-c", 0))] == [b"good"]
        client.commit("g", "orders-c", 1)
        assert client.position("g", "orders-c").fields["offset"] == "1"
    assert [line["what"] for line in audited.trail("orders-c")] == ["sent", "given", "done below"]


def test_what_hooks_do_is_counted_and_timed(audited: AuditedStore) -> None:
    labels = {"hook": "audit", "point": "before_send"}
    failures = audited.metric("tandem_hook_failures_total", **labels)
    calls = audited.metric("tandem_hook_duration_seconds_count", **labels)
    with audited.store.stub() as stub:
        stub.Send(store_pb2.SendRequest(message=Message(topic="counted")))
        with pytest.raises(grpc.RpcError):
            stub.Send(store_pb2.SendRequest(message=Message(topic="orders-x")))
    assert audited.metric("tandem_hook_failures_total", **labels) == failures + 1
    assert audited.metric("tandem_hook_duration_seconds_count", **labels) == calls + 2
    assert audited.metric("tandem_hook_failures_total", hook="audit", point="after_send") == 0
