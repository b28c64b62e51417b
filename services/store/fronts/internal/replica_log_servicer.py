"""The store's side of the link to its replicator: `tandemmq.store.v1.ReplicaLog`, on the internal port."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.grpc_transport import answering
from tandemmq.common.log_output import get_log
from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.store.broker.errors import StoreStarting
from tandemmq.store.broker.group_transfer import GroupTransfer
from tandemmq.store.fronts.internal.replica_link import ReplicaLink, ReplicaReceiver
from tandemmq.store.log.errors import disk_errors
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.replica.replica_check import RefusedBytes
from tandemmq.store.log.replica.replica_group import GroupMember, ReplicaGroup
from tandemmq.store.v1 import replica_log_pb2, replica_log_pb2_grpc

log = get_log(__name__)

Context = grpc.aio.ServicerContext[Any, Any]


class LinkTaken(TandemError):
    """A second replicator wants the link, or a second stream brings replica bytes."""

    kind = Kind.CONFLICT
    remedy = "Only one replicator may serve a store; stop the other one."


class BadGroup(TandemError):
    """What is to be remembered of the group makes no sense."""

    kind = Kind.MISCONFIGURED


class NodeName:
    """What a store is called, for its replicator and its peers."""

    def __init__(
        self, cluster: str, broker: str, broker_id: int, client_address: Callable[[], str] = lambda: ""
    ) -> None:
        """`client_address`: where clients find it; see LogIdentity."""
        self.client_address = client_address
        self.cluster = cluster
        self.broker = broker
        self.broker_id = broker_id


class ReplicaLogServicer(replica_log_pb2_grpc.ReplicaLogServicer):
    """What each call means is written in the contract, replica_log.proto."""

    def __init__(self, name: NodeName) -> None:
        """Every call is refused with StoreStarting until `attach`."""
        self._name = name
        self._store: MessageStore | None = None
        self._transfer: GroupTransfer | None = None
        self._link: ReplicaLink | None = None
        self._receiver: ReplicaReceiver | None = None
        self._known: tuple[object, replica_log_pb2.LogIdentity] = (None, replica_log_pb2.LogIdentity())

    def attach(self, store: MessageStore, transfer: GroupTransfer) -> None:
        """Answer from a recovered store from now on."""
        self._store, self._transfer = store, transfer

    def drain(self) -> None:
        """End the link; a replicator comes back when the store does."""
        if self._link is not None:
            self._link.stop()

    @property
    def store(self) -> MessageStore:
        """The store. Raises StoreStarting."""
        if self._store is None:
            raise StoreStarting("The store is still recovering.", remedy="Try again when its health says SERVING.")
        return self._store

    # -- the streams ------------------------------------------------------------------------------------------------

    async def Link(  # type: ignore[override]  # it writes through the context, as handlers may, and yields nothing
        self, request_iterator: AsyncIterator[Any], context: Context
    ) -> None:
        """Progress both ways; one message tells all that changed in one turn of the loop."""
        store, transfer = self.store, self._transfer
        assert transfer is not None
        if transfer.linked:
            raise LinkTaken("Another replicator has the link to this store.")
        peer = context.peer()
        link = ReplicaLink(store, transfer, self._identity, answering(context))
        transfer.begin()
        self._link, stop_listening = link, store.grown.listen(link.grown)
        log.info("replicator linked", peer=peer)
        try:
            await link.run()
        finally:
            stop_listening()
            self._link = None
            transfer.end()
            log.info("replicator unlinked", peer=peer)

    async def Receive(  # type: ignore[override]  # as Link
        self, request_iterator: AsyncIterator[Any], context: Context
    ) -> None:
        """Bytes of the master's log, copied once out of the staging file."""
        store = self.store
        if self._receiver is not None:
            raise LinkTaken("Another stream brings replica bytes to this store.")
        self._receiver = ReplicaReceiver(store, answering(context))
        try:
            await self._receiver.run()
        finally:
            self._receiver = None

    # -- roles ------------------------------------------------------------------------------------------------------

    async def GetRole(self, request: replica_log_pb2.GetRoleRequest, context: Context) -> replica_log_pb2.RoleState:
        """What the store is."""
        return self._role(self.store)

    async def Promote(self, request: replica_log_pb2.PromoteRequest, context: Context) -> replica_log_pb2.RoleState:
        """Slave to master."""
        store = self.store
        with disk_errors(_NOT_WRITTEN):
            await store.replica.promote(_role_of(request.role), request.epoch)
        return self._role(store)

    async def Fence(self, request: replica_log_pb2.FenceRequest, context: Context) -> replica_log_pb2.RoleState:
        """There is a newer master, or somebody wants to be it."""
        with disk_errors(_NOT_WRITTEN):
            self.store.replica.fence(request.epoch, request.candidate, request.candidate_address)
        return self._role(self.store)

    async def Demote(self, request: replica_log_pb2.DemoteRequest, context: Context) -> replica_log_pb2.RoleState:
        """Master to slave."""
        replica = self.store.replica
        replica.mastership.check_followed(request.epoch)
        with disk_errors(_NOT_WRITTEN):
            replica.group.follow(request.ha_master_address, request.replicator_address)  # first: it follows somebody
            if not replica.mastership.is_slave:
                replica.demote(request.epoch)
        return self._role(self.store)

    async def Remember(self, request: replica_log_pb2.ReplicaGroup, context: Context) -> replica_log_pb2.ReplicaGroup:
        """What is known of the group."""
        replica = self.store.replica
        members = (GroupMember(one.identity, one.store_id, one.address, one.joining) for one in request.members)
        told = {name: getattr(request, name) for name in _GROUP_NUMBERS}
        if min(told.values()) < 0:
            raise BadGroup(f"A number of the group is negative: {told}.")
        with disk_errors("What is known of the group cannot be written"):
            replica.remember(ReplicaGroup(members=tuple(members), **told))
        return _group(replica.group.group)

    def _role(self, store: MessageStore) -> replica_log_pb2.RoleState:
        if self._link is not None:
            self._link.changed()
        if self._receiver is not None:
            self._receiver.role_changed()
        mastership, group = store.replica.mastership, store.replica.group
        return replica_log_pb2.RoleState(
            identity=self._identity(),
            min_offset=store.commit_log.min_offset,
            max_offset=store.commit_log.max_offset,
            flushed_offset=store.flushed_offset,
            configured_role=replica_log_pb2.BrokerRole.Value(mastership.configured.value),
            epochs=[
                replica_log_pb2.EpochStart(epoch=one.epoch, start_offset=one.start_offset) for one in mastership.epochs
            ],
            promises=[replica_log_pb2.EpochPromise(**one._asdict()) for one in mastership.promises],
            group=_group(group.group),
            ha_master_address=group.master[0],
            replicator_address=group.master[1],
            refused=_refused(store.replica.check.refused),
        )

    def _identity(self) -> replica_log_pb2.LogIdentity:
        """Whose log it is; the same object as long as nothing has changed."""
        mastership = self.store.replica.mastership
        key = mastership.role, mastership.epoch, mastership.fenced_by, mastership.store_id
        if key != self._known[0]:
            identity = replica_log_pb2.LogIdentity(
                role=replica_log_pb2.BrokerRole.Value(mastership.role.value),
                file_size=self.store.config.mapped_file_size_commit_log,
                epoch=mastership.epoch,
                broker_id=self._name.broker_id if mastership.is_slave else 0,
                broker_name=self._name.broker,
                cluster_name=self._name.cluster,
                fenced_by_epoch=mastership.fenced_by,
                store_id=mastership.store_id,
                client_address=self._name.client_address(),
            )
            self._known = key, identity
        return self._known[1]


_NOT_WRITTEN = "The store's role cannot be written, and stays as it is"
_GROUP_NUMBERS = ("epoch", "generation", "needed", "needed_before", "known_end")


def _group(group: ReplicaGroup) -> replica_log_pb2.ReplicaGroup:
    members = [replica_log_pb2.GroupMember(**one._asdict()) for one in group.members]
    return replica_log_pb2.ReplicaGroup(members=members, **{name: getattr(group, name) for name in _GROUP_NUMBERS})


def _role_of(role: replica_log_pb2.BrokerRole.ValueType) -> BrokerRole:
    names = {replica_log_pb2.ASYNC_MASTER: BrokerRole.ASYNC_MASTER, replica_log_pb2.SYNC_MASTER: BrokerRole.SYNC_MASTER}
    return names.get(role, BrokerRole.SLAVE)


def _refused(refused: RefusedBytes | None) -> replica_log_pb2.RefusedBytes | None:
    if refused is None:
        return None
    return replica_log_pb2.RefusedBytes(
        offset=refused.offset, size=refused.size, crc32=refused.crc, times=refused.times, reason=refused.reason
    )
