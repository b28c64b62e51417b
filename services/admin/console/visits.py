"""Visits: requests that a page of another site may have sent are refused.

A browser sends whatever a page asks for, with the cookies of the site that it goes to. So it is looked at who asks:

* `Host` must be a name that is the console's. An attacker can make a name of his own lead to 127.0.0.1 (DNS rebinding),
  but the browser then sends that name; an address, or `localhost`, it cannot make its own.
* `Origin` and `Sec-Fetch-Site`, where the browser sends them, must say that the page is the console's own.
* Bodies must be application/json, which no form of another site can send.

Programs send neither `Origin` nor `Sec-Fetch-Site`; they have no cookie that somebody else could use.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from tandemmq.admin.console.errors import ForeignPage, WrongHost, WrongType

_OWN = ("same-origin", "none")


class Visits:
    """Knows the console's names."""

    def __init__(self, host: str, names: Iterable[str]) -> None:
        """`host`: where it listens; `names`: further names, with or without a port."""
        self._given = {name.strip().lower().rstrip(".") for name in names if name.strip()}
        self._names = self._given | {host.strip("[] ").lower()}

    def check_host(self, header: str | None) -> None:
        """Whether the request is for us. Raises WrongHost."""
        if header is None:
            raise WrongHost("the request has no Host header", remedy="send the console's name or address as Host")
        name, _ = _split(header)
        if not name or not (
            name == "localhost" or _is_address(name) or name in self._names or header.strip().lower() in self._names
        ):
            raise WrongHost(f"this console is not called {header[:100]!r}")

    def check_change(self, headers: Mapping[str, str]) -> None:
        """Whether a request that may change something comes from our own pages, or from none.

        Raises ForeignPage, WrongType.
        """
        site = headers.get("Sec-Fetch-Site")
        if site is not None and site.strip().lower() not in _OWN:
            raise ForeignPage(f"the request comes from a page of another site ({site[:40]!r})")
        origin = headers.get("Origin")
        if origin is not None and not self._is_own(origin.strip().lower(), headers.get("Host", "")):
            raise ForeignPage(f"the request comes from {origin[:100]!r}, which is not this console")
        kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise WrongType(f"the body is {kind[:100]!r}, not application/json")
        if "Content-Encoding" in headers:
            raise WrongType("the body is encoded")

    def _is_own(self, origin: str, host: str) -> bool:
        try:
            address = urlsplit(origin)
            port = address.port
        except ValueError:
            return False
        if address.scheme not in ("http", "https") or not address.hostname:
            return False
        usual = 443 if address.scheme == "https" else 80
        asked, asked_port = _split(host)
        if (address.hostname, port or usual) == (asked, asked_port or usual):
            return True
        return (address.hostname if port in (None, usual) else f"{address.hostname}:{port}") in self._given


def _split(header: str) -> tuple[str, int | None]:
    """Name and port of a Host header; an empty name for what is none."""
    try:
        parts = urlsplit(f"//{header.strip().lower()}")
        if parts.path or parts.query or parts.fragment or parts.username is not None:
            return "", None
        return (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return "", None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True
