"""What people see of a store, and topics and groups made by one call: tandemmq.delivery.v1.Operations."""

import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from tandemmq.client import StoreClient
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.delivery.v1 import operations_pb2 as pb
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.delivery.v1.operations_pb2_grpc import OperationsStub
from tandemmq.metadata.v1 import metadata_pb2
from tests.contract.refusals import statuses
from tests.contract.store_process import StoreProcess
from tests.contract.test_delivery import acknowledge, receive_all, refusal
from tests.faults.pair_process import until


@pytest.fixture
def operations(shared_store: StoreProcess) -> Iterator[OperationsStub]:
    with grpc.insecure_channel(shared_store.address) as channel:
        yield OperationsStub(channel)


def view(operations: OperationsStub, group: str) -> pb.GroupView:
    request = pb.ViewGroupsRequest(groups=[group], with_members=True)
    (found,) = operations.ViewGroups(request, timeout=60).groups
    return found


def beat(delivery: DeliveryStub, client: str, group: str, **more: Any) -> None:
    filters = {topic: delivery_pb2.Filter(expression=text) for topic, text in more.pop("wants", {}).items()}
    membership = delivery_pb2.Membership(group=group, subscriptions=filters, **more)
    request = delivery_pb2.HeartbeatRequest(
        client_id=client, memberships=[membership], language="PYTHON", version="1.2"
    )
    delivery.Heartbeat(request, timeout=60)


def test_a_group_is_seen_with_what_it_holds(
    client: StoreClient, delivery: DeliveryStub, operations: OperationsStub
) -> None:
    before = int(time.time() * 1000)
    for _ in range(5):
        client.send("seen", b"x", queue_id=0)
    given = receive_all(delivery, "seeing", "seen", 2)
    found = view(operations, "seeing")
    (topic,) = found.topics
    assert (topic.topic, topic.lag, topic.in_flight, topic.ready, topic.most_deliveries) == ("seen", 5, 2, 3, 1)
    assert before - 1000 <= topic.oldest_ms <= topic.oldest_waiting_ms
    assert (found.acknowledges, found.commits, found.consumers) == (True, False, 0)
    acknowledge(delivery, "seeing", "seen", *(one.handle for one in given))
    (topic,) = view(operations, "seeing").topics
    assert (topic.lag, topic.in_flight, topic.ready, topic.most_deliveries) == (3, 0, 3, 0)


def test_a_message_that_comes_again_is_seen_by_its_number(
    client: StoreClient, delivery: DeliveryStub, operations: OperationsStub
) -> None:
    client.send("again", b"x")
    for _ in range(3):
        (one,) = receive_all(delivery, "repeats", "again", 1)
        change = delivery_pb2.InvisibleChange(handle=one.handle, invisible_ms=0)
        delivery.ChangeInvisible(
            delivery_pb2.ChangeInvisibleRequest(group="repeats", topic="again", changes=[change]), timeout=60
        )
    (topic,) = view(operations, "repeats").topics
    assert (topic.most_deliveries, topic.ready, topic.in_flight, topic.put_off) == (3, 1, 0, 0)
    (one,) = receive_all(delivery, "repeats", "again", 1)
    change = delivery_pb2.InvisibleChange(handle=one.handle, invisible_ms=3_600_000)
    delivery.ChangeInvisible(
        delivery_pb2.ChangeInvisibleRequest(group="repeats", topic="again", changes=[change]), timeout=60
    )
    (topic,) = view(operations, "repeats").topics
    assert (topic.most_deliveries, topic.ready, topic.in_flight, topic.put_off) == (4, 0, 0, 1)


