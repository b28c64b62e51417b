"""All nodes with roles, offsets, lag, disk and versions."""

import asyncio
import time
from collections.abc import Awaitable
from importlib.metadata import version
from typing import Any, NamedTuple, TypeVar

from grpc_health.v1 import health_pb2

from tandemmq.admin.cluster.brokers import Brokers, metasync_role, replicator_role
from tandemmq.admin.cluster.nodes import SERVICES, KnownNode, Nodes
from tandemmq.admin.cluster.problems import add_problems
from tandemmq.admin.errors import AdminError
from tandemmq.admin.v1 import admin_pb2
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.node.v1 import node_pb2
from tandemmq.replication.v1 import replication_pb2
from tandemmq.store.v1 import store_pb2

Answer = TypeVar("Answer")


class ClusterView:
    """Asks every service of every node at once."""

    def __init__(self, nodes: Nodes, brokers: Brokers) -> None:
        self._nodes = nodes
        self._brokers = brokers
        self._version = version("tandemmq")

    async def look(self) -> admin_pb2.Cluster:
        """The cluster now. Never raises for a service that does not answer."""
        found = await asyncio.gather(*map(_look_at, self._nodes.all))
        silent = [node for node in found if not node.broker_name]
        if silent:
            known = {one.node.name: one for one in await self._brokers.standings()}
            for node in silent:
                one = known[node.name]
                node.broker_name, node.cluster_name = one.broker, one.cluster
                if any(service.answers for service in node.services):
                    node.role = one.role
        add_problems(found)
        return admin_pb2.Cluster(nodes=found, at_ms=time.time_ns() // 1_000_000, version=self._version)


class _Answers(NamedTuple):
    """Of one service; None where it gave none."""

    description: node_pb2.DescribeResponse | None
    health: health_pb2.HealthCheckResponse | None
    own: Any
    """What the service of that kind says: GetLog, or Status."""
    reason: str
    """Why one is missing."""


async def _look_at(node: KnownNode) -> admin_pb2.Node:
    answers = dict(zip(SERVICES, await asyncio.gather(*(_ask(node, service) for service in SERVICES)), strict=True))
    found = admin_pb2.Node(name=node.name)
    found.services.extend(_state(node, service, answers[service]) for service in SERVICES)
    metadata: metadata_pb2.StatusResponse | None = answers["metasync"].own
    if metadata is not None:
        found.metadata.CopyFrom(metadata)
        found.broker_name, found.cluster_name = metadata.broker_name, metadata.cluster_name
        found.role, found.epoch = metasync_role(metadata.role), metadata.epoch
    replication: replication_pb2.StatusResponse | None = answers["replicator"].own
    if replication is not None:
        found.replication.CopyFrom(replication)
        identity = replication.identity
        found.broker_name, found.cluster_name = identity.broker_name, identity.cluster_name
        found.role, found.epoch, found.broker_id = replicator_role(identity), identity.epoch, identity.broker_id
    log: store_pb2.GetLogResponse | None = answers["store"].own
    if log is not None:
        found.log.CopyFrom(log.state)
        found.files.CopyFrom(log)
        found.files.ClearField("state")
    described = answers["store"].description
    if described is not None and described.HasField("disk"):
        found.disk.CopyFrom(described.disk)
    return found


async def _ask(node: KnownNode, service: str) -> _Answers:
    own: dict[str, Awaitable[Any]] = {
        "store": node.store.GetLog(store_pb2.GetLogRequest()),
        "replicator": node.replicator.Status(replication_pb2.StatusRequest()),
        "metasync": node.metasync.Status(metadata_pb2.StatusRequest()),
    }
    description, health, said = await asyncio.gather(
        _try(node, service, node.describe[service].Describe(node_pb2.DescribeRequest())),
        _try(node, service, node.health[service].Check(health_pb2.HealthCheckRequest())),
        _try(node, service, own[service]),
    )
    reasons = [one for one in (description, health, said) if isinstance(one, str)]
    return _Answers(
        None if isinstance(description, str) else description,
        None if isinstance(health, str) else health,
        None if isinstance(said, str) else said,
        reasons[0] if reasons else "",
    )


async def _try(node: KnownNode, service: str, call: Awaitable[Answer]) -> Answer | str:
    """The answer, or why there is none."""
    try:
        return await node.ask(service, call)
    except AdminError as error:
        return str(getattr(error, "reason", error.message))


def _state(node: KnownNode, service: str, answers: _Answers) -> admin_pb2.ServiceState:
    serving = answers.health is not None and answers.health.status == health_pb2.HealthCheckResponse.SERVING
    return admin_pb2.ServiceState(
        service=service,
        address=node.address_of[service],
        answers=answers.description is not None or answers.health is not None or answers.own is not None,
        serving=serving,
        reason=answers.reason or ("" if serving else "it says that it does not serve now"),
        description=answers.description,
    )
