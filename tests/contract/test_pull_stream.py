"""PullStream: credit, waiting, filters, how it ends."""

import queue
import threading
from collections.abc import Iterator

import grpc
import pytest

from tandemmq.client import Outgoing, StoreClient, decode_records
from tandemmq.store.v1 import store_pb2
from tandemmq.store.v1.message_pb2 import DECODED
from tandemmq.store.v1.store_pb2 import Credit, PullRequest, PullStreamRequest
from tandemmq.store.v1.store_pb2_grpc import StoreStub
from tests.contract.refusals import statuses
from tests.contract.store_process import StoreProcess


class Requests:
    """The client's side of a stream, written to from a test."""

    def __init__(self, *requests: PullStreamRequest) -> None:
        self._queue: queue.Queue[PullStreamRequest | None] = queue.Queue()
        for request in requests:
            self._queue.put(request)

    def __iter__(self) -> Iterator[PullStreamRequest]:
        while (request := self._queue.get()) is not None:
            yield request

    def credit(self, **amounts: int) -> None:
        self._queue.put(PullStreamRequest(credit=Credit(**amounts)))

    def send(self, request: PullStreamRequest) -> None:
        self._queue.put(request)

    def close(self) -> None:
        self._queue.put(None)


def subscription(topic: str, *, messages: int = 0, bytes: int = 0, **fields: object) -> PullStreamRequest:
    request = PullRequest(topic=topic, **fields)  # type: ignore[arg-type]
    return PullStreamRequest(subscribe=request, initial_credit=Credit(messages=messages, bytes=bytes))


def bodies(answer: store_pb2.PullResponse) -> list[int]:
    return [int(record.body) for record in decode_records(answer.records)]


def fill(client: StoreClient, topic: str, count: int, tag: str = "") -> None:
    client.send_encoded([Outgoing(topic, b"%d" % n, tag=tag) for n in range(count)], queue_id=0)


def test_everything_then_what_comes(client: StoreClient) -> None:
    fill(client, "streams", 100)
    stream = client.pull_stream("streams", 0, 40, max_messages=25)
    seen = [int(record.body) for _ in range(3) for record in next(stream).records]
    assert seen == list(range(40, 100))
    client.send("streams", b"100", queue_id=0)
    assert [record.body for record in next(stream).records] == [b"100"]
    stream.close()


def test_credit_bounds_what_is_sent(client: StoreClient, stub: StoreStub) -> None:
    fill(client, "credits", 100)
    requests = Requests(subscription("credits", messages=10, max_messages=7))
    call = stub.PullStream(iter(requests))
    assert bodies(next(call)) == list(range(7))
    assert bodies(next(call)) == list(range(7, 10))
    arrived = threading.Event()
    answers: list[store_pb2.PullResponse] = []

    def read() -> None:
        answers.append(next(call))
        arrived.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert not arrived.wait(0.3), "no credit, no messages"
    requests.credit(messages=5)
    reader.join()
    assert bodies(answers[0]) == list(range(10, 15))
    requests.credit(messages=1000)
    seen: list[int] = []
    while len(seen) < 85:
        seen += bodies(next(call))
    assert seen == list(range(15, 100))
    requests.close()
    assert list(call) == []


def test_credit_in_bytes(client: StoreClient, stub: StoreStub) -> None:
    fill(client, "byte-credits", 10)
    size = client.pull("byte-credits", 0, 0).records[0].size
    requests = Requests(subscription("byte-credits", bytes=3 * size))
    call = stub.PullStream(iter(requests))
    assert len(bodies(next(call))) == 3
    requests.credit(bytes=1)
    assert len(bodies(next(call))) == 1, "the last one may be larger than the credit"
    requests.close()
    assert list(call) == []


def test_a_closed_side_ends_the_stream_when_all_is_sent(client: StoreClient, stub: StoreStub) -> None:
    fill(client, "drained", 60)
    answers = list(stub.PullStream(iter([subscription("drained", max_messages=50)])))
    assert [len(bodies(answer)) for answer in answers] == [50, 10]


def test_a_filter_moves_the_offset_and_says_so(client: StoreClient, stub: StoreStub) -> None:
    fill(client, "filtered", 50, tag="sand")
    [answer] = stub.PullStream(iter([subscription("filtered", tags="gold")]))
    assert (answer.status, answer.next_begin_offset, answer.count) == (store_pb2.NO_NEW_MESSAGE, 50, 0)


def test_an_offset_is_corrected_and_told(client: StoreClient, stub: StoreStub) -> None:
    fill(client, "corrected", 5)
    [answer] = stub.PullStream(iter([subscription("corrected", offset=99)]))
    assert (answer.status, answer.next_begin_offset) == (store_pb2.OFFSET_OVERFLOW_BADLY, 5)


def test_a_reader_that_leaves_is_forgotten(own_store: StoreProcess) -> None:
    with own_store.client() as client:
        fill(client, "left", 5)
        streams = [client.pull_stream("left", 0, 0) for _ in range(5)]
        for stream in streams:
            assert len(next(stream).records) == 5
        own_store.wait_polls(5)
        for stream in streams:
            stream.close()
        own_store.wait_polls(0)
    assert own_store.stop() == 0


def test_decoded(client: StoreClient, stub: StoreStub) -> None:
    fill(client, "decoded", 3)
    [answer] = stub.PullStream(iter([subscription("decoded", form=DECODED)]))
    assert [message.body for message in answer.messages] == [b"0", b"1", b"2"]


BAD_STREAMS = {
    "nothing": ([], "INVALID_ARGUMENT"),
    "credit first": ([PullStreamRequest(credit=Credit(messages=1))], "INVALID_ARGUMENT"),
    "no such topic": ([subscription("nobody-streams")], "NOT_FOUND"),
    "no such queue": ([subscription("bad-streams", queue_id=77)], "OUT_OF_RANGE"),
    "negative offset": ([subscription("bad-streams", offset=-1)], "INVALID_ARGUMENT"),
    "negative credit": ([subscription("bad-streams", messages=-1)], "INVALID_ARGUMENT"),
    "negative credit later": (
        [subscription("bad-streams"), PullStreamRequest(credit=Credit(messages=-1))], "INVALID_ARGUMENT",
    ),
    "subscribed twice": ([subscription("bad-streams"), subscription("bad-streams")], "INVALID_ARGUMENT"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_STREAMS)
def test_bad_streams(client: StoreClient, stub: StoreStub, name: str) -> None:
    client.send("bad-streams", b"0", queue_id=0)
    sent, code = BAD_STREAMS[name]
    requests = Requests(*sent)
    if not sent:
        requests.close()
    with pytest.raises(grpc.RpcError) as raised:
        list(stub.PullStream(iter(requests)))
    requests.close()
    found, status = statuses(raised.value)
    assert found == code
    assert status


@pytest.mark.slow
def test_streams_end_when_the_store_stops(own_store: StoreProcess) -> None:
    with own_store.client() as client:
        client.send("ended", b"0", queue_id=0)
        requests = Requests(subscription("ended"))
        call = client.stub.PullStream(iter(requests))
        assert bodies(next(call)) == [0]
        own_store.wait_polls(1)
        stopping = threading.Thread(target=own_store.stop)
        stopping.start()
        with pytest.raises(grpc.RpcError) as raised:
            next(call)
        requests.close()
        stopping.join()
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
    assert own_store.wait() == 0
