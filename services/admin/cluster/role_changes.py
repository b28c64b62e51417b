"""Promotion, and whom a node follows. All checks are the replicator's, as for `tandem replica promote`."""

from tandemmq.admin.cluster.brokers import Brokers
from tandemmq.admin.cluster.nodes import KnownNode, Nodes
from tandemmq.admin.errors import BadAdminRequest, NotPossible
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.calling.addresses import check_address, host_port, is_loopback, parse_host_port
from tandemmq.node.v1 import node_pb2
from tandemmq.replication.v1 import replication_pb2
from tandemmq.store.v1 import replica_log_pb2

_CHANGE_SECONDS = 120.0
"""A promotion finishes queues and index before it answers."""

_MASTERS = (replica_log_pb2.SYNC_MASTER, replica_log_pb2.ASYNC_MASTER)


class RoleChanges:
    """Asks the replicators of the nodes."""

    def __init__(self, nodes: Nodes, brokers: Brokers) -> None:
        self._nodes = nodes
        self._brokers = brokers

    async def promote(self, request: admin_pb2.PromoteNodeRequest) -> replication_pb2.PromoteResponse:
        """See admin.proto. Raises NoSuchNode, BadAdminRequest, ServiceAway; CallRefused with the check that failed."""
        node = self._nodes.named(request.node)
        asked = replication_pb2.PromoteRequest()
        asked.CopyFrom(request.promotion)
        asked.role = asked.role or replica_log_pb2.SYNC_MASTER
        if asked.role not in _MASTERS:
            raise BadAdminRequest("a node is promoted to SYNC_MASTER or ASYNC_MASTER")
        for address in asked.other_slaves:
            _check_address(address)
        return await node.ask("replicator", node.replicator.Promote(asked), _CHANGE_SECONDS)

    async def follow(self, request: admin_pb2.FollowMasterRequest) -> replication_pb2.FollowResponse:
        """See admin.proto. Raises NoSuchNode, BadAdminRequest, NotPossible, ServiceAway; CallRefused."""
        node = self._nodes.named(request.node)
        if request.master and (request.ha_master_address or request.replicator_address):
            raise BadAdminRequest("the master is named, and its address too: one of them is enough")
        asked = replication_pb2.FollowRequest(
            ha_master_address=request.ha_master_address, replicator_address=request.replicator_address
        )
        if request.master:
            asked = await self._of_node(node, self._nodes.named(request.master))
        for address in filter(None, (asked.ha_master_address, asked.replicator_address)):
            _check_address(address)
        return await node.ask("replicator", node.replicator.Follow(asked), _CHANGE_SECONDS)

    async def _of_node(self, node: KnownNode, master: KnownNode) -> replication_pb2.FollowRequest:
        """Where `node` finds `master`. Raises BadAdminRequest, NotPossible, ServiceAway."""
        if node is master:
            raise BadAdminRequest(f"node {node.name} cannot follow itself")
        brokers = {one.node.name: one.broker for one in await self._brokers.standings()}
        ours, theirs = brokers[node.name], brokers[master.name]
        if ours and theirs and ours != theirs:
            raise NotPossible(f"node {node.name} is of broker {ours}, and {master.name} of {theirs}")
        replicator = master.addresses.replicator
        host, _ = parse_host_port(replicator)
        if is_loopback(host) and not is_loopback(parse_host_port(node.addresses.replicator)[0]):
            raise NotPossible(
                f"admin knows node {master.name} by the address {host}, which leads node {node.name} to itself",
                remedy="say ha_master_address, as that node reaches the master",
            )
        settings = node_pb2.DescribeRequest(settings=True)
        said = await master.ask("replicator", master.describe["replicator"].Describe(settings))
        port = next((int(one.value) for one in said.settings if one.name == "haListenPort"), 0)
        if not port:
            raise NotPossible(
                f"haListenPort of node {master.name} is 0: which port it got, only its log says",
                remedy="say ha_master_address",
            )
        return replication_pb2.FollowRequest(ha_master_address=host_port(host, port), replicator_address=replicator)


def _check_address(address: str) -> None:
    if check_address(address) is not None:
        raise BadAdminRequest(f"{address!r} is no address: HOST:PORT")
