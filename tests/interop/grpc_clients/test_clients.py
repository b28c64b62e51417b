"""Clients of other languages, with the gRPC library that everybody uses there, against both servers."""

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.grpc_transport.conftest import Certificates
from tests.interop.grpc_clients.programs import command_of
from tests.interop.grpc_clients.serving import checks, probe

# The first test of a language builds its client.
pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(1200)]

LANGUAGES = ["go", "node", "java", "cpp"]

PAIRS = [("grpcio", "go"), *(("fast", language) for language in LANGUAGES)]
"""Beside `test_everything`, one client is enough to show that grpcio's server does what is asked of ours."""

FILES = 4_096

QUICK = ["unary", "client_stream", "server_stream", "bidi_stream", "large_messages", "status"]

ALL = [
    "unary",
    "empty",
    "client_stream",
    "server_stream",
    "bidi_stream",
    "no_messages",
    "many_messages",  # 10,000 in a stream, each way
    "large_messages",  # 7 MiB there and back
    "large_stream",  # 16 of 1 MiB, there and back at the same time
    "too_large",  # 9 MiB, over the server's limit; the connection lives on
    "metadata",  # repeated, long, binary; initial and trailing; peer()
    "status",  # details that are not ASCII, metadata beside them
    "all_statuses",
    "crash",
    "unimplemented",
    "deadline",  # of a unary call and of an idle stream; the handlers end as well
    "cancellation",
    "cancelled_stream",
    "slow_reader",  # is held back; its neighbours on the connection are not
    "pipelined",  # 10,000 calls on a connection, 1,000 at a time
    "gzip",
]


@pytest.mark.parametrize("language", LANGUAGES)
def test_everything(transport: str, language: str, tmp_path: Path) -> None:
    client = command_of(language)
    with probe(transport, tmp_path) as served:
        checks([*client, served.target], ALL)


@pytest.mark.parametrize(("transport", "language"), PAIRS)
def test_everything_over_mutual_tls(transport: str, language: str, tmp_path: Path, certificates: Certificates) -> None:
    client = command_of(language)
    own = [
        "--ca",
        str(certificates.authority),
        "--cert",
        str(certificates.client),
        "--key",
        str(certificates.client_key),
    ]
    with probe(transport, tmp_path, tls=certificates, mutual=True) as served:
        checks([*client, served.target, "--ca", str(certificates.authority), *own], ALL)


@pytest.mark.parametrize(("transport", "language"), PAIRS)
def test_tls_and_who_is_refused(transport: str, language: str, tmp_path: Path, certificates: Certificates) -> None:
    client = command_of(language)
    trusting = ["--ca", str(certificates.authority)]
    another = ["--cert", str(certificates.stranger), "--key", str(certificates.stranger_key)]
    with probe(transport, tmp_path, tls=certificates) as served:
        checks([*client, served.target, *trusting, "--quick"], QUICK)
        checks([*client, served.target, "--refused"], ["refused"])
        checks([*client, served.target, "--ca", str(certificates.stranger), "--refused"], ["refused"])
    with probe(transport, tmp_path, tls=certificates, mutual=True) as served:
        checks([*client, served.target, *trusting, "--refused"], ["refused"])
        checks([*client, served.target, *trusting, *another, "--refused"], ["refused"])
    with probe(transport, tmp_path) as served:
        checks([*client, served.target, *trusting, "--refused"], ["refused"])


@pytest.mark.parametrize(("transport", "language"), PAIRS)
def test_ipv6(transport: str, language: str, tmp_path: Path) -> None:
    client = command_of(language)
    with probe(transport, tmp_path, "[::1]:0") as served:
        checks([*client, served.target, "--quick"], QUICK)


@pytest.mark.parametrize(("transport", "language"), [pair for pair in PAIRS if "java" not in pair])
def test_unix_socket(transport: str, language: str, tmp_path: Path) -> None:
    client = command_of(language)
    with probe(transport, tmp_path, f"unix:{tmp_path / 'probe.sock'}") as served:
        checks([*client, served.target, "--quick"], QUICK)


@pytest.mark.parametrize(("transport", "language"), PAIRS)
def test_compressed_answers(transport: str, language: str, tmp_path: Path) -> None:
    client = command_of(language)
    with probe(transport, tmp_path, module="tests.interop.grpc_clients.compressing_probe") as served:
        checks([*client, served.target, "--quick"], QUICK)


@pytest.fixture
def _many_files() -> Iterator[None]:
    """For this process and those that it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < FILES:
        pytest.skip(f"a process may open {hard} files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, FILES), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("_many_files")
def test_a_thousand_connections_and_ten_thousand_streams(transport: str, tmp_path: Path) -> None:
    client = command_of("go")
    batch = {"grpcio": "500", "fast": "10000"}[transport]  # grpcio refuses calls when too many wait for their handlers
    with probe(transport, tmp_path) as served:
        checks([*client, served.target, "--load", "--batch", batch], ["connections", "waiting_calls", "open_streams"])
