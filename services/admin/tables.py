"""Topics, groups and consumer offsets of a broker, put together from the pages that its metasync sends.

Configurations are kept as bytes of their messages: a part of a page keeps the whole page in memory, bytes do not.
"""

from collections.abc import Mapping
from typing import TypeVar

from tandemmq.metadata.v1 import metadata_pb2 as pb

Version = tuple[int, int, int]
"""State version, counter, timestamp: the order in which one is newer than another."""

TABLES = (pb.TOPICS, pb.SUBSCRIPTION_GROUPS, pb.CONSUMER_OFFSETS)
"""What is followed."""

Config = TypeVar("Config", pb.TopicConfig, pb.SubscriptionGroupConfig)


def version_of(message: pb.DataVersion) -> Version:
    """A version that can be compared."""
    return message.state_version, message.counter, message.timestamp


class PagedTransfer:
    """A whole table, or a set of changes, as its pages come. Each page is worked off when it comes."""

    def __init__(self) -> None:
        self.table: pb.Table.ValueType = pb.TABLE_UNSPECIFIED
        self.whole = False
        self.version: Version = (0, 0, 0)
        self.configs: dict[str, bytes] = {}
        self.offsets: dict[tuple[str, str], dict[int, int]] = {}
        """By group and topic."""
        self.deleted: list[str] = []

    def add(self, page: pb.TablePage) -> bool:
        """Takes a page; True with the last one."""
        self.table, self.whole = page.table, page.whole
        self.configs.update((topic.name, topic.SerializeToString()) for topic in page.topics)
        self.configs.update((group.name, group.SerializeToString()) for group in page.groups)
        for one in page.consumer_offsets:
            self.offsets[one.group, one.topic] = dict(one.offsets)
        self.deleted.extend(page.deleted)
        self.version = version_of(page.version)
        return page.last


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

    def apply(self, transfer: PagedTransfer) -> None:
        """Takes a complete transfer."""
        if transfer.table == pb.CONSUMER_OFFSETS:
            self._apply_offsets(transfer)
        else:
            configs = self.topics if transfer.table == pb.TOPICS else self.groups
            if transfer.whole:
                configs.clear()
            for name in transfer.deleted:
                configs.pop(name, None)
            configs.update(transfer.configs)
        self.versions[transfer.table] = transfer.version

    def _apply_offsets(self, transfer: PagedTransfer) -> None:
        if transfer.whole:
            self.offsets.clear()
        for key in transfer.deleted:
            topic, _, group = key.partition("@")
            of_group = self.offsets.get(group, {})
            of_group.pop(topic, None)
            if not of_group:
                self.offsets.pop(group, None)
        for (group, topic), offsets in transfer.offsets.items():
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
