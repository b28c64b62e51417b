"""What a topic is, by its name."""

from tandemmq.admin.v1 import admin_pb2

RETRY = "%RETRY%"
DEAD_LETTER = "%DLQ%"

_SYSTEM = frozenset(
    {
        "TBW102", "SCHEDULE_TOPIC_XXXX", "BenchmarkTest", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRACE_TOPIC",
        "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT",
    }
)  # fmt: skip
"""RocketMQ: `TopicValidator.SYSTEM_TOPIC_SET`."""

_SYSTEM_PREFIXES = ("rmq_sys_", "RMQ_SYS_")


def topic_kind(name: str, own: frozenset[str] = frozenset()) -> "admin_pb2.TopicKind.ValueType":
    """Its kind. `own`: names of brokers and clusters, which every broker has topics of."""
    if name.startswith(RETRY):
        return admin_pb2.RETRY
    if name.startswith(DEAD_LETTER):
        return admin_pb2.DEAD_LETTER
    if name in _SYSTEM or name.startswith(_SYSTEM_PREFIXES) or name in own or name.endswith("_REPLY_TOPIC"):
        return admin_pb2.SYSTEM
    return admin_pb2.NORMAL


def dead_letter_topic(group: str) -> str:
    """Where messages go that a group could not consume."""
    return DEAD_LETTER + group
