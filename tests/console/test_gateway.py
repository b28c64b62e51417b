"""The gateway: Admin's calls over HTTP, refusals one by one, and whatever else somebody may send."""

import base64
import io
import json
import os
import signal
import socket
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tandemmq.admin.console.errors import HTTP_STATUSES
from tandemmq.admin.console.gateway import SERVICE
from tandemmq.admin.console.server import MOST_CONNECTIONS
from tests.admin_process import AdminProcess
from tests.console.http_kit import PATIENCE, Answer, ask, call, connect
from tests.console.kit import DEAD_LETTERS
from tests.faults.pair import Pair
from tests.faults.pair_process import until

pytestmark = pytest.mark.xdist_group("console")

JSON = "application/json"


def test_a_call_is_answered_as_over_grpc(url: str, admin: AdminProcess) -> None:
    answer = call(url, "GetTopic", {"topic": "orders"})
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("application/json")
    assert answer.headers["Cache-Control"] == "no-store"
    queues = answer.json["queues"]
    assert sum(int(queue["maxOffset"]) - int(queue["minOffset"]) for queue in queues) == 60
    assert answer.json["topics"][0]["config"]["name"] == "orders"


def test_fields_that_are_zero_are_said_and_unset_ones_are_not(url: str) -> None:
    node = call(url, "GetCluster").json["nodes"][0]
    assert node["brokerId"] == "0"
    assert node["problems"] == []
    assert "lag" in call(url, "GetGroup", {"group": "billing"}).json["progress"][0]


def test_every_method_of_the_service_is_there(url: str) -> None:
    for method in SERVICE.methods:
        way, other = ("stream", "api") if method.server_streaming else ("api", "stream")
        wrong = ask(url, f"/{other}/{method.name}", "{}", content_type=JSON)
        assert (wrong.status, wrong.code) == (404, "NOT_FOUND")
        assert f"/{way}/{method.name}" in wrong.message
        unknown = ask(url, f"/{way}/{method.name}", '{"noSuchField": 1}', content_type=JSON)
        assert (unknown.status, unknown.code) == (400, "INVALID_ARGUMENT")
        assert "noSuchField" in unknown.message


def test_errors_have_grpc_codes_and_their_http_statuses(url: str) -> None:
    missing = call(url, "GetTopic", {"topic": "nobody-made-this"})
    assert (missing.status, missing.code) == (404, "NOT_FOUND")
    bad = call(url, "FindMessages", {"topic": "orders"})
    assert (bad.status, bad.code) == (400, "INVALID_ARGUMENT")
    existing = call(url, "PutTopic", {"config": {"name": "orders"}, "createOnly": True})
    assert (existing.status, existing.code) == (409, "ALREADY_EXISTS")
    assert HTTP_STATUSES["UNAVAILABLE"] == 503


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "JSON"),
        (b"[]", "GetTopicRequest"),
        (b'"text"', "GetTopicRequest"),
        (b"null", "GetTopicRequest"),
        (b'{"topic": 5}', "topic"),
        (b'{"topic": "\\ud800"}', "GetTopicRequest"),
        (b'{"topic": "a", "topic": "b"}', "topic"),
        (b"\xff\xfe{}", "GetTopicRequest"),
        (b"[" * 100_000, "GetTopicRequest"),
        (b'{"a":' * 5_000, "GetTopicRequest"),
        (b'{"topic": ' + b"9" * 5_000 + b"}", "GetTopicRequest"),
        (b"\x00" * 100, "GetTopicRequest"),
    ],
)
def test_a_body_that_is_no_request_is_refused_with_words(url: str, body: bytes, words: str) -> None:
    answer = ask(url, "/api/GetTopic", body, content_type=JSON)
    assert (answer.status, answer.code) == (400, "INVALID_ARGUMENT")
    assert words in answer.message
    assert len(answer.message) < 1_000


def test_an_empty_body_is_an_empty_request(url: str) -> None:
    assert ask(url, "/api/GetCluster", b"", content_type=JSON).status == 200


def test_a_body_that_is_too_large_is_refused(url: str) -> None:
    answer = ask(url, "/api/SendMessage", b'{"topic": "' + b"a" * (12 << 20) + b'"}', content_type=JSON)
    assert (answer.status, answer.code) == (413, "RESOURCE_EXHAUSTED")


