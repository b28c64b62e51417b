"""Consumer groups: their settings, and the table of them (RocketMQ: ``SubscriptionGroupConfig``)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from tandemmq.common.attributes.group_attributes import ACK_DURABILITY, PRIORITY_FACTOR
from tandemmq.store.broker.acknowledgement import Durability
from tandemmq.store.broker.local_table import LocalTable, TableForm
from tandemmq.store.broker.watched_table import WatchedTable
from tandemmq.store.delivery.retries.retry_policy import policy_of
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.event import Event

_CONSUME_TIMEOUT_MINUTES = 15
_MOST_CONSUME_TIMEOUT_MINUTES = 12 * 60
"""As long as a receive may ask for."""


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """One consumer group, with RocketMQ's names and defaults."""

    name: str
    retry_max_times: int = 16
    """Deliveries after the first; then the message goes to the dead letters. -1: for ever."""
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queues: int = 1
    consume_timeout_minutes: int = _CONSUME_TIMEOUT_MINUTES
    """See `invisible_ms`."""
    retry_policy: tuple[int, ...] = ()
    """Milliseconds until the 2nd, 3rd, ... delivery, the last one for all later; empty: RocketMQ's levels."""
    attributes: Mapping[str, str] = field(default_factory=dict, compare=False)
    other: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The fields of the file that have no meaning here."""

    @property
    def ack_durability(self) -> Durability:
        """What an acknowledgement waits for: the attribute `ackDurability`. One that makes no sense counts as none."""
        if not self.attributes:
            return Durability.AS_SENDS
        try:
            return Durability(self.attributes.get(ACK_DURABILITY, ""))
        except ValueError:
            return Durability.AS_SENDS

    @property
    def invisible_ms(self) -> int:
        """How long messages are invisible where a receive does not say it. Less than a minute is no time: 15 then."""
        minutes = self.consume_timeout_minutes if self.consume_timeout_minutes > 0 else _CONSUME_TIMEOUT_MINUTES
        return min(minutes, _MOST_CONSUME_TIMEOUT_MINUTES) * 60_000

    @property
    def priority_percent(self) -> int:
        """Of 100 receives those that look at high priorities first: the attribute `priority.factor`, without it all."""
        given = self.attributes.get(PRIORITY_FACTOR, "")
        return int(given) if given.isascii() and given.isdigit() and len(given) < 4 else 100

    def back_off_ms(self, number: int) -> int:
        """Milliseconds until the delivery after the `number`-th, by the group's policy."""
        waits = self.retry_policy or LEVELS_AS_POLICY
        return waits[min(max(number, 1), len(waits)) - 1]

    def to_json(self) -> dict[str, Any]:
        """The group's entry in the file."""
        fresh = {
            "brokerId": 0,
            "groupRetryPolicy": {"type": "CUSTOMIZED"},
            "groupSysFlag": 0,
            "notifyConsumerIdsChangedEnable": True,
            "whichBrokerWhenConsumeSlowly": 1,
        }
        known = {key: getattr(self, name) for name, (key, _) in _FIELDS.items()}
        return {**(self.other or fresh), "groupName": self.name, "attributes": dict(self.attributes), **known}

    @classmethod
    def from_json(cls, name: str, entry: Mapping[str, Any]) -> "GroupConfig":
        """Read an entry. A retry policy that makes no sense counts as none. Raises ValueError."""
        values = {}
        for field_name, (key, default) in _FIELDS.items():
            value = entry.get(key, default)
            if type(value) is not type(default) or (type(value) is int and value < -1):
                raise ValueError(f"group {name} has a {key} that makes no sense: {value!r}")
            values[field_name] = value
        attributes = entry.get("attributes")
        texts = isinstance(attributes, dict) and all(isinstance(text, str) for text in attributes.values())
        return cls(
            name,
            **values,
            retry_policy=policy_of(entry.get("groupRetryPolicy")),
            attributes=MappingProxyType(dict(attributes)) if texts and attributes else {},
            other=MappingProxyType(dict(entry)),
        )


_FIELDS: Mapping[str, tuple[str, Any]] = {
    "retry_max_times": ("retryMaxTimes", 16),
    "consume_enable": ("consumeEnable", True),
    "consume_from_min_enable": ("consumeFromMinEnable", True),
    "consume_broadcast_enable": ("consumeBroadcastEnable", True),
    "consume_message_orderly": ("consumeMessageOrderly", False),
    "retry_queues": ("retryQueueNums", 1),
    "consume_timeout_minutes": ("consumeTimeoutMinute", _CONSUME_TIMEOUT_MINUTES),
}
"""Field -> name in the file, RocketMQ's default."""


LEVELS_AS_POLICY = (
    1_000, 5_000, 10_000, 30_000, 60_000, 120_000, 180_000, 240_000, 300_000, 360_000, 420_000, 480_000, 540_000,
    600_000, 1_200_000, 1_800_000, 3_600_000, 7_200_000,
)  # fmt: skip
"""Delay levels 1 to 18, as a retry policy."""


class GroupTable(Protocol):
    """What delivery asks of the table of groups; `broker/topics.py` has the like for topics."""

    changed: Event
    """There are other groups than before, or with other settings."""

    def get(self, name: str) -> GroupConfig | None:
        """The group, or None if there is none."""
        ...

    def all(self) -> Iterable[GroupConfig]:
        """All groups, in no particular order."""
        ...

    async def add(self, groups: Iterable[GroupConfig]) -> None:
        """Add the groups that are not there yet; durable when this returns. Raises TableNotSaved."""
        ...


GROUPS = TableForm("group", "subscriptionGroup.json", "tandem.groups", "subscriptionGroupTable", GroupConfig.from_json)
"""The table of groups in files."""


class LocalGroupTable(LocalTable[GroupConfig]):
    """A `GroupTable` in RocketMQ's own file, `config/subscriptionGroup.json`."""

    def __init__(self, root: Path, disk: Disk, clock: Clock) -> None:
        """Read the table of the store directory `root`. Raises UnreadableTable."""
        super().__init__(GROUPS, root, disk, clock)


class WatchedGroupTable(WatchedTable[GroupConfig]):
    """A `GroupTable` that follows a metadata service; its copy is `tandem.groups`."""

    def __init__(self, root: Path, disk: Disk) -> None:
        """Read the copy of the store directory `root`, or begin with RocketMQ's file. Raises UnreadableTable."""
        super().__init__(GROUPS, root, disk)
