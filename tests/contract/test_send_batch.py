"""SendBatch and SendStream: all or nothing, one wait, receipts in order."""

import signal
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import grpc
import pytest

from tandemmq.client import Outgoing, StoreClient, encode_batch
from tandemmq.store.format.batch import encode_client_batch
from tandemmq.store.v1 import store_pb2
from tandemmq.store.v1.message_pb2 import EncodedBatch, Message
from tandemmq.store.v1.store_pb2 import SendBatchRequest, SendStreamResponse
from tandemmq.store.v1.store_pb2_grpc import StoreStub
from tests.contract.refusals import refused, statuses
from tests.contract.store_process import StoreProcess

GOOD_BATCH = EncodedBatch(
    topic="batches", messages=encode_client_batch([(0, b"one", b""), (0, b"two", b"TAGS\x01t\x02")])
)


@pytest.mark.slow
def test_messages_and_batches_of_several_topics_survive_a_kill(own_store: StoreProcess) -> None:
    request = SendBatchRequest(
        messages=[Message(topic="a", body=b"a%d" % n, queue_id=n % 2) for n in range(4)]
        + [Message(topic="b", body=b"b")],
        batches=[
            encode_batch([Outgoing("a", b"c%d" % n, tag="c", keys=[f"k{n}"]) for n in range(10)], queue_id=0),
            encode_batch([Outgoing("d", b"d", flag=5)]),
        ],
    )
    with own_store.stub() as stub:
        answer = stub.SendBatch(request)
    assert [receipt.queue_offset for receipt in answer.receipts] == [0, 0, 1, 1, 0]
    first, second = answer.batch_receipts
    assert (first.status, first.queue_id, first.first_queue_offset, first.count) == (store_pb2.PUT_OK, 0, 2, 10)
    assert (second.queue_id, second.first_queue_offset, second.count) == (0, 0, 1)
    own_store.restart(signal.SIGKILL)
    with own_store.client() as client:
        records = client.pull("a", 0, 0).records
        assert [record.body for record in records] == [b"a0", b"a2", *(b"c%d" % n for n in range(10))]
        assert [record.physical_offset for record in records[2:]] == list(first.physical_offsets)
        assert client.view(first.message_id) == records[2]
        assert client.query("a", key="k7")[0] == records[9]
        assert {record.store_timestamp for record in records[2:]} == {first.store_timestamp}
        assert client.pull("d", 0, 0).records[0].flag == 5
        assert client.send("a", b"next", queue_id=0).queue_offset == 12


def test_one_illegal_message_refuses_all(stub: StoreStub) -> None:
    good = Message(topic="not-created", body=b"x")
    with refused(stub, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "'a b'"):
        stub.SendBatch(SendBatchRequest(messages=[good, Message(topic="a b")]))
    with refused(stub, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "cannot be stored"):
        stub.SendBatch(
            SendBatchRequest(messages=[good], batches=[GOOD_BATCH, EncodedBatch(topic="x", messages=b"?" * 30)])
        )


def piece(body: bytes, properties: bytes = b"", *, size: int | None = None, body_size: int | None = None) -> bytes:
    whole = 22 + len(body) + len(properties)
    head = struct.pack(">5i", whole if size is None else size, 0, 0, 0, len(body) if body_size is None else body_size)
    return head + body + len(properties).to_bytes(2, "big") + properties


