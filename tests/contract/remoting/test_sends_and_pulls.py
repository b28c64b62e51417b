"""Classic clients send and pull: what is stored, what comes back, and what is refused with which code."""

import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tandemmq.client import Consumer
from tandemmq.common.documents import java_json
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.common.wire.remoting.frames import Serialization
from tandemmq.common.wire.remoting.versions import V4_9_7
from tandemmq.store.format import properties as names
from tandemmq.store.format.batch import encode_client_batch
from tandemmq.store.format.message_id import decode_offset_id
from tests.contract.remoting.classic_client import ClassicClient, records, send_header
from tests.contract.remoting.conftest import Connect, classic, port_of
from tests.contract.store_process import StoreProcess

LONG_NAMES = {
    "producerGroup": "p",
    "topic": "long-names",
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": 4,
    "queueId": -1,
    "sysFlag": 0,
    "bornTimestamp": 5,
    "flag": 7,
    "properties": "TAGS\1A",
    "reconsumeTimes": 0,
    "unitMode": False,
}
"""The header of SEND_MESSAGE."""


def test_a_message_is_sent_and_pulled(client: ClassicClient, classic_store: StoreProcess) -> None:
    sent = client.send("plain", b"hello", 2, TAGS="A", KEYS="k1", colour="gr\u00fcn", UNIQ_KEY="ID1")
    assert (sent.code, sent.fields["queueId"], sent.fields["queueOffset"]) == (0, "2", "0")
    assert (sent.fields["MSG_REGION"], sent.fields["TRACE_ON"]) == ("DefaultRegion", "true")
    host, offset = decode_offset_id(sent.fields["msgId"])
    assert host.port == port_of(classic_store)
    answer = client.pull("readers", "plain", 0, 2)
    assert answer.remark == "FOUND"
    assert {name: answer.fields[name] for name in ("nextBeginOffset", "minOffset", "maxOffset")} == {
        "nextBeginOffset": "1",
        "minOffset": "0",
        "maxOffset": "1",
    }
    (record,) = records(answer)
    assert (record.body, record.queue_id, record.physical_offset) == (b"hello", 2, offset)
    given = record.properties
    assert given.items() >= {"TAGS": "A", "KEYS": "k1", "colour": "gr\u00fcn", "UNIQ_KEY": "ID1"}.items()
    assert given[names.CLUSTER] == "DefaultCluster"
    seen = client.ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": offset})
    assert seen.body == record.encode()


@pytest.mark.parametrize("serialization", Serialization)
def test_headers_are_taken_in_both_serializations(connect: Connect, serialization: Serialization) -> None:
    client = connect(serialization=serialization)
    topic = f"serialized-{serialization.name}"
    sent = client.send(topic, b"one")
    assert (sent.code, sent.serialization) == (0, serialization)
    assert [one.body for one in records(client.pull("readers", topic, 0))] == [b"one"]


def test_a_header_with_long_names_is_taken(client: ClassicClient) -> None:
    sent = client.ask(RequestCode.SEND_MESSAGE, LONG_NAMES, b"x")
    (record,) = records(client.pull("readers", "long-names", 0, int(sent.fields["queueId"])))
    assert (record.flag, record.born_timestamp, record.tags) == (7, 5, "A")


def test_a_batch_is_stored_in_one_queue(client: ClassicClient) -> None:
    parts = [(0, b"%d" % number, names.encode({"UNIQ_KEY": f"B{number}", "WAIT": "true"})) for number in range(5)]
    header = send_header("batches", 1, "producers", {"WAIT": "true"}) | {"m": "true"}
    sent = client.ask(RequestCode.SEND_BATCH_MESSAGE, header, encode_client_batch(parts))
    assert len(sent.fields["msgId"].split(",")) == 5
    found = records(client.pull("readers", "batches", 0, 1))
    assert [one.body for one in found] == [b"0", b"1", b"2", b"3", b"4"]
    assert [one.unique_key for one in found] == ["B0", "B1", "B2", "B3", "B4"]
    assert "WAIT" not in found[0].properties
    for one in found:  # as to every message: by the cluster a reply to it finds its way
        added = [one.properties[name] for name in ("MSG_REGION", "TRACE_ON", "CLUSTER")]
        assert added == ["DefaultRegion", "true", "DefaultCluster"]


