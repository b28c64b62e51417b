"""When delivery works: on a master whose journal is read, and on nobody else."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol

from tandemmq.common.log_output import get_log
from tandemmq.common.timers import time_limit
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.log.message_store import MessageStore

log = get_log(__name__)

_RETRY_SECONDS = 1.0


class MasterService(Protocol):
    """Something that works while this store is the master and its deliveries are known: timers, check-backs, polls."""

    def start(self) -> None:
        """Begin, with the ledger as it is now."""
        ...

    async def stop(self) -> None:
        """End, and hold nothing of the ledger any more: it may be another one's next time. `start` may follow."""
        ...


class Lifecycle:
    """Starts the services when the store is a master and its deliveries are known, and stops them when it is not."""

    def __init__(
        self,
        store: MessageStore,
        journal: Journal,
        make_ready: Callable[[], Awaitable[None]],
        follow: Callable[[], None],
    ) -> None:
        """`make_ready` brings the ledger to the state of the journal and opens it; cancelled, it may be called again.

        `follow` drops what this store knows of its own, and has it follow the journal of a master.
        """
        self.services: list[MasterService] = []
        """In the order in which they are started; they are stopped in the reverse order."""
        self._store = store
        self._journal = journal
        self._make_ready = make_ready
        self._follow = follow
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._running: list[MasterService] = []
        self._closing = False
        self._following = False
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def delivering(self) -> bool:
        """Whether messages are given out now."""
        return self._begun

    @property
    def opening(self) -> bool:
        """Whether this master has yet to find out how far groups are."""
        return self._may_deliver and not self._begun

    async def ready(self) -> None:
        """Wait until messages are given out."""
        while not self._begun:
            await self._news()

    async def begun(self, seconds: float) -> None:
        """Wait for a master that is about to give out messages, at most so long; others are not waited for."""
        with contextlib.suppress(TimeoutError):
            async with time_limit(self._store.timers, seconds):
                while self._may_deliver and not self._begun:
                    await self._news()

    @property
    def _begun(self) -> bool:
        return bool(self._running) and self._journal.open

    async def _news(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def _tell_waiters(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def start(self) -> None:
        """Follow the role of the store from now on."""
        self._store.replica.mastership.changed.listen(self._role_changed)
        self._changed.set()
        self._task = asyncio.create_task(self._run(), name="lifecycle of delivery")

    async def stop(self) -> None:
        """End: the services first, and what was noted is written."""
        self._closing = True
        self._tell_waiters()
        self._changed.set()
        if self._task is not None:
            await self._task
            self._task = None

    def _role_changed(self) -> None:
        if not self._may_deliver:
            self._journal.drop()
            self._tell_waiters()
        self._changed.set()

    @property
    def _may_deliver(self) -> bool:
        mastership = self._store.replica.mastership
        return not mastership.is_slave and not mastership.fenced_by and not self._closing

    def _ended(self) -> bool:
        return self._closing

    async def _run(self) -> None:
        while not self._ended():
            await self._changed.wait()
            self._changed.clear()
            if self._may_deliver and not self._journal.open:
                await self._end()
                self._following = False
                await self._begin()
            elif not self._may_deliver and not self._ended() and not self._following:
                await self._end()
                self._following = True
                self._follow()
        await self._end()
        self._journal.close()

    async def _begin(self) -> None:
        epoch = self._store.replica.mastership.epoch
        making = asyncio.ensure_future(self._make_ready())
        while not making.done():
            changed = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait((making, changed), return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            if not making.done() and not (self._may_deliver and self._store.replica.mastership.epoch == epoch):
                making.cancel()
                await asyncio.gather(making, return_exceptions=True)
            else:
                self._changed.clear()
        try:
            making.result()
        except asyncio.CancelledError:
            self._changed.set()
            return
        except Exception as error:  # noqa: BLE001 - sends and pulls go on; this is tried again
            log.failure("delivery cannot begin", error)
            self._store.timers.call_later(_RETRY_SECONDS, self._changed.set)
            return
        if not self._may_deliver:
            self._journal.drop()
            self._changed.set()
            return
        self._running = list(self.services)
        for service in self._running:
            service.start()
        self._tell_waiters()
        log.info("delivering", places=len(self._journal.ledger), epoch=epoch)

    async def _end(self) -> None:
        running, self._running = self._running, []
        for service in reversed(running):
            try:
                await service.stop()
            except Exception as error:  # noqa: BLE001 - the others must stop too
                log.failure("a part of delivery did not stop", error, part=type(service).__name__)
