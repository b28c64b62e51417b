"""Names of topics and groups: what may be one, which belong to the broker, and which to a group.

RocketMQ: ``TopicValidator``, ``MixAll``. The sets are those of 5.3, and what this broker adds.
"""

import re

RETRY = "%RETRY%"
DEAD_LETTER = "%DLQ%"
GROUP_TOPICS = (RETRY, DEAD_LETTER)
"""Prefixes of topics that belong to a consumer group: where it puts what it could not consume."""

LONGEST_TOPIC = 127
LONGEST_GROUP_TOPIC = 255
"""A topic that belongs to a group may be longer."""

SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
"""Where messages wait for the time of their delay level; units there hold that time instead of a tags code."""

DELIVERY = "TANDEM_SYS_DELIVERY"
"""Where this broker keeps what groups have received and acknowledged."""

HALF = "RMQ_SYS_TRANS_HALF_TOPIC"
HALF_ENDS = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
DISCARDED_HALVES = "TRANS_CHECK_MAX_TIME_TOPIC"
"""Half messages; which of them have ended; those whose producer never said."""

AUTO_CREATED = "TBW102"
"""Whoever has this topic creates others (RocketMQ: ``AUTO_CREATE_TOPIC_KEY_TOPIC``)."""

TRACES = "RMQ_SYS_TRACE_TOPIC"
"""Where clients write what they did with each message, if their traces are switched on."""

ROCKETMQ_SYSTEM_TOPICS = frozenset(
    {
        AUTO_CREATED,
        SCHEDULE_TOPIC,
        "BenchmarkTest",
        HALF,
        TRACES,
        HALF_ENDS,
        DISCARDED_HALVES,
        "SELF_TEST_TOPIC",
        "OFFSET_MOVED_EVENT",
    }
)
"""RocketMQ's own (``SYSTEM_TOPIC_SET``): brokers make them, clients neither make nor delete them."""

SYSTEM_TOPICS = ROCKETMQ_SYSTEM_TOPICS | {DELIVERY}

BROKER_WRITES = (SYSTEM_TOPICS | {"rmq_sys_wheel_timer"}) - {AUTO_CREATED, "BenchmarkTest", TRACES}
"""Topics that only the broker writes to (``NOT_ALLOWED_SEND_TOPIC_SET``)."""

SYSTEM_PREFIX = "rmq_sys_"
_SYSTEM_GROUPS = ("CID_RMQ_SYS_", "TANDEM_SYS_")
PREDEFINED_GROUPS = frozenset(
    {
        "DEFAULT_CONSUMER",
        "DEFAULT_PRODUCER",
        "TOOLS_CONSUMER",
        "SCHEDULE_CONSUMER",
        "FILTERSRV_CONSUMER",
        "__MONITOR_CONSUMER",
        "CLIENT_INNER_PRODUCER",
        "SELF_TEST_P_GROUP",
        "SELF_TEST_C_GROUP",
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_OWNER",
        "CID_ONSAPI_PULL",
        "CID_RMQ_SYS_TRANS",
    }
)
"""Groups of RocketMQ's own programs (``PREDEFINE_GROUP_SET``), which RocketMQ 5 clients may not use."""

_name = re.compile(r"[%|a-zA-Z0-9_-]+").fullmatch


def is_name(text: str) -> bool:
    """Whether it has no other characters than a topic or a group may have, and at least one."""
    return _name(text) is not None


def longest_topic(name: str) -> int:
    """How many characters a topic of this name may have."""
    return LONGEST_GROUP_TOPIC if name.startswith(GROUP_TOPICS) else LONGEST_TOPIC


def is_system_topic(name: str) -> bool:
    """Whether only brokers make, change and delete it (``isSystemTopic``)."""
    return name in SYSTEM_TOPICS or name.startswith(SYSTEM_PREFIX)


def is_system_group(name: str) -> bool:
    """Whether the broker itself consumes as this group (``isSysConsumerGroup``): it has positions and no entry."""
    return name.startswith(_SYSTEM_GROUPS)


def dead_letter_topic(group: str) -> str:
    """Where messages go that a group could not consume."""
    return DEAD_LETTER + group
