"""The stream of replica bytes to our own store: one Receive call for each HA connection."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import grpc

from tandemmq.common.grpc_transport import duplex
from tandemmq.common.timers import Timers, time_limit
from tandemmq.replicator.frames import Body
from tandemmq.replicator.slave.following import NOT_SENT
from tandemmq.replicator.slave.slave_errors import CorruptBytes, FollowError, StoreGone
from tandemmq.store.v1.replica_log_pb2 import RefusedBytes, ReplicaAck, ReplicaBytes, StagingFile, Stretch

if TYPE_CHECKING:  # the generated code knows this class by its types only
    from tandemmq.store.v1.replica_log_pb2_grpc import ReplicaLogAsyncStub

MESSAGE_SIZE = 1 << 20
"""A message names about so many bytes at most; the store takes it in one turn."""

MESSAGE_STRETCHES = 4096
"""And so many stretches: a master may send frames of a byte each."""

MESSAGES_OUT = 4
"""Messages that may be without an ack; what arrives meanwhile goes into the next one. Enough for the store to have its
next message when it is done with one, few enough for messages to grow when it is slower than the master."""

CLOSE_SECONDS = 5.0
"""How long the store may take for what it was already given, when the stream is closed."""


class StoreStream:
    """Hands stretches of the staging ring to the store, all that there are in one message, and tells its acks.

    No task and no timer: what is put goes out in the same turn of the loop, and an ack is told in the turn that
    brought it.
    """

    def __init__(
        self,
        stub: "ReplicaLogAsyncStub",
        staging: StagingFile | None,
        timers: Timers,
        *,
        epoch: int,
        flush: bool,
        on_ack: Callable[[int, int, int], None],
        proven: RefusedBytes | None = None,
    ) -> None:
        """Begins the call. Without `staging` nothing can be put.

        `on_ack` is told max_offset, flushed_offset and taken_offset. `proven`: bytes that the store refused, and that
        the master has so.
        """
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Fails with StoreGone when the call is over, with CorruptBytes where the store refused what came."""
        self._timers = timers
        self._flush = flush
        self._on_ack = on_ack
        self._waiting: deque[Body] = deque()
        self._out: deque[int] = deque()
        """For each message without an ack: the log offset after it."""
        self._drained: asyncio.Future[None] | None = None
        self._unsent: ReplicaBytes | None = ReplicaBytes(staging=staging, epoch=epoch, flush=flush, proven=proven)
        self._call = stub.Receive()
        self._link = duplex(self._call)
        self._link.listen(self._acked, on_end=self._over, on_writable=self._send)
        self._send()

    def put(self, bodies: Iterable[Body]) -> None:
        """Bodies that continue the log, lying in the ring; they go out now, if not too much is going already."""
        waiting = self._waiting
        for body in bodies:
            if waiting:
                offset, position, size = waiting[-1]
                if offset + size == body.offset and position + size == body.position and position != NOT_SENT:
                    waiting[-1] = Body(offset, position, size + body.size)
                    continue
            waiting.append(body)
        self._send()

    async def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Gives the store what is waiting, and waits until it has ended the call: it takes nothing more afterwards."""
        try:
            async with time_limit(self._timers, seconds):
                if not self.ended.done():
                    self._drained = asyncio.get_running_loop().create_future()
                    self._send()
                    await self._drained
                    await self._call.done_writing()
                    await asyncio.wait((self.ended,))
        except TimeoutError:
            self._link.cancel()
        if not self.ended.cancelled():
            self.ended.exception()  # whoever wanted to know has been told

    def _send(self) -> None:
        """Whatever may go out now."""
        link, sent = self._link, False
        while not link.done() and len(self._out) < MESSAGES_OUT:
            message = self._unsent or self._next()
            if message is None:
                if self._drained is not None and not self._drained.done():
                    self._drained.set_result(None)
                break
            if not link.write_now(message):
                self._unsent = message
                return
            self._unsent, sent = None, True
            last = message.stretches[-1] if message.stretches else None
            self._out.append(last.offset + last.size if last is not None else 0)
        if sent:
            link.flush()

    def _next(self) -> ReplicaBytes | None:
        waiting = self._waiting
        if not waiting:
            return None
        message = ReplicaBytes(flush=self._flush)
        size = 0
        stretches: list[Stretch] = []
        while waiting and size < MESSAGE_SIZE and len(stretches) < MESSAGE_STRETCHES:
            body = waiting.popleft()
            if body.position == NOT_SENT:
                message.offset, message.data = body.offset, bytes(body.size)
                continue
            stretches.append(Stretch(offset=body.offset, position=body.position, size=body.size))
            size += body.size
        message.stretches.extend(stretches)
        return message

    def _acked(self, ack: ReplicaAck) -> None:
        taken, out = max(ack.taken_offset, ack.max_offset), self._out
        while out and out[0] <= taken:
            out.popleft()
        self._on_ack(ack.max_offset, ack.flushed_offset, taken)
        if self._waiting or self._drained is not None:
            self._send()

    def _over(self, code: grpc.StatusCode, details: str) -> None:
        if not self.ended.done():
            self.ended.set_exception(_why(code, details))
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)


def _why(code: grpc.StatusCode, details: str) -> FollowError:
    if code is grpc.StatusCode.DATA_LOSS:
        return CorruptBytes(f"the store refused what came: {details}")
    why = f"{code.name}, {details}" if code is not grpc.StatusCode.OK else "it takes no more"
    return StoreGone(f"the store ended the stream of replica bytes: {why}")
