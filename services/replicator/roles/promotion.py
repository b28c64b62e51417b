"""Turning a slave into a master, by hand: what is checked, in which order, and what is done.

1. The store must be a slave's.
2. The old master is asked what it has. If it does not answer, somebody must have said that it is gone. If it answers,
   this node must be following it, or else it could not take the rest.
3. The other slaves are asked whether they are there at all.
4. An old master that answers is fenced: it takes no more messages, so what it has now is all that there will be. This
   node takes the rest of it.
5. This node stops following, and promises the new epoch to itself.
6. The other slaves promise it too: they follow no older master, so a silent one cannot acknowledge any more.
7. What everybody has and knows is looked at (see `claim`).
8. The store begins the new epoch.

Nothing has changed when a check before step 4 fails. When one after it fails, what was fenced and promised stays so:
nobody takes messages that he could acknowledge. The promotion can be asked for once more, here or on another slave,
with a greater epoch; or the old master is made what it was by a promotion there.
"""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple, Protocol

import grpc

from tandemmq.common.log_output import get_log
from tandemmq.common.timers import Timers
from tandemmq.replication.v1.replication_pb2 import FenceRequest, PromoteRequest, StatusRequest, StatusResponse
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub
from tandemmq.replicator.errors import (
    AnotherCandidate,
    BadReplicatorRequest,
    MissingHere,
    NewerMaster,
    NotFollowing,
    OldMasterSilent,
    OtherSlaveSilent,
    PromotionStopped,
    WrongNodeRole,
)
from tandemmq.replicator.roles.claim import Claim, newest_group
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

    timers: Timers

    async def role_state(self) -> RoleState:
        """What the store is and has. Raises OwnStoreUnreachable."""

    async def hold(self) -> None:
        """Follow nobody from now on; what had arrived is in the store when this returns."""

    def resume(self) -> None:
        """Follow again, if the store is a slave's."""

    async def fence(self, epoch: int, candidate: str, candidate_address: str) -> RoleState:
        """Have our own store promise an epoch. Raises OwnStoreUnreachable, StoreRefuses."""

    async def become_master(self, role: "BrokerRole.ValueType", epoch: int) -> RoleState:
        """Promote the store. Raises OwnStoreUnreachable, StoreRefuses."""

    def following(self) -> str:
        """Why this node does not follow the old master at present; empty if it does."""

    def old_master(self) -> str:
        """Where the old master's replicator serves gRPC; empty if nobody knows."""

    def grpc_port(self) -> int:
        """Where our own replicator serves gRPC."""

    def dial(self, address: str) -> grpc.aio.Channel:
        """A channel to another node's replicator. Raises UnreadableCertificate, UnreadableSecret."""


class PeerAnswer(NamedTuple):
    """What a call to another node's replicator brought."""

    address: str
    state: RoleState = RoleState()
    problem: str = ""
    """Why there is no answer; empty if there is one."""


