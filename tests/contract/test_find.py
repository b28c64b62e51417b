"""ViewMessage, QueryMessage, GetOffsets, ListQueues."""

import time

import pytest

from tandemmq.client import Outgoing, StoreClient
from tandemmq.store.v1 import store_pb2
from tandemmq.store.v1.message_pb2 import DECODED
from tandemmq.store.v1.store_pb2 import GetOffsetsRequest, ListQueuesRequest, QueryMessageRequest, ViewMessageRequest
from tandemmq.store.v1.store_pb2_grpc import StoreStub
from tests.contract.refusals import refused
from tests.contract.store_process import StoreProcess


def test_keys_are_found_newest_first_also_after_a_restart(own_store: StoreProcess) -> None:
    with own_store.client() as client:
        for number in range(10):
            client.send("found", b"%d" % number, keys=["all", f"only-{number}"])
        client.send("other", b"other", keys=["all"])
    own_store.restart()
    with own_store.client() as client:
        assert [int(record.body) for record in client.query("found", key="all")] == list(range(9, -1, -1))
        assert [int(record.body) for record in client.query("found", key="all", max_messages=3)] == [9, 8, 7]
        assert [record.body for record in client.query("found", key="only-4")] == [b"4"]
        assert client.query("found", key="only") == []
        assert client.query("nobody", key="all") == []


def test_a_unique_key_is_not_an_ordinary_one(client: StoreClient) -> None:
    first = client.send("unique", b"has it", properties={"UNIQ_KEY": "same"})
    client.send("unique", b"mentions it", keys=["same"])
    assert [record.body for record in client.query("unique", unique_key=first.unique_key)] == [b"has it"]
    assert len(client.query("unique", key="same")) == 2


def test_keys_of_equal_hash_are_told_apart(client: StoreClient) -> None:
    """`Aa` and `BB` have the same hash code, and so have `topic#Aa` and `topic#BB`."""
    for key in ("Aa", "BB", "Aa"):
        client.send("collisions", key.encode(), keys=[key, key])
    assert [record.body for record in client.query("collisions", key="Aa")] == [b"Aa", b"Aa"], "each once"
    assert [record.body for record in client.query("collisions", key="BB")] == [b"BB"]


def test_times_of_a_query_are_exact_to_the_millisecond(client: StoreClient) -> None:
    times = []
    for _ in range(5):
        times.append(client.send("times", b"", keys=["k"]).store_timestamp)
        time.sleep(0.003)
    for low in range(5):
        for high in range(low, 5):
            found = client.query("times", key="k", begin_ms=times[low], end_ms=times[high])
            assert sorted(record.store_timestamp for record in found) == times[low : high + 1]


def test_a_query_answers_at_most_64(client: StoreClient) -> None:
    client.send_encoded([Outgoing("plenty", b"%d" % n, keys=["k"]) for n in range(100)])
    assert len(client.query("plenty", key="k")) == 32, "the default"
    assert len(client.query("plenty", key="k", max_messages=1000)) == 64


BAD_QUERIES = {
    "no topic": (QueryMessageRequest(key="k"), "topic is empty"),
    "no key": (QueryMessageRequest(topic="t"), "Neither"),
    "empty key": (QueryMessageRequest(topic="t", key=""), "Neither"),
    "negative time": (QueryMessageRequest(topic="t", key="k", begin_timestamp=-1), "begin_timestamp is -1"),
    "reversed times": (QueryMessageRequest(topic="t", key="k", begin_timestamp=2, end_timestamp=1), "after end_"),
    "negative number": (QueryMessageRequest(topic="t", key="k", max_messages=-1), "max_messages is -1"),
}


