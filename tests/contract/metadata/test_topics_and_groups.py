"""Topics and subscription groups: listed, put, deleted; what is refused leaves everything as it was."""

from typing import Any, cast

import grpc
import pytest

from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tests.contract.refusals import statuses
from tests.metasync_process import MetasyncProcess

Topic = pb.TopicConfig
Group = pb.SubscriptionGroupConfig


def put(stub: MetadataStub, *topics: Topic, create_only: bool = False) -> pb.PutTopicsResponse:
    return stub.PutTopics(pb.PutTopicsRequest(topics=topics, create_only=create_only))


def topics_of(stub: MetadataStub, *names: str) -> dict[str, Topic]:
    return {topic.name: topic for topic in stub.ListTopics(pb.ListTopicsRequest(names=names)).topics}


def test_a_topic_is_what_was_asked_for(stub: MetadataStub) -> None:
    asked = Topic(name="full", read_queues=8, write_queues=4, perm=4, order=True, filter_type=pb.MULTI_TAG, sys_flag=1)
    asked.attributes["message.type"] = "FIFO"
    asked.other_json = '{"later": [1]}'
    answer = put(stub, asked, Topic(name="plain"))
    assert answer.topics[0] == asked
    plain = answer.topics[1]
    assert (plain.read_queues, plain.write_queues, plain.perm) == (16, 16, 6)
    assert topics_of(stub, "full", "nobody", "plain") == {"full": asked, "plain": plain}


def test_a_put_replaces_and_create_only_does_not(stub: MetadataStub) -> None:
    first = put(stub, Topic(name="again", read_queues=2))
    second = put(stub, Topic(name="again", read_queues=3), Topic(name="fresh"), create_only=True)
    assert list(second.existing) == ["again"]
    assert second.topics[0].read_queues == 2
    third = put(stub, Topic(name="again", read_queues=3))
    assert topics_of(stub, "again")["again"].read_queues == 3
    assert first.version.counter < second.version.counter < third.version.counter
    assert put(stub, Topic(name="again", read_queues=3)).version == third.version, "nothing changed"


def test_deleting(stub: MetadataStub) -> None:
    put(stub, Topic(name="gone"))
    answer = stub.DeleteTopics(pb.DeleteTopicsRequest(names=["gone", "never"]))
    assert list(answer.deleted) == ["gone"]
    assert topics_of(stub, "gone") == {}
    assert stub.DeleteTopics(pb.DeleteTopicsRequest(names=["gone"])).version == answer.version


def test_pages_of_a_list(own: MetasyncProcess) -> None:
    with own.stub() as stub:
        put(stub, *(Topic(name=f"t{at:03}") for at in range(25)))
        found, after = [], ""
        while True:
            page = stub.ListTopics(pb.ListTopicsRequest(after=after, limit=10))
            assert page.total == 25
            found += [topic.name for topic in page.topics]
            after = page.next
            if not after:
                break
        assert found == [f"t{at:03}" for at in range(25)]
        assert len(stub.ListTopics(pb.ListTopicsRequest()).topics) == 25


def test_groups(stub: MetadataStub) -> None:
    asked = Group(name="g-full", consume_enable=False, retry_queues=2, retry_max_times=-1, consume_message_orderly=True)
    answer = stub.PutGroups(pb.PutGroupsRequest(groups=[asked, Group(name="g-plain")]))
    full, plain = answer.groups
    assert (full.consume_enable, full.retry_queues, full.retry_max_times) == (False, 2, -1)
    assert full.consume_broadcast_enable
    assert (plain.retry_queues, plain.retry_max_times, plain.which_broker_when_consume_slowly) == (1, 16, 1)
    listed = stub.ListGroups(pb.ListGroupsRequest(names=["g-full", "nobody"]))
    assert list(listed.groups) == [full]
    again = stub.PutGroups(pb.PutGroupsRequest(groups=[Group(name="g-full")], create_only=True))
    assert list(again.existing) == ["g-full"]
    assert list(stub.DeleteGroups(pb.DeleteGroupsRequest(names=["g-full", "x"])).deleted) == ["g-full"]
    assert [one.name for one in stub.ListGroups(pb.ListGroupsRequest(after="g-pla", limit=1)).groups] == ["g-plain"]


