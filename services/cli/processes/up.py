"""`tandem up`: a whole node, or two, in one terminal."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tandemmq.cli.processes.node_log import NodeLog
from tandemmq.cli.processes.start_settings import split_settings
from tandemmq.cli.talk.failures import WrongUsage
from tandemmq.cli.talk.moments import show_seconds
from tandemmq.cli.talk.options import Config, Json, Set
from tandemmq.cli.talk.output import Output
from tandemmq.common.calling.addresses import is_loopback
from tandemmq.common.settings import default_ports

if TYPE_CHECKING:
    from tandemmq.node.plan import NodePlan
    from tandemmq.node.ports import AdminPorts, NamesPorts, Ports
    from tandemmq.node.processes import Layout
    from tandemmq.node.supervisor import NodeEvent

_TOGETHER_SECONDS = 0.5


ClientHost = Annotated[
    str,
    typer.Option(
        "--host",
        metavar="ADDRESS",
        help="Serve clients, the name server and, where an accessFile says who may do what, admin and console on "
        "this address of the machine; 0.0.0.0: on all. What only the node itself needs stays on 127.0.0.1.",
    ),
]


BasePort = Annotated[
    int,
    typer.Option(
        "--port",
        "-p",
        metavar="N",
        help="Port for clients; the other ports follow from it: console N-1, metasync N+1, admin N+2, replicator "
        "N+3, internal N+1000, metrics N+1020 to N+1023, name server N+1795, classic clients N+2830, HA N+2831. 0: "
        "any that are free.",
    ),
]


def up(
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            metavar="DIR",
            help="Where the files go: those of the first node as of `tandem serve store`, with --slave those of the "
            "second to DIR/b.",
        ),
    ] = Path("data"),
    slave: Annotated[
        bool,
        typer.Option(
            "--slave",
            help="Run a second node, which follows the first: a message is acknowledged when both have it (brokerRole "
            "SYNC_MASTER, unless --set says otherwise). Its ports are those of the first plus 100.",
        ),
    ] = False,
    host: ClientHost = "127.0.0.1",
    port: BasePort = default_ports.STORE,
    admin: Annotated[
        bool,
        typer.Option(
            "--admin/--no-admin", help="Run an admin too, which has a web console: its files go to DIR/admin."
        ),
    ] = True,
    names: Annotated[
        bool,
        typer.Option(
            "--names/--no-names",
            help="Run a name server too, at which the nodes register: RocketMQ's classic clients find them by it "
            "(namesrvAddr). What tools put there goes to DIR/names.",
        ),
    ] = False,
    processes: Annotated[
        bool, typer.Option("--processes", help="Run each service in a process of its own: one that dies is alone.")
    ] = False,
    single_process: Annotated[
        bool,
        typer.Option(
            "--single-process", help="Run all services of a node in one process: the least memory, for tests."
        ),
    ] = False,
    config: Config = None,
    overrides: Set = None,
    as_json: Json = False,
) -> None:
    """Run a whole node, or two, in the foreground, until Ctrl-C.

    A node is a store, a metasync and a replicator; one admin looks after all of them, and has a web console, whose
    address is told. Two processes run a node: the store with its replicator, and the others. One that dies is started
    again, and if it dies again and again everything is stopped. All listen on 127.0.0.1, unless --host says otherwise.
    Their logs come as one, on stderr. Ctrl-C or SIGTERM stops them in order; a second one kills them. Settings go to
    the services that know them. DIR may be that of a `tandem serve store`, and the verbs of `tandem data`
    take it. The nodes are called a and b; which is master may change.

    With --json: one JSON line an event, {"event", "node", "service", ...}; "up" has the addresses of all nodes and of
    the console. The log is JSON lines too, with "node" and "service" in each.
    """
    import uvloop

    from tandemmq.node.ports import check_free, check_host
    from tandemmq.node.processes import Layout

    if processes and single_process:
        raise typer.BadParameter("one of the two", param_hint="--processes, --single-process")
    if data.exists() and not data.is_dir():
        raise WrongUsage(f"{data} is a file, and --data wants a directory")
    check_host(host)
    given = split_settings(overrides)
    nodes = _plan(data, slave, host, port, config, given, as_json, admin=admin, names=names)
    check_free(_ports(nodes))
    if admin and (remark := where_admin_is(host, nodes[0].admin_host)):
        Output(as_json=as_json).remark(remark)
    layout = Layout.APART if processes else Layout.SINGLE if single_process else Layout.PAIRED
    uvloop.run(_run(nodes, layout, as_json))


def where_admin_is(host: str, admin_host: str) -> str:
    """What is said where others reach the clients' port, and not admin; empty where there is nothing to say."""
    if is_loopback(host) or not is_loopback(admin_host):
        return ""
    return (
        f"Clients are served on {host}, admin and console on {admin_host} only: from elsewhere they are reached with "
        "an accessFile (docs/security.md), or accessOpen=true."
    )


