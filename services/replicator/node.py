"""A node's replicator: the link to the store, and the side that the store's role asks for, master or slave."""

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

import grpc

from tandemmq.common.calling.backoff import Backoff
from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.serving.server import ServiceHost
from tandemmq.common.timers import LoopTimers, Timers, time_limit
from tandemmq.replication.v1.replication_pb2 import FollowerState
from tandemmq.replicator.channels import replicator_channel, store_channel
from tandemmq.replicator.errors import raise_for_store
from tandemmq.replicator.healing.healer import Healer
from tandemmq.replicator.log_view import LogView
from tandemmq.replicator.master.master import Master
from tandemmq.replicator.master.replicas import ProgressTeller
from tandemmq.replicator.metrics import Now, ReplicatorMetrics, SlaveNow
from tandemmq.replicator.roles.fencing import Fencer
from tandemmq.replicator.roles.signpost import Signpost
from tandemmq.replicator.settings import ReplicatorSettings
from tandemmq.replicator.slave.slave import MasterFollower
from tandemmq.replicator.store_link import StoreLink
from tandemmq.store.v1.log_repair_pb2_grpc import LogRepairStub
from tandemmq.store.v1.replica_log_pb2 import (
    BrokerRole,
    DemoteRequest,
    FenceRequest,
    GetRoleRequest,
    PromoteRequest,
    ReplicaGroup,
    ReplicationProgress,
    RoleState,
)
from tandemmq.store.v1.replica_log_pb2_grpc import ReplicaLogStub

if TYPE_CHECKING:  # the generated code knows this class by its types only
    from tandemmq.store.v1.log_repair_pb2_grpc import LogRepairAsyncStub

log = get_log(__name__)

_LOOK_SECONDS = 0.5
"""How often health and what the metrics show are looked at."""
_STORE_SECONDS = 10.0
_PROMOTE_SECONDS = 120.0
"""A promotion finishes queues and index before it answers."""
_PAUSES = 0.2, 2.0
"""Between attempts to become a master, which fail when the port is taken."""


