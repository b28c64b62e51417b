"""Captured traffic of real clients, sent to our store: the answers are those of RocketMQ's broker.

Equal are codes, names of header fields, offsets, statuses and messages. What the captures' README calls variable is not
compared, nor the words of a refusal, which are ours.
"""

import base64
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tandemmq.client import Record, decode_records
from tandemmq.common.documents import java_json
from tandemmq.common.wire.remoting import java_objects
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.command import ONE_WAY, RESPONSE, Command
from tandemmq.common.wire.remoting.frames import Serialization
from tandemmq.store.format.properties import POP_CK
from tests.campaigns import in_campaigns
from tests.contract.remoting.captured_answers import (
    NUMBERS,
    OF_5_ALONE,
    PULLS,
    SENDS,
    compare,
    essence,
    given,
)
from tests.contract.remoting.classic_client import SECONDS, Answer, ClassicClient
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
    "admin_broker",
    "admin_broker_config",
    "admin_clone_offset",
    "admin_cluster",
    "admin_consumer_running",
    "admin_export",
    "admin_progress",
    "admin_reset_offline",
    "admin_topic",
    "admin_topic_perm",
    "binary_admin_topic",
    "consume_orderly_dlq",
    "produce_delay_time",
]
"""Not: what asks the name server alone, and consume_sql92_refused: SQL-92 filters are on here."""
WAITS = {"produce_delay_time", "transaction", "consume_retry_dlq", "produce_delay_level", "consume_pop"}
"""Scenarios in which messages come in their time: it is waited for those that RocketMQ gave."""
OF_5 = {"consume_pop", "produce_delay_time"}
"""Scenarios that there are with RocketMQ 5 only."""
OF_4 = {"admin_reset_offline"}
"""... whose lines are all there with RocketMQ 4 only."""
RESETS = {"consume_reset_online"}
BY_TOOLS = {
    "consume_reset_online": {RequestCode.INVOKE_BROKER_TO_RESET_OFFSET},
    "admin_consumer_running": {
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        RequestCode.CONSUME_MESSAGE_DIRECTLY,
        RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
    },
}
"""What a scenario asks on connections that live through all of them."""
QUICK = {
    "transaction_time_out": 1000,
    "transaction_check_interval": 1000,
    "message_delay_level": " ".join(f"{seconds}s" for seconds in range(1, 19)),
}
"""For these: in the same order, and sooner."""
OF_CHECKS_OF_5 = {"bname", "topic", "offsetMsgId"}
OF_A_SCENARIO = re.compile("(%(RETRY|DLQ)%)?g[a-z0-9]+_")
"""Names of topics and groups that the scenarios made."""
OF_ALL_SCENARIOS = re.compile("RMQ_SYS|rmq_sys|SCHEDULE|DefaultCluster|broker-a")
"""Names of topics that all of them fill."""
ABOUT_OTHERS = {RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, RequestCode.VIEW_BROKER_STATS_DATA}
"""Requests whose answers about such topics depend on all of them."""
BY_RECEIPT = {RequestCode.ACK_MESSAGE, RequestCode.CHANGE_MESSAGE_INVISIBLETIME}
"""Requests about a message that was popped."""
BY_PLACE = {
    RequestCode.VIEW_MESSAGE_BY_ID, RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.END_TRANSACTION,
    RequestCode.CONSUME_MESSAGE_DIRECTLY,
}  # fmt: skip
"""Requests that name places in a log that is not ours: they are sent where it is known what lies there."""