def test_one_way_sends_are_not_answered_but_stored(client: ClassicClient) -> None:
    client.send("one-way", b"first")
    for number in range(20):
        client.tell(RequestCode.SEND_MESSAGE_V2, send_header("one-way", 0, "p", {}), b"%d" % number)
    assert client.send("one-way", b"last").fields["queueOffset"] == "21"


@pytest.mark.parametrize(
    ("topic", "queue_id", "body", "given", "old", "new"),
    [
        ("refused", 7, b"x", {}, ResponseCode.SYSTEM_ERROR, ResponseCode.INVALID_PARAMETER),
        ("refused", 0, bytes(40_000), {}, ResponseCode.MESSAGE_ILLEGAL, ResponseCode.MESSAGE_ILLEGAL),
        ("refused", 0, b"x", {"p": "x" * 33_000}, ResponseCode.MESSAGE_ILLEGAL, ResponseCode.MESSAGE_ILLEGAL),
        ("SCHEDULE_TOPIC_XXXX", 0, b"x", {}, ResponseCode.NO_PERMISSION, ResponseCode.NO_PERMISSION),
        ("no topic!", 0, b"x", {}, ResponseCode.MESSAGE_ILLEGAL, ResponseCode.MESSAGE_ILLEGAL),
        (
            "refused",
            0,
            b"x",
            {"TIMER_DELAY_SEC": "9999999"},
            ResponseCode.MESSAGE_ILLEGAL,
            ResponseCode.MESSAGE_ILLEGAL,
        ),
    ],
)
def test_what_cannot_be_stored_is_refused(
    connect: Connect, topic: str, queue_id: int, body: bytes, given: dict[str, str], old: int, new: int
) -> None:
    for version, code in ((V4_9_7, old), (477, new)):
        client = connect(version=version)
        client.send("refused")
        answer = client.send(topic, body, queue_id, **given)
        assert answer.code == code, answer.remark
        assert answer.remark


def test_a_field_that_is_missing_is_named(client: ClassicClient) -> None:
    answer = client.call(RequestCode.SEND_MESSAGE_V2, {"a": "p", "b": "t"}, b"x")
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "the custom field <e> is null" in answer.remark


def test_statuses_of_pulls(client: ClassicClient) -> None:
    for number in range(3):
        client.send("statuses", b"%d" % number, TAGS="B" if number else "A")
    found = [(client.pull("g", "statuses", offset), offset) for offset in (0, 3, 9)]
    assert [(answer.code, int(answer.fields["nextBeginOffset"])) for answer, _ in found] == [
        (ResponseCode.SUCCESS, 3),
        (ResponseCode.PULL_NOT_FOUND, 3),
        (ResponseCode.PULL_OFFSET_MOVED, 3),
    ]
    none = client.pull("g", "statuses", 0, expression="C")
    assert (none.code, none.fields["nextBeginOffset"]) == (ResponseCode.PULL_RETRY_IMMEDIATELY, "3")
    assert [one.body for one in records(client.pull("g", "statuses", 0, expression="A || C"))] == [b"0"]
    empty = client.pull("g", "statuses", 0, 1)
    assert (empty.code, empty.fields["nextBeginOffset"]) == (ResponseCode.PULL_NOT_FOUND, "0")
    assert client.pull("g", "nowhere", 0).code == ResponseCode.TOPIC_NOT_EXIST
    assert client.pull("g", "statuses", 0, 99).code == ResponseCode.INVALID_PARAMETER


def test_a_held_pull_is_woken_by_a_message_and_holds_up_nothing(connect: Connect) -> None:
    client, other = connect(), connect()
    client.send("held", b"0", TAGS="A")
    assert [one.body for one in records(client.pull("g", "held", 0))] == [b"0"]  # from here on there is the group
    held = client.begin_pull("g", "held", 1, suspend=60_000, expression="A")
    assert client.send("elsewhere").code == 0
    other.send("held", b"of another tag", TAGS="B")
    assert not held.done()
    other.send("held", b"1", TAGS="A")
    assert [one.body for one in records(held.result(60))] == [b"1"]


def test_a_held_pull_ends_by_its_time(client: ClassicClient) -> None:
    client.send("held-briefly", b"0")
    begun = time.monotonic()
    answer = client.pull("g", "held-briefly", 1, suspend=300)
    assert (answer.code, answer.remark) == (ResponseCode.PULL_NOT_FOUND, "OFFSET_OVERFLOW_ONE")
    assert time.monotonic() - begun >= 0.29


