"""`tandem cluster`: all nodes at a glance, what people did, and a bundle for whoever helps."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tandemmq.cli.nouns.calls import DEFAULT_ADMIN_ADDRESS, AdminAddress, Broker, admin_at, document, enum_name, noun
from tandemmq.cli.nouns.figures import disk_used, is_following, slave_lag
from tandemmq.cli.talk.moments import show_bytes, show_moment, show_seconds
from tandemmq.cli.talk.options import Json
from tandemmq.cli.talk.output import Output

if TYPE_CHECKING:
    from tandemmq.admin.v1.admin_pb2 import Cluster, Node
    from tandemmq.delivery.v1.operations_pb2 import ViewWaitingResponse

app = noun("cluster", "All nodes: how they are, what people did.")


@app.command()
def show(address: AdminAddress = DEFAULT_ADMIN_ADDRESS, as_json: Json = False) -> None:
    """Show all nodes, and what is wrong.

    Roles, offsets, lag of slaves, disks, versions.

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
    columns = ("node", "broker", "role", "epoch", "log ends at", "log size", "lag", "disk used", "services")
    output.table(columns, [_row(node) for node in cluster.nodes], drop=("epoch", "log size", "broker", "log ends at"))
    slaves = [
        (node.name, one.identity, one.address, "yes" if one.in_sync else "no", show_bytes(one.lag_bytes),
         f"{one.lag_seconds:.1f} s", "yes" if one.connected else "no")
        for node in cluster.nodes for one in node.replication.replicas
    ]  # fmt: skip
    if slaves:
        output.say()
        output.table(
            ("master", "slave", "address", "in sync", "lag", "lag time", "connected"),
            slaves,
            drop=("connected", "address"),
        )
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
def waiting(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="Half messages.")] = 100,
    broker: Broker = "",
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Show what waits: delayed messages, open transactions.

    Messages that are delivered later, and transactions that have not ended, the oldest first.

    With --json: one document, {"brokers": [{"broker", "waiting": {"timers", "timers_due", "timers_late_ms", "levels":
    [{"level", "messages", "late_ms"}], "half_messages", "halves": [{"transaction_id", "group", "topic", "age_ms",
    "checks", "handle"}]}}], "problems": [...]}.
    """
    from tandemmq.admin.v1 import admin_pb2

    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        found = admin.GetWaiting(admin_pb2.GetWaitingRequest(broker=broker, limit=limit))
    if as_json:
        output.document(document(found))
        return
    rows = [(one.broker, what, messages, late) for one in found.brokers for what, messages, late in _waits(one.waiting)]
    output.table(("broker", "what waits", "messages", "late by"), rows)
    halves = [
        (one.broker, half.topic, half.group or "-", show_seconds(half.age_ms / 1000), half.checks, half.transaction_id)
        for one in found.brokers for half in one.waiting.halves
    ]  # fmt: skip
    if halves:
        output.say()
        columns = ("broker", "half message of", "group", "age", "asked", "transaction")
        output.table(columns, halves, drop=("asked", "broker"))
    left = sum(one.waiting.half_messages for one in found.brokers) - len(halves)
    if left > 0:
        output.remark(f"{left:,} more half messages; see --limit")
    for problem in found.problems:
        output.remark(problem)


def _waits(waiting: "ViewWaitingResponse") -> "Iterator[tuple[str, int, str]]":
    def late(milliseconds: int) -> str:
        return show_seconds(milliseconds / 1000) if milliseconds else "-"

    yield "for a time of their own", waiting.timers, late(waiting.timers_late_ms)
    for one in waiting.levels:
        yield f"in delay level {one.level}", one.messages, late(one.late_ms)
    yield "for the end of a transaction", waiting.half_messages, "-"


@app.command()
def actions(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, metavar="N", help="The last N.")] = 20,
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
    """Write what whoever helps you needs into a ZIP file.

    State, settings, metrics, topics, groups, jobs. No bodies, no secrets.

    With --json: one document, {"file", "bytes"}.
    """
    from secrets import token_hex

    from tandemmq.admin.v1 import admin_pb2
    from tandemmq.common.files.file_system import LocalFileSystem
    from tandemmq.common.files.replacing import create_file

    output = Output(as_json=as_json)
    size = 0
    target, files = file.absolute(), LocalFileSystem(mode=0o600)
    if not target.parent.is_dir():
        raise typer.BadParameter(f"{target.parent} is no directory", param_hint="FILE")

    def fill(fd: int) -> None:
        nonlocal size
        with admin_at(address) as admin:
            for piece in admin.GetSupportBundle(admin_pb2.GetSupportBundleRequest()):
                files.pwrite(fd, piece.data, size)
                size += len(piece.data)

    create_file(files, target, target.with_name(f".{target.name}.{token_hex(4)}"), fill)
    if as_json:
        output.document({"file": str(target), "bytes": size})
    else:
        output.say(f"{target}: {show_bytes(size)}")
