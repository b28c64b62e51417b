"""TLS from certificate files: a server's for grpcio (credentials) and our own transport (context), and a client's."""

import ssl
from pathlib import Path

import grpc

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.settings.server_settings import ServerSettings


class UnreadableCertificate(TandemError):
    """A certificate or key file that the settings name cannot be read."""

    kind = Kind.MISCONFIGURED


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


def tls_context(settings: ServerSettings) -> ssl.SSLContext | None:
    """The same for Python's own TLS. Raises UnreadableCertificate."""
    certificate, key = settings.tls_server_cert_path, settings.tls_server_key_path
    if certificate is None or key is None:
        return None
    for path, name in ((certificate, "tlsServerCertPath"), (key, "tlsServerKeyPath")):
        _read(path, name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2  # HTTP/2 takes nothing older (RFC 9113, section 9.2)
    try:
        context.load_cert_chain(certificate, key)
        if settings.tls_server_trust_cert_path is not None:
            trusted = _read(settings.tls_server_trust_cert_path, "tlsServerTrustCertPath")
            context.load_verify_locations(cadata=trusted.decode("ascii", "replace"))
            context.verify_mode = ssl.CERT_REQUIRED
    except ssl.SSLError as error:
        raise UnreadableCertificate(
            f"tlsServerCertPath={certificate}, tlsServerKeyPath={key}: {error.reason or error}",
            remedy="All must be PEM: the chain, its private key, and for tlsServerTrustCertPath certificates.",
        ) from error
    return context


def client_context(settings: ServerSettings, trusted: Path | None, name: str) -> ssl.SSLContext:
    """TLS towards another service: whom it trusts (the machine's certificates if None), and our own to show.

    `name` is the setting that `trusted` comes from. Raises UnreadableCertificate.
    """
    own = settings.tls_server_cert_path
    try:
        context = trusting_context(trusted)
        if own is not None:
            context.load_cert_chain(own, settings.tls_server_key_path)
    except (OSError, ssl.SSLError) as error:
        names = f"{name}={trusted or ''}, tlsServerCertPath={own or ''}"
        raise UnreadableCertificate(f"{names}: {getattr(error, 'reason', None) or error.strerror or error}") from error
    return context


def trusting_context(trusted: Path | None) -> ssl.SSLContext:
    """TLS towards servers of authorities in a PEM file; None: the machine's authorities. Raises OSError, SSLError."""
    context = ssl.create_default_context(cafile=trusted)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Since Python 3.13 the default is to refuse authorities without a key usage extension, as `openssl req -x509` makes
    # them and as grpcio and older Pythons take them: a new Python must not cut a cluster in two.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _read(path: Path, setting: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UnreadableCertificate(f"{setting}={path}: {error.strerror}") from error
