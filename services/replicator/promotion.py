"""Turning a slave into a master, by hand: what is checked, in which order, and what is done.

1. The store must be a slave's.
2. The old master is asked what it has. If it does not answer, somebody must have said that it is gone. If it answers,
   this node must be following it, or else it could not take the rest.
3. The old master is fenced: it takes no more messages, so what it has now is all that there will be.
4. This node takes the rest of it.
5. This node stops following, and compares itself with the old master and the other slaves.
6. The store begins a new epoch.

Nothing has changed when a check before step 3 fails. When one after it fails, the old master stays fenced (nobody
takes messages then), this node follows it again, and the promotion can be asked for once more; or the old master is
made what it was by a promotion there, which a fenced master allows when somebody has said that the newer one is gone.
"""

import asyncio
from typing import NamedTuple, Protocol

import grpc

from tandemmq.common.log_output import get_log
from tandemmq.replication.v1.replication_pb2 import FenceRequest, PromoteRequest, StatusRequest, StatusResponse
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub
from tandemmq.replicator.errors import (
    BadRequest,
    MissingHere,
    NewerMaster,
    NotFollowing,
    OldMasterSilent,
    OtherSlaveSilent,
    WrongRole,
)
from tandemmq.store.v1.replica_log_pb2 import BrokerRole, RoleState

log = get_log(__name__)

_ANSWER_SECONDS = 3.0
_CATCH_UP_SECONDS = 60.0
_STALL_SECONDS = 5.0
"""Catching up is given up when not a byte came for so long."""
_POLL_SECONDS = 0.02
_MASTERS = (BrokerRole.ASYNC_MASTER, BrokerRole.SYNC_MASTER)


class Slave(Protocol):
    """This node, as the promotion needs it."""

    async def role_state(self) -> RoleState:
        """What the store is and has. Raises StoreUnreachable."""

    async def hold(self) -> None:
        """Follow nobody from now on; what had arrived is in the store when this returns."""

    def resume(self) -> None:
        """Follow again, if the store is a slave's."""

    async def become_master(self, role: "BrokerRole.ValueType", epoch: int) -> RoleState:
        """Promote the store. Raises StoreUnreachable, StoreRefuses."""

    def following(self) -> str:
        """Why this node does not follow the old master at present; empty if it does."""

    def master_known_end(self) -> int:
        """The end of the old master's log as far as this node knows it; 0 if it does not."""

    def old_master(self) -> str:
        """Where the old master's replicator serves gRPC; empty if nobody knows."""

    def dial(self, address: str) -> grpc.aio.Channel:
        """A channel to another node's replicator. Raises UnreadableCertificate, UnreadableSecret."""


class Other(NamedTuple):
    """What another replicator said of its node."""

    address: str
    status: StatusResponse

    @property
    def end(self) -> int:
        """Of its log."""
        return self.status.max_offset


