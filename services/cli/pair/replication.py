"""`tandem replica list|promote|follow`: who follows whom, and how that is changed by hand."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tandemmq.cli.talk.connection import HA, REPLICATOR, check_address, connect_to
from tandemmq.cli.talk.failures import FAILED
from tandemmq.cli.talk.moments import show_bytes, show_seconds
from tandemmq.cli.talk.options import DEFAULT_REPLICATOR_ADDRESS, Json, ReplicatorAddress
from tandemmq.cli.talk.output import Output
from tandemmq.common.settings import default_ports

if TYPE_CHECKING:
    from tandemmq.replication.v1.replication_pb2 import FollowerStatus, ReplicaStatus, StatusResponse
    from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub
    from tandemmq.store.v1.replica_log_pb2 import LogIdentity, RoleState

_STATUS_SECONDS = 10.0
_CHANGE_SECONDS = 120.0
"""A promotion finishes queues and index before it answers."""


class MasterRole(StrEnum):
    """What a node can be promoted to."""

    SYNC_MASTER = "SYNC_MASTER"
    ASYNC_MASTER = "ASYNC_MASTER"


def replicas(address: ReplicatorAddress = DEFAULT_REPLICATOR_ADDRESS, as_json: Json = False) -> None:
    """Show a node's role, its replicas or its master, and lag.

    Exit code 1 if the node is a slave that cannot follow its master (the reason is told).

    With --json: one document, {"role", "epoch", "min_offset", "max_offset", "flushed_offset", "replicas": [...]} of a
    master, the same with "follower": {...} of a slave.
    """
    from tandemmq.replication.v1.replication_pb2 import StatusRequest

    with _connect(address) as stub:
        status = stub.Status(StatusRequest(), timeout=_STATUS_SECONDS)
    output = Output(as_json=as_json)
    told = _status(status)
    if as_json:
        output.document(told)
    else:
        _say_status(output, told)
    if told.get("follower", {}).get("state") == "REFUSED":
        raise typer.Exit(FAILED)


def promote(
    role: Annotated[
        MasterRole, typer.Option("--role", help="What the node becomes.", case_sensitive=False)
    ] = MasterRole.SYNC_MASTER,
    old_master_is_gone: Annotated[
        bool,
        typer.Option(
            "--old-master-is-gone",
            help="Go on although the old master does not answer: you have made sure that it is dead, or that no "
            "producer can reach it.",
        ),
    ] = False,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Go on although messages may be missing here that were acknowledged; what is missing is told.",
        ),
    ] = False,
    other_slaves: Annotated[
        list[str] | None,
        typer.Option(
            "--other-slave",
            metavar="HOST:PORT",
            help="Replicator of another slave of the old master, if the master did not know it, or knew it elsewhere. "
            "Repeatable.",
        ),
    ] = None,
    address: ReplicatorAddress = DEFAULT_REPLICATOR_ADDRESS,
    as_json: Json = False,
) -> None:
    """Turn a slave into a master.

    Checks that it has everything, fences the old master, has the other slaves promise to follow no older one, begins a
    new epoch. The whole procedure is in docs/replication.md. The role outlives restarts, whatever brokerRole says. Exit
    code 1 if a check fails; what was fenced or promised by then stays so, and a promotion may be asked for again.

    With --json: one document, {"steps": [...], "role", "epoch", "min_offset", "max_offset", ...}.
    """
    from tandemmq.replication.v1.replication_pb2 import PromoteRequest
    from tandemmq.store.v1 import replica_log_pb2

    request = PromoteRequest(
        role=replica_log_pb2.BrokerRole.Value(role.value),
        old_master_is_gone=old_master_is_gone,
        accept_loss=accept_loss,
        other_slaves=other_slaves or (),
    )
    with _connect(address) as stub:
        response = stub.Promote(request, timeout=_CHANGE_SECONDS)
    output = Output(as_json=as_json)
    if as_json:
        output.document({"steps": list(response.steps), **_role_state(response.state)})
        return
    for number, step in enumerate(response.steps, 1):
        output.say(f"{number:>2}  {step}")
    output.say(_role_in_words(_role_state(response.state)))


def follow(
    master: Annotated[
        str,
        typer.Argument(metavar="[HOST:PORT]", help="HA address of the master. Without it: haMasterAddress."),
    ] = "",
    replicator: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help=f"Where the master's replicator answers. Without it: port {default_ports.REPLICATOR} of its host, or "
            "haMasterReplicatorAddress.",
        ),
    ] = "",
    address: ReplicatorAddress = DEFAULT_REPLICATOR_ADDRESS,
    as_json: Json = False,
) -> None:
    """Turn a master that was replaced into a slave of the new one.

    If its log has messages that the new master does not have, it refuses to follow and says so (`tandem replica list`);
    `tandem replica reseed` then lets it begin anew. Role and master outlive restarts, whatever the settings say.

    With --json: one document, {"role", "epoch", "min_offset", "max_offset", ...}.
    """
    from tandemmq.replication.v1.replication_pb2 import FollowRequest

    if master:
        check_address(HA, master)
    if replicator:
        check_address(REPLICATOR, replicator)

    with _connect(address) as stub:
        request = FollowRequest(ha_master_address=master, replicator_address=replicator)
        response = stub.Follow(request, timeout=_CHANGE_SECONDS)
    output = Output(as_json=as_json)
    state = _role_state(response.state)
    if as_json:
        output.document(state)
    else:
        output.say(_role_in_words(state))


@contextmanager
def _connect(address: str) -> "Iterator[ReplicationStub]":
    """The stub of a node's replicator. Raises what `connect_to` raises."""
    from tandemmq.replication.v1.replication_pb2_grpc import ReplicationStub

    with connect_to(REPLICATOR, address) as channel:
        yield ReplicationStub(channel)


