"""Between the contract's messages and the tables' entries, which are the JSON objects of the files."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

from google.protobuf.message import Message

from tandemmq.common.attributes import group_attributes, topic_attributes
from tandemmq.metadata.transfers import BrokenTransfer, TablePages, TableTransfer
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metasync import validation as valid
from tandemmq.metasync.data_version import DataVersion
from tandemmq.metasync.offset_tables import GroupQueueOffsets, offsets_key, topic_and_group
from tandemmq.metasync.tables import Content, TableKind

PAGE_BYTES = 256 * 1024
"""A page is sent when it has so much; an entry is never split."""

_FILTERS = ("SINGLE_TAG", "MULTI_TAG")

_TOPIC_FIELDS: Mapping[str, tuple[str, Any]] = {
    "read_queues": ("readQueueNums", 16),
    "write_queues": ("writeQueueNums", 16),
    "perm": ("perm", 6),
    "order": ("order", False),
    "sys_flag": ("topicSysFlag", 0),
}
"""Field of TopicConfig -> name in the file, RocketMQ's default."""

_GROUP_FIELDS: Mapping[str, tuple[str, Any]] = {
    "consume_enable": ("consumeEnable", True),
    "consume_from_min_enable": ("consumeFromMinEnable", True),
    "consume_broadcast_enable": ("consumeBroadcastEnable", True),
    "consume_message_orderly": ("consumeMessageOrderly", False),
    "retry_queues": ("retryQueueNums", 1),
    "retry_max_times": ("retryMaxTimes", 16),
    "broker_id": ("brokerId", 0),
    "which_broker_when_consume_slowly": ("whichBrokerWhenConsumeSlowly", 1),
    "notify_consumer_ids_changed_enable": ("notifyConsumerIdsChangedEnable", True),
    "sys_flag": ("groupSysFlag", 0),
    "consume_timeout_minutes": ("consumeTimeoutMinute", 15),
}

_TOPIC_KEYS = {"topicName", "topicFilterType", "attributes"} | {key for key, _ in _TOPIC_FIELDS.values()}
_GROUP_KEYS = {"groupName", "attributes"} | {key for key, _ in _GROUP_FIELDS.values()}


# -- requests: checked -------------------------------------------------------------------------------------------------


