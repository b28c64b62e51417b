"""The four tables of a node: in memory, on disk, and told to who watches.

A change of topics or groups is on disk before it is in memory, and in memory before anybody hears of it. Offsets
change in memory and are written from time to time. Writing happens on threads, one at a time for each table.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar

from tandemmq.common.log_output import get_log
from tandemmq.common.timers import Timers
from tandemmq.metasync.documents import DirectoryLock, Document
from tandemmq.metasync.errors import DocumentNotSaved
from tandemmq.metasync.offset_tables import ConsumerOffsetTable, DelayOffsetTable
from tandemmq.metasync.tables import Change, ConfigTable, Content, Stamp, TableKind
from tandemmq.metasync.watchers import Hub

log = get_log(__name__)

Outcome = TypeVar("Outcome")

AnyTable = ConfigTable | ConsumerOffsetTable | DelayOffsetTable


class Keeper:
    """Opens the tables of a store directory, changes them and writes them."""

    def __init__(self, root: Path) -> None:
        """Read the tables; a directory without them has empty ones.

        Raises:
            DirectoryInUse: another metasync has it.
            UnreadableDocument: a table's file is there, and neither it nor its back-up can be read.
            DocumentNotSaved: the directory cannot be made.
        """
        config = root / "config"
        self.root = root
        self._lock = DirectoryLock(config)
        self.topics = ConfigTable(TableKind.TOPICS)
        self.groups = ConfigTable(TableKind.SUBSCRIPTION_GROUPS)
        self.offsets = ConsumerOffsetTable()
        self.delays = DelayOffsetTable()
        self.hub = Hub()
        self.epoch = 0
        """The state version of changes: the store's epoch."""
        self.problems: dict[TableKind, str] = {}
        """What went wrong when a table was last written."""
        self.write_failures: dict[TableKind, int] = dict.fromkeys(TableKind, 0)
        self._documents = {kind: Document(config / kind.file_name) for kind in TableKind}
        self._locks = {kind: asyncio.Lock() for kind in TableKind}
        self._changes: dict[TableKind, int] = dict.fromkeys(TableKind, 0)
        self._saved: dict[TableKind, int] = dict.fromkeys(TableKind, 0)
        try:
            self._load()
        except BaseException:
            self._lock.release()
            raise

    def table(self, kind: TableKind) -> AnyTable:
        """One of the four."""
        tables: dict[TableKind, AnyTable] = {
            TableKind.TOPICS: self.topics,
            TableKind.SUBSCRIPTION_GROUPS: self.groups,
            TableKind.CONSUMER_OFFSETS: self.offsets,
            TableKind.DELAY_OFFSETS: self.delays,
        }
        return tables[kind]

    def content(self, kind: TableKind, keys: Iterable[str] | None = None) -> Content:
        """A table as it is now; with `keys` only these entries, where they are there. All offsets cost a copy."""
        table = self.table(kind)
        if keys is None:
            return table.content
        entries = table.entries
        return Content(table.version, {key: entries[key] for key in keys if key in entries})

    def stamp(self) -> Stamp:
        """What a new version is made of now."""
        return Stamp(time.time_ns() // 1_000_000, self.epoch)

    # -- topics and groups ------------------------------------------------------------------------------------------

    async def change(self, table: ConfigTable, plan: Callable[[], Change | None]) -> Change | None:
        """Make a change durable, then effective, then known. `plan` sees the table after all changes before.

        Once begun it is carried out, whatever becomes of the caller.

        Raises:
            DocumentNotSaved: the table stands as it was. And whatever `plan` raises.
        """
        return await _to_its_end(self._change(table, plan))

    async def _change(self, table: ConfigTable, plan: Callable[[], Change | None]) -> Change | None:
        async with self._locks[table.kind]:
            change = plan()
            if change is not None:
                content = change.content
                await self._write(table.kind, lambda: table.document(content))
                table.accept(change)
                self.hub.tell(table.kind, change.keys)
            return change

    # -- offsets ----------------------------------------------------------------------------------------------------

    def changed(self, kind: TableKind, keys: Iterable[str] | None) -> None:
        """Offsets changed in memory: write them in time, and tell who watches."""
        self._changes[kind] += 1
        self.hub.tell(kind, keys)

    def unsaved(self, kind: TableKind) -> bool:
        """Whether there are changes that are not on disk."""
        return self._changes[kind] != self._saved[kind]

    async def flush(self, kind: TableKind) -> None:
        """Write an offset table, if it has changed. Raises DocumentNotSaved: it will be tried again."""
        await _to_its_end(self._flush(kind))

    async def _flush(self, kind: TableKind) -> None:
        async with self._locks[kind]:
            if not self.unsaved(kind):
                return
            now = self._changes[kind]
            await self._write_now(kind)
            self._saved[kind] = now

    async def mend(self) -> None:
        """Write every table again that could not be written last time. Raises DocumentNotSaved: one still cannot."""
        for kind in list(self.problems):
            async with self._locks[kind]:
                await self._write_now(kind)

    async def close(self) -> None:
        """Write what is not written yet, and let the next service in."""
        try:
            for kind in (TableKind.CONSUMER_OFFSETS, TableKind.DELAY_OFFSETS):
                try:
                    await self.flush(kind)
                except DocumentNotSaved as error:
                    log.error("table not saved at the end", table=kind.file_name, reason=error.message)
        finally:
            self._lock.release()

    # -- mastership -------------------------------------------------------------------------------------------------

    async def begin_mastership(self, epoch: int) -> None:
        """This node is the master now: every table gets a version that no table of the old master can have.

        Nothing happens in a mastership that the tables already belong to. Offsets are in memory, and are to be flushed.

        Raises:
            DocumentNotSaved: the table of topics or groups stands as it was.
        """
        self.epoch = max(self.epoch, epoch)
        for table in (self.topics, self.groups):
            if table.content.version.state_version < epoch:
                await self.change(table, lambda table=table: table.touch(self.stamp()))  # type: ignore[misc]
        if self.offsets.version.state_version < epoch or self.offsets.followed:
            self.offsets.begin_mastership(self.stamp())
            self.changed(TableKind.CONSUMER_OFFSETS, None)
        if self.delays.version.state_version < epoch:
            self.delays.changed(self.stamp())
            self.changed(TableKind.DELAY_OFFSETS, None)

    # -- files ------------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        for kind, document in self._documents.items():
            table = self.table(kind)
            found = document.load(table.read)
            if found is None:
                continue
            if isinstance(table, ConfigTable):
                table.content = table.read(found)
            else:
                table.load(found)

    async def _write_now(self, kind: TableKind) -> None:
        table = self.table(kind)
        content = table.content
        await self._write(kind, lambda: table.document(content))

    async def _write(self, kind: TableKind, document: Callable[[], dict[str, Any]]) -> None:
        """Make the document and write it, on a thread: both take long when a table is large."""
        try:
            await asyncio.to_thread(lambda: self._documents[kind].save(document()))
        except DocumentNotSaved as error:
            self.problems[kind] = error.message
            self.write_failures[kind] += 1
            raise
        self.problems.pop(kind, None)


async def _to_its_end(work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Wait for work that goes on when the caller is cancelled; what it raises then is told to nobody."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return await asyncio.shield(task)


async def flush_for_ever(keeper: Keeper, kind: TableKind, seconds: float, timers: Timers) -> None:
    """Writes an offset table again and again; a failure is told, and tried again next time."""
    while True:
        await timers.sleep(seconds)
        try:
            await keeper.flush(kind)
        except DocumentNotSaved as error:
            log.error("table not saved", table=kind.file_name, reason=error.message)
        except Exception as error:  # noqa: BLE001 - what was not written is tried again
            log.failure("table not saved", error, table=kind.file_name)
