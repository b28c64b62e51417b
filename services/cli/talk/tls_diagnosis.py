"""Why a server that is there does not answer: TLS on one side only, or certificates that one side does not take.

gRPC says that no connection came about, in words that change from version to version. So it is tried again by hand.
"""

import socket
import ssl
from typing import TYPE_CHECKING

from tandemmq.common.identity.tls import trusting_context

if TYPE_CHECKING:
    from pathlib import Path

    from tandemmq.client import Identity


_SECONDS = 10.0
"""Patience with a server that is slow: what it would have said is not to be guessed."""
_ALERT_SECONDS = 0.5
"""How long a server may take to look at a certificate."""
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""What an HTTP/2 client begins with, and empty SETTINGS."""


class _NoTls(Exception):
    """What answers speaks no TLS."""


def diagnose(address: str, identity: "Identity") -> str:
    """What is wrong, as the rest of a sentence that names the server; empty if TLS is not the reason."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        contexts = _unchecked(identity), _context(identity, identity.tls_ca)
    except ssl.SSLError as error:
        given = ", ".join(str(path) for path in (identity.tls_ca, identity.tls_certificate, identity.tls_key) if path)
        return f"cannot be called: {given}: {_words(error)} (all must be PEM, and the key that of the certificate)"
    try:
        refusal = _refusal((host, int(port)), identity, *contexts)
    except _NoTls:
        return "speaks no TLS; leave --tls-ca, --tls-cert and --tls-key away" if identity.speaks_tls else ""
    except (OSError, OverflowError, UnicodeError):
        return ""
    if not identity.speaks_tls:
        return "speaks TLS; say with --tls-ca (or TANDEM_TLS_CA) who signs its certificate"
    return refusal


def _refusal(where: tuple[str, int], identity: "Identity", unchecked: ssl.SSLContext, checked: ssl.SSLContext) -> str:
    """How a server with TLS does not take us, or we not it. Raises _NoTls, OSError: it cannot be reached."""
    try:
        greeting = _shake_hands(where, unchecked)
    except ssl.SSLError as error:
        if not _is_alert(error):
            raise _NoTls from error
        return _not_taken(_words(error), identity)
    if not identity.speaks_tls:
        return ""
    try:
        _shake_hands(where, checked)
    except ssl.SSLCertVerificationError as error:
        reason = error.verify_message.rstrip(".")
        return f"shows a certificate that cannot be trusted: {reason} (--tls-ca must name who signed it)"
    except ssl.SSLError as error:
        return _not_taken(_words(error), identity)
    # A server on uvloop closes without an alert when it does not like a certificate.
    return "" if greeting else _not_taken("it closes the connection", identity)


def _unchecked(identity: "Identity") -> ssl.SSLContext:
    """Takes any server. Raises SSLError."""
    context = _context(identity, None)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _context(identity: "Identity", trusted: "Path | None") -> ssl.SSLContext:
    """Raises SSLError."""
    context = trusting_context(trusted)
    context.set_alpn_protocols(["h2"])
    if identity.tls_certificate is not None:
        context.load_cert_chain(identity.tls_certificate, identity.tls_key)
    return context


def _shake_hands(where: tuple[str, int], context: ssl.SSLContext) -> bytes:
    """The server's first bytes, empty if there are none: what it thinks of our certificate comes after the handshake.

    Raises _NoTls, OSError, SSLError.
    """
    with socket.create_connection(where, timeout=_SECONDS) as plain:
        try:
            wrapped = context.wrap_socket(plain, server_hostname=where[0])
        except (ConnectionError, TimeoutError) as error:
            raise _NoTls from error
        with wrapped:
            # First listen: what is sent to a server that has closed makes its last words, an alert, get lost.
            wrapped.settimeout(_ALERT_SECONDS)
            try:
                return wrapped.recv(64)
            except TimeoutError:
                wrapped.settimeout(_SECONDS)
            except ConnectionError:
                return b""
            try:
                wrapped.sendall(_PREFACE)
                return wrapped.recv(64)
            except (ConnectionError, TimeoutError):
                return b""


def _is_alert(error: ssl.SSLError) -> bool:
    """The server spoke TLS, to say that it does not go on."""
    return "ALERT" in (error.reason or "")


def _not_taken(reason: str, identity: "Identity") -> str:
    if identity.tls_certificate is None:
        return f"wants to see a certificate ({reason}): give --tls-cert and --tls-key, signed by whom it trusts"
    return f"does not take the certificate {identity.tls_certificate}: {reason}"


def _words(error: ssl.SSLError) -> str:
    """OpenSSL's name of a reason, as words."""
    return (error.reason or str(error)).lower().replace("_", " ")