@dataclass
class Places:
    """Where messages lie in our log that lay elsewhere in theirs."""

    offsets: dict[int, str] = field(default_factory=dict)
    """By their physical offset: ours."""
    halves: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By unique key of a half message: its physical offset and queue offset."""

    ids: dict[str, str] = field(default_factory=dict)
    """By their offset message id: ours."""
    popped: dict[tuple[str, str, str], dict[str, str]] = field(default_factory=dict)
    """By topic, queue and offset of a popped message: fields that name it to our store."""

    def sent(self, theirs: dict[str, Any], ours: Answer) -> None:
        """A message was stored at both."""
        physical = str(_physical(ours.fields["msgId"]))
        self.offsets[_physical(theirs["msgId"])] = physical
        self.ids[theirs["msgId"]] = ours.fields["msgId"]
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
        if code == RequestCode.CONSUME_MESSAGE_DIRECTLY:
            return fields | {"msgId": self.ids[fields["msgId"]]}
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
    names: re.Pattern[str] = re.compile("")
    """What its topics and groups are called."""
    answers: dict[tuple[str, int], list[dict[str, Any]]] = field(default_factory=dict)
    """By connection and code: what the client answered when the broker asked it."""
    places: Places = field(default_factory=Places)
    read: dict[tuple[str, str], Read] = field(default_factory=dict)
    """By topic and queue."""
    reset: bool = False
    """Whether an operator sets positions."""
    resets_offline: bool = False
    """Whether ours has set positions while no consumer was there, which RocketMQ 4 refuses."""
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
        if line["direction"] == "to_server" and not line["flag"] & RESPONSE and self._of_others(line):
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

    def _of_others(self, line: dict[str, Any]) -> bool:
        """Whether it is about a topic or a group of another scenario."""
        fields, shared = line["extFields"] or {}, line["code"] in ABOUT_OTHERS
        named = [fields.get(name, "") for name in ("topic", "consumerGroup", "group", "statsKey")]
        if shared and any(map(OF_ALL_SCENARIOS.match, named)):
            return True
        return any(OF_A_SCENARIO.match(name) and not self.names.search(name) for name in named)

    def _compare(self, request: dict[str, Any], theirs: dict[str, Any], ours: Answer) -> None:
        if request["code"] == RequestCode.INVOKE_BROKER_TO_RESET_OFFSET and theirs["code"]:
            self.resets_offline = True  # as RocketMQ 5; the tool of 4 goes on by itself
        elif request["code"] != RequestCode.GET_CONSUME_STATS or not self.resets_offline:
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
            assert (our.body, given(our)) == (their.body, given(their))
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
        if code == RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT and not any(
            asked["code"] == RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS for asked, _ in self.asked.values()
        ):
            return  # what the tool asked is not there with RocketMQ 4
        if code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED:
            self.changes.append(line)
            return
        ours = self._next(line, code)
        optional = {"bname", *OF_5_ALONE}
        assert {*theirs} - optional == {*ours.fields} - optional, (theirs, ours)
        body = base64.b64decode(line["body"])
        if code == RequestCode.CONSUME_MESSAGE_DIRECTLY:
            assert [essence(one) for one in decode_records(ours.body)] == [essence(one) for one in decode_records(body)]
        else:
            assert body == ours.body, (line, ours)
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

    def _answered(self, connection: str, request: Command) -> Command | None:
        """What the client answered."""
        if request.flag & ONE_WAY:
            return None
        given = self.answers.get((connection, request.code))
        if not given:
            return request.answer()
        answer = given.pop(0)
        return request.answer(answer["code"], answer["extFields"], base64.b64decode(answer["body"]), answer["remark"])

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
            client.answer = partial(self._answered, line["connection"])
            self.clients[line["connection"]] = client
        return client


def _tells(request: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Whether an answer is one that must come: how often a pull finds nothing is a matter of time."""
    of_time = request["code"] in PULLS | {RequestCode.POP_MESSAGE}
    return not of_time or answer["code"] in (ResponseCode.SUCCESS, ResponseCode.PULL_OFFSET_MOVED)


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
        names |= {"order": False, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "attributes": {}}
        found[topic] = {"topicName": topic, "perm": queues["perm"], **names}
    return found


def _answers(line: dict[str, Any], request: dict[str, Any]) -> bool:
    return (
        not line.get("event")
        and line["direction"] == "to_client"
        and (line["connection"], line["opaque"]) == (request["connection"], request["opaque"])
        and bool(line["flag"] & RESPONSE)
    )


def answers_of(lines: list[dict[str, Any]]) -> dict[tuple[str, int], list[dict[str, Any]]]:
    """What clients answered, by connection and by the code that the broker asked with, in order."""
    frames = [line for line in lines if not line.get("event")]
    asked = {
        (line["connection"], line["opaque"]): line["code"]
        for line in frames
        if line["direction"] == "to_client" and not line["flag"] & RESPONSE
    }
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for line in frames:
        if line["direction"] == "to_server" and line["flag"] & RESPONSE:
            found.setdefault((line["connection"], asked[line["connection"], line["opaque"]]), []).append(line)
    return found


def frames(version: str, scenario: str) -> Iterator[dict[str, Any]]:
    """The scenario's own lines, and what it asks on connections that live through all of them."""
    yield from captured_frames(version, scenario)
    codes = BY_TOOLS.get(scenario)
    if codes is None:
        return
    during = [line for line in captured_frames(version, "setup") if line.get("during") == scenario]
    asked = {line["opaque"] for line in during if line.get("code") in codes and not line["flag"] & RESPONSE}
    yield from (line | {"connection": f"broker-{line['connection']}"} for line in during if line.get("opaque") in asked)


@pytest.fixture(scope="module", params=[*in_campaigns("4.9.7"), "5.3.2"])
def version(request: pytest.FixtureRequest) -> str:
    """Of the clients, and of the broker that answered them."""
    return str(request.param)


@pytest.fixture(scope="module")
def lines(version: str) -> dict[str, list[dict[str, Any]]]:
    """The lines of each scenario, in the order of their times."""
    return {
        scenario: sorted(frames(version, scenario), key=lambda line: float(line["time"]))
        for scenario in SCENARIOS
        if scenario not in (OF_4 if version.startswith("5") else OF_5)
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
        pytest.skip("it is not there, or not whole, with this version")
    named = re.compile(f"_{re.sub('^(binary|vip)_', '', scenario)}_|_{scenario}_")
    replay = Replay(port, scenario in WAITS, named, answers_of(lines[scenario]), reset=scenario in RESETS)
    try:
        for line in lines[scenario]:
            replay.line(line)
        replay.end()
    finally:
        for client in replay.clients.values():
            client.close()
    assert replay.compared >= 2
