"""Signing in: sessions, Basic, what each user may do, and how sessions end."""

import json
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest

from tests.admin_process import AdminProcess
from tests.console.http_kit import Answer, ask, basic, call, connect
from tests.console.kit import USERS, write_access
from tests.faults.pair import Pair
from tests.faults.pair_process import until

pytestmark = pytest.mark.xdist_group("console")

JSON = "application/json"


@pytest.fixture(scope="module")
def url(closed: AdminProcess) -> str:
    return str(closed.event("console")["url"])


def sign_in(url: str, user: str, secret: str, **headers: str) -> Answer:
    body = json.dumps({"user": user, "secret": secret})
    sent: dict[str, Any] = {"content_type": JSON, **headers}
    return ask(url, "/session", body, **sent)


def cookie_of(answer: Answer) -> str:
    """What a browser would send from now on."""
    assert answer.status == 200, answer
    return answer.headers["Set-Cookie"].partition(";")[0]


def session(url: str, user: str) -> str:
    return cookie_of(sign_in(url, user, USERS[user][0]))


def test_nobody_gets_in_without_signing_in(url: str) -> None:
    for path in ("/api/WhoAmI", "/api/GetCluster", "/api/DeleteTopic", "/stream/Tail", "/stream/GetSupportBundle"):
        answer = ask(url, path, "{}", content_type=JSON)
        assert (answer.status, answer.code) == (401, "UNAUTHENTICATED"), path
        assert not answer.headers["WWW-Authenticate"].lower().startswith("basic")
    assert ask(url, "/").status == 200
    assert ask(url, "/healthz").status == 200


def test_a_session_is_a_cookie_that_scripts_do_not_see(url: str) -> None:
    answer = sign_in(url, "alice", "wonder")
    parsed = next(iter(SimpleCookie(answer.headers["Set-Cookie"]).values()))
    assert parsed["httponly"] is True
    assert parsed["samesite"] == "Strict"
    assert parsed["path"] == "/"
    assert parsed["max-age"] == parsed["expires"] == parsed["domain"] == ""
    assert len(parsed.value) >= 43  # 256 bits
    assert session(url, "alice") != session(url, "alice")
    me = call(url, "WhoAmI", cookie=cookie_of(answer)).json
    assert (me["user"], me["roles"], me["open"]) == ("alice", ["admin"], False)
    assert "DeleteTopic" in me["methods"]


@pytest.mark.parametrize(
    ("user", "secret"),
    [("alice", "wrong"), ("nobody", "wonder"), ("alice", ""), ("alice:x", "y"), ("alice", "wonder ")],
)
def test_wrong_secrets_open_nothing(url: str, user: str, secret: str) -> None:
    answer = sign_in(url, user, secret)
    assert answer.status in (401, 429)
    assert answer.code == "UNAUTHENTICATED"
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize(
    "body",
    ["", "[]", "null", '"x"', "{}", '{"user": "alice"}', '{"user": 1, "secret": 2}', '{"user": "", "secret": "x"}',
     '{"user": "\\ud800", "secret": "x"}', json.dumps({"user": "a" * 2000, "secret": "x"}), "[" * 9_000],
)  # fmt: skip
def test_a_sign_in_that_is_none(url: str, body: str) -> None:
    answer = ask(url, "/session", body, content_type=JSON)
    assert (answer.status, answer.code) == (400, "INVALID_ARGUMENT")
    assert ask(url, "/session", "x" * 20_000, content_type=JSON).status == 413


def test_signing_in_from_another_site_is_refused(url: str) -> None:
    assert sign_in(url, "alice", "wonder", origin="http://evil.example").status == 403
    assert sign_in(url, "alice", "wonder", content_type="text/plain").status == 415


@pytest.mark.parametrize("cookie", ["tandem-1=x", "{name}=", "{name}=x", "{name}={value}x", "{name}=é", "a"])
def test_other_cookies_open_nothing(url: str, cookie: str) -> None:
    name, _, value = session(url, "alice").partition("=")
    sent = cookie.format(name=name, value=value)
    assert call(url, "WhoAmI", cookie=sent).status == 401


def test_basic_is_for_scripts(url: str) -> None:
    assert call(url, "WhoAmI", authorization=basic("vera", "glass")).json["user"] == "vera"
    for wrong in (basic("vera", "x"), "Basic x", "Bearer abc", "Basic"):
        assert call(url, "WhoAmI", authorization=wrong).status == 401
    # what is said goes before a session that is there as well
    assert call(url, "WhoAmI", authorization=basic("vera", "y"), cookie=session(url, "alice")).status == 401


def test_signing_out_ends_the_session_on_the_server(url: str) -> None:
    cookie = session(url, "alice")
    other = session(url, "alice")
    answer = ask(url, "/session", "{}", method="DELETE", content_type=JSON, cookie=cookie)
    assert answer.status == 200
    assert "Max-Age=0" in answer.headers["Set-Cookie"]
    assert call(url, "WhoAmI", cookie=cookie).status == 401
    assert call(url, "WhoAmI", cookie=other).status == 200
    assert ask(url, "/session", "{}", method="DELETE", content_type=JSON).status == 200


def test_signing_out_from_another_site_is_refused(url: str) -> None:
    cookie = session(url, "alice")
    answer = ask(url, "/session", "{}", method="DELETE", content_type=JSON, cookie=cookie, origin="http://evil.example")
    assert answer.status == 403
    assert call(url, "WhoAmI", cookie=cookie).status == 200


