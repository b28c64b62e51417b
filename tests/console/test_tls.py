"""The console over TLS."""

import json
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.identity.tls import trusting_context
from tests.admin_process import AdminProcess
from tests.certificates import Authority
from tests.console.http_kit import ask, call
from tests.console.kit import USERS, write_access
from tests.faults.pair import Pair

pytestmark = pytest.mark.xdist_group("console")

JSON = "application/json"


def _settings(authority: Authority, *, trust: bool) -> dict[str, Any]:
    made = authority.issue("admin")
    settings: dict[str, Any] = {"tls_server_cert_path": made.certificate, "tls_server_key_path": made.key}
    return settings | ({"tls_server_trust_cert_path": authority.certificate} if trust else {})


def test_with_users_browsers_need_no_certificate(pair: Pair, own_directory: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca", "ours")
    access = tmp_path / "access.toml"
    write_access(access, USERS)
    settings = _settings(authority, trust=True)
    with AdminProcess(own_directory, {"alpha": pair.master}, access_file=access, **settings) as admin:
        url = str(admin.event("console")["url"])
        assert url.startswith("https://")
        tls = trusting_context(authority.certificate)
        body = json.dumps({"user": "alice", "secret": "wonder"})
        answer = ask(url, "/session", body, tls=tls, content_type=JSON, origin=url.rstrip("/"))
        assert answer.status == 200
        cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith("__Host-tandem-")
        assert "; Secure" in cookie
        sent = cookie.partition(";")[0]
        assert ask(url, "/api/WhoAmI", "{}", tls=tls, content_type=JSON, cookie=sent).json["user"] == "alice"
        with pytest.raises(OSError, match=r"reset|closed|disconnected|Remote"):
            call(url.replace("https", "http"), "WhoAmI")
        assert ask(url, "/healthz", tls=tls).status == 200


@pytest.mark.slow
def test_without_users_a_certificate_stays_what_lets_in(pair: Pair, own_directory: Path, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca", "ours")
    with AdminProcess(own_directory, {"alpha": pair.master}, **_settings(authority, trust=True)) as admin:
        url = str(admin.event("console")["url"])
        tls = trusting_context(authority.certificate)
        with pytest.raises(OSError, match=r"(?i)certificate|reset|closed|eof"):
            ask(url, "/healthz", tls=tls)
        own = authority.issue("somebody")
        tls.load_cert_chain(own.certificate, own.key)
        assert ask(url, "/api/WhoAmI", "{}", tls=tls, content_type=JSON).status == 200


def test_a_proxy_that_ends_tls_gets_secure_cookies(pair: Pair, own_directory: Path, tmp_path: Path) -> None:
    access = tmp_path / "access.toml"
    write_access(access, USERS)
    names = "console.example"
    with AdminProcess(own_directory, {"alpha": pair.master}, access_file=access, console_names=names) as admin:
        url = str(admin.event("console")["url"])
        body = json.dumps({"user": "alice", "secret": "wonder"})
        through: dict[str, Any] = {
            "host": names,
            "origin": f"https://{names}",
            "x_forwarded_proto": "https",
            "content_type": JSON,
        }
        cookie = ask(url, "/session", body, **through).headers["Set-Cookie"]
        assert "; Secure" in cookie
        answer = ask(url, "/api/WhoAmI", "{}", **through, cookie=cookie.partition(";")[0])
        assert answer.json["user"] == "alice"
