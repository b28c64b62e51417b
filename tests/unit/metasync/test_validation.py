"""What clients may ask for, and what they are told when they may not."""

from collections.abc import Callable

import pytest

from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metasync import validation as valid
from tandemmq.metasync.errors import BadTableRequest, SystemTopic
from tandemmq.metasync.translate import group_entry, topic_entry

GOOD_NAMES = ["a", "%RETRY%g", "A-b_c|9%", "x" * 127, "%DLQ%" + "x" * 250]
BAD_NAMES = ["", "a b", "a@b", "ü", "x" * 128, "%RETRY%" + "x" * 249, "a\n", "a.b"]


def allowed(check: Callable[[str], None], name: str) -> bool:
    try:
        check(name)
    except BadTableRequest:
        return False
    return True


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_good_names(name: str) -> None:
    assert allowed(valid.check_topic_name, name)
    assert allowed(valid.check_group_name, name)


@pytest.mark.parametrize("name", BAD_NAMES)
def test_bad_topic_names(name: str) -> None:
    assert not allowed(valid.check_topic_name, name)


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        (pb.TopicConfig(name="T", read_queues=0), "read_queues of T is 0: 1 to 1024"),
        (pb.TopicConfig(name="T", write_queues=1025), "write_queues of T is 1025"),
        (pb.TopicConfig(name="T", perm=8), "perm of T is 8: 0 to 7"),
        (pb.TopicConfig(name="T", perm=-1), "perm"),
        (pb.TopicConfig(name="T", sys_flag=4), "sys_flag"),
        (pb.TopicConfig(name="T", attributes={"+message.type": "FIFO"}), "attribute '\\+message.type'"),
        (pb.TopicConfig(name="T", attributes={"": "x"}), "attribute"),
        (pb.TopicConfig(name="T", attributes={"message.type": "fifo"}), "allowed is .*FIFO"),
        (pb.TopicConfig(name="T", attributes={"cleanup.policy": "NEVER"}), "COMPACTION, DELETE"),
        (pb.TopicConfig(name="T", attributes={"reserve.time": "-2"}), "-1 or more"),
        (pb.TopicConfig(name="T", attributes={"a": "x" * 40_000}), "characters"),
        (pb.TopicConfig(name="T", other_json="{"), "no JSON"),
        (pb.TopicConfig(name="T", other_json="[]"), "no JSON object"),
        (pb.TopicConfig(name="T", other_json='{"a":NaN}'), "no JSON"),
        (pb.TopicConfig(name="T", other_json='{"a":"\\ud800"}'), "no JSON"),
        (pb.TopicConfig(name="T", other_json='{"perm":6}'), "perm, which has a field of its own"),
        (pb.TopicConfig(name="T", other_json='"' + "x" * 70_000), "at most"),
    ],
)
def test_bad_topics(topic: pb.TopicConfig, words: str) -> None:
    with pytest.raises(BadTableRequest, match=words):
        topic_entry(topic, None)


@pytest.mark.parametrize(
    ("group", "words"),
    [
        (pb.SubscriptionGroupConfig(name="G", retry_queues=-1), "retry_queues of G is -1"),
        (pb.SubscriptionGroupConfig(name="G", retry_max_times=-2), "retry_max_times"),
        (pb.SubscriptionGroupConfig(name="G", broker_id=-1), "broker_id"),
        (pb.SubscriptionGroupConfig(name="x" * 256), "at most 255"),
        (pb.SubscriptionGroupConfig(name="G", other_json='{"attributes":{}}'), "field of its own"),
        (pb.SubscriptionGroupConfig(name="G", attributes={"ackDurability": "x"}), "allowed is PAGE_CACHE, DISK"),
    ],
)
def test_bad_groups(group: pb.SubscriptionGroupConfig, words: str) -> None:
    with pytest.raises(BadTableRequest, match=words):
        group_entry(group, None)


@pytest.mark.parametrize("name", ["TBW102", "SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer", "RMQ_SYS_TRANS_HALF_TOPIC"])
def test_system_topics(name: str) -> None:
    with pytest.raises(SystemTopic, match="delete"):
        valid.check_not_system(name, "delete")


def test_names_of_a_request() -> None:
    checks: list[tuple[list[str], str]] = [([], "no topic"), (["a", "a"], "twice"), (["a"] * 10_001, "at most")]
    check: Callable[[str, list[str]], None] = valid.check_names
    for names, words in checks:
        with pytest.raises(BadTableRequest, match=words):
            check("topic", names)