def _ports(nodes: list["NodePlan"]) -> dict[str, "Ports | AdminPorts | NamesPorts"]:
    """What everything listens on, by who does."""
    first = nodes[0]
    beside = {"admin": first.admin, "names": first.names}
    return {node.name: node.ports for node in nodes} | {name: one for name, one in beside.items() if one is not None}


def _plan(
    data: Path,
    slave: bool,
    host: str,
    port: int,
    config: Path | None,
    given: dict[str, str],
    as_json: bool,
    *,
    admin: bool,
    names: bool,
) -> list["NodePlan"]:
    from tandemmq.node.errors import BadPlan
    from tandemmq.node.plan import FIRST, SECOND, node_directories, plan_node, with_admin, with_names
    from tandemmq.node.ports import HOST, NODE_STEP, AdminPorts, NamesPorts, Ports

    if given.get("brokerRole") == "SLAVE":
        raise BadPlan("the first node is a master", remedy="`tandem up --slave` adds a slave to it")
    directories = node_directories(data.absolute())
    given = {"logFormat": "json" if as_json else "text", **given}
    if slave:
        given = {"brokerRole": "SYNC_MASTER", **given}
    ports = Ports.from_base(port) if port else Ports.free()
    of_slave = (Ports.from_base(port + NODE_STEP) if port else Ports.free(other_than=ports)) if slave else None
    nodes = [plan_node(FIRST, directories.first, ports, given=given, config=config, peer=of_slave, host=host)]
    if of_slave is not None:
        nodes.append(
            plan_node(
                SECOND, directories.second, of_slave, given=given, config=config, peer=ports, is_slave=True, host=host
            )
        )
    if admin:
        of_admin = AdminPorts.from_base(port) if port else AdminPorts.free(other_than=[*ports, *(of_slave or ())])
        on = host if _admin_may_be_reached(given, config) else HOST
        nodes = with_admin(nodes, of_admin, (data / "admin").absolute(), given=given, config=config, host=on)
    if names:
        used = [*ports, *(of_slave or ()), *(nodes[0].admin or ())]
        of_names = NamesPorts.from_base(port) if port else NamesPorts.free(other_than=used)
        nodes = with_names(nodes, of_names, (data / "names").absolute(), given=given, config=config)
    return nodes


def _admin_may_be_reached(given: dict[str, str], config: Path | None) -> bool:
    """Whether settings say who may do what at the admin, or that everybody may. Raises SettingsError."""
    from tandemmq.common.settings.server_settings import ServerSettings

    known = {one.name for one in ServerSettings().describe()}
    settings = ServerSettings.load(config, overrides={name: value for name, value in given.items() if name in known})
    return settings.access_file is not None or settings.access_open


async def _run(nodes: list["NodePlan"], layout: "Layout", as_json: bool) -> None:
    import asyncio

    from tandemmq.node.supervisor import NodeListener, Supervisor

    teller = _Teller(nodes, as_json)

    def tell(event: "NodeEvent") -> None:
        try:
            teller.event(event)
        except BrokenPipeError:
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for what is still to be told
            supervisor.stop("nobody reads what is told")

    supervisor = Supervisor(nodes, NodeListener(tell, teller.log.line), layout=layout)
    loop = asyncio.get_running_loop()
    signals = _Signals(supervisor.stop)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, signals.take, number.name)
    await supervisor.run()