def test_the_largest_body_of_a_message_goes_through(url: str, admin: AdminProcess) -> None:
    body = base64.b64encode(b"x" * 48_000).decode()
    answer = call(url, "SendMessage", {"topic": "invoices", "body": body, "keys": ["large"]})
    assert answer.status == 200, answer
    assert answer.json["receipt"]["status"] == "PUT_OK"


@pytest.mark.parametrize(
    "path", ["/api/NoSuchMethod", "/api/", "/stream/x", "/API/GetCluster", "/api/GetCluster/x", "/x"]
)
def test_paths_that_are_none(url: str, path: str) -> None:
    answer = ask(url, path, "{}", content_type=JSON)
    assert (answer.status, answer.code) == (404, "NOT_FOUND")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_http_methods_call_nothing(url: str, method: str) -> None:
    answer = ask(url, "/api/DeleteTopic", '{"topic": "orders"}', method=method, content_type=JSON)
    assert answer.status == 405
    assert call(url, "GetTopic", {"topic": "orders"}).status == 200


# -- where requests come from -----------------------------------------------------------------------------------------


def _delete(url: str, **headers: str) -> Answer:
    """A request that must not be done."""
    sent: dict[str, Any] = {"content_type": JSON, **headers}
    return ask(url, "/api/DeleteTopic", '{"topic": "orders"}', **sent)


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "http://127.0.0.1",
        "https://localhost:99999",
        "file://",
        "x",
        "",
    ],
)
def test_requests_of_other_sites_pages_are_refused(url: str, origin: str) -> None:
    answer = _delete(url, origin=origin)
    assert (answer.status, answer.code) == (403, "PERMISSION_DENIED")
    assert call(url, "GetTopic", {"topic": "orders"}).status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_what_the_browser_says_of_the_site_counts(url: str, site: str) -> None:
    answer = _delete(url, sec_fetch_site=site)
    assert (answer.status, answer.code) == (403, "PERMISSION_DENIED")


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "application/jsonx"],
)
def test_bodies_that_a_form_can_send_are_refused(url: str, kind: str) -> None:
    answer = _delete(url, content_type=kind)
    assert (answer.status, answer.code) == (415, "INVALID_ARGUMENT")


def test_encoded_bodies_are_refused(url: str) -> None:
    assert _delete(url, content_encoding="gzip").status == 415


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "a b", "x@127.0.0.1", "[::1"]
)
def test_names_that_are_not_the_consoles_are_refused(url: str, host: str) -> None:
    for path in ("/", "/api/GetCluster"):
        answer = ask(url, path, "{}" if path != "/" else None, host=host, content_type=JSON)
        assert (answer.status, answer.code) == (421, "PERMISSION_DENIED"), path


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:1234", "127.0.0.1", "[::1]:80", "192.168.7.7:8080", "LOCALHOST"]
)
def test_addresses_and_localhost_are_names_of_the_console(url: str, host: str) -> None:
    assert ask(url, "/api/WhoAmI", "{}", host=host, content_type=JSON).status == 200


def test_own_pages_may(url: str) -> None:
    answer = ask(url, "/api/WhoAmI", "{}", content_type=JSON, origin=url, sec_fetch_site="same-origin")
    assert answer.status == 200
    assert answer.json["open"] is True


def test_console_names_are_names_and_origins(pair: Pair, own_directory: Path) -> None:
    with AdminProcess(own_directory, {"alpha": pair.master}, console_names="console.example, mq.example:8443") as admin:
        url = str(admin.event("console")["url"])
        assert ask(url, "/", host="console.example").status == 200
        assert ask(url, "/", host="Mq.Example:8443").status == 200
        assert ask(url, "/", host="mq.example").status == 421
        # behind a proxy the browser says the proxy's name, and Host may be another
        for origin in ("https://console.example", "https://mq.example:8443"):
            assert ask(url, "/api/WhoAmI", "{}", content_type=JSON, origin=origin).status == 200
        assert ask(url, "/api/WhoAmI", "{}", content_type=JSON, origin="https://mq.example").status == 403


# -- streams ----------------------------------------------------------------------------------------------------------


