"""Every test that asks for `transport` runs on both servers; grpcio says what is right."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.grpc_probe import TRANSPORTS

_AUTHORITY = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,digitalSignature"]
"""Extensions of a certificate that signs others; it also takes part in a handshake."""
_MEMBER = ["basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature"]
"""Of one that was signed."""


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> str:
    """`grpcio` (grpc.aio.server) or `fast` (ours)."""
    return str(request.param)


@dataclass(frozen=True)
class Certificates:
    """Paths of PEM files: an authority, and what it signed for a server at localhost and for a client."""

    authority: Path
    server: Path
    server_key: Path
    client: Path
    client_key: Path
    stranger: Path
    """Signed by nobody but itself."""
    stranger_key: Path


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Made by the openssl command; without one the test is skipped."""
    directory = tmp_path_factory.mktemp("tls")

    def openssl(*arguments: str) -> None:
        try:
            subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=directory)
        except FileNotFoundError:
            pytest.skip("no openssl command to make certificates with")

    def signed(name: str, *names: str) -> None:
        new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}")
        issuer = ("-CA", "authority.pem", "-CAkey", "authority.key") if names else ()
        extensions = [*_MEMBER, f"subjectAltName={','.join(names)}"] if names else _AUTHORITY
        more = [argument for extension in extensions for argument in ("-addext", extension)]
        openssl("req", "-x509", *new, *issuer, *more, "-keyout", f"{name}.key", "-out", f"{name}.pem")

    signed("authority")
    signed("server", "DNS:localhost", "IP:127.0.0.1")
    signed("client", "DNS:client.test")
    signed("stranger")
    files = ("authority.pem", "server.pem", "server.key", "client.pem", "client.key", "stranger.pem", "stranger.key")
    return Certificates(*(directory / name for name in files))
