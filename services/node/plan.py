"""Which services a node runs, each with which settings."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from tandemmq.common.settings.server_settings import ServerSettings
from tandemmq.common.settings.service_settings import SERVICE_SETTINGS
from tandemmq.common.settings.settings import unknown_setting
from tandemmq.node.errors import BadPlan
from tandemmq.node.ports import HOST, AdminPorts, NamesPorts, Ports, dialled

NODE_SERVICES = ("metasync", "store", "replicator")
"""What every node has."""

FIRST, SECOND = "a", "b"
"""The names of two nodes: roles move between them, names do not."""

START_ORDER = ("names", *NODE_SERVICES, "admin")
"""The store takes its topics from metasync, the replicator its role from the store: each finds whom it needs.

Any other order works too, with a line in the log that somebody is not there yet. They stop in the reverse one.
"""

_CHOSEN = frozenset(
    {
        "storePathRootDir", "storePathCommitLog", "brokerId", "grpcPort", "metricsPort", "internalHost", "internalPort",
        "storeAddress", "metasyncAddress", "metasyncMasterAddress", "haListenPort", "haMasterAddress",
        "haMasterReplicatorAddress", "adminNodes", "adminDirectory", "consolePort", "listenPort", "namesPort",
        "namesDirectory",
    }
)  # fmt: skip
"""Settings that a plan makes; nobody else may."""

_KNOWN = frozenset(one.name for one in ServerSettings().describe()).union(*SERVICE_SETTINGS.values())
"""Settings that some service has."""


@dataclass(frozen=True)
class ServicePlan:
    """One service of one node."""

    node: str
    service: str
    settings: Mapping[str, str]
    """By RocketMQ's names; they win over file and environment."""
    config: Path | None = None
    """A broker.conf beneath them."""

    @property
    def name(self) -> str:
        """For people: `a store`."""
        return f"{self.node} {self.service}"

    def command(self) -> list[str]:
        """What runs it: `tandem serve store --json ...`, which tells its events as JSON lines on stdout."""
        return [sys.executable, "-m", "tandemmq.cli.main", "serve", self.service, "--json", *self.options()]

    def options(self) -> list[str]:
        """Of the command: its broker.conf and its settings."""
        config = ["--config", str(self.config)] if self.config is not None else []
        return config + [part for name, value in self.settings.items() for part in ("--set", f"{name}={value}")]


@dataclass(frozen=True)
class NodePlan:
    """One node: a directory, ports, services."""

    name: str
    directory: Path
    ports: Ports
    services: Mapping[str, ServicePlan] = field(default_factory=dict)
    admin: AdminPorts | None = None
    """Those of the admin that runs with this node."""
    names: NamesPorts | None = None
    """Those of the name server that runs with this node."""
    host: str = HOST
    """What clients are served on; the node's own services meet on `HOST`."""

    def addresses(self) -> dict[str, str]:
        """Where it can be reached, by what is there."""
        ports = self.ports
        outside, within = dialled(self.host), HOST
        of_interest = {
            "store": f"{outside}:{ports.store}",
            "metasync": f"{within}:{ports.metasync}",
            "replicator": f"{within}:{ports.replicator}",
            "ha": f"{within}:{ports.ha}",
        }
        if self.admin is not None:
            of_interest["admin"] = f"{dialled(self.admin_host)}:{self.admin.grpc}"
        if self.names is not None:
            of_interest |= {"names": f"{outside}:{self.names.names}", "remoting": f"{outside}:{ports.remoting}"}
        return of_interest

    @property
    def admin_host(self) -> str:
        """What the admin beside this node is served on."""
        return self.services["admin"].settings.get("grpcHost", HOST) if "admin" in self.services else HOST


def plan_node(
    name: str,
    directory: Path,
    ports: Ports,
    *,
    given: Mapping[str, str],
    config: Path | None = None,
    peer: Ports | None = None,
    is_slave: bool = False,
    host: str = HOST,
) -> NodePlan:
    """The plan of a master, or of a slave.

    `given`: settings by name, for all services that know them; `brokerRole` is the master's. `peer`: the other node. A
    slave follows it; a master is told where it is too, since a promotion changes the roles. `host`: what clients are
    served on.

    Raises:
        BadPlan: a setting that is chosen here. UnknownSetting: one that no service has.
    """
    for setting in given:
        if setting in _CHOSEN:
            raise BadPlan(f"{setting} is chosen by the node itself", remedy="see --data, --host and --port")
        if setting not in _KNOWN:
            raise unknown_setting(setting, f"option {setting}", _KNOWN)
    of_node = _node_settings(directory, ports, peer, is_slave)
    own: dict[str, Mapping[str, object]] = {
        "store": {"grpcPort": ports.store, "metricsPort": ports.store_metrics, **_on("grpcHost", host)},
        "metasync": {"grpcPort": ports.metasync, "metricsPort": ports.metasync_metrics},
        "replicator": {"grpcPort": ports.replicator, "metricsPort": ports.replicator_metrics},
    }
    services = {
        service: ServicePlan(name, service, _settings_of(service, given, of_node) | _texts(own[service]), config)
        for service in NODE_SERVICES
    }
    return NodePlan(name, directory, ports, services, host=host)


