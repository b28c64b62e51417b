"""Command line and client towards stores with TLS and an access list: what works, and what each mistake says."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tandemmq.client import RequestFailed, StoreClient, StoreUnreachable, UnusableFile, aio
from tests.certificates import Certificate
from tests.contract.store_process import StoreProcess
from tests.integration.tls.command import tandem
from tests.integration.tls.conftest import Certificates
from tests.integration.tls.secured import write_access

pytestmark = [pytest.mark.xdist_group("tls-cli"), pytest.mark.timeout(300)]

ROLES = '[roles.orders]\npublish = ["orders"]\nsubscribe = ["orders"]\ngroups = ["tandem-cli"]\n'
SECRET = "of alice"


class Stores(NamedTuple):
    """Addresses of stores, and the file that alice's secret is in."""

    plain: str
    without_tls: str
    tls: str
    mutual: str
    """With an access list too."""
    secret: Path


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Stores]:
    directory = tmp_path_factory.mktemp("stores")
    write_access(directory / "access.toml", {"alice": (SECRET, "orders")}, ROLES)
    (directory / "secret").write_text(f"{SECRET}\n")
    own = certificates.node
    tls = {"tls_server_cert_path": own.certificate, "tls_server_key_path": own.key}
    mutual = {"tls_server_trust_cert_path": certificates.ours.certificate, "access_file": directory / "access.toml"}
    processes = [
        StoreProcess(directory / "plain"),
        StoreProcess(directory / "without", tls_mode="disabled"),
        StoreProcess(directory / "tls", **tls),
        # Not the usual 5 s at the end: grpc.aio leaves its connection open when a test's event loop is gone.
        StoreProcess(directory / "mutual", shutdown_grace_ms=200, **tls, **mutual),
    ]
    try:
        plain, without_tls, only_tls, mutual_tls = (process.start().address for process in processes)
        yield Stores(plain, without_tls, only_tls, mutual_tls, directory / "secret")
    finally:
        for process in processes:
            process.stop()


def own(certificate: Certificate) -> tuple[object, ...]:
    return "--tls-cert", certificate.certificate, "--tls-key", certificate.key


def said(*arguments: object, environment: dict[str, object] | None = None, code: int = 1) -> str:
    """The one line that a failed command says."""
    outcome = tandem(*arguments, environment=environment)
    assert (outcome.code, outcome.out) == (code, "")
    (line,) = outcome.err.splitlines()
    return line


# -- what works -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_by_options(stores: Stores, certificates: Certificates) -> None:
    ca = ("--tls-ca", certificates.ours.certificate)
    who = ("--user", "alice", "--secret-file", stores.secret)
    to = ("--address", stores.mutual, "--json")
    sent = tandem(*ca, *own(certificates.caller), *who, "send", "orders", "espresso", *to)
    assert sent.code == 0, sent.err
    pulled = tandem(*ca, *own(certificates.caller), *who, "pull", "orders", "--offset", "0", *to)
    assert pulled.code == 0, pulled.err
    assert [json.loads(line)["body"] for line in pulled.out.splitlines()][-1] == "espresso"
    assert tandem(*ca, "offsets", "--address", stores.tls).code == 0, "with TLS alone"


@pytest.mark.slow
def test_by_the_environment(stores: Stores, certificates: Certificates) -> None:
    environment: dict[str, object] = {
        "TANDEM_ADDRESS": stores.mutual,
        "TANDEM_TLS_CA": certificates.ours.certificate,
        "TANDEM_TLS_CERT": certificates.caller.certificate,
        "TANDEM_TLS_KEY": certificates.caller.key,
        "TANDEM_USER": "alice",
        "TANDEM_SECRET_FILE": stores.secret,
    }
    assert tandem("send", "orders", "tea", environment=environment).code == 0
    assert tandem("settings", environment=environment).code == 0, "these variables are no settings"


def calling(certificates: Certificates) -> dict[str, Any]:
    """How a client shows its certificate, and knows the store's."""
    own = certificates.caller
    return {"tls_ca": certificates.ours.certificate, "tls_certificate": own.certificate, "tls_key": own.key}


def test_the_client(stores: Stores, certificates: Certificates) -> None:
    with StoreClient(stores.mutual, user="alice", secret=SECRET, **calling(certificates)) as client:
        receipt = client.send("orders", b"one")
        for pulled in client.pull_stream("orders", receipt.queue_id, receipt.queue_offset):
            assert pulled.records[0].body == b"one"
            break


