"""Comparing our log with a peer's by checksums, down to the record where they differ. No bytes of the log are moved."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import grpc

from tandemmq.common.errors import Kind, TandemError
from tandemmq.replication.v1.healing_pb2 import (
    AuditProgress,
    AuditRequest,
    Difference,
    RecordState,
    StretchChecksum,
)
from tandemmq.replication.v1.replication_pb2 import StatusRequest
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub
from tandemmq.replicator.healing.log_peer import EXAMINE_SECONDS, MOST_RECORDS, LogPeer, read_checksums
from tandemmq.replicator.log_view import LogView
from tandemmq.store.v1.log_repair_pb2 import ExaminedRecord, ExamineRequest, ExamineResponse

if TYPE_CHECKING:  # the generated code knows this class by its types only
    from tandemmq.store.v1.log_repair_pb2_grpc import LogRepairAsyncStub

_STEPS = (16 << 20, 64 << 10, 512)
"""Sizes of the stretches that are compared, each within one of the size before that differed."""
_AT_ONCE = 16
"""Of the largest, in one call."""
_ANSWER_SECONDS = 5.0
_MOST_DIFFERENCES = 1_000
"""In one answer: logs that differ everywhere are not the same log."""


class PeerFailed(TandemError):
    """The peer does not answer, or says no."""

    kind = Kind.AWAY


class PairAudit:
    """One comparison with one peer."""

    def __init__(
        self,
        channel: grpc.aio.Channel,
        address: str,
        store: "LogRepairAsyncStub",
        view: LogView,
        commit_log: Path,
        request: AuditRequest,
    ) -> None:
        """`channel` leads to the peer's replicator at `address`, `store` is our own."""
        self._status = ReplicationStub(channel)
        self._peer = LogPeer(channel, address, view.identity)
        self._store = store
        self._view = view
        self._commit_log = commit_log
        self._repair = request.repair
        self._rate = request.bytes_per_second

    async def run(self) -> AsyncIterator[AuditProgress]:
        """Tells after each part how far it is. Raises PeerFailed, LocalLogUnreadable."""
        try:
            theirs = await self._status.Status(StatusRequest(), timeout=_ANSWER_SECONDS)
            begin = max(self._view.min_offset, theirs.min_offset)
            end = max(min(self._view.max_offset, theirs.max_offset), begin)
            at = begin
            while True:
                stop = min(at - at % _STEPS[0] + _AT_ONCE * _STEPS[0], end)
                found = [one async for one in self._differences(at, stop)]
                yield AuditProgress(
                    peer=self._peer.address, begin=begin, end=end, done=stop, differences=found[:_MOST_DIFFERENCES]
                )
                if stop >= end:
                    return
                at = stop
        except grpc.aio.AioRpcError as error:
            self._failed(error)

    def _failed(self, error: grpc.aio.AioRpcError) -> NoReturn:
        raise PeerFailed(f"{self._peer.address}: {error.code().name}, {error.details()}") from error

    # -- stretches ----------------------------------------------------------------------------------------------------

    async def _differences(self, begin: int, end: int) -> AsyncIterator[Difference]:
        """The records in a stretch that differ."""
        seen, number = begin, 0
        async for stretch in self._differing(begin, end, _STEPS):
            if stretch.end <= seen:
                continue
            for one in await self._compare_records(max(stretch.begin, seen), stretch.end):
                if one.end > seen:
                    seen = one.end
                    number += 1
                    yield one
            if number > _MOST_DIFFERENCES:
                return

    async def _differing(self, begin: int, end: int, steps: tuple[int, ...]) -> AsyncIterator[StretchChecksum]:
        """The smallest stretches that differ, in order."""
        size, rest = steps[0], steps[1:]
        rate = self._rate if not rest or size == _STEPS[0] else 0
        seconds = None if rate else 600.0
        theirs = [one async for one in self._peer.checksums(begin, end, size, seconds=seconds, rate=rate)]
        ours = await asyncio.to_thread(read_checksums, self._commit_log, self._view.file_size, begin, end, size)
        for own, other in zip(ours, theirs, strict=True):
            if own != other and not rest:
                yield own
            elif own != other:
                async for stretch in self._differing(own.begin, own.end, rest):
                    yield stretch

    # -- records ------------------------------------------------------------------------------------------------------

    async def _compare_records(self, begin: int, end: int) -> list[Difference]:
        """What both stores say of the records that lie in a differing stretch."""
        ours, theirs = _Side(), _Side()
        at = begin
        while at < end:
            request = ExamineRequest(begin=at, end=end, seek=True, max_records=MOST_RECORDS, note=self._repair)
            ours.take(await self._store.Examine(request, timeout=EXAMINE_SECONDS))
            at = ours.goes_on(at)
        at = begin
        while at < end:
            theirs.take(await self._peer.records(at, end, note=self._repair))
            at = theirs.goes_on(at)
        return list(_compared(ours, theirs))


class _Side:
    """What one store has in a stretch."""

    def __init__(self) -> None:
        self.records: dict[int, ExaminedRecord] = {}
        self.damaged: list[tuple[int, int]] = []
        self._last: ExamineResponse | None = None

    def take(self, found: ExamineResponse) -> None:
        """One look."""
        self._last = found
        self.records.update({one.offset: one for one in found.records})
        if found.problem:
            self.damaged.append((found.good_until, max(found.bad_until, found.good_until + 1)))

    def goes_on(self, at: int) -> int:
        """Where to look next: after the damage; beyond everything if there was none."""
        assert self._last is not None
        return max(self._last.bad_until, at + 1) if self._last.bad_until else 1 << 62

    def damage_at(self, offset: int) -> tuple[int, int] | None:
        """The damage that holds an offset."""
        return next((one for one in self.damaged if one[0] <= offset < one[1]), None)


def _compared(ours: _Side, theirs: _Side) -> Iterator[Difference]:
    """Where two sides differ, in order; each place once."""
    behind = 0
    for offset in sorted({*ours.records, *theirs.records, *(begin for begin, _ in ours.damaged + theirs.damaged)}):
        own, other = ours.records.get(offset), theirs.records.get(offset)
        if offset < behind or (own is not None and own == other):
            continue
        known = own or other
        bad = ours.damage_at(offset) or theirs.damage_at(offset)
        end = known.offset + known.size if known is not None else bad[1] if bad is not None else offset + 1
        behind = end
        yield Difference(
            begin=offset,
            end=end,
            here=_state(own),
            there=_state(other),
            topic=known.topic if known is not None else "",
            queue_id=known.queue_id if known is not None else 0,
            queue_offset=known.queue_offset if known is not None else 0,
        )


def _state(record: ExaminedRecord | None) -> "RecordState.ValueType":
    return RecordState.DAMAGED if record is None else RecordState.VALID
