"""The store's own copy of the topic table, when a metadata service keeps the real one.

The copy lies in `tandem.topics` in the store's directory. What the metadata service says replaces it, whole tables and
changes alike, each at once. A topic that the store creates itself is durable here before a message to it is
acknowledged, and waits here until the metadata service has taken it. So the store runs on without metadata service, and
a restart without it shows every topic that there was. JSON::

    {"format": 2, "topicConfigTable": {"TopicTest": {…}}, "version": "…", "waiting": ["TopicTest"], "crc32": 42}

``version``: the metadata service's. Before format 2 there was no checksum; such a file is taken if it has exactly the
three entries that it had then.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tandemmq.common import java_json
from tandemmq.common.log_output import get_log
from tandemmq.store.broker.errors import TableNotSaved, UnreadableTable
from tandemmq.store.broker.topics import Additions, TopicConfig
from tandemmq.store.format.sealed import seal, unseal
from tandemmq.store.log.edges.disk import Disk, write_atomically
from tandemmq.store.log.edges.threads import in_thread
from tandemmq.store.log.event import Event

log = get_log(__name__)

FILE_NAME = "tandem.topics"
_TABLE, _WAITING, _VERSION, _FORMAT = "topicConfigTable", "waiting", "version", "format"
_SEALED = 2


class WatchedTopicTable:
    """A `TopicTable` that follows a metadata service; see there for `get`, `all` and `add`.

    Runs on the event loop; the file is written in a thread, by one at a time.
    """

    def __init__(self, root: Path, disk: Disk) -> None:
        """Read the copy of the store directory `root`; without one, begin with what config/topics.json says.

        Raises:
            UnreadableTable: a file is there and cannot be read.
        """
        self._path = root / FILE_NAME
        self._disk = disk
        self._writing = asyncio.Lock()
        self._additions = Additions(self.get, self._add, self._writing)
        self._topics: dict[str, TopicConfig] = {}
        self._waiting: frozenset[str] = frozenset()
        self._changes = self._saved = 0
        self.version = ""
        """The metadata service's version of what was taken over last, for logs."""
        self.added = Event()
        """There are topics that the metadata service does not have yet."""
        self._load(root / "config")

    # -- what the broker asks ---------------------------------------------------------------------------------------

    def get(self, name: str) -> TopicConfig | None:
        """The topic, or None if there is none."""
        return self._topics.get(name)

    def all(self) -> Iterable[TopicConfig]:
        """All topics, in no particular order."""
        return list(self._topics.values())

    async def add(self, topics: Iterable[TopicConfig]) -> None:
        """Add topics, durable when this returns; they wait for the metadata service from now on.

        Raises:
            TableNotSaved: the table stands as it was.
        """
        await self._additions.add(topics)

    async def _add(self, added: dict[str, TopicConfig]) -> None:
        changes = self._changes
        await in_thread(self._write, {**self._topics, **added}, self._waiting | added.keys(), self.version)
        self._saved = changes
        new = added.keys() - self._topics.keys()  # the metadata service may have named some meanwhile, and knows better
        self._topics = {**added, **self._topics}
        self._waiting |= new
        self.added()

    # -- what the link to the metadata service says -----------------------------------------------------------------

    @property
    def waiting(self) -> list[TopicConfig]:
        """Topics that the metadata service has not taken yet, by name."""
        return [self._topics[name] for name in sorted(self._waiting)]

    def accepted(self, topics: Iterable[TopicConfig]) -> None:
        """The metadata service has these topics now, as given (it may have known them before, otherwise)."""
        known = {topic.name: topic for topic in topics}
        self._become({**self._topics, **known}, self._waiting - known.keys())

    def replace(self, topics: Iterable[TopicConfig], version: str) -> None:
        """The whole table of the metadata service. Topics that wait for it stay."""
        table = {topic.name: topic for topic in topics}
        waiting = self._waiting - table.keys()
        self.version = version
        self._become({**table, **{name: self._topics[name] for name in waiting}}, waiting)

    def change(self, topics: Iterable[TopicConfig], deleted: Iterable[str], version: str) -> None:
        """Topics that are new or different, and names that are gone. Topics that wait stay."""
        table = dict(self._topics)
        for name in deleted:
            if name not in self._waiting:
                table.pop(name, None)
        fresh = {topic.name: topic for topic in topics}
        self.version = version
        self._become({**table, **fresh}, self._waiting - fresh.keys())

    def _become(self, table: dict[str, TopicConfig], waiting: frozenset[str]) -> None:
        self._topics, self._waiting = table, waiting
        self._changes += 1

    @property
    def unsaved(self) -> bool:
        """Whether the file is behind. What the metadata service has need not be durable here at once."""
        return self._changes != self._saved

    async def save(self) -> None:
        """Write the file, if it is behind.

        Raises:
            TableNotSaved: it stays behind, and is to be written later.
        """
        async with self._writing:
            if self.unsaved:
                changes = self._changes
                await in_thread(self._write, self._topics, self._waiting, self.version)
                self._saved = changes

    # -- the file ---------------------------------------------------------------------------------------------------

    def _write(self, table: Mapping[str, TopicConfig], waiting: Iterable[str], version: str) -> None:
        document: dict[str, Any] = {
            _FORMAT: _SEALED,
            _TABLE: {name: topic.to_json() for name, topic in table.items()},
            _VERSION: version,
            _WAITING: sorted(waiting),
        }
        try:
            write_atomically(self._disk, self._path, seal(document))
        except OSError as error:
            raise TableNotSaved(f"Cannot write the topic table {self._path}: {error.strerror or error}.") from error

    def _load(self, config: Path) -> None:
        try:
            document = self._read(self._path, _unsealed)
        except FileNotFoundError:
            self._seed(config)
            return
        except (OSError, ValueError) as error:
            raise self._unreadable(f"{self._path}: {error}") from error
        waiting = document.get(_WAITING, [])
        self._waiting = frozenset(name for name in waiting if name in self._topics)
        self.version = str(document.get(_VERSION, ""))

    def _seed(self, config: Path) -> None:
        """Begin with the table of config/, which is the metadata service's from now on, or RocketMQ's from before."""
        wrong = []
        for path in (config / "topics.json", config / "topics.json.bak"):
            try:
                self._read(path, java_json.loads)
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                wrong.append(f"{path}: {error}")
                continue
            log.info("topic table begun", source=str(path), topics=len(self._topics))
            self._changes += 1
            return
        if wrong:
            raise self._unreadable("; ".join(wrong))

    def _read(self, path: Path, loads: Callable[[bytes], dict[str, Any]]) -> dict[str, Any]:
        """Make a document the table. Raises OSError, ValueError."""
        with os.fdopen(self._disk.open(path, os.O_RDONLY), "rb") as file:
            document = loads(file.read())
        table = document.get(_TABLE)
        if not isinstance(table, dict) or not all(isinstance(entry, dict) for entry in table.values()):
            raise ValueError(f"it has no {_TABLE}")
        self._topics = {name: TopicConfig.from_json(name, entry) for name, entry in table.items()}
        return document

    @staticmethod
    def _unreadable(reason: str) -> UnreadableTable:
        return UnreadableTable(
            f"The topic table cannot be read: {reason}.",
            remedy=(
                f"Move {FILE_NAME} away: the store then begins with config/topics.json, and gets the rest from the "
                "metadata service."
            ),
        )


def _unsealed(data: bytes) -> dict[str, Any]:
    """The document in our own file. Raises ValueError."""
    document = java_json.loads(data)
    if document.keys() == {_TABLE, _VERSION, _WAITING}:
        return document
    document = unseal(data)
    if document.get(_FORMAT) != _SEALED:
        raise ValueError(f"format {document.get(_FORMAT)} is not known")
    return document
