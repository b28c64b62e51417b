"""What `Status` answers."""

from typing import Any, cast

from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metasync.keeper import Keeper
from tandemmq.metasync.node import OwnNode
from tandemmq.metasync.puller import TablePuller
from tandemmq.metasync.standing import NodeRole
from tandemmq.metasync.tables import TableKind
from tandemmq.metasync.translate import version_message

_ROLES = {NodeRole.MASTER: pb.MASTER, NodeRole.SLAVE: pb.SLAVE, NodeRole.FENCED: pb.FENCED}


def status_response(keeper: Keeper, node: OwnNode) -> pb.StatusResponse:
    """Role, versions, and how copying goes."""
    slave = node.standing.role is NodeRole.SLAVE
    return pb.StatusResponse(
        role=_ROLES[node.standing.role],
        epoch=node.standing.epoch,
        role_source=node.standing.source,
        master_address=(node.master_address or "") if slave else "",
        tables=[_table(keeper, node.puller, kind, slave) for kind in TableKind],
        broker_name=node.broker,
        cluster_name=node.cluster,
    )


def sync_age(puller: TablePuller, kind: TableKind) -> float:
    """Seconds since a table was last equal to the master's; -1 if it never was."""
    synced_at = puller.synced_at.get(kind)
    return -1.0 if synced_at is None else puller.timers.time() - synced_at


def pending(keeper: Keeper, kind: TableKind) -> int:
    """Commits that the master does not have yet."""
    return sum(map(len, keeper.offsets.pending.values())) if kind is TableKind.CONSUMER_OFFSETS else 0


def _table(keeper: Keeper, puller: TablePuller, kind: TableKind, slave: bool) -> pb.TableStatus:
    held = keeper.table(kind)
    problems = [keeper.problems.get(kind, ""), puller.problems.get(kind, "") if slave else ""]
    return pb.TableStatus(
        table=cast(Any, int(kind)),
        version=version_message(held.version),
        entries=len(held.entries),
        unsaved=keeper.unsaved(kind),
        sync_age_seconds=sync_age(puller, kind) if slave else -1.0,
        taken_over=puller.taken_over[kind],
        problem=" ".join(filter(None, problems)),
        pending=pending(keeper, kind),
    )
