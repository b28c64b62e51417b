"""Who a program says it is, and whom it trusts, as the environment says it: TANDEM_USER and its like.

The `tandem` command's options of the same names set these variables, so that everything that it starts calls alike.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self, TypedDict

from tandemmq.client.places import addresses_of
from tandemmq.common.calling.addresses import host_of
from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.identity.credentials import read_secret

USER, SECRET_FILE = "TANDEM_USER", "TANDEM_SECRET_FILE"
SECRET_HOSTS = "TANDEM_SECRET_HOSTS"
"""Hosts with commas between, to which user and secret go and to no others; empty: wherever calls go."""
TLS_CA, TLS_CERTIFICATE, TLS_KEY = "TANDEM_TLS_CA", "TANDEM_TLS_CERT", "TANDEM_TLS_KEY"


class IncompleteIdentity(TandemError):
    """One of two things was given that go together."""

    kind = Kind.MISCONFIGURED


class Arguments(TypedDict):
    """What `StoreClient` and the functions of `channels` take."""

    user: str | None
    secret: str | None
    tls_ca: Path | None
    tls_certificate: Path | None
    tls_key: Path | None


class Identity(NamedTuple):
    """Each is None where it is not given."""

    user: str | None = None
    secret_file: Path | None = None
    tls_ca: Path | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    secret_hosts: tuple[str, ...] = ()
    """Those to which user and secret may go; empty: to all."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Of this process, unless another one is given; an empty variable counts as none."""
        found = os.environ if environment is None else environment
        secret_file, ca, certificate, key = (
            Path(found[name]) if found.get(name) else None for name in (SECRET_FILE, TLS_CA, TLS_CERTIFICATE, TLS_KEY)
        )
        hosts = tuple(host for host in found.get(SECRET_HOSTS, "").split(",") if host)
        return cls(found.get(USER) or None, secret_file, ca, certificate, key, hosts)

    def at(self, addresses: str | Sequence[str]) -> Self:
        """The same towards these addresses: nobody, where one of them is of a host that the secret is not for."""
        is_meant = not self.secret_hosts or {host_of(one) for one in addresses_of(addresses)} <= set(self.secret_hosts)
        return self if is_meant else self._replace(user=None, secret_file=None)

    @property
    def speaks_tls(self) -> bool:
        """Whether anything was given that TLS is for."""
        return self.tls_ca is not None or self.tls_certificate is not None

    def arguments(self) -> Arguments:
        """For `StoreClient(address, **identity.arguments())`. Raises IncompleteIdentity, UnreadableSecret."""
        _check_together((USER, self.user), (SECRET_FILE, self.secret_file))
        _check_together((TLS_CERTIFICATE, self.tls_certificate), (TLS_KEY, self.tls_key))
        secret = None if self.secret_file is None else read_secret(self.secret_file, SECRET_FILE)
        return Arguments(
            user=self.user,
            secret=secret,
            tls_ca=self.tls_ca,
            tls_certificate=self.tls_certificate,
            tls_key=self.tls_key,
        )


def _check_together(first: tuple[str, object], second: tuple[str, object]) -> None:
    """Raises IncompleteIdentity."""
    missing = [name for name, value in (first, second) if value is None]
    if len(missing) == 1:
        raise IncompleteIdentity(f"{missing[0]} is missing", remedy=f"{first[0]} and {second[0]} go together.")