BAD_BATCHES = {
    "empty": (b"", "no messages"),
    "cut in the head": (piece(b"x")[:10], "byte 0"),
    "cut in the body": (piece(b"x" * 50)[:40], "byte 0"),
    "second one cut": (piece(b"x") + piece(b"y")[:-1], "byte 23"),
    "size too large": (piece(b"x", size=1000), "byte 0"),
    "size negative": (piece(b"x", size=-1), "byte 0"),
    "size zero": (piece(b"x", size=0), "byte 0"),
    "body length negative": (piece(b"x", body_size=-1), "byte 0"),
    "body length beyond the piece": (piece(b"x", body_size=500), "byte 0"),
    "properties length does not fit": (piece(b"x", body_size=0), "byte 0"),
    "body too large": (piece(bytes(32 * 1024 + 1)), "32,769 bytes"),
    "too large for a file": (piece(bytes(30_000)) * 5, "150,"),
    "WAIT inside": (piece(b"x", b"WAIT\x01false\x02"), "no_wait"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_BATCHES)
def test_a_bad_batch_is_refused(stub: StoreStub, name: str) -> None:
    blob, words = BAD_BATCHES[name]
    stub.SendBatch(SendBatchRequest(batches=[GOOD_BATCH]))  # the topic is there, and its queue
    bad = EncodedBatch(topic="batches", messages=blob)
    with refused(stub, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", words):
        stub.SendBatch(SendBatchRequest(batches=[bad]))
    with refused(stub, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", words):
        stub.SendBatch(SendBatchRequest(batches=[GOOD_BATCH, bad]))


@pytest.mark.parametrize("properties", [b"DELAY\x013\x02", b"a\x01b\x02TRAN_MSG\x01true\x02", b"TIMER_DELIVER_MS\x015"])
def test_what_is_not_supported_yet_is_not_hidden_in_a_batch(stub: StoreStub, properties: bytes) -> None:
    blob = piece(b"good") + piece(b"x", properties)
    with refused(stub, "UNIMPLEMENTED", "MESSAGE_ILLEGAL", "not supported"):
        stub.SendBatch(SendBatchRequest(batches=[EncodedBatch(topic="hidden", messages=blob)]))


def test_a_body_may_say_delay(client: StoreClient) -> None:
    receipt = client.send_encoded([Outgoing("bodies", b"\x02DELAY\x013\x02 WAIT\x01false\x02")])
    assert client.view(receipt.message_id).body.startswith(b"\x02DELAY")


def batch(**fields: object) -> SendBatchRequest:
    return SendBatchRequest(batches=[EncodedBatch(**{"topic": "c", "messages": piece(b"x"), **fields})])  # type: ignore[arg-type]


OTHER_BAD = {
    "nothing": (SendBatchRequest(), "INVALID_ARGUMENT", "no messages"),
    "wrong count": (batch(count=2), "INVALID_ARGUMENT", "has 1"),
    "negative count": (batch(count=-1), "INVALID_ARGUMENT", "negative"),
    "retry topic": (batch(topic="%RETRY%g"), "INVALID_ARGUMENT", "retry"),
    "no topic": (batch(topic=""), "INVALID_ARGUMENT", "empty"),
    "queue": (batch(queue_id=9), "OUT_OF_RANGE", "no queue 9"),
    "flag": (batch(sys_flag=8), "INVALID_ARGUMENT", "0x8"),
}


@pytest.mark.parametrize("name", OTHER_BAD)
def test_a_bad_request_is_refused(stub: StoreStub, name: str) -> None:
    request, code, words = OTHER_BAD[name]
    with refused(stub, code, "MESSAGE_ILLEGAL", words):
        stub.SendBatch(request)


def test_messages_larger_together_than_a_file_are_stored_one_by_one(client: StoreClient) -> None:
    receipts = client.send_batch([Outgoing("many", bytes([n]) * 30_000, queue_id=0) for n in range(10)])
    assert [receipt.queue_offset for receipt in receipts] == list(range(10))
    pulled = client.pull("many", 0, 0, max_bytes=1 << 20)
    assert [record.body[0] for record in pulled.records] == list(range(10))


def test_a_stream_answers_in_order_and_goes_on_after_a_refusal(own_store: StoreProcess) -> None:
    def requests() -> Iterator[SendBatchRequest]:
        for number in range(300):
            topic = "a b" if number == 150 else "streamed"
            yield SendBatchRequest(batches=[encode_batch([Outgoing(topic, b"%d" % number)] * 3, queue_id=0)])

    with own_store.stub() as stub:
        answers = list(stub.SendStream(requests()))
    assert [answer.sequence for answer in answers] == list(range(300))
    refusal = answers[150].refusal
    assert (refusal.code, refusal.rocketmq_status) == ("INVALID_ARGUMENT", "MESSAGE_ILLEGAL")
    stored = [answer.receipts.batch_receipts[0] for answer in answers if answer.HasField("receipts")]
    assert [receipt.first_queue_offset for receipt in stored] == list(range(0, 897, 3))
    own_store.restart(signal.SIGKILL)
    with own_store.client() as client:
        pulled = client.pull("streamed", 0, 0, max_messages=1000, max_bytes=1 << 20)
        assert [int(record.body) for record in pulled.records] == [n for n in range(300) if n != 150 for _ in range(3)]


def test_a_stream_ends_with_a_request_that_cannot_be_read(own_store: StoreProcess) -> None:
    good = SendBatchRequest(batches=[encode_batch([Outgoing("streamed", b"one")] * 3, queue_id=0)]).SerializeToString()
    answers: list[SendStreamResponse] = []
    with grpc.insecure_channel(own_store.address) as channel:
        call: Any = channel.stream_stream(
            "/tandemmq.store.v1.Store/SendStream", response_deserializer=SendStreamResponse.FromString
        )
        with pytest.raises(grpc.RpcError) as raised:
            answers.extend(call(iter([good, good, b"\xff"])))
    assert raised.value.code() == grpc.StatusCode.INTERNAL
    assert raised.value.details() == "Exception deserializing request!"
    with own_store.client() as client:
        assert len(client.pull("streamed", 0, 0).records) == 6


def test_an_empty_stream_ends(stub: StoreStub) -> None:
    assert list(stub.SendStream(iter(()))) == []


def test_a_stream_that_is_cancelled_leaves_the_store_in_order(stub: StoreStub, client: StoreClient) -> None:
    def requests() -> Iterator[SendBatchRequest]:
        while True:
            yield SendBatchRequest(messages=[Message(topic="cancelled", queue_id=0, body=b"x")])

    call = stub.SendStream(requests())
    seen = 0
    for answer in call:
        seen = answer.receipts.receipts[0].queue_offset
        if seen == 50:
            call.cancel()
            break
    assert client.send("cancelled", b"after", queue_id=0).queue_offset > seen


@pytest.mark.slow
def test_a_stream_ends_when_the_store_stops_and_what_was_answered_is_there(own_store: StoreProcess) -> None:
    answered: list[int] = []
    stopping = threading.Thread(target=own_store.stop)

    def requests() -> Iterator[SendBatchRequest]:
        while own_store.running:
            yield SendBatchRequest(messages=[Message(topic="stopping", queue_id=0, body=b"x")])
            time.sleep(0.001)

    def read(answers: Iterable[SendStreamResponse]) -> None:
        for answer in answers:
            answered.append(answer.receipts.receipts[0].queue_offset)
            if len(answered) == 100:  # not before the stream is in full swing, however long that takes
                stopping.start()

    with own_store.stub() as stub, pytest.raises(grpc.RpcError) as raised:
        read(stub.SendStream(requests()))
    stopping.join()
    assert statuses(raised.value) == ("UNAVAILABLE", "SERVICE_NOT_AVAILABLE")
    assert own_store.wait() == 0
    own_store.start()
    with own_store.client() as client:
        assert client.offsets("stopping", 0)[0].max_offset >= len(answered) >= 100
