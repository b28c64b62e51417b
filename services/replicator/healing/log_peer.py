"""Another node's replicator as a source of log bytes, and whether its log is the same as ours."""

from collections.abc import AsyncIterator
from pathlib import Path

import grpc
from isal.isal_zlib import crc32

from tandemmq.common.errors import Kind, TandemError
from tandemmq.replication.v1.healing_pb2 import ChecksumsRequest, FetchRequest, RecordsRequest, StretchChecksum
from tandemmq.replication.v1.healing_pb2_grpc import HealingStub
from tandemmq.replicator.slave.overlap import read_log
from tandemmq.store.v1.log_repair_pb2 import ExamineResponse
from tandemmq.store.v1.replica_log_pb2 import BrokerRole, LogIdentity

CHUNK_SIZE = 1 << 20
"""Log bytes in one message."""

EXAMINE_SECONDS = 120.0
"""How long a store may take to walk a stretch: up to a whole file, to find where its records begin."""
MOST_RECORDS = 1_000
"""Of a stretch, that are told of."""


class OtherLog(TandemError):
    """The peer's log is not ours, or nobody knows whether it is: no byte of it is taken or given."""

    kind = Kind.NOT_POSSIBLE
    remedy = "only nodes of one broker, in one epoch, have the same log"


class DamagedInFlight(TandemError):
    """Bytes came that are not those which were sent, or not those that were asked for."""

    kind = Kind.DAMAGED


def check_same_log(ours: LogIdentity, theirs: LogIdentity) -> None:
    """Raises OtherLog unless both are nodes of one broker in one epoch."""
    for what, one, other in (
        ("cluster", ours.cluster_name, theirs.cluster_name),
        ("broker", ours.broker_name, theirs.broker_name),
        ("file size", ours.file_size, theirs.file_size),
        ("epoch", ours.epoch, theirs.epoch),
    ):
        if one != other:
            raise OtherLog(f"the {what} here is {one}, and there it is {other}")
    if ours.fenced_by_epoch > ours.epoch and ours.role != BrokerRole.SLAVE:
        raise OtherLog("this node is a master that was replaced")


def read_checksums(commit_log: Path, file_size: int, begin: int, end: int, step: int) -> list[StretchChecksum]:
    """Checksums of a stretch of the log, which end at multiples of `step`. Blocks. Raises LocalLogUnreadable."""
    found = []
    while begin < end:
        stop = min(begin - begin % step + step, end)
        checksum = 0
        for at in range(begin, stop, CHUNK_SIZE):
            checksum = crc32(read_log(commit_log, file_size, at, min(at + CHUNK_SIZE, stop)), checksum)
        found.append(StretchChecksum(begin=begin, end=stop, checksum=checksum))
        begin = stop
    return found


class LogPeer:
    """Calls of one peer. `identity` is ours, which the peer compares with its own."""

    def __init__(self, channel: grpc.aio.Channel, address: str, identity: LogIdentity) -> None:
        self._stub = HealingStub(channel)
        self._identity = identity
        self.address = address

    async def checksums(
        self, begin: int, end: int, step: int, *, seconds: float | None = 60.0, rate: int = 0
    ) -> AsyncIterator[StretchChecksum]:
        """Of a stretch of its log. Raises AioRpcError."""
        request = ChecksumsRequest(identity=self._identity, begin=begin, end=end, step=step, bytes_per_second=rate)
        async for one in self._stub.Checksums(request, timeout=seconds):
            yield one

    async def records(self, begin: int, end: int, *, note: bool) -> ExamineResponse:
        """What its store says of the records in a stretch. Raises AioRpcError."""
        request = RecordsRequest(identity=self._identity, begin=begin, end=end, note=note)
        response: ExamineResponse = await self._stub.Records(request, timeout=EXAMINE_SECONDS)
        return response

    async def fetch(self, begin: int, end: int) -> AsyncIterator[bytes]:
        """Bytes of its log, in order. Raises AioRpcError, DamagedInFlight."""
        async for piece in self._stub.Fetch(FetchRequest(identity=self._identity, begin=begin, end=end)):
            if piece.offset != begin or crc32(piece.data) != piece.checksum or len(piece.data) > end - begin:
                raise DamagedInFlight(f"bytes for log offset {begin:,} came damaged")
            begin += len(piece.data)
            yield piece.data
