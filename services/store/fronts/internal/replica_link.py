"""The two streams between a store and its replicator, without a task for either.

What comes is acted on in the turn of the loop that brought it, and what is to be told leaves in the turn that made it
so: a synchronous send goes through here three times, on two nodes.
"""

import asyncio
from collections.abc import Callable

from tandemmq.common.grpc_transport import Answering
from tandemmq.common.timers import Timer
from tandemmq.store.broker.errors import BadRequest
from tandemmq.store.broker.group_transfer import GroupTransfer, ReplicaState
from tandemmq.store.fronts.internal.staging import OpenStaging
from tandemmq.store.log.errors import CorruptReplica, WrongRole
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.v1.replica_log_pb2 import LogIdentity, LogProgress, ReplicaAck, ReplicaBytes, ReplicationProgress

_AGAIN_SECONDS = 0.005
"""After so long what could not be written is tried again; a peer that does not read for that long is a stopped one."""
_LOOK_SECONDS = 1.0
"""How often an idle link looks whether old files have gone, and a slave's says how far its log has come."""


class ReplicaLink:
    """One call of Link: the store's progress out, the replicas' in."""

    def __init__(
        self,
        store: MessageStore,
        transfer: GroupTransfer,
        identity: Callable[[], LogIdentity],
        call: Answering[ReplicationProgress, LogProgress],
    ) -> None:
        """Nothing is told before `run`."""
        self._store = store
        self._transfer = transfer
        self._identity = identity
        self._call = call
        self._timers = store.timers
        self._due = False
        self._told: tuple[int, int, int] = (-1, -1, -1)
        self._told_identity: LogIdentity | None = None
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._timer: Timer | None = None

    async def run(self) -> None:
        """From the first word to the end of the call. Raises what `ReplicationProgress` could not be."""
        heard = self._call.listen(self._hear)
        self._tell()
        self._look()
        try:
            await asyncio.wait((heard, self._over), return_when=asyncio.FIRST_COMPLETED)
            if heard.done():
                heard.result()
        finally:
            self._over.cancel()
            if self._timer is not None:
                self._timer.cancel()

    def stop(self) -> None:
        """End the call."""
        if not self._over.done():
            self._over.set_result(None)

    def grown(self) -> None:
        """The log has grown, or is on disk further: told at the end of this turn, with all that comes until then.

        A slave's replicator knows from its own stream how far the log is, so there only the disk is news.
        """
        store = self._store
        if not store.replica.mastership.is_slave or store.flushed_offset != self._told[2]:
            self.changed()

    def changed(self) -> None:
        """Something has changed: the log, the role."""
        if not self._due and not self._over.done():
            self._due = True
            self._timers.call_soon(self._tell)

    def _tell(self) -> None:
        self._due = False
        if self._over.done() or self._call.over:
            return
        store = self._store
        log = store.commit_log
        now = log.min_offset, log.max_offset, store.flushed_offset
        progress = LogProgress(min_offset=now[0], max_offset=now[1], flushed_offset=now[2])
        identity = self._identity()
        if identity is not self._told_identity:
            progress.identity.CopyFrom(identity)
        if self._call.write_now(progress):
            self._call.flush()
            self._told, self._told_identity = now, identity
        else:
            self._due = True
            self._timers.call_later(_AGAIN_SECONDS, self._tell)

    def _look(self) -> None:
        log, store = self._store.commit_log, self._store
        if (log.min_offset, log.max_offset, store.flushed_offset) != self._told:
            self.changed()
        self._timer = self._timers.call_later(_LOOK_SECONDS, self._look)

    def _hear(self, progress: ReplicationProgress) -> None:
        if progress.HasField("master_address"):
            self._store.replica.master_address = progress.master_address
            return
        transfer = self._transfer
        if progress.enough:
            self._store.replica.confirm(
                progress.replicated_offset
            )  # before the sends: who has a receipt finds its message
        transfer.progress(progress.enough, progress.replicated_offset, progress.in_sync)
        if progress.replicas or not progress.in_sync:
            transfer.replicas = [
                ReplicaState(one.identity, one.address, one.acked_offset, one.in_sync) for one in progress.replicas
            ]


class ReplicaReceiver:
    """One call of Receive: bytes in, acks out."""

    def __init__(self, store: MessageStore, call: Answering[ReplicaBytes, ReplicaAck]) -> None:
        self._store = store
        self._call = call
        self._staging = OpenStaging(store.config.store_path_root_dir)
        self._epoch: int | None = None
        self._owed = False
        self._over = False
        self._fenced: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """To the end of the call. Raises what a message's bytes could not be, and why they were not taken."""
        taken = self._call.listen(self._take)
        for ending in (taken, self._fenced):  # one of them, or both where the caller has gone, is not waited for
            ending.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            await asyncio.wait((taken, self._fenced), return_when=asyncio.FIRST_COMPLETED)
            (self._fenced if self._fenced.done() else taken).result()
        finally:
            self._fenced.cancel()
            self._over = True
            self._store.replica.drop_unchecked()
            self._staging.close()

    def role_changed(self) -> None:
        """The store may no longer take bytes of this call's master: then the call ends."""
        if self._epoch is None or self._fenced.done():
            return
        try:
            self._store.replica.mastership.check_source(self._epoch)
        except WrongRole as error:
            self._fenced.set_exception(error)

    def _take(self, message: ReplicaBytes) -> None:
        store, staging = self._store, self._staging
        if self._epoch is None:
            store.replica.follow(message.epoch)
            store.replica.check.begin(_proven(message))
            self._epoch = message.epoch
        if message.HasField("staging"):
            staging.open(message.staging.name, message.staging.size)
        offset, pieces = self._pieces(message)
        if pieces:
            try:
                store.append_replica(offset, *pieces)
            except CorruptReplica:
                self._acknowledge()  # what was right before it
                raise
        if message.flush:
            store.flush_soon(store.commit_log.max_offset)
        if not self._owed:
            self._acknowledge()

    def _pieces(self, message: ReplicaBytes) -> tuple[int, list[memoryview]]:
        """Where the bytes of a message begin, and they. Raises BadRequest where they do not follow each other."""
        begin = end = message.offset if message.data or not message.stretches else message.stretches[0].offset
        pieces = []
        if message.data:
            pieces.append(memoryview(message.data))
            end += len(message.data)
        for stretch in message.stretches:
            if stretch.offset != end:
                raise BadRequest(f"A stretch at offset {stretch.offset:,} does not follow one that ends at {end:,}.")
            pieces.append(self._staging.view(stretch.position, stretch.size))
            end += stretch.size
        return begin, pieces

    def _acknowledge(self) -> None:
        """Tell how far the log is; where that cannot be written now, once for all that comes until it can."""
        self._owed = False
        if self._over or self._call.over:
            return
        store = self._store
        log = store.commit_log
        ack = ReplicaAck(
            max_offset=log.max_offset, flushed_offset=store.flushed_offset, taken_offset=log.written_offset
        )
        if self._call.write_now(ack):
            self._call.flush()  # not after a dispatch turn that may come before the end of this one
        else:
            self._owed = True
            store.timers.call_later(_AGAIN_SECONDS, self._acknowledge)


def _proven(message: ReplicaBytes) -> tuple[int, int, int] | None:
    proven = message.proven
    return (proven.offset, proven.size, proven.crc32) if message.HasField("proven") else None
