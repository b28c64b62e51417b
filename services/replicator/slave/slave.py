"""The slave side of the replicator: follows a master, again and again, until it is stopped."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import grpc

from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.timers import LoopTimers, Timers, first_of
from tandemmq.replication.v1.replication_pb2 import FollowerState, FollowerStatus
from tandemmq.replicator.channels import store_channel
from tandemmq.replicator.log_view import LogView
from tandemmq.replicator.settings import ReplicatorSettings, SlaveAck
from tandemmq.replicator.slave.following import WHOLE_HISTORY, FollowingConnection, FollowRules, check_identity
from tandemmq.replicator.slave.join import master_log
from tandemmq.replicator.slave.overlap import LocalLog, read_log
from tandemmq.replicator.slave.slave_connection import FollowerCounters, HaConnection
from tandemmq.replicator.slave.slave_dial import dial, local_port
from tandemmq.replicator.slave.slave_doubts import Doubts
from tandemmq.replicator.slave.slave_errors import (
    CorruptBytes,
    FollowError,
    MasterClosed,
    MasterHasNothing,
    NoMasterNamed,
    SlaveRefusal,
    StoreGone,
)
from tandemmq.replicator.slave.slave_group import GroupOfSlave, idle_report_seconds
from tandemmq.replicator.slave.slave_proof import is_masters_own
from tandemmq.replicator.slave.slave_search import asking, search_begin
from tandemmq.replicator.slave.slave_store import StoreStream
from tandemmq.replicator.slave.staging import StagingFile, remove_leftovers
from tandemmq.store.v1 import replica_log_pb2
from tandemmq.store.v1.replica_log_pb2 import BrokerRole, GetRoleRequest, RefusedBytes, RoleState
from tandemmq.store.v1.replica_log_pb2_grpc import ReplicaLogStub

if TYPE_CHECKING:  # the generated code knows this class by its types only
    from tandemmq.store.v1.replica_log_pb2_grpc import ReplicaLogAsyncStub

log = get_log(__name__)

_STORE_SECONDS = 5.0
"""How long the store may take for a question."""
_FLUSH_POLL_SECONDS = 0.05
_TICK_SECONDS = 1.0


class MasterFollower:
    """Follows one master at a time. Belongs to the event loop."""

    def __init__(
        self,
        settings: ReplicatorSettings,
        view: LogView,
        grpc_port: Callable[[], int],
        timers: Timers | None = None,
    ) -> None:
        """Nothing happens before `start`. `view` says whether there is a link to the store.

        `grpc_port` is our own replicator's, which the master and the other slaves are told.
        """
        self.counters = FollowerCounters()
        self.state = FollowerState.FOLLOWER_STATE_UNSPECIFIED
        """What it does; unspecified while it is stopped."""
        self.problem = ""
        """Why it does not follow, in words; empty while it does."""
        self.master_address = ""
        self._settings = settings
        self._view = view
        self._timers: Timers = timers or LoopTimers()
        self._group = GroupOfSlave(settings, view, grpc_port, self._timers)
        self._rules = FollowRules(
            from_last_file=settings.sync_from_last_file,
            ack_flushed=settings.ha_slave_ack is SlaveAck.FLUSHED,
            report_seconds=settings.ha_send_heartbeat_interval / 1000,
            silence_seconds=settings.ha_housekeeping_interval / 1000,
        )
        self._task: asyncio.Task[None] | None = None
        self._connection: HaConnection | None = None
        self._backoff = Backoff(settings.ha_reconnect_min / 1000, settings.ha_reconnect_max / 1000)
        self._corrupt = Backoff(settings.ha_reconnect_min / 1000, settings.ha_reconnect_max / 1000)
        """Pauses while the same bytes fail their check again and again: that the rest goes well does not end them."""
        self._doubts = Doubts()
        self._refused_bytes: RefusedBytes | None = None
        """What our store refused last, while its log has not got behind it."""
        self._one_file = False
        """Compare within the last file only: the master seems not to have what comes before it."""
        self._begin = WHOLE_HISTORY
        """What an empty log asks for."""
        self._search = True
        """Whether to look for the beginning of a master's log that sends nothing to an empty one."""
        self._master_max = 0
        self._received = self._acked = self._stored = 0

    @property
    def running(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._task is not None

    @property
    def refused(self) -> bool:
        """Whether somebody must act before it can follow; health says so."""
        return self.state == FollowerState.REFUSED

    def start(self, ha_master_address: str | None = None) -> None:
        """Follows the master at `host:port`; without one the master that the settings name. Once until `stop`."""
        if self._task is not None:
            return
        self.master_address = ha_master_address or self._settings.ha_master_address or ""
        self.state = FollowerState.CONNECTING
        self.problem = ""
        self._master_max = self._received = self._acked = self._stored = 0
        self._one_file = False
        self._begin, self._search = WHOLE_HISTORY, True
        self._backoff.reset()
        self._corrupt.reset()
        self._doubts = Doubts()
        self._task = asyncio.create_task(self._run(), name="follower")

    async def stop(self) -> None:
        """Ends following. What had arrived has been handed to the store; afterwards not a byte more reaches it."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        self.state = FollowerState.FOLLOWER_STATE_UNSPECIFIED
        self.problem = ""

    def status(self) -> FollowerStatus:
        """What the replicator's Status tells."""
        following = self._connection.following if self._connection is not None else None
        now = self._timers.time()
        return FollowerStatus(
            master_address=self.master_address,
            state=self.state,
            problem=self.problem,
            received_offset=following.received_offset if following is not None else self._received,
            acked_offset=following.reported_offset if following is not None else self._acked,
            master_max_offset=self._master_max,
            silent_seconds=following.silent_seconds(now) if following is not None else 0.0,
            reconnects=self.counters.reconnects,
        )

    async def _run(self) -> None:
        channel: grpc.aio.Channel | None = None
        try:
            while True:
                pause = 0.0
                try:
                    channel = channel or store_channel(self._settings)
                    await self._follow(ReplicaLogStub(channel))
                except (TandemError, OSError) as error:
                    pause = self._ended(error)
                except Exception as error:  # noqa: BLE001 - a slave that stops trying is worse than one that fails again
                    log.failure("following failed", error)
                    self.problem = f"internal error: {error!r}"
                    pause = self._backoff.pause()
                await self._timers.sleep(pause)
                self.counters.reconnects += 1
        finally:
            if channel is not None:
                await channel.close()

    def _ended(self, error: TandemError | OSError) -> float:
        """Notes why an attempt ended; gives the pause before the next, in seconds."""
        reason = error.reason if isinstance(error, FollowError) else "error"
        self.counters.ends[reason] = self.counters.ends.get(reason, 0) + 1
        problem = error.explain() if isinstance(error, TandemError) else str(error)
        known = problem == self.problem
        if isinstance(error, SlaveRefusal):
            self.problem = problem
            self.state = FollowerState.REFUSED
            self._backoff.reset()
            if not known:
                log.error("refused to follow", master=self.master_address, reason=reason, problem=problem)
            soon = self._doubts.first(error, self._stored)
            return self._backoff.pause() if soon else self._settings.ha_refused_pause / 1000
        if not self.refused:
            self.problem = problem
            self.state = FollowerState.CONNECTING
        if not known:
            log.warning("not following", master=self.master_address, reason=reason, problem=problem)
        return (self._corrupt if isinstance(error, CorruptBytes) else self._backoff).pause()

    async def _follow(self, stub: "ReplicaLogAsyncStub") -> None:
        """One attempt: one HA connection from the dialling to its end. Raises what ended it."""
        if not self.master_address:
            raise NoMasterNamed("this slave has nobody to follow")
        await self._linked()
        local = await self._local_log(stub)
        root = self._settings.store_path_root_dir
        connection = HaConnection(self.counters, self._progress, self._timers)
        staging: StagingFile | None = None
        stream: StoreStream | None = None
        try:
            transport = await dial(self._settings, self.master_address, connection, self._timers)
            response = await self._group.introduce(local_port(transport), self.master_address)
            master = None if response is None else master_log(response)
            if master is not None and response is not None:
                self._master_max = max(self._master_max, master.max_offset)
                check_identity(local, master)
                await self._group.remember(stub, response.group)
                if master.epoch > local.epoch and not local.empty:
                    local = await self._enter_epoch(stub, master.epoch)
            if connection.ended.done():
                connection.ended.result()
            begin, end = local.overlap_begin(one_file=self._one_file), local.max_offset
            overlap = read_log(root / "commitlog", local.file_size, begin, end)
            rules = self._rules
            if master is not None:
                rules = replace(rules, report_seconds=idle_report_seconds(self._settings))
            following = FollowingConnection(local, overlap, master, rules, self._begin)
            remove_leftovers(root)
            staging = StagingFile(root)
            proven = await self._proven(joined=master is not None)
            stream = StoreStream(
                stub,
                replica_log_pb2.StagingFile(name=staging.name, size=staging.size),
                self._timers,
                epoch=master.epoch if master is not None else 0,
                flush=self._rules.ack_flushed,
                on_ack=connection.taken,
                proven=proven,
            )
            self._connection = connection
            asked = connection.begin(following, stream, staging)
            log.info("asked the master for its log", master=self.master_address, offset=asked, end=end)
            keeping = asyncio.create_task(self._group.keep(stub), name="follower, keeping the group")
            try:
                await self._watch(connection, stream)
            finally:
                keeping.cancel()
        finally:
            await self._let_go(connection, stream, staging)
        found = await search_begin(asking(self._settings, self.master_address, self._timers), local.file_size)
        self._search = found is not None  # an empty master's log will begin at 0
        self._begin = found or WHOLE_HISTORY

    async def _watch(self, connection: HaConnection, stream: StoreStream) -> None:
        """Until one side ends. Raises FollowError; returns when the beginning of the master's log must be searched."""
        self._progress()
        tick = min(_TICK_SECONDS, idle_report_seconds(self._settings) / 2, self._rules.silence_seconds / 4)
        forget = self._view.observe(lambda: connection.flushed(self._view.flushed_offset if self._view.linked else 0))
        try:
            while True:
                ended, _ = await asyncio.wait(
                    (connection.ended, stream.ended), timeout=tick, return_when=asyncio.FIRST_COMPLETED
                )
                for end in ended:
                    self._doubt_overlap(connection, end.exception())
                    await end
                connection.tick()
                if self._search and connection.following is not None and connection.following.in_vain:
                    return
        finally:
            forget()

    def _doubt_overlap(self, connection: HaConnection, error: BaseException | None) -> None:
        """A master that has nothing from the overlap's begin on may have thrown that file away."""
        following = connection.following
        silent = following is not None and following.comparing and not following.heard_log
        if silent and isinstance(error, MasterHasNothing | MasterClosed):
            if isinstance(error, MasterHasNothing) and not self._one_file:
                self._one_file = True
                raise MasterClosed(f"{error.message}; asking again from the beginning of our last file") from error
            self._one_file = not self._one_file

    async def _let_go(self, connection: HaConnection, stream: StoreStream | None, staging: StagingFile | None) -> None:
        """Closes everything, whatever happened; what had arrived still goes to the store."""
        connection.close()
        following = connection.following
        stopped = await _to_the_end(stream.close()) if stream is not None else None
        if following is not None:
            self._received, self._acked = following.received_offset, following.reported_offset
            self._stored = following.stored_offset
        self._connection = None
        if staging is not None:
            staging.close()
        if stopped is not None:
            raise stopped

    def _progress(self) -> None:
        """Something arrived, or was acknowledged."""
        following = self._connection.following if self._connection is not None else None
        if following is None:
            return
        self._master_max = max(self._master_max, following.received_offset)
        if self.state == FollowerState.FOLLOWING:
            return
        behind = self._refused_bytes is None or following.stored_offset > self._refused_bytes.offset
        if following.comparing or not following.frames or not behind:
            if not self.refused:
                self.state = FollowerState.COMPARING
            return
        self.state = FollowerState.FOLLOWING
        self.problem = ""
        self._one_file = False
        self._refused_bytes = None
        self._backoff.reset()
        self._corrupt.reset()
        log.info("following", master=self.master_address, offset=following.received_offset)

    async def _linked(self) -> None:
        """Waits until the store talks to us."""
        if self._view.linked:
            return
        if not self.refused:
            self.problem = "there is no link to the store"
        changed = asyncio.Event()
        forget = self._view.observe(changed.set)
        try:
            while not self._view.linked:
                changed.clear()
                await changed.wait()
        finally:
            forget()

    async def _local_log(self, stub: "ReplicaLogAsyncStub") -> LocalLog:
        """What our store has now. Raises StoreGone."""
        deadline = self._timers.time() + _STORE_SECONDS + 2 * self._rules.silence_seconds
        while True:
            try:
                state: RoleState = await stub.GetRole(GetRoleRequest(), timeout=_STORE_SECONDS)
            except grpc.RpcError as error:
                raise StoreGone(f"the store does not answer: {error.details()}") from error
            if state.identity.role != BrokerRole.SLAVE:
                raise StoreGone("the store is no slave")
            self._refused_bytes = state.refused if state.HasField("refused") else None
            local = LocalLog(
                state.min_offset,
                state.max_offset,
                state.flushed_offset,
                state.identity.file_size,
                state.identity.epoch,
                state.identity.fenced_by_epoch,
            )
            self._group.state = state
            # The first report is an ack too: with haSlaveAck=FLUSHED it must not name what is not on disk.
            if not self._rules.ack_flushed or local.flushed_offset >= local.overlap_begin() or local.empty:
                return local
            if self._timers.time() > deadline:
                raise StoreGone(f"the store has flushed its log up to {local.flushed_offset} only, and does not go on")
            await self._timers.sleep(_FLUSH_POLL_SECONDS)

    async def _enter_epoch(self, stub: "ReplicaLogAsyncStub", epoch: int) -> LocalLog:
        """Tells the store that there is a newer master, and what it has then: half a record of the old one's goes.

        Raises StoreGone.
        """
        told = asyncio.Event()
        stream = StoreStream(stub, None, self._timers, epoch=epoch, flush=False, on_ack=lambda *_offsets: told.set())
        telling = asyncio.ensure_future(told.wait())
        try:
            await first_of(self._timers, (telling, stream.ended), _STORE_SECONDS)
            if stream.ended.done():
                stream.ended.result()
        finally:
            telling.cancel()
            cancelled = await _to_the_end(stream.close())
            if cancelled is not None:
                raise cancelled
        return await self._local_log(stub)

    async def _proven(self, *, joined: bool) -> RefusedBytes | None:
        """What our store refused, if the master has it so. Raises UnreadableCertificate, UnreadableSecret."""
        refused = self._refused_bytes
        if refused is None:
            return None
        address = self._settings.master_replicator_address(self.master_address)
        return refused if await is_masters_own(self._settings, address, refused, joined=joined) else None


async def _to_the_end(closing: Coroutine[Any, Any, None]) -> asyncio.CancelledError | None:
    """Awaits something that must not be cut short. Gives the cancellation that came meanwhile."""
    task = asyncio.ensure_future(closing)
    cancelled = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled
