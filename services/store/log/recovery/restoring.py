"""Running the rebuilds that recovery, or a query, asked for, in the background, until they are done."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from tandemmq.common.timers import time_limit
from tandemmq.store.log.errors import NotWritable
from tandemmq.store.log.marks.checkpointer import Checkpointer
from tandemmq.store.log.parts import RecoveryReport, StoreParts
from tandemmq.store.log.recovery.rebuild import Rebuild, rebuild_index

log = logging.getLogger(__name__)
_AGAIN_SECONDS = 10
_LOOK_AFTER_SECONDS = 1.0  # the start has other things to do first
_SLICE_SECONDS = 0.001
_PAUSE_SECONDS = 0.004


class Restoring:
    """The rebuilds of one store's life."""

    def __init__(
        self, parts: StoreParts, recovery: RecoveryReport, checkpointer: Checkpointer, dispatched: Callable[[], int]
    ) -> None:
        """Prepare; `start` begins where something is missing.

        ``dispatched``: log offset up to which queues and index are complete, but for what is missing.
        """
        self._parts = parts
        self._recovery = recovery
        self._checkpointer = checkpointer
        self._dispatched = dispatched
        self._task: asyncio.Task[None] | None = None
        self._look: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._tail = recovery.began_at
        self._queues_lack = recovery.queues_to_rebuild > 0 or not parts.offsets.all_known
        parts.queues.lost.listen(self._restore_queues)

    def start(self) -> None:
        """Begin if anything is missing. Until it is restored no checkpoint counts as complete.

        And look at the queues that nobody has used yet.
        """
        self._look = asyncio.create_task(self._look_at_queues(), name="look at queues")
        if self._queues_lack or not self._recovery.index_complete:
            self._begin()

    def _begin(self) -> None:
        self._checkpointer.complete = False
        if not self.running and self._look is not None:
            self._task = asyncio.create_task(self._run(), name="rebuild")

    def _restore_queues(self) -> None:
        """A queue lacks files, as is found only now: its units below what is dispatched are to come back."""
        self._tail, self._queues_lack = self._dispatched(), True
        self._begin()

    async def _look_at_queues(self) -> None:
        """Open the queues that nobody has used yet, in slices, so that those that lack files are found soon."""
        with suppress(TimeoutError):
            async with time_limit(self._parts.timers, _LOOK_AFTER_SECONDS):
                await self._wanted.wait()
        until = self._parts.timers.elapsed() + _SLICE_SECONDS
        for name in list(self._parts.queues.names()):
            try:
                self._parts.queues.get(*name)
            except Exception as error:  # whoever uses it tries again
                log.exception("Queue %d of topic %s cannot be looked at: %s", name[1], name[0], error)
                self._parts.observer.failed("rebuild")
            if self._parts.timers.elapsed() >= until:
                await self._parts.timers.sleep(_PAUSE_SECONDS)
                until = self._parts.timers.elapsed() + _SLICE_SECONDS

    async def looked(self) -> None:
        """Wait until all queues were looked at: none is found to lack files after that."""
        self._wanted.set()
        if self._look is not None and not self._look.done():
            await asyncio.wait([self._look])

    def restore_index(self) -> None:
        """Make the index anew, beside the present one; nothing where that is under way."""
        if self._recovery.index_complete:
            self._recovery.index_complete = False
            self._begin()

    @property
    def running(self) -> bool:
        """Whether missing derived files are being restored."""
        return self._task is not None and not self._task.done()

    async def index_anew(self) -> None:
        """Rebuild the index, because entries of records that were damaged are missing; then take a checkpoint."""
        self._recovery.index_complete = False
        self._begin()
        await self.wait()

    async def wait(self) -> None:
        """Wait until all queues were looked at, and nothing is being rebuilt."""
        await self.looked()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def stop(self) -> None:
        """Give up; the next start begins anew."""
        tasks = [task for task in (self._look, self._task) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        """Restore what is missing; where the disk has no room for it, as soon as it has."""
        while True:
            try:
                await self._once()
                if self._recovery.index_complete and not self._queues_lack:
                    return
            except (OSError, NotWritable) as error:
                log.error("A rebuild stopped, and begins anew in %d s: %s", _AGAIN_SECONDS, error)
                self._parts.observer.failed("rebuild")
                await self._parts.timers.sleep(_AGAIN_SECONDS)
            except Exception as error:  # whatever it was, the store serves on, and someone must hear of it
                log.exception("A rebuild stopped; it begins anew at the next start: %s", error)
                self._parts.observer.failed("rebuild")
                return

    async def _once(self) -> None:
        await self.looked()
        if self._queues_lack:
            self._queues_lack = False
            try:
                # First of all: a crash may leave the end of a queue restored and its middle not.
                await self._checkpointer.rewrite(lambda manifest: replace(manifest, rebuilding=True))
                rebuild = Rebuild(self._parts, self._tail)
                await rebuild.repair_queues()
            except BaseException:
                self._queues_lack = True
                raise
            if self._recovery.manifest_current and rebuild.units_restored:  # else units may be missing: it crashed
                self._parts.observer.found("unit", rebuild.units_restored)
        if not self._recovery.index_complete:
            await rebuild_index(self._parts)
            self._recovery.index_complete = True
        if not self._queues_lack:
            self._checkpointer.complete = True
            await self._checkpointer.take()
