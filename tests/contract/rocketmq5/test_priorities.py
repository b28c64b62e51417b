"""Messages with a priority: the queue is the priority, and the highest is received first (RocketMQ 5.4, RIP-80)."""

import itertools

import grpc

from tandemmq.delivery.v1.operations_pb2 import CreateGroupRequest, CreateTopicRequest
from tandemmq.delivery.v1.operations_pb2_grpc import OperationsStub
from tandemmq.metadata.v1.metadata_pb2 import SubscriptionGroupConfig, TopicConfig
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tests.contract.rocketmq5.v2_client import V2Client, message
from tests.contract.store_process import StoreProcess

_numbers = itertools.count()

QUEUES = 4


def made(store: StoreProcess, **attributes: str) -> tuple[str, str]:
    """A topic of that type and a group, made by an operator. `attributes`: of the group."""
    topic, group = (f"{kind}-{next(_numbers)}" for kind in ("urgent", "urgent-group"))
    with grpc.insecure_channel(store.address) as channel:
        operations = OperationsStub(channel)
        config = TopicConfig(
            name=topic, read_queues=QUEUES, write_queues=QUEUES, attributes={"message.type": "PRIORITY"}
        )
        operations.CreateTopic(CreateTopicRequest(config=config))
        named = {name.replace("_", "."): value for name, value in attributes.items()}
        operations.CreateGroup(CreateGroupRequest(config=SubscriptionGroupConfig(name=group, attributes=named)))
    return topic, group


def send(client: V2Client, topic: str, *priorities: int) -> None:
    for priority in priorities:
        sent = client.send(message(topic, str(priority).encode(), pb.PRIORITY, priority=priority))
        assert sent.status.code == pb.OK


def received(client: V2Client, group: str, topic: str, count: int) -> list[bytes]:
    """Bodies, received one by one."""
    return [client.take(group, topic, 1, batch_size=1)[0].body for _ in range(count)]


def test_the_highest_priority_is_received_first(v2: V2Client, shared_store: StoreProcess) -> None:
    topic, group = made(shared_store)
    assert v2.receive(group, topic, wait=0) == []
    send(v2, topic, 0, 2, 1, 3, 0, 3, 2)
    assert received(v2, group, topic, 7) == [b"3", b"3", b"2", b"2", b"1", b"0", b"0"]


def test_a_batch_begins_with_the_highest_priority(v2: V2Client, shared_store: StoreProcess) -> None:
    topic, group = made(shared_store)
    v2.receive(group, topic, wait=0)
    send(v2, topic, 1, 3, 0, 2)
    found = v2.take(group, topic, 4, batch_size=4)
    assert [one.system_properties.priority for one in found] == [3, 2, 1, 0]
    assert [one.system_properties.message_type for one in found] == [pb.PRIORITY] * 4


def test_a_priority_above_the_queues_counts_as_the_highest(v2: V2Client, shared_store: StoreProcess) -> None:
    topic, group = made(shared_store)
    v2.receive(group, topic, wait=0)
    send(v2, topic, 2, 1000)
    [first] = v2.take(group, topic, 1, batch_size=1)
    assert (first.system_properties.priority, first.system_properties.queue_id) == (1000, QUEUES - 1)


def test_a_message_that_comes_again_keeps_its_priority(v2: V2Client, shared_store: StoreProcess) -> None:
    topic, group = made(shared_store)
    v2.receive(group, topic, wait=0)
    send(v2, topic, 1, 2, 3)
    [urgent] = v2.take(group, topic, 1, batch_size=1)
    v2.change(group, topic, urgent.system_properties.receipt_handle, 0)
    [again] = v2.take(group, topic, 1, batch_size=1)
    assert (again.body, again.system_properties.delivery_attempt) == (b"3", 2)
    assert received(v2, group, topic, 2) == [b"2", b"1"]


def test_a_group_may_give_no_priority_its_turn(v2: V2Client, shared_store: StoreProcess) -> None:
    topic, group = made(shared_store, priority_factor="0")
    v2.receive(group, topic, wait=0)
    send(v2, topic, *[0, 3] * 8)
    assert b"0" in received(v2, group, topic, 4)


def test_a_topic_of_priorities_says_so_and_takes_nothing_else(v2: V2Client, shared_store: StoreProcess) -> None:
    topic, _ = made(shared_store)
    queues = v2.route(topic).message_queues
    assert {tuple(one.accept_message_types) for one in queues} == {(pb.PRIORITY,)}
    conflict = pb.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE
    assert v2.send(message(topic)).status.code == conflict
    assert v2.send(message(topic, kind=pb.PRIORITY)).status.code == conflict  # which priority?


def test_a_priority_of_a_message_of_another_type_means_nothing(v2: V2Client) -> None:
    topic, group = f"not-urgent-{next(_numbers)}", "not-urgent"
    v2.route(topic)
    v2.receive(group, topic, wait=0)
    v2.send(message(topic, kind=pb.FIFO, message_group="g", priority=3))
    [one] = v2.take(group, topic, 1)
    assert not one.system_properties.HasField("priority")
    assert one.system_properties.message_type == pb.FIFO
