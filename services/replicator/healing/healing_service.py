"""`tandemmq.replication.v1.Healing`: bytes of our log, and checksums of it, for the other nodes of the pair."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
from isal.isal_zlib import crc32

from tandemmq.common.calling.addresses import check_address
from tandemmq.common.errors import Kind, TandemError
from tandemmq.replication.v1 import healing_pb2 as messages
from tandemmq.replication.v1.healing_pb2_grpc import HealingServicer
from tandemmq.replicator.errors import BadReplicatorRequest, raise_for_store
from tandemmq.replicator.healing.log_peer import (
    CHUNK_SIZE,
    EXAMINE_SECONDS,
    MOST_RECORDS,
    check_same_log,
    read_checksums,
)
from tandemmq.replicator.healing.pair_audit import PairAudit
from tandemmq.replicator.log_view import NoStore
from tandemmq.replicator.master.listener import Peers
from tandemmq.replicator.node import ReplicatorNode
from tandemmq.replicator.service import admit
from tandemmq.replicator.slave.overlap import read_log
from tandemmq.store.v1.log_repair_pb2 import ExamineRequest, ExamineResponse
from tandemmq.store.v1.replica_log_pb2 import LogIdentity

Context = grpc.aio.ServicerContext[Any, Any]

_LEAST_STEP, _LARGEST_STEP = 512, 64 << 20
_AT_ONCE = 2
"""Calls that may read at a time; others wait for their turn."""


class NotHere(TandemError):
    """The stretch is not in this node's log."""

    kind = Kind.NOT_HERE


class NoPeer(TandemError):
    """There is nobody to compare with."""

    kind = Kind.NOT_POSSIBLE
    remedy = "name its replicator (--peer), or let a slave follow this master first"


class DamagedHere(TandemError):
    """This node does not hold the stretch as good either."""

    kind = Kind.NOT_POSSIBLE


class HealingService(HealingServicer):
    """What each call means is written in the contract."""

    def __init__(self, node: ReplicatorNode) -> None:
        self._node = node
        self._peers = Peers(node.settings.ha_allowed_peers)
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._commit_log = node.settings.store_path_root_dir / "commitlog"

    async def Fetch(self, request: messages.FetchRequest, context: Context) -> AsyncIterator[messages.FetchedBytes]:
        """Bytes that our store holds as good."""
        self._check(context, request.identity, request.begin, request.end)
        async with self._turns:
            await self._check_good(request.begin, request.end)
            for at in range(request.begin, request.end, CHUNK_SIZE):
                stop = min(at + CHUNK_SIZE, request.end)
                data = await asyncio.to_thread(read_log, self._commit_log, self._node.view.file_size, at, stop)
                yield messages.FetchedBytes(offset=at, data=data, checksum=crc32(data))

    async def Checksums(
        self, request: messages.ChecksumsRequest, context: Context
    ) -> AsyncIterator[messages.StretchChecksum]:
        """Of stretches of our log."""
        self._check(context, request.identity, request.begin, request.end)
        step, rate = request.step, request.bytes_per_second
        if not _LEAST_STEP <= step <= _LARGEST_STEP:
            raise BadReplicatorRequest(f"step must be {_LEAST_STEP} to {_LARGEST_STEP:,}")
        if rate < 0:
            raise BadReplicatorRequest("bytes_per_second must not be negative")
        async with self._turns:
            at, timers = request.begin, self._node.timers
            begun = timers.time()
            while at < request.end:
                stop = min(at - at % step + max(step, CHUNK_SIZE - CHUNK_SIZE % step), request.end)
                for one in await asyncio.to_thread(
                    read_checksums, self._commit_log, self._node.view.file_size, at, stop, step
                ):
                    yield one
                at = stop
                if rate:
                    await timers.sleep((at - request.begin) / rate - (timers.time() - begun))

    async def Records(self, request: messages.RecordsRequest, context: Context) -> ExamineResponse:
        """What our store says of them."""
        self._check(context, request.identity, request.begin, request.end)
        try:
            return await self._node.log_repair.Examine(
                ExamineRequest(
                    begin=request.begin, end=request.end, seek=True, max_records=MOST_RECORDS, note=request.note
                ),
                timeout=EXAMINE_SECONDS,
            )
        except grpc.aio.AioRpcError as error:
            raise_for_store(error)

    async def Audit(self, request: messages.AuditRequest, context: Context) -> AsyncIterator[messages.AuditProgress]:
        """Compare our log with our peers'."""
        admit(self._peers, context)
        if request.bytes_per_second < 0:
            raise BadReplicatorRequest("bytes_per_second must not be negative")
        for address in request.peers:
            if check_address(address) is not None:
                raise BadReplicatorRequest(f"peers must be host:port, not {address!r}")
        node = self._node
        if not node.view.linked:
            raise NoStore("there is no link to the store")
        peers = list(request.peers) or node.peers()
        if not peers:
            raise NoPeer("no other node is known that has this log")
        for address in peers:
            channel = node.dial(address)
            try:
                audit = PairAudit(channel, address, node.log_repair, node.view, self._commit_log, request)
                async for progress in audit.run():
                    yield progress
            finally:
                await channel.close()

    def _check(self, context: Context, theirs: LogIdentity, begin: int, end: int) -> None:
        """Raises NotAllowedToCall, NoStore, OtherLog, BadReplicatorRequest, NotHere."""
        admit(self._peers, context)
        view = self._node.view
        if not view.linked:
            raise NoStore("there is no link to the store")
        check_same_log(view.identity, theirs)
        if not 0 <= begin <= end:
            raise BadReplicatorRequest(f"{begin}-{end} is no stretch of a log")
        if begin < view.min_offset or end > view.max_offset:
            raise NotHere(f"{begin:,}-{end:,} is not in this log, which has {view.min_offset:,}-{view.max_offset:,}")

    async def _check_good(self, begin: int, end: int) -> None:
        """Raises DamagedHere, OwnStoreUnreachable."""
        try:
            found = await self._node.log_repair.Examine(
                ExamineRequest(begin=begin, end=end, note=True), timeout=EXAMINE_SECONDS
            )
        except grpc.aio.AioRpcError as error:
            raise_for_store(error)
        if found.good_until != end:
            why = found.problem or "no record ends where the stretch does"
            raise DamagedHere(f"this node's log is not good at offset {found.good_until:,} either: {why}")
