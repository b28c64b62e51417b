"""The address of the store's internal port: loopback, or with certificates, or declared private."""

from pathlib import Path

import pytest

from tandemmq.store.exposure import ExposedInternalPort
from tandemmq.store.settings import StoreSettings


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "[::1]", "::1", "localhost"])
def test_loopback_is_good(host: str) -> None:
    assert StoreSettings(internal_host=host).internal_server().grpc_host == host


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.0.0.7", "store.example", ""])
def test_other_addresses_are_refused(host: str) -> None:
    with pytest.raises(ExposedInternalPort, match=f"internalHost={host}".replace("[", r"\[")) as refused:
        StoreSettings.load(environment={}, overrides={"internalHost": host})
    assert "option internalHost" in refused.value.message
    for remedy in ("127.0.0.1", "tlsServerTrustCertPath", "internalOpen=true"):
        assert remedy in refused.value.explain()


def test_tls_without_client_certificates_is_not_enough(tmp_path: Path) -> None:
    tls = {"tls_server_cert_path": tmp_path / "cert", "tls_server_key_path": tmp_path / "key"}
    with pytest.raises(ExposedInternalPort):
        StoreSettings(internal_host="0.0.0.0", **tls)  # type: ignore[arg-type]
    internal = StoreSettings(
        internal_host="0.0.0.0",
        tls_server_trust_cert_path=tmp_path / "ca",
        **tls,  # type: ignore[arg-type]
    ).internal_server()
    assert internal.tls_server_cert_path == tmp_path / "cert"
    assert internal.tls_server_trust_cert_path == tmp_path / "ca"


def test_a_private_network_can_be_declared() -> None:
    assert StoreSettings(internal_host="0.0.0.0", internal_open=True).internal_server().grpc_host == "0.0.0.0"
