"""`tandemmq.replication.v1.Replication`: what a node's replicator tells of itself, and promotion by hand."""

import asyncio
from typing import Any
from urllib.parse import unquote

import grpc

from tandemmq.common.calling.addresses import check_address, host_port
from tandemmq.common.log_output import get_log
from tandemmq.replication.v1 import replication_pb2 as messages
from tandemmq.replication.v1.replication_pb2_grpc import ReplicationServicer, ReplicationStub
from tandemmq.replicator.errors import (
    BadReplicatorRequest,
    NotAllowedToCall,
    PromotionStopped,
    StillServing,
    WrongMaster,
    WrongNodeRole,
)
from tandemmq.replicator.healing.log_peer import read_checksums
from tandemmq.replicator.log_view import NoStore
from tandemmq.replicator.master.listener import Peers, plain_address
from tandemmq.replicator.master.master import Master
from tandemmq.replicator.master.replicas import SlaveReplica
from tandemmq.replicator.node import ReplicatorNode
from tandemmq.replicator.roles.promotion import Promotion
from tandemmq.store.v1.replica_log_pb2 import BrokerRole, LogIdentity

log = get_log(__name__)

Context = grpc.aio.ServicerContext[Any, Any]

_ANSWER_SECONDS = 3.0
_LOOPBACK = Peers(("127.0.0.0/8", "::1/128"))


