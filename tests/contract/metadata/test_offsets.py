"""Consumer offsets and delay offsets."""

import signal
from typing import Any, cast

import grpc
import pytest

from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tests.contract.refusals import statuses
from tests.metasync_process import MetasyncProcess, wait_until

Commit = pb.OffsetCommit


@pytest.fixture(autouse=True)
def _topics(service: MetasyncProcess) -> None:
    topics = [pb.TopicConfig(name="T"), pb.TopicConfig(name="U")]
    with service.stub() as stub:
        stub.PutTopics(pb.PutTopicsRequest(topics=topics, create_only=True))


def commit(stub: MetadataStub, *commits: Commit, reset: bool = False) -> list[tuple[str, int]]:
    answer = stub.CommitOffsets(pb.CommitOffsetsRequest(commits=commits, reset=reset))
    return [(pb.CommitStatus.Name(result.status), result.offset) for result in answer.results]


def query(stub: MetadataStub, *queries: pb.OffsetQuery) -> list[tuple[str, str, dict[int, int]]]:
    answer = stub.QueryOffsets(pb.QueryOffsetsRequest(queries=queries))
    return [(one.topic, one.group, dict(one.offsets)) for one in answer.offsets]


def of(group: str, topic: str = "", *queues: int) -> pb.OffsetQuery:
    return pb.OffsetQuery(group=group, topic=topic, queue_ids=queues)


def one(group: str, offset: int, topic: str = "T", queue: int = 0) -> Commit:
    return Commit(topic=topic, group=group, queue_id=queue, offset=offset)


def test_commits_are_answered_one_by_one(stub: MetadataStub) -> None:
    assert commit(stub, one("g1", 5), one("g1", 7, queue=3), one("g1", 2, "U"), one("g1", 1, "nowhere")) == [
        ("COMMITTED", 5),
        ("COMMITTED", 7),
        ("COMMITTED", 2),
        ("UNKNOWN_TOPIC", -1),
    ]
    assert query(stub, of("g1")) == [("T", "g1", {0: 5, 3: 7}), ("U", "g1", {0: 2})]
    assert query(stub, of("g1", "T", 3, 9), of("g1", "U"), of("nobody")) == [("T", "g1", {3: 7}), ("U", "g1", {0: 2})]


def test_an_offset_goes_back_only_when_told(stub: MetadataStub) -> None:
    commit(stub, one("g2", 10))
    assert commit(stub, one("g2", 9), one("g2", 10)) == [("KEPT_GREATER", 10), ("COMMITTED", 10)]
    assert commit(stub, one("g2", 3), reset=True) == [("COMMITTED", 3)]
    assert query(stub, of("g2")) == [("T", "g2", {0: 3})]
    answer = stub.QueryOffsets(pb.QueryOffsetsRequest(queries=[of("g2")]))
    assert dict(answer.offsets[0].resets) == {0: 1}


def test_a_commit_that_knows_of_other_resets_is_outdated(stub: MetadataStub) -> None:
    commit(stub, one("g3", 10))
    commit(stub, one("g3", 2), reset=True)
    late = one("g3", 50)
    late.resets = 0
    assert commit(stub, late) == [("OUTDATED", 2)]
    late.resets = 1
    assert commit(stub, late) == [("COMMITTED", 50)]


def test_the_first_commit_creates_the_group(service: MetasyncProcess, stub: MetadataStub) -> None:
    assert commit(stub, one("brand-new", 1, "nowhere")) == [("UNKNOWN_TOPIC", -1)]
    assert "brand-new" not in service.names(pb.SUBSCRIPTION_GROUPS)
    commit(stub, one("brand-new", 1))
    assert "brand-new" in service.names(pb.SUBSCRIPTION_GROUPS)
    handed = one("from-a-slave", 1)
    handed.resets = 0
    assert commit(stub, handed) == [("UNKNOWN_GROUP", -1)]
    brokers = one("CID_RMQ_SYS_REVIVE_GROUP", 7)
    brokers.resets = 0
    assert commit(stub, brokers) == [("COMMITTED", 7)]
    assert brokers.group not in service.names(pb.SUBSCRIPTION_GROUPS), "it has no entry"


def test_without_auto_creation_an_unknown_group_is_told(own: MetasyncProcess) -> None:
    own.settings["auto_create_subscription_group"] = "false"
    own.restart()
    with own.stub() as stub:
        stub.PutTopics(pb.PutTopicsRequest(topics=[pb.TopicConfig(name="T")]))
        assert commit(stub, one("g", 1)) == [("UNKNOWN_GROUP", -1)]


def test_deleting_offsets(stub: MetadataStub) -> None:
    commit(stub, one("g4", 1), one("g4", 2, "U"))
    answer = stub.DeleteOffsets(pb.DeleteOffsetsRequest(group="g4", topic="T"))
    assert list(answer.topics) == ["T"]
    assert query(stub, of("g4")) == [("U", "g4", {0: 2})]
    assert list(stub.DeleteOffsets(pb.DeleteOffsetsRequest(group="g4")).topics) == ["U"]
    assert query(stub, of("g4")) == []


