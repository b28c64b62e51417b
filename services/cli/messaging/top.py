"""`tandem top`: a cluster that is looked at again and again."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from tandemmq.cli.nouns.calls import DEFAULT_ADMIN_ADDRESS, AdminAddress, admin_at, document, enum_name
from tandemmq.cli.nouns.figures import disk_used, is_following, slave_lag, sparkline
from tandemmq.cli.talk.moments import show_bytes
from tandemmq.cli.talk.options import Json
from tandemmq.cli.talk.output import Output, is_terminal

if TYPE_CHECKING:
    from rich.console import Group as Drawn
    from rich.table import Table

    from tandemmq.admin.v1.admin_pb2 import Cluster, ListGroupsResponse, ListTopicsResponse, Topic
    from tandemmq.admin.v1.admin_pb2_grpc import AdminStub

_ROWS = 12
_PAGE = 1000
"""As many names as admin gives at once."""


class TopLook(NamedTuple):
    """One look at everything."""

    at: float
    """Of `cluster`, seconds of a monotonic clock."""
    topics_at: float
    """Of `topics`: a node that does not answer keeps one of the two waiting."""
    cluster: "Cluster"
    topics: "ListTopicsResponse"
    groups: "ListGroupsResponse"
    hours: dict[str, list[float]]
    """What was written, bytes a second, in the last hour, by node; NaN: nobody knows."""

    def written(self) -> dict[str, int]:
        """End of the log by node; of those whose store answers."""
        return {node.name: node.log.max_offset for node in self.cluster.nodes if node.HasField("log")}

    def ends(self) -> dict[tuple[str, str, str], int]:
        """What was ever written, by broker, topic and the node that says it: a slave may have less than its master."""
        known = (one for one in self.topics.topics if one.HasField("written"))
        return {(one.broker, one.config.name, one.node): one.written for one in known}


class Rates(NamedTuple):
    """What changed between two looks, a second."""

    bytes_written: dict[str, float]
    messages: dict[tuple[str, str], float]


def rates(before: TopLook | None, now: TopLook) -> Rates:
    """Rates of nodes and topics.

    They are zero at the first look, and where a store did not answer before or now, or rebuilds its queues.
    """
    nodes = dict.fromkeys((node.name for node in now.cluster.nodes), 0.0)
    topics = dict.fromkeys(((one.broker, one.config.name) for one in now.topics.topics), 0.0)
    if before is None:
        return Rates(nodes, topics)
    written, ends = before.written(), before.ends()
    if (seconds := now.at - before.at) > 0:
        nodes |= {name: max(0, end - written.get(name, end)) / seconds for name, end in now.written().items()}
    if (seconds := now.topics_at - before.topics_at) > 0:
        topics |= {key[:2]: max(0, count - ends.get(key, count)) / seconds for key, count in now.ends().items()}
    return Rates(nodes, topics)


def top(
    interval: Annotated[
        float, typer.Option("--interval", "-i", min=0.2, metavar="SECONDS", help="Time between two looks.")
    ] = 2.0,
    count: Annotated[
        int, typer.Option("--count", "-n", min=0, metavar="N", help="Stop after N looks; 0: at Ctrl-C.")
    ] = 0,
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Watch a cluster live.

    What is written, how far slaves are, the busiest topics, the groups that lag. On a terminal it redraws
    itself; elsewhere it prints a line a look.

    With --json: one JSON line a look, {"at", "nodes": [{"node", "role", "bytes_per_second", ...}], "topics": [...],
    "groups": [...]}.
    """
    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        if is_terminal() and not as_json:
            _live(admin, interval, count)
        else:
            for before, now in _looks(admin, interval, count):
                _print(output, now, rates(before, now))


def _looks(admin: "AdminStub", interval: float, count: int) -> Iterator[tuple[TopLook | None, TopLook]]:
    before = None
    done = 0
    while True:
        now = _look(admin)
        yield before, now
        before = now
        done += 1
        if done == count:
            return
        time.sleep(max(0.0, now.at + interval - time.monotonic()))


def _look(admin: "AdminStub") -> TopLook:
    from tandemmq.admin.v1 import admin_pb2

    cluster, at = admin.GetCluster(admin_pb2.GetClusterRequest()), time.monotonic()
    topics, topics_at = _all_topics(admin), time.monotonic()
    return TopLook(
        at,
        topics_at,
        cluster,
        topics,
        _all_groups(admin),
        {node.name: _hour(admin, node.name) for node in cluster.nodes},
    )


