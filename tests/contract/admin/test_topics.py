"""Topics: lists, one with its queues, changes of a part, deletion."""

from typing import Any

import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.metadata.v1 import metadata_pb2
from tests.admin_process import AdminProcess, refused
from tests.faults.pair import Node
from tests.faults.pair_process import until

pytestmark = pytest.mark.xdist_group("calm admin")


@pytest.fixture(scope="module")
def node(calm_node: Node) -> Node:
    """Shared with other modules."""
    return calm_node


@pytest.fixture(scope="module")
def admin(calm_admin: AdminProcess) -> AdminProcess:
    """The same."""
    return calm_admin


def put(admin: AdminProcess, name: str, *, fields: tuple[str, ...] = (), **config: Any) -> pb.Topic:
    request = pb.PutTopicRequest(config=metadata_pb2.TopicConfig(name=name, **config), fields=fields)
    return admin.stub.PutTopic(request, timeout=60).topics[0]


def names(admin: AdminProcess, match: str = "", **request: Any) -> list[str]:
    answer = admin.stub.ListTopics(pb.ListTopicsRequest(match=match, **request), timeout=60)
    return [topic.config.name for topic in answer.topics]


def test_a_new_topic_has_the_defaults_and_is_listed_at_once(admin: AdminProcess) -> None:
    topic = put(admin, "new")
    assert (topic.broker, topic.kind, topic.orphaned) == ("alpha", pb.NORMAL, False)
    assert (topic.config.read_queues, topic.config.write_queues, topic.config.perm) == (16, 16, 6)
    assert topic.HasField("messages")
    assert topic.messages == 0
    assert names(admin, "new") == ["new"]


def test_what_is_not_set_stays(admin: AdminProcess) -> None:
    put(admin, "part", read_queues=8, write_queues=4, order=True, attributes={"a": "1", "b": "2"})
    changed = put(admin, "part", write_queues=8, attributes={"a": "", "c": "3"}).config
    assert (changed.read_queues, changed.write_queues, changed.order) == (8, 8, True)
    assert dict(changed.attributes) == {"b": "2", "c": "3"}
    assert not put(admin, "part", fields=("order",)).config.order
    assert dict(put(admin, "part", fields=("attributes",), attributes={"d": "4"}).config.attributes) == {"d": "4"}
    assert put(admin, "part", fields=("write_queues",)).config.write_queues == 16, "back to the default"


def test_another_number_of_queues_warns_of_what_becomes_of_order(admin: AdminProcess) -> None:
    def warnings(**config: Any) -> list[str]:
        request = pb.PutTopicRequest(config=metadata_pb2.TopicConfig(name="wider", **config))
        return list(admin.stub.PutTopic(request, timeout=60).warnings)

    assert not warnings(read_queues=8, write_queues=4)
    assert not warnings(read_queues=16)
    (wider,) = warnings(write_queues=8)
    assert wider.startswith("wider on alpha has 8 queues to write to instead of 4: message groups go to other queues")
    (fewer,) = warnings(read_queues=8)
    assert fewer.startswith(
        "wider on alpha has 8 queues to read instead of 16: what waits in the others is not received"
    )
    assert not warnings(write_queues=8)


def test_create_only_and_update_only(admin: AdminProcess) -> None:
    config = metadata_pb2.TopicConfig(name="once")
    with refused("NOT_FOUND", "there is no topic once on alpha"):
        admin.stub.PutTopic(pb.PutTopicRequest(config=config, update_only=True))
    admin.stub.PutTopic(pb.PutTopicRequest(config=config, create_only=True))
    with refused("ALREADY_EXISTS", "topic once exists on alpha (`tandem topic update` changes it)"):
        admin.stub.PutTopic(pb.PutTopicRequest(config=config, create_only=True))
    with refused("INVALID_ARGUMENT", "exclude each other"):
        admin.stub.PutTopic(pb.PutTopicRequest(config=config, create_only=True, update_only=True))


@pytest.mark.parametrize(
    ("config", "fields", "code", "words"),
    [
        ({"name": ""}, (), "INVALID_ARGUMENT", "names no topic"),
        ({"name": "no blanks"}, (), "INVALID_ARGUMENT", "other characters"),
        ({"name": "wide", "read_queues": 2000}, (), "INVALID_ARGUMENT", "1 to 1024"),
        ({"name": "wide"}, ("queues",), "INVALID_ARGUMENT", "known are read_queues"),
    ],
)
def test_what_metasync_refuses_is_refused_in_its_words(
    admin: AdminProcess, config: dict[str, Any], fields: tuple[str, ...], code: str, words: str
) -> None:
    with refused(code, words):
        put(admin, **config, fields=fields)


