"""Message types: which a topic takes, and which a message is of.

RocketMQ: the topic attribute `message.type`. A topic without it was made by a first send, by any protocol, and takes
messages of each type that older clients know.
"""

from collections.abc import Mapping
from typing import Any

from tandemmq.common.topic_names import GROUP_TOPICS
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.fronts.rocketmq5.statuses import ProtocolRefusal

ATTRIBUTE = "message.type"

MIXED = (pb.NORMAL, pb.FIFO, pb.DELAY, pb.TRANSACTION)

_TYPES: Mapping[str, tuple[pb.MessageType.ValueType, ...]] = {
    "NORMAL": (pb.NORMAL,),
    "FIFO": (pb.FIFO,),
    "DELAY": (pb.DELAY,),
    "TRANSACTION": (pb.TRANSACTION,),
    "PRIORITY": (pb.PRIORITY,),
    "LITE": (pb.LITE,),
    "MIXED": MIXED,
    "UNSPECIFIED": MIXED,
}


def accepted(topic: TopicConfig) -> tuple[pb.MessageType.ValueType, ...]:
    """The types that a topic takes, at least one."""
    if topic.name.startswith(GROUP_TOPICS):
        return (pb.NORMAL,)
    attributes: Any = topic.other.get("attributes")
    given = attributes.get(ATTRIBUTE) if isinstance(attributes, Mapping) else None
    return _TYPES.get(str(given).upper(), MIXED) if given else MIXED


def check_type(topic: TopicConfig, given: pb.MessageType.ValueType) -> None:
    """Whether a topic takes messages of a type. Raises ProtocolRefusal."""
    taken = accepted(topic)
    if given in taken or (given == pb.MESSAGE_TYPE_UNSPECIFIED and pb.NORMAL in taken):
        return
    if given == pb.PRIORITY and taken == MIXED:  # not in routes: older clients do not know it
        return
    told = ", ".join(pb.MessageType.Name(one) for one in taken)
    name = pb.MessageType.Name(given) if given in pb.MessageType.values() else str(given)
    raise ProtocolRefusal(
        pb.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
        f"The message is of type {name}; topic {topic.name} takes {told}.",
        remedy="Send to a topic of that type.",
    )