def with_admin(
    nodes: Sequence[NodePlan],
    ports: AdminPorts,
    directory: Path,
    *,
    given: Mapping[str, str],
    config: Path | None = None,
    host: str = HOST,
) -> list[NodePlan]:
    """The same nodes, the first with an admin that looks after all of them; it starts last and stops first.

    `directory`: the admin's own; `given`: as for `plan_node`; `host`: what it and its console are served on.
    """
    first, *others = nodes
    own = {
        "grpcPort": ports.grpc,
        "metricsPort": ports.metrics,
        "consolePort": ports.console,
        "adminDirectory": directory,
        "adminNodes": ",".join(map(_admin_entry, nodes)),
        **_on("grpcHost", host),
        **_on("consoleHost", host),
    }
    plan = ServicePlan(first.name, "admin", _settings_of("admin", given, {}) | _texts(own), config)
    return [replace(first, services={**first.services, "admin": plan}, admin=ports), *others]


def with_names(
    nodes: Sequence[NodePlan],
    ports: NamesPorts,
    directory: Path,
    *,
    given: Mapping[str, str],
    config: Path | None = None,
) -> list[NodePlan]:
    """The same nodes, the first with a name server, at which the stores of all register; it starts first, stops last.

    `directory`: the name server's own; `given`: as for `plan_node`.
    """
    own = {
        "grpcPort": ports.grpc,
        "metricsPort": ports.metrics,
        "namesPort": ports.names,
        "namesDirectory": directory,
        **_on("namesHost", nodes[0].host),
    }
    address = f"{dialled(nodes[0].host)}:{ports.names}"
    found = []
    for node in nodes:
        store = node.services["store"]
        told = replace(store, settings={"namesrvAddr": address, **store.settings})
        found.append(replace(node, services={**node.services, "store": told}))
    plan = ServicePlan(found[0].name, "names", _settings_of("names", given, {}) | _texts(own), config)
    return [replace(found[0], services={**found[0].services, "names": plan}, names=ports), *found[1:]]


def _admin_entry(node: NodePlan) -> str:
    """A node as `adminNodes` has it."""
    addresses, files = node.addresses(), str(node.directory)
    parts = [f"{node.name}={addresses['store']}", f"metasync={addresses['metasync']}"]
    parts.append(f"replicator={addresses['replicator']}")
    if not {",", ";"} & set(files):  # which end an entry: then admin runs no jobs, and says so
        parts.append(f"files={files}")
    return ";".join(parts)


def _node_settings(directory: Path, ports: Ports, peer: Ports | None, is_slave: bool) -> dict[str, str]:
    settings: dict[str, object] = {
        "storePathRootDir": directory,
        "brokerId": int(is_slave),
        "internalHost": HOST,
        "internalPort": ports.internal,
        "storeAddress": f"{HOST}:{ports.internal}",
        "metasyncAddress": f"{HOST}:{ports.metasync}",
        "haListenPort": ports.ha,
        "listenPort": ports.remoting,
    }
    if is_slave:
        settings["brokerRole"] = "SLAVE"
    if peer is not None:
        settings |= {
            "haMasterAddress": f"{HOST}:{peer.ha}",
            "haMasterReplicatorAddress": f"{HOST}:{peer.replicator}",
            "metasyncMasterAddress": f"{HOST}:{peer.metasync}",
        }
    return _texts(settings)


def _settings_of(service: str, given: Mapping[str, str], of_node: Mapping[str, str]) -> dict[str, str]:
    """What a service is told: its own settings, and of those that were given what no other service has alone."""
    own = SERVICE_SETTINGS[service]
    of_others = frozenset().union(*SERVICE_SETTINGS.values()) - own
    told = {name: value for name, value in given.items() if name not in of_others}
    return told | {name: value for name, value in of_node.items() if name in own}


def _on(setting: str, host: str) -> dict[str, str]:
    """What a service listens on; nothing where it is what every service has by itself, and --set may say another."""
    return {} if host == HOST else {setting: host}


def _texts(settings: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in settings.items()}


class NodeDirectories(NamedTuple):
    """Where the files of nodes are."""

    first: Path
    second: Path
    """Of the node that follows the first, if there is one."""


def node_directories(directory: Path) -> NodeDirectories:
    """Those of nodes in `directory`: the first is that of a `tandem serve store`, the second lies within.

    Before that was so they lay in DIR/master and DIR/slave: there they stay. Raises BadPlan where there are both.
    """
    return NodeDirectories(
        _now_or_earlier(directory, directory / "master"), _now_or_earlier(directory / "b", directory / "slave")
    )


def _now_or_earlier(now: Path, earlier: Path) -> Path:
    """Where a node lies. Raises BadPlan."""
    if not (earlier / "commitlog").exists():
        return now
    if (now / "commitlog").exists():
        raise BadPlan(
            f"{now} is a store's directory, and so is {earlier}",
            remedy=f"look into {earlier} with `tandem data inspect`, and move it away: then {now} is used",
        )
    return earlier


def services_in(order: Sequence[str], node: NodePlan) -> list[ServicePlan]:
    """The services of a node in an order."""
    return [node.services[service] for service in order if service in node.services]
