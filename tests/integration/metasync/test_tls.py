"""Tables over TLS, with and without client certificates."""

import json
from pathlib import Path

import pytest

from tandemmq.common.calling.client_channel import Dialer
from tandemmq.common.documents.java_json import loads
from tandemmq.common.settings.server_settings import ServerSettings
from tandemmq.store.broker.watched_topics import WatchedTopicTable
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.metasync_link import MetasyncLink
from tests.campaigns import in_campaigns
from tests.integration.metasync.test_watching import until
from tests.integration.replicator.test_master_tls import Certificate, make_certificate
from tests.metasync_process import MetasyncProcess, wait_until


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"), "node")


def master_over_tls(directory: Path, certificate: Certificate, **settings: object) -> MetasyncProcess:
    (directory / "config").mkdir(parents=True)
    (directory / "config" / "topics.json").write_text(
        json.dumps({"dataVersion": {"counter": 3, "timestamp": 4}, "topicConfigTable": {"T": {"perm": 6}}})
    )
    shown = {"tls_server_cert_path": certificate.certificate, "tls_server_key_path": certificate.key}
    return MetasyncProcess(directory, **shown, **settings)


def has_the_topic(process: MetasyncProcess) -> bool:
    path = process.file("topics.json")
    return path.exists() and set(loads(path.read_bytes())["topicConfigTable"]) == {"T"}


@pytest.mark.parametrize("mutual", [True, *in_campaigns(False)])
def test_a_slave_copies_over_tls(tmp_path: Path, certificate: Certificate, mutual: bool) -> None:
    asked = {"tls_server_trust_cert_path": certificate.certificate} if mutual else {}
    with master_over_tls(tmp_path / "master", certificate, **asked) as master:
        settings: dict[str, object] = {"broker_role": "SLAVE", "metasync_master_address": master.address}
        settings["metasync_tls_trust_cert_path"] = certificate.certificate
        if mutual:
            settings |= {"tls_server_cert_path": certificate.certificate, "tls_server_key_path": certificate.key}
        with MetasyncProcess(tmp_path / "slave", **settings) as slave:
            wait_until(lambda: has_the_topic(slave), "copied")


def test_without_tls_nothing_is_taken_and_the_problem_is_told(tmp_path: Path, certificate: Certificate) -> None:
    with master_over_tls(tmp_path / "master", certificate) as master:
        settings = {"broker_role": "SLAVE", "metasync_master_address": master.address}
        with MetasyncProcess(tmp_path / "slave", **settings) as slave:
            wait_until(lambda: slave.said("table not copied"), "told")
            assert not has_the_topic(slave)


def test_certificates_that_cannot_be_read(tmp_path: Path) -> None:
    process = MetasyncProcess(tmp_path / "node", metasync_tls_trust_cert_path=tmp_path / "nothing.pem")
    assert process.launch().wait(timeout=60) == 1
    assert "metasyncTlsTrustCertPath" in process.log.read_text()


async def test_a_store_follows_over_tls(tmp_path: Path, certificate: Certificate) -> None:
    root = tmp_path / "store"
    root.mkdir()
    table = WatchedTopicTable(root, LocalDisk())
    dialer = Dialer(ServerSettings(), certificate.certificate, "metasyncTlsTrustCertPath")
    with master_over_tls(tmp_path / "master", certificate) as master:
        link = MetasyncLink(master.address, table, dialer)
        link.start()
        await until(lambda: table.get("T") is not None, "followed")
        await link.close()
