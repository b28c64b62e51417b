"""`tandem check`: is the cluster well? One line and an exit code, as Nagios and its kin read them."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tandemmq.cli.nouns.calls import DEFAULT_ADMIN_ADDRESS, AdminAddress, admin_at
from tandemmq.cli.nouns.figures import disk_used, slave_lag
from tandemmq.cli.talk.failures import CallFailed, WrongUsage
from tandemmq.cli.talk.moments import show_bytes
from tandemmq.cli.talk.options import Json
from tandemmq.cli.talk.output import Output
from tandemmq.common.counted import counted

if TYPE_CHECKING:
    from tandemmq.admin.v1.admin_pb2 import Cluster, Group, Node

OK, WARNING, CRITICAL, UNKNOWN = range(4)
_WORDS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
_MB = 1_000_000


class Finding(NamedTuple):
    """Something that is not as it should be."""

    level: int
    what: str


class Bounds(NamedTuple):
    """From where on something is a warning, and critical."""

    disk: tuple[float, float]
    """Used part of a disk, percent."""
    slave_lag: tuple[float, float]
    """Megabytes of a slave."""
    lag: tuple[int, int]
    """Messages of a group; 0: not looked at."""


def check(
    disk_warning: Annotated[
        float, typer.Option("--disk-warning", metavar="PERCENT", help="Disk used, to warn of.")
    ] = 80,
    disk_critical: Annotated[
        float, typer.Option("--disk-critical", metavar="PERCENT", help="And to be critical.")
    ] = 90,
    slave_lag_warning: Annotated[
        float, typer.Option("--slave-lag-warning", metavar="MB", help="Lag of a slave, to warn of.")
    ] = 64,
    slave_lag_critical: Annotated[
        float, typer.Option("--slave-lag-critical", metavar="MB", help="And to be critical.")
    ] = 256,
    behind_warning: Annotated[float | None, typer.Option("--behind-warning", help="The same.", hidden=True)] = None,
    behind_critical: Annotated[float | None, typer.Option("--behind-critical", help="The same.", hidden=True)] = None,
    lag_warning: Annotated[
        int, typer.Option("--lag-warning", metavar="N", help="Lag of a group in messages, to warn of; 0: any.")
    ] = 0,
    lag_critical: Annotated[int, typer.Option("--lag-critical", metavar="N", help="And to be critical.")] = 0,
    groups: Annotated[
        str, typer.Option("--groups", metavar="PART", help="Only groups with this in their name, or a pattern.")
    ] = "",
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Say in one line whether the cluster is well.

    For Nagios and its kin. Looked at: every service answers and serves, stores take messages, nothing is damaged,
    disks, slaves, and, with --lag-warning or --lag-critical, groups.

    Exit codes: 0 OK, 1 warning, 2 critical, 3 unknown: the admin service does not answer.

    With --json: one document, {"state", "findings": [{"level", "what"}], "figures": {...}}.
    """
    slave_lag = (  # the hidden ones are how it was written before 0.2
        slave_lag_warning if behind_warning is None else behind_warning,
        slave_lag_critical if behind_critical is None else behind_critical,
    )
    bounds = Bounds((disk_warning, disk_critical), slave_lag, (lag_warning, lag_critical))
    output = Output(as_json=as_json)
    try:
        cluster, lagging = _ask(address, groups, bounds)
    except (CallFailed, WrongUsage) as error:  # 2, which is wrong usage elsewhere, is critical here
        _tell(output, UNKNOWN, [Finding(UNKNOWN, error.message)], {})
        raise typer.Exit(UNKNOWN) from None
    findings = look(cluster, lagging or [], bounds)
    state = max((one.level for one in findings), default=OK)
    _tell(output, state, findings, figures(cluster, lagging))
    raise typer.Exit(state)


