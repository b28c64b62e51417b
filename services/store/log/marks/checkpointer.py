"""Making the derived files durable, and writing down how far that is (RocketMQ: ``FlushConsumeQueueService``).

Each second the consume queues with enough dirty pages are synced. Now and then, and when enough log lies after the
last time, everything is synced up to one log offset, and manifest and checkpoint say so; recovery begins there.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from tandemmq.common.slices import Slices, each
from tandemmq.store.log.dispatch import Dispatcher
from tandemmq.store.log.edges.threads import in_thread
from tandemmq.store.log.errors import FlushFailed
from tandemmq.store.log.index.index import Index
from tandemmq.store.log.index.index_file import IndexFile
from tandemmq.store.log.marks.manifest import Manifest, read_manifest, write_manifest
from tandemmq.store.log.marks.running_flags import Reason, RunningFlags
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.queues.consume_queue import ConsumeQueue
from tandemmq.store.log.queues.unsynced import Unsynced, final_sync, sync_files, sync_names
from tandemmq.store.log.segments.flush import GroupCommit

log = logging.getLogger(__name__)
_PAGE = 4096


class Checkpointer:
    """Syncs consume queues and index by time and amount, and takes checkpoints."""

    def __init__(
        self, parts: StoreParts, flags: RunningFlags, flush: GroupCommit, dispatcher: Dispatcher, recorded: int
    ) -> None:
        """Work on ``parts``; ``dispatcher`` says how far the derived files have come.

        ``flush`` how far the log is durable. ``recorded``: position of the manifest that is on disk; 0 if none counts.
        """
        self._parts = parts
        self._flags = flags
        self._flush = flush
        self._dispatcher = dispatcher
        self._last_position = dispatcher.position
        self.recorded = recorded
        """Of what lies below this offset of the log, a manifest on disk knows the queues' bounds."""
        self._expires_below = 0
        self._last_thorough = 0.0  # no timers yet: a store is opened in a thread
        self._task: asyncio.Task[None] | None = None
        self._busy = asyncio.Lock()
        self.complete = True  # False while a rebuild is under way: what is missing must not be written down as complete

    def start(self) -> None:
        """Begin the timed work."""
        self._last_thorough = self._parts.timers.time()
        self._task = asyncio.create_task(self._run(), name="checkpoints")

    async def stop(self) -> None:
        """End the timed work, but not in the middle of a sync; `take` may still be called."""
        if self._task is not None:
            async with self._busy:
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        config = self._parts.config
        while not self._flags.holds(Reason.FLUSH_FAILED):
            await self._parts.timers.sleep(config.flush_interval_consume_queue / 1000)
            behind = self._dispatcher.position - self._last_position
            due = self._parts.timers.time() - self._last_thorough >= config.flush_consume_queue_thorough_interval / 1000
            news = behind > 0 or self._parts.confirmed.mark != self._parts.checkpoint.value.confirm
            try:
                if behind >= config.checkpoint_log_bytes or (due and news):
                    await self.take()
                else:
                    await self._sync_dirty(config.flush_consume_queue_least_pages * _PAGE)
            except Exception as error:  # this task must outlive whatever happens in it
                log.exception("No checkpoint can be taken, the last one stands: %s", error)
                self._parts.observer.failed("checkpoint")

    async def _sync_dirty(self, least: int) -> None:
        async with self._busy:
            await self._sync_all(least, None)

    async def take(self) -> None:
        """Sync log, queues and index up to one offset, then write manifest and checkpoint.

        Raises:
            FlushFailed: something could not be made durable; the store is read-only from here on.
            OSError: manifest or checkpoint could not be written; the old ones stand.
        """
        async with self._busy:
            parts, complete = self._parts, self.complete
            bounds = await parts.queues.bounds_in_slices(Slices(parts.timers))
            complete = complete and self.complete
            # From here on without a pause: all of it is of the moment of the bounds.
            begin = max(parts.files.files[0].start if parts.files.files else 0, self._expires_below)
            position, timestamp = self._dispatcher.position, self._dispatcher.last_store_timestamp
            counts = parts.index.counts() if parts.index is not None else []
            if not await self._flush.wait(position):
                raise FlushFailed("The commit log could not be made durable.")
            await self._sync_all(0, parts.index)
            if complete:
                await in_thread(self._write, begin, position, timestamp, bounds, counts)
                self.recorded = position
            self._last_position = position
            self._last_thorough = self._parts.timers.time()

    async def expire_below(self, begin: int) -> None:
        """Let the manifest on disk, and each that follows, say that files below log offset ``begin`` have expired.

        Raises OSError: the old one stands.
        """
        before, self._expires_below = self._expires_below, begin  # a checkpoint may come before the files have gone
        try:
            await self.rewrite(lambda manifest: replace(manifest, begin=begin))
        except OSError:
            self._expires_below = before
            raise

    async def rewrite(self, change: Callable[[Manifest], Manifest]) -> None:
        """Change what the manifest on disk says, between two checkpoints. Raises OSError: the old one stands."""
        async with self._busy:
            await in_thread(self._rewrite, change)

    def _rewrite(self, change: Callable[[Manifest], Manifest]) -> None:
        root = self._parts.config.store_path_root_dir
        manifest = read_manifest(root)
        if manifest is not None:  # without one the next start trusts nothing anyhow
            write_manifest(root, change(manifest), self._parts.disk)

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Take a checkpoint, and let it stand for the length of the block: files are synced, but no manifest written.

        Raises as `take`.
        """
        await self.take()
        self.complete = False
        try:
            async with self._busy:  # one that began before it was held ends first
                pass
            yield
        finally:
            self.complete = True

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[bool]:
        """No checkpoint is taken for the length of the block; True: nor are derived files made anew or exchanged."""
        async with self._busy:
            yield self.complete

    async def _sync_all(self, least: int, index: Index | None) -> None:
        """Sync queues with so many dirty bytes, and the index. A disk that has failed is never asked again.

        It may have lost the pages.
        """
        if self._flags.holds(Reason.FLUSH_FAILED):
            raise FlushFailed("The disk has failed; nothing more is made durable.")
        dirty: list[tuple[ConsumeQueue, Unsynced]] = []
        files, names = index.take_dirty() if index is not None else ([], [])

        def take(queue: ConsumeQueue) -> None:
            if queue.dirty_bytes >= least and queue.is_dirty:
                dirty.append((queue, queue.take_dirty()))

        try:
            await each(take, self._parts.queues.opened, Slices(self._parts.timers))
            if not dirty and not files and not names:
                return
            await in_thread(self._sync, [taken for _, taken in dirty], files, names)
        except BaseException as error:
            for queue, taken in dirty:
                queue.mark_dirty(taken)
            if index is not None:
                index.mark_dirty(files, names)
            if isinstance(error, FlushFailed):
                self._fail(error)
            raise

    def _fail(self, error: Exception) -> None:
        if self._flags.set(Reason.FLUSH_FAILED, str(error).rstrip(".")):
            log.critical("The store is read-only from here on, the disk failed: %s", error)
            self._parts.observer.failed("flush")

    def _sync(self, queues: Sequence[Unsynced], files: Iterable[IndexFile], names: Iterable[Path]) -> None:
        """Sync queues and index, files before names; in a thread. Raises as `sync_files`."""
        disk = self._parts.disk
        for taken in queues:
            sync_files(disk, taken.files)
        for file in files:
            with final_sync():
                file.file.sync()
        sync_names(disk, {*names, *(directory for taken in queues for directory in taken.directories)})

    def _write(
        self,
        begin: int,
        position: int,
        timestamp: int,
        bounds: dict[tuple[str, int], tuple[int, int]],
        counts: list[tuple[str, int]],
    ) -> None:
        """Write the manifest first: until the checkpoint beside it agrees, nobody believes it."""
        parts = self._parts
        times = (timestamp, timestamp, timestamp if parts.index is not None else 0)
        root = parts.config.store_path_root_dir
        before = parts.checkpoint.value
        previous = (before.physic, before.logics, before.index)
        damaged = len(parts.damage.lasting)
        manifest = Manifest(times, position, bounds, counts, previous=previous, begin=begin, damaged=damaged)
        write_manifest(root, manifest, parts.disk)
        parts.checkpoint.write(*times)
