"""Server credentials from certificate files."""

from pathlib import Path

import grpc

from tandemmq.common.errors import TandemError
from tandemmq.common.server_settings import ServerSettings


class UnreadableCertificate(TandemError):
    """A certificate or key file that the settings name cannot be read."""

    grpc_code = "INVALID_ARGUMENT"


def server_credentials(settings: ServerSettings) -> grpc.ServerCredentials | None:
    """Credentials for TLS or mTLS as the settings say; None for plain text. Raises UnreadableCertificate."""
    certificate, key = settings.tls_server_cert_path, settings.tls_server_key_path
    if certificate is None or key is None:
        return None
    trusted = settings.tls_server_trust_cert_path
    return grpc.ssl_server_credentials(
        [(_read(key, "tlsServerKeyPath"), _read(certificate, "tlsServerCertPath"))],
        root_certificates=None if trusted is None else _read(trusted, "tlsServerTrustCertPath"),
        require_client_auth=trusted is not None,
    )


def _read(path: Path, setting: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableCertificate(f"{setting}={path}: {error.strerror}") from error