def test_single_messages_are_seen_in_the_groups_that_have_not_dealt_with_them(
    client: StoreClient, delivery: DeliveryStub, operations: OperationsStub
) -> None:
    for _ in range(4):
        client.send("single", b"x", queue_id=0)
    failed, held, done = receive_all(delivery, "singles", "single", 3)
    receive_all(delivery, "others", "single", 4)
    acknowledge(delivery, "singles", "single", done.handle)
    for wait in (0, 3_600_000):
        change = delivery_pb2.InvisibleChange(handle=failed.handle, invisible_ms=wait)
        request = delivery_pb2.ChangeInvisibleRequest(group="singles", topic="single", changes=[change])
        delivery.ChangeInvisible(request, timeout=60)
        if not wait:
            failed = receive_all(delivery, "singles", "single", 1)[0]

    def place(offset: int) -> pb.MessagePlace:
        return pb.MessagePlace(topic="single", queue_id=0, queue_offset=offset)

    asked = pb.ViewMessagesRequest(places=[*map(place, range(6)), pb.MessagePlace(topic="nowhere")])
    answer = operations.ViewMessages(asked, timeout=60)
    mine = [one for one in answer.messages if one.group == "singles"]
    assert [(one.place.queue_offset, one.state, one.deliveries) for one in mine] == [
        (0, pb.PUT_OFF, 2),
        (1, pb.HELD, 1),
        (3, pb.WAITS, 0),
    ]
    assert 3_000_000 < mine[0].due_in_ms <= 3_600_000
    assert [one.state for one in answer.messages if one.group == "others"] == [pb.HELD] * 4
    (worst,) = operations.ViewMessages(pb.ViewMessagesRequest(group="singles"), timeout=60).messages
    assert (worst.place, worst.deliveries, worst.state) == (place(0), 2, pb.PUT_OFF)
    acknowledge(delivery, "singles", "single", failed.handle, held.handle)
    assert not operations.ViewMessages(pb.ViewMessagesRequest(group="singles"), timeout=60).messages


def test_a_view_of_messages_says_which(operations: OperationsStub) -> None:
    both = pb.ViewMessagesRequest(group="singles", places=[pb.MessagePlace(topic="single")])
    many = pb.ViewMessagesRequest(places=[pb.MessagePlace(topic="single", queue_offset=at) for at in range(65)])
    limit = pb.ViewMessagesRequest(group="singles", limit=1_001)
    for wrong in (pb.ViewMessagesRequest(), both, many, limit):
        assert refusal(operations.ViewMessages, wrong)[0] == "INVALID_ARGUMENT"


def test_a_group_that_consumes_in_two_ways_is_seen_as_both(
    client: StoreClient, delivery: DeliveryStub, operations: OperationsStub
) -> None:
    client.send("mixed", b"x", queue_id=0)
    receive_all(delivery, "mixing", "mixed", 1)
    commit = delivery_pb2.OffsetCommit(topic="mixed", queue_id=0, offset=1)
    delivery.CommitOffsets(delivery_pb2.CommitOffsetsRequest(group="mixing", commits=[commit]), timeout=60)
    found = view(operations, "mixing")
    assert found.acknowledges
    assert found.commits


def test_members_are_seen_and_where_their_subscriptions_differ(
    delivery: DeliveryStub, operations: OperationsStub
) -> None:
    beat(delivery, "one", "members", wants={"a": "x || y", "b": "*"})
    beat(delivery, "two", "members", wants={"a": "x", "b": "*"})
    beat(delivery, "sender", "members", producer=True)
    found = view(operations, "members")
    assert (found.consumers, found.producers, list(found.differing_topics)) == (2, 1, ["a"])
    assert [(one.client_id, one.producer) for one in found.members] == [
        ("one", False),
        ("two", False),
        ("sender", True),
    ]
    first = found.members[0]
    assert (first.protocol, first.language, first.version) == ("native", "PYTHON", "1.2")
    assert dict(first.subscriptions) == {"a": "x || y", "b": "*"}
    assert first.address.startswith("127.0.0.1:")
    assert first.silent_ms < 60_000
    (alone,) = (one for one in operations.ViewGroups(pb.ViewGroupsRequest()).groups if one.group == "members")
    assert not alone.members, "only where they are asked for"
    assert alone.consumers == 2