def test_system_topics_can_be_made_and_then_stay_as_they_are(admin: AdminProcess) -> None:
    assert put(admin, "rmq_sys_made").kind == pb.SYSTEM
    with refused("PERMISSION_DENIED", "system topic"):
        put(admin, "rmq_sys_made", perm=4)
    with refused("PERMISSION_DENIED", "system topic"):
        admin.stub.DeleteTopic(pb.DeleteTopicRequest(topic="rmq_sys_made"))


def test_names_are_found_by_part_pattern_and_kind(admin: AdminProcess) -> None:
    for name in ("find-One", "find-two", "%RETRY%find", "%DLQ%find", "rmq_sys_find"):
        put(admin, name)
    assert names(admin, "FIND-o") == ["find-One"]
    assert names(admin, "find-*") == ["find-One", "find-two"]
    assert names(admin, "find-t?o") == ["find-two"]
    assert names(admin, "find", kinds=[pb.RETRY]) == ["%RETRY%find"]
    assert names(admin, "find", kinds=[pb.DEAD_LETTER, pb.SYSTEM]) == ["%DLQ%find", "rmq_sys_find"]


def test_pages(admin: AdminProcess) -> None:
    admin.put_topics([f"page-{number}" for number in range(5)])
    first = admin.stub.ListTopics(pb.ListTopicsRequest(match="page-", limit=2))
    assert [topic.config.name for topic in first.topics] == ["page-0", "page-1"]
    assert (first.total, first.next) == (5, "page-1")
    assert names(admin, "page-", after="page-1", limit=2) == ["page-2", "page-3"]
    last = admin.stub.ListTopics(pb.ListTopicsRequest(match="page-", limit=2, after="page-3"))
    assert ([topic.config.name for topic in last.topics], last.next) == (["page-4"], "")
    with refused("INVALID_ARGUMENT", "limit is 1001"):
        admin.stub.ListTopics(pb.ListTopicsRequest(limit=1001))


def test_a_topic_with_queues_and_groups(admin: AdminProcess, node: Node) -> None:
    put(admin, "busy", read_queues=4, write_queues=4)
    with node.client() as client:
        receipts = [client.send("busy", b"body", queue_id=queue) for queue in (0, 0, 0, 2, 2, 2, 2, 2)]
    admin.stub.PutGroup(pb.PutGroupRequest(config=metadata_pb2.SubscriptionGroupConfig(name="busy-group")))
    admin.stub.ResetOffsets(pb.ResetOffsetsRequest(group="busy-group", topic="busy", earliest=True))
    found = admin.stub.GetTopic(pb.GetTopicRequest(topic="busy"))
    assert (found.topics[0].messages, found.topics[0].queues) == (8, 2)
    assert [(queue.queue_id, queue.min_offset, queue.max_offset) for queue in found.queues] == [(0, 0, 3), (2, 0, 5)]
    assert found.queues[1].last_store_ms == receipts[-1].store_timestamp
    assert [(one.group, one.lag) for one in found.groups] == [("busy-group", 8)]
    assert not found.problems
    # In lists it is there within the second that they may be old.
    until(lambda: admin.stub.ListTopics(pb.ListTopicsRequest(match="busy")).topics[0].messages == 8, 60, "8 messages")


def test_deletion_tells_whose_offsets_went_and_leaves_an_orphan(admin: AdminProcess, node: Node) -> None:
    put(admin, "going", read_queues=1, write_queues=1)
    with node.client() as client:
        client.send("going", b"body")
    admin.stub.PutGroup(pb.PutGroupRequest(config=metadata_pb2.SubscriptionGroupConfig(name="going-group")))
    admin.stub.ResetOffsets(pb.ResetOffsetsRequest(group="going-group", topic="going", earliest=True))
    gone = admin.stub.DeleteTopic(pb.DeleteTopicRequest(topic="going"))
    assert (list(gone.brokers), list(gone.groups)) == (["alpha"], ["going-group"])
    left = admin.stub.GetTopic(pb.GetTopicRequest(topic="going"))
    assert left.topics[0].orphaned
    assert not left.groups
    with refused("NOT_FOUND", "there is no topic going"):
        admin.stub.DeleteTopic(pb.DeleteTopicRequest(topic="going"))


def test_what_is_not_there(admin: AdminProcess) -> None:
    with refused("NOT_FOUND", "there is no topic nowhere"):
        admin.stub.GetTopic(pb.GetTopicRequest(topic="nowhere"))
    with refused("NOT_FOUND", "there is no broker 'beta': known are alpha"):
        admin.stub.ListTopics(pb.ListTopicsRequest(broker="beta"))
    with refused("INVALID_ARGUMENT", "names no topic"):
        admin.stub.GetTopic(pb.GetTopicRequest())
