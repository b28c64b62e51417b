"""Nodes whose services speak TLS, show each other certificates, and say who they are."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub

from tandemmq.client.channels import open_channel
from tandemmq.common.access.scrypt import GENERATED, hash_secret
from tests.certificates import Authority, Certificate
from tests.faults.pair import Node

PORTS = ("store", "internal", "metasync", "replicator")
"""All gRPC ports of a node."""

_SECONDS = 60.0


def tls_settings(authority: Authority, own: Certificate, *, mutual: bool) -> dict[str, object]:
    """For a broker.conf that all services of a node read."""
    trusted = authority.certificate
    settings: dict[str, object] = {
        "tlsServerCertPath": own.certificate,
        "tlsServerKeyPath": own.key,
        "storeTlsTrustCertPath": trusted,
        "metasyncTlsTrustCertPath": trusted,
        "replicatorTlsTrustCertPath": trusted,
        "haTlsEnable": "true",
        "haTlsTrustCertPath": trusted,
        "haHousekeepingInterval": 20_000,
        "slaveTimeout": 25_000,  # a slave that takes its time has the message all the same
    }
    return settings | ({"tlsServerTrustCertPath": trusted} if mutual else {})


def secured_node(
    directory: Path, settings: Mapping[str, object], *, master: Node | None = None, role: str = "SYNC_MASTER"
) -> Node:
    """A node; a slave if there is a master. `settings` are for all of its services."""
    follow: dict[str, object] = {}
    if master is not None:
        role = "SLAVE"
        follow = {
            "haMasterAddress": master.ha_address,
            "haMasterReplicatorAddress": master.address("replicator"),
            "metasyncMasterAddress": master.address("metasync"),
        }
    own = {**settings, **follow}
    return Node(directory, int(master is not None), role, store=own, replicator=own, metasync=own)


@contextmanager
def started(*nodes: Node) -> Iterator[None]:
    """All of them run; they are killed at the end."""
    try:
        for process in (process for node in nodes for process in node.processes.values()):
            process.launch()
        for process in (process for node in nodes for process in node.processes.values()):
            process.wait_answering()
        yield
    finally:
        for node in nodes:
            node.close()


def health(address: str, **security: Any) -> str:
    """`answered` if a server answers Health/Check, else the name of the status that came instead."""
    with open_channel(address, **security) as channel:
        try:
            stub: Any = HealthStub(channel)
            stub.Check(HealthCheckRequest(), timeout=_SECONDS)
        except grpc.RpcError as error:
            return str(error.code().name)
        return "answered"


def write_access(path: Path, users: Mapping[str, tuple[str, str]], roles: str = "") -> None:
    """An access file: name -> (secret, role). `roles`: TOML of roles of one's own. It is replaced in one step."""
    entries = (
        f'[users.{name}]\nsecret = "{hash_secret(secret, GENERATED)}"\nroles = ["{role}"]\n'
        for name, (secret, role) in users.items()
    )
    fresh = path.with_suffix(".new")
    fresh.write_text("\n".join((*entries, roles)))
    fresh.replace(path)