def test_sql_filters(client: ClassicClient) -> None:
    for number in range(10):
        client.send("sql", b"%d" % number, age=str(number))
    found = client.pull("g", "sql", 0, expression="age > 3 AND age < 6", kind="SQL92")
    assert [one.body for one in records(found)] == [b"4", b"5"]
    assert found.fields["nextBeginOffset"] == "10"
    held = client.begin_pull("g", "sql", 10, expression="age = 42", kind="SQL92", suspend=60_000)
    client.send("sql", b"no", age="1")
    client.send("sql", b"yes", age="42")
    assert [one.body for one in records(held.result(60))] == [b"yes"]
    bad = client.pull("g", "sql", 0, expression="age >", kind="SQL92")
    assert bad.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED


def test_offsets(client: ClassicClient) -> None:
    client.send("offsets", b"0")
    between = time.time_ns() // 1_000_000 + 1
    while time.time_ns() // 1_000_000 <= between:
        time.sleep(0.001)
    client.send("offsets", b"1")
    where = {"topic": "offsets", "queueId": 0}
    assert client.ask(RequestCode.GET_MAX_OFFSET, where).fields == {"offset": "2"}
    assert client.ask(RequestCode.GET_MIN_OFFSET, where).fields == {"offset": "0"}
    assert client.ask(RequestCode.GET_MAX_OFFSET, {"topic": "unknown", "queueId": 0}).fields == {"offset": "0"}
    first = records(client.pull("g", "offsets", 0))[0].store_timestamp
    assert client.ask(RequestCode.GET_EARLIEST_MSG_STORETIME, where).fields == {"timestamp": str(first)}
    assert client.ask(RequestCode.GET_EARLIEST_MSG_STORETIME, where | {"queueId": 3}).fields == {"timestamp": "-1"}

    def at(time_ms: int, boundary: str = "LOWER") -> str:
        fields = where | {"timestamp": time_ms, "boundaryType": boundary}
        return client.ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, fields).fields["offset"]

    assert [at(0), at(first), at(between), at(between + 3_600_000)] == ["0", "0", "1", "2"]
    assert [at(first, "UPPER"), at(between + 3_600_000, "UPPER")] == ["0", "1"]


def test_positions_of_groups(client: ClassicClient) -> None:
    for number in range(4):
        client.send("positions", b"%d" % number, number % 2)
    assert client.position("fresh", "positions").fields == {"offset": "0"}, "a young topic begins at 0"
    assert client.position("fresh", "no-such-topic").code == ResponseCode.QUERY_NOT_FOUND
    assert client.commit("fresh", "positions", 2).code == 0
    assert client.position("fresh", "positions").fields == {"offset": "2"}
    assert client.position("fresh", "positions", 1).fields == {"offset": "0"}, "it has said nothing of that queue"
    client.heartbeat(consumes={"fresh": {"positions": "*"}})
    client.commit("fresh", "positions", 1)
    assert client.position("fresh", "positions").fields == {"offset": "2"}, "a push consumer only goes on"
    client.pull("fresh", "positions", 2, 1, commit=2)
    assert client.position("fresh", "positions", 1).fields == {"offset": "2"}, "a pull brings its position along"


@pytest.mark.slow
def test_a_program_that_pulls_goes_back_and_that_survives_a_kill(tmp_path: Path) -> None:
    def stands(client: ClassicClient) -> tuple[Mapping[str, str], Any]:
        table = java_json.loads(client.ask(RequestCode.GET_ALL_CONSUMER_OFFSET).body)  # as slaves of RocketMQ read it
        return client.position("seeks", "seen").fields, table["offsetTable"]["seen@seeks"]

    with classic(tmp_path / "store") as store:
        with ClassicClient(port_of(store)) as client:
            for number in range(4):
                client.send("seen", b"%d" % number)
            client.heartbeat(consumes={"seeks": {"seen": "*"}}, consumeType="CONSUME_ACTIVELY")
            assert [client.commit("seeks", "seen", offset).code for offset in (4, 1)] == [0, 0]
            assert stands(client) == ({"offset": "1"}, {"0": 1})
        store.restart(signal.SIGKILL)
        with ClassicClient(port_of(store)) as client:
            assert stands(client) == ({"offset": "1"}, {"0": 1})
            assert client.commit("seeks", "seen", 3).code == 0
            assert client.commit("seeks", "seen", 0).code == 0, "a tool, which is no consumer"
            assert stands(client) == ({"offset": "0"}, {"0": 0})