async def test_the_client_for_asyncio(stores: Stores, certificates: Certificates) -> None:
    tls = calling(certificates)
    async with aio.StoreClient(stores.mutual, user="alice", secret=SECRET, **tls) as client_aio:
        receipt = await client_aio.send("orders", b"two")
        stream = client_aio.pull_stream("orders", receipt.queue_id, receipt.queue_offset)
        assert (await anext(stream)).records[0].body == b"two"
        with pytest.raises(RequestFailed) as refused:
            await client_aio.send("bills", b"three")
        assert refused.value.code == "PERMISSION_DENIED"
    async with aio.StoreClient(stores.mutual, **tls) as nobody:
        with pytest.raises(RequestFailed) as refused:
            await nobody.send("orders", b"four")
        assert refused.value.code == "UNAUTHENTICATED"


def test_arguments_of_the_client_that_make_no_sense(stores: Stores, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="go together"):
        StoreClient(stores.plain, user="alice")
    with pytest.raises(ValueError, match="go together"):
        StoreClient(stores.plain, tls_key=tmp_path)
    with pytest.raises(UnusableFile, match="No such file"):
        StoreClient(stores.plain, tls_ca=tmp_path / "nothing")
    with StoreClient(stores.tls, timeout=30) as client, pytest.raises(StoreUnreachable):
        client.queues()


# -- what each mistake says -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_tls_on_one_side_only(stores: Stores, certificates: Certificates) -> None:
    message = said("offsets", "--address", stores.tls)
    assert message == (
        f"tandem: the store at {stores.tls} speaks TLS; say with --tls-ca (or TANDEM_TLS_CA) who signs its certificate"
    )
    message = said("--tls-ca", certificates.ours.certificate, "offsets", "--address", stores.plain)
    assert f"the store at {stores.plain} shows a certificate that cannot be trusted: self-signed" in message
    message = said("--tls-ca", certificates.ours.certificate, "offsets", "--address", stores.without_tls)
    assert message == (
        f"tandem: the store at {stores.without_tls} speaks no TLS; leave --tls-ca, --tls-cert and --tls-key away"
    )


@pytest.mark.slow
def test_certificates_that_are_not_trusted(stores: Stores, certificates: Certificates) -> None:
    message = said("--tls-ca", certificates.theirs.certificate, "offsets", "--address", stores.tls)
    assert f"the store at {stores.tls} shows a certificate that cannot be trusted: " in message
    ca = ("--tls-ca", certificates.ours.certificate)
    to = ("offsets", "--address", stores.mutual)
    assert (
        f"the store at {stores.mutual} wants to see a certificate (it closes the connection): give --tls-cert and "
        in said(*ca, *to)
    )
    message = said(*ca, *own(certificates.stranger), *to)
    assert f"does not take the certificate {certificates.stranger.certificate}: " in message


@pytest.mark.slow
def test_a_name_that_the_certificate_does_not_have(stores: Stores, certificates: Certificates) -> None:
    port = stores.tls.rpartition(":")[2]
    message = said("--tls-ca", certificates.ours.certificate, "offsets", "--address", f"127.0.0.2:{port}")
    assert "no store answers at 127.0.0.2" in message or "mismatch" in message


@pytest.mark.slow
def test_credentials(stores: Stores, certificates: Certificates, tmp_path: Path) -> None:
    tls = ("--tls-ca", certificates.ours.certificate, *own(certificates.caller))
    to = ("--address", stores.mutual)
    assert f"the store at {stores.mutual} does not let you in: there are no credentials" in said(*tls, "offsets", *to)
    (tmp_path / "wrong").write_text("guessed")
    message = said(*tls, "--user", "alice", "--secret-file", tmp_path / "wrong", "offsets", *to)
    assert message.startswith(f"tandem: the store at {stores.mutual} does not let you in: ")
    assert "there is no user 'alice' with this secret" in message
    message = said(*tls, "--user", "alice", "--secret-file", stores.secret, "send", "bills", "x", *to)
    assert message.startswith("tandem: ")
    assert "alice" in message
    assert "bills" in message


@pytest.mark.slow
def test_options_that_cannot_be_used(stores: Stores, tmp_path: Path, certificates: Certificates) -> None:
    to = ("offsets", "--address", stores.tls)
    assert said("--user", "alice", *to, code=2) == (
        "tandem: TANDEM_SECRET_FILE is missing (TANDEM_USER and TANDEM_SECRET_FILE go together.)"
    )
    assert "TANDEM_TLS_KEY is missing" in said("--tls-cert", certificates.caller.certificate, *to, code=2)
    nothing = tmp_path / "nothing"
    assert f"TANDEM_SECRET_FILE={nothing}: No such file" in said(
        "--user", "alice", "--secret-file", nothing, *to, code=2
    )
    assert f"{nothing}: No such file" in said("--tls-ca", nothing, *to, code=2)
    (tmp_path / "no.pem").write_text("no certificate")
    assert f"cannot be called: {tmp_path / 'no.pem'}: " in said("--tls-ca", tmp_path / "no.pem", *to)