class ReplicationService(ReplicationServicer):
    """What each call means is written in the contract."""

    def __init__(self, node: ReplicatorNode) -> None:
        self._node = node
        self._peers = Peers(node.settings.ha_allowed_peers)
        self._changing = asyncio.Lock()
        self._reading = asyncio.Lock()

    async def Status(self, request: messages.StatusRequest, context: Context) -> messages.StatusResponse:
        """Role, offsets, connections and lag."""
        self._admit(context)
        node, view = self._node, self._node.view
        if not view.linked:
            raise NoStore("there is no link to the store")
        response = messages.StatusResponse(
            identity=view.identity,
            min_offset=view.min_offset,
            max_offset=view.max_offset,
            flushed_offset=view.flushed_offset,
        )
        if node.master is not None:
            progress = node.master.replicas.progress
            response.replicated_offset, response.in_sync = progress.replicated_offset, progress.in_sync
            response.ha_port = node.master.port
            now = node.timers.time()
            response.replicas.extend(_replica_status(node.master, one, now) for one in node.master.replicas)
        if view.is_slave:
            response.follower.CopyFrom(node.follower.status())
        if request.complete:
            response.state.CopyFrom(await node.role_state())
        return response

    async def Join(self, request: messages.JoinRequest, context: Context) -> messages.JoinResponse:
        """A slave introduces its connection."""
        host = self._admit(context)
        view = self._node.view
        if not view.known:
            raise NoStore("there is no link to the store yet")
        master = self._node.master
        if master is None:
            if view.is_master:  # its side has yet to begin, or its HA port is taken: no reason to be refused for good
                raise NoStore(
                    "this node is a master that does not accept slaves yet", remedy="its log says why, or try again"
                )
            raise WrongNodeRole(f"this node is no master, but {self._node.role}")
        if not 0 < request.connection_port < 1 << 16:
            raise BadReplicatorRequest("connection_port must be 1 to 65535")
        identity = view.identity
        for ours, theirs in (
            (identity.cluster_name, request.cluster_name),
            (identity.broker_name, request.broker_name),
        ):
            if ours and theirs and ours != theirs:
                raise WrongMaster(
                    f"this is a master of {identity.cluster_name}/{identity.broker_name}, "
                    f"not of {request.cluster_name}/{request.broker_name}"
                )
        if request.epoch > identity.epoch:
            log.warning("a slave knows a newer master", slave_epoch=request.epoch, epoch=identity.epoch)
            await self._node.fence(request.epoch, request.candidate, request.candidate_address)
        await master.noted()
        return self._introduce(master, host, request)

    def _introduce(self, master: Master, host: str, request: messages.JoinRequest) -> messages.JoinResponse:
        view, roster = self._node.view, master.roster
        port = request.replicator_port if 0 < request.replicator_port < 1 << 16 else 0
        address = host_port(host, port) if port else ""
        if address and request.broker_id > 0:
            self._node.slaves[str(request.broker_id)] = address
        peer = (host, request.connection_port)
        identity, first = master.introduce(peer, request.broker_id, request.store_id, address, request.report_seconds)
        if roster.confirmed(identity, request.group_epoch, request.group_generation):
            master.group_changed()
        response = messages.JoinResponse(identity=view.identity, min_offset=view.min_offset, max_offset=view.max_offset)
        response.group.CopyFrom(roster.told)
        if first or (request.group_epoch, request.group_generation) != (roster.told.epoch, roster.told.generation):
            response.group.known_end = view.max_offset
        else:
            response.group.known_end = master.replicas.acknowledged_end()
        return response

    async def Checksum(self, request: messages.ChecksumRequest, context: Context) -> messages.ChecksumResponse:
        """Of a stretch of our log."""
        self._admit(context)
        view = self._node.view
        if not view.linked:
            raise NoStore("there is no link to the store")
        begin, end, size = request.offset, request.offset + request.size, view.identity.file_size
        if not view.min_offset <= begin < end <= view.max_offset or begin // size != (end - 1) // size:
            raise BadReplicatorRequest(
                f"offsets {begin} to {end} are not within one file of this log, "
                f"which goes from {view.min_offset} to {view.max_offset}"
            )
        commit_log = self._node.settings.store_path_root_dir / "commitlog"
        async with self._reading:
            (one,) = await asyncio.to_thread(read_checksums, commit_log, size, begin, end, end)
        return messages.ChecksumResponse(crc32=one.checksum)

    async def Promote(self, request: messages.PromoteRequest, context: Context) -> messages.PromoteResponse:
        """Slave to master, after checks."""
        self._admit(context)
        async with self._changing:
            promotion = Promotion(self._node, request)
            try:
                state = await promotion.run()
            except PromotionStopped as stopped:
                log.warning("promotion stopped", reason=stopped.message)
                raise
            return messages.PromoteResponse(state=state, steps=promotion.steps)

    async def Fence(self, request: messages.FenceRequest, context: Context) -> messages.FenceResponse:
        """There is a newer master."""
        caller = self._admit(context)
        if request.epoch <= 0:
            raise BadReplicatorRequest("epoch must be greater than 0")
        address = host_port(caller, request.grpc_port) if request.candidate and caller and request.grpc_port else ""
        state = await self._node.fence(request.epoch, request.candidate, address)
        log.warning("told of a newer master", epoch=request.epoch, by=caller, candidate=request.candidate)
        return messages.FenceResponse(state=state)

    async def Follow(self, request: messages.FollowRequest, context: Context) -> messages.FollowResponse:
        """Master to slave, or slave of another master."""
        self._admit(context)
        node = self._node
        address = request.ha_master_address or node.settings.ha_master_address or ""
        if check_address(address) is not None:
            raise BadReplicatorRequest(f"ha_master_address must be host:port, not {address!r}")
        replicator = request.replicator_address or node.settings.master_replicator_address(address)
        if check_address(replicator) is not None:
            raise BadReplicatorRequest(f"replicator_address must be host:port, not {replicator!r}")
        async with self._changing:
            state = await node.role_state()
            epoch = await self._epoch_of(replicator, state.identity)
            await node.hold()
            try:
                named = request.ha_master_address or request.replicator_address
                state = await node.become_slave(epoch, *((address, replicator) if named else ("", "")))
                node.follow(address, replicator)
            finally:
                node.resume()
        if request.ha_master_address and request.ha_master_address != node.settings.ha_master_address:
            log.warning("haMasterAddress of the settings is another, and has no effect from now on", now=address)
        return messages.FollowResponse(state=state)

    async def _epoch_of(self, address: str, ours: LogIdentity) -> int:
        """The epoch of the master whose replicator is there; the one that is known if there is none, as with RocketMQ.

        Raises:
            WrongNodeRole: it is no master, or an older one than we know of.
            StillServing: we are a master that nobody has replaced, as far as can be seen.
        """
        serving = ours.role != BrokerRole.SLAVE and not ours.fenced_by_epoch
        known = max(ours.epoch, ours.fenced_by_epoch)
        channel = self._node.dial(address)
        try:
            status = await ReplicationStub(channel).Status(messages.StatusRequest(), timeout=_ANSWER_SECONDS)
        except grpc.aio.AioRpcError as error:
            if serving:
                raise StillServing(
                    f"this node is a master, and the replicator at {address} does not answer: {error.details()}"
                ) from error
            log.warning("the new master's replicator does not answer", address=address, reason=error.details())
            return known
        finally:
            await channel.close()
        theirs = status.identity
        if theirs.role == BrokerRole.SLAVE:
            raise WrongNodeRole(f"the node at {address} is a slave", remedy="promote it first (tandem replica promote)")
        if theirs.epoch < known:
            raise WrongNodeRole(f"the master at {address} is of epoch {theirs.epoch}, an older one than {known}")
        if serving and theirs.epoch <= ours.epoch:
            raise StillServing(f"this node and the one at {address} are both masters of epoch {ours.epoch}")
        return theirs.epoch

    def _admit(self, context: Context) -> str:
        return admit(self._peers, context)


def admit(peers: Peers, context: Context) -> str:
    """The caller's address. Raises NotAllowedToCall; the node's own operators may always call."""
    host = caller_address(context.peer())
    if not peers.allow(host) and host and not _LOOPBACK.allow(host):
        raise NotAllowedToCall(f"{host} is not one of haAllowedPeers")
    return host


def caller_address(peer: str) -> str:
    """The address in `ipv4:127.0.0.1:5000` or `ipv6:%5B::1%5D:5000`; empty for a local socket."""
    kind, _, rest = unquote(peer).partition(":")
    return plain_address(rest.rpartition(":")[0]) if kind in ("ipv4", "ipv6") else ""


def _replica_status(master: Master, replica: SlaveReplica, now: float) -> messages.ReplicaStatus:
    table = master.replicas
    return messages.ReplicaStatus(
        identity=replica.identity,
        address=replica.address,
        connected=replica.connected,
        in_sync=replica.in_sync,
        acked_offset=replica.acked_offset,
        sent_offset=replica.sent_offset,
        lag_bytes=table.lag_bytes(replica),
        lag_seconds=table.lag_seconds(replica, now),
        ack_age_seconds=max(now - replica.acked_at, 0.0),
        silent_seconds=table.silent_seconds(replica, now),
    )