def test_what_waits_is_seen(client: StoreClient, delivery: DeliveryStub, operations: OperationsStub) -> None:
    client.send("later", b"x", properties={"DELAY": "18"})
    client.send("later", b"x", properties={"TIMER_DELAY_SEC": "3600"})
    client.send("halves", b"x", properties={"TRAN_MSG": "true", "PGROUP": "senders"})
    deadline = time.monotonic() + 60
    while True:  # the index of timers and the half messages follow the log
        found = operations.ViewWaiting(pb.ViewWaitingRequest(), timeout=60)
        if (found.timers and found.half_messages) or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    assert (found.timers, found.timers_due, found.timers_late_ms, found.timers_not_indexed) == (1, 0, 0, 0)
    assert [(one.level, one.messages, one.late_ms) for one in found.levels] == [(18, 1, 0)]
    (half,) = found.halves
    assert (found.half_messages, half.topic, half.group, half.checks) == (1, "halves", "senders", 0)
    assert 0 <= half.age_ms < 600_000
    request = delivery_pb2.EndTransactionRequest(topic="halves", handle=half.handle, ending=delivery_pb2.ROLLBACK)
    delivery.EndTransaction(request, timeout=60)
    until(lambda: not operations.ViewWaiting(pb.ViewWaitingRequest(), timeout=60).half_messages, 60, "it has ended")


def test_a_group_that_nobody_uses_is_not_there(operations: OperationsStub) -> None:
    assert not operations.ViewGroups(pb.ViewGroupsRequest(groups=["nobody"])).groups


def test_a_topic_that_is_made_can_be_used_at_once(
    client: StoreClient, operations: OperationsStub, shared_store: StoreProcess
) -> None:
    config = metadata_pb2.TopicConfig(name="made", read_queues=8, write_queues=8, attributes={"message.type": "FIFO"})
    operations.CreateTopic(pb.CreateTopicRequest(config=config), timeout=60)
    client.send("made", b"x", queue_id=7)
    code, _, text = refusal(operations.CreateTopic, pb.CreateTopicRequest(config=config))
    assert (code, text) == ("ALREADY_EXISTS", "Topic made exists. (`tandem topic update` changes it)")
    file = (shared_store.directory / "config" / "topics.json").read_text()
    assert '"message.type":"FIFO"' in file.replace(" ", "")


@pytest.mark.slow
def test_a_group_that_is_made_counts_at_once_and_after_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("made") / "store"
    config = metadata_pb2.SubscriptionGroupConfig(name="twice", retry_max_times=1, consume_message_orderly=True)
    with StoreProcess(directory) as store:
        with grpc.insecure_channel(store.address) as channel:
            OperationsStub(channel).CreateGroup(pb.CreateGroupRequest(config=config), timeout=60)
            delivery = DeliveryStub(channel)
            with store.client() as client:
                client.send("work", b"x", properties={"__SHARDINGKEY": "a"})
            give_up(delivery, 2)
        store.stop()
        store.start()
        with grpc.insecure_channel(store.address) as channel, store.client() as client:
            client.send("work", b"y", properties={"__SHARDINGKEY": "a"})
            give_up(DeliveryStub(channel), 2)
            assert len(receive_all(DeliveryStub(channel), "others", "%DLQ%twice", 2)) == 2


