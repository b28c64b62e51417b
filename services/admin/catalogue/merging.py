"""Changing a part of a topic's or group's configuration: metasync knows only whole ones."""

import json
from collections.abc import Iterable
from typing import Any, TypeVar

from google.protobuf.descriptor import FieldDescriptor

from tandemmq.admin.errors import AlreadyExists, BadAdminRequest, NotFound
from tandemmq.admin.v1 import admin_pb2
from tandemmq.metadata.v1 import metadata_pb2

Config = TypeVar("Config", metadata_pb2.TopicConfig, metadata_pb2.SubscriptionGroupConfig)

_NAME, _ATTRIBUTES, _OTHER = "name", "attributes", "other_json"


def check_put(request: admin_pb2.PutTopicRequest | admin_pb2.PutGroupRequest) -> None:
    """Whether its `fields` name fields that can be changed, and its options go together. Raises BadAdminRequest."""
    known = [field.name for field in request.config.DESCRIPTOR.fields if field.name != _NAME]
    for name in request.fields:
        if name not in known:
            raise BadAdminRequest(f"`fields` has {name!r}: known are {', '.join(known)}")
    if request.create_only and request.update_only:
        raise BadAdminRequest("create_only and update_only exclude each other")


def check_presence(
    what: str, request: admin_pb2.PutTopicRequest | admin_pb2.PutGroupRequest, brokers: Iterable[tuple[str, bool]]
) -> None:
    """Whether `create_only` and `update_only` fit what is there: (broker, whether it has it) of every broker.

    `what`: `topic orders`, for errors. Raises AlreadyExists, NotFound.
    """
    brokers = list(brokers)
    having = [broker for broker, has in brokers if has]
    lacking = [broker for broker, has in brokers if not has]
    if request.create_only and having:
        raise AlreadyExists(f"{what} exists on {', '.join(having)}", remedy=to_change(what))
    if request.update_only and lacking:
        raise NotFound(f"there is no {what} on {', '.join(lacking)}")


def to_change(what: str) -> str:
    """What to do where `what`, `topic orders`, is to be made and is there."""
    return f"`tandem {what.partition(' ')[0]} update` changes it"


def merged(before: Config | None, change: Config, fields: Iterable[str] = ()) -> Config:
    """What is to be put: `before` with what `change` sets, and with `fields` of it even where they hold nothing.

    Attributes are changed one by one, and one with an empty value goes; all of them are replaced if `fields` says
    `attributes`. What `other_json` says is changed by name, or as a whole. Without `before` the defaults stand, which
    is what metasync does with what is not set.
    """
    result = type(change)()
    if before is not None:
        result.CopyFrom(before)
    result.name = change.name
    fields = set(fields)
    for field in change.DESCRIPTOR.fields:
        if field.name not in (_NAME, _ATTRIBUTES) and (field.name in fields or _given(change, field)):
            _take(result, change, field)
    if before is not None and _OTHER not in fields and change.other_json:
        result.other_json = _joined(before.other_json, change.other_json)
    if _ATTRIBUTES in fields:
        result.attributes.clear()
    for key, value in change.attributes.items():
        if value:
            result.attributes[key] = value
        else:
            result.attributes.pop(key, None)
    return result


def _joined(before: str, change: str) -> str:
    """Both JSON objects as one, in which `change` counts. What is no object is for metasync to refuse."""
    try:
        changed = json.loads(change)
    except (ValueError, RecursionError):
        return change
    return json.dumps(json.loads(before or "{}") | changed, sort_keys=True) if isinstance(changed, dict) else change


def _given(change: Any, field: FieldDescriptor) -> bool:
    return bool(change.HasField(field.name) if field.has_presence else getattr(change, field.name))


def _take(result: Any, change: Any, field: FieldDescriptor) -> None:
    """A field that says its presence and is not set goes back to its default."""
    if field.has_presence and not change.HasField(field.name):
        result.ClearField(field.name)
    else:
        setattr(result, field.name, getattr(change, field.name))