class Promotion:
    """One attempt. `steps` says in words what was checked and done so far."""

    def __init__(self, slave: Slave, request: PromoteRequest) -> None:
        self.steps: list[str] = []
        self._slave = slave
        self._request = request
        self._own = RoleState()
        self._old: Other | None = None
        self._epoch = 0

    async def run(self) -> RoleState:
        """All of it; gives the new master's state.

        Raises:
            BadRequest, WrongRole, StoreUnreachable, StoreRefuses, OldMasterSilent, MissingHere, OtherSlaveSilent
        """
        if self._request.role not in _MASTERS:
            raise BadRequest("role must be ASYNC_MASTER or SYNC_MASTER")
        self._own = await self._slave.role_state()
        identity = self._own.identity
        if identity.role != BrokerRole.SLAVE:
            if identity.fenced_by_epoch:
                return await self._take_back()
            raise WrongRole(f"this node is {BrokerRole.Name(identity.role)} already, not a slave")
        self._say(f"this node is a slave of epoch {self._own.identity.epoch}; its log ends at {self._own.max_offset}")
        await self._ask_old_master()
        others = await self._ask_others()
        self._epoch = 1 + max(
            self._own.identity.epoch,
            self._own.identity.fenced_by_epoch,
            *(one.status.identity.epoch for one in (*others, *([self._old] if self._old else []))),
            *(one.status.identity.fenced_by_epoch for one in others),
            0,
        )
        if self._old is not None:
            await self._fence()
            await self._catch_up()
        await self._slave.hold()
        try:
            return await self._take_over()
        finally:
            self._slave.resume()

    async def _take_back(self) -> RoleState:
        """This is a master that was fenced, by a promotion that somebody says has come to nothing."""
        identity = self._own.identity
        if not self._request.old_master_is_gone:
            raise NewerMaster(
                f"this node is a master (epoch {identity.epoch}) that was replaced by one of epoch "
                f"{identity.fenced_by_epoch}"
            )
        self._say(f"this node was fenced by epoch {identity.fenced_by_epoch}; you said that no such master lives")
        others = await self._ask_others()
        for other in others:
            theirs = other.status.identity
            if theirs.role in _MASTERS and theirs.epoch > identity.epoch and not theirs.fenced_by_epoch:
                raise NewerMaster(f"the node at {other.address} is a master of epoch {theirs.epoch}, and it lives")
            self._compare(other, "node")
        epoch = 1 + max([identity.fenced_by_epoch, *(one.status.identity.epoch for one in others)])
        state = await self._slave.become_master(self._request.role, epoch)
        self._say(f"this node is {BrokerRole.Name(state.identity.role)} of epoch {state.identity.epoch}")
        return state

    async def _take_over(self) -> RoleState:
        self._own = await self._slave.role_state()
        self._say(f"stopped following; the log ends at {self._own.max_offset}")
        self._compare_with_old_master()
        for other in await self._ask_others():
            self._compare(other, "slave")
        state = await self._slave.become_master(self._request.role, self._epoch)
        identity = state.identity
        self._say(f"this node is {BrokerRole.Name(identity.role)} of epoch {identity.epoch} from {state.max_offset} on")
        return state

    def _say(self, step: str) -> None:
        self.steps.append(step)
        log.info("promotion", step=step)

    # -- the old master -----------------------------------------------------------------------------------------------

    async def _ask_old_master(self) -> None:
        address = self._slave.old_master()
        try:
            if not address:
                raise OldMasterSilent("it is not known who the old master is (haMasterAddress is not set)")
            self._old = await self._ask(address)
        except (grpc.aio.AioRpcError, OldMasterSilent) as error:
            why = f"{error.details()}" if isinstance(error, grpc.aio.AioRpcError) else error.message
            if not self._request.old_master_is_gone:
                raise OldMasterSilent(
                    f"the old master's replicator at {address or '?'} does not answer: {why}"
                ) from error
            self._say(f"the old master's replicator at {address or '?'} does not answer; you said that it is gone")
            return
        identity = self._old.status.identity
        if identity.role not in _MASTERS:
            self._say(f"{address} is no master (any more)")
            self._old = None
            if not self._request.old_master_is_gone:
                raise OldMasterSilent(f"the node at {address} is no master, so nobody tells what the last one had")
            return
        self._say(f"the old master at {address} is of epoch {identity.epoch}; its log ends at {self._old.end}")
        problem = self._slave.following()
        if problem and not identity.fenced_by_epoch and not self._request.accept_loss:
            raise NotFollowing(f"this node cannot take what the old master at {address} still gets: {problem}")

    async def _fence(self) -> None:
        assert self._old is not None
        address = self._old.address
        try:
            channel = self._slave.dial(address)
            try:
                stub = ReplicationStub(channel)
                fenced = await stub.Fence(FenceRequest(epoch=self._epoch), timeout=_ANSWER_SECONDS)
            finally:
                await channel.close()
            self._old = Other(
                address, StatusResponse(identity=fenced.state.identity, max_offset=fenced.state.max_offset)
            )
        except grpc.aio.AioRpcError as error:
            if not self._request.old_master_is_gone:
                raise OldMasterSilent(f"the old master at {address} cannot be fenced: {error.details()}") from error
            self._say(f"the old master at {address} could not be fenced: {error.details()}; you said that it is gone")
            return
        self._say(f"the old master is fenced by epoch {self._epoch}; its log ends at {self._old.end} for ever")

    async def _catch_up(self) -> None:
        assert self._old is not None
        loop = asyncio.get_running_loop()
        begin = grew = loop.time()
        have = self._own.max_offset
        while have < self._old.end and loop.time() - grew < _STALL_SECONDS and loop.time() - begin < _CATCH_UP_SECONDS:
            await asyncio.sleep(_POLL_SECONDS)
            state = await self._slave.role_state()
            if state.max_offset > have:
                have, grew = state.max_offset, loop.time()
        if have > self._own.max_offset:
            self._say(f"took the rest of the old master's log, up to {have}")

    def _compare_with_old_master(self) -> None:
        if self._old is not None:
            self._compare(self._old, "old master")
            return
        missing = self._slave.master_known_end() - self._own.max_offset
        if missing > 0:
            self._missing(f"the old master had at least {missing} bytes that never came here")

    # -- the other slaves ---------------------------------------------------------------------------------------------

    async def _ask_others(self) -> list[Other]:
        found = []
        for address in self._request.other_slaves:
            try:
                found.append(await self._ask(address))
            except grpc.aio.AioRpcError as error:
                if not self._request.accept_loss:
                    raise OtherSlaveSilent(f"the slave at {address} does not answer: {error.details()}") from error
                self._say(f"the slave at {address} does not answer; you accept a loss")
        return found

    def _compare(self, other: Other, what: str) -> None:
        missing = other.end - self._own.max_offset
        if missing > 0:
            self._missing(f"the {what} at {other.address} has {missing} bytes more (up to {other.end}) than this node")
        else:
            self._say(f"the {what} at {other.address} has nothing that this node does not have")

    def _missing(self, what: str) -> None:
        if not self._request.accept_loss:
            fenced = "" if self._old is None else "; the old master is fenced and takes no messages"
            raise MissingHere(f"{what}{fenced}")
        self._say(f"{what}; you accept that they are lost")

    async def _ask(self, address: str) -> Other:
        """Raises AioRpcError."""
        channel = self._slave.dial(address)
        try:
            return Other(address, await ReplicationStub(channel).Status(StatusRequest(), timeout=_ANSWER_SECONDS))
        finally:
            await channel.close()
