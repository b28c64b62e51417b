"""Captured traffic of real clients, sent to our store: the answers are those of RocketMQ's broker.

Equal are codes, names of header fields, offsets, statuses and messages. What the captures' README calls variable is not
compared, nor the words of a refusal, which are ours.
"""

import base64
import json
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tandemmq.client import Record, decode_records
from tandemmq.common import java_json
from tandemmq.common.wire.remoting import java_objects
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import ONE_WAY, RESPONSE
from tandemmq.common.wire.remoting.frames import Serialization
from tandemmq.store.format.properties import POP_CK
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
    "transaction",
    "consume_retry_dlq",
    "produce_delay_level",
    "consume_pop",
    "consume_reset_online",
]
"""Not: what names commits of others (most of mqadmin's), what we do otherwise and docs/remoting.md tells
(consume_sql92_refused, admin_broker_config, admin_reset_offline, produce_delay_time: up to 40 days are taken), and what
asks the name server alone."""
WAITS = {"transaction", "consume_retry_dlq", "produce_delay_level", "consume_pop"}
"""Scenarios in which messages come in their time: it is waited for those that RocketMQ gave."""
OF_5 = {"consume_pop"}
"""Scenarios that there are with RocketMQ 5 only."""
QUICK = {
    "transaction_time_out": 1000,
    "transaction_check_interval": 1000,
    "message_delay_level": " ".join(f"{seconds}s" for seconds in range(1, 19)),
}
"""For these: in the same order, and sooner."""
OURS_ALONE = {"IS_SUPPORT_HEART_BEAT_V2", "IS_SUB_CHANGE"}
OF_CHECKS_OF_5 = {"bname", "topic", "offsetMsgId"}
OF_5_ALONE = {"topicSysFlag", "groupSysFlag", "forbiddenType", "offsetDelta", "recallHandle", "batchUniqId"}
NUMBERS = ("queueId", "queueOffset", "nextBeginOffset", "minOffset", "maxOffset", "offset")
PULLS = {RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE}
SENDS = {RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE}
BY_RECEIPT = {RequestCode.ACK_MESSAGE, RequestCode.CHANGE_MESSAGE_INVISIBLETIME}
"""Requests about a message that was popped."""
BY_PLACE = {RequestCode.VIEW_MESSAGE_BY_ID, RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.END_TRANSACTION}
"""Requests that name places in a log that is not ours: they are sent where it is known what lies there."""
OF_TIME = {
    (RequestCode.SEND_REPLY_MESSAGE_V2, "queueOffset"),
    *((code, name) for code in PULLS for name in ("maxOffset", "nextBeginOffset")),
    (RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, "offset"),
}
"""Numbers that depend on when something was asked, and on what others have sent before."""
VARIABLE = {
    "UNIQ_KEY", "CLUSTER", "TRACE_ON", "MSG_REGION", "WAIT", "DELAY", "REAL_TOPIC", "REAL_QID", "__transactionId__",
    "ORIGIN_MESSAGE_ID", "POP_CK", "1ST_POP_TIME", "TRANSACTION_CHECK_TIMES", "TRAN_PREPARED_QUEUE_OFFSET",
}  # fmt: skip
"""Properties that are not the sender's own, or say how to send: RocketMQ 4 does not store WAIT either.

What was delayed loses its delay when it is delivered, or it would be delayed again as a dead letter.
"""
VARIABLE_KEYS = {"clientAddr", "physicOffset", "physicSize", "lastUpdateTimestamp", "remoteIP"}
"""In bodies: addresses of clients, places and sizes in the log, which our longer properties change, times."""