def topic_entry(topic: pb.TopicConfig, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """The entry that a client asks for. Raises BadTableRequest."""
    valid.check_topic_name(topic.name)
    for name in ("read_queues", "write_queues"):
        if topic.HasField(name):
            valid.check_number(f"{name} of {topic.name}", getattr(topic, name), 1, valid.MOST_QUEUES)
    if topic.HasField("perm"):
        valid.check_number(f"perm of {topic.name}", topic.perm, 0, 7)
    valid.check_number(f"sys_flag of {topic.name}", topic.sys_flag, 0, 3)
    valid.check_number(f"filter_type of {topic.name}", topic.filter_type, 0, len(_FILTERS) - 1)
    valid.check_attributes(topic.name, topic.attributes, topic_attributes.allowed)
    return _topic_json(topic, _other(topic, before, _TOPIC_KEYS))


def group_entry(group: pb.SubscriptionGroupConfig, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """The entry that a client asks for. Raises BadTableRequest."""
    valid.check_group_name(group.name)
    if group.HasField("retry_queues"):
        valid.check_number(f"retry_queues of {group.name}", group.retry_queues, 0, valid.MOST_QUEUES)
    if group.HasField("retry_max_times"):
        valid.check_number(f"retry_max_times of {group.name}", group.retry_max_times, -1, (1 << 31) - 1)
    for name in ("broker_id", "which_broker_when_consume_slowly", "sys_flag", "consume_timeout_minutes"):
        valid.check_number(f"{name} of {group.name}", getattr(group, name), 0, (1 << 63) - 1)
    valid.check_attributes(group.name, group.attributes, group_attributes.allowed)
    return _group_json(group, _other(group, before, _GROUP_KEYS))


def _other(message: Any, before: Mapping[str, Any] | None, known: set[str]) -> dict[str, Any]:
    if message.HasField("other_json"):
        return valid.other_fields(message.name, message.other_json, known)
    return {key: value for key, value in (before or {}).items() if key not in known}


def _topic_json(topic: pb.TopicConfig, other: Mapping[str, Any]) -> dict[str, Any]:
    entry = {**other, "topicName": topic.name, "topicFilterType": _FILTERS[topic.filter_type]}
    return _fields_json(topic, entry, _TOPIC_FIELDS)


def _group_json(group: pb.SubscriptionGroupConfig, other: Mapping[str, Any]) -> dict[str, Any]:
    return _fields_json(group, {**other, "groupName": group.name}, _GROUP_FIELDS)


def _fields_json(message: Any, entry: dict[str, Any], fields: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    descriptors = message.DESCRIPTOR.fields_by_name
    for name, (key, default) in fields.items():
        given = not descriptors[name].has_presence or message.HasField(name)
        entry[key] = getattr(message, name) if given else default
    entry["attributes"] = dict(message.attributes)
    return entry


# -- entries as messages -----------------------------------------------------------------------------------------------


def topic_message(name: str, entry: Mapping[str, Any]) -> pb.TopicConfig:
    """A topic of the table. What has a place in the message but makes no sense there goes into other_json."""
    topic = pb.TopicConfig(name=name)
    odd = _fill(topic, entry, _TOPIC_FIELDS)
    filter_type = entry.get("topicFilterType", _FILTERS[0])
    if filter_type in _FILTERS:
        topic.filter_type = cast(Any, _FILTERS.index(filter_type))
    else:
        odd["topicFilterType"] = filter_type
    _fill_other(topic, name, "topicName", entry, odd, _TOPIC_KEYS)
    return topic


def group_message(name: str, entry: Mapping[str, Any]) -> pb.SubscriptionGroupConfig:
    """A group of the table; as `topic_message`."""
    group = pb.SubscriptionGroupConfig(name=name)
    odd = _fill(group, entry, _GROUP_FIELDS)
    _fill_other(group, name, "groupName", entry, odd, _GROUP_KEYS)
    return group


def _fill(message: Any, entry: Mapping[str, Any], fields: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
    """Set the fields; gives those values that do not fit."""
    odd = {}
    for name, (key, default) in fields.items():
        if key not in entry:
            setattr(message, name, default)
            continue
        value = entry[key]
        try:
            if type(value) is not type(default):
                raise ValueError(key)
            setattr(message, name, value)
        except ValueError:
            odd[key] = value
    return odd


def _fill_other(
    message: Any, name: str, name_key: str, entry: Mapping[str, Any], odd: dict[str, Any], known: set[str]
) -> None:
    attributes = entry.get("attributes", {})
    texts = isinstance(attributes, dict) and all(isinstance(value, str) for value in attributes.values())
    if texts:
        message.attributes.update(attributes)
    else:
        odd["attributes"] = attributes
    if entry.get(name_key, name) != name:
        odd[name_key] = entry[name_key]
    odd |= {key: value for key, value in entry.items() if key not in known}
    message.other_json = json.dumps(odd, ensure_ascii=False, sort_keys=True) if odd else ""


def offsets_message(key: str, entry: GroupQueueOffsets) -> pb.GroupOffsets:
    """A group's offsets in a topic."""
    topic, group = topic_and_group(key)
    return pb.GroupOffsets(topic=topic, group=group, offsets=entry.offsets, resets=entry.resets)


def version_message(version: DataVersion) -> pb.DataVersion:
    """A version."""
    return pb.DataVersion(state_version=version.state_version, timestamp=version.timestamp, counter=version.counter)


def version_of(message: pb.DataVersion) -> DataVersion:
    """A version."""
    return DataVersion(message.state_version, message.timestamp, message.counter)


# -- transfers ---------------------------------------------------------------------------------------------------------

_FIELDS: Mapping[TableKind, tuple[str, Callable[[str, Any], Message]]] = {
    TableKind.TOPICS: ("topics", topic_message),
    TableKind.SUBSCRIPTION_GROUPS: ("groups", group_message),
    TableKind.CONSUMER_OFFSETS: ("consumer_offsets", offsets_message),
    TableKind.DELAY_OFFSETS: ("delay_offsets", lambda key, entry: pb.DelayOffset(level=int(key), offset=entry)),
}


def pages(kind: TableKind, content: Content, keys: Iterable[str] | None = None) -> Iterator[pb.TablePage]:
    """A transfer: the whole table, or the entries of `keys`, in pages of about PAGE_BYTES."""
    whole = keys is None
    wanted = sorted(content.entries if keys is None else keys)
    field, message_of = _FIELDS[kind]
    table, version = cast(Any, int(kind)), version_message(content.version)
    page, size = pb.TablePage(table=table, version=version, whole=whole), 0
    for key in wanted:
        entry = content.entries.get(key)
        if entry is None:
            page.deleted.append(key)
            added = len(key) + 4
        else:
            message = message_of(key, entry)
            getattr(page, field).append(message)
            added = message.ByteSize() + 4
        size += added
        if size >= PAGE_BYTES:
            yield page
            page, size = pb.TablePage(table=table, version=version, whole=whole), 0
    page.last, page.total = True, len(wanted)
    if whole and content.other:
        page.other_json = json.dumps(content.other, ensure_ascii=False, sort_keys=True)
    yield page


def table_pages(kind: TableKind) -> TablePages:
    """Takes the pages of one whole table; `content_of` says what came."""
    return TablePages({int(kind): _page_entries})


def content_of(transfer: TableTransfer) -> Content:
    """A whole table as the master has it. Raises BrokenTransfer."""
    if not transfer.whole:
        raise BrokenTransfer("Changes came where a whole table was asked for.")
    try:
        other = json.loads(transfer.other_json or "{}")
    except (ValueError, RecursionError):
        other = None
    if not isinstance(other, dict):
        raise BrokenTransfer("What the table has beside its entries makes no sense.")
    return Content(version_of(transfer.version), transfer.entries, other)


def _page_entries(page: pb.TablePage) -> Iterator[tuple[str, Any]]:
    for topic in page.topics:
        yield topic.name, _whole_json(topic, _topic_json)
    for group in page.groups:
        yield group.name, _whole_json(group, _group_json)
    for one in page.consumer_offsets:
        yield offsets_key(one.topic, one.group), GroupQueueOffsets(dict(one.offsets), dict(one.resets))
    for level in page.delay_offsets:
        yield str(level.level), level.offset


def _whole_json(message: Any, make: Callable[[Any, Mapping[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """The entry as the master has it: other_json wins, since it holds what the fields could not. Raises ValueError."""
    other = json.loads(message.other_json) if message.other_json else {}
    if not isinstance(other, dict):
        raise ValueError("other_json is no object")
    return {**make(message, {}), **other}
