"""`tandem node`: the services of each node, and their settings."""

import time
from typing import Annotated

import typer

from tandemmq.cli.nouns import names
from tandemmq.cli.nouns.calls import DEFAULT_ADMIN_ADDRESS, AdminAddress, admin_at, document, enum_name, noun
from tandemmq.cli.talk.moments import show_bytes, show_seconds
from tandemmq.cli.talk.options import Json
from tandemmq.cli.talk.output import Output

app = noun("node", "The services of each node, and their settings.")


@app.command("list")
def list_nodes(address: AdminAddress = DEFAULT_ADMIN_ADDRESS, as_json: Json = False) -> None:
    """List the services of all nodes and how they are.

    Address, health, version, age, memory.

    With --json: one document, {"services": [{"node", "role", "service", "address", "answers", "serving", "reason",
    "description": {...}}]}.
    """
    from tandemmq.admin.v1 import admin_pb2

    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        cluster = admin.GetCluster(admin_pb2.GetClusterRequest())
    if as_json:
        output.document(
            {
                "services": [
                    {"node": node.name, "role": document(node)["role"], **document(service)}
                    for node in cluster.nodes
                    for service in node.services
                ]
            }
        )
        return
    rows = []
    for node in cluster.nodes:
        for one in node.services:
            about = one.description
            age = show_age(time.time() - about.started_ms / 1000) if one.answers else "-"
            state = "serving" if one.serving else one.reason or ("not serving" if one.answers else "away")
            memory = show_bytes(about.resident_bytes) if one.answers else "-"
            rows.append((node.name, enum_name(node, "role") if node.role else "?", one.service, one.address, state,
                         about.version or "-", age, memory))  # fmt: skip
    output.table(
        ("node", "role", "service", "address", "state", "version", "up for", "memory"),
        rows,
        drop=("memory", "version", "role"),
    )


def show_age(seconds: float) -> str:
    """A long duration: `3 d 4 h`, `12 min`."""
    minutes = int(seconds) // 60
    if minutes < 1:
        return show_seconds(seconds)
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h {minutes % 60} min" if hours < 24 else f"{hours // 24} d {hours % 24} h"


@app.command()
def config(
    node: Annotated[
        str,
        typer.Argument(
            metavar="NODE", help="Name of the node, as `tandem node list` has it.", autocompletion=names.nodes
        ),
    ],
    service: Annotated[str, typer.Argument(metavar="[SERVICE]", help="store, replicator or metasync.")] = "",
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="All settings, not only those that do not stand at their default.")
    ] = False,
    address: AdminAddress = DEFAULT_ADMIN_ADDRESS,
    as_json: Json = False,
) -> None:
    """Show the settings of a node's services that run.

    Values, defaults, and where each comes from.

    With --json: one document with all settings, {"services": [{"service", "version", "settings": [{"name", "value",
    "default_value", "origin", "place", ...}]}], "missing": [...]}.
    """
    from tandemmq.admin.v1 import admin_pb2

    output = Output(as_json=as_json)
    with admin_at(address) as admin:
        found = admin.GetConfiguration(admin_pb2.GetConfigurationRequest(node=node, service=service))
    if as_json:
        output.document(document(found))
        return
    rows = [
        (one.service, setting.name, setting.value, setting.default_value, setting.place)
        for one in found.services
        for setting in one.settings
        if everything or setting.origin != "default"
    ]
    output.table(("service", "setting", "value", "default", "from"), rows, drop=("default",))
    if not rows:
        output.say("All settings stand at their defaults; --all shows them.")
    for gone in found.missing:
        output.remark(f"{gone.service} at {gone.address} does not answer: {gone.reason}")
