"""Which nodes are one broker, and which of them is its master."""

import asyncio
import math
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple, TypeAlias

from tandemmq.admin.cluster.nodes import KnownNode, Nodes
from tandemmq.admin.errors import AdminError, NotFound, NotPossible
from tandemmq.admin.v1 import admin_pb2
from tandemmq.common.timers import time_limit
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.node.v1 import node_pb2
from tandemmq.replication.v1 import replication_pb2
from tandemmq.store.v1 import replica_log_pb2

KEPT_SECONDS = 1.0

PATIENCE_SECONDS = 0.5
"""So long a node that was known is waited for; then it counts as silent, and its answer is taken when it comes.

Who wants to change something, and finds no master without it, waits on.
"""

Role: TypeAlias = admin_pb2.NodeRole.ValueType

_METASYNC_ROLES: dict[int, Role] = {
    metadata_pb2.MASTER: admin_pb2.MASTER,
    metadata_pb2.SLAVE: admin_pb2.SLAVE,
    metadata_pb2.FENCED: admin_pb2.FENCED,
}


class NodeStanding(NamedTuple):
    """What a node is: its replicator says so, else its metasync, else the settings of its store."""

    node: KnownNode
    broker: str = ""
    """As it was last known; empty if nothing of the node has ever answered."""
    cluster: str = ""
    role: Role = admin_pb2.NODE_ROLE_UNSPECIFIED
    """NODE_ROLE_UNSPECIFIED while nothing of the node answers."""
    epoch: int = 0
    metasync_answers: bool = False


class Brokers:
    """Asked at most once a second."""

    def __init__(self, nodes: Nodes) -> None:
        self.timers = nodes.timers
        self._nodes = nodes
        self._known = {node.name: NodeStanding(node) for node in nodes.all}
        self._asked = -math.inf
        self._asking = asyncio.Lock()
        self._questions: dict[str, asyncio.Task[None]] = {}
        self._met: set[str] = set()

    async def standings(self) -> list[NodeStanding]:
        """Every node, in the order of the settings."""
        async with self._asking:
            if self.timers.time() - self._asked >= KEPT_SECONDS:
                await self._ask_all()
                self._asked = self.timers.time()
            return list(self._known.values())

    async def masters(self, broker: str = "") -> list[tuple[str, KnownNode]]:
        """(broker, node) of each broker's master, or of one. Raises NotFound, NotPossible if there is none.

        Before a broker is said to have none, nodes of it that are only slow get the time that an answer may take.
        """
        found = of_broker(await self.standings(), broker)
        without_master = [nodes for nodes in found.values() if nodes[0].role != admin_pb2.MASTER]
        slow = [self._questions[one.node.name] for nodes in without_master for one in nodes
                if one.node.name in self._questions]  # fmt: skip
        if slow:
            await asyncio.wait(slow)
            found = of_broker(self._known.values(), broker)
        masters = {name: nodes[0] for name, nodes in found.items() if nodes[0].role == admin_pb2.MASTER}
        without = sorted(found.keys() - masters.keys())
        if without or not masters:
            raise NotPossible(
                f"broker {', '.join(without)} has no master that answers" if without else "no node answers",
                remedy="`tandem cluster show` says how its nodes are",
            )
        return [(name, one.node) for name, one in sorted(masters.items())]

    async def readers(self, broker: str = "") -> list[tuple[str, KnownNode]]:
        """(broker, node) to read from: a node whose metasync answers, the master if it can be. Raises NotFound."""
        found = of_broker(await self.standings(), broker)
        best = {name: max(nodes, key=lambda one: one.metasync_answers) for name, nodes in found.items()}
        return [(name, one.node) for name, one in sorted(best.items())]

    async def close(self) -> None:
        """Asks nobody any more."""
        for question in self._questions.values():
            question.cancel()

    async def _ask_all(self) -> None:
        for node in self._nodes.all:
            if node.name not in self._questions:
                self._questions[node.name] = asyncio.create_task(self._ask(self._known[node.name]))
        strangers = [task for name, task in self._questions.items() if name not in self._met]
        if strangers:  # the first time each has as long as it needs
            await asyncio.wait(strangers)
        self._met.update(self._known)
        if self._questions:
            with suppress(TimeoutError):
                async with time_limit(self.timers, PATIENCE_SECONDS):
                    await asyncio.wait(self._questions.values())
        for name in self._questions:  # still open: silent, whatever it was before
            self._known[name] = _silent(self._known[name])

    async def _ask(self, before: NodeStanding) -> None:
        name = before.node.name
        try:
            self._known[name] = await _standing(before)
        finally:
            del self._questions[name]


def of_broker(standings: Iterable[NodeStanding], broker: str = "") -> dict[str, list[NodeStanding]]:
    """The nodes of one broker, or of each: the master first. Raises NotFound for a broker that is not known."""
    found: dict[str, list[NodeStanding]] = {}
    known: set[str] = set()
    for one in standings:
        known.add(one.broker)
        if one.broker and broker in ("", one.broker):
            found.setdefault(one.broker, []).append(one)
    if broker and not found:
        names = ", ".join(sorted(filter(None, known)))
        raise NotFound(f"there is no broker {broker!r}: known are {names or 'none, no node answers'}")
    for nodes in found.values():
        nodes.sort(key=lambda one: (one.role == admin_pb2.MASTER, one.epoch, one.metasync_answers), reverse=True)
    return found


def replicator_role(identity: replica_log_pb2.LogIdentity) -> Role:
    """What a log's identity says that a node is."""
    if identity.role == replica_log_pb2.SLAVE:  # whatever it has promised
        return admin_pb2.SLAVE
    return admin_pb2.FENCED if identity.fenced_by_epoch else admin_pb2.MASTER


def metasync_role(role: "metadata_pb2.Role.ValueType") -> Role:
    """The same as a metasync says it."""
    return _METASYNC_ROLES.get(role, admin_pb2.NODE_ROLE_UNSPECIFIED)


def _silent(known: NodeStanding) -> NodeStanding:
    return NodeStanding(known.node, known.broker, known.cluster)


async def _standing(before: NodeStanding) -> NodeStanding:
    node = before.node
    metadata, status = await asyncio.gather(
        node.ask("metasync", node.metasync.Status(metadata_pb2.StatusRequest())),
        node.ask("replicator", node.replicator.Status(replication_pb2.StatusRequest())),
        return_exceptions=True,
    )
    answers = isinstance(metadata, metadata_pb2.StatusResponse)
    if isinstance(status, replication_pb2.StatusResponse) and status.identity.broker_name:
        identity = status.identity
        role = replicator_role(identity)
        return NodeStanding(node, identity.broker_name, identity.cluster_name, role, identity.epoch, answers)
    if isinstance(metadata, metadata_pb2.StatusResponse):
        role = metasync_role(metadata.role)
        return NodeStanding(node, metadata.broker_name, metadata.cluster_name, role, metadata.epoch, True)
    return await _by_settings(before)


async def _by_settings(before: NodeStanding) -> NodeStanding:
    """A store alone: what it was set up to be."""
    node = before.node
    try:
        said = await node.ask("store", node.describe["store"].Describe(node_pb2.DescribeRequest(settings=True)))
    except AdminError:
        return _silent(before)
    settings = {one.name: one.value for one in said.settings}
    role = admin_pb2.SLAVE if settings.get("brokerRole") == "SLAVE" else admin_pb2.MASTER
    return NodeStanding(node, settings.get("brokerName", ""), settings.get("brokerClusterName", ""), role)
