"""Waiting for a queue to get a message, or for the store to stop."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from tandemmq.common.timers import first_of
from tandemmq.store.broker.errors import StoreStopping
from tandemmq.store.broker.pull import Puller
from tandemmq.store.broker.pulled import NOTHING_YET, PullAnswer, PullStatus, Wanted
from tandemmq.store.log.errors import QueueInDoubt
from tandemmq.store.log.message_store import MessageStore

_DOUBT_SECONDS = 5.0
"""A reader waits so long for a queue that is being put right; then it is told to try again."""

Room = Callable[[int], Awaitable[None]]
"""Waits until an answer of so many bytes may be made; it may raise."""


class LongPolls:
    """Those who wait. Once stopped, nobody waits any more."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._waiting: set[asyncio.Future[None]] = set()
        self.stopped = False

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        *,
        deadline: float | None = None,
        until: "asyncio.Future[None] | None" = None,
    ) -> bool:
        """Wait until the queue has a message at `offset`.

        False if the clock of the store's timers reaches `deadline`, or `until` is done, before that.

        The queue need not have been written to yet, but the caller has made sure that it may be.

        Raises:
            StoreStopping: the store stops.
        """
        if self.stopped:
            raise StoreStopping(_STOPPING, remedy=_LATER)
        future = self._store.ensure_queue(topic, queue_id).wait_beyond(offset)
        timers = self._store.timers
        seconds = None if deadline is None else deadline - timers.time()
        self._waiting.add(future)
        try:
            others = () if until is None else (until,)
            await first_of(timers, (future, *others), seconds)
            if self.stopped:
                raise StoreStopping(_STOPPING, remedy=_LATER)
            return future.done()
        finally:
            self._waiting.discard(future)
            future.cancel()

    def stop(self) -> None:
        """End every wait, and every later one, with StoreStopping."""
        self.stopped = True
        for future in tuple(self._waiting):
            future.cancel()

    async def pull_now(self, puller: Puller, wanted: Wanted, room: Room | None = None) -> PullAnswer:
        """Pull; where the queue does not fit the log, wait a moment until it is put right.

        `room` is awaited before each look with the most bytes that it may give. Raises as `Puller.pull` and `room`.
        """
        if room is not None:
            await _room_for(puller, wanted, room)
        try:
            return puller.pull(wanted)
        except QueueInDoubt:
            if not await self._store.repairs.settled(wanted.topic, wanted.queue_id, _DOUBT_SECONDS):
                raise
            if room is not None:
                await _room_for(puller, wanted, room)
            return puller.pull(wanted)

    async def pull(self, puller: Puller, wanted: Wanted, wait_seconds: float, room: Room | None = None) -> PullAnswer:
        """Pull, and if there is nothing, wait for it; NO_NEW_MESSAGE when the time is over.

        With a tag filter it goes on after messages that do not match. Raises as `pull_now` and `wait`.
        """
        timers = self._store.timers
        deadline = timers.time() + wait_seconds
        while True:
            pulled = await self.pull_now(puller, wanted, room)
            if pulled.status is PullStatus.NO_MATCHED_MESSAGE and timers.time() < deadline:
                wanted = replace(wanted, offset=pulled.next_offset)
                await asyncio.sleep(0)  # a queue full of other tags must not hold up everybody else
                continue
            if wait_seconds <= 0 or pulled.status not in NOTHING_YET:
                return pulled
            if not await self.wait(wanted.topic, wanted.queue_id, pulled.next_offset, deadline=deadline):
                return replace(pulled, status=PullStatus.NO_NEW_MESSAGE)


async def _room_for(puller: Puller, wanted: Wanted, room: Room) -> None:
    """Wait for room; again for more where the queue has grown meanwhile. Raises as `room`."""
    has = -1
    while has < wanted.max_bytes and (needs := puller.most_bytes(wanted)) > has:
        await room(needs)
        has = needs


_STOPPING = "The store stops."
_LATER = "Pull again when it is back."