class ReplicatorNode:
    """Everything that one replicator does, but for the gRPC service. Make it inside a running event loop."""

    def __init__(
        self,
        settings: ReplicatorSettings,
        host: ServiceHost,
        metrics: ReplicatorMetrics,
        timers: Timers | None = None,
    ) -> None:
        """Raises UnreadableCertificate, UnreadableSecret."""
        self.settings = settings
        self.timers: Timers = timers or LoopTimers()
        self.view = LogView()
        self.master: Master | None = None
        """The master side, while the store is a master's."""
        self.follower = MasterFollower(settings, self.view, self.grpc_port, self.timers)
        self.problem = ""
        """Why this side does not work; empty while it does."""
        self._host = host
        self._metrics = metrics
        self._channel = store_channel(settings)
        self._store = ReplicaLogStub(self._channel)
        self.log_repair: LogRepairAsyncStub = LogRepairStub(self._channel)
        """Our store's calls about damage of its log."""
        self.slaves: dict[str, str] = {}
        """Where slaves' replicators serve gRPC, by broker id, as they said when they joined."""
        self._teller: ProgressTeller | None = None
        self._link = StoreLink(
            self._channel, settings.store_address, self.view, metrics, self._progress, self._begin_telling, self.timers
        )
        self._signpost = Signpost(self.view, self.old_master, self.role_state, self.dial, self._link.wake, self.timers)
        self._held = False
        self._following = settings
        """The settings with the master that Follow named, if it did."""
        self._turn = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._serving = False
        self._slave_now: SlaveNow | None = None

    def start(self) -> None:
        """Dial the store; everything else follows from what it says."""
        self.view.observe(self._changed)
        self._metrics.follower = self.follower.counters
        self._metrics.watch(self.now)
        self._tasks = [
            asyncio.create_task(self._take_sides(), name="replicator side"),
            asyncio.create_task(self._look(), name="replicator health"),
            asyncio.create_task(
                Fencer(self.view, self.old_master, self.grpc_port, self.dial, self._metrics, self.timers).run(),
                name="replicator, fencing an old master",
            ),
            asyncio.create_task(self._signpost.run(), name="replicator, looking for the master"),
        ]
        healer = Healer(
            self.log_repair,
            self.view,
            self.peers,
            lambda: self.follower.problem if self.follower.refused else "",
            self.dial,
            self.settings.store_path_root_dir / "commitlog",
            self._metrics,
            self.timers,
        )
        self._tasks.append(asyncio.create_task(healer.run(), name="replicator, mending the log"))
        self._link.start()

    async def stop(self) -> None:
        """Everything ends; what had arrived is with the store."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.master is not None:
            self.master.stop()
            self.master = None
        await self.follower.stop()
        await self._link.stop()
        await self._channel.close()

    # -- the link -----------------------------------------------------------------------------------------------------

    def _changed(self) -> None:
        if self.master is not None:
            self.master.log_changed()
        serves = None if self.master is None else self.master.mastership
        wanted = self.view.mastership if self.view.is_master else None
        if serves != wanted or self.view.is_slave != self.follower.running:
            self._turn.set()

    def _begin_telling(self) -> None:
        self._signpost.begin()
        if self._teller is not None:
            self._teller.begin()

    def _progress(self) -> ReplicationProgress | None:
        pointer = self._signpost.message()
        if pointer is not None or self._teller is None:
            return pointer
        return self._teller.message(self.timers.time())

    # -- sides --------------------------------------------------------------------------------------------------------

    async def _take_sides(self) -> None:
        """Starts and stops the sides, one at a time, as the role says."""
        backoff = Backoff(*_PAUSES)
        while True:
            self._turn.clear()
            try:
                await self._take_side()
                backoff.reset()
            except TandemError as error:
                if self.problem != error.explain():
                    self.problem = error.explain()
                    log.error("cannot be what the store is", role=self.role, problem=self.problem)
                with contextlib.suppress(TimeoutError):
                    async with time_limit(self.timers, backoff.pause()):
                        await self._turn.wait()
                continue
            await self._turn.wait()

    async def _take_side(self) -> None:
        if self.master is not None and self.master.mastership != self.view.mastership:
            log.info("this mastership has ended", role=self.role, epoch=self.view.identity.epoch)
            self.master.stop()
            self.master = self._teller = None
        if self.follower.running and (self._held or not self.view.is_slave):
            await self.follower.stop()
        starts_master = self.view.is_master and self.master is None
        starts_slave = self.view.is_slave and not self.follower.running and not self._held
        if not starts_master and not starts_slave:
            self.problem = ""
            return
        state = await self.role_state()
        if state.ha_master_address and state.ha_master_address != self._following.ha_master_address:
            self.follow(state.ha_master_address, state.replicator_address)
        identity = state.identity
        if identity.role != self.view.identity.role or (starts_master and identity.epoch != self.view.identity.epoch):
            self._turn.set()  # it has just changed: the link tells soon
        elif starts_master:
            master = Master(
                self.settings, self.view, self._metrics, self._link.wake, self._store_remembers, state.group,
                self.timers,
            )  # fmt: skip
            try:
                master.start()
            except TandemError:
                master.stop()
                raise
            self.master, self._teller = master, ProgressTeller(master.replicas)
            self._link.wake()
        elif not self._held:
            self.follower.start()
        self.problem = ""

    @property
    def role(self) -> str:
        """Of the store, in RocketMQ's words."""
        return BrokerRole.Name(self.view.identity.role) if self.view.known else "UNKNOWN"

    # -- what the service asks for ------------------------------------------------------------------------------------

    def follow(self, ha_master_address: str, replicator_address: str) -> None:
        """Follow the master there from now on; call it while held (see `hold`)."""
        self._following = replace(
            self.settings,
            ha_master_address=ha_master_address,
            ha_master_replicator_address=replicator_address,
        )
        counters = self.follower.counters
        self.follower = MasterFollower(self._following, self.view, self.grpc_port, self.timers)
        self.follower.counters = counters
        self._metrics.follower = counters

    def old_master(self) -> str:
        """Where the followed master's replicator serves gRPC; empty if nobody knows."""
        address = self._following.ha_master_address
        return self._following.master_replicator_address(address) if address else ""

    def peers(self) -> list[str]:
        """Replicators of nodes that should have our log: the master's, also if we do not follow it now; or the slaves'.

        Damage in the end of a log looks like a fork, and is mended: the bytes beside it tell whose log it is.
        """
        if self.master is not None:
            return [self.slaves[one.identity] for one in self.master.replicas if one.identity in self.slaves]
        master = self.old_master()
        return [master] if master else []

    def following(self) -> str:
        """Why this node does not follow its master at present; empty if it does."""
        status = self.follower.status()
        if status.state == FollowerState.FOLLOWING:
            return ""
        state = FollowerState.Name(status.state) if self.follower.running else "STOPPED"
        return f"{state}, {status.problem}" if status.problem else state

    def grpc_port(self) -> int:
        """Where this replicator serves gRPC."""
        return self._host.port

    def dial(self, address: str) -> grpc.aio.Channel:
        """A channel to another node's replicator. Raises UnreadableCertificate, UnreadableSecret."""
        return replicator_channel(self.settings, address)

    async def hold(self) -> None:
        """Follow nobody from now on; what had arrived is in the store when this returns."""
        self._held = True
        await self.follower.stop()

    def resume(self) -> None:
        """Follow again, if the store is a slave's."""
        self._held = False
        self._turn.set()

    async def role_state(self) -> RoleState:
        """What the store is and has. Raises OwnStoreUnreachable."""
        try:
            return await self._store.GetRole(GetRoleRequest(), timeout=_STORE_SECONDS)
        except grpc.aio.AioRpcError as error:
            raise_for_store(error)

    async def become_master(self, role: "BrokerRole.ValueType", epoch: int) -> RoleState:
        """Promote the store. Raises OwnStoreUnreachable, StoreRefuses."""
        try:
            return await self._store.Promote(PromoteRequest(role=role, epoch=epoch), timeout=_PROMOTE_SECONDS)
        except grpc.aio.AioRpcError as error:
            raise_for_store(error)

    async def fence(self, epoch: int, candidate: str = "", candidate_address: str = "") -> RoleState:
        """Tell the store of a newer master, or of who wants to be it. Raises OwnStoreUnreachable, StoreRefuses."""
        request = FenceRequest(epoch=epoch, candidate=candidate, candidate_address=candidate_address)
        try:
            return await self._store.Fence(request, timeout=_STORE_SECONDS)
        except grpc.aio.AioRpcError as error:
            raise_for_store(error)

    async def become_slave(self, epoch: int, ha_master_address: str, replicator_address: str) -> RoleState:
        """Demote the store, and have it note its master; empty texts: the one of the settings.

        Raises OwnStoreUnreachable, StoreRefuses.
        """
        request = DemoteRequest(epoch=epoch, ha_master_address=ha_master_address, replicator_address=replicator_address)
        try:
            return await self._store.Demote(request, timeout=_STORE_SECONDS)
        except grpc.aio.AioRpcError as error:
            raise_for_store(error)

    async def _store_remembers(self, group: ReplicaGroup) -> None:
        try:
            await self._store.Remember(group, timeout=_STORE_SECONDS)
        except grpc.aio.AioRpcError as error:
            raise_for_store(error)

    # -- health and metrics -------------------------------------------------------------------------------------------

    @property
    def healthy(self) -> bool:
        """Whether the link stands and this side does what it is for."""
        if not self.view.linked or self.problem:
            return False
        if self.view.is_master:
            return self.master is not None
        return self.follower.running and not self.follower.refused

    def now(self) -> Now:
        """What the metrics show; called on the metrics thread, reads only."""
        master, slave = self.master, self._slave_now
        return Now(self.view.linked, self._serving, self.role, None if master is None else master.now(), slave)

    async def _look(self) -> None:
        while True:
            self._slave_now = self._read_slave() if self.follower.running else None
            if self.healthy != self._serving:
                self._serving = not self._serving
                await self._tell_health()
            await self.timers.sleep(_LOOK_SECONDS)

    async def _tell_health(self) -> None:
        if self._serving:
            await self._host.serving()
            return
        log.warning("not serving", linked=self.view.linked, problem=self.problem or self.follower.problem)
        for service in ("", "tandemmq.replication.v1.Healing", "tandemmq.replication.v1.Replication"):
            await self._host.health.not_serving(service)

    def _read_slave(self) -> SlaveNow:
        status = self.follower.status()
        known, state = status.master_max_offset, FollowerState.Name(status.state).lower()
        return SlaveNow(
            state=state,
            lag_bytes=max(known - self.view.max_offset, 0) if known else None,
            unacked_bytes=max(status.received_offset - status.acked_offset, 0),
            silent_seconds=status.silent_seconds,
        )
