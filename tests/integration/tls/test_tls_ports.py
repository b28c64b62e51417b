"""Every gRPC port of a node with TLS and with mutual TLS: who gets an answer, and who gets none."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tandemmq.client.channels import open_channel
from tandemmq.metadata.v1.metadata_pb2 import StatusRequest
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tests.campaigns import SERVED_BY
from tests.certificates import Certificate
from tests.faults.pair import Node
from tests.faults.pair_process import until
from tests.integration.tls.conftest import Certificates
from tests.integration.tls.secured import PORTS, health, secured_node, started, tls_settings

pytestmark = [pytest.mark.xdist_group("tls-ports"), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def with_tls(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Node]:
    settings = tls_settings(certificates.ours, certificates.node, mutual=False)
    node = secured_node(tmp_path_factory.mktemp("tls"), settings)
    with started(node):
        yield node


@pytest.fixture(scope="module", params=SERVED_BY)
def with_mutual_tls(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, certificates: Certificates
) -> Iterator[Node]:
    settings = tls_settings(certificates.ours, certificates.node, mutual=True)
    node = secured_node(tmp_path_factory.mktemp("mtls"), settings | {"grpcTransport": request.param})
    with started(node):
        yield node


def shown(certificate: Certificate) -> dict[str, Path]:
    return {"tls_certificate": certificate.certificate, "tls_key": certificate.key}


@pytest.mark.parametrize("port", PORTS)
def test_with_tls(with_tls: Node, certificates: Certificates, port: str) -> None:
    address = with_tls.address(port)
    assert health(address, tls_ca=certificates.ours.certificate) == "answered"
    assert health(address) == "UNAVAILABLE", "in plain text"
    assert health(address, tls_ca=certificates.theirs.certificate) == "UNAVAILABLE", "somebody else's signature"


@pytest.mark.parametrize("port", PORTS)
def test_with_mutual_tls(with_mutual_tls: Node, certificates: Certificates, port: str) -> None:
    address, ca = with_mutual_tls.address(port), certificates.ours.certificate
    assert health(address, tls_ca=ca, **shown(certificates.caller)) == "answered"
    assert health(address, tls_ca=ca) == "UNAVAILABLE", "without a certificate"
    assert health(address, tls_ca=ca, **shown(certificates.stranger)) == "UNAVAILABLE", "a stranger's certificate"
    assert health(address) == "UNAVAILABLE", "in plain text"


def check_links(node: Node, **security: Any) -> None:
    """The store follows metasync's topics, metasync asks for the store's role, the replicator is linked with it."""
    for name, peer in (("store", "metadata service"), ("replicator", "store")):
        process = node.processes[name]
        there = {"event": "peer is there", "peer": peer}
        until(lambda: any(there.items() <= line.items() for line in process.events()), 60, f"{name}: {peer}")  # noqa: B023
    with open_channel(node.address("metasync"), **security) as channel:
        stub = MetadataStub(channel)
        until(lambda: stub.Status(StatusRequest(), timeout=30).role_source == "store", 60, "metasync knows the role")


def test_services_with_tls_find_each_other(with_tls: Node, certificates: Certificates) -> None:
    check_links(with_tls, tls_ca=certificates.ours.certificate)


def test_services_with_mutual_tls_find_each_other(with_mutual_tls: Node, certificates: Certificates) -> None:
    check_links(with_mutual_tls, tls_ca=certificates.ours.certificate, **shown(certificates.caller))
