"""Running the rebuilds that recovery, or a query, asked for, in the background, until they are done."""

import asyncio
import logging
from dataclasses import replace

from tandemmq.store.log.errors import NotWritable
from tandemmq.store.log.marks.checkpointer import Checkpointer
from tandemmq.store.log.parts import Parts, RecoveryReport
from tandemmq.store.log.recovery.rebuild import Rebuild, rebuild_index

log = logging.getLogger(__name__)
_AGAIN_SECONDS = 10


class Restoring:
    """The rebuilds of one store's life."""

    def __init__(self, parts: Parts, recovery: RecoveryReport, checkpointer: Checkpointer) -> None:
        """Prepare; `start` begins where something is missing."""
        self._parts = parts
        self._recovery = recovery
        self._checkpointer = checkpointer
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin if anything is missing. Until it is restored no checkpoint counts as complete."""
        queues = self._recovery.queues_to_rebuild > 0 or not self._parts.offsets.all_known
        if queues or not self._recovery.index_complete:
            self._checkpointer.complete = False
            self._task = asyncio.create_task(self._run(queues), name="rebuild")

    def restore_index(self) -> None:
        """Make the index anew, beside the present one; nothing where that is under way."""
        if not self._recovery.index_complete:
            return
        self._recovery.index_complete = self._checkpointer.complete = False
        if not self.running:
            self._task = asyncio.create_task(self._run(queues=False), name="rebuild")

    @property
    def running(self) -> bool:
        """Whether missing derived files are being restored."""
        return self._task is not None and not self._task.done()

    async def index_anew(self) -> None:
        """Rebuild the index, because entries of records that were damaged are missing; then take a checkpoint."""
        self._recovery.index_complete = self._checkpointer.complete = False
        self._task = asyncio.create_task(self._run(queues=False), name="rebuild")
        await self.wait()

    async def wait(self) -> None:
        """Wait until nothing is being rebuilt."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def stop(self) -> None:
        """Give up; the next start begins anew."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, queues: bool) -> None:
        """Restore what is missing; where the disk has no room for it, as soon as it has."""
        while True:
            try:
                await self._once(queues)
                if self._recovery.index_complete:
                    return
            except (OSError, NotWritable) as error:
                log.error("A rebuild stopped, and begins anew in %d s: %s", _AGAIN_SECONDS, error)
                self._parts.observer.failed("rebuild")
                await self._parts.timers.sleep(_AGAIN_SECONDS)
            except Exception as error:  # whatever it was, the store serves on, and someone must hear of it
                log.exception("A rebuild stopped; it begins anew at the next start: %s", error)
                self._parts.observer.failed("rebuild")
                return

    async def _once(self, queues: bool) -> None:
        if queues:
            # First of all: a crash may leave the end of a queue restored and its middle not.
            await self._checkpointer.rewrite(lambda manifest: replace(manifest, rebuilding=True))
            await Rebuild(self._parts, self._recovery.began_at).repair_queues()
        if not self._recovery.index_complete:
            await rebuild_index(self._parts)
            self._recovery.index_complete = True
        self._checkpointer.complete = True
        await self._checkpointer.take()
