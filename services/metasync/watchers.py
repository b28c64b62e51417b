"""Who watches the tables, and what each of them has yet to hear.

A watcher is told keys, not values: what an entry is, it learns when it comes to send it. So a thousand changes of one
entry are one, what it sends is always the table as it is now, and what waits for it is never larger than the table.
Beyond a limit it gets the whole table instead.
"""

import asyncio
from collections.abc import Iterable

from tandemmq.metasync.errors import MetasyncStopping
from tandemmq.metasync.tables import TableKind

MOST_WAITING = 10_000
"""Keys that wait for a watcher; beyond them it gets the whole table."""


class Watcher:
    """One call of Watch."""

    def __init__(self, tables: Iterable[TableKind]) -> None:
        self._waiting: dict[TableKind, set[str] | None] = dict.fromkeys(tables)
        """Keys that changed, by table; None: the whole table is to be sent."""
        self._wanted = frozenset(self._waiting)
        self._wake = asyncio.Event()
        self._wake.set()
        self._stopped = False

    def tell(self, table: TableKind, keys: Iterable[str] | None) -> None:
        """Entries changed; None: the whole table did."""
        if table not in self._wanted:
            return
        self._wake.set()
        waiting = self._waiting.get(table, set())
        if waiting is None:
            return
        if keys is not None:
            waiting.update(keys)
        self._waiting[table] = None if keys is None or len(waiting) > MOST_WAITING else waiting

    def stop(self) -> None:
        """`next` raises from now on."""
        self._stopped = True
        self._wake.set()

    def take(self) -> tuple[TableKind, set[str] | None] | None:
        """What to send next: a table, and the keys that changed or None for all of it. None if there is nothing."""
        if not self._waiting:
            return None
        table = next(iter(self._waiting))
        return table, self._waiting.pop(table)

    async def next(self) -> tuple[TableKind, set[str] | None]:
        """The same, when there is something.

        Raises:
            MetasyncStopping: the service stops.
        """
        while True:
            await self._wake.wait()
            if self._stopped:
                raise MetasyncStopping("The metadata service stops.", remedy="Watch again when it is back.")
            if (found := self.take()) is not None:
                return found
            self._wake.clear()


class Hub:
    """All watchers of a service."""

    def __init__(self) -> None:
        self._watchers: set[Watcher] = set()
        self._stopped = False

    def __len__(self) -> int:
        return len(self._watchers)

    def join(self, tables: Iterable[TableKind]) -> Watcher:
        """A new watcher; it begins with the whole tables."""
        watcher = Watcher(tables)
        self._watchers.add(watcher)
        if self._stopped:
            watcher.stop()
        return watcher

    def leave(self, watcher: Watcher) -> None:
        """The watcher has gone."""
        self._watchers.discard(watcher)

    def tell(self, table: TableKind, keys: Iterable[str] | None) -> None:
        """Entries of a table changed; None: all of it."""
        for watcher in self._watchers:
            watcher.tell(table, keys)

    def stop(self) -> None:
        """End every watch."""
        self._stopped = True
        for watcher in self._watchers:
            watcher.stop()
