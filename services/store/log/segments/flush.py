"""Making the commit log durable: group commit (RocketMQ: ``GroupCommitService``, ``FlushRealTimeService``).

One thread calls ``fdatasync`` (`syncing`); one call completes every waiter up to there while the next group gathers. It
runs from the beginning, since memory may be too short later for a thread to start. A failed sync is never retried (the
kernel may have thrown the pages away and marked them clean): from then on nothing is acknowledged. Whatever else goes
wrong here counts as a failed sync, or the store would take messages that nobody makes durable.
"""

import asyncio
import logging
import math
from collections.abc import Callable

from tandemmq.store.log.edges.offset_waiters import OffsetWaiters, Told, settling
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.segments.commit_log import CommitLog
from tandemmq.store.log.segments.syncing import PoolSyncs, Syncs

log = logging.getLogger(__name__)
_PAGE = 4096


class GroupCommit:
    """Flushes a commit log and tells who waits.

    All methods run on the event loop; only the sync itself is in a thread.
    """

    def __init__(
        self,
        parts: StoreParts,
        commit_log: CommitLog,
        on_flushed: Callable[[], None],
        on_failed: Callable[[OSError], None],
        flushed_offset: int,
    ) -> None:
        """Begin with everything below ``flushed_offset`` durable. ``on_flushed`` is called after each group.

        Raises NoThreads.
        """
        self._config = parts.config
        self._log = commit_log
        self._observer = parts.observer
        self._timers = parts.timers
        self._on_flushed = on_flushed
        self._on_failed = on_failed
        self._syncs: Syncs = PoolSyncs()
        self._waiters = OffsetWaiters(parts.timers)
        self._running = False
        self._timer: asyncio.Task[None] | None = None
        self.flushed_offset = flushed_offset
        self.failed: OSError | None = None

    def begin_at(self, offset: int) -> None:
        """An empty log begins at ``offset``: there is nothing below it to flush."""
        self.flushed_offset = offset

    def start(self) -> None:
        """Begin the timed flushes."""
        self._timer = asyncio.create_task(self._flush_by_time(), name="flush by time")

    async def stop(self) -> None:
        """Flush what is left and end the thread."""
        if self._timer is not None:
            self._timer.cancel()
        await self.flush_all()
        self._syncs.close()

    def sync_by(self, syncs: Syncs) -> None:
        """Have groups synced by another thread. Call before the first."""
        self._syncs.close()
        self._syncs = syncs

    async def flush_all(self) -> bool:
        """Flush up to the present end of the log; False if that failed."""
        return await self.wait(self._log.max_offset)

    def wait(self, offset: int) -> "asyncio.Future[bool]":
        """Give a future that becomes True when the log is durable up to ``offset``, False when it cannot be made so."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._tell(offset, settling(future))
        return future

    def when_flushed(self, offset: int, told: Told) -> None:
        """Tell whether the log is durable up to ``offset``: now, later, or False when ``syncFlushTimeout`` has passed.

        That is FLUSH_DISK_TIMEOUT: the record is in the log.
        """
        self._tell(offset, told, self._config.sync_flush_timeout / 1000)

    def _tell(self, offset: int, told: Told, seconds: float = math.inf) -> None:
        if self.failed is not None:
            told(False)
        elif offset <= self.flushed_offset:
            told(True)
        else:
            self._waiters.add(offset, told, seconds)
            self._kick()

    def begin_next(self) -> None:
        """Begin a group at the end of this turn of the loop, or when the one that runs has ended and somebody waits."""
        self._kick()

    def _kick(self) -> None:
        """Start a group unless one is running; the running one starts the next when it ends."""
        if not self._running and self.failed is None:
            self._running = True
            # Not at once: everything that is ready in this turn of the loop may join the group.
            self._timers.call_soon(self._begin_group)

    def _begin_group(self) -> None:
        try:
            self._sync_group()
        except Exception as error:  # noqa: BLE001 - whatever it was, nothing is durable
            self._running = False
            self._fail(error)

    def _sync_group(self) -> None:
        """Hand to the thread what there is to sync. Raises whatever comes."""
        begin, end = self.flushed_offset, self._log.max_offset
        files = [file for file in self._log.files if file.end > begin and file.start < end]
        self._log.files.put_back_deleted(files)
        begun = self._timers.time()
        # The older file first: an acknowledgement covers everything below its offset.
        self._syncs.begin(files, lambda error: self._end_group(error, end, self._timers.time() - begun))

    def _end_group(self, error: BaseException | None, end: int, seconds: float) -> None:
        self._running = False
        if error is not None:
            self._fail(error)
            return
        try:
            self._complete(end, seconds)
        except Exception as unforeseen:  # noqa: BLE001 - as above
            self._fail(unforeseen)

    def _complete(self, end: int, seconds: float) -> None:
        """A group is on disk: tell whoever waits for it."""
        self._observer.flushed(seconds, end - self.flushed_offset)
        self.flushed_offset = end
        # Visible before acknowledged: who is told of the flush may pull at once.
        self._on_flushed()
        self._waiters.reached(end)
        if self._waiters:
            self._kick()

    def _fail(self, error: BaseException) -> None:
        """Nothing is durable from here on that is not yet; ``error``: why. The reason is said once."""
        if self.failed is None:
            if not isinstance(error, OSError):
                log.error("Making messages durable met what it should not", exc_info=error)
                error = OSError(f"{type(error).__name__}: {error}")
            self.failed = error
            self._on_failed(error)
        self._waiters.fail()

    async def _flush_by_time(self) -> None:
        try:
            await self._flush_at_intervals()
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(error)

    async def _flush_at_intervals(self) -> None:
        """ASYNC_FLUSH: at each interval if enough pages are dirty or a file was completed.

        Now and then whatever there is.
        """
        config = self._config
        last_thorough = self._timers.time()
        while self.failed is None:
            await self._timers.sleep(config.flush_interval_commit_log / 1000)
            thorough = self._timers.time() - last_thorough >= config.flush_commit_log_thorough_interval / 1000
            dirty = self._log.max_offset // _PAGE - self.flushed_offset // _PAGE
            if thorough:
                last_thorough = self._timers.time()
            if self._log.max_offset > self.flushed_offset and (
                thorough or self._rolled() or dirty >= config.flush_commit_log_least_pages
            ):
                await self.flush_all()

    def _rolled(self) -> bool:
        """Whether a file was completed that is not durable. Holds none: the last to let one go frees all its pages."""
        file = self._log.files.find(self.flushed_offset)
        return file is not None and file is not self._log.files.last
