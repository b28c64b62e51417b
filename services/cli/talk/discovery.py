"""One address of a cluster, from which the rest is found: whoever answers there says what it is, and admin knows all.

An admin knows where each service is. A store, metasync or replicator knows no admin: it is looked for where `tandem up`
puts it, the same way from that port as by default, and at the usual port of the same host: another cluster's
may be there, so one that does not know the port that was named is not asked. Other services are looked for beside only.
A store that is a slave now stands for its broker too: an admin that knows this very process tells where the master is.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tandemmq.cli.talk.contexts import SERVER
from tandemmq.cli.talk.failures import CallFailed, Failure
from tandemmq.common.calling.addresses import is_loopback
from tandemmq.common.settings import default_ports

if TYPE_CHECKING:
    import grpc

    from tandemmq.admin.v1.admin_pb2 import Cluster
    from tandemmq.node.v1.node_pb2 import DescribeResponse

_PORTS = {
    "store": default_ports.STORE,
    "metasync": default_ports.METASYNC,
    "admin": default_ports.ADMIN,
    "replicator": default_ports.REPLICATOR,
}
_SECONDS = 5.0
"""How long one of them may take to say what it is."""


def resolve(service: str, address: str) -> str:
    """The address of that service: as it stands, unless it is the cluster's one address. Raises CallFailed."""
    if not address or address != os.environ.get(SERVER):
        return address
    failure = None
    for server in map(str.strip, address.split(",")):
        answering = service_at(server)
        if answering == service:
            return _with_master(address) if service == "store" else server
        if answering:
            if found := _from(server, answering, service):
                return found
            failure = Failure(
                f"from the {answering} at {server} no {service} is found; is one running? Name it with --address",
                "UNAVAILABLE",
            )
    if failure is not None:
        raise CallFailed(failure)
    return address  # nobody says what it is: the call itself finds out why


def _with_master(address: str) -> str:
    """The address of a store, or of its master where it is a slave and an admin knows both, and reaches the other."""
    if "," in address or not _is_slave(address):
        return address
    import grpc

    own = _described(address)
    for candidate in candidates(address, "store", "admin"):
        if own is None or service_at(candidate) != "admin":
            continue
        try:
            cluster = _cluster_at(candidate)
        except grpc.RpcError:  # it may be another cluster's, or we may not ask: the store itself says what it refuses
            continue
        if found := _master_of(own, cluster, _split(candidate)[0]):
            return found
    return address


def _master_of(slave: "DescribeResponse", cluster: "Cluster", host: str) -> str:
    """The address of the store of a slave's master, as `of_cluster`; empty where it is not there."""
    from tandemmq.admin.v1 import admin_pb2

    process = _process(slave)
    for node in cluster.nodes:
        if any(one.service == "store" and _process(one.description) == process for one in node.services):
            for other in cluster.nodes:
                if other.role == admin_pb2.MASTER and other.broker_name == node.broker_name:
                    for one in other.services:
                        if one.service == "store" and one.answers:
                            return _dialled(one.address, host)
    return ""


def _process(described: "DescribeResponse") -> tuple[str, int, int]:
    return described.host_name, described.pid, described.started_ms


def _is_slave(store: str) -> bool:
    """False too where it does not say so."""
    import grpc

    from tandemmq.store.v1.store_pb2 import GetLogRequest
    from tandemmq.store.v1.store_pb2_grpc import StoreStub

    try:
        with _channel(store) as channel:
            state = StoreStub(channel).GetLog(GetLogRequest(), timeout=_SECONDS).state
    except grpc.RpcError:
        return False
    return not (state.master or state.writable)


def _from(server: str, answering: str, service: str) -> str:
    """Where a service is, asked from another; empty if it is not found."""
    if answering == "admin":
        return _told_by_admin(server, service)
    for candidate in candidates(server, answering, service):
        if service_at(candidate) == service and (service != "admin" or _looks_after(candidate, server, answering)):
            return candidate
    for candidate in candidates(server, answering, "admin"):
        if service != "admin" and service_at(candidate) == "admin" and _looks_after(candidate, server, answering):
            return _told_by_admin(candidate, service)
    return ""


def candidates(server: str, answering: str, service: str) -> Iterator[str]:
    """Where a service would be beside another, and an admin besides."""
    host, port = _split(server)
    ports = [port + _PORTS[service] - _PORTS.get(answering, port), *([_PORTS[service]] if service == "admin" else ())]
    yield from dict.fromkeys(f"{host}:{each}" for each in ports if 0 < each < 1 << 16)


def _looks_after(admin: str, server: str, answering: str) -> bool:
    """Whether that admin is the one of `server`: beside it, or it knows its port; hosts have several names."""
    is_beside = admin == next(candidates(server, answering, "admin"), "")
    return is_beside or _split(server)[1] in _ports_of(_cluster_at(admin))


def _ports_of(cluster: "Cluster") -> set[int]:
    return {_split(one.address)[1] for node in cluster.nodes for one in node.services}


def _told_by_admin(server: str, service: str) -> str:
    return of_cluster(_cluster_at(server), service, _split(server)[0])


def _cluster_at(admin: str) -> "Cluster":
    from tandemmq.admin.v1 import admin_pb2
    from tandemmq.admin.v1.admin_pb2_grpc import AdminStub

    with _channel(admin) as channel:
        return AdminStub(channel).GetCluster(admin_pb2.GetClusterRequest(), timeout=_SECONDS)


def of_cluster(cluster: "Cluster", service: str, host: str) -> str:
    """The address of a master's service, else of any; as one dials it who reaches the admin at `host`."""
    from tandemmq.admin.v1 import admin_pb2

    nodes = sorted(cluster.nodes, key=lambda node: node.role != admin_pb2.MASTER)
    for node in nodes:
        for one in node.services:
            if one.service == service:
                return _dialled(one.address, host)
    return ""


def _dialled(address: str, host: str) -> str:
    its_host, port = _split(address)
    return f"{host if is_loopback(its_host) else its_host}:{port}"


def service_at(address: str) -> str:
    """What answers there says that it is; empty if nobody does."""
    described = _described(address)
    return "" if described is None else described.service


def _described(address: str) -> "DescribeResponse | None":
    import grpc

    from tandemmq.node.v1.node_pb2 import DescribeRequest
    from tandemmq.node.v1.node_pb2_grpc import NodeStub

    try:
        with _channel(address) as channel:
            answer: DescribeResponse = NodeStub(channel).Describe(DescribeRequest(), timeout=_SECONDS)
            return answer
    except grpc.RpcError:
        return None


def _channel(address: str) -> "grpc.Channel":
    from tandemmq.client import Identity
    from tandemmq.client.channels import open_channel

    return open_channel(address, **Identity.from_environment().at(address).arguments())


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