def test_system_topics_may_be_created_and_nothing_else(stub: MetadataStub) -> None:
    put(stub, Topic(name="SCHEDULE_TOPIC_XXXX", read_queues=18), create_only=True)
    for call in (
        lambda: put(stub, Topic(name="SCHEDULE_TOPIC_XXXX")),
        lambda: stub.DeleteTopics(pb.DeleteTopicsRequest(names=["SCHEDULE_TOPIC_XXXX"])),
    ):
        with pytest.raises(grpc.RpcError) as raised:
            call()
        assert statuses(raised.value)[0] == "PERMISSION_DENIED"
    assert topics_of(stub, "SCHEDULE_TOPIC_XXXX")["SCHEDULE_TOPIC_XXXX"].read_queues == 18


BAD: list[tuple[str, Any, str]] = [
    ("PutTopics", pb.PutTopicsRequest(), "names no topic"),
    ("PutTopics", pb.PutTopicsRequest(topics=[Topic(name="ok"), Topic(name="ok")]), "twice"),
    ("PutTopics", pb.PutTopicsRequest(topics=[Topic(name="ok"), Topic(name="not ok")]), "other characters"),
    ("PutTopics", pb.PutTopicsRequest(topics=[Topic(name="ok", read_queues=0)]), "1 to 1024"),
    ("PutTopics", pb.PutTopicsRequest(topics=[Topic(name="ok", perm=9)]), "0 to 7"),
    ("PutTopics", pb.PutTopicsRequest(topics=[Topic(name="ok", other_json="[")]), "no JSON"),
    ("PutTopics", pb.PutTopicsRequest(topics=[Topic(name="ok", attributes={"+a": "b"})]), "plain names"),
    ("DeleteTopics", pb.DeleteTopicsRequest(), "names no topic"),
    ("ListTopics", pb.ListTopicsRequest(limit=-1), "limit"),
    ("ListTopics", pb.ListTopicsRequest(names=["a", "a"]), "twice"),
    ("PutGroups", pb.PutGroupsRequest(groups=[Group(name="")]), "no name"),
    ("PutGroups", pb.PutGroupsRequest(groups=[Group(name="ok", retry_queues=-1)]), "retry_queues"),
    ("DeleteGroups", pb.DeleteGroupsRequest(), "names no group"),
    ("ListGroups", pb.ListGroupsRequest(limit=1 << 30), "limit"),
]


@pytest.mark.parametrize(("method", "request_", "words"), BAD)
def test_what_breaks_a_rule(
    service: MetasyncProcess, stub: MetadataStub, method: str, request_: Any, words: str
) -> None:
    before = service.whole(pb.TOPICS) + service.whole(pb.SUBSCRIPTION_GROUPS)
    with pytest.raises(grpc.RpcError) as raised:
        getattr(stub, method)(request_)
    assert statuses(raised.value)[0] == "INVALID_ARGUMENT"
    assert words in (cast(Any, raised.value).details() or "")
    assert service.whole(pb.TOPICS) + service.whole(pb.SUBSCRIPTION_GROUPS) == before


@pytest.mark.slow
def test_what_is_answered_is_on_disk(own: MetasyncProcess) -> None:
    import signal

    with own.stub() as stub:
        put(stub, Topic(name="kept", attributes={"message.type": "DELAY"}))
        stub.PutGroups(pb.PutGroupsRequest(groups=[Group(name="kept")]))
        version = stub.DeleteTopics(pb.DeleteTopicsRequest(names=["kept"])).version
        put(stub, Topic(name="kept", perm=2))
    own.restart(signal.SIGKILL)
    with own.stub() as stub:
        found = stub.ListTopics(pb.ListTopicsRequest())
        assert found.topics[0].perm == 2
        assert found.version.counter == version.counter + 1
        assert own.names(pb.SUBSCRIPTION_GROUPS) == {"kept"}
