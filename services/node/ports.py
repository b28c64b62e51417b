"""The ports of a node: all of them follow from one, or any that are free."""

import random
import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tandemmq.common.settings import default_ports
from tandemmq.node.errors import BadPlan, PortTaken

HOST = "127.0.0.1"
"""What a node's services listen on, but for what --host opens to others."""

DEFAULT_BASE = default_ports.STORE
NODE_STEP = 100
"""Between the bases of two nodes on one machine."""

_HIGHEST_BASE = 65_535 - (default_ports.HA - DEFAULT_BASE)
_FREE_RANGE = range(20_000, 32_000)
"""Below the ports that Linux gives to outgoing connections: what is free here stays free while a service restarts."""
_TRIES = 1_000
_NAMED = 3
"""Of ports that are taken: where there are more, it is a whole node that has them."""


def dialled(host: str) -> str:
    """How one writes, on this machine, the address of what is served on `host`."""
    if host == "0.0.0.0":
        return HOST
    bare = host.removeprefix("[").removesuffix("]")
    return f"[{'::1' if bare == '::' else bare}]" if ":" in bare else bare


class Ports(NamedTuple):
    """Where the services of one node listen. With base 8081 these are the services' own defaults."""

    store: int
    metasync: int
    replicator: int
    internal: int
    """The store's, for the replicator."""
    ha: int
    """RocketMQ's HA protocol: where slaves dial."""
    remoting: int
    """RocketMQ's classic clients; they are served two below it too, where that can be had."""
    store_metrics: int
    replicator_metrics: int
    metasync_metrics: int

    @classmethod
    def from_base(cls, base: int) -> "Ports":
        """The ports of a node whose store listens on `base`. Raises BadPlan."""
        if not 0 < base <= _HIGHEST_BASE:
            raise BadPlan(f"{base} is no base of a node's ports: allowed is 1 to {_HIGHEST_BASE}, or 0 for any")
        defaults = cls(
            store=default_ports.STORE,
            metasync=default_ports.METASYNC,
            replicator=default_ports.REPLICATOR,
            internal=default_ports.INTERNAL,
            ha=default_ports.HA,
            remoting=default_ports.REMOTING,
            store_metrics=default_ports.STORE_METRICS,
            replicator_metrics=default_ports.REPLICATOR_METRICS,
            metasync_metrics=default_ports.METASYNC_METRICS,
        )
        return cls(*_moved(base, defaults))

    @classmethod
    def free(cls, other_than: Iterable[int] = ()) -> "Ports":
        """Ports that nobody listens on now. Raises PortTaken where there are too few."""
        return cls(*_free(len(cls._fields), other_than))


class AdminPorts(NamedTuple):
    """Where the admin beside the nodes listens. With base 8081 these are its own defaults."""

    grpc: int
    console: int
    metrics: int

    @classmethod
    def from_base(cls, base: int) -> "AdminPorts":
        """The ports of an admin beside a node of that base. Raises BadPlan."""
        if not 1 < base <= _HIGHEST_BASE:
            raise BadPlan(f"{base} is no base of a node's ports with an admin: allowed is 2 to {_HIGHEST_BASE}")
        return cls(*_moved(base, (default_ports.ADMIN, default_ports.CONSOLE, default_ports.ADMIN_METRICS)))

    @classmethod
    def free(cls, other_than: Iterable[int] = ()) -> "AdminPorts":
        """Ports that nobody listens on now. Raises PortTaken where there are too few."""
        return cls(*_free(len(cls._fields), other_than))


class NamesPorts(NamedTuple):
    """Where the name server beside the nodes listens. With base 8081 these are its own defaults."""

    names: int
    grpc: int
    metrics: int

    @classmethod
    def from_base(cls, base: int) -> "NamesPorts":
        """The ports of a name server beside a node of that base. Raises BadPlan."""
        if not 0 < base <= _HIGHEST_BASE:
            raise BadPlan(f"{base} is no base of a node's ports with a name server: allowed is 1 to {_HIGHEST_BASE}")
        return cls(*_moved(base, (default_ports.NAMES, default_ports.NAMES_GRPC, default_ports.NAMES_METRICS)))

    @classmethod
    def free(cls, other_than: Iterable[int] = ()) -> "NamesPorts":
        """Ports that nobody listens on now. Raises PortTaken where there are too few."""
        return cls(*_free(len(cls._fields), other_than))


def _moved(base: int, defaults: Iterable[int]) -> Iterator[int]:
    """Ports as far from each other as the default ones."""
    return (base + port - DEFAULT_BASE for port in defaults)


def _free(count: int, other_than: Iterable[int]) -> list[int]:
    avoided = set(other_than)
    found: list[int] = []
    for _ in range(_TRIES):
        port = random.choice(_FREE_RANGE)
        if port not in avoided and not is_taken(port):
            avoided.add(port)
            found.append(port)
        if len(found) == count:
            return found
    raise PortTaken(f"this machine has no free ports between {_FREE_RANGE.start} and {_FREE_RANGE.stop}")


def is_taken(port: int) -> bool:
    """Whether somebody listens there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError:
            return True
    return False


def check_host(host: str) -> None:
    """Raise BadPlan if nothing can be served on that address of this machine."""
    bare = host.removeprefix("[").removesuffix("]")
    if not bare:
        raise BadPlan("an address is wanted, and none was given", remedy="0.0.0.0 stands for all of this machine")
    try:
        with socket.socket(socket.AF_INET6 if ":" in bare else socket.AF_INET) as probe:
            probe.bind((bare, 0))
    except OSError as error:
        raise BadPlan(
            f"{host} is no address of this machine: {error.strerror or error}", remedy="0.0.0.0 stands for all of them"
        ) from error


def check_free(nodes: Mapping[str, Ports | AdminPorts | NamesPorts]) -> None:
    """Raise PortTaken if a port of a node, or of its admin, is taken; it names them, the first of many."""
    taken = [f"{port} ({name} {what})" for name, one in nodes.items() for what, port in _named(one) if is_taken(port)]
    if len(taken) > _NAMED:
        raise PortTaken(
            f"ports of {HOST} are taken: {', '.join(taken[:_NAMED])} and {len(taken) - _NAMED} more",
            remedy="does a node run here already? Stop it, or choose other ports with --port",
        )
    if taken:
        without = " or leave the admin away with --no-admin," if all("(admin " in one for one in taken) else ""
        raise PortTaken(
            f"port {', '.join(taken)} of {HOST} is taken" if len(taken) == 1 else f"taken ports: {', '.join(taken)}",
            remedy=f"stop who listens there,{without} or choose other ports with --port",
        )


def _named(ports: Ports | AdminPorts | NamesPorts) -> list[tuple[str, int]]:
    return [(name.replace("_", " "), port) for name, port in ports._asdict().items()]
