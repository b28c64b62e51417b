"""The topic table: which topics there are, how many queues they have, what may be done with them.

`TopicTable` is what the broker needs of it; `LocalTopicTable` keeps it in RocketMQ's own file, `config/topics.json`,
until a metadata service takes over.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from tandemmq.common.attributes.topic_retention import reserve_hours
from tandemmq.store.broker.local_table import LocalTable, TableForm
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.event import Event

PERM_READ = 4
PERM_WRITE = 2
"""Permission bits (RocketMQ: ``PermName``)."""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One topic (RocketMQ: ``TopicConfig``)."""

    name: str
    read_queues: int
    write_queues: int
    perm: int = PERM_READ | PERM_WRITE
    other: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The fields of the file that have no meaning here."""

    @property
    def readable(self) -> bool:
        """Whether consumers may pull from it."""
        return bool(self.perm & PERM_READ)

    @property
    def writable(self) -> bool:
        """Whether producers may send to it."""
        return bool(self.perm & PERM_WRITE)

    @property
    def by_priority(self) -> bool:
        """Whether its queues are priorities, the last one the highest: the attribute `message.type` is PRIORITY."""
        attributes = self.other.get("attributes")
        return isinstance(attributes, Mapping) and attributes.get("message.type") == "PRIORITY"

    @property
    def reserve_hours(self) -> int:
        """For how many hours its messages are kept, where the log keeps them longer; 0: as long as the log.

        See `topic_retention`.
        """
        return reserve_hours(self.name, self.other.get("attributes"))

    def to_json(self) -> dict[str, Any]:
        """The topic's entry in the file."""
        fresh = {"attributes": {}, "order": False, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0}
        known = {
            "topicName": self.name,
            "readQueueNums": self.read_queues,
            "writeQueueNums": self.write_queues,
            "perm": self.perm,
        }
        return {**(self.other or fresh), **known}

    @classmethod
    def from_json(cls, name: str, entry: Mapping[str, Any]) -> "TopicConfig":
        """Read an entry. Raises ValueError."""
        read, write, perm = (entry.get(key, default) for key, default in _NUMBERS.items())
        if not all(type(number) is int and number >= 0 for number in (read, write, perm)):
            raise ValueError(f"topic {name} has a queue number or permission that is no number of 0 or more")
        return cls(name, read, write, perm, MappingProxyType(dict(entry)))


_NUMBERS = {"readQueueNums": 16, "writeQueueNums": 16, "perm": 6}  # defaults of Java's TopicConfig


class TopicTable(Protocol):
    """What the broker asks of a topic table."""

    changed: Event
    """There are other topics than before, or with other queues."""

    def get(self, name: str) -> TopicConfig | None:
        """The topic, or None if there is none."""
        ...

    def all(self) -> Iterable[TopicConfig]:
        """All topics, in no particular order."""
        ...

    async def add(self, topics: Iterable[TopicConfig]) -> None:
        """Add the topics that are not there yet; all are durable, and there, when this returns.

        The file is written in a thread; those who come meanwhile are written together. Raises:
            TableNotSaved: the table stands as it was.
        """
        ...


TOPICS = TableForm("topic", "topics.json", "tandem.topics", "topicConfigTable", TopicConfig.from_json)
"""The table of topics in files."""


class LocalTopicTable(LocalTable[TopicConfig]):
    """A `TopicTable` in `config/topics.json`."""

    def __init__(self, root: Path, disk: Disk, clock: Clock) -> None:
        """Read the table of the store directory `root`. Raises UnreadableTable."""
        super().__init__(TOPICS, root, disk, clock)
