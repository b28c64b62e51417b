"""Changes of attributes of a topic or group, as `updateTopic -a` writes them: ``+reserve.time=24,-message.type``.

What RocketMQ refuses is refused in its words (``AttributeParser``, ``AttributeUtil``).
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from tandemmq.common.attributes import group_attributes, topic_attributes
from tandemmq.common.wire.remoting.codes import ResponseCode
from tandemmq.store.fronts.remoting.statuses import RemotingRefusal


class Attributes(NamedTuple):
    """Those that a topic may have, or a group."""

    is_known: Callable[[str], bool]
    allowed: Callable[[str, str], str]
    """Which values one may have, in words; empty where it may have this one."""
    unchangeable: Collection[str] = ()


OF_TOPICS = Attributes(topic_attributes.is_known, topic_attributes.allowed, topic_attributes.UNCHANGEABLE)
OF_GROUPS = Attributes(group_attributes.is_known, group_attributes.allowed)


def attributes_of(entry: Mapping[str, Any]) -> dict[str, str]:
    """Those of the entry of a topic or group. Raises RemotingRefusal."""
    attributes = entry.get("attributes") or {}
    if not isinstance(attributes, dict) or not all(isinstance(value, str) for value in attributes.values()):
        raise RemotingRefusal(ResponseCode.SYSTEM_ERROR, "The attributes are texts by their names.")
    return attributes


def parsed(text: str) -> dict[str, str]:
    """The changes of a header's field: values by name with its sign. Raises RemotingRefusal."""
    changes: dict[str, str] = {}
    text = text.rstrip(",")  # Java's split drops what is empty at the end
    for part in text.split(",") if text else ():
        name, equals, value = part.partition("=")
        if equals and "+" not in name:
            raise _refusal(f"add/alter attribute format is wrong: {name}")
        if not equals and "-" not in name:
            raise _refusal(f"delete attribute format is wrong: {name}")
        if name in changes:
            raise _refusal(f"key duplication: {name}")
        changes[name] = value
    return changes


def changed(of: Attributes, before: Mapping[str, str] | None, changes: Mapping[str, str]) -> dict[str, str]:
    """The attributes after the changes. `before`: None for what is made. Raises RemotingRefusal."""
    after = dict(before or {})
    for name, adds, value in _read(changes):
        if before is None and not adds:
            raise _refusal(f"only add attribute is supported while creating topic. key: {name}")
        if not adds and name not in (before or {}):
            raise _refusal(f"attempt to delete a nonexistent key: {name}")
        if not of.is_known(name):
            raise _refusal(f"unsupported key: {name}")
        if before is not None and name in of.unchangeable:
            raise _refusal(f"attempt to update an unchangeable attribute. key: {name}")
        right = of.allowed(name, value) if adds else ""
        if right:
            raise _refusal(f"The attribute {name} is {value[:40]!r}: allowed is {right}.")
        if adds:
            after[name] = value
        else:
            del after[name]
    return after


def _read(changes: Mapping[str, str]) -> Iterator[tuple[str, bool, str]]:
    """Name, whether it is added or else removed, and value. Raises RemotingRefusal."""
    seen = set[str]()
    for key, value in changes.items():
        name = key[1:]
        if not name or "+" in name or "-" in name:
            raise _refusal("kv string format wrong.")
        if name in seen:
            raise _refusal(f"key duplication: {name}")
        seen.add(name)
        if key[0] not in "+-":
            raise _refusal(f"wrong format key: {name}")
        yield name, key[0] == "+", value


def _refusal(said: str) -> RemotingRefusal:
    return RemotingRefusal(ResponseCode.SYSTEM_ERROR, said)