def test_a_position_does_not_go_back_by_a_client_that_has_not_heard_of_it(connect: Connect) -> None:
    """A lite pull consumer commits every five seconds where it was, although an operator has it skip what is there."""
    pulls, tool = connect("pulls"), connect("tool")
    for number in range(4):
        tool.send("skipped", b"%d" % number)
    pulls.heartbeat(consumes={"skips": {"skipped": "*"}}, consumeType="CONSUME_ACTIVELY")
    pulls.commit("skips", "skipped", 1)
    tool.commit("skips", "skipped", 4)
    assert pulls.commit("skips", "skipped", 1).code == 0
    assert tool.position("skips", "skipped").fields == {"offset": "4"}
    assert pulls.position("skips", "skipped").fields == {"offset": "4"}
    pulls.commit("skips", "skipped", 1)
    assert tool.position("skips", "skipped").fields == {"offset": "1"}, "it knows now, and goes back"


def test_a_position_does_not_go_back_where_messages_are_acknowledged(
    client: ClassicClient, classic_store: StoreProcess
) -> None:
    for number in range(3):
        client.send("acknowledged", b"%d" % number)
    assert client.commit("receivers", "acknowledged", 2).code == 0
    with Consumer(classic_store.address, group="receivers", topic="acknowledged") as consumer:
        message = next(iter(consumer))
        assert message.body == b"2"
        message.ack()
    assert client.commit("receivers", "acknowledged", 0).code == 0
    assert client.position("receivers", "acknowledged").fields == {"offset": "3"}


def test_positions_that_cannot_be_told_or_kept(client: ClassicClient, tmp_path: Path) -> None:
    client.send("kept", b"x")
    asked = {"consumerGroup": "new", "topic": "kept", "queueId": 0, "setZeroIfNotFound": False}
    assert client.call(RequestCode.QUERY_CONSUMER_OFFSET, asked).code == ResponseCode.QUERY_NOT_FOUND
    assert client.commit("new", "no-such-topic", 1).code == ResponseCode.TOPIC_NOT_EXIST
    with classic(tmp_path / "strict", auto_create_subscription_group=False) as store:
        strict = ClassicClient(port_of(store))
        strict.send("kept", b"x")
        assert strict.commit("new", "kept", 1).code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        assert strict.pull("new", "kept", 0).code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
        strict.close()


def test_a_slave_takes_no_messages_and_says_so_that_producers_go_elsewhere(tmp_path: Path) -> None:
    with classic(tmp_path / "slave", broker_role="SLAVE", broker_id=1) as store:
        client = ClassicClient(port_of(store))
        for answer in (client.send("t", b"x"), client.call(RequestCode.SEND_MESSAGE, LONG_NAMES, b"x")):
            assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE, answer.remark
        assert client.heartbeat(consumes={"g": {"t": "*"}}).code == 0
        client.close()


def test_an_unknown_code_is_refused_by_name(client: ClassicClient) -> None:
    answer = client.call(4711)
    assert (answer.code, answer.remark) == (3, " request type 4711 not supported")


def test_queries(client: ClassicClient) -> None:
    client.send("queries", b"a", KEYS="one two", UNIQ_KEY="U1")
    client.send("queries", b"b", KEYS="two", UNIQ_KEY="U2")

    def query(key: str, *, unique: bool = False) -> list[bytes]:
        fields = {"topic": "queries", "key": key, "maxNum": 32, "beginTimestamp": 0, "endTimestamp": 1 << 62}
        if unique:
            fields["_UNIQUE_KEY_QUERY"] = "true"
        answer = client.call(RequestCode.QUERY_MESSAGE, fields)
        assert set(answer.fields) == {"indexLastUpdateTimestamp", "indexLastUpdatePhyoffset"}
        return [one.body for one in records(answer)] if answer.code == 0 else [str(answer.code).encode()]

    assert sorted(query("two")) == [b"a", b"b"]
    assert query("U1", unique=True) == [b"a"]
    assert query("nothing") == [b"22"]
    assert client.call(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": 3}).code == ResponseCode.SYSTEM_ERROR
