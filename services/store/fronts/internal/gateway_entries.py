"""Topics and groups that a gateway has found: it is told when they change."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from tandemmq.broker.v1 import broker_pb2
from tandemmq.common.documents import java_json
from tandemmq.common.timers import Timer, Timers
from tandemmq.store.broker.errors import BadRequest
from tandemmq.store.broker.topics import TopicConfig, TopicTable
from tandemmq.store.delivery.members.groups import GroupConfig, GroupTable

One = TypeVar("One")

TOPIC, GROUP = "topic", "group"

_LOOK_SECONDS = 0.05
_AT_ONCE = 512
"""Entries that are looked at in one turn: ten thousand of them are compared within a second."""


Changed = Callable[[str, broker_pb2.Entry], None]
"""Hears of a topic or a group (which of both, and what it is now)."""


class Named(Protocol):
    """A topic or a group."""

    def to_json(self) -> dict[str, Any]:
        """As it stands in RocketMQ's file."""
        ...


class FoundEntries:
    """What one gateway has found in the tables of this store."""

    def __init__(self, topics: TopicTable, groups: GroupTable, timers: Timers, changed: Changed) -> None:
        """`changed` hears, of a topic or a group, what it is now."""
        self._get: Mapping[str, Callable[[str], Named | None]] = {TOPIC: topics.get, GROUP: groups.get}
        self._timers = timers
        self._changed = changed
        self._found: dict[tuple[str, str], Named] = {}
        self._turn: list[tuple[str, str]] = []
        self._timer: Timer | None = None

    def find(self, kind: str, name: str) -> broker_pb2.Entry:
        """A topic or group as it is now, watched from now on if it is there."""
        found = self._get[kind](name)
        if found is not None:
            self._found[kind, name] = found
            if self._timer is None:
                self._timer = self._timers.call_later(_LOOK_SECONDS, self._look)
        return _entry(name, found)

    def end(self) -> None:
        """Watch nothing any more."""
        self._found.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._turn = self._turn or list(self._found)
        now, self._turn = self._turn[:_AT_ONCE], self._turn[_AT_ONCE:]
        for kind, name in now:
            known, found = self._found.get((kind, name)), self._get[kind](name)
            if known is None or found is known:
                continue
            if found is None:
                del self._found[kind, name]
            else:
                self._found[kind, name] = found
            self._changed(kind, _entry(name, found))
        self._timer = self._timers.call_later(_LOOK_SECONDS, self._look)


def topic_of(entry: broker_pb2.Entry) -> TopicConfig:
    """A topic that is to be made. Raises BadRequest."""
    return _read(TopicConfig.from_json, entry)


def group_of(entry: broker_pb2.Entry) -> GroupConfig:
    """A group that is to be made. Raises BadRequest."""
    return _read(GroupConfig.from_json, entry)


def _read(read: Callable[[str, dict[str, Any]], One], entry: broker_pb2.Entry) -> One:
    try:
        return read(entry.name, java_json.loads(entry.json))
    except ValueError as error:
        raise BadRequest(f"The entry of {entry.name} cannot be read: {error}.") from None


def _entry(name: str, found: Named | None) -> broker_pb2.Entry:
    return broker_pb2.Entry(name=name, json=b"" if found is None else java_json.dumps(found.to_json()))