def test_a_topic_is_followed_line_by_line(url: str, pair: Pair) -> None:
    connection = connect(url)
    request = json.dumps({"topic": "payments", "last": 3, "withBodies": True})
    connection.request("POST", "/stream/Tail", request, {"Content-Type": JSON})
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("application/x-ndjson")
    seen = [base64.b64decode(_line(answer)["result"]["message"]["body"]) for _ in range(3)]
    assert seen == [b"payment 9", b"payment 10", b"payment 11"]
    with pair.master.client() as client:
        client.send("payments", b"one more", queue_id=0)
    assert base64.b64decode(_line(answer)["result"]["message"]["body"]) == b"one more"
    connection.close()


def _line(answer: object) -> dict[str, dict[str, dict[str, str]]]:
    """The next line that is not empty."""
    while not (line := answer.readline().strip()):  # type: ignore[attr-defined]
        pass
    found: dict[str, dict[str, dict[str, str]]] = json.loads(line)
    return found


def test_a_stream_that_is_refused_has_its_http_status(url: str) -> None:
    answer = ask(url, "/stream/Tail", '{"topic": "nobody-made-this"}', content_type=JSON)
    assert (answer.status, answer.code) == (404, "NOT_FOUND")
    answer = ask(url, "/stream/WatchJob", '{"id": "none"}', content_type=JSON)
    assert (answer.status, answer.code) == (404, "NOT_FOUND")


