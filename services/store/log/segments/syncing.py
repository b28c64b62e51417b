"""Making files durable beside the event loop, one group of files after the other.

By a pool of one thread; or, where the compiled core is used, by a thread that never takes the interpreter's lock: a
busy loop neither waits for it, nor lets it wait.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Protocol

from tandemmq.common.processes.started_pool import started_pool
from tandemmq.store.log.segments.mapped_file import MappedFile

Synced = Callable[[BaseException | None], None]
"""Hears, on the loop, that files are durable, or why they are not."""


class Syncs(Protocol):
    """All methods on the event loop."""

    def begin(self, files: Sequence[MappedFile], synced: Synced) -> None:
        """Sync files in their order, and tell. Nothing else begins before."""
        ...

    def close(self) -> None:
        """End the thread, after what it is at; that is told as ever."""
        ...


class PoolSyncs:
    """See `Syncs`; the thread runs from the beginning."""

    def __init__(self) -> None:
        """Raises NoThreads."""
        self._pool = started_pool(1, "tandem-flush")

    def begin(self, files: Sequence[MappedFile], synced: Synced) -> None:
        """See `Syncs`."""

        def sync() -> None:
            for file in files:
                file.sync()

        running = asyncio.get_running_loop().run_in_executor(self._pool, sync)
        running.add_done_callback(lambda result: synced(error_of(result)))

    def close(self) -> None:
        """See `Syncs`."""
        self._pool.shutdown(wait=True)


def error_of(result: "asyncio.Future[None]") -> BaseException | None:
    """Why a sync failed; one that was cancelled has not said that the disk has it."""
    return OSError("the sync was cancelled") if result.cancelled() else result.exception()


class SyncingThread(Protocol):
    """The compiled one: `tandemmq.store.log.compiled.sync_thread.SyncThread`."""

    @property
    def done(self) -> int:
        """The eventfd that says that files are durable, or cannot be made so."""
        ...

    def begin(self, files: list[int], /) -> None:
        """Sync files, in this order; they stay open until `ended` has said so."""
        ...

    def ended(self) -> int:
        """The number of the error with which that has ended, 0 for none; -1: it has not ended yet."""
        ...

    def close(self) -> int:
        """End the thread, after what it is at. Gives what `ended` would have; -1: there was nothing."""
        ...


class ThreadSyncs:
    """See `Syncs`."""

    def __init__(self, thread: SyncingThread) -> None:
        self._thread = thread
        self._loop: asyncio.AbstractEventLoop | None = None
        self._files: Sequence[MappedFile] = ()
        """What is synced at present: it must stay open."""
        self._synced: Synced | None = None

    def begin(self, files: Sequence[MappedFile], synced: Synced) -> None:
        """See `Syncs`."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._thread.done, self._ended)
        self._thread.begin([file.fd for file in files])
        self._files, self._synced = files, synced

    def _ended(self) -> None:
        self._tell(self._thread.ended())

    def _tell(self, code: int) -> None:
        synced = self._synced
        if code < 0 or synced is None:
            return
        self._files, self._synced = (), None
        synced(OSError(code, os.strerror(code)) if code else None)

    def close(self) -> None:
        """See `Syncs`."""
        if self._loop is not None:
            self._loop.remove_reader(self._thread.done)
            self._loop = None
        self._tell(self._thread.close())
