"""Topics and groups as messages of metadata.proto, and back."""

import json
from collections.abc import Mapping
from typing import Any

from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.members.groups import GroupConfig

_FILTERS = dict(pb.TopicFilterType.items())


def read_topic(topic: pb.TopicConfig) -> TopicConfig:
    """A topic of its message, with RocketMQ's defaults for what is left out. Raises ValueError."""
    entry = {
        "topicName": topic.name,
        "readQueueNums": topic.read_queues if topic.HasField("read_queues") else 16,
        "writeQueueNums": topic.write_queues if topic.HasField("write_queues") else 16,
        "perm": topic.perm if topic.HasField("perm") else 6,
        "order": topic.order,
        "topicFilterType": pb.TopicFilterType.Name(topic.filter_type),
        "topicSysFlag": topic.sys_flag,
        "attributes": dict(topic.attributes),
    }
    return TopicConfig.from_json(topic.name, {**entry, **_other(topic.name, topic.other_json)})


def topic_message(topic: TopicConfig) -> pb.TopicConfig:
    """A topic that the store has created, or that an operator has it change. What has no place in it is left out."""
    entry = topic.to_json()
    message = pb.TopicConfig(
        name=topic.name,
        read_queues=topic.read_queues,
        write_queues=topic.write_queues,
        perm=topic.perm,
        order=entry.get("order") is True,
        attributes=_texts(entry.get("attributes")),
    )
    if type(sys_flag := entry.get("topicSysFlag")) is int and 0 <= sys_flag < 1 << 31:
        message.sys_flag = sys_flag
    if entry.get("topicFilterType") in _FILTERS:
        message.filter_type = _FILTERS[entry["topicFilterType"]]
    return message


_GROUP_FIELDS = {
    "consume_enable": "consumeEnable",
    "consume_from_min_enable": "consumeFromMinEnable",
    "consume_broadcast_enable": "consumeBroadcastEnable",
    "consume_message_orderly": "consumeMessageOrderly",
    "retry_queues": "retryQueueNums",
    "retry_max_times": "retryMaxTimes",
    "broker_id": "brokerId",
    "which_broker_when_consume_slowly": "whichBrokerWhenConsumeSlowly",
    "notify_consumer_ids_changed_enable": "notifyConsumerIdsChangedEnable",
    "sys_flag": "groupSysFlag",
    "consume_timeout_minutes": "consumeTimeoutMinute",
}
"""Field of the contract's SubscriptionGroupConfig -> name in the file."""


def read_group(group: pb.SubscriptionGroupConfig) -> GroupConfig:
    """A group of its message, likewise. Raises ValueError."""
    fields = group.DESCRIPTOR.fields_by_name
    given = {
        key: getattr(group, name)
        for name, key in _GROUP_FIELDS.items()
        if not fields[name].has_presence or group.HasField(name)  # type: ignore[arg-type]  # a name of the table above
    }
    entry = {"groupName": group.name, "attributes": dict(group.attributes), **given}
    return GroupConfig.from_json(group.name, {**entry, **_other(group.name, group.other_json)})


def group_message(group: GroupConfig) -> pb.SubscriptionGroupConfig:
    """A group that the store has created."""
    entry = group.to_json()
    fields = {name: entry[key] for name, key in _GROUP_FIELDS.items() if key in entry}
    known = {*_GROUP_FIELDS.values(), "groupName", "attributes"}
    other = {key: value for key, value in entry.items() if key not in known}
    return pb.SubscriptionGroupConfig(
        name=group.name, attributes=group.attributes, other_json=json.dumps(other) if other else "", **fields
    )


def _texts(value: Any) -> Mapping[str, str]:
    return value if isinstance(value, dict) and all(isinstance(text, str) for text in value.values()) else {}


def _other(name: str, text: str) -> dict[str, Any]:
    """The fields that have no place in a message. Raises ValueError."""
    other = json.loads(text) if text else {}
    if not isinstance(other, dict):
        raise ValueError(f"the other fields of {name} are no object")
    return other
