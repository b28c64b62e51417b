"""Action and Need: what a call asks for."""

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple


class Action(StrEnum):
    """What somebody may do. The first three are about a topic or a group, the others about the whole node."""

    PUBLISH = "publish"
    """Send to a topic."""
    SUBSCRIBE = "subscribe"
    """Read the messages of a topic."""
    GROUP = "group"
    """Commit and read the offsets of a consumer group."""
    VIEW = "view"
    """See which topics, groups, nodes and settings there are; no messages."""
    MANAGE = "manage"
    """Create, change and delete topics and groups; reset offsets."""
    OPERATE = "operate"
    """Jobs, promotion, support bundle."""
    INTERNAL = "internal"
    """What services do among themselves: replication, copying of metadata."""


ABILITIES = frozenset({Action.VIEW, Action.MANAGE, Action.OPERATE, Action.INTERNAL})
"""Actions without a resource."""


class _Some(str):
    """A resource that no request can name: it equals nothing but itself."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


ALL = "*"
"""As a resource: every topic, or every group. No topic is called so."""

SOME = _Some("some")
"""As a resource: any topic or group at all, whichever it may be."""


class Need(NamedTuple):
    """Something that a caller must be allowed."""

    action: Action
    resource: str = ""
    """Topic or group; ALL; SOME; empty for abilities."""
    instead: tuple[Action, ...] = ()
    """Abilities each of which will do as well."""

    def told(self) -> str:
        """For people: `PUBLISH to topic billing`, `MANAGE`."""
        action = self.action.name
        if self.action in ABILITIES:
            return action
        kind = "group" if self.action is Action.GROUP else "topic"
        if self.resource is SOME:
            which = f"any {kind}"
        elif self.resource == ALL:
            which = f"every {kind}"
        else:
            which = f"{kind} {self.resource or '(no name)'}"
        return f"{action} to {which}" if kind == "topic" else f"use {which}"


@lru_cache(maxsize=8192)
def publish(topic: str) -> Need:
    """To send to a topic."""
    return Need(Action.PUBLISH, topic)


@lru_cache(maxsize=8192)
def subscribe(topic: str, *instead: Action) -> Need:
    """To read a topic's messages."""
    return Need(Action.SUBSCRIBE, topic, instead)


@lru_cache(maxsize=8192)
def group(name: str, *instead: Action) -> Need:
    """To consume as a group."""
    return Need(Action.GROUP, name, instead)
