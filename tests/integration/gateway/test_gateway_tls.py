"""A gateway whose clients come with and without TLS, and whose links to the store are mutual TLS."""

from pathlib import Path

import pytest

from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tests.certificates import Authority
from tests.contract.gateway_process import GatewayProcess
from tests.contract.rocketmq5.test_first_byte import secured
from tests.contract.rocketmq5.v2_client import V2Client, message
from tests.contract.store_process import StoreProcess

pytestmark = pytest.mark.slow


def test_clients_and_links_are_secured(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca", "authority")
    ours, theirs = authority.issue("gateway"), authority.issue("store")
    guarded = {"tls_server_trust_cert_path": authority.certificate}
    store = StoreProcess(
        tmp_path / "store", tls_server_cert_path=theirs.certificate, tls_server_key_path=theirs.key, **guarded
    )
    own = {"tls_server_cert_path": ours.certificate, "tls_server_key_path": ours.key, "tls_mode": "permissive"}
    trust = {"broker_tls_trust_cert_path": authority.certificate}
    roots = authority.certificate.read_bytes()
    with (
        store,
        GatewayProcess(tmp_path / "gateway", {"broker-a": [store.internal]}, **own, **trust) as gateway,
        secured(gateway.address, roots) as inside,
        V2Client(gateway.address) as plain,
    ):
        assert inside.send(message("secured", b"1")).status.code == pb.OK
        assert plain.send(message("secured", b"2")).status.code == pb.OK
        bodies = sorted(one.body for one in inside.take("g", "secured", 2))
        assert bodies == [b"1", b"2"]
    strange = Authority(tmp_path / "other", "stranger").issue("gateway")
    own |= {"tls_server_cert_path": strange.certificate, "tls_server_key_path": strange.key}
    with (
        store,
        GatewayProcess(tmp_path / "strange", {"broker-a": [store.internal]}, **own, **trust) as gateway,
        V2Client(gateway.address) as plain,
    ):
        assert plain.send(message("secured"), seconds=30).status.code == pb.HA_NOT_AVAILABLE
