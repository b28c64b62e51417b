"""Pull: statuses, limits, tags, long polls, both forms."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from tandemmq.client import Outgoing, StoreClient, decode_records
from tandemmq.store.v1 import store_pb2
from tandemmq.store.v1.message_pb2 import DECODED
from tandemmq.store.v1.store_pb2 import PullRequest
from tandemmq.store.v1.store_pb2_grpc import StoreStub
from tests.contract.refusals import refused
from tests.contract.store_process import StoreProcess


def fill(client: StoreClient, topic: str, count: int, **fields: object) -> None:
    for begin in range(0, count, 500):
        bodies = range(begin, min(begin + 500, count))
        client.send_encoded([Outgoing(topic, b"%d" % n, **fields) for n in bodies], queue_id=0)  # type: ignore[arg-type]


def test_the_statuses_of_offsets(client: StoreClient) -> None:
    fill(client, "statuses", 10)
    for offset, status, following in (
        (0, "FOUND", 10),
        (9, "FOUND", 10),
        (10, "OFFSET_OVERFLOW_ONE", 10),
        (11, "OFFSET_OVERFLOW_BADLY", 10),
        (1 << 60, "OFFSET_OVERFLOW_BADLY", 10),
    ):
        pulled = client.pull("statuses", 0, offset)
        assert (pulled.status, pulled.next_offset) == (status, following)
        assert (pulled.min_offset, pulled.max_offset) == (0, 10)
    untouched = client.pull("statuses", 1, 5)
    assert (untouched.status, untouched.next_offset, untouched.max_offset) == ("NO_MATCHED_LOGIC_QUEUE", 0, 0)


REFUSED = {
    "no such topic": (PullRequest(topic="nobody"), "NOT_FOUND", "NO_MATCHED_LOGIC_QUEUE", "no topic nobody"),
    "no such queue": (PullRequest(topic="pulls", queue_id=4), "OUT_OF_RANGE", "NO_MATCHED_LOGIC_QUEUE", "no queue 4"),
    "negative queue": (
        PullRequest(topic="pulls", queue_id=-1),
        "INVALID_ARGUMENT",
        "MESSAGE_ILLEGAL",
        "queue_id is -1",
    ),
    "negative offset": (PullRequest(topic="pulls", offset=-1), "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "offset is -1"),
    "negative messages": (PullRequest(topic="pulls", max_messages=-1), "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "-1"),
    "negative bytes": (PullRequest(topic="pulls", max_bytes=-5), "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "-5"),
    "negative wait": (PullRequest(topic="pulls", wait_ms=-5), "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "wait_ms"),
    "wait for ever": (PullRequest(topic="pulls", wait_ms=300_001), "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", "300,000"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(client: StoreClient, stub: StoreStub, name: str) -> None:
    client.send("pulls", b"", queue_id=0)
    request, code, status, words = REFUSED[name]
    with refused(stub, code, status, words):
        stub.Pull(request)


def test_limits_of_an_answer(client: StoreClient) -> None:
    fill(client, "limits", 1000)
    size = client.pull("limits", 0, 0, max_messages=1).records[0].size
    assert len(client.pull("limits", 0, 0).records) == 32, "the default"
    assert len(client.pull("limits", 0, 0, max_messages=700).records) == 700
    assert len(client.pull("limits", 0, 0, max_messages=700, max_bytes=5 * size).records) == 5
    assert len(client.pull("limits", 0, 0, max_messages=700, max_bytes=1).records) == 1, "one always fits"
    assert len(client.pull("limits", 0, 0, max_messages=1 << 30, max_bytes=1 << 30).records) == 1000


def test_all_messages_by_pulling_on(client: StoreClient) -> None:
    """Over several log files (rolls) and consume queue files."""
    expected = 3000
    fill(client, "long", expected, tag="t")
    bodies: list[bytes] = []
    while len(bodies) < expected:
        pulled = client.pull("long", 0, len(bodies), max_messages=77)
        assert pulled.status == "FOUND"
        assert pulled.next_offset == len(bodies) + len(pulled.records)
        bodies += [record.body for record in pulled.records]
    assert bodies == [b"%d" % n for n in range(expected)]


def test_tags_are_compared_exactly(client: StoreClient) -> None:
    """`Aa` and `BB` have the same hash code; RocketMQ leaves the difference to its clients."""
    tags = ["Aa", "BB", "C", "", "Aa || BB"]
    for number in range(50):
        client.send("tags", b"%d" % number, tag=tags[number % 5], queue_id=0)

    def found(expression: str) -> list[int]:
        pulled = client.pull("tags", 0, 0, tags=expression, max_messages=100)
        assert pulled.next_offset == 50
        return [int(record.body) % 5 for record in pulled.records]

    assert found("Aa") == [0] * 10
    assert found("BB || C") == [1, 2] * 10
    assert found(" Aa||Aa ") == [0] * 10
    assert len(found("*")) == len(found("")) == len(found("A || *")) == 50
    nothing = client.pull("tags", 0, 7, tags="D")
    assert (nothing.status, nothing.next_offset) == ("NO_MATCHED_MESSAGE", 50)


def test_a_filter_that_matches_nothing_is_answered_in_bounded_steps(
    shared_store: StoreProcess, client: StoreClient
) -> None:
    fill(client, "sieve", 9000, tag="sand")
    first = client.pull("sieve", 0, 0, tags="gold")
    assert first.status == "NO_MATCHED_MESSAGE"
    assert 0 < first.next_offset < 9000
    with ThreadPoolExecutor(1) as aside:
        poll = aside.submit(client.pull, "sieve", 0, 0, tags="gold", wait_seconds=60)
        shared_store.wait_polls(1)  # it has come to the end, in one call
        waited = client.pull("sieve", 0, 8990, tags="gold", wait_seconds=0.3)
        assert (waited.status, waited.next_offset) == ("NO_NEW_MESSAGE", 9000)
        client.send("sieve", b"found", tag="gold", queue_id=0)
        found = poll.result()
    assert ([record.body for record in found.records], found.next_offset) == ([b"found"], 9001)


def test_a_long_poll_ends_with_the_message(shared_store: StoreProcess, client: StoreClient) -> None:
    client.send("polls", b"first", queue_id=0)
    for queue_id, offset, body in ((0, 1, b"second"), (3, 0, b"first of a queue that was not there")):
        with ThreadPoolExecutor(1) as aside, shared_store.client() as waiter:
            poll = aside.submit(waiter.pull, "polls", queue_id, offset, wait_seconds=60)
            shared_store.wait_polls(1)
            client.send("polls", body, queue_id=queue_id)
            pulled = poll.result(50)
        assert [record.body for record in pulled.records] == [body]


def test_a_long_poll_waits_for_its_tag(shared_store: StoreProcess, client: StoreClient) -> None:
    def later() -> None:
        for tag in ("no", "no", "yes"):
            time.sleep(0.1)
            client.send("picky", tag.encode(), tag=tag, queue_id=0)

    client.send("picky", b"", queue_id=0)
    thread = threading.Thread(target=later)
    thread.start()
    with shared_store.client() as waiter:
        pulled = waiter.pull("picky", 0, 1, tags="yes", wait_seconds=60)
    thread.join()
    assert [record.body for record in pulled.records] == [b"yes"]
    assert pulled.next_offset == 4


def test_a_long_poll_without_news(client: StoreClient) -> None:
    client.send("quiet", b"", queue_id=0)
    begun = time.monotonic()
    pulled = client.pull("quiet", 0, 1, wait_seconds=0.3)
    assert (pulled.status, pulled.next_offset, pulled.max_offset) == ("NO_NEW_MESSAGE", 1, 1)
    assert time.monotonic() - begun >= 0.29, "timers are as fine as a millisecond"
    assert client.pull("quiet", 0, 5, wait_seconds=60).status == "OFFSET_OVERFLOW_BADLY", "at once"


@pytest.mark.slow
def test_a_long_poll_ends_when_the_store_stops(own_store: StoreProcess) -> None:
    with own_store.client() as client, ThreadPoolExecutor(1) as aside:
        client.send("stopped", b"", queue_id=0)
        poll = aside.submit(client.stub.Pull, PullRequest(topic="stopped", offset=1, wait_ms=60_000))
        own_store.wait_polls(1)
        assert own_store.stop() == 0
        with pytest.raises(grpc.RpcError) as raised:
            poll.result(30)
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


def test_a_cancelled_long_poll_is_forgotten(stub: StoreStub, client: StoreClient, shared_store: StoreProcess) -> None:
    client.send("given-up", b"", queue_id=0)
    call = stub.Pull.future(PullRequest(topic="given-up", offset=1, wait_ms=60_000))
    shared_store.wait_polls(1)
    call.cancel()
    shared_store.wait_polls(0)
    client.send("given-up", b"later", queue_id=0)
    assert client.pull("given-up", 0, 1).records[0].body == b"later"


def test_decoded_and_raw_say_the_same(client: StoreClient, stub: StoreStub) -> None:
    client.send("forms", b"body", tag="t", keys=["a", "b"], properties={"p": "v"}, queue_id=0)
    raw = stub.Pull(PullRequest(topic="forms"))
    decoded = stub.Pull(PullRequest(topic="forms", form=DECODED))
    [record], [message] = decode_records(raw.records), decoded.messages
    assert (raw.count, decoded.count, decoded.records, len(raw.messages)) == (1, 1, b"", 0)
    assert message.message_id == store_pb2.SendReceipt(message_id=message.message_id).message_id
    assert (message.topic, message.queue_id, message.queue_offset) == ("forms", 0, 0)
    assert (message.physical_offset, message.record_size) == (record.physical_offset, record.size)
    assert (message.body, message.body_crc, dict(message.properties)) == (b"body", record.body_crc, record.properties)
    assert (message.tag, list(message.keys), message.unique_key) == ("t", ["a", "b"], record.unique_key)
    assert (message.born_timestamp, message.store_timestamp) == (record.born_timestamp, record.store_timestamp)
    assert (message.born_host, message.store_host) == (str(record.born_host), str(record.store_host))
    assert record.encode() == raw.records
