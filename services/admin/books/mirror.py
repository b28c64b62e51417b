"""A copy of a metasync's tables that follows what changes there: nobody asks for one topic or group at a time."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

from tandemmq.admin.books.tables import TABLES, Tables, watched_pages
from tandemmq.admin.cluster.nodes import KnownNode
from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.calling.followed_peer import FollowedPeer
from tandemmq.common.timers import time_limit
from tandemmq.metadata.v1 import metadata_pb2 as pb

UNUSED_SECONDS = 120.0
"""A mirror that nobody has used for so long ends: it need not follow, nor take memory."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 3.0
"""Seconds until the metasync is tried again."""


class Mirror:
    """The tables of one node's metasync. Begins to follow when it is used."""

    def __init__(self, node: KnownNode) -> None:
        self.node = node
        self.current_ms = 0
        """When the tables were last known to be those of the metasync, ms since 1970; 0: never."""
        self._task: asyncio.Task[None] | None = None
        self._used = 0.0
        self._turn = asyncio.Event()
        self._forget()

    def _forget(self) -> None:
        self.tables = Tables()
        self._peer = FollowedPeer("metadata service", self.node.name, self._tell)

    @property
    def following(self) -> bool:
        """Whether the tables are those of the metasync, but for moments."""
        return self._peer.there

    @property
    def reason(self) -> str:
        """Why it does not follow now; empty while it does, or has not begun."""
        return self._peer.problem

    async def use(self) -> bool:
        """Has the tables ready, or gives up after the node's time; whether they are followed now."""
        self._used = self.node.timers.time()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._live())
        await self._wait(lambda: self.following or bool(self.reason))
        return self.following

    async def see(self, condition: Callable[[Tables], bool]) -> None:
        """Waits until a change that was just made is in the tables; not for ever."""
        if self.following:
            await self._wait(lambda: not self.following or condition(self.tables))

    async def close(self) -> None:
        """Follows no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _wait(self, condition: Callable[[], bool]) -> None:
        try:
            async with time_limit(self.node.timers, self.node.timeout):
                while not condition():
                    await self._turn.wait()
        except TimeoutError:
            if not self.following and not self.reason:
                self._peer.gone("no answer in time")

    def _tell(self) -> None:
        turn, self._turn = self._turn, asyncio.Event()
        turn.set()

    async def _live(self) -> None:
        """Follows as long as somebody uses it."""
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)
        following = asyncio.create_task(self._peer.follow(self._transfers, backoff), name=f"mirror of {self.node.name}")
        try:
            while (left := self._used + UNUSED_SECONDS - self.node.timers.time()) > 0:
                await self.node.timers.sleep(left)
        finally:
            following.cancel()
            await asyncio.wait([following])
            self._forget()

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
                if fresh is None:
                    self.current_ms = time.time_ns() // 1_000_000
                    self._peer.came()
                    self._tell()
                yield
        finally:
            call.cancel()
            if self.following:
                self.current_ms = time.time_ns() // 1_000_000
