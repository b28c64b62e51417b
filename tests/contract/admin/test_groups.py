"""Groups: lists with lag, one with its progress, changes of a part, deletion."""

from typing import Any

import grpc
import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
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


@pytest.fixture(scope="module", autouse=True)
def messages(admin: AdminProcess, node: Node) -> None:
    """A topic with 10 messages in each of two queues."""
    admin.put_topics(["read"], queues=2)
    with node.client() as client:
        for number in range(20):
            client.send("read", b"body", queue_id=number % 2)


def put(admin: AdminProcess, name: str, *, fields: tuple[str, ...] = (), **config: Any) -> pb.Group:
    wanted = metadata_pb2.SubscriptionGroupConfig(name=name, **config)
    return admin.stub.PutGroup(pb.PutGroupRequest(config=wanted, fields=fields), timeout=60).groups[0]


def reset(admin: AdminProcess, group: str, offset: int, topic: str = "read") -> None:
    put(admin, group)
    admin.stub.ResetOffsets(pb.ResetOffsetsRequest(group=group, topic=topic, offset=offset), timeout=60)


def get(admin: AdminProcess, name: str) -> pb.GroupDetails:
    return admin.stub.GetGroup(pb.GetGroupRequest(group=name), timeout=60)


def test_a_new_group_has_the_defaults_and_is_listed_at_once(admin: AdminProcess) -> None:
    group = put(admin, "new")
    assert (group.broker, group.config.retry_max_times, group.lag, group.orphaned) == ("alpha", 16, 0, False)
    assert [one.config.name for one in admin.stub.ListGroups(pb.ListGroupsRequest(match="new")).groups] == ["new"]


def test_what_is_not_set_stays(admin: AdminProcess) -> None:
    put(admin, "part", retry_max_times=3, consume_message_orderly=True, consume_enable=False)
    changed = put(admin, "part", retry_queues=2).config
    assert (changed.retry_max_times, changed.retry_queues) == (3, 2)
    assert (changed.consume_message_orderly, changed.consume_enable) == (True, False)
    assert not put(admin, "part", fields=("consume_message_orderly",)).config.consume_message_orderly


def test_create_only_and_update_only(admin: AdminProcess) -> None:
    config = metadata_pb2.SubscriptionGroupConfig(name="once")
    with refused("NOT_FOUND", "there is no group once"):
        admin.stub.PutGroup(pb.PutGroupRequest(config=config, update_only=True))
    admin.stub.PutGroup(pb.PutGroupRequest(config=config, create_only=True))
    with refused("ALREADY_EXISTS", "group once exists on alpha (`tandem group update` changes it)"):
        admin.stub.PutGroup(pb.PutGroupRequest(config=config, create_only=True))
    with refused("INVALID_ARGUMENT", "retry_max_times"):
        put(admin, "once", retry_max_times=-5)
    with refused("INVALID_ARGUMENT", "names no group"):
        put(admin, "")


def test_progress_in_every_queue(admin: AdminProcess) -> None:
    reset(admin, "progress", 4)
    found = get(admin, "progress")
    assert (found.groups[0].lag, list(found.groups[0].topics)) == (12, ["read"])
    for at, queue in enumerate(found.progress):
        assert (queue.broker, queue.topic, queue.queue_id) == ("alpha", "read", at)
        assert (queue.min_offset, queue.max_offset, queue.offset, queue.lag, queue.trouble) == (0, 10, 4, 6, "")
        assert queue.lag_ms > 0
    oldest = found.progress[0].lag_ms
    until(lambda: get(admin, "progress").progress[0].lag_ms > oldest, 60, "the same message is a moment older")


def test_a_group_that_has_everything_does_not_lag(admin: AdminProcess) -> None:
    put(admin, "level")
    admin.stub.ResetOffsets(pb.ResetOffsetsRequest(group="level", topic="read", latest=True))
    found = get(admin, "level")
    assert found.groups[0].lag == 0
    assert [(queue.HasField("lag_ms"), queue.lag_ms) for queue in found.progress] == [(True, 0), (True, 0)]


def test_an_offset_ahead_of_the_queue_is_told(admin: AdminProcess, node: Node) -> None:
    commit = metadata_pb2.OffsetCommit(topic="read", group="ahead", queue_id=0, offset=99)
    with grpc.insecure_channel(node.address("metasync")) as channel:
        MetadataStub(channel).CommitOffsets(metadata_pb2.CommitOffsetsRequest(commits=[commit]))

    def troubles() -> list[tuple[str, int]]:
        found = admin.stub.ListGroups(pb.ListGroupsRequest(match="ahead")).groups
        return [(one.trouble, one.lag) for one in get(admin, "ahead").progress] if found else []

    until(lambda: troubles() == [("ahead", 0)], 60, "the commit is seen")


def test_groups_by_lag(admin: AdminProcess) -> None:
    for name, offset in (("lag-none", 10), ("lag-some", 9), ("lag-much", 0)):
        reset(admin, name, offset)

    def lagging(least: int) -> list[str]:
        answer = admin.stub.ListGroups(pb.ListGroupsRequest(match="lag-", min_lag=least))
        return [group.config.name for group in answer.groups]

    until(lambda: lagging(2) == ["lag-much", "lag-some"], 60, "the queue ends are a second old at most")
    assert lagging(3) == ["lag-much"]
    assert lagging(21) == []


def test_pages(admin: AdminProcess) -> None:
    for number in range(3):
        put(admin, f"page-{number}")
    first = admin.stub.ListGroups(pb.ListGroupsRequest(match="page-", limit=2))
    assert ([group.config.name for group in first.groups], first.total, first.next) == (
        ["page-0", "page-1"], 3, "page-1",
    )  # fmt: skip
    rest = admin.stub.ListGroups(pb.ListGroupsRequest(match="page-", limit=2, after=first.next))
    assert ([group.config.name for group in rest.groups], rest.next) == (["page-2"], "")


def test_dead_letters_are_counted(admin: AdminProcess, node: Node) -> None:
    put(admin, "dying")
    admin.put_topics(["%DLQ%dying"], queues=1)
    with node.client() as client:
        until(lambda: any(one.topic == "%DLQ%dying" for one in client.queues().topics), 60, "the store has the topic")
        client.send("%DLQ%dying", b"dead")
    assert get(admin, "dying").groups[0].dead_letters == 1


def test_a_group_without_configuration_is_an_orphan(admin: AdminProcess) -> None:
    reset(admin, "orphan", 0)
    gone = admin.stub.DeleteGroup(pb.DeleteGroupRequest(group="orphan", keep_offsets=True))
    assert list(gone.brokers) == ["alpha"]
    left = get(admin, "orphan").groups[0]
    assert (left.orphaned, left.lag) == (True, 20)
    assert list(admin.stub.DeleteGroup(pb.DeleteGroupRequest(group="orphan")).brokers) == ["alpha"]
    with refused("NOT_FOUND", "there is no group orphan"):
        get(admin, "orphan")
    with refused("NOT_FOUND", "there is no group orphan"):
        admin.stub.DeleteGroup(pb.DeleteGroupRequest(group="orphan"))


def test_deletion_takes_the_offsets_with_it(admin: AdminProcess) -> None:
    reset(admin, "going", 0)
    admin.stub.DeleteGroup(pb.DeleteGroupRequest(group="going"))
    put(admin, "going")
    assert not get(admin, "going").progress
