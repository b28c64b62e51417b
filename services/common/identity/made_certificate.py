"""What TLS connections of a port for both are served with: the configured certificate, or one that is made.

Clients of RocketMQ begin with TLS and verify nothing, so that a certificate of nobody is as good as any. It is made by
the `openssl` command when the first such connection comes, lives in memory, and ends with the process.
"""

import asyncio
import ssl
import subprocess
import tempfile
from pathlib import Path

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.identity.tls import tls_context
from tandemmq.common.log_output import get_log
from tandemmq.common.settings.server_settings import ServerSettings

log = get_log(__name__)

_SECONDS = 30.0
_COMMAND = (
    "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3650",
    "-subj", "/CN=tandemmq", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
)  # fmt: skip


class CertificateNotMade(TandemError):
    """No certificate could be made."""

    kind = Kind.AWAY
    remedy = "install the openssl command, or set tlsServerCertPath and tlsServerKeyPath"


class FoundContext:
    """The context of one port, found when it is needed first."""

    def __init__(self, settings: ServerSettings) -> None:
        """Raises UnreadableCertificate for a configured one that cannot be read."""
        self._context = tls_context(settings)
        self._making: asyncio.Task[ssl.SSLContext] | None = None

    async def get(self) -> ssl.SSLContext:
        """The context. Raises OSError where there is none: the transport knows no errors of ours."""
        if self._context is not None:
            return self._context
        if self._making is None:
            self._making = asyncio.create_task(asyncio.to_thread(made_context), name="certificate")
        try:
            self._context = await asyncio.shield(self._making)
        except CertificateNotMade as error:
            self._making = None
            log.failure("TLS cannot be spoken", error)
            raise OSError(error.message) from error
        return self._context


def made_context() -> ssl.SSLContext:
    """A server's context with a new ECDSA certificate. It waits for a command. Raises CertificateNotMade."""
    with tempfile.TemporaryDirectory(prefix="tandem-tls-") as directory:
        key, certificate = Path(directory, "key.pem"), Path(directory, "certificate.pem")
        command = (*_COMMAND, "-keyout", str(key), "-out", str(certificate))
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
        except (OSError, subprocess.SubprocessError) as error:
            raise CertificateNotMade(f"a certificate could not be made: {error}") from error
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(certificate, key)
    return context
