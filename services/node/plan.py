"""Which services a node runs, each with which settings."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from tandemmq.common.server_settings import ServerSettings
from tandemmq.common.service_settings import SERVICE_SETTINGS
from tandemmq.common.settings import unknown_setting
from tandemmq.node.errors import BadPlan
from tandemmq.node.ports import HOST, AdminPorts, NamesPorts, Ports

NODE_SERVICES = ("metasync", "store", "replicator")
"""What every node has."""

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
        """For people: `master store`."""
        return f"{self.node} {self.service}"

    def command(self) -> list[str]:
        """What runs it: `tandem store --json ...`, which tells its events as JSON lines on stdout."""
        return [sys.executable, "-m", "tandemmq.cli.main", self.service, "--json", *self.options()]

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

    def addresses(self) -> dict[str, str]:
        """Where it can be reached, by what is there."""
        ports = self.ports
        of_interest = {"store": ports.store, "metasync": ports.metasync, "replicator": ports.replicator, "ha": ports.ha}
        if self.admin is not None:
            of_interest["admin"] = self.admin.grpc
        if self.names is not None:
            of_interest |= {"names": self.names.names, "remoting": ports.remoting}
        return {what: f"{HOST}:{port}" for what, port in of_interest.items()}


def plan_node(
    name: str,
    directory: Path,
    ports: Ports,
    *,
    given: Mapping[str, str],
    config: Path | None = None,
    peer: Ports | None = None,
    is_slave: bool = False,
) -> NodePlan:
    """The plan of a master, or of a slave.

    `given`: settings by name, for all services that know them; `brokerRole` is the master's. `peer`: the other node. A
    slave follows it; a master is told where it is too, since a promotion changes the roles.

    Raises:
        BadPlan: a setting that is chosen here. UnknownSetting: one that no service has.
    """
    for setting in given:
        if setting in _CHOSEN:
            raise BadPlan(f"{setting} is chosen by the node itself", remedy="see --data and --port")
        if setting not in _KNOWN:
            raise unknown_setting(setting, f"option {setting}", _KNOWN)
    of_node = _node_settings(directory, ports, peer, is_slave)
    own = {
        "store": {"grpcPort": ports.store, "metricsPort": ports.store_metrics},
        "metasync": {"grpcPort": ports.metasync, "metricsPort": ports.metasync_metrics},
        "replicator": {"grpcPort": ports.replicator, "metricsPort": ports.replicator_metrics},
    }
    services = {
        service: ServicePlan(name, service, _settings_of(service, given, of_node) | _texts(own[service]), config)
        for service in NODE_SERVICES
    }
    return NodePlan(name, directory, ports, services)


def with_admin(
    nodes: Sequence[NodePlan],
    ports: AdminPorts,
    directory: Path,
    *,
    given: Mapping[str, str],
    config: Path | None = None,
) -> list[NodePlan]:
    """The same nodes, the first with an admin that looks after all of them; it starts last and stops first.

    `directory`: the admin's own; `given`: as for `plan_node`.
    """
    first, *others = nodes
    own = {
        "grpcPort": ports.grpc,
        "metricsPort": ports.metrics,
        "consolePort": ports.console,
        "adminDirectory": directory,
        "adminNodes": ",".join(map(_admin_entry, nodes)),
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
    }
    address = f"{HOST}:{ports.names}"
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


def _texts(settings: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in settings.items()}


class NodeDirectories(NamedTuple):
    """Where the files of nodes are."""

    first: Path
    second: Path
    """Of the node that follows the first, if there is one."""


def node_directories(directory: Path) -> NodeDirectories:
    """Those of nodes in `directory`: the first is a store's directory as `tandem store` has it, the second lies within.

    Before that was so, the first lay in DIR/master: there it stays. Raises BadPlan where there are both.
    """
    first, earlier = directory, directory / "master"
    if (earlier / "commitlog").exists():
        if (first / "commitlog").exists():
            raise BadPlan(
                f"{first} is a store's directory, and so is {earlier} in it",
                remedy=f"run the second with --data {earlier}, or move it away: then {first} is used",
            )
        first = earlier
    return NodeDirectories(first, directory / "slave")


def services_in(order: Sequence[str], node: NodePlan) -> list[ServicePlan]:
    """The services of a node in an order."""
    return [node.services[service] for service in order if service in node.services]
