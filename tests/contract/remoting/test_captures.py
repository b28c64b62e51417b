"""Captured traffic of real clients, sent to our store: the answers are those of RocketMQ's broker.

Equal are codes, names of header fields, offsets, statuses and messages. What the captures' README calls variable is not
compared, nor the words of a refusal, which are ours.
"""

import base64
import json
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tandemmq.client import Record, decode_records
from tandemmq.common import java_json
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import ONE_WAY, RESPONSE
from tandemmq.common.wire.remoting.frames import Serialization
from tests.contract.remoting.classic_client import SECONDS, Answer, ClassicClient, document
from tests.contract.remoting.conftest import classic, port_of
from tests.golden import captured_frames

pytestmark = pytest.mark.golden

SCENARIOS = [
    "produce_sync",
    "produce_async",
    "produce_oneway",
    "produce_batch",
    "produce_selector",
    "produce_refused",
    "produce_traced",
    "produce_auto_create",
    "consume_concurrent",
    "consume_orderly",
    "consume_resume",
    "consume_from_last",
    "consume_rebalance",
    "lite_pull_subscribe",
    "lite_pull_assign",
    "query_messages",
    "request_reply",
    "binary_produce_sync",
    "binary_consume_concurrent",
    "vip_produce_sync",
    "vip_consume_concurrent",
    "produce_compressed_large",
    "produce_signed",
    "consume_broadcast",
    "consume_orderly_rebalance",
    "pull_by_hand",
    "admin_api",
    "admin_connections",
    "admin_query",
    "admin_print",
    "admin_send",
    "admin_group",
    "admin_cleaning",
    "admin_topic_delete",
]
"""Not: what names places in a log or commits of others (transaction, consume_retry_dlq, produce_delay_level,
consume_reset_online, most of mqadmin's), what we do otherwise and docs/remoting.md tells (consume_sql92_refused,
admin_broker_config, admin_reset_offline), and what asks the name server alone."""
OURS_ALONE = {"IS_SUPPORT_HEART_BEAT_V2", "IS_SUB_CHANGE"}
OF_5_ALONE = {"topicSysFlag", "groupSysFlag", "forbiddenType", "offsetDelta", "recallHandle", "batchUniqId"}
NUMBERS = ("queueId", "queueOffset", "nextBeginOffset", "minOffset", "maxOffset", "offset")
PULLS = {RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE}
SENDS = {RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE}
BY_PLACE = {RequestCode.VIEW_MESSAGE_BY_ID, RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.END_TRANSACTION}
"""Requests that name places in a log that is not ours."""
OF_TIME = {
    (RequestCode.SEND_REPLY_MESSAGE_V2, "queueOffset"),
    *((code, name) for code in PULLS for name in ("maxOffset", "nextBeginOffset")),
    (RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, "offset"),
}
"""Numbers that depend on when something was asked, and on what others have sent before."""
VARIABLE = {"UNIQ_KEY", "CLUSTER", "TRACE_ON", "MSG_REGION", "WAIT", "DELAY", "REAL_TOPIC", "REAL_QID"}
"""Properties that are not the sender's own, or say how to send: RocketMQ 4 does not store WAIT either.

What was delayed loses its delay when it is delivered, or it would be delayed again as a dead letter.
"""
VARIABLE_KEYS = {"clientAddr", "physicOffset", "physicSize", "lastUpdateTimestamp", "remoteIP"}
"""In bodies: addresses of clients, places and sizes in the log, which our longer properties change, times."""


@dataclass
class Replay:
    """One scenario, under way."""

    port: int
    clients: dict[str, ClassicClient] = field(default_factory=dict)
    asked: dict[tuple[str, int], tuple[dict[str, Any], "Future[Answer] | None"]] = field(default_factory=dict)
    compared: int = 0

    def line(self, line: dict[str, Any]) -> None:
        """A captured frame: a request is sent, an answer is compared with ours."""
        if line.get("event") or not line["connection"].startswith(("broker", "vip")) or line["body"] is None:
            return
        key = line["connection"], line["opaque"]
        if line["direction"] == "to_server" and not line["flag"] & RESPONSE:
            self.asked[key] = line, self._send(line)
        elif line["direction"] == "to_client" and line["flag"] & RESPONSE:
            request, future = self.asked.pop(key, (None, None))
            if request is not None and future is not None and _tells(request, line):
                compare(request, line, future.result(SECONDS))
                self.compared += 1

    def _send(self, line: dict[str, Any]) -> "Future[Answer] | None":
        if line["code"] in BY_PLACE:
            return None
        client = self._client(line)
        body = base64.b64decode(line["body"])
        if line["flag"] & ONE_WAY:
            client.tell(line["code"], line["extFields"], body)
            return None
        answer = client.begin(line["code"], line["extFields"], body)
        if line["code"] == RequestCode.HEART_BEAT:
            answer.result(SECONDS)  # or what is asked next is asked of a broker that does not know the client yet
        return answer

    def _client(self, line: dict[str, Any]) -> ClassicClient:
        client = self.clients.get(line["connection"])
        if client is None:
            form = Serialization[line["serialize"]]
            client = ClassicClient(self.port, version=line["version"], serialization=form)
            client.answer = lambda request: None if request.is_one_way else request.answer()
            self.clients[line["connection"]] = client
        return client