def test_a_support_bundle_is_a_download(url: str) -> None:
    answer = ask(url, "/stream/GetSupportBundle", "{}", content_type=JSON)
    assert answer.headers["Content-Type"] == "application/zip"
    assert "attachment" in answer.headers["Content-Disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.body)) as bundle:
        assert bundle.testzip() is None
        assert bundle.namelist()


def test_who_goes_away_ends_what_was_followed(url: str, admin: AdminProcess) -> None:
    for _ in range(210):  # more than may be open at a time
        connection = connect(url)
        connection.request("POST", "/stream/Tail", '{"topic": "payments", "last": 1}', {"Content-Type": JSON})
        assert connection.getresponse().status in (200, 429)
        connection.close()

    def is_followed() -> bool:
        connection = connect(url)
        connection.request("POST", "/stream/Tail", '{"topic": "payments", "last": 1}', {"Content-Type": JSON})
        status = connection.getresponse().status
        connection.close()
        return status == 200

    until(is_followed, 60, "streams stay open although nobody reads them")


def test_actions_through_the_console_are_written_down(url: str) -> None:
    name = "made-by-console"
    assert call(url, "PutTopic", {"config": {"name": name}, "createOnly": True}).status == 200
    assert call(url, "DeleteTopic", {"topic": name}).status == 200

    def told() -> list[Any]:
        actions = call(url, "ListActions", {"limit": 50}).json["actions"]
        return [one for one in actions if name in one["requestJson"]]

    until(lambda: len(told()) >= 2, 60, lambda: f"both are told: {told()}")
    mine = told()
    assert [(one["method"], one["outcome"]) for one in mine] == [("DeleteTopic", "OK"), ("PutTopic", "OK")]
    assert all(one["peer"].startswith("http:127.0.0.1:") for one in mine)


def test_dead_letters_are_listed(url: str) -> None:
    topics = call(url, "ListTopics", {"kinds": ["DEAD_LETTER"]}).json["topics"]
    assert [(topic["config"]["name"], topic["messages"]) for topic in topics] == [("%DLQ%billing", str(DEAD_LETTERS))]


# -- static files and health ------------------------------------------------------------------------------------------


def test_pages_have_strict_headers(url: str) -> None:
    for path in ("/", "/healthz", "/nothing"):
        headers = ask(url, path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert "aiohttp" not in headers["Server"].lower()


def test_static_files_are_kept_by_browsers(url: str) -> None:
    index = ask(url, "/")
    assert index.headers["Cache-Control"] == "no-cache"
    assert ask(url, "/", if_none_match=index.headers["ETag"]).status == 304
    path = index.body.decode().split('src="')[1].split('"')[0]
    script = ask(url, path)
    assert script.status == 200
    assert script.headers["Content-Type"].startswith("text/javascript")
    assert "immutable" in script.headers["Cache-Control"]
    assert ask(url, path, accept_encoding="gzip").headers["Content-Encoding"] == "gzip"


@pytest.mark.parametrize(
    "name", ["../server.py", "%2e%2e/server.py", "..%2fserver.py", "", "x", "pages", "/etc/passwd"]
)
def test_nothing_but_static_files_is_served(url: str, name: str) -> None:
    version = ask(url, "/").body.decode().split("/static/")[1].split("/")[0]
    assert ask(url, f"/static/{version}/{name}").status == 404
    assert ask(url, "/static/0000000000000000/app.js").status == 404


def test_health_needs_no_name(url: str) -> None:
    answer = ask(url, "/healthz", host="anything.example")
    assert (answer.status, answer.body) == (200, b"ok\n")


# -- what is no HTTP --------------------------------------------------------------------------------------------------

_POST = b"POST /api/GetCluster HTTP/1.1\r\nHost: localhost\r\n"

GARBAGE = [
    b"\x00\x01\x02\x03" * 100,
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    _POST + b"Content-Length: -5\r\n\r\n",
    _POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % number for number in range(5_000)) + b"\r\n",
    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    _POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nCookie: \xff\xfe=\xff; tandem-1=\xff\r\n\r\n",
    b"GET /%ff%fe HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    _POST + b"Content-Type: application/json\r\nContent-Length: 4\r\n\r\n\xff\xff\xff\xff",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200,
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_changes_nothing(url: str, admin: AdminProcess, garbage: bytes) -> None:
    parts = urlsplit(url)
    before = len(admin.events())
    with socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE) as connection:
        connection.sendall(garbage)
        connection.shutdown(socket.SHUT_WR)
        try:
            received = connection.recv(65536)
        except ConnectionResetError:
            received = b""
    assert not received or received.startswith(b"HTTP/1."), received[:100]
    assert b"Traceback" not in received
    assert ask(url, "/healthz").status == 200
    told = [event for event in admin.events()[before:] if event["level"] == "error"]
    assert not told, told


def test_too_many_connections_are_turned_away(pair: Pair, own_directory: Path) -> None:
    with AdminProcess(own_directory, {"alpha": pair.master}) as admin:
        url = str(admin.event("console")["url"])
        parts = urlsplit(url)
        place = (parts.hostname, parts.port)
        held = [socket.create_connection(place, timeout=PATIENCE) for _ in range(MOST_CONNECTIONS + 10)]
        try:
            turned_away = [one for one in held[-10:] if _ended(one)]
            assert len(turned_away) == 10
            assert admin.cluster().nodes  # gRPC goes on
        finally:
            for one in held:
                one.close()
        until(lambda: _answers(url), 60, lambda: "the console answers again")


def _ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def _answers(url: str) -> bool:
    try:
        return ask(url, "/healthz").status == 200
    except OSError:
        return False


# -- start and end ----------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken_ends_the_start_with_words(pair: Pair, own_directory: Path, url: str) -> None:
    taken = urlsplit(url).port
    admin = AdminProcess(own_directory, {"alpha": pair.master}, console_port=taken)
    process = admin.launch()
    assert process.wait(timeout=PATIENCE) == 1
    text = admin.log.read_text()
    assert f"127.0.0.1:{taken}" in text
    assert "consolePort" in text
    assert "Traceback" not in text


def test_without_a_console_nothing_of_it_is_loaded(pair: Pair, own_directory: Path) -> None:
    with AdminProcess(own_directory, {"alpha": pair.master}, console_enable=False) as admin:
        assert not any(event["event"] == "console" for event in admin.events())
        assert admin.process is not None
        maps = Path(f"/proc/{admin.process.pid}/maps").read_text()
        assert "aiohttp" not in maps
        assert admin.cluster().nodes


def test_an_end_with_open_streams_is_quick_and_clean(pair: Pair, own_directory: Path) -> None:
    nodes = {"alpha": pair.master, "beta": pair.slave}
    with AdminProcess(own_directory, nodes, shutdown_grace_ms=2 * PATIENCE * 1000) as admin:
        url = str(admin.event("console")["url"])
        connections = [connect(url) for _ in range(5)]
        answers = []
        for connection in connections:
            connection.request("POST", "/stream/Tail", '{"topic": "payments", "last": 1}', {"Content-Type": JSON})
            answers.append(connection.getresponse())
        assert [answer.status for answer in answers] == [200] * 5
        assert admin.process is not None
        os.kill(admin.process.pid, signal.SIGTERM)
        last = [answer.read().decode().splitlines()[-1] for answer in answers]
        assert all(json.loads(line)["error"]["code"] == "UNAVAILABLE" for line in last)
        assert admin.process.wait(timeout=PATIENCE) == 0
        assert not [event for event in admin.events() if event["level"] == "error"], admin.log.read_text()
        for connection in connections:
            connection.close()
