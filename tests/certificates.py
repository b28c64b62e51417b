"""Certificates for tests, made by the openssl command: an authority, and what it signs."""

import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

_NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"


class Certificate(NamedTuple):
    """Paths of two PEM files."""

    certificate: Path
    key: Path


class Authority:
    """Somebody who signs. The test is skipped where there is no openssl command."""

    def __init__(self, directory: Path, name: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._name = name
        self.certificate = directory / f"{name}.pem"
        """What those have who trust it."""
        self._key = directory / f"{name}.key"
        _openssl(
            "req",
            "-x509",
            *_NEW_KEY,
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
            "-keyout",
            self._key,
            "-out",
            self.certificate,
        )

    def issue(self, name: str) -> Certificate:
        """A certificate for this machine's loopback interface, good for servers and for clients."""
        made = Certificate(self._directory / f"{self._name}-{name}.pem", self._directory / f"{self._name}-{name}.key")
        request, extensions = made.certificate.with_suffix(".csr"), made.certificate.with_suffix(".ext")
        extensions.write_text(f"{_NAMES}\nextendedKeyUsage=serverAuth,clientAuth\n")
        _openssl("req", "-new", *_NEW_KEY, "-subj", f"/CN={name}", "-keyout", made.key, "-out", request)
        signed = ("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial")
        _openssl(
            "x509", "-req", "-in", request, *signed, "-days", "2", "-extfile", extensions, "-out", made.certificate
        )
        return made


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def _openssl(*arguments: object) -> None:
    try:
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl command to make certificates with")
