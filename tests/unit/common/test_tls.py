"""Whom callers trust: an authority as docs/security.md once made it, whatever this Python takes for strict."""

import ssl
from pathlib import Path

import pytest

from tandemmq.common.identity.tls import trusting_context
from tests.certificates import Authority, Certificate


def as_python_3_13_has_it(cafile: Path | None = None) -> ssl.SSLContext:
    context = made(cafile=cafile)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


made = ssl.create_default_context


def greet(shown: Certificate, context: ssl.SSLContext) -> None:
    """A whole handshake in memory. Raises SSLError."""
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(shown.certificate, shown.key)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    caller = context.wrap_bio(back, there, server_hostname="localhost")
    server = serving.wrap_bio(there, back, server_side=True)
    waiting = [caller, server]
    while waiting:
        one = waiting.pop(0)
        try:
            one.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(one)


def test_an_authority_without_key_usage_is_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = Authority(tmp_path, "ours")
    monkeypatch.setattr(ssl, "create_default_context", as_python_3_13_has_it)
    with pytest.raises(ssl.SSLCertVerificationError):
        greet(ours.issue("node"), as_python_3_13_has_it(ours.certificate))
    greet(ours.issue("node"), trusting_context(ours.certificate))


def test_others_are_not(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    with pytest.raises(ssl.SSLCertVerificationError):
        greet(theirs.issue("node"), trusting_context(ours.certificate))
    with pytest.raises(ssl.SSLCertVerificationError):
        greet(ours.issue("node"), trusting_context(None))