@pytest.mark.parametrize("name", BAD_QUERIES)
def test_bad_queries(stub: StoreStub, name: str) -> None:
    request, words = BAD_QUERIES[name]
    with refused(stub, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL", words):
        stub.QueryMessage(request)


def test_a_decoded_answer_to_a_query(client: StoreClient, stub: StoreStub) -> None:
    client.send("decoded-query", b"body", keys=["k"])
    answer = stub.QueryMessage(QueryMessageRequest(topic="decoded-query", key="k", form=DECODED))
    assert (answer.count, answer.messages[0].body, answer.records) == (1, b"body", b"")
    assert answer.indexed_up_to == client.queues().log.max_offset


BAD_IDS = {
    "empty": ("", "INVALID_ARGUMENT", "MESSAGE_ILLEGAL"),
    "too short": ("7F00", "INVALID_ARGUMENT", "MESSAGE_ILLEGAL"),
    "not hex": ("G" * 32, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL"),
    "in the middle of a record": ("7F00000100002A9F" + f"{7:016X}", "NOT_FOUND", "MESSAGE_WAS_REMOVING"),
    "behind the end": ("7F00000100002A9F" + f"{1 << 40:016X}", "NOT_FOUND", "MESSAGE_WAS_REMOVING"),
    "negative": ("7F00000100002A9F" + "F" * 16, "NOT_FOUND", "MESSAGE_WAS_REMOVING"),
    "IPv6, behind the end": ("0" * 32 + "00002A9F" + "7" * 16, "NOT_FOUND", "MESSAGE_WAS_REMOVING"),
}


@pytest.mark.parametrize("name", BAD_IDS)
def test_bad_message_ids(client: StoreClient, stub: StoreStub, name: str) -> None:
    client.send("ids", b"")
    message_id, code, status = BAD_IDS[name]
    with refused(stub, code, status):
        stub.ViewMessage(ViewMessageRequest(message_id=message_id))


def test_offsets(client: StoreClient) -> None:
    times = []
    for _ in range(5):
        times.append(client.send("offsets", b"", queue_id=2).store_timestamp)
        time.sleep(0.003)
    assert [(queue.queue_id, queue.min_offset, queue.max_offset) for queue in client.offsets("offsets")] == [
        (0, 0, 0), (1, 0, 0), (2, 0, 5), (3, 0, 0),
    ]  # fmt: skip
    for offset, moment in enumerate(times):
        [queue] = client.offsets("offsets", 2, timestamp_ms=moment)
        assert queue.at_time == offset
    [before], [after] = client.offsets("offsets", 2, timestamp_ms=0), client.offsets("offsets", 2, timestamp_ms=1 << 60)
    assert (before.at_time, after.at_time) == (0, 5)
    assert client.offsets("offsets", 2)[0].at_time is None


def test_bad_offsets(client: StoreClient, stub: StoreStub) -> None:
    client.send("bad-offsets", b"")
    with refused(stub, "NOT_FOUND", "NO_MATCHED_LOGIC_QUEUE"):
        stub.GetOffsets(GetOffsetsRequest(topic="nobody"))
    with refused(stub, "OUT_OF_RANGE", "NO_MATCHED_LOGIC_QUEUE"):
        stub.GetOffsets(GetOffsetsRequest(topic="bad-offsets", queue_id=4))
    with refused(stub, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL"):
        stub.GetOffsets(GetOffsetsRequest(topic="bad-offsets", queue_id=-1))
    with refused(stub, "INVALID_ARGUMENT", "MESSAGE_ILLEGAL"):
        stub.GetOffsets(GetOffsetsRequest(topic="bad-offsets", timestamp=-1))


@pytest.mark.slow
def test_queues_are_listed_also_after_a_restart(own_store: StoreProcess) -> None:
    with own_store.client() as client:
        client.send("b", b"", queue_id=3)
        client.send("a", b"", queue_id=0)
    own_store.restart()
    with own_store.client() as client:
        listing = client.queues()
        assert [(topic.topic, topic.write_queues, topic.perm) for topic in listing.topics] == [("a", 4, 6), ("b", 4, 6)]
        assert [(queue.queue_id, queue.max_offset) for queue in listing.topics[1].queues] == [(3, 1)]
        assert listing.log.writable
        assert listing.log.min_offset == 0 < listing.log.max_offset
        assert [topic.topic for topic in client.queues("a").topics] == ["a"]
    with own_store.stub() as stub, refused(stub, "NOT_FOUND", "NO_MATCHED_LOGIC_QUEUE"):
        stub.ListQueues(ListQueuesRequest(topic="nobody"))


def test_a_poll_on_a_queue_without_messages_does_not_list_it(client: StoreClient, stub: StoreStub) -> None:
    client.send("listed", b"", queue_id=0)
    client.pull("listed", 1, 0, wait_seconds=0.1)
    [topic] = client.queues("listed").topics
    assert [queue.queue_id for queue in topic.queues] == [0]
    status = stub.Pull(store_pb2.PullRequest(topic="listed", queue_id=1)).status
    assert store_pb2.PullStatus.Name(status).startswith("NO_")