REFUSED_TO_VIEWERS: dict[str, dict[str, Any]] = {
    "PutTopic": {"config": {"name": "x"}},
    "DeleteTopic": {"topic": "orders"},
    "PutGroup": {"config": {"name": "x"}},
    "DeleteGroup": {"group": "billing"},
    "ResetOffsets": {"group": "billing", "topic": "orders", "latest": True},
    "FindMessages": {"topic": "orders", "place": {"queueId": 0, "offset": 0}},
    "SendMessage": {"topic": "orders", "body": "eA=="},
    "ResendMessages": {"group": "billing"},
    "StartJob": {"kind": "AUDIT", "node": "alpha"},
    "CancelJob": {"id": "x"},
}


@pytest.mark.parametrize("method", REFUSED_TO_VIEWERS)
def test_viewers_change_and_read_nothing(url: str, method: str) -> None:
    cookie = session(url, "vera")
    answer = call(url, method, REFUSED_TO_VIEWERS[method], cookie=cookie)
    assert (answer.status, answer.code) == (403, "PERMISSION_DENIED")
    assert "vera" in answer.message
    if method not in ("ResetOffsets",):  # whose dry run a viewer may see
        assert method not in call(url, "WhoAmI", cookie=cookie).json["methods"]


def test_streams_are_refused_too(url: str) -> None:
    cookie = session(url, "vera")
    for name in ("Tail", "GetSupportBundle"):
        answer = ask(
            url, f"/stream/{name}", '{"topic": "orders"}' if name == "Tail" else "{}", content_type=JSON, cookie=cookie
        )
        assert (answer.status, answer.code) == (403, "PERMISSION_DENIED")


def test_a_role_opens_its_topics_only(url: str) -> None:
    cookie = session(url, "olga")
    place = {"place": {"queueId": 0, "offset": 0}}
    assert call(url, "FindMessages", {"topic": "orders", **place}, cookie=cookie).status == 200
    refused = call(url, "FindMessages", {"topic": "payments", **place}, cookie=cookie)
    assert refused.status == 403
    assert "payments" in refused.message


def test_the_log_of_actions_names_the_user(url: str) -> None:
    cookie = session(url, "alice")
    assert call(url, "PutTopic", {"config": {"name": "by-alice"}}, cookie=cookie).status == 200
    call(url, "DeleteTopic", {"topic": "by-alice"}, cookie=session(url, "vera"))

    def told() -> set[tuple[str, str, str]]:
        actions = call(url, "ListActions", {"limit": 200}, cookie=cookie).json["actions"]
        return {(one["user"], one["method"], one["outcome"]) for one in actions}

    until(lambda: ("vera", "DeleteTopic", "PERMISSION_DENIED") in told(), 60, lambda: f"the refusal is told: {told()}")
    assert ("alice", "PutTopic", "OK") in told()
    assert ("alice", "SignIn", "OK") in told()
    assert call(url, "DeleteTopic", {"topic": "by-alice"}, cookie=cookie).status == 200


def test_sessions_end_when_the_user_goes_or_its_secret_changes(url: str, access_file: Path) -> None:
    cookie, changed = session(url, "leaver"), session(url, "olga")
    following = connect(url)
    following.request(
        "POST", "/stream/Tail", '{"topic": "orders", "last": 1}', {"Content-Type": JSON, "Cookie": cookie}
    )
    stream = following.getresponse()
    assert stream.status == 200
    rest = {name: entry for name, entry in USERS.items() if name != "leaver"}
    write_access(access_file, {**rest, "olga": ("changed", "orders")})
    try:
        until(lambda: call(url, "WhoAmI", cookie=cookie).status == 401, 60, lambda: "leaver is out")
        until(lambda: call(url, "WhoAmI", cookie=changed).status == 401, 60, lambda: "olga is out")
        last = stream.read().decode().splitlines()[-1]
        assert json.loads(last)["error"]["code"] == "UNAUTHENTICATED"
        assert cookie_of(sign_in(url, "olga", "changed"))
    finally:
        following.close()
        write_access(access_file, USERS)
        until(lambda: sign_in(url, "leaver", "bye").status == 200, 60, lambda: "leaver is back")


def test_guessing_is_slowed_down(pair: Pair, own_directory: Path, access_file: Path) -> None:
    with AdminProcess(own_directory, {"alpha": pair.master}, access_file=access_file) as admin:
        url = str(admin.event("console")["url"])
        answers = [sign_in(url, "alice", f"guess {number}") for number in range(12)]
        slowed = [answer for answer in answers if answer.status == 429]
        assert slowed
        assert all(int(answer.headers["Retry-After"]) >= 1 for answer in slowed)
        text = admin.log.read_text() + "".join(path.read_text() for path in own_directory.glob("*.log"))
        assert "guess" not in text


def test_no_secret_is_in_any_log(closed: AdminProcess, url: str) -> None:
    session(url, "alice")
    call(url, "WhoAmI", authorization=basic("alice", "wonder"))
    files = [path for path in closed.directory.rglob("*") if path.is_file()]
    text = closed.log.read_text() + "".join(path.read_text(errors="replace") for path in files)
    assert "wonder" not in text
    assert basic("alice", "wonder").split()[1] not in text
