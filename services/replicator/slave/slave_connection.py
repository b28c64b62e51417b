"""One HA connection of a slave: what arrives goes into the ring and on to the store, acks go back; no waiting."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from tandemmq.common.timers import Timers
from tandemmq.replicator.frames import encode_report
from tandemmq.replicator.slave.following import FollowingConnection
from tandemmq.replicator.slave.slave_errors import BadStream, FollowError, MasterClosed
from tandemmq.replicator.slave.slave_store import StoreStream
from tandemmq.replicator.slave.staging import LEAST_READ, Ring, StagingFile


@dataclass(slots=True)
class FollowerCounters:
    """What happened since the process began; plain numbers, read when metrics are asked for."""

    connections: int = 0
    """HA connections that were established."""
    reconnects: int = 0
    """Attempts to follow after the first."""
    received_bytes: int = 0
    """Everything from the master, headers included."""
    frames: int = 0
    """Frames, heartbeats included."""
    heartbeats: int = 0
    reports: int = 0
    staging_pauses: int = 0
    """How often reading stopped because the store was slower than the master."""
    ends: dict[str, int] = field(default_factory=dict)
    """Connections and attempts that ended, by reason (see `slave_errors`): `fork`, `silent`, `store` ..."""


class HaConnection(asyncio.BufferedProtocol):
    """The socket's side. `begin` starts the conversation; before it the master has nothing to say."""

    def __init__(self, counters: FollowerCounters, on_progress: Callable[[], None], timers: Timers) -> None:
        """`on_progress` is called after every turn in which something arrived or was acknowledged by the store."""
        self._timers = timers
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Fails with a FollowError when the connection is of no more use."""
        self.following: FollowingConnection | None = None
        self.paused = False
        """Whether nothing is read because the ring is full."""
        self._staging: StagingFile | None = None
        self._ring = Ring()
        self._counters = counters
        self._on_progress = on_progress
        self._stream: StoreStream | None = None
        self._transport: asyncio.Transport | None = None

    def begin(self, following: FollowingConnection, stream: StoreStream, staging: StagingFile) -> int:
        """Asks for the log; what arrives goes through `staging` to `stream` from now on. Gives the offset asked for."""
        self.following, self._stream, self._staging = following, stream, staging
        self._ring = Ring(staging.size)
        asked = following.first_report(self._timers.time())
        self._report(asked)
        return asked

    def taken(self, max_offset: int, flushed_offset: int, taken_offset: int) -> None:
        """The store acknowledged: what it took has its place free, and what it has checked the master may know."""
        following = self.following
        if following is None or self._staging is None:
            return
        self._staging.unlink()  # the store has it open
        self._ring.free(taken_offset)
        following.stored(max_offset, flushed_offset)
        self._report(following.report(self._timers.time()))
        if self.paused and self._ring.size - self._ring.held >= LEAST_READ and self._transport is not None:
            self.paused = False
            self._transport.resume_reading()
        self._on_progress()

    def flushed(self, flushed_offset: int) -> None:
        """The store has everything below an offset on disk."""
        if self.following is not None and not self.ended.done():
            self.following.flushed(flushed_offset)
            self._report(self.following.report(self._timers.time()))

    def tick(self) -> None:
        """To be called often: sends what time demands, ends the connection when the master is silent."""
        if self.following is not None and not self.ended.done():
            try:
                self._report(self.following.tick(self._timers.time(), paused=self.paused))
            except FollowError as error:
                self.fail(error)

    def fail(self, error: FollowError) -> None:
        """Ends the connection for a reason."""
        if not self.ended.done():
            self.ended.set_exception(error)
        self.close()

    def close(self) -> None:
        """Ends the connection; not a byte more is received."""
        self._stream = None
        if self._transport is not None:
            self._transport.abort()
            self._transport = None
        if not self.ended.done():
            self.ended.cancel()
        elif not self.ended.cancelled():
            self.ended.exception()  # asked for or not: it has been dealt with

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.BaseProtocol."""
        self._transport = cast(asyncio.Transport, transport)
        self._counters.connections += 1

    def get_buffer(self, sizehint: int) -> memoryview:
        """See asyncio.BufferedProtocol: the ring's next free stretch."""
        if self._staging is None:
            return memoryview(bytearray(1))
        position, size = self._ring.room()
        return self._staging.view[position : position + size]

    def buffer_updated(self, nbytes: int) -> None:
        """See asyncio.BufferedProtocol: one turn."""
        following, stream, ring, staging = self.following, self._stream, self._ring, self._staging
        if following is None or stream is None or staging is None:
            self.fail(BadStream("the master spoke before it was asked"))
            return
        position = ring.received(nbytes)
        counters, now = self._counters, self._timers.time()
        frames, heartbeats = following.frames, following.heartbeats
        try:
            bodies = following.received(staging.view[position : position + nbytes], position, now)
        except FollowError as error:
            self.fail(error)
            return
        finally:
            counters.received_bytes += nbytes
            counters.frames += following.frames - frames
            counters.heartbeats += following.heartbeats - heartbeats
        if bodies:
            stream.put(bodies)
            ring.settle(bodies[-1].offset + bodies[-1].size)
            if ring.size - ring.held < LEAST_READ and self._transport is not None:
                self.paused = True
                self._counters.staging_pauses += 1
                self._transport.pause_reading()
        else:
            ring.settle(None)
        self._report(following.report(now))
        self._on_progress()

    def eof_received(self) -> bool:
        """See asyncio.BaseProtocol: half a connection is none."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.BaseProtocol."""
        self._transport = None
        if self.ended.done():
            return
        following, how = self.following, f" ({exc})" if exc is not None else ""
        if following is None or not following.frames:
            what = "without a word; its log may say why"
        elif following.between_frames:
            what = f"after {following.frames} frames, at offset {following.received_offset}"
        else:
            what = f"in the middle of a frame, at offset {following.received_offset}"
        self.fail(MasterClosed(f"the master closed the connection {what}{how}"))

    def _report(self, offset: int | None) -> None:
        if offset is not None and self._transport is not None:
            self._transport.write(encode_report(offset))
            self._counters.reports += 1
