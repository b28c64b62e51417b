"""A copy of a metasync's tables that follows what changes there: nobody asks for one topic or group at a time."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import grpc

from tandemmq.admin.nodes import KnownNode
from tandemmq.admin.tables import TABLES, Tables, watched_pages
from tandemmq.common.log_output import get_log
from tandemmq.metadata.v1 import metadata_pb2 as pb

log = get_log(__name__)

UNUSED_SECONDS = 120.0
"""A mirror that nobody has used for so long ends: it need not follow, nor take memory."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 3.0
"""Seconds until the metasync is tried again."""


class Mirror:
    """The tables of one node's metasync. Begins to follow when it is used."""

    def __init__(self, node: KnownNode) -> None:
        self.node = node
        self.tables = Tables()
        self.reason = ""
        """Why it does not follow now; empty while it does, or has not begun."""
        self.current_ms = 0
        """When the tables were last known to be those of the metasync, ms since 1970; 0: never."""
        self._task: asyncio.Task[None] | None = None
        self._used = 0.0
        self._following = False
        self._changed = asyncio.Condition()

    @property
    def following(self) -> bool:
        """Whether the tables are those of the metasync, but for moments."""
        return self._following

    async def use(self) -> bool:
        """Has the tables ready, or gives up after the node's time; whether they are followed now."""
        self._used = time.monotonic()
        if self._task is None or self._task.done():
            self.reason = ""
            self._task = asyncio.create_task(self._live())
        await self._wait(lambda: self._following or bool(self.reason))
        return self._following

    async def see(self, condition: Callable[[Tables], bool]) -> None:
        """Waits until a change that was just made is in the tables; not for ever."""
        if self._following:
            await self._wait(lambda: not self._following or condition(self.tables))

    async def close(self) -> None:
        """Follows no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _wait(self, condition: Callable[[], bool]) -> None:
        if condition():
            return
        try:
            async with asyncio.timeout(self.node.timeout), self._changed:
                await self._changed.wait_for(condition)
        except TimeoutError:
            if not self._following:
                self.reason = self.reason or "no answer in time"

    async def _live(self) -> None:
        """Follows as long as somebody uses it."""
        following = asyncio.create_task(self._follow(), name=f"mirror of {self.node.name}")
        try:
            while (left := self._used + UNUSED_SECONDS - time.monotonic()) > 0:  # noqa: ASYNC110 - `use` only notes the time
                await asyncio.sleep(left)
        finally:
            following.cancel()
            await asyncio.wait([following])
            self.tables, self._following = Tables(), False

    async def _follow(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                async with aclosing(self._transfers()) as transfers:
                    async for _ in transfers:
                        pause = FIRST_PAUSE
                await self._lost("the watch ended")
            except grpc.aio.AioRpcError as error:
                await self._lost(error.details() or error.code().name)
            except Exception as error:  # noqa: BLE001 - whatever it is, admin goes on, and so does this
                log.failure("following a metasync failed", error, node=self.node.name)
                await self._lost(str(error) or type(error).__name__)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _transfers(self) -> AsyncGenerator[None, None]:
        """Applies what comes; yields after each transfer."""
        stub: Any = self.node.metasync
        fresh: Tables | None = Tables()  # whole tables of one watch belong together
        pages = watched_pages()
        call = stub.Watch(pb.WatchRequest(tables=TABLES))
        try:
            async for page in call:
                transfer = pages.take(page)
                if transfer is None:
                    continue
                (fresh or self.tables).apply(transfer)
                if fresh is not None and fresh.whole:
                    self.tables, fresh = fresh, None
                    self._following, self.reason = True, ""
                if self._following:
                    self.current_ms = time.time_ns() // 1_000_000
                    async with self._changed:
                        self._changed.notify_all()
                yield
        finally:
            call.cancel()

    async def _lost(self, reason: str) -> None:
        if self._following:
            self.current_ms = time.time_ns() // 1_000_000
        self._following, self.reason = False, reason
        async with self._changed:
            self._changed.notify_all()
