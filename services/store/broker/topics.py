"""The topic table: which topics there are, how many queues they have, what may be done with them.

`TopicTable` is what the broker needs of it; `LocalTopicTable` keeps it in RocketMQ's own file, `config/topics.json`,
until a metadata service takes over. Fields that this store does not know are kept as they are.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from tandemmq.common import java_json
from tandemmq.common.log_output import get_log
from tandemmq.store.broker.errors import TableNotSaved, UnreadableTable
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.edges.disk import Disk, make_dirs, write_atomically
from tandemmq.store.log.edges.threads import in_thread

log = get_log(__name__)

PERM_READ = 4
PERM_WRITE = 2
"""Permission bits (RocketMQ: ``PermName``)."""

_TABLE = "topicConfigTable"


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


class Additions:
    """Topics on their way into a table: those that come while the file is written are written together."""

    def __init__(
        self,
        known: Callable[[str], TopicConfig | None],
        write: Callable[[dict[str, TopicConfig]], Awaitable[None]],
        turn: asyncio.Lock,
    ) -> None:
        """`write` makes new topics durable and known, or raises; one writes at a time, under `turn`."""
        self._known = known
        self._write = write
        self._turn = turn
        self._waiting: dict[str, TopicConfig] = {}

    async def add(self, topics: Iterable[TopicConfig]) -> None:
        """Done when all of them are known. Raises as `write`."""
        mine = {topic.name: topic for topic in topics}
        self._waiting.update(mine)
        async with self._turn:
            if all(self._known(name) is not None for name in mine):  # whoever had the turn before wrote them too
                return
            waiting, self._waiting = {**self._waiting, **mine}, {}
            await self._write({name: topic for name, topic in waiting.items() if self._known(name) is None})


class LocalTopicTable:
    """The table of one store in `config/topics.json`, with the version before it in `topics.json.bak`.

    Written seldom (for new topics) and therefore in full: back-up, temporary file, fsync, rename, fsync of the
    directory. A crash at any moment leaves a whole table.
    """

    def __init__(self, root: Path, disk: Disk, clock: Clock) -> None:
        """Read the table of the store directory `root`; a directory without one has no topics.

        Raises:
            UnreadableTable: there is a table, and neither it nor its back-up can be read.
        """
        self._path = root / "config" / "topics.json"
        self._backup = self._path.with_name("topics.json.bak")
        self._disk = disk
        self._clock = clock
        self._document: dict[str, Any] = {}
        self._topics: dict[str, TopicConfig] = {}
        self._additions = Additions(self.get, self._add, asyncio.Lock())
        self._load()

    def get(self, name: str) -> TopicConfig | None:
        """The topic; see `TopicTable`."""
        return self._topics.get(name)

    def all(self) -> Iterable[TopicConfig]:
        """All topics; see `TopicTable`."""
        return list(self._topics.values())

    async def add(self, topics: Iterable[TopicConfig]) -> None:
        """Add topics and write the file; see `TopicTable`."""
        await self._additions.add(topics)

    async def _add(self, added: dict[str, TopicConfig]) -> None:
        table = {**self._topics, **added}
        self._document = await in_thread(self._write, table)
        self._topics = table

    def _write(self, table: dict[str, TopicConfig]) -> dict[str, Any]:
        """Make a table durable; gives what stands in the file. Raises TableNotSaved."""
        document = {**self._document, "dataVersion": self._next_version()}
        document[_TABLE] = {name: topic.to_json() for name, topic in table.items()}
        try:
            make_dirs(self._disk, self._path.parent)
            if self._document:
                write_atomically(self._disk, self._backup, java_json.dumps(self._document))
            write_atomically(self._disk, self._path, java_json.dumps(document))
        except OSError as error:
            raise TableNotSaved(f"Cannot write the topic table {self._path}: {error.strerror or error}.") from error
        return document

    def _next_version(self) -> dict[str, Any]:
        """RocketMQ's DataVersion, one change later."""
        version = self._document.get("dataVersion")
        before = dict(version) if isinstance(version, dict) else {"stateVersion": 0}
        counter = before.get("counter", 0)
        return {**before, "counter": counter + 1 if type(counter) is int else 1, "timestamp": self._clock.now_ms()}

    def _load(self) -> None:
        """The file; where it is missing, empty or broken, its back-up, and loudly."""
        wrong = []
        for path in (self._path, self._backup):
            try:
                self._take(java_json.loads(_read(self._disk, path)))
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                wrong.append(f"{path}: {error}")
                continue
            if path is self._backup:
                reason = "; ".join(wrong) or f"{self._path} is missing"
                log.error(
                    "topic table read from its back-up: the last change may be lost", path=str(path), reason=reason
                )
            return
        if wrong:
            raise UnreadableTable(
                f"The topic table cannot be read: {'; '.join(wrong)}.",
                remedy="Repair the file, restore it from a back-up, or move it away to start with an empty table.",
            )

    def _take(self, document: dict[str, Any]) -> None:
        """Check a document and make it the table. Raises ValueError."""
        table = document.get(_TABLE)
        if not isinstance(table, dict):
            raise ValueError(f"it has no {_TABLE}")
        topics = {}
        for name, entry in table.items():
            if not isinstance(entry, dict):
                raise ValueError(f"topic {name} is no object")
            topics[name] = TopicConfig.from_json(name, entry)
        self._document, self._topics = document, topics


def _read(disk: Disk, path: Path) -> bytes:
    with os.fdopen(disk.open(path, os.O_RDONLY), "rb") as file:
        return file.read()
