"""Visits: whose requests are taken."""

from collections.abc import Callable

import pytest

from tandemmq.admin.console.errors import ForeignPage, WrongHost, WrongType
from tandemmq.admin.console.visits import Visits
from tandemmq.common.errors import TandemError

VISITS = Visits("10.0.0.5", ("mq.example", "mq.example:8443", " Other.Example. "))


def change(**headers: str) -> None:
    """A request that changes something, by its headers."""
    named = {name.replace("_", "-").title(): value for name, value in headers.items()}
    VISITS.check_change({"Content-Type": "application/json", "Host": "127.0.0.1:8080", **named})


def refused(request: Callable[[], None]) -> type[TandemError] | None:
    """As what a request is refused; None if it is taken."""
    try:
        request()
    except TandemError as error:
        return type(error)
    return None


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:8080", "[fe80::1%25eth0]:80", "10.9.9.9", "localhost",
     "localhost:1", "LOCALHOST", "mq.example", "MQ.example:8443",
     "mq.example:1", "other.example", "other.example.", "localhost."],
)  # fmt: skip
def test_own_names(host: str) -> None:
    assert not refused(lambda: VISITS.check_host(host))


@pytest.mark.parametrize(
    "host",
    ["", " ", "evil", "evil.example:8080", "mq.example.evil", "xmq.example", "127.0.0.1.evil", "user@127.0.0.1",
     "127.0.0.1/x", "127.0.0.1:port", "[::1", "127.0.0.1:99999", "localhost evil", "0x7f000001", None],
)  # fmt: skip
def test_names_of_others(host: str | None) -> None:
    assert refused(lambda: VISITS.check_host(host)) is WrongHost


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://127.0.0.1:8080", "127.0.0.1:8080"),
        ("http://localhost", "localhost"),
        ("https://localhost", "localhost:443"),
        ("http://[::1]:8080", "[::1]:8080"),
        ("https://mq.example", "127.0.0.1:8080"),
        ("https://mq.example:8443", "127.0.0.1:8080"),
        ("HTTP://LOCALHOST:8080", "localhost:8080"),
    ],
)
def test_own_pages(origin: str, host: str) -> None:
    assert not refused(lambda: change(origin=origin, host=host, sec_fetch_site="same-origin"))


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://127.0.0.1:9999", "127.0.0.1:8080"),
        ("http://127.0.0.1", "127.0.0.1:8080"),
        ("http://10.0.0.5", "127.0.0.1:8080"),
        ("https://mq.example:1", "127.0.0.1:8080"),
        ("http://other", "127.0.0.1:8080"),
        ("null", "null"),
        ("", ""),
        ("chrome-extension://mq.example", "127.0.0.1:8080"),
        ("http://", ""),
        ("http://[::1", "[::1"),
        ("http://127.0.0.1:8080:1", "127.0.0.1:8080"),
    ],
)
def test_pages_of_others(origin: str, host: str) -> None:
    assert refused(lambda: change(origin=origin, host=host)) is ForeignPage


def test_what_programs_send() -> None:
    change()
    change(content_type="application/json; charset=utf-8")
    change(sec_fetch_site="none")
    for site in ("cross-site", "same-site", ""):
        with pytest.raises(ForeignPage):
            change(sec_fetch_site=site)
    for kind in ("text/plain", "", "application/json-patch+json", "text/json"):
        with pytest.raises(WrongType):
            change(content_type=kind)
