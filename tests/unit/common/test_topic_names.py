"""Whose a topic or group is, by its name."""

import pytest

from tandemmq.common import topic_names
from tandemmq.common.topic_names import is_name, is_system_group, is_system_topic, longest_topic


@pytest.mark.parametrize(
    "name",
    [
        "TBW102", "RMQ_SYS_TRACE_TOPIC", "SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer", "rmq_sys_REVIVE_LOG_c",
        "TANDEM_SYS_DELIVERY",
    ],
)  # fmt: skip
def test_the_brokers_topics(name: str) -> None:
    assert is_system_topic(name)


@pytest.mark.parametrize("name", ["orders", "%RETRY%group", "%DLQ%group", "tbw102", "RMQ_SYS", "c_REPLY_TOPIC", ""])
def test_topics_of_people(name: str) -> None:
    assert not is_system_topic(name)


def test_nobody_but_the_broker_writes_what_it_reads_back() -> None:
    """RocketMQ 5.3, ``NOT_ALLOWED_SEND_TOPIC_SET``, and what this broker keeps for itself."""
    rocketmq = {
        "SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC",
        "TRANS_CHECK_MAX_TIME_TOPIC", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT",
    }  # fmt: skip
    assert {"TANDEM_SYS_DELIVERY", "rmq_sys_wheel_timer"} | rocketmq == topic_names.BROKER_WRITES


def test_the_brokers_groups() -> None:
    assert is_system_group("CID_RMQ_SYS_TRANS")
    assert is_system_group("TANDEM_SYS_DELIVERY")
    assert not is_system_group("CID_people")


def test_names() -> None:
    assert is_name("%DLQ%a-b_c|9")
    assert not any(map(is_name, ["", "a b", "ä", "a\n", "a/b"]))
    assert (longest_topic("orders"), longest_topic("%RETRY%g"), longest_topic("%DLQ%g")) == (127, 255, 255)
