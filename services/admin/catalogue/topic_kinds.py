"""What a topic is, by its name."""

from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.topic_names import DEAD_LETTER, RETRY, is_system_topic


def topic_kind(name: str, own: frozenset[str] = frozenset()) -> "admin_pb2.TopicKind.ValueType":
    """Its kind. `own`: names of brokers and clusters, which every broker has topics of."""
    if name.startswith(RETRY):
        return admin_pb2.RETRY
    if name.startswith(DEAD_LETTER):
        return admin_pb2.DEAD_LETTER
    if is_system_topic(name) or name.startswith("RMQ_SYS_") or name in own or name.endswith("_REPLY_TOPIC"):
        return admin_pb2.SYSTEM
    return admin_pb2.NORMAL
