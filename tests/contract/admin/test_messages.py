"""FindMessages and SendMessage: by id, key, unique key, place and time; what the store refuses, in its own words."""

import time
from typing import Any

import grpc
import pytest

from tandemmq.admin.messages.reading import MOST_READ
from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.client import Outgoing
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tandemmq.store.v1 import store_pb2
from tests.admin_process import AdminProcess, lone_node, running
from tests.faults.pair import Node
from tests.faults.pair_process import until

pytestmark = pytest.mark.xdist_group("calm admin")

DEADLINE = 60


@pytest.fixture(scope="module")
def node(calm_node: Node) -> Node:
    """Shared with other modules."""
    return calm_node


@pytest.fixture(scope="module")
def admin(calm_admin: AdminProcess) -> AdminProcess:
    """The same."""
    return calm_admin


def find(admin: AdminProcess, **fields: Any) -> pb.FindMessagesResponse:
    return admin.stub.FindMessages(pb.FindMessagesRequest(**fields), timeout=DEADLINE)


def refusal(admin: AdminProcess, **fields: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as raised:
        find(admin, **fields)
    return raised.value.code(), str(raised.value.details())


def send(admin: AdminProcess, **fields: Any) -> pb.SendMessageResponse:
    return admin.stub.SendMessage(pb.SendMessageRequest(**fields), timeout=DEADLINE)


# -- sending ----------------------------------------------------------------------------------------------------------


def test_a_message_sent_is_found_in_every_way(admin: AdminProcess) -> None:
    before = time.time_ns() // 1_000_000 - 1000
    sent = send(
        admin, topic="m-ways", body=b"one", tag="A", keys=["k-ways", "other"], properties={"of": "test"}, queue_id=2
    )
    assert (sent.broker, sent.receipt.status, sent.receipt.queue_id) == ("alpha", store_pb2.PUT_OK, 2)
    ways = (
        {"message_id": sent.receipt.message_id},
        {"message_id": sent.receipt.message_id.lower(), "topic": "m-ways"},
        {"topic": "m-ways", "key": "k-ways"},
        {"topic": "m-ways", "unique_key": sent.receipt.unique_key},
        {"topic": "m-ways", "place": pb.QueuePlace(queue_id=2, offset=0)},
        {"topic": "m-ways", "time": pb.TimeRange(begin_ms=before)},
        {"topic": "m-ways", "time": pb.TimeRange(begin_ms=before, queue_id=2), "broker": "alpha"},
    )
    for way in ways:
        (found,) = find(admin, with_bodies=True, **way).messages
        assert (found.broker, found.message.body, found.body_bytes) == ("alpha", b"one", 3), way
        assert (found.message.tag, list(found.message.keys)) == ("A", ["k-ways", "other"])
        assert found.message.properties["of"] == "test"
        (found,) = find(admin, **way).messages
        assert (found.message.body, found.body_bytes) == (b"", 3), way
    assert not find(admin, topic="m-ways", time=pb.TimeRange(begin_ms=before, queue_id=1)).messages


def test_what_the_store_refuses_comes_with_its_words(admin: AdminProcess) -> None:
    for fields, code, words in (
        ({"topic": "m-refused", "body": b"x" * 50_000}, grpc.StatusCode.INVALID_ARGUMENT, "maxMessageSize"),
        ({"topic": "m-refused", "queue_id": 99}, grpc.StatusCode.OUT_OF_RANGE, "99"),
        ({"topic": "SCHEDULE_TOPIC_XXXX"}, grpc.StatusCode.PERMISSION_DENIED, "only the broker writes"),
        ({"topic": ""}, grpc.StatusCode.INVALID_ARGUMENT, "topic is missing"),
        ({"topic": "m-refused", "broker": "zeta"}, grpc.StatusCode.NOT_FOUND, "zeta"),
    ):
        with pytest.raises(grpc.RpcError) as raised:
            send(admin, **fields)
        assert raised.value.code() == code, fields
        assert words in str(raised.value.details())


# -- what there is not ------------------------------------------------------------------------------------------------


def test_messages_that_there_are_not(admin: AdminProcess) -> None:
    sent = send(admin, topic="m-none", body=b"x", queue_id=0)
    nothing = sent.receipt.message_id[:-4] + "FFF0"
    assert refusal(admin, message_id=nothing)[0] == grpc.StatusCode.NOT_FOUND
    code, words = refusal(admin, message_id=sent.receipt.message_id, topic="m-ways")
    assert (code, "of topic m-ways" in words) == (grpc.StatusCode.NOT_FOUND, True)
    code, words = refusal(admin, topic="m-none", place=pb.QueuePlace(queue_id=0, offset=1))
    assert (code, "offset 1" in words) == (grpc.StatusCode.NOT_FOUND, True)
    assert refusal(admin, topic="m-none", place=pb.QueuePlace(queue_id=77))[0] == grpc.StatusCode.OUT_OF_RANGE
    assert refusal(admin, topic="m-no-such", time=pb.TimeRange())[0] == grpc.StatusCode.NOT_FOUND
    assert not find(admin, topic="m-none", key="nobody").messages
    assert not find(admin, topic="m-none", unique_key="nobody").messages


def test_requests_that_mean_nothing(admin: AdminProcess) -> None:
    for fields, words in (
        ({}, "nothing says which messages"),
        ({"key": "k"}, "topic is missing"),
        ({"message_id": "xyz"}, "32 hex digits"),
        ({"topic": "m-none", "key": "k", "limit": 1001}, "limit 1001"),
        ({"topic": "m-none", "time": pb.TimeRange(begin_ms=5, end_ms=4)}, "no stretch of time"),
        ({"topic": "m-none", "key": ""}, "key"),
    ):
        code, details = refusal(admin, **fields)
        assert (code, words in details) == (grpc.StatusCode.INVALID_ARGUMENT, True), (fields, details)


# -- many -------------------------------------------------------------------------------------------------------------


def test_by_time_all_queues_in_order_and_in_pages(admin: AdminProcess, node: Node) -> None:
    with node.client() as client:
        for number in range(300):
            client.send("m-time", b"%d" % number, queue_id=number % 4)
        client.send("m-time-other", b"x")
    first = find(admin, topic="m-time", time=pb.TimeRange(), limit=1000, with_bodies=True)
    assert [int(one.message.body) for one in first.messages] == list(range(300))
    assert not first.more
    page = find(admin, topic="m-time", time=pb.TimeRange(), limit=100)
    assert (len(page.messages), page.more) == (100, True)
    times = [one.message.store_timestamp for one in first.messages]
    middle = times[150]
    late = find(admin, topic="m-time", time=pb.TimeRange(begin_ms=middle), limit=1000)
    assert len(late.messages) == sum(one >= middle for one in times)
    early = find(admin, topic="m-time", time=pb.TimeRange(begin_ms=1, end_ms=middle), limit=1000)
    assert len(early.messages) == sum(one <= middle for one in times)


def test_the_newest_first(admin: AdminProcess, node: Node) -> None:
    """All queues as one, in pages that go back in time; each message once."""
    with node.client() as client:
        for number in range(200):
            body = b"%d " % number + b"x" * (40_000 if number % 50 == 0 else 0)  # pulls of different sizes
            client.send("m-reversed", body, queue_id=number % 3)
    bodies: list[int] = []
    end = 0
    while True:
        time_range = pb.TimeRange(end_ms=end, newest_first=True)
        page = find(admin, topic="m-reversed", time=time_range, limit=70, with_bodies=True)
        bodies += [number for one in page.messages if (number := int(one.message.body.split()[0])) not in bodies]
        if not page.more:
            break
        end = page.messages[-1].message.store_timestamp
    assert bodies == list(range(199, -1, -1))
    (first, *_) = find(admin, topic="m-reversed", time=pb.TimeRange(newest_first=True, queue_id=1), limit=1).messages
    assert (first.message.queue_id, first.message.queue_offset) == (1, 66)
    stretch = pb.TimeRange(begin_ms=end, end_ms=end, newest_first=True)
    assert {one.message.store_timestamp for one in find(admin, topic="m-reversed", time=stretch).messages} == {end}


def test_only_what_fits_a_filter(admin: AdminProcess, node: Node) -> None:
    with node.client() as client:
        client.send_batch(
            [
                Outgoing(
                    "m-filter", b'{"order": {"id": %d}, "to": "Basel"}' % number, keys=["all"], queue_id=number % 4,
                    properties={"REGION": "eu" if number % 2 else "us"},
                )
                for number in range(60)
            ]
        )  # fmt: skip
    where = pb.MessageFilter(text="BASEL", where="body.order.id >= 50 and property.REGION = eu")
    for way in ({"time": pb.TimeRange()}, {"key": "all"}):
        page = find(admin, topic="m-filter", filter=where, with_bodies=True, **way)
        offsets = [one.message.queue_offset * 4 + one.message.queue_id for one in page.messages]
        assert sorted(offsets) == [51, 53, 55, 57, 59]
        assert (page.more, page.looked_at, page.read_to_ms) == (False, 60, 0)
    page = find(admin, topic="m-filter", filter=where, time=pb.TimeRange(newest_first=True), limit=2)
    assert (len(page.messages), page.more) == (2, True)
    assert not page.messages[0].message.body
    assert not find(admin, topic="m-filter", filter=pb.MessageFilter(where="body.x"), time=pb.TimeRange()).messages
    told = refusal(admin, topic="m-filter", filter=pb.MessageFilter(where="order.id = 1"), time=pb.TimeRange())
    assert told[0] == grpc.StatusCode.INVALID_ARGUMENT
    assert "body.NAME or property.NAME" in told[1]
    told = refusal(admin, topic="m-filter", filter=where, place=pb.QueuePlace())
    assert (told[0], "by key and by time" in told[1]) == (grpc.StatusCode.INVALID_ARGUMENT, True)


def test_a_search_in_vain_ends_and_says_where_to_go_on(admin: AdminProcess, node: Node) -> None:
    """In both directions: what is looked for is found, once, by going on."""
    with node.client() as client:
        for begin in range(0, MOST_READ + 2_000, 500):
            client.send_batch([Outgoing("m-vain", b"hay", queue_id=begin % 2) for _ in range(500)])
            if begin in (0, MOST_READ + 1_500):
                client.send("m-vain", b"needle", keys=[str(begin)], queue_id=0)
    for newest_first in (False, True):
        found, looked, calls = [], 0, 0
        stretch = pb.TimeRange(newest_first=newest_first)
        while True:
            page = find(admin, topic="m-vain", time=stretch, filter=pb.MessageFilter(text="needle"))
            found += [one.message.keys[0] for one in page.messages]
            looked, calls = looked + page.looked_at, calls + 1
            if not page.more:
                break
            if newest_first:
                stretch.end_ms = page.read_to_ms
            else:
                stretch.begin_ms = page.read_to_ms
        expected = ["0", str(MOST_READ + 1_500)]
        assert found == (expected[::-1] if newest_first else expected)
        assert (looked, calls) == (MOST_READ + 2_002, 2)


def test_an_answer_is_bounded_by_its_size_too(admin: AdminProcess, node: Node) -> None:
    with node.client() as client:
        client.send_batch([Outgoing("m-large", b"x" * 40_000) for _ in range(160)])
    page = find(admin, topic="m-large", time=pb.TimeRange(), limit=1000, with_bodies=True)
    assert 100 <= len(page.messages) < 110
    assert page.more
    assert len(find(admin, topic="m-large", time=pb.TimeRange(), limit=1000).messages) == 160


def test_more_messages_of_a_key_than_a_query_of_the_store_answers(admin: AdminProcess, node: Node) -> None:
    with node.client() as client:
        for number in range(200):
            client.send("m-keys", b"%d" % number, keys=["same"])
    page = find(admin, topic="m-keys", key="same", limit=1000, with_bodies=True)
    assert [int(one.message.body) for one in page.messages] == list(range(199, -1, -1))
    assert not page.more
    page = find(admin, topic="m-keys", key="same", limit=150)
    assert (len(page.messages), page.more) == (150, True)
    times = [one.message.store_timestamp for one in page.messages]
    some = find(admin, topic="m-keys", key="same", begin_ms=times[-1], end_ms=times[50], limit=1000)
    assert all(times[-1] <= one.message.store_timestamp <= times[50] for one in some.messages)
    assert len(some.messages) >= 100


def test_groups_that_are_past_a_message_have_consumed_it(admin: AdminProcess, node: Node) -> None:
    sent = [send(admin, topic="m-consumed", body=b"x", queue_id=1).receipt for _ in range(3)]
    commit = metadata_pb2.OffsetCommit
    request = metadata_pb2.CommitOffsetsRequest(
        commits=[
            commit(topic="m-consumed", group="m-fast", queue_id=1, offset=3),
            commit(topic="m-consumed", group="m-slow", queue_id=1, offset=1),
            commit(topic="m-consumed", group="m-elsewhere", queue_id=0, offset=3),
        ]
    )
    with grpc.insecure_channel(node.address("metasync")) as channel:
        stub = MetadataStub(channel)

        def committed() -> bool:  # metasync hears of a topic that a send has made a moment later
            results = stub.CommitOffsets(request, timeout=DEADLINE).results
            return {one.status for one in results} == {metadata_pb2.COMMITTED}

        until(committed, DEADLINE, "the topic is unknown to metasync")
    told: list[list[str]] = []

    def known() -> bool:  # what is read can be a second old
        told[:] = [list(find(admin, message_id=one.message_id).messages[0].consumed_by) for one in sent]
        return told == [["m-fast", "m-slow"], ["m-fast"], ["m-fast"]]

    until(known, DEADLINE, lambda: f"the groups are told: {told}")
    assert find(admin, topic="m-consumed", unique_key=sent[0].unique_key).messages[0].consumed_by == told[0]


# -- several brokers --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_brokers_are_searched_as_one(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("two")
    alpha, beta = lone_node(directory / "alpha", "alpha"), lone_node(directory / "beta", "beta")
    with running(alpha, beta), AdminProcess(directory / "admin", {"a": alpha, "b": beta}) as admin:
        # Their logs are alike: the same offsets have messages in both, but not the same stores.
        with alpha.client() as one, beta.client() as two:
            for number in range(6):
                sent = (one if number % 2 else two).send("t", b"%d" % number, keys=["k"], queue_id=0)
                later = sent.store_timestamp + 2  # messages of two stores in one millisecond have no order
                until(lambda: time.time() * 1000 > later, 5, "the clock goes on")  # noqa: B023 - waits here
            only = two.send("only-beta", b"b", queue_id=0)
        page = find(admin, topic="t", time=pb.TimeRange(), with_bodies=True)
        assert [int(one.message.body) for one in page.messages] == list(range(6))
        assert [one.broker for one in page.messages] == ["beta", "alpha"] * 3
        assert [one.broker for one in find(admin, topic="t", key="k").messages] == ["alpha", "beta"] * 3
        places = find(admin, topic="t", place=pb.QueuePlace(queue_id=0, offset=0)).messages
        assert [one.broker for one in places] == ["alpha", "beta"]
        assert [one.broker for one in find(admin, message_id=only.message_id).messages] == ["beta"]
        assert find(admin, topic="only-beta", time=pb.TimeRange()).messages[0].broker == "beta"
        assert send(admin, topic="only-beta", body=b"c").broker == "beta", "where the topic is"
        assert send(admin, topic="t", body=b"c", broker="alpha").broker == "alpha"

        beta.processes["store"].kill()
        code, words = refusal(admin, topic="t", key="k")
        assert (code, "store of node b" in words) == (grpc.StatusCode.UNAVAILABLE, True)
        assert len(find(admin, topic="t", key="k", broker="alpha").messages) == 3