@dataclass
class Places:
    """Where messages lie in our log that lay elsewhere in theirs."""

    offsets: dict[int, str] = field(default_factory=dict)
    """By their physical offset: ours."""
    halves: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By unique key of a half message: its physical offset and queue offset."""

    popped: dict[tuple[str, str, str], dict[str, str]] = field(default_factory=dict)
    """By topic, queue and offset of a popped message: fields that name it to our store."""

    def sent(self, theirs: dict[str, Any], ours: Answer) -> None:
        """A message was stored at both."""
        physical = str(_physical(ours.fields["msgId"]))
        self.offsets[_physical(theirs["msgId"])] = physical
        if "transactionId" in ours.fields:
            self.halves[ours.fields["transactionId"]] = physical, ours.fields["queueOffset"]

    def pulled(self, their: Record, our: Record) -> None:
        """The same message came of both."""
        self.offsets[their.physical_offset] = str(our.physical_offset)

    def given(self, group: str, their: Record, our: Record) -> None:
        """The same, popped. RocketMQ has it from a retry topic when it comes again, and restores its topic."""
        topic = their.topic if not their.reconsume_times else f"%RETRY%{group}_{their.topic}"
        named = {"topic": our.topic, "queueId": str(our.queue_id), "offset": str(our.queue_offset)}
        place = topic, str(their.queue_id), str(their.queue_offset)
        self.popped[place] = named | {"extraInfo": our.properties[POP_CK]}

    def asked(self, ours: Answer) -> None:
        """Our store has asked how a transaction ended: what it says is to be said to it."""
        fields = ours.fields
        self.halves[fields["transactionId"]] = fields["commitLogOffset"], fields["tranStateTableOffset"]

    def ours(self, code: int, fields: dict[str, str]) -> dict[str, str] | None:
        """Fields of a request that names a place, for our store; None where it is not known."""
        if code == RequestCode.END_TRANSACTION:
            physical, number = self.halves[fields["msgId"]]  # the unique key, under this name
            return fields | {"commitLogOffset": physical, "tranStateTableOffset": number}
        if code in BY_RECEIPT:
            return fields | self.popped[fields["topic"], fields["queueId"], fields["offset"]]
        found = self.offsets.get(int(fields["offset"]))
        return None if found is None else fields | {"offset": found}


def _physical(message_ids: str) -> int:
    return int(message_ids.partition(",")[0][-16:], 16)


@dataclass
class Read:
    """What was read of one of our queues."""

    next_offset: int = 0
    messages: dict[tuple[str | None, int], Record] = field(default_factory=dict)


def _identity(record: Record) -> tuple[str | None, int]:
    """What tells a message from all others, and from the same one before its retry."""
    return record.unique_key, record.reconsume_times


def _come(record: Record) -> tuple[object, ...]:
    """What is the same of a message wherever its queue it has come to."""
    topic, queue_id, _, *more = essence(record)
    return topic, queue_id, *more


@dataclass
class Replay:
    """One scenario, under way."""

    port: int
    waits: bool = False
    """Whether messages come later, in their time."""
    places: Places = field(default_factory=Places)
    read: dict[tuple[str, str], Read] = field(default_factory=dict)
    """By topic and queue."""
    reset: bool = False
    """Whether an operator sets positions."""
    told: dict[str, dict[int, int]] = field(default_factory=dict)
    """By connection: new positions by queue."""
    changes: list[dict[str, Any]] = field(default_factory=list)
    """How RocketMQ has told consumers that others come or go."""
    heard: dict[str, list[Answer]] = field(default_factory=dict)
    """By connection: what our store has asked, and has not been compared yet."""
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
            if request is not None and _tells(request, line):
                if line["code"] == ResponseCode.PULL_OFFSET_MOVED and self.reset:
                    self._told(request, line)
                elif request["code"] == RequestCode.POP_MESSAGE and future is not None:
                    self._wait_for_popped(request, line, future.result(SECONDS))
                elif future is not None:
                    self._compare(request, line, future.result(SECONDS))
                elif request["code"] in PULLS:
                    self._wait_for(request, line)
        elif line["direction"] == "to_client":
            self._asked_by_server(line)

    def _compare(self, request: dict[str, Any], theirs: dict[str, Any], ours: Answer) -> None:
        compare(request, theirs, ours)
        self.compared += 1
        if request["code"] in SENDS and not theirs["code"]:
            self.places.sent(theirs["extFields"], ours)

    def _wait_for(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """RocketMQ has given messages: ours gives the same ones, each in its time, so maybe in another order."""
        fields = request["extFields"]
        found = self.read.setdefault((fields["topic"], fields["queueId"]), Read())
        deadline = time.monotonic() + SECONDS
        for their in decode_records(base64.b64decode(answer["body"])):
            while _identity(their) not in found.messages:
                assert time.monotonic() < deadline, (their, found.messages.keys())
                ours = self._client(request).call(request["code"], fields | {"queueOffset": str(found.next_offset)})
                assert ours.code in (ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND), ours
                found.next_offset = int(ours.fields["nextBeginOffset"])
                found.messages |= {_identity(one): one for one in decode_records(ours.body)}
            our = found.messages[_identity(their)]
            assert _come(our) == _come(their)
            self.places.pulled(their, our)
            self.compared += 1

    def _wait_for_popped(self, request: dict[str, Any], answer: dict[str, Any], ours: Answer) -> None:
        """The same of messages that were popped; where they come from when they come again is each broker's affair."""
        found: dict[tuple[str | None, int], Record] = {}
        deadline = time.monotonic() + SECONDS
        for their in decode_records(base64.b64decode(answer["body"])):
            while _identity(their) not in found:
                assert ours.code in (ResponseCode.SUCCESS, ResponseCode.POLLING_TIMEOUT), ours
                assert {*answer["extFields"]} <= {*ours.fields} or not ours.body
                assert time.monotonic() < deadline, (their, found.keys())
                found |= {_identity(one): one for one in decode_records(ours.body)}
                if _identity(their) not in found:
                    ours = self._client(request).call(request["code"], request["extFields"])
            our = found[_identity(their)]
            assert (our.body, _given(our)) == (their.body, _given(their))
            self.places.given(request["extFields"]["consumerGroup"], their, our)
            self.compared += 1

    def _told(self, request: dict[str, Any], answer: dict[str, Any]) -> None:
        """RocketMQ 5 tells a new position in the answer to a pull: ours has told it to the client before."""
        connection, queue = request["connection"], int(request["extFields"]["queueId"])
        if connection not in self.told:
            ours = self._next(request, RequestCode.RESET_CONSUMER_CLIENT_OFFSET)
            table = java_objects.queue_numbers(ours.body)
            self.told[connection] = {key.queue_id: offset for key, offset in table.items()}
        assert self.told[connection][queue] == int(answer["extFields"]["nextBeginOffset"])
        self.compared += 1

    def _asked_by_server(self, line: dict[str, Any]) -> None:
        """RocketMQ has asked or told a client something: ours does, too."""
        code, theirs = line["code"], line["extFields"]
        if code == RequestCode.CHECK_TRANSACTION_STATE:
            self._checked(line)
            return
        if code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            self.changes.append(line)
            return
        ours = self._next(line, code)
        assert {*theirs} - {"bname"} == {*ours.fields} - {"bname"}, (theirs, ours)
        assert base64.b64decode(line["body"]) == ours.body, (line, ours)
        for name in {*NUMBERS, "topic", "group", "isForce", "producerGroup", "defaultTopic", "flag"} & {*theirs}:
            assert ours.fields[name] == theirs[name], (name, theirs, ours)
        self.compared += 1

    def end(self) -> None:
        """Clients have been told of each change that RocketMQ told of. Among other frames, that is a matter of time."""
        for line in self.changes:
            self._next(line, line["code"], consumerGroup=line["extFields"]["consumerGroup"])
            self.compared += 1

    def _next(self, line: dict[str, Any], code: int, **fields: str) -> Answer:
        """What our store has asked, or will, of this client, with this code and these fields."""
        client, heard = self._client(line), self.heard.setdefault(line["connection"], [])
        while True:
            for one in heard:
                if one.code == code and fields.items() <= one.fields.items():
                    heard.remove(one)
                    return one
            heard.append(client.asked.get(timeout=SECONDS))

    def _checked(self, line: dict[str, Any]) -> None:
        """RocketMQ has asked how a transaction ended: our store asks for the same one, with the same message."""
        fields = line["extFields"]
        ours = self._next(line, RequestCode.CHECK_TRANSACTION_STATE, transactionId=fields["transactionId"])
        assert {*fields} - OF_CHECKS_OF_5 == {*ours.fields} - OF_CHECKS_OF_5, (fields, ours)
        assert ours.fields["msgId"] == fields["msgId"]
        [their], [our] = decode_records(base64.b64decode(line["body"])), decode_records(ours.body)
        assert (our.topic, our.queue_id, our.body) == (their.topic, their.queue_id, their.body)
        self.places.asked(ours)
        self.compared += 1

    def _send(self, line: dict[str, Any]) -> "Future[Answer] | None":
        fields = line["extFields"]
        if self.waits and line["code"] in PULLS:
            return None  # the place where they go on may not be there yet
        if line["code"] in BY_PLACE | BY_RECEIPT:
            fields = self.places.ours(line["code"], fields)
            if fields is None:
                return None
        client = self._client(line)
        body = base64.b64decode(line["body"])
        if line["flag"] & ONE_WAY:
            client.tell(line["code"], fields, body)
            return None
        answer = client.begin(line["code"], fields, body)
        if line["code"] == RequestCode.HEART_BEAT:
            answer.result(SECONDS)  # or what is asked next is asked of a broker that does not know the client yet
        return answer

    def _client(self, line: dict[str, Any]) -> ClassicClient:
        client = self.clients.get(line["connection"])
        if client is None:
            form = Serialization[line["serialize"]]
            client = ClassicClient(self.port, version=line["version"], serialization=form)
            client.answer = lambda request: None if request.flag & ONE_WAY else request.answer()
            self.clients[line["connection"]] = client
        return client


