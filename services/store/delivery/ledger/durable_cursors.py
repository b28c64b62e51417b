"""What images of the journal may say: cursors whose facts are durable, and that no take-over undoes."""

from typing import NamedTuple

from tandemmq.common.slices import Slices
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.journal.images import Cursor
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.log.errors import StoreError
from tandemmq.store.log.message_store import MessageStore


class CursorChanges(NamedTuple):
    """What has changed. `mark`: queue offset of the journal record after which nothing of it is."""

    moved: dict[Place, None]
    """All places of it."""
    cursors: list[Cursor]
    gone: list[Place]
    levels: dict[int, int]
    mark: int


class DurableCursors:
    """Gives changes when they may be told outside; for one taker."""

    def __init__(self, store: MessageStore, journal: Journal) -> None:
        self._store = store
        self._journal = journal
        self._levels: dict[int, int] = {}

    async def take(self) -> CursorChanges | None:
        """What has changed since the last call and is durable and confirmed; None if there is nothing, or not yet.

        Of a call that is given up the next one knows all.
        """
        ledger = self._journal.ledger
        if not self._notes():
            return None
        moved, levels = ledger.take_moved(), dict(ledger.levels)
        if not moved and levels == self._levels:
            return None
        changes: CursorChanges | None = None
        try:
            changes = await self._safe(moved, levels)
        finally:
            if changes is None and self._notes():
                ledger.moved_again(moved)
        if changes is not None:
            self._levels = levels
        return changes

    async def _safe(self, moved: dict[Place, None], levels: dict[int, int]) -> CursorChanges | None:
        """What is to be told of places and levels, when it is durable and confirmed; None where it is not."""
        cursors, gone, slices = [], [], Slices(self._store.timers)
        for place in moved:
            progress = self._journal.ledger.progress(place)
            if progress is None:
                gone.append(place)
            else:
                cursors.append(Cursor(place, progress.cursor, progress.resets))
            await slices.pause()
        if not self._notes():
            return None
        changed = {level: offset for level, offset in levels.items() if self._levels.get(level) != offset}
        try:
            end = self._journal.write()
            mark = self._journal.next
            safe = not end or (await self._store.wait_flushed(end) and self._store.confirm_offset >= end)
        except StoreError:
            return None
        return CursorChanges(moved, cursors, gone, changed, mark) if safe else None

    def _notes(self) -> bool:
        """Whether the journal is this store's own."""
        return self._journal.open

    def put_back(self, changes: CursorChanges) -> None:
        """They could not be told: `take` gives what stands then once more."""
        self._journal.ledger.moved_again(changes.moved)
        for level in changes.levels:
            self._levels.pop(level, None)
