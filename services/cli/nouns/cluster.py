"""`tandem cluster`: all nodes at a glance, what people did, and a bundle for whoever helps."""

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.nouns.calls import DEFAULT_ADMIN_ADDRESS, AdminAddress, admin_at, document, enum_name, noun
from tandemmq.cli.nouns.figures import disk_used, is_following, slave_lag
from tandemmq.cli.talk.moments import show_bytes, show_moment
from tandemmq.cli.talk.options import Json
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.admin.v1.admin_pb2 import Cluster, Node

app = noun("cluster", "All nodes: how they are, what people did.")


@app.command()
def show(address: AdminAddress = DEFAULT_ADMIN_ADDRESS, as_json: Json = False) -> None:
    """Show all nodes: roles, offsets, how far slaves are behind, disks, versions, and what is wrong.

    With --json: one document, {"nodes": [{"name", "broker_name", "role", "services", "log", "replication", "problems",
    ...}], "version"}.
    """
    from tandemmq.admin.v1 import admin_pb2

    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        cluster = admin.GetCluster(admin_pb2.GetClusterRequest())
    if as_json:
        output.document(document(cluster))
        return
    say_cluster(output, cluster)


def say_cluster(output: Output, cluster: "Cluster") -> None:
    """The tables of a cluster."""
    columns = ("node", "broker", "role", "epoch", "log ends at", "log size", "behind", "disk used", "services")
    output.table(columns, [_row(node) for node in cluster.nodes])
    slaves = [
        (node.name, one.identity, one.address, "yes" if one.in_sync else "no", show_bytes(one.lag_bytes),
         f"{one.lag_seconds:.1f} s", "yes" if one.connected else "no")
        for node in cluster.nodes for one in node.replication.replicas
    ]  # fmt: skip
    if slaves:
        output.say()
        output.table(("master", "slave", "address", "in sync", "behind", "by time", "connected"), slaves)
    problems = [(node.name, problem) for node in cluster.nodes for problem in node.problems]
    if problems:
        output.say()
        output.pairs(problems, title="Not as it should be:")


def _row(node: "Node") -> tuple[str | int, ...]:
    return (
        node.name,
        node.broker_name or "?",
        enum_name(node, "role") if node.role else "?",
        node.epoch,
        node.log.max_offset,
        show_bytes(node.log.max_offset - node.log.min_offset),
        _behind(node),
        _disk(node),
        _services(node),
    )


def _behind(node: "Node") -> str:
    return show_bytes(slave_lag(node)) if is_following(node) else "-"


def _disk(node: "Node") -> str:
    used = disk_used(node)
    return "?" if used is None else f"{used:.0%}"


def _services(node: "Node") -> str:
    bad = [f"{one.service} {'not serving' if one.answers else 'away'}" for one in node.services if not one.serving]
    versions = sorted({one.description.version for one in node.services if one.answers})
    return ", ".join(bad) if bad else f"all well, {' and '.join(versions)}"


@app.command()
def actions(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="The last so many.")] = 20,
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Show what people did through the admin service, the last first.

    With --json: one document, {"actions": [{"at_ms", "user", "peer", "method", "request_json", "outcome"}]}.
    """
    from tandemmq.admin.v1 import admin_pb2

    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        found = admin.ListActions(admin_pb2.ListActionsRequest(limit=limit))
    if as_json:
        output.document(document(found))
        return
    columns = ("when", "who", "from", "what", "outcome", "with")
    output.table(
        columns,
        [
            (show_moment(one.at_ms).partition(".")[0], one.user or "-", one.peer, one.method, one.outcome,
             one.request_json)
            for one in found.actions
        ],
    )  # fmt: skip
    if not found.actions:
        output.say("Nobody has changed anything yet.")


@app.command()
def bundle(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The zip file to write.")] = Path("tandem-bundle.zip"),
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Write what one needs to help: state, settings, metrics, topics, groups, jobs. No bodies, no secrets.

    With --json: one document, {"file", "bytes"}.
    """
    from tandemmq.admin.v1 import admin_pb2

    output = Output(as_json=as_json)
    size = 0
    target = file.absolute()
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as part:
        try:
            with admin_at(address) as admin:
                for piece in admin.GetSupportBundle(admin_pb2.GetSupportBundleRequest()):
                    part.write(piece.data)
                    size += len(piece.data)
            os.replace(part.name, target)
        except BaseException:
            os.unlink(part.name)
            raise
    if as_json:
        output.document({"file": str(target), "bytes": size})
    else:
        output.say(f"{target}: {show_bytes(size)}")