def give_up(delivery: DeliveryStub, times: int) -> None:
    """A message comes so many times and no more."""
    for number in range(1, times + 1):
        (one,) = receive_all(delivery, "twice", "work", 1)
        assert one.delivery_number == number
        change = delivery_pb2.InvisibleChange(handle=one.handle, invisible_ms=0)
        delivery.ChangeInvisible(
            delivery_pb2.ChangeInvisibleRequest(group="twice", topic="work", changes=[change]), timeout=60
        )
    request = delivery_pb2.ReceiveRequest(group="twice", topic="work", wait_ms=0)
    assert not delivery.Receive(request, timeout=60).messages


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"name": ""}, "topic is empty"),
        ({"name": "a b"}, "other characters"),
        ({"name": "TANDEM_SYS_DELIVERY"}, "the broker's own"),
        ({"name": "t", "read_queues": 0}, "1 to 1,024"),
        ({"name": "t", "write_queues": 5000}, "1 to 1,024"),
        ({"name": "t", "perm": 9}, "perm is 9"),
        ({"name": "t", "attributes": {"message.type": "ODD"}}, "allowed is DELAY, FIFO"),
        ({"name": "t", "attributes": {"reserve.time": "soon"}}, "reserve.time is 'soon': allowed is a number"),
        ({"name": "t", "attributes": {"reserve.time": "-2"}}, "-1 or more"),
        ({"name": "t", "attributes": {"+a": "b"}}, "plain names"),
        ({"name": "t", "attributes": {"a": "b" * 5000}}, "more than 4,096"),
        ({"name": "t", "other_json": "{}"}, "other_json is refused"),
        ({"name": "t", "other_json": '{"": 1}'}, "other_json is refused"),
    ],
)
def test_a_topic_that_makes_no_sense_is_refused(operations: OperationsStub, config: dict[str, Any], words: str) -> None:
    request = pb.CreateTopicRequest(config=metadata_pb2.TopicConfig(**config))
    code, _, text = refusal(operations.CreateTopic, request)
    assert code == "INVALID_ARGUMENT"
    assert words in text


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"name": ""}, "is no name"),
        ({"name": "CID_RMQ_SYS_x"}, "the broker's own"),
        ({"name": "g", "retry_queues": -1}, "0 to 1,024"),
        ({"name": "g", "retry_max_times": -2}, "-1 and more"),
        ({"name": "g", "other_json": '{"a": 1}'}, "other_json is refused"),
        ({"name": "g", "other_json": '["groupRetryPolicy"]'}, "other_json is refused"),
        ({"name": "g", "other_json": "[" * 100_000}, "other_json is refused"),
        ({"name": "g", "other_json": '{"groupRetryPolicy": 7}'}, "groupRetryPolicy is refused"),
        ({"name": "g", "other_json": '{"groupRetryPolicy": {"x": NaN}}'}, "other_json is refused"),
        ({"name": "g", "other_json": '{"groupRetryPolicy": {"x": "\\ud800"}}'}, "other_json is refused"),
        ({"name": "g", "other_json": '{"groupRetryPolicy": {"x": "' + 20_000 * "x" + '"}}'}, "waits, or too many"),
        (
            {"name": "g", "other_json": '{"groupRetryPolicy": {"customizedRetryPolicy": {"next": ["1s"]}}}'},
            "groupRetryPolicy is refused",
        ),
        ({"name": "g", "attributes": {"ackDurability": "disk"}}, "allowed is PAGE_CACHE, DISK, REPLICAS"),
        ({"name": "g", "attributes": {"keepUnconsumed": "yes"}}, "allowed is true, false"),
        ({"name": "g", "attributes": {"consumeFromWhere": "NOW"}}, "allowed is CONSUME_FROM_FIRST_OFFSET"),
    ],
)
def test_a_group_that_makes_no_sense_is_refused(operations: OperationsStub, config: dict[str, Any], words: str) -> None:
    request = pb.CreateGroupRequest(config=metadata_pb2.SubscriptionGroupConfig(**config))
    code, _, text = refusal(operations.CreateGroup, request)
    assert code == "INVALID_ARGUMENT"
    assert words in text


def test_questions_that_make_no_sense_are_refused(operations: OperationsStub) -> None:
    refused: list[tuple[Any, Any]] = [
        (operations.ViewGroups, pb.ViewGroupsRequest(groups=["a"] * 1001)),
        (operations.ViewGroups, pb.ViewGroupsRequest(groups=[""])),
        (operations.ViewWaiting, pb.ViewWaitingRequest(limit=-1)),
        (operations.ViewWaiting, pb.ViewWaitingRequest(limit=1001)),
    ]
    for call, request in refused:
        with pytest.raises(grpc.RpcError) as raised:
            call(request, timeout=60)
        assert statuses(raised.value)[0] == "INVALID_ARGUMENT"