def test_offsets_of_deleted_topics_and_groups_go(stub: MetadataStub) -> None:
    stub.PutTopics(pb.PutTopicsRequest(topics=[pb.TopicConfig(name="short-lived")]))
    commit(stub, one("g5", 9, "short-lived"), one("g5", 8))
    stub.DeleteTopics(pb.DeleteTopicsRequest(names=["short-lived"]))
    assert query(stub, of("g5")) == [("T", "g5", {0: 8})]
    stub.DeleteGroups(pb.DeleteGroupsRequest(names=["g5"], keep_offsets=True))
    assert query(stub, of("g5")) == [("T", "g5", {0: 8})]
    commit(stub, one("g5", 9))
    stub.DeleteGroups(pb.DeleteGroupsRequest(names=["g5"]))
    assert query(stub, of("g5")) == []


def test_delay_offsets(own: MetasyncProcess) -> None:
    def put(level: int, offset: int, reset: bool = False) -> dict[int, int]:
        request = pb.PutDelayOffsetsRequest(offsets=[pb.DelayOffset(level=level, offset=offset)], reset=reset)
        return {one.level: one.offset for one in stub.PutDelayOffsets(request).offsets}

    with own.stub() as stub:
        assert put(3, 9) == {3: 9}
        assert put(3, 5) == {3: 9}
        assert put(18, 1) == {18: 1}
        assert put(3, 5, reset=True) == {3: 5}
        found = stub.GetDelayOffsets(pb.GetDelayOffsetsRequest())
        assert [(one.level, one.offset) for one in found.offsets] == [(3, 5), (18, 1)]
        assert found.version.counter == 3


BAD: list[tuple[str, Any, str]] = [
    ("CommitOffsets", pb.CommitOffsetsRequest(), "0 commits"),
    ("CommitOffsets", pb.CommitOffsetsRequest(commits=[one("g", 5), one("g", -1)]), "0 or more"),
    ("CommitOffsets", pb.CommitOffsetsRequest(commits=[one("g", 5, queue=-1)]), "queue_id"),
    ("CommitOffsets", pb.CommitOffsetsRequest(commits=[one("g g", 5)]), "other characters"),
    ("CommitOffsets", pb.CommitOffsetsRequest(commits=[one("g", 5, "")]), "topic has no name"),
    ("CommitOffsets", pb.CommitOffsetsRequest(commits=[one("g", 5)] * 10_001), "at most|10,000"),
    ("QueryOffsets", pb.QueryOffsetsRequest(), "0 queries"),
    ("QueryOffsets", pb.QueryOffsetsRequest(queries=[of("")]), "group has no name"),
    ("QueryOffsets", pb.QueryOffsetsRequest(queries=[of("g", "a@b")]), "other characters"),
    ("DeleteOffsets", pb.DeleteOffsetsRequest(), "group has no name"),
    ("PutDelayOffsets", pb.PutDelayOffsetsRequest(), "no level"),
    ("PutDelayOffsets", pb.PutDelayOffsetsRequest(offsets=[pb.DelayOffset(level=0)]), "level is 0"),
    ("PutDelayOffsets", pb.PutDelayOffsetsRequest(offsets=[pb.DelayOffset(level=1, offset=-1)]), "0 or more"),
    ("PutDelayOffsets", pb.PutDelayOffsetsRequest(offsets=[pb.DelayOffset(level=1)] * 2), "twice"),
]


@pytest.mark.parametrize(("method", "request_", "words"), BAD)
def test_what_breaks_a_rule(
    service: MetasyncProcess, stub: MetadataStub, method: str, request_: Any, words: str
) -> None:
    tables = (pb.CONSUMER_OFFSETS, pb.DELAY_OFFSETS, pb.SUBSCRIPTION_GROUPS)
    before = [service.whole(table) for table in tables]
    with pytest.raises(grpc.RpcError) as raised:
        getattr(stub, method)(request_)
    assert statuses(raised.value)[0] == "INVALID_ARGUMENT"
    details = cast(Any, raised.value).details() or ""
    assert any(word in details for word in words.split("|"))
    assert [service.whole(table) for table in tables] == before


@pytest.mark.slow
def test_offsets_are_written_in_time_and_at_the_end(own: MetasyncProcess) -> None:
    with own.stub() as stub:
        stub.PutTopics(pb.PutTopicsRequest(topics=[pb.TopicConfig(name="T")]))
        commit(stub, one("g", 1))
        wait_until(lambda: not own.table_status(pb.CONSUMER_OFFSETS).unsaved, "flushed", 60)
    own.settings["flush_consumer_offset_interval"] = 600_000
    own.restart(signal.SIGKILL)
    with own.stub() as stub:
        assert query(stub, of("g")) == [("T", "g", {0: 1})]
        commit(stub, one("g", 2))
        assert own.table_status(pb.CONSUMER_OFFSETS).unsaved
    own.restart(signal.SIGTERM)
    with own.stub() as stub:
        assert query(stub, of("g")) == [("T", "g", {0: 2})]
        commit(stub, one("g", 1), reset=True)
        assert not own.table_status(pb.CONSUMER_OFFSETS).unsaved, "a reset is durable at once"
