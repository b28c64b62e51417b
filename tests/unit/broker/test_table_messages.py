"""Topics as messages of metadata.proto, and back."""

from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.table_messages import read_topic, topic_message


def test_what_an_operator_says_of_a_topic_reaches_the_metadata_service() -> None:
    entry = {
        "topicName": "T", "readQueueNums": 3, "writeQueueNums": 2, "perm": 4, "order": True, "topicSysFlag": 1,
        "topicFilterType": "MULTI_TAG", "attributes": {"reserve.time": "24"},
    }  # fmt: skip
    topic = TopicConfig.from_json("T", entry)
    assert read_topic(topic_message(topic)).to_json() == entry


def test_what_has_no_place_is_left_out() -> None:
    odd = {"order": "yes", "topicSysFlag": -1, "topicFilterType": "NEITHER", "attributes": {"a": 1}}
    message = topic_message(TopicConfig.from_json("T", {"readQueueNums": 1, "writeQueueNums": 1, "perm": 6, **odd}))
    assert (message.order, message.sys_flag, message.filter_type, dict(message.attributes)) == (False, 0, 0, {})