def _all_topics(admin: "AdminStub") -> "ListTopicsResponse":
    """All pages as one: the busiest may have any name."""
    from tandemmq.admin.v1 import admin_pb2

    found = page = admin.ListTopics(admin_pb2.ListTopicsRequest(limit=_PAGE))
    while page.next:
        page = admin.ListTopics(admin_pb2.ListTopicsRequest(limit=_PAGE, after=page.next))
        found.topics.extend(page.topics)
    return found


def _all_groups(admin: "AdminStub") -> "ListGroupsResponse":
    """Those that lag, all pages as one."""
    from tandemmq.admin.v1 import admin_pb2

    found = page = admin.ListGroups(admin_pb2.ListGroupsRequest(limit=_PAGE, min_lag=1))
    while page.next:
        page = admin.ListGroups(admin_pb2.ListGroupsRequest(limit=_PAGE, min_lag=1, after=page.next))
        found.groups.extend(page.groups)
    return found


def _hour(admin: "AdminStub", node: str) -> list[float]:
    from tandemmq.admin.v1 import admin_pb2

    told = admin.GetHistory(admin_pb2.GetHistoryRequest(node=node))
    return next((list(one.values) for one in told.series if one.measure == "bytes_in"), [])


def _live(admin: "AdminStub", interval: float, count: int) -> None:
    from rich.live import Live

    with Live(screen=count == 0, auto_refresh=False) as live:
        for before, now in _looks(admin, interval, count):
            live.update(draw(now, rates(before, now)), refresh=True)


def draw(now: TopLook, change: Rates) -> "Drawn":
    """The tables of one look."""
    from rich.console import Group as Drawn
    from rich.text import Text

    problems = [f"{node.name}: {text}" for node in now.cluster.nodes for text in node.problems]
    return Drawn(
        Text(f"TandemMQ {now.cluster.version}   {time.strftime('%H:%M:%S')}   Ctrl-C ends", style="bold"),
        Text(),
        _table(("node", "role", "writes", "last hour", "log ends at", "lag", "disk used"), _node_rows(now, change)),
        _table(("topic", "messages/s", "messages"), _topic_rows(now, change)),
        _table(("group", "lag", "dead letters"), _group_rows(now)),
        *(Text(line, style="yellow") for line in problems[:_ROWS]),
    )


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    for at, name in enumerate(columns):
        table.add_column(name, justify="left" if at == 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _node_rows(now: TopLook, change: Rates) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for node in now.cluster.nodes:
        used = disk_used(node)
        behind = show_bytes(slave_lag(node)) if is_following(node) else "-"
        role = enum_name(node, "role") if node.role else "away"
        rows.append((node.name, role, f"{show_bytes(round(change.bytes_written[node.name]))}/s",
                     sparkline(now.hours.get(node.name, [])), f"{node.log.max_offset:,}", behind,
                     "?" if used is None else f"{used:.0%}"))  # fmt: skip
    return rows


def _busiest(now: TopLook, change: Rates) -> "list[Topic]":
    def busy(topic: "Topic") -> tuple[float, int]:
        return change.messages[topic.broker, topic.config.name], topic.messages

    return sorted(now.topics.topics, key=busy, reverse=True)[:_ROWS]


def _topic_rows(now: TopLook, change: Rates) -> list[tuple[str, ...]]:
    return [
        (one.config.name, f"{change.messages[one.broker, one.config.name]:,.0f}", f"{one.messages:,}")
        for one in _busiest(now, change)
    ]


def _group_rows(now: TopLook) -> list[tuple[str, ...]]:
    worst = sorted(now.groups.groups, key=lambda one: -one.lag)[:_ROWS]
    return [(one.config.name, f"{one.lag:,}", f"{one.dead_letters:,}") for one in worst]


def _print(output: Output, now: TopLook, change: Rates) -> None:
    if not output.as_json:
        nodes = "  ".join(f"{name} {show_bytes(round(rate))}/s" for name, rate in change.bytes_written.items())
        output.say(f"{time.strftime('%H:%M:%S')}  {nodes}  {sum(change.messages.values()):,.0f} messages/s")
        return
    output.line(
        {
            "at": now.cluster.at_ms,
            "nodes": [
                {"node": node.name, "role": document(node)["role"], "max_offset": node.log.max_offset,
                 "bytes_per_second": round(change.bytes_written[node.name]), "problems": list(node.problems)}
                for node in now.cluster.nodes
            ],
            "topics": [
                {"topic": one.config.name, "broker": one.broker, "messages": one.messages,
                 "messages_per_second": round(change.messages[one.broker, one.config.name], 1)}
                for one in _busiest(now, change)
            ],
            "groups": [{"group": one.config.name, "broker": one.broker, "lag": one.lag} for one in now.groups.groups],
        }
    )  # fmt: skip
