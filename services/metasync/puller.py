"""The slave's side: copies the master's tables, and hands over the offsets that were committed here.

A cycle asks the master for the versions of its tables and copies those that differ. A table is taken over only when
all of it has come; each one for itself, so that one that fails stops no other. What a slave has is therefore always a
whole table that its master had once, plus commits that the master does not know yet.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack

import grpc

from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.timers import LoopTimers, Timers
from tandemmq.metasync.data_version import DataVersion
from tandemmq.metasync.errors import StaleMaster
from tandemmq.metasync.keeper import Keeper
from tandemmq.metasync.master_tables import MasterLink, MasterTables
from tandemmq.metasync.tables import Change, ConfigTable, Content, TableKind, stale

log = get_log(__name__)

CONFIG_TABLES = (TableKind.TOPICS, TableKind.SUBSCRIPTION_GROUPS)

MOST_COMMITS = 1_000
"""Offsets handed over in one call."""


class TablePuller:
    """Copies tables from one master. Numbers it counts are for the metrics."""

    def __init__(
        self,
        keeper: Keeper,
        link: MasterLink,
        local: frozenset[str],
        timers: Timers | None = None,
    ) -> None:
        """`local`: topics that stay when the master has none."""
        self._keeper = keeper
        self._link = link
        self._local = local
        self.timers: Timers = timers or LoopTimers()
        self.problems: dict[TableKind, str] = {}
        """Why a table could not be copied in the last cycle."""
        self.synced_at: dict[TableKind, float] = {}
        """By the clock of the timers, the time of the last cycle that left a table equal to the master's."""
        self.taken_over: dict[TableKind, int] = dict.fromkeys(TableKind, 0)
        self.failures: dict[TableKind, int] = dict.fromkeys(TableKind, 0)
        self._stale_ones: Mapping[TableKind, StaleMaster] = {}
        """Tables of the master that were older than ours in the last cycle that it answered."""
        self.handed_over = 0
        self.cycles = 0

    async def run(self, delay: float, interval: float) -> None:
        """Cycles for ever, in seconds; ends when it is cancelled."""
        await self.timers.sleep(delay)
        while True:
            try:
                await self.cycle()
            except Exception as error:  # noqa: BLE001 - copying goes on, whatever it was
                log.failure("cycle failed", error, master=self._link.address)
                self._failed_all(error)
            await self.timers.sleep(interval)

    async def request_modes(self) -> str | None:
        """See MasterTables. Raises as a MasterLink does; StaleMaster: it is not to be followed."""
        self._distrust(self._stale_ones)
        async with self._link.opened() as masters:
            return await masters.request_modes(lambda versions: self._distrust(self._stale(versions)))

    def _distrust(self, stale_ones: Mapping[TableKind, StaleMaster]) -> None:
        for error in stale_ones.values():
            raise StaleMaster(error.message, remedy=error.remedy)

    def stopped(self) -> None:
        """This node is no slave any more: what went wrong before is past."""
        self.problems.clear()
        self.synced_at.clear()
        self._stale_ones = {}

    async def cycle(self) -> None:
        """Hand over commits and copy every table that differs. Problems are told and counted, never raised."""
        self.cycles += 1
        async with AsyncExitStack() as stack:
            try:
                masters = await stack.enter_async_context(self._link.opened())
                versions = await masters.versions()
            except (grpc.aio.AioRpcError, TandemError) as error:
                self._failed_all(error)
                return
            stale_ones = self._stale_ones = self._stale(versions)
            try:
                if not stale_ones:
                    await self._hand_over(masters, versions)
            except (grpc.aio.AioRpcError, TandemError) as error:
                log.warning("offsets not handed over", master=self._link.address, reason=_reason(error))
            for kind in TableKind:
                await self._step(kind, lambda kind=kind: self._copy(masters, kind, versions, stale_ones))  # type: ignore[misc]

    async def _step(self, kind: TableKind, step: Callable[[], Awaitable[None]]) -> None:
        """One table; its failure is its own."""
        try:
            await step()
        except (grpc.aio.AioRpcError, TandemError) as error:
            self._failed(kind, error)
        except Exception as error:  # noqa: BLE001 - a fault of ours in one table must not stop the others
            log.failure("table not copied", error, table=kind.file_name)
            self._failed(kind, error)
        else:
            if self.problems.pop(kind, None) is not None:
                log.info("table copied again", table=kind.file_name)
            self.synced_at[kind] = self.timers.time()

    def _stale(self, versions: Mapping[TableKind, DataVersion]) -> dict[TableKind, StaleMaster]:
        """Tables of topics or groups that are older than ours.

        They are durable before a change is answered, so a master that has one has lost its files or is not the right
        one: its offsets are not to be trusted either.
        """
        own = {kind: self._keeper.table(kind).version for kind in CONFIG_TABLES}
        return {
            kind: stale(kind, versions[kind], own[kind])
            for kind in own
            if kind in versions and versions[kind].older_than(own[kind])
        }

    async def _copy(
        self,
        masters: MasterTables,
        kind: TableKind,
        versions: Mapping[TableKind, DataVersion],
        stale_ones: Mapping[TableKind, StaleMaster],
    ) -> None:
        """Take a table over if its version differs. Raises what went wrong."""
        if kind in stale_ones or (stale_ones and kind not in CONFIG_TABLES):
            raise stale_ones.get(kind) or next(iter(stale_ones.values()))
        keeper = self._keeper
        own = keeper.table(kind).version
        followed = kind is not TableKind.CONSUMER_OFFSETS or keeper.offsets.followed
        if versions.get(kind) == own and followed:
            return
        whole = await masters.whole(kind)
        if await self._take_over(kind, whole):
            self.taken_over[kind] += 1
            log.info("table copied", table=kind.file_name, entries=len(whole.entries), version=str(whole.version))

    async def _take_over(self, kind: TableKind, masters: Content) -> bool:
        """Make it ours; False if it is already. Raises StaleMaster, DocumentNotSaved."""
        keeper = self._keeper
        if kind is TableKind.CONSUMER_OFFSETS:
            change: Change | None = keeper.offsets.take_over(masters)
            if change is not None:
                keeper.offsets.accept(change, masters)
        elif kind is TableKind.DELAY_OFFSETS:
            change = keeper.delays.take_over(masters)
            if change is not None:
                keeper.delays.accept(change)
        else:
            table: ConfigTable = keeper.topics if kind is TableKind.TOPICS else keeper.groups
            keep = self._local if kind is TableKind.TOPICS else ()
            return await keeper.change(table, lambda: table.take_over(masters, keep)) is not None
        if change is not None:
            keeper.changed(kind, None)
        await keeper.flush(kind)
        return change is not None

    async def _hand_over(self, masters: MasterTables, versions: Mapping[TableKind, DataVersion]) -> None:
        """Tell the master what was committed here, unless its mastership began later. Raises as MasterTables."""
        offsets = self._keeper.offsets
        theirs = versions.get(TableKind.CONSUMER_OFFSETS)
        if theirs is None or not offsets.followed or theirs.state_version != offsets.version.state_version:
            return
        waiting = list(offsets.waiting())
        for at in range(0, len(waiting), MOST_COMMITS):
            some = waiting[at : at + MOST_COMMITS]
            for one in some[: await masters.commit(some)]:
                offsets.handed_over(one)
            self.handed_over += len(some)
            self._keeper.changed(TableKind.CONSUMER_OFFSETS, ())

    def _failed_all(self, error: Exception) -> None:
        for kind in TableKind:
            self._failed(kind, error)

    def _failed(self, kind: TableKind, error: Exception) -> None:
        reason = _reason(error)
        self.failures[kind] += 1
        if self.problems.get(kind) != reason:
            log.warning("table not copied", table=kind.file_name, master=self._link.address, reason=reason)
        self.problems[kind] = reason


def _reason(error: Exception) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        return f"the master answers {error.code().name}: {error.details()}"
    return error.explain() if isinstance(error, TandemError) else f"{type(error).__name__}: {error}"
