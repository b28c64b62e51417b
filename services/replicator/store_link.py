"""The link to the store: one stream for the life of the service, made anew whenever it ends."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

import grpc

from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.calling.followed_peer import FollowedPeer
from tandemmq.common.grpc_transport import Duplex, duplex
from tandemmq.common.timers import Timers, first_of
from tandemmq.replicator.log_view import LogView
from tandemmq.replicator.metrics import ReplicatorMetrics
from tandemmq.store.v1.replica_log_pb2 import LogProgress, ReplicationProgress
from tandemmq.store.v1.replica_log_pb2_grpc import ReplicaLogStub

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 0.25
_LIST_SECONDS = 1.0
"""How often there may be something to tell although nobody said so."""


class StoreLink:
    """Hears the store's word into a `LogView`, and tells it what `source` gives.

    Nothing waits: what the store says reaches the view's observers in the turn of the loop that brought it, and what
    there is to tell when `wake` is called leaves before `wake` returns. `begun` is called before the first question of
    a new stream.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        address: str,
        view: LogView,
        metrics: ReplicatorMetrics,
        source: Callable[[], ReplicationProgress | None],
        begun: Callable[[], None],
        timers: Timers,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._stub = ReplicaLogStub(channel)
        self._view = view
        self._metrics = metrics
        self._source = source
        self._begun = begun
        self._timers = timers
        self._task: asyncio.Task[None] | None = None
        self._link: Duplex[ReplicationProgress, LogProgress] | None = None
        """The stream, once the store has spoken on it: what was known before may be of a log that was longer."""
        self._unsent: ReplicationProgress | None = None
        self.peer = FollowedPeer("store", address)
        metrics.watch_peers(self.peer)

    def start(self) -> None:
        """Begin to dial."""
        backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
        self._task = asyncio.create_task(
            self.peer.follow(self._one_link, backoff, self._timers.sleep), name="store link"
        )

    async def stop(self) -> None:
        """End the link."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    def wake(self) -> None:
        """There is something to tell."""
        link = self._link
        if link is None or link.done():
            return
        sent = False
        while (message := self._unsent or self._source()) is not None:
            if not link.write_now(message):
                self._unsent = message
                break
            self._unsent, sent = None, True
        if sent:
            link.flush()

    async def _one_link(self) -> AsyncGenerator[None, None]:
        """From dialling to the end; yields if the store said anything. Raises ConnectionError."""
        ended: asyncio.Future[str] = self._loop.create_future()
        link = duplex(self._stub.Link())

        def on_message(progress: LogProgress) -> None:
            if link is not self._link:
                self._metrics.links += 1
                self.peer.came(log_begin=progress.min_offset, log_end=progress.max_offset)
                self._view.update(progress)
                self._link, self._unsent = link, None
                self._begun()
                self.wake()
            else:
                self._view.update(progress)

        def on_end(code: grpc.StatusCode, details: str) -> None:
            if not ended.done():
                ended.set_result(f"{code.name}: {details}" if details else code.name)

        link.listen(on_message, on_end=on_end, on_writable=self.wake)
        try:
            while not ended.done():
                await first_of(self._timers, (ended,), _LIST_SECONDS)
                self.wake()
            heard = self._link is not None
        finally:
            self._link = None
            link.cancel()
            self._view.lost()
        if heard:
            yield
        raise ConnectionError(ended.result())