class Promotion:
    """One attempt. `steps` says in words what was checked and done so far."""

    def __init__(self, slave: Slave, request: PromoteRequest) -> None:
        self.steps: list[str] = []
        self._slave = slave
        self._request = request
        self._own = RoleState()
        self._old = RoleState()
        """The old master's, once it is fenced."""
        self._old_address = ""
        self._epoch = 0

    async def run(self) -> RoleState:
        """All of it; gives the new master's state.

        Raises:
            BadReplicatorRequest, WrongNodeRole, OwnStoreUnreachable, StoreRefuses, and every kind of PromotionStopped.
        """
        if self._request.role not in _MASTERS:
            raise BadReplicatorRequest("role must be ASYNC_MASTER or SYNC_MASTER")
        self._own = await self._slave.role_state()
        identity = self._own.identity
        if identity.role != BrokerRole.SLAVE:
            return await self._take_back()
        self._say(f"this node is a slave of epoch {identity.epoch}; its log ends at {self._own.max_offset}")
        old = await self._ask_old_master()
        answers = await self._ask_others(old)
        if old is None and (old := next((one for one in answers if _is_master(one)), None)) is not None:
            self._must_follow(old)
        others = [one.state for one in answers if self._is_other_slave(one)]
        claim = Claim(self._own, others, old.state if old is not None else RoleState())
        self._check(claim.objections() if old is None else claim.doubts())
        known = (self._own, *others, *((old.state,) if old is not None else ()))
        self._epoch = 1 + max(max(one.identity.epoch, one.identity.fenced_by_epoch) for one in known)
        if old is not None:
            await self._fence_old_master(old.address)
        await self._slave.hold()
        try:
            return await self._begin_epoch()
        finally:
            self._slave.resume()

    async def _take_back(self) -> RoleState:
        """This is a master that was fenced, by a promotion that somebody says has come to nothing."""
        identity = self._own.identity
        if not identity.fenced_by_epoch:
            raise WrongNodeRole(f"this node is {BrokerRole.Name(identity.role)} already, not a slave")
        if not self._request.old_master_is_gone:
            raise NewerMaster(
                f"this node is a master (epoch {identity.epoch}) that was replaced by one of epoch "
                f"{identity.fenced_by_epoch}"
            )
        self._say(f"this node was fenced by epoch {identity.fenced_by_epoch}; you said that no such master lives")
        self._old = self._own
        others = [one.state for one in await self._ask_others(None) if self._is_other_slave(one)]
        self._check(Claim(self._own, others, self._old).objections())
        known = (self._own, *others)
        self._epoch = 1 + max(max(one.identity.epoch, one.identity.fenced_by_epoch) for one in known)
        return await self._begin_epoch()

    async def _begin_epoch(self) -> RoleState:
        """Everybody promises; then what they say is looked at, and the store is promoted."""
        name = self._own.identity.store_id
        self._own = await self._slave.fence(self._epoch, name, "")
        _check_promise(self._own, self._epoch, self._own.identity.store_id, "this node")
        self._say(f"this node follows no master before epoch {self._epoch}; its log ends at {self._own.max_offset}")
        promised, silent = await self._gather_promises()
        self._check(Claim(self._own, promised, self._old, ", ".join(silent)).objections(), after=True)
        state = await self._slave.become_master(self._request.role, self._epoch)
        identity = state.identity
        self._say(f"this node is {BrokerRole.Name(identity.role)} of epoch {identity.epoch} from {state.max_offset} on")
        return state

    def _say(self, step: str) -> None:
        self.steps.append(step)
        log.info("promotion", step=step)

    def _check(self, objections: Iterable[PromotionStopped], *, after: bool = False) -> None:
        """Raises the first objection; who accepts a loss is told all of them.

        Before anybody has promised this only saves asking for promises in vain; the words are for `after`.
        """
        for objection in objections:
            if not self._request.accept_loss:
                if after:
                    objection.message += (
                        f". Epoch {self._epoch} was promised: those who promised it follow no older master, until a "
                        "promotion succeeds here or on another node"
                    )
                    objection.args = (objection.message,)
                raise objection
            if after:
                self._say(f"{objection.message}; you accept that messages are lost, or that both nodes take messages")

    # -- the old master -----------------------------------------------------------------------------------------------

    async def _ask_old_master(self) -> PeerAnswer | None:
        """The old master as it is, None if it is silent and said to be gone. Raises OldMasterSilent, NotFollowing."""
        address = self._slave.old_master()
        answer = await self._ask(address) if address else PeerAnswer("", problem="nobody knows who it is")
        if answer.problem:
            if not self._request.old_master_is_gone:
                raise OldMasterSilent(
                    f"the old master's replicator at {address or '?'} does not answer: {answer.problem}"
                )
            self._say(f"the old master's replicator at {address or '?'} does not answer; you said that it is gone")
            return None
        identity = answer.state.identity
        if identity.role not in _MASTERS:
            self._say(f"{address} is no master (any more)")
            if not self._request.old_master_is_gone:
                raise OldMasterSilent(f"the node at {address} is no master, so nobody tells what the last one had")
            return None
        self._must_follow(answer)
        return answer

    def _must_follow(self, old: PeerAnswer) -> None:
        """Raises NotFollowing."""
        identity, address = old.state.identity, old.address
        self._say(f"the old master at {address} is of epoch {identity.epoch}; its log ends at {old.state.max_offset}")
        problem = self._slave.following()
        if problem and not identity.fenced_by_epoch and not self._request.accept_loss:
            raise NotFollowing(f"this node cannot take what the old master at {address} still gets: {problem}")

    async def _fence_old_master(self, address: str) -> None:
        self._old_address = address
        answer = await self._ask_promise(address)
        if answer.problem:
            if not self._request.old_master_is_gone:
                raise OldMasterSilent(f"the old master at {address} cannot be fenced: {answer.problem}")
            self._say(f"the old master at {address} could not be fenced: {answer.problem}; you said that it is gone")
            return
        _check_promise(answer.state, self._epoch, self._own.identity.store_id, f"the old master at {address}")
        self._old = answer.state
        self._say(f"the old master is fenced by epoch {self._epoch}; its log ends at {self._old.max_offset} for ever")
        await self._catch_up()

    async def _catch_up(self) -> None:
        timers = self._slave.timers
        begin = grew = timers.time()
        had = have = self._own.max_offset
        end = self._old.max_offset
        while have < end and timers.time() - grew < _STALL_SECONDS and timers.time() - begin < _CATCH_UP_SECONDS:
            await timers.sleep(_POLL_SECONDS)
            self._own = await self._slave.role_state()
            if self._own.max_offset > have:
                have, grew = self._own.max_offset, timers.time()
        if have > had:
            self._say(f"took the rest of the old master's log, up to {have}")
        for missing in Claim(self._own, (), self._old).missing():  # now: a node that promised takes no more of it
            if not self._request.accept_loss:
                raise MissingHere(f"{missing.message}; the old master is fenced and takes no messages")

    # -- the other slaves ---------------------------------------------------------------------------------------------

    async def _ask_others(self, old: PeerAnswer | None) -> list[PeerAnswer]:
        """What the other nodes say. Raises NewerMaster; OtherSlaveSilent: one that was named does not answer."""
        told = [self._own] if old is None else [self._own, old.state]
        answers = await asyncio.gather(*map(self._ask, self._addresses(told)))
        for one in answers:
            if one.problem:
                self._say(f"the slave at {one.address} does not answer: {one.problem}")
                if one.address in self._request.other_slaves and not self._request.accept_loss:
                    raise OtherSlaveSilent(f"the slave at {one.address} does not answer: {one.problem}")
            identity = one.state.identity
            if identity.role in _MASTERS and identity.epoch > self._own.identity.epoch and not identity.fenced_by_epoch:
                raise NewerMaster(
                    f"the node at {one.address} is a master of epoch {identity.epoch}, and it lives",
                    remedy="make this node its slave (tandem replica follow)",
                )
        return [one for one in answers if old is None or one.address != old.address]

    async def _gather_promises(self) -> tuple[list[RoleState], list[str]]:
        """The states of the slaves that promised, and who did not answer. Raises AnotherCandidate, NewerMaster."""
        asked: set[str] = set()
        promised: dict[str, RoleState] = {}
        silent: list[str] = []
        name = self._own.identity.store_id
        while new := [one for one in self._addresses([self._own, self._old, *promised.values()]) if one not in asked]:
            asked.update(new)
            for one in await asyncio.gather(*map(self._ask_promise, new)):
                if one.problem:
                    silent.append(f"{one.address} ({one.problem})")
                    self._say(f"the slave at {one.address} does not answer: {one.problem}")
                elif _is_master(one) and one.address != self._old_address:
                    raise NewerMaster(
                        f"the node at {one.address} is a master of epoch {one.state.identity.epoch}",
                        remedy="promote once more: it is fenced now, and is looked at as the old master then",
                    )
                elif self._is_other_slave(one):
                    _check_promise(one.state, self._epoch, name, f"the slave at {one.address}")
                    promised[one.state.identity.store_id] = one.state
                    self._say(
                        f"the slave at {one.address} follows no master before epoch {self._epoch}; its log ends at "
                        f"{one.state.max_offset}"
                    )
        return list(promised.values()), silent

    def _addresses(self, states: list[RoleState]) -> list[str]:
        """Whom to ask: the slaves of the newest group that is known, candidates, and who was named."""
        own = self._own.identity.store_id
        members = [one.address for one in newest_group(states).members if one.store_id != own and one.address]
        candidates = [one.address for state in states for one in state.promises if one.store_id != own and one.address]
        return list(dict.fromkeys([*members, *candidates, *self._request.other_slaves]))

    def _is_other_slave(self, answer: PeerAnswer) -> bool:
        identity = answer.state.identity
        return identity.role == BrokerRole.SLAVE and identity.store_id not in ("", self._own.identity.store_id)

    # -- calls --------------------------------------------------------------------------------------------------------

    async def _ask(self, address: str) -> PeerAnswer:
        channel = self._slave.dial(address)
        try:
            stub = ReplicationStub(channel)
            status: StatusResponse = await stub.Status(StatusRequest(complete=True), timeout=_ANSWER_SECONDS)
        except grpc.aio.AioRpcError as error:
            return PeerAnswer(address, problem=error.details() or error.code().name)
        finally:
            await channel.close()
        if not status.HasField("state"):  # of an older release
            status.state.identity.CopyFrom(status.identity)
            status.state.max_offset = status.max_offset
        return PeerAnswer(address, status.state)

    async def _ask_promise(self, address: str) -> PeerAnswer:
        """Fences the node there by our epoch, for us."""
        channel = self._slave.dial(address)
        request = FenceRequest(
            epoch=self._epoch, candidate=self._own.identity.store_id, grpc_port=self._slave.grpc_port()
        )
        try:
            response = await ReplicationStub(channel).Fence(request, timeout=_ANSWER_SECONDS)
        except grpc.aio.AioRpcError as error:
            return PeerAnswer(address, problem=error.details() or error.code().name)
        finally:
            await channel.close()
        return PeerAnswer(address, response.state)


def _is_master(answer: PeerAnswer) -> bool:
    return answer.state.identity.role in _MASTERS


def _check_promise(state: RoleState, epoch: int, candidate: str, who: str) -> None:
    """Raises AnotherCandidate: the epoch, or a greater one, is somebody else's."""
    if any((one.epoch, one.store_id) == (epoch, candidate) for one in state.promises):
        return
    newest = max(state.identity.epoch, state.identity.fenced_by_epoch)
    raise AnotherCandidate(
        f"{who} has promised epoch {newest} to another node, so epoch {epoch} is not begun here",
        remedy="if nobody else is being promoted, promote once more: a greater epoch is asked for then",
    )
