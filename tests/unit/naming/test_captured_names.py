"""Name servers of RocketMQ in captures: ours, told by the same brokers, answers the same."""

import base64
from pathlib import Path
from typing import Any, cast

import pytest

from tandemmq.common.documents import java_json
from tandemmq.common.net.remoting.connection import RemotingConnection
from tandemmq.common.wire.remoting import codec
from tandemmq.common.wire.remoting.codes import RequestCode
from tandemmq.common.wire.remoting.command import Command
from tandemmq.common.wire.remoting.frames import RemotingFrameReader
from tandemmq.naming.asked import Asked, NamingRules, NoRoute, code_of
from tandemmq.naming.broker import READ, WRITE
from tandemmq.naming.kv import KvStore, UnknownValue
from tandemmq.naming.routes import RouteTable
from tests.golden import captured_frames

pytestmark = [pytest.mark.golden, pytest.mark.parametrize("version", ["4.9.7", "5.3.2"])]

CHANGES = {
    RequestCode.REGISTER_BROKER,
    RequestCode.PUT_KV_CONFIG,
    RequestCode.DELETE_KV_CONFIG,
    RequestCode.WIPE_WRITE_PERM_OF_BROKER,
    RequestCode.ADD_WRITE_PERM_OF_BROKER,
    RequestCode.DELETE_TOPIC_IN_NAMESRV,
}
LATER = 0.1
"""Seconds within which the recording does not tell what came first, a question or a change."""


class Names:
    """Our name server's answers, without sockets."""

    def __init__(self, directory: Path) -> None:
        rules, values = NamingRules(), KvStore(directory / "kv.json")
        self.routes = RouteTable()
        self._handlers = Asked(self.routes, values, float, rules, lambda: "listenPort=9876\n").handlers()

    def answer(self, request: Command) -> Command:
        try:
            answer = self._handlers[request.code](cast(RemotingConnection, self), request)
        except (NoRoute, UnknownValue) as error:
            return request.answer(code_of(error), remark=error.message)
        assert isinstance(answer, Command)
        return answer


def exchanges(version: str) -> list[tuple[float, Command, Command]]:
    """Time, request and response of all that a name server was asked, in order."""
    open_requests: dict[tuple[str, str, int], Command] = {}
    found = []
    for line in captured_frames(version):
        if line.get("raw") and line["connection"].startswith(("names", "registration")):
            (frame,) = RemotingFrameReader().receive(base64.b64decode(line["raw"]))
            command = codec.decode(frame)
            key = line["scenario"], line["connection"], command.opaque
            other = open_requests.pop(key, None)
            if other is None:
                open_requests[key] = command
            else:
                found.append((line["time"], *sorted((command, other), key=lambda one: one.is_response)))
    return sorted(found, key=lambda one: one[0])


def test_the_same_questions_have_the_same_answers(version: str, tmp_path: Path) -> None:
    """All that brokers, clients and mqadmin asked a name server, in the order of the recording."""
    asked = exchanges(version)
    changes = [one for one in asked if one[1].code in CHANGES]
    three = [Names(tmp_path / name) for name in ("late", "in step", "early")]
    told, unknown = [0, 0, 0], 0
    for at, request, theirs in asked:
        for which, names in enumerate(three):
            while told[which] < len(changes) and changes[told[which]][0] <= at + (which - 1) * LATER:
                _, change, outcome = changes[told[which]]
                assert same(change, names.answer(change), outcome)
                told[which] += 1
        if request.code not in CHANGES:
            ours = [names.answer(request) for names in three]
            equal = any(same(request, one, theirs) for one in ours)
            if not equal and request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC and theirs.code == 0:
                unknown += 1  # not every registration was kept
                continue
            assert equal, (request, ours, theirs)
    assert len(asked) > 600
    assert unknown < len(asked) / 2
    assert {100, 101, 102, 103, 105, 106, 205, 206, 216, 219, 224, 319, 327} <= {one[1].code for one in asked}


def same(request: Command, ours: Command, theirs: Command) -> bool:
    """Code, flag, names of fields, and body. A list of topics may be shorter: not every registration was kept."""
    if (ours.code, ours.flag, set(ours.fields or ())) != (theirs.code, theirs.flag, set(theirs.fields or ())):
        return False
    if request.code == RequestCode.GET_KV_CONFIG and (ours.fields or {}) != (theirs.fields or {}):
        return False
    if theirs.code:
        return (theirs.remark or "").startswith(ours.remark or "?")
    if request.code == RequestCode.GET_NAMESRV_CONFIG:
        return bool(ours.body)
    found, expected = comparable(ours.body), comparable(theirs.body)
    if expected is not None and "topicList" in expected:
        return found.keys() == expected.keys() and set(found["topicList"]) <= set(expected["topicList"])
    return bool(found == expected)


def comparable(body: Any) -> Any:
    """A body, but for what only 5.x says, and for the bit that RocketMQ forgets when it gives back writing."""
    if not body:
        return None
    document = java_json.loads(bytes(body))
    for broker in [*document.get("brokerDatas", ()), *document.get("brokerAddrTable", {}).values()]:
        broker.pop("enableActingMaster", None)
    for queues in document.get("queueDatas", ()):
        queues["perm"] &= READ | WRITE
    return document
