"""Groups and topics that were deleted where their table is kept: their places are none any more.

That is a fact of the journal like any other, so it is noted where this store delivers, once, whenever the deletion was:
a table remembers it until it is noted and safe.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.slices import Slices
from tandemmq.common.timers import Timers
from tandemmq.store.delivery.journal.facts import Forgotten, Place
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.log.event import Event

log = get_log(__name__)

_RETRY_SECONDS = 1.0


class RemembersDeletions(Protocol):
    """A table of groups or of topics; see `broker.watched_table.WatchedTable`."""

    gone: frozenset[str]
    removed: Event

    def settled(self, names: frozenset[str]) -> None:
        """All that follows from the deletion of these entries is done."""
        ...


class Deletions:
    """Notes them; a service of the master."""

    def __init__(
        self, journal: Journal, groups: RemembersDeletions, topics: RemembersDeletions, timers: Timers
    ) -> None:
        self._journal = journal
        self._groups = groups
        self._topics = topics
        self._timers = timers
        self._more = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._endings: list[Callable[[], None]] = []

    def start(self) -> None:
        """Note what was deleted before, and what is from now on."""
        self._more.set()
        self._endings = [table.removed.listen(self._more.set) for table in (self._groups, self._topics)]
        self._task = asyncio.create_task(self._run(), name="deleted groups and topics")

    async def stop(self) -> None:
        """End; what is not noted is at the next start."""
        for end in self._endings:
            end()
        self._endings.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while True:
            await self._more.wait()
            self._more.clear()
            try:
                await self._note()
            except TandemError as error:
                log.warning("a deletion is not noted yet", reason=error.message)
                await self._timers.sleep(_RETRY_SECONDS)
                self._more.set()

    async def _note(self) -> None:
        """Raises what keeps the journal from being written."""
        groups, topics = self._groups.gone, self._topics.gone
        if not groups and not topics:
            return
        places, slices, ledger = [], Slices(self._timers), self._journal.ledger
        for progress in ledger.all():
            place = progress.place
            is_gone = place.group in groups or place.topic in topics  # whatever is made again meanwhile: all or none
            if is_gone and ledger.progress(place) is progress:
                places.append(place)
                self._journal.note(Forgotten(place))
                self._tell([place])
            await slices.pause()
        await self._journal.safe()
        self._groups.settled(groups)
        self._topics.settled(topics)
        if places:
            log.info("deleted groups and topics are forgotten", places=len(places))

    def _tell(self, places: list[Place]) -> None:
        for hears in self._journal.moved_outside:
            hears(places, frozenset())
