"""A table of the store in RocketMQ's own file, until a metadata service takes over: topics, or groups.

Fields that this store does not know are kept as they are.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from tandemmq.common.documents import java_json
from tandemmq.common.files.replacing import make_dirs, write_atomically
from tandemmq.common.log_output import get_log
from tandemmq.store.broker.entry_texts import EntryTexts
from tandemmq.store.broker.errors import TableNotSaved, UnreadableTable
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.edges.threads import in_thread
from tandemmq.store.log.event import Event

log = get_log(__name__)


class TableEntry(Protocol):
    """What a table holds."""

    @property
    def name(self) -> str:
        """Its key."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Its entry in the file."""
        ...


One = TypeVar("One", bound=TableEntry)


@dataclass(frozen=True, slots=True)
class TableForm(Generic[One]):
    """How a table looks in files."""

    noun: str
    """What its entries are, in messages: topic, group."""
    file: str
    """RocketMQ's file in config/."""
    copy: str
    """The store's own file, with which it follows a metadata service."""
    key: str
    """The file's object that has the entries."""
    read: Callable[[str, Mapping[str, Any]], One]
    """Makes an entry of its name and its object; raises ValueError."""

    def entries_of(self, document: Mapping[str, Any]) -> dict[str, One]:
        """The entries of a file. Raises ValueError."""
        table = document.get(self.key)
        if not isinstance(table, dict):
            raise ValueError(f"it has no {self.key}")
        entries = {}
        for name, entry in table.items():
            if not isinstance(entry, dict):
                raise ValueError(f"{self.noun} {name} is no object")
            entries[name] = self.read(name, entry)
        return entries


class Additions(Generic[One]):
    """Entries on their way into a table: those that come while the file is written are written together."""

    def __init__(
        self,
        known: Callable[[str], One | None],
        write: Callable[[dict[str, One]], Awaitable[None]],
        turn: asyncio.Lock,
    ) -> None:
        """`write` makes new entries durable and known, or raises; one writes at a time, under `turn`."""
        self._known = known
        self._write = write
        self._turn = turn
        self._waiting: dict[str, One] = {}

    async def add(self, entries: Iterable[One]) -> None:
        """Done when all of them are known. Raises as `write`."""
        mine = {one.name: one for one in entries}
        self._waiting.update(mine)
        async with self._turn:
            if all(self._known(name) is not None for name in mine):  # whoever had the turn before wrote them too
                return
            waiting, self._waiting = {**self._waiting, **mine}, {}
            await self._write({name: one for name, one in waiting.items() if self._known(name) is None})


class LocalTable(Generic[One]):
    """A table of one store in its file in `config/`, with the version before it in a file `….bak` beside it.

    Written seldom (for new topics) and therefore in full: back-up, temporary file, fsync, rename, fsync of the
    directory. A crash at any moment leaves a whole table.
    """

    def __init__(self, form: TableForm[One], root: Path, disk: Disk, clock: Clock) -> None:
        """Read the table of the store directory `root`; a directory without one has no entries.

        Raises:
            UnreadableTable: there is a table, and neither it nor its back-up can be read.
        """
        self._form = form
        self._path = root / "config" / form.file
        self._backup = self._path.with_name(f"{form.file}.bak")
        self._disk = disk
        self._clock = clock
        self._rest: dict[str, Any] = {}
        """What the document has beside the entries."""
        self._saved = b""
        """The document as it stands in the file; empty where there is none."""
        self._texts = EntryTexts(java_json.entry_text)
        self._entries: dict[str, One] = {}
        self.changed = Event()
        """There are other entries than before."""
        self._turn = asyncio.Lock()
        self._additions = Additions(self.get, self._add, self._turn)
        self._load()

    def get(self, name: str) -> One | None:
        """The entry, or None if there is none."""
        return self._entries.get(name)

    def all(self) -> Iterable[One]:
        """All entries, in no particular order."""
        return list(self._entries.values())

    async def add(self, entries: Iterable[One]) -> None:
        """Add entries that are not there yet, and write the file; durable when this returns.

        Raises:
            TableNotSaved: the table stands as it was.
        """
        await self._additions.add(entries)

    async def change(self, entries: Iterable[One], deleted: Iterable[str]) -> None:
        """Entries that are new or different, and names that are gone; durable when this returns.

        Raises:
            TableNotSaved: the table stands as it was.
        """
        async with self._turn:
            gone = set(deleted)
            table = {name: one for name, one in self._entries.items() if name not in gone}
            await self._become(table | {one.name: one for one in entries})

    async def _add(self, added: dict[str, One]) -> None:
        await self._become({**self._entries, **added})

    async def _become(self, table: dict[str, One]) -> None:
        self._rest, self._saved = await in_thread(self._write, table)
        self._entries = table
        self.changed()

    def _write(self, table: dict[str, One]) -> tuple[dict[str, Any], bytes]:
        """Make a table durable; gives what stands in the file. Raises TableNotSaved."""
        rest = {**self._rest, "dataVersion": self._next_version()}
        text = java_json.dumps_with(rest, self._form.key, self._texts.of(table))
        try:
            make_dirs(self._disk, self._path.parent)
            if self._saved:
                write_atomically(self._disk, self._backup, self._saved)
            write_atomically(self._disk, self._path, text)
        except OSError as error:
            raise TableNotSaved(
                f"Cannot write the {self._form.noun} table {self._path}: {error.strerror or error}."
            ) from error
        return rest, text

    def _next_version(self) -> dict[str, Any]:
        """RocketMQ's DataVersion, one change later."""
        version = self._rest.get("dataVersion")
        before = dict(version) if isinstance(version, dict) else {"stateVersion": 0}
        counter = before.get("counter", 0)
        return {**before, "counter": counter + 1 if type(counter) is int else 1, "timestamp": self._clock.now_ms()}

    def _load(self) -> None:
        """The file; where it is missing, empty or broken, its back-up, and loudly."""
        wrong = []
        for path in (self._path, self._backup):
            try:
                self._take(_read(self._disk, path))
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                wrong.append(f"{path}: {error}")
                continue
            if path is self._backup:
                reason = "; ".join(wrong) or f"{self._path} is missing"
                log.error(
                    "table read from its back-up: the last change may be lost",
                    table=self._form.noun,
                    path=str(path),
                    reason=reason,
                )
            return
        if wrong:
            raise UnreadableTable(
                f"The {self._form.noun} table cannot be read: {'; '.join(wrong)}.",
                remedy="Repair the file, restore it from a back-up, or move it away to start with an empty table.",
            )

    def _take(self, text: bytes) -> None:
        """Check a document and make it the table. Raises ValueError."""
        document = java_json.loads(text)
        self._entries = self._form.entries_of(document)
        self._rest = {key: value for key, value in document.items() if key != self._form.key}
        self._saved = text


def _read(disk: Disk, path: Path) -> bytes:
    with os.fdopen(disk.open(path, os.O_RDONLY), "rb") as file:
        return file.read()
