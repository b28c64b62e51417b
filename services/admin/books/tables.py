"""Topics, groups and consumer offsets of a broker, put together from the pages that its metasync sends.

Configurations are kept as bytes of their messages: a part of a page keeps the whole page in memory, bytes do not.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from tandemmq.metadata.transfers import EntriesOf, TablePages, TableTransfer
from tandemmq.metadata.v1 import metadata_pb2 as pb

Version = tuple[int, int, int]
"""State version, counter, timestamp: the order in which one is newer than another."""

Config = TypeVar("Config", pb.TopicConfig, pb.SubscriptionGroupConfig)


def version_of(message: pb.DataVersion) -> Version:
    """A version that can be compared."""
    return message.state_version, message.counter, message.timestamp


def _configs(messages: Iterable[pb.TopicConfig | pb.SubscriptionGroupConfig]) -> Iterator[tuple[str, bytes]]:
    return ((one.name, one.SerializeToString()) for one in messages)


_ENTRIES: dict[int, EntriesOf] = {
    pb.TOPICS: lambda page: _configs(page.topics),
    pb.SUBSCRIPTION_GROUPS: lambda page: _configs(page.groups),
    pb.CONSUMER_OFFSETS: lambda page: (((one.group, one.topic), dict(one.offsets)) for one in page.consumer_offsets),
}

TABLES = (pb.TOPICS, pb.SUBSCRIPTION_GROUPS, pb.CONSUMER_OFFSETS)
"""What is followed."""


def watched_pages() -> TablePages:
    """Takes the pages of a watch of TABLES."""
    return TablePages(_ENTRIES)


class Tables:
    """The tables. Values in them are never changed, only replaced."""

    def __init__(self) -> None:
        self.topics: dict[str, bytes] = {}
        self.groups: dict[str, bytes] = {}
        self.offsets: dict[str, dict[str, Mapping[int, int]]] = {}
        """By group and topic: queue -> next offset to consume."""
        self.versions: dict[int, Version] = {}
        """By table; a table that has never come has none."""

    @property
    def whole(self) -> bool:
        """Whether all tables have come."""
        return len(self.versions) == len(TABLES)

    def reached(self, table: "pb.Table.ValueType", version: pb.DataVersion) -> bool:
        """Whether a table is as new as that version, or newer."""
        return self.versions.get(table, (0, 0, 0)) >= version_of(version)

    def apply(self, transfer: TableTransfer) -> None:
        """Takes a complete transfer."""
        if transfer.table == pb.CONSUMER_OFFSETS:
            self._apply_offsets(transfer)
        else:
            configs = self.topics if transfer.table == pb.TOPICS else self.groups
            if transfer.whole:
                configs.clear()
            for name in transfer.deleted:
                configs.pop(name, None)
            configs.update(transfer.entries)
        self.versions[transfer.table] = version_of(transfer.version)

    def _apply_offsets(self, transfer: TableTransfer) -> None:
        if transfer.whole:
            self.offsets.clear()
        for key in transfer.deleted:
            topic, _, group = key.partition("@")
            of_group = self.offsets.get(group, {})
            of_group.pop(topic, None)
            if not of_group:
                self.offsets.pop(group, None)
        for (group, topic), offsets in transfer.entries.items():
            self.offsets.setdefault(group, {})[topic] = offsets

    # -- what is in them ----------------------------------------------------------------------------------------------

    def topic(self, name: str) -> pb.TopicConfig | None:
        """A topic's configuration."""
        return _parsed(pb.TopicConfig, self.topics.get(name))

    def group(self, name: str) -> pb.SubscriptionGroupConfig | None:
        """A group's configuration."""
        return _parsed(pb.SubscriptionGroupConfig, self.groups.get(name))

    def groups_in(self, topic: str) -> list[str]:
        """Groups that have offsets in a topic, sorted."""
        return sorted(group for group, topics in self.offsets.items() if topic in topics)


def _parsed(kind: type[Config], data: bytes | None) -> Config | None:
    return None if data is None else kind.FromString(data)
