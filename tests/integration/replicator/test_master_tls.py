"""HA over TLS, between nodes of ours: who is let in, and that the bytes are the same."""

import asyncio
import ssl
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tandemmq.common.identity.tls import UnreadableCertificate, trusting_context
from tandemmq.replication.v1.replication_pb2 import PromoteRequest
from tandemmq.replicator.master.master import NoCertificate
from tandemmq.replicator.roles.promotion import Promotion
from tandemmq.store.v1.replica_log_pb2 import SYNC_MASTER
from tests.integration.replicator.master_kit import LogDirectory, Running, Slave, noise, running, slave, until
from tests.integration.replicator.node_kit import pair


class Certificate(NamedTuple):
    certificate: Path
    key: Path


def make_certificate(directory: Path, name: str) -> Certificate:
    """Signs itself; made by the openssl command."""
    made = Certificate(directory / f"{name}.pem", directory / f"{name}.key")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    command += ["-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    try:
        subprocess.run([*command, "-keyout", made.key, "-out", made.certificate], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl command to make certificates with")
    return made


@pytest.fixture(scope="module")
def master_certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"), "master")


@pytest.fixture(scope="module")
def slave_certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("tls"), "slave")


def shown_by(certificate: Certificate) -> dict[str, object]:
    return {
        "ha_tls_enable": True,
        "tls_server_cert_path": certificate.certificate,
        "tls_server_key_path": certificate.key,
    }


async def tls_slave(where: Running, trusted: Certificate, own: Certificate | None = None) -> Slave:
    context = trusting_context(trusted.certificate)
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    return Slave(*await asyncio.open_connection("127.0.0.1", where.master.port, ssl=context, limit=1 << 16))


async def first_frame_of_a_stranger(where: Running, trusted: Certificate) -> None:
    stranger = await tls_slave(where, trusted)
    stranger.report(0)
    await stranger.frame()


async def test_the_whole_log_over_tls(tmp_path: Path, master_certificate: Certificate) -> None:
    files = LogDirectory(tmp_path, noise(3_000_000), file_size=1 << 20)
    async with running(files, **shown_by(master_certificate)) as master:
        one = await tls_slave(master, master_certificate)
        one.report(0)
        assert await one.log(0, files.end, ack=True) == files.log
        for at in range(50):
            begin = files.end
            master.append(noise(3_000 * at + 1, at))
            assert await one.log(begin, files.end, ack=True) == files.bytes_at(begin, 3_000 * at + 1)
        await until(lambda: master.master.replicas.progress == (True, files.end, 1))
        await one.close()
        await until(lambda: master.master.connections == 0)


@pytest.mark.slow
async def test_far_behind_over_tls(tmp_path: Path, master_certificate: Certificate) -> None:
    files = LogDirectory(tmp_path, noise(40 << 20), file_size=16 << 20)
    async with running(files, **shown_by(master_certificate)) as master:
        one = await tls_slave(master, master_certificate)
        one.report(1)
        assert await one.log(1, files.end) == files.log[1:]
        await one.close()


async def test_only_slaves_with_a_certificate_if_so_told(
    tmp_path: Path, master_certificate: Certificate, slave_certificate: Certificate
) -> None:
    files = LogDirectory(tmp_path, noise(1_000))
    trusting = {**shown_by(master_certificate), "tls_server_trust_cert_path": slave_certificate.certificate}
    async with running(files, **trusting) as master:
        one = await tls_slave(master, master_certificate, slave_certificate)
        one.report(0)
        assert await one.log(0, 1_000) == files.log
        await one.close()
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await first_frame_of_a_stranger(master, master_certificate)
        await until(lambda: master.closed("tls") == 1)


async def test_plain_slaves_are_refused(tmp_path: Path, master_certificate: Certificate) -> None:
    files = LogDirectory(tmp_path, noise(1_000))
    async with running(files, **shown_by(master_certificate)) as master, slave(master, 0, 0, 0) as one:
        await one.ended()
        await until(lambda: master.closed("tls") == 1)


async def test_who_never_shakes_hands_is_dropped(tmp_path: Path, master_certificate: Certificate) -> None:
    quick = {"ha_send_heartbeat_interval": 100, "ha_housekeeping_interval": 300}
    files = LogDirectory(tmp_path, noise(1_000))
    async with running(files, **quick, **shown_by(master_certificate)) as master, slave(master) as one:
        assert await one.ended() == b""
        assert master.closed("silent") == 1


async def test_a_master_needs_a_certificate(tmp_path: Path) -> None:
    with pytest.raises(NoCertificate):
        async with running(LogDirectory(tmp_path), ha_tls_enable=True):
            pass
    nothing = {"tls_server_cert_path": tmp_path / "no.pem", "tls_server_key_path": tmp_path / "no.key"}
    with pytest.raises(UnreadableCertificate):
        async with running(LogDirectory(tmp_path), ha_tls_enable=True, **nothing):
            pass


@pytest.mark.slow
async def test_a_pair_over_tls_introduces_itself_and_is_promoted(
    tmp_path: Path, master_certificate: Certificate
) -> None:
    everything: dict[str, Any] = {
        **shown_by(master_certificate),
        "ha_tls_trust_cert_path": master_certificate.certificate,
    }
    async with pair(tmp_path, **everything) as both:
        await both.master.answers("PUT_OK")
        assert set(await both.master.send(5)) == {"PUT_OK"}
        await both.equal()
        promotion = Promotion(both.slave.node, PromoteRequest(role=SYNC_MASTER))
        assert (await promotion.run()).identity.epoch == 2
        await until(lambda: both.master.node.view.identity.fenced_by_epoch == 2)
