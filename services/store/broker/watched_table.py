"""The store's own copy of a table, when a metadata service keeps the real one: of topics, or of groups.

The copy lies in `tandem.topics` or `tandem.groups` in the store's directory. What the metadata service says replaces
it, whole tables and changes alike, each at once. What the store creates itself is durable here before it is used, and
waits here until the metadata service has taken it. So the store runs on without metadata service, and a restart without
it shows all that there was. JSON::

    {"format": 2, "topicConfigTable": {"TopicTest": {…}}, "version": "…", "waiting": ["TopicTest"], "gone": ["Old"],
     "crc32": 42}

``version``: the metadata service's. ``gone``: what it has deleted, until all that follows from that is done.
Before format 2 there was no checksum; such a file is taken if it has exactly the
three entries that it had then.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Generic

from tandemmq.common.documents import java_json
from tandemmq.common.documents.sealed import seal_with, sealed_text, unseal
from tandemmq.common.files.replacing import write_atomically
from tandemmq.common.log_output import get_log
from tandemmq.store.broker.entry_texts import EntryTexts
from tandemmq.store.broker.errors import TableNotSaved, UnreadableTable
from tandemmq.store.broker.local_table import Additions, One, TableForm
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.edges.threads import in_thread
from tandemmq.store.log.event import Event

log = get_log(__name__)

_WAITING, _VERSION, _FORMAT, _GONE = "waiting", "version", "format", "gone"
_SEALED = 2


class WatchedTable(Generic[One]):
    """A table that follows a metadata service.

    Runs on the event loop; the file is written in a thread, by one at a time.
    """

    def __init__(self, form: TableForm[One], root: Path, disk: Disk) -> None:
        """Read the copy of the store directory `root`; without one, begin with what RocketMQ's file in config/ says.

        Raises:
            UnreadableTable: a file is there and cannot be read.
        """
        self._form = form
        self._path = root / form.copy
        self._disk = disk
        self._writing = asyncio.Lock()
        self._texts = EntryTexts(sealed_text)
        self._additions = Additions(self.get, self._add, self._writing)
        self._entries: dict[str, One] = {}
        self._waiting: frozenset[str] = frozenset()
        self._changes = self._saved = 0
        self.version = ""
        """The metadata service's version of what was taken over last, for logs."""
        self.changed = Event()
        """There are other entries than before."""
        self.added = Event()
        """There are entries that the metadata service does not have yet."""
        self.gone: frozenset[str] = frozenset()
        """Entries that the metadata service has deleted, until `settled`; while the store was away too."""
        self.removed = Event()
        """There are more of these."""
        self._load(root / "config")

    # -- what the broker asks ---------------------------------------------------------------------------------------

    def get(self, name: str) -> One | None:
        """The entry, or None if there is none."""
        return self._entries.get(name)

    def all(self) -> Iterable[One]:
        """All entries, in no particular order."""
        return list(self._entries.values())

    async def add(self, entries: Iterable[One]) -> None:
        """Add entries, durable when this returns; they wait for the metadata service from now on.

        Raises:
            TableNotSaved: the table stands as it was.
        """
        await self._additions.add(entries)

    async def _add(self, added: dict[str, One]) -> None:
        changes = self._changes
        await in_thread(self._write, {**self._entries, **added}, self._waiting | added.keys(), self.version)
        self._saved = changes
        new = added.keys() - self._entries.keys()  # the metadata service may have named some meanwhile: it knows better
        self._entries = {**added, **self._entries}
        self._waiting |= new
        self.changed()
        self.added()

    # -- what the link to the metadata service says -----------------------------------------------------------------

    @property
    def waiting(self) -> list[One]:
        """Entries that the metadata service has not taken yet, by name."""
        return [self._entries[name] for name in sorted(self._waiting)]

    def accepted(self, entries: Iterable[One]) -> None:
        """The metadata service has these entries now, as given (it may have known them before, otherwise)."""
        known = {one.name: one for one in entries}
        self._become({**self._entries, **known}, self._waiting - known.keys())

    def replace(self, entries: Iterable[One], version: str) -> None:
        """The whole table of the metadata service. Entries that wait for it stay."""
        table = {one.name: one for one in entries}
        waiting = self._waiting - table.keys()
        self.version = version
        self._become({**table, **{name: self._entries[name] for name in waiting}}, waiting)

    def change(self, entries: Iterable[One], deleted: Iterable[str], version: str) -> None:
        """Entries that are new or different, and names that are gone. Entries that wait stay."""
        table = dict(self._entries)
        for name in deleted:
            if name not in self._waiting:
                table.pop(name, None)
        fresh = {one.name: one for one in entries}
        self.version = version
        self._become({**table, **fresh}, self._waiting - fresh.keys())

    def _become(self, table: dict[str, One], waiting: frozenset[str]) -> None:
        gone = self._entries.keys() - table.keys()
        self._entries, self._waiting = table, waiting
        self.gone = (self.gone | gone) - table.keys()
        self._changes += 1
        self.changed()
        if gone:
            self.removed()

    def settled(self, names: Iterable[str]) -> None:
        """All that follows from the deletion of these entries is done."""
        self.gone -= frozenset(names)
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
                await in_thread(self._write, self._entries, self._waiting, self.version)
                self._saved = changes

    # -- the file ---------------------------------------------------------------------------------------------------

    def _write(self, table: Mapping[str, One], waiting: Iterable[str], version: str) -> None:
        document: dict[str, Any] = {
            _FORMAT: _SEALED,
            self._form.key: {},
            _VERSION: version,
            _WAITING: sorted(waiting),
            _GONE: sorted(self.gone),
        }
        try:
            write_atomically(self._disk, self._path, seal_with(document, self._form.key, self._texts.of(table)))
        except OSError as error:
            raise TableNotSaved(
                f"Cannot write the {self._form.noun} table {self._path}: {error.strerror or error}."
            ) from error

    def _load(self, config: Path) -> None:
        try:
            document = self._read(self._path, self._unsealed)
        except FileNotFoundError:
            self._seed(config)
            return
        except (OSError, ValueError) as error:
            raise self._unreadable(f"{self._path}: {error}") from error
        waiting = document.get(_WAITING, [])
        self._waiting = frozenset(name for name in waiting if name in self._entries)
        self.gone = frozenset(document.get(_GONE, [])) - self._entries.keys()
        self.version = str(document.get(_VERSION, ""))

    def _seed(self, config: Path) -> None:
        """Begin with the table of config/, which is the metadata service's from now on, or RocketMQ's from before."""
        wrong = []
        for path in (config / self._form.file, config / f"{self._form.file}.bak"):
            try:
                self._read(path, java_json.loads)
            except FileNotFoundError:
                continue
            except (OSError, ValueError) as error:
                wrong.append(f"{path}: {error}")
                continue
            log.info("table begun", table=self._form.noun, source=str(path), entries=len(self._entries))
            self._changes += 1
            return
        if wrong:
            raise self._unreadable("; ".join(wrong))

    def _read(self, path: Path, loads: Callable[[bytes], dict[str, Any]]) -> dict[str, Any]:
        """Make a document the table. Raises OSError, ValueError."""
        with os.fdopen(self._disk.open(path, os.O_RDONLY), "rb") as file:
            document = loads(file.read())
        self._entries = self._form.entries_of(document)
        return document

    def _unreadable(self, reason: str) -> UnreadableTable:
        return UnreadableTable(
            f"The {self._form.noun} table cannot be read: {reason}.",
            remedy=(
                f"Move {self._form.copy} away: the store then begins with config/{self._form.file}, and gets the rest "
                "from the metadata service."
            ),
        )

    def _unsealed(self, data: bytes) -> dict[str, Any]:
        """The document in our own file. Raises ValueError."""
        document = java_json.loads(data)
        if document.keys() == {self._form.key, _VERSION, _WAITING}:
            return document
        document = unseal(data)
        if document.get(_FORMAT) != _SEALED:
            raise ValueError(f"format {document.get(_FORMAT)} is not known")
        return document