def _ask(address: str, groups: str, bounds: Bounds) -> "tuple[Cluster, list[Group] | None]":
    """The groups that lag; None where nobody wants to know."""
    from tandemmq.admin.v1 import admin_pb2

    wanted = min((one for one in bounds.lag if one), default=0)
    lagging: list[Group] | None = None
    with admin_at(address) as admin:
        cluster = admin.GetCluster(admin_pb2.GetClusterRequest())
        if wanted:
            request = admin_pb2.ListGroupsRequest(match=groups, min_lag=wanted, limit=1000)
            lagging = list(admin.ListGroups(request).groups)
    return cluster, lagging


def look(cluster: "Cluster", lagging: "list[Group]", bounds: Bounds) -> list[Finding]:
    """What is not as it should be, the worst first."""
    found = [finding for node in cluster.nodes for finding in _of_node(node, bounds)]
    found += [
        Finding(level, f"group {one.config.name} has a lag of {one.lag:,} messages")
        for one in lagging
        if (level := _level(one.lag, bounds.lag, skip_zero=True))
    ]
    return sorted(found, key=lambda one: -one.level)


def _of_node(node: "Node", bounds: Bounds) -> list[Finding]:
    from tandemmq.admin.v1 import admin_pb2

    found = []
    for one in node.services:
        if not one.serving:
            how = "is not serving" if one.answers else "does not answer"
            found.append(Finding(CRITICAL, f"{one.service} of {node.name} {how}: {one.reason}".removesuffix(": ")))
    if node.HasField("log"):
        # A slave takes no messages but its master's: that is no finding.
        if not node.log.writable and node.role == admin_pb2.MASTER:
            found.append(Finding(CRITICAL, f"{node.name} takes no messages: {node.log.not_writable_reason}"))
        if node.log.damaged:
            found.append(Finding(WARNING, f"{len(node.log.damaged)} damaged ranges in the log of {node.name}"))
    used = disk_used(node)
    if used is not None and (level := _level(100 * used, bounds.disk)):
        found.append(Finding(level, f"disk of {node.name} is {100 * used:.0f} % full"))
    lag = slave_lag(node)
    level = _level(lag / _MB, bounds.slave_lag)
    found += [Finding(level, f"slave {node.name} has a lag of {show_bytes(lag)}")] if level else []
    known = " ".join(one.what for one in found)
    found += [Finding(WARNING, f"{node.name}: {one}") for one in node.problems if one not in known]
    return found


def _level(value: float, bounds: tuple[float, float], *, skip_zero: bool = False) -> int:
    warning, critical = bounds
    if value >= critical and not (skip_zero and not critical):
        return CRITICAL
    return WARNING if value >= warning and not (skip_zero and not warning) else OK


def figures(cluster: "Cluster", lagging: "list[Group] | None") -> dict[str, float]:
    """Numbers for whoever draws them (performance data). Without groups that were looked at none of them."""
    disks = [disk_used(one) or 0.0 for one in cluster.nodes]
    of_groups = {} if lagging is None else {"group_lag_messages": max((one.lag for one in lagging), default=0)}
    return {
        "nodes": len(cluster.nodes),
        "services_serving": sum(one.serving for node in cluster.nodes for one in node.services),
        "disk_used_percent": round(100 * max(disks, default=0), 1),
        "slave_lag_bytes": max((slave_lag(node) for node in cluster.nodes), default=0),
        "compiled_stores": sum(node.files.core == "compiled" for node in cluster.nodes),
        **of_groups,
    }


def _tell(output: Output, state: int, findings: list[Finding], numbers: dict[str, float]) -> None:
    if output.as_json:
        told = [{"level": _WORDS[one.level], "what": one.what} for one in findings]
        output.document({"state": _WORDS[state], "findings": told, "figures": numbers})
        return
    nodes = int(numbers.get("nodes", 0))
    words = "; ".join(one.what for one in findings) or f"{counted(nodes, 'node')}, everything serves"
    drawn = " ".join(f"{name}={value}" for name, value in numbers.items())
    output.say(f"TANDEMMQ {_WORDS[state]}: {words}" + (f" | {drawn}" if drawn else ""))