def _is_put_aside(request: dict[str, Any]) -> bool:
    """Whether it sends a half message or one for later: these are numbered together, over all topics and scenarios."""
    return request["code"] in SENDS and any(mark in request["extFields"]["i"] for mark in ("TRAN_MSG\1true", "DELAY\1"))


def _tells(request: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Whether an answer is one that must come: how often a pull finds nothing is a matter of time."""
    of_time = request["code"] in PULLS | {RequestCode.POP_MESSAGE}
    return not of_time or answer["code"] in (ResponseCode.SUCCESS, ResponseCode.PULL_OFFSET_MOVED)


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
    if _is_put_aside(request) and "transactionId" not in fields:
        optional = optional | {"transactionId"}  # RocketMQ 4 does not say it of a half message either
    assert set(fields) - optional == set(ours.fields) - optional, said
    for name in NUMBERS:
        if name in fields and (code, name) not in OF_TIME and not (name == "queueOffset" and _is_put_aside(request)):
            assert ours.fields[name] == fields[name], (name, *said)
    if code in PULLS or code in (RequestCode.QUERY_CONSUMER_OFFSET, RequestCode.GET_CONSUMER_LIST_BY_GROUP):
        assert ours.remark == (theirs["remark"] or ""), said
    body = base64.b64decode(theirs["body"])
    if code in PULLS:
        if ours.code == ResponseCode.PULL_OFFSET_MOVED:
            return
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
    elif b":{{" in body:  # a map whose keys are objects: Java's tools read it in this form alone
        assert ours.body == body, said
    elif body.startswith(b"{") and code != RequestCode.GET_ALL_PRODUCER_INFO:  # which has those of all scenarios
        assert plain(java_json.loads(ours.body)) == plain(java_json.loads(body)), said


def plain(value: Any) -> Any:
    """A body without what is variable in it."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if name not in VARIABLE_KEYS}
    return [plain(one) for one in value] if isinstance(value, list) else value


def essence(record: Record) -> tuple[object, ...]:
    """What is the same of a message at every broker."""
    where = record.topic, record.queue_id, record.queue_offset
    return *where, record.flag, record.body, record.reconsume_times, _given(record)


def _given(record: Record) -> dict[str, str]:
    return {name: value for name, value in record.properties.items() if name not in VARIABLE}


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


def frames(version: str, scenario: str) -> Iterator[dict[str, Any]]:
    """The scenario's own lines, and of the connections that live through all of them the reset of its group."""
    if scenario != "consume_reset_online":
        yield from captured_frames(version, scenario)
        return
    yield from captured_frames(version, scenario)
    reset = RequestCode.INVOKE_BROKER_TO_RESET_OFFSET
    during = [line for line in captured_frames(version, "setup") if line.get("during") == scenario]
    asked = {line["opaque"] for line in during if line.get("code") == reset}
    yield from (line | {"connection": f"broker-{line['connection']}"} for line in during if line.get("opaque") in asked)


@pytest.fixture(scope="module", params=["4.9.7", "5.3.2"])
def version(request: pytest.FixtureRequest) -> str:
    """Of the clients, and of the broker that answered them."""
    return str(request.param)


@pytest.fixture(scope="module")
def lines(version: str) -> dict[str, list[dict[str, Any]]]:
    """The lines of each scenario, in the order of their times."""
    return {
        scenario: sorted(frames(version, scenario), key=lambda line: float(line["time"]))
        for scenario in SCENARIOS
        if version.startswith("5") or scenario not in OF_5
    }


@pytest.fixture(scope="module")
def port(lines: dict[str, list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of a store with the topics of all scenarios; each has its own."""
    root: Path = tmp_path_factory.mktemp("captures") / "store"
    (root / "config").mkdir(parents=True)
    topics = {name: topic for scenario in lines.values() for name, topic in topics_of(scenario).items()}
    table = {"topicConfigTable": topics, "dataVersion": {"counter": 1, "timestamp": 1}}
    (root / "config" / "topics.json").write_text(json.dumps(table))
    with classic(root, max_message_size=4 << 20, mapped_file_size_commit_log=32 << 20, **QUICK) as store:
        yield port_of(store)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario(scenario: str, port: int, lines: dict[str, list[dict[str, Any]]]) -> None:
    if scenario not in lines:
        pytest.skip("RocketMQ 4 has it not")
    replay = Replay(port, scenario in WAITS, reset=scenario == "consume_reset_online")
    try:
        for line in lines[scenario]:
            replay.line(line)
        replay.end()
    finally:
        for client in replay.clients.values():
            client.close()
    assert replay.compared >= 3
