"""Mending our own log: damaged stretches that our store knows of are fetched again from a peer.

A slave asks its master, a master its slaves.

Nothing is asked of a node that may have another log: it must be of our broker and epoch, and equal to us before and
after the damage. What comes is checked by our store, which is the only one that writes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.timers import Timers
from tandemmq.replicator.healing.log_peer import LogPeer, OtherLog, read_checksums
from tandemmq.replicator.log_view import LogView
from tandemmq.replicator.metrics import ReplicatorMetrics
from tandemmq.replicator.slave.overlap import OVERLAP_SIZE
from tandemmq.store.v1.log_repair_pb2 import (
    DamagedStretch,
    ExamineRequest,
    GetDamageRequest,
    RepairBytes,
    RepairResponse,
)

if TYPE_CHECKING:  # the generated code knows this class by its types only
    from tandemmq.store.v1.log_repair_pb2_grpc import LogRepairAsyncStub

log = get_log(__name__)

_LOOK_SECONDS = 2.0
_STORE_SECONDS = 10.0
_REPAIR_SECONDS = 600.0
_EXAMINE_SECONDS = 60.0
_PAUSES = 1.0, 15.0
"""Before a stretch that could not be mended is tried again."""
NEIGHBOURS = 4 << 10
"""So many bytes before and after a damaged stretch must be the same at the peer."""


@dataclass(slots=True)
class _Later:
    """When a stretch is tried again, and what was said about it."""

    at: float = 0.0
    backoff: Backoff = field(default_factory=lambda: Backoff(*_PAUSES))
    said: str = ""


class Healer:
    """Looks at our store's damage, again and again."""

    def __init__(
        self,
        store: "LogRepairAsyncStub",
        view: LogView,
        peers: Callable[[], Sequence[str]],
        refused: Callable[[], str],
        dial: Callable[[str], grpc.aio.Channel],
        commit_log: Path,
        metrics: ReplicatorMetrics,
        timers: Timers,
    ) -> None:
        """`peers` gives the replicators that should have our log; `dial` calls one.

        `refused` says why our node refuses to follow its master, if it does: the end of our log is looked at then.
        """
        self._store = store
        self._view = view
        self._peers = peers
        self._refused = refused
        self._dial = dial
        self._commit_log = commit_log
        self._metrics = metrics
        self._timers = timers
        self._later: dict[tuple[int, int], _Later] = {}
        self._suspected = ""

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            try:
                if self._view.linked:
                    await self._look()
            except grpc.aio.AioRpcError as error:
                log.debug("the store does not tell its damage", reason=error.details())
            except Exception as error:  # noqa: BLE001 - it must outlive whatever happens in it
                log.failure("a look at the damage of the log failed", error)
            await self._timers.sleep(_LOOK_SECONDS)

    async def _look(self) -> None:
        await self._look_at_the_end()
        stretches = (await self._store.GetDamage(GetDamageRequest(), timeout=_STORE_SECONDS)).stretches
        keys = {(one.begin, one.end) for one in stretches}
        self._later = {key: later for key, later in self._later.items() if key in keys}
        now = self._timers.time()
        for one in stretches:
            later = self._later.setdefault((one.begin, one.end), _Later())
            if one.kind == "rot" and now >= later.at:
                await self._mend(one, stretches, later)

    async def _look_at_the_end(self) -> None:
        """Our log and the master's seem to differ: a record of ours that fails its checksum is noted."""
        refused = self._refused()
        if refused and refused != self._suspected:
            end = self._view.max_offset
            begin = max(end - 2 * OVERLAP_SIZE, self._view.min_offset)
            request = ExamineRequest(begin=begin, end=end, seek=True, note=True)
            while request.begin < end:
                found = await self._store.Examine(request, timeout=_EXAMINE_SECONDS)
                if not found.bad_until > request.begin:
                    break
                request = ExamineRequest(begin=found.bad_until, end=end, seek=True, note=True)
        self._suspected = refused

    async def _mend(self, stretch: DamagedStretch, known: Iterable[DamagedStretch], later: _Later) -> None:
        problem = "no peer is known that has this log"
        for address in self._peers():
            try:
                self._tell(stretch, await self._from(address, stretch, known), address)
                return
            except grpc.aio.AioRpcError as error:
                problem = f"{error.code().name}: {error.details()}"
            except TandemError as error:
                problem = error.explain()
            problem = f"{address}: {problem}"
            self._metrics.heal_failures += 1
        later.at = self._timers.time() + later.backoff.pause()
        if problem != later.said:
            later.said = problem
            log.error("damage of the log stays", begin=stretch.begin, end=stretch.end, problem=problem)

    def _tell(self, stretch: DamagedStretch, healed: RepairResponse, address: str) -> None:
        """It is mended."""
        self._metrics.heals += 1
        log.warning(
            "damage of the log was mended",
            begin=stretch.begin,
            end=stretch.end,
            peer=address,
            records=healed.records,
            replaced_bytes=healed.replaced_bytes,
        )

    async def _from(self, address: str, stretch: DamagedStretch, known: Iterable[DamagedStretch]) -> RepairResponse:
        """Raises AioRpcError, OtherLog, DamagedInFlight, LocalLogUnreadable, UnreadableCertificate and -Secret."""
        channel = self._dial(address)
        try:
            peer = LogPeer(channel, address, self._view.identity)
            for begin, end in self._neighbours(stretch, known):
                await self._compare(peer, begin, end)
            source = _Source(peer, stretch)
            try:
                return await self._store.Repair(source.messages(), timeout=_REPAIR_SECONDS)
            except grpc.aio.AioRpcError as error:
                raise source.problem or error from error
        finally:
            await channel.close()

    def _neighbours(self, stretch: DamagedStretch, known: Iterable[DamagedStretch]) -> list[tuple[int, int]]:
        """What must be the same at both: the bytes before and after, as far as they are not damaged themselves."""
        known = list(known)
        before = max([one.end for one in known if one.end <= stretch.begin], default=0)
        behind = min([one.begin for one in known if one.begin >= stretch.end], default=self._view.max_offset)
        found = [
            (max(stretch.begin - NEIGHBOURS, before, self._view.min_offset), stretch.begin),
            (stretch.end, min(stretch.end + NEIGHBOURS, behind, self._view.max_offset)),
        ]
        whole = [(begin, end) for begin, end in found if begin < end]
        if not whole:
            raise OtherLog("nothing beside the damage can tell whether it is the same log")
        return whole

    async def _compare(self, peer: LogPeer, begin: int, end: int) -> None:
        step = 1 << 20
        theirs = [one async for one in peer.checksums(begin, end, step)]
        ours = await asyncio.to_thread(read_checksums, self._commit_log, self._view.file_size, begin, end, step)
        if theirs != ours:
            raise OtherLog(
                f"its log is not ours at offsets {begin:,}-{end:,}, beside the damage",
                remedy="tandem data audit --pair finds out where they differ",
            )


class _Source:
    """The bytes of one stretch on their way from a peer to our store."""

    def __init__(self, peer: LogPeer, stretch: DamagedStretch) -> None:
        self._peer = peer
        self._stretch = stretch
        self.problem: Exception | None = None
        """Why they ended early, which the store then refuses."""

    async def messages(self) -> AsyncIterator[RepairBytes]:
        """For `Repair`."""
        begin, end = self._stretch.begin, self._stretch.end
        first = True
        try:
            async for data in self._peer.fetch(begin, end):
                yield (
                    RepairBytes(begin=begin, end=end, source=self._peer.address, data=data)
                    if first
                    else RepairBytes(data=data)
                )
                first = False
        except (grpc.aio.AioRpcError, TandemError) as error:
            self.problem = error