def _identity(identity: "LogIdentity") -> dict[str, Any]:
    from tandemmq.store.v1 import replica_log_pb2

    return {
        "role": replica_log_pb2.BrokerRole.Name(identity.role),
        "epoch": identity.epoch,
        "fenced_by_epoch": identity.fenced_by_epoch,
        "broker_name": identity.broker_name,
        "broker_id": identity.broker_id,
        "cluster_name": identity.cluster_name,
        "file_size": identity.file_size,
    }


def _role_state(state: "RoleState") -> dict[str, Any]:
    from tandemmq.store.v1 import replica_log_pb2

    return {
        **_identity(state.identity),
        "configured_role": replica_log_pb2.BrokerRole.Name(state.configured_role),
        "min_offset": state.min_offset,
        "max_offset": state.max_offset,
        "flushed_offset": state.flushed_offset,
        "epochs": [{"epoch": one.epoch, "start_offset": one.start_offset} for one in state.epochs],
    }


def _role_in_words(state: dict[str, Any]) -> str:
    told = f"{state['role']} in epoch {state['epoch']}, log {state['min_offset']:,} to {state['max_offset']:,}"
    if state["configured_role"] != state["role"]:
        told += f"; brokerRole={state['configured_role']} of its settings no longer counts"
    return told


def _status(status: "StatusResponse") -> dict[str, Any]:
    told = {
        **_identity(status.identity),
        "min_offset": status.min_offset,
        "max_offset": status.max_offset,
        "flushed_offset": status.flushed_offset,
    }
    if status.HasField("follower"):
        return {**told, "follower": _follower(status.follower)}
    return {
        **told,
        "replicated_offset": status.replicated_offset,
        "in_sync": status.in_sync,
        "replicas": [_replica(one) for one in status.replicas],
    }


def _replica(one: "ReplicaStatus") -> dict[str, Any]:
    return {
        "identity": one.identity,
        "address": one.address,
        "connected": one.connected,
        "in_sync": one.in_sync,
        "acked_offset": one.acked_offset,
        "sent_offset": one.sent_offset,
        "lag_bytes": one.lag_bytes,
        "lag_seconds": one.lag_seconds,
        "ack_age_seconds": one.ack_age_seconds,
        "silent_seconds": one.silent_seconds,
    }


def _follower(one: "FollowerStatus") -> dict[str, Any]:
    from tandemmq.replication.v1 import replication_pb2

    return {
        "master_address": one.master_address,
        "state": replication_pb2.FollowerState.Name(one.state),
        "problem": one.problem,
        "received_offset": one.received_offset,
        "acked_offset": one.acked_offset,
        "master_max_offset": one.master_max_offset,
        "silent_seconds": one.silent_seconds,
        "reconnects": one.reconnects,
    }


def _say_status(output: Output, told: dict[str, Any]) -> None:
    fenced, epoch = "", told["fenced_by_epoch"]
    if epoch:
        promised = f"   has promised epoch {epoch}: follows no older master"
        fenced = promised if told["role"] == "SLAVE" else f"   fenced by epoch {epoch}: takes no messages"
    output.pairs(
        [
            ("role", f"{told['role']} in epoch {told['epoch']}{fenced}"),
            ("broker", f"{told['broker_name']}, id {told['broker_id']}"),
            ("log", f"{told['min_offset']:,} to {told['max_offset']:,}, on disk to {told['flushed_offset']:,}"),
            *_of_role(told),
        ]
    )
    rows = [_row(one) for one in told.get("replicas", ())]
    if rows:
        output.say()
        output.table(
            ("replica", "address", "state", "acked", "lag", "lag time", "last ack"),
            rows,
            drop=("last ack", "acked", "address"),
        )


def _of_role(told: dict[str, Any]) -> list[tuple[str, str]]:
    if "follower" not in told:
        if not told["replicas"]:
            return [("replicas", "none")]
        return [("replicas", f"{told['in_sync']} in sync; enough have the log up to {told['replicated_offset']:,}")]
    one = told["follower"]
    state = one["state"].lower()
    lines = [("master", f"{one['master_address'] or 'none'}: {state}{': ' if one['problem'] else ''}{one['problem']}")]
    if one["master_max_offset"]:
        behind = max(one["master_max_offset"] - told["max_offset"], 0)
        lines.append(("lag", f"{show_bytes(behind)}, last heard of {show_seconds(one['silent_seconds'])} ago"))
    return lines


def _row(one: dict[str, Any]) -> list[str | int]:
    state = "gone" if not one["connected"] else "in sync" if one["in_sync"] else "not in sync"
    if one["silent_seconds"]:
        state += f", no report for {show_seconds(one['silent_seconds'])}"
    return [
        one["identity"],
        one["address"],
        state,
        one["acked_offset"],
        show_bytes(one["lag_bytes"]),
        show_seconds(one["lag_seconds"]),
        f"{show_seconds(one['ack_age_seconds'])} ago",
    ]