class _Signals:
    """Signals that arrive together are one: `timeout` and shells send some twice, and a second one kills."""

    def __init__(self, stop: Callable[[str], None]) -> None:
        self._stop = stop
        self._last = -_TOGETHER_SECONDS

    def take(self, name: str) -> None:
        """A signal came."""
        now = time.monotonic()
        if now - self._last >= _TOGETHER_SECONDS:
            self._stop(name)
        self._last = now


class _Teller:
    """Says what happens to the services: JSON lines for programs, for people what they want to know."""

    def __init__(self, nodes: list["NodePlan"], as_json: bool) -> None:
        self._nodes = nodes
        self._console: str | None = None
        """Its address, once the admin serves."""
        self._output = Output(as_json=as_json)
        self.log = NodeLog(as_json=as_json)

    def event(self, event: "NodeEvent") -> None:
        """Something happened."""
        if event.kind == "serving" and event.service == "admin":
            self._console = event.facts.get("console")
        if self._output.as_json:
            self._output.line(self._document(event))
        elif event.kind == "up":
            self._say_up(event.facts["seconds"])
        elif event.kind == "stopping":
            reason = str(event.facts["reason"]).removesuffix(".")
            self.log.remark(f"{reason}: stopping{', once more kills' if reason.startswith('SIG') else ''}")
        elif event.kind == "stopped":
            self._output.say("Everything has stopped.")
        else:
            self._say_of_service(event)

    def _document(self, event: "NodeEvent") -> dict[str, Any]:
        of = {"node": event.node, "service": event.service} if event.service else {}
        facts = event.facts
        if event.kind == "up":
            facts = {
                **facts,
                "console": self._console,
                "nodes": [
                    {"node": node.name, "directory": str(node.directory), **node.addresses()} for node in self._nodes
                ],
            }
        return {"event": event.kind, **of, **facts}

    def _say_of_service(self, event: "NodeEvent") -> None:
        facts = event.facts
        if event.kind == "died":
            then = f"again in {show_seconds(facts['restart_in'])}" if facts["restart_in"] is not None else "given up"
            served = f"after {show_seconds(facts['served_seconds'])}" if facts["served_seconds"] else "before it served"
            self.log.remark(f"{event.node} {event.service} died {served} ({facts['how']}): {then}")
        elif event.kind == "killed":
            self.log.remark(f"{event.node} {event.service} did not stop in {show_seconds(facts['seconds'])}: killed")
        elif event.kind == "ended" and facts["how"] != "exit code 0":
            self.log.remark(f"{event.node} {event.service} ended with {facts['how']}")

    def _say_up(self, seconds: float) -> None:
        count = "Two nodes are" if len(self._nodes) > 1 else "The node is"
        self._output.say(f"{count} up after {show_seconds(seconds)}; Ctrl-C stops everything.")
        rows = []
        for node in self._nodes:
            addresses = node.addresses()
            rows.append((node.name, f"clients {addresses['store']}   files {node.directory}"))
            ports = node.ports
            metrics = f"{ports.store_metrics}, {ports.metasync_metrics}, {ports.replicator_metrics}"
            rows.append(("", f"metasync {addresses['metasync']}   replicator {addresses['replicator']}   "
                             f"HA {addresses['ha']}   metrics on ports {metrics}"))  # fmt: skip
        of_admin = self._nodes[0].admin
        if of_admin is not None:
            address = self._nodes[0].addresses()["admin"]
            rows.append(
                ("admin", f"console {self._console or 'off'}   gRPC {address}   metrics on port {of_admin.metrics}")
            )
        of_names = self._nodes[0].names
        if of_names is not None:
            rows.append(
                ("names", f"namesrvAddr {self._nodes[0].addresses()['names']}   for RocketMQ's classic clients")
            )
        self._output.pairs(rows)