def _tells(request: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Whether an answer is one that must come: how often a pull finds nothing is a matter of time."""
    return request["code"] not in PULLS or answer["code"] == ResponseCode.SUCCESS


def compare(request: dict[str, Any], theirs: dict[str, Any], ours: Answer) -> None:
    """Everything that must be equal."""
    code, said = request["code"], (request["extFields"], theirs["extFields"], theirs["remark"], ours)
    if code == RequestCode.QUERY_CONSUMER_OFFSET and ours.fields.get("offset") == "0" and theirs["code"]:
        return  # RocketMQ 5 does not say where to begin in a queue without messages
    if code in PULLS and ours.code == ResponseCode.PULL_RETRY_IMMEDIATELY:
        return  # what the filter does not want was there before what it wants
    assert ours.code == theirs["code"], said
    fields = theirs["extFields"] or {}
    optional = OURS_ALONE | OF_5_ALONE
    assert set(fields) - optional == set(ours.fields) - optional, said
    for name in NUMBERS:
        if name in fields and (code, name) not in OF_TIME:
            assert ours.fields[name] == fields[name], (name, *said)
    if code in PULLS or code in (RequestCode.QUERY_CONSUMER_OFFSET, RequestCode.GET_CONSUMER_LIST_BY_GROUP):
        assert ours.remark == (theirs["remark"] or ""), said
    body = base64.b64decode(theirs["body"])
    if code in PULLS:
        # How many are there when a client asks is a matter of time, too.
        mine, others = decode_records(ours.body), decode_records(body)
        both = min(len(mine), len(others))
        assert both
        assert [essence(one) for one in mine[:both]] == [essence(one) for one in others[:both]]
        assert int(ours.fields["nextBeginOffset"]) > mine[-1].queue_offset
    elif code == RequestCode.QUERY_MESSAGE:
        assert [essence(one) for one in decode_records(ours.body)] == [essence(one) for one in decode_records(body)]
    elif code == RequestCode.GET_CONSUMER_LIST_BY_GROUP and body:
        # Who has come or gone at that moment is a matter of time.
        assert {*document(ours)["consumerIdList"]} & {*java_json.loads(body)["consumerIdList"]}
    elif body.startswith(b"{") and code != RequestCode.GET_ALL_PRODUCER_INFO:  # which has those of all scenarios
        assert plain(java_json.loads(ours.body)) == plain(java_json.loads(body)), said


def plain(value: Any) -> Any:
    """A body without what is variable in it."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if name not in VARIABLE_KEYS}
    return [plain(one) for one in value] if isinstance(value, list) else value


def essence(record: Record) -> tuple[object, ...]:
    """What is the same of a message at every broker."""
    given = {name: value for name, value in record.properties.items() if name not in VARIABLE}
    return record.topic, record.queue_id, record.queue_offset, record.flag, record.body, record.reconsume_times, given


def topics_of(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The topics as the name server tells of them, for the store's table."""
    found: dict[str, Any] = {}
    for line in lines:
        if line.get("event") or line["code"] != RequestCode.GET_ROUTEINFO_BY_TOPIC:
            continue
        answer = next((one for one in lines if _answers(one, line)), None)
        topic = line["extFields"]["topic"]
        if answer is None or answer["code"] or topic == "TBW102":
            continue
        queues = java_json.loads(base64.b64decode(answer["body"]))["queueDatas"][0]
        names = {"readQueueNums": queues["readQueueNums"], "writeQueueNums": queues["writeQueueNums"]}
        found[topic] = {"topicName": topic, "perm": queues["perm"], **names}
    return found


def _answers(line: dict[str, Any], request: dict[str, Any]) -> bool:
    return (
        not line.get("event")
        and line["direction"] == "to_client"
        and (line["connection"], line["opaque"]) == (request["connection"], request["opaque"])
        and bool(line["flag"] & RESPONSE)
    )


@pytest.fixture(scope="module", params=["4.9.7", "5.3.2"])
def version(request: pytest.FixtureRequest) -> str:
    """Of the clients, and of the broker that answered them."""
    return str(request.param)


@pytest.fixture(scope="module")
def lines(version: str) -> dict[str, list[dict[str, Any]]]:
    """The lines of each scenario, in the order of their times."""
    return {
        scenario: sorted(captured_frames(version, scenario), key=lambda line: float(line["time"]))
        for scenario in SCENARIOS
    }


@pytest.fixture(scope="module")
def port(lines: dict[str, list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of a store with the topics of all scenarios; each has its own."""
    root: Path = tmp_path_factory.mktemp("captures") / "store"
    (root / "config").mkdir(parents=True)
    topics = {name: topic for scenario in lines.values() for name, topic in topics_of(scenario).items()}
    table = {"topicConfigTable": topics, "dataVersion": {"counter": 1, "timestamp": 1}}
    (root / "config" / "topics.json").write_text(json.dumps(table))
    with classic(root, max_message_size=4 << 20, mapped_file_size_commit_log=32 << 20) as store:
        yield port_of(store)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario(scenario: str, port: int, lines: dict[str, list[dict[str, Any]]]) -> None:
    replay = Replay(port)
    try:
        for line in lines[scenario]:
            replay.line(line)
    finally:
        for client in replay.clients.values():
            client.close()
    assert replay.compared >= 3
