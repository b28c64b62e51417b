"""What tools ask a broker over the remoting port: topics, groups, positions, connections, tables; what is refused."""

import base64
import json
import re
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.documents import java_json
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.store.fronts.remoting.unserved import REASONS
from tests.contract.remoting.classic_client import Answer, ClassicClient
from tests.contract.remoting.conftest import Connect, classic, port_of

code = RequestCode


def topic_fields(name: str, read: int = 2, write: int = 3, perm: int = 6) -> dict[str, object]:
    numbers = {"readQueueNums": read, "writeQueueNums": write, "perm": perm, "topicSysFlag": 0, "order": "false"}
    return {"topic": name, "defaultTopic": "TBW102", "topicFilterType": "SINGLE_TAG", **numbers}


def make_topic(client: ClassicClient, name: str, **numbers: int) -> None:
    client.ask(code.UPDATE_AND_CREATE_TOPIC, topic_fields(name, **numbers))


def make_group(client: ClassicClient, name: str, **more: object) -> None:
    client.ask(code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=json.dumps({"groupName": name, **more}).encode())


def by_queue(answer: Answer, key: str = "offsetTable") -> dict[int, Any]:
    """A table whose keys are queues, which only fastjson reads: the numbers are taken out of the keys."""
    text = answer.body.decode()
    for queue in range(8):
        text = text.replace(f'{{"brokerName":"broker-a","queueId":{queue},"topic":"', f'"{queue}')
        text = text.replace('"}:', '":')
    found = json.loads(text)[key]
    return {int(name[0]): value for name, value in found.items()}


def test_a_topic_is_made_changed_shown_and_deleted_and_survives(tmp_path: Path) -> None:
    with classic(tmp_path / "store") as store:
        with ClassicClient(port_of(store)) as client:
            make_topic(client, "t")
            make_topic(client, "t", perm=4)
            make_topic(client, "gone")
            client.ask(code.DELETE_TOPIC_IN_BROKER, {"topic": "gone"})
        store.restart()
        with ClassicClient(port_of(store)) as client:
            shown = json.loads(client.ask(code.GET_TOPIC_CONFIG, {"topic": "t"}).body)
            assert (shown["readQueueNums"], shown["writeQueueNums"], shown["perm"]) == (2, 3, 4)
            missing = client.call(code.GET_TOPIC_CONFIG, {"topic": "gone"})
            assert missing.code == ResponseCode.TOPIC_NOT_EXIST
            table = java_json.loads(client.ask(code.GET_ALL_TOPIC_CONFIG).body)
            assert table["topicConfigTable"].keys() >= {"t"}
            assert table["dataVersion"]["stateVersion"] == 1


def test_attributes_of_a_group_are_changed_one_by_one_and_stay_where_none_is_named(client: ClassicClient) -> None:
    def put(retries: int, **attributes: str) -> Answer:
        body = {"groupName": "factors", "retryMaxTimes": retries, "attributes": attributes}
        return client.call(code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, json.dumps(body).encode())

    def shown() -> tuple[int, dict[str, str]]:
        found = json.loads(client.ask(code.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "factors"}).body)
        return found["retryMaxTimes"], found["attributes"]

    refused = put(1, **{"-ackDurability": ""})
    assert (refused.code, refused.remark) == (
        ResponseCode.SYSTEM_ERROR, "only add attribute is supported while creating topic. key: ackDurability"
    )  # fmt: skip
    assert put(2, **{"+priority.factor": "50", "+ackDurability": "DISK"}).code == ResponseCode.SUCCESS
    assert shown() == (2, {"priority.factor": "50", "ackDurability": "DISK"})
    assert put(3).code == ResponseCode.SUCCESS
    assert shown() == (3, {"priority.factor": "50", "ackDurability": "DISK"}), "what is not named stays"
    assert put(4, **{"-priority.factor": ""}).code == ResponseCode.SUCCESS
    for wrong in ({"priority.factor": "1"}, {"+priority.factor": "101"}, {"+colour": "red"}, {"-priority.factor": ""}):
        assert put(5, **wrong).code == ResponseCode.SYSTEM_ERROR, wrong
    assert shown() == (4, {"ackDurability": "DISK"})


def test_attributes_of_a_topic_are_changed_one_by_one_and_wrong_ones_change_nothing(client: ClassicClient) -> None:
    def attributes(changes: str | None = None) -> dict[str, str]:
        if changes is not None:
            client.ask(code.UPDATE_AND_CREATE_TOPIC, topic_fields("kinds") | {"attributes": changes})
        shown: dict[str, str] = json.loads(client.ask(code.GET_TOPIC_CONFIG, {"topic": "kinds"}).body)["attributes"]
        return shown

    assert attributes("+message.type=FIFO,+reserve.time=24") == {"message.type": "FIFO", "reserve.time": "24"}
    assert attributes("+reserve.time=48,-message.type") == {"reserve.time": "48"}
    make_topic(client, "kinds", read=4)
    assert attributes() == {"reserve.time": "48"}, "what is not named stays"
    for wrong in ("+color=red", "+reserve.time=soon", "-message.type", "+queue.type=BatchCQ", "reserve.time=1"):
        refused = client.call(code.UPDATE_AND_CREATE_TOPIC, topic_fields("kinds", read=9) | {"attributes": wrong})
        assert refused.code == ResponseCode.SYSTEM_ERROR, wrong
    shown = json.loads(client.ask(code.GET_TOPIC_CONFIG, {"topic": "kinds"}).body)
    assert (shown["attributes"], shown["readQueueNums"]) == ({"reserve.time": "48"}, 4)
    listed = {"topicConfigList": [{"topicName": "kinds", "perm": 4, "attributes": {}}]}
    client.ask(code.UPDATE_AND_CREATE_TOPIC_LIST, {}, json.dumps(listed).encode())
    assert attributes() == {"reserve.time": "48"}


@pytest.mark.slow
def test_a_group_is_made_changed_shown_and_deleted_and_survives(tmp_path: Path) -> None:
    with classic(tmp_path / "store") as store:
        with ClassicClient(port_of(store)) as client:
            make_group(client, "g", retryMaxTimes=3)
            make_group(client, "g", retryMaxTimes=5)
            make_group(client, "gone")
            client.ask(code.DELETE_SUBSCRIPTIONGROUP, {"groupName": "gone", "cleanOffset": "true"})
        store.restart()
        with ClassicClient(port_of(store)) as client:
            assert json.loads(client.ask(code.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "g"}).body)["retryMaxTimes"] == 5
            missing = client.call(code.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "gone"})
            assert missing.code == ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
            assert client.ask(code.GET_TOPIC_CONFIG, {"topic": "%RETRY%g"}).body
            table = java_json.loads(client.ask(code.GET_ALL_SUBSCRIPTIONGROUP_CONFIG).body)
            assert "g" in table["subscriptionGroupTable"]
            assert "forbiddenTable" in table


@pytest.mark.parametrize(
    "wrong",
    [
        {"read": 0},
        {"write": 5_000},
        {"perm": 8},
        {"name": "TBW102"},
        {"name": "with blank"},
        {"name": "x" * 128},
    ],
)
def test_a_topic_that_makes_no_sense_is_refused(client: ClassicClient, wrong: dict[str, Any]) -> None:
    answer = client.call(code.UPDATE_AND_CREATE_TOPIC, topic_fields(**{"name": "bad", **wrong}))
    assert answer.code != ResponseCode.SUCCESS
    assert answer.remark
    assert client.call(code.GET_TOPIC_CONFIG, {"topic": "bad"}).code == ResponseCode.TOPIC_NOT_EXIST


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"groupName":7}', b'{"groupName":"g","retryMaxTimes":"x"}'])
def test_a_group_that_makes_no_sense_is_refused(client: ClassicClient, body: bytes) -> None:
    answer = client.call(code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert answer.remark


def test_where_queues_and_groups_stand_and_resets(client: ClassicClient) -> None:
    make_topic(client, "stand", read=2, write=2)
    make_group(client, "stand-g")
    for number in range(5):
        assert client.send("stand", b"%d" % number, queue_id=number % 2).code == 0
    queues = by_queue(client.ask(code.GET_TOPIC_STATS_INFO, {"topic": "stand"}))
    assert {queue: (one["minOffset"], one["maxOffset"]) for queue, one in queues.items()} == {0: (0, 3), 1: (0, 2)}
    assert all(one["lastUpdateTimestamp"] > 0 for one in queues.values())
    reset = {"group": "stand-g", "topic": "stand", "isForce": "true"}
    moved = by_queue(client.ask(code.INVOKE_BROKER_TO_RESET_OFFSET, {**reset, "timestamp": -1}))
    assert moved == {0: 3, 1: 2}
    moved = by_queue(client.ask(code.INVOKE_BROKER_TO_RESET_OFFSET, {**reset, "timestamp": 0}))
    assert moved == {0: 0, 1: 0}
    one = {**reset, "timestamp": 0, "queueId": 1, "offset": 1}
    assert by_queue(client.ask(code.INVOKE_BROKER_TO_RESET_OFFSET, one)) == {1: 1}
    stats = by_queue(client.ask(code.GET_CONSUME_STATS, {"consumerGroup": "stand-g", "topic": "stand"}))
    assert {queue: (one["consumerOffset"], one["brokerOffset"]) for queue, one in stats.items()} == {
        0: (0, 3),
        1: (1, 2),
    }
    assert client.ask(code.CLONE_GROUP_OFFSET, {"srcGroup": "stand-g", "destGroup": "stand-h"}).code == 0
    groups = json.loads(client.ask(code.QUERY_TOPIC_CONSUME_BY_WHO, {"topic": "stand"}).body)["groupList"]
    assert groups == ["stand-g", "stand-h"]
    topics = json.loads(client.ask(code.QUERY_TOPICS_BY_CONSUMER, {"group": "stand-h"}).body)["topicList"]
    assert topics == ["stand"]
    table = java_json.loads(client.ask(code.GET_ALL_CONSUMER_OFFSET).body)
    assert table["offsetTable"]["stand@stand-g"] == {"0": 0, "1": 1}
    assert table["dataVersion"] == java_json.loads(client.ask(code.GET_ALL_CONSUMER_OFFSET).body)["dataVersion"]
    units = json.loads(
        client.ask(code.QUERY_CONSUME_QUEUE, {"topic": "stand", "queueId": 0, "index": 1, "count": 9}).body
    )
    assert (units["maxQueueIndex"], len(units["queueData"])) == (3, 2)


def test_who_is_connected(connect: Connect) -> None:
    client = connect("asks")
    make_topic(client, "meet")
    assert client.call(code.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "meet-g"}).code == 206
    assert client.call(code.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": "meet-p"}).code == 1
    other = connect("works")
    other.heartbeat(consumes={"meet-g": {"meet": "A || B"}}, produces=("meet-p",))
    body = json.loads(client.ask(code.GET_CONSUMER_CONNECTION_LIST, {"consumerGroup": "meet-g"}).body)
    assert [one["clientId"] for one in body["connectionSet"]] == ["works"]
    assert body["connectionSet"][0]["version"] == other.version
    assert "meet" in body["subscriptionTable"]
    body = json.loads(client.ask(code.GET_PRODUCER_CONNECTION_LIST, {"producerGroup": "meet-p"}).body)
    assert [one["clientId"] for one in body["connectionSet"]] == ["works"]
    assert "meet-p" in json.loads(client.ask(code.GET_ALL_PRODUCER_INFO).body)["data"]


def test_the_broker_of_itself_and_what_is_refused_by_name(client: ClassicClient) -> None:
    told = json.loads(client.ask(code.GET_BROKER_RUNTIME_INFO).body)["table"]
    assert told["brokerVersion"].isdigit()
    assert len(told["putTps"].split()) == 3
    settings = client.ask(code.GET_BROKER_CONFIG)
    assert b"brokerName=broker-a\n" in settings.body
    assert json.loads(settings.fields["version"])["counter"] == 0
    refused = client.call(code.UPDATE_BROKER_CONFIG, body=b"fileReservedTime=1\n")
    assert (refused.code, "broker.conf" in refused.remark) == (ResponseCode.NO_PERMISSION, True)
    assert client.call(code.VIEW_BROKER_STATS_DATA, {"statsName": "A", "statsKey": "B"}).remark == (
        "The stats <A> <B> not exist"
    )
    for done in (code.CLEAN_EXPIRED_CONSUMEQUEUE, code.CLEAN_UNUSED_TOPIC, code.DELETE_EXPIRED_COMMITLOG):
        assert client.ask(done).code == 0
    assert "TBW102" in json.loads(client.ask(code.GET_SYSTEM_TOPIC_LIST_FROM_BROKER).body)["topicList"]
    assert json.loads(client.ask(code.GET_BROKER_HA_STATUS).body)["master"] is True


@pytest.mark.slow
def test_a_java_slave_hears_how_far_delay_levels_are_delivered(tmp_path: Path) -> None:
    with classic(tmp_path / "store") as store:
        with ClassicClient(port_of(store)) as client:
            assert java_json.loads(client.ask(code.GET_ALL_DELAY_OFFSET).body)["offsetTable"] == {}
            make_topic(client, "slow", read=1, write=1)
            for number in range(2):
                assert client.send("slow", b"late", DELAY="1").code == 0
                assert client.pull("slow-g", "slow", number, suspend=20_000).body.count(b"late") == 1
            assert java_json.loads(client.ask(code.GET_ALL_DELAY_OFFSET).body)["offsetTable"] == {"1": 2}
        store.restart()
        with ClassicClient(port_of(store)) as client:
            assert java_json.loads(client.ask(code.GET_ALL_DELAY_OFFSET).body)["offsetTable"] == {"1": 2}


def test_how_much_comes_in_and_goes_out(client: ClassicClient) -> None:
    make_topic(client, "traffic", read=1, write=1)
    make_group(client, "traffic-g")
    stats = {"statsName": "TOPIC_PUT_NUMS", "statsKey": "traffic"}
    assert client.call(code.VIEW_BROKER_STATS_DATA, stats).code == ResponseCode.SYSTEM_ERROR
    for number in range(3):
        client.send("traffic", b"body-%d" % number)
    assert len(client.pull("traffic-g", "traffic", 0, 0).body) > 0

    def told(name: str, key: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            client.ask(code.VIEW_BROKER_STATS_DATA, {"statsName": name, "statsKey": key}).body
        )
        return found

    stored = told("TOPIC_PUT_NUMS", "traffic")
    assert {window: one["sum"] for window, one in stored.items()} == {"statsMinute": 3, "statsHour": 3, "statsDay": 3}
    assert 0 < stored["statsMinute"]["tps"] <= 0.3
    assert stored["statsMinute"]["avgpt"] == 1.0
    sizes = told("TOPIC_PUT_SIZE", "traffic")["statsMinute"]
    assert sizes["sum"] > 3 * len(b"body-0")
    assert sizes["avgpt"] == sizes["sum"] / 3
    assert told("GROUP_GET_NUMS", "traffic@traffic-g")["statsDay"]["sum"] == 3
    assert told("GROUP_GET_SIZE", "traffic@traffic-g")["statsDay"]["sum"] == sizes["sum"]
    client.commit("traffic-g", "traffic", 3)
    consumed = client.ask(code.GET_CONSUME_STATS, {"consumerGroup": "traffic-g", "topic": "traffic"}).body
    assert b'"consumeTps":0.' in consumed
    assert b'"consumeTps":0.0,' not in consumed


def test_many_topics_and_groups_are_made_at_once_or_none(client: ClassicClient) -> None:
    topics = [{"topicName": f"many{at}", "readQueueNums": 2, "writeQueueNums": 3, "perm": 6} for at in range(3)]
    client.ask(code.UPDATE_AND_CREATE_TOPIC_LIST, {}, json.dumps({"topicConfigList": topics}).encode())
    made = json.loads(client.ask(code.GET_TOPIC_CONFIG, {"topic": "many2"}).body)
    assert (made["readQueueNums"], made["writeQueueNums"]) == (2, 3)
    groups = [{"groupName": f"many-g{at}", "retryMaxTimes": at} for at in range(3)]
    body = json.dumps({"groupConfigList": groups}).encode()
    client.ask(code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, {}, body)
    made = json.loads(client.ask(code.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "many-g2"}).body)
    assert made["retryMaxTimes"] == 2
    many: tuple[dict[str, Any], ...] = (
        {"topicConfigList": [{"topicName": "half-made"}, {"topicName": "TBW102"}]},
        {"topicConfigList": [{"topicName": "half-made"}, {"topicName": "half made"}]},
        {"topicConfigList": [{"topicName": "half-made"}, {"topicName": "no-queues", "writeQueueNums": 0}]},
        {"topicConfigList": [{"topicName": "half-made"}, {"topicName": "perm", "perm": 8}]},
        {"topicConfigList": []},
        {},
    )
    for wrong in many:
        refused = client.call(code.UPDATE_AND_CREATE_TOPIC_LIST, {}, json.dumps(wrong).encode())
        assert refused.code not in (ResponseCode.SUCCESS, ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
    assert client.call(code.GET_TOPIC_CONFIG, {"topic": "half-made"}).code == ResponseCode.TOPIC_NOT_EXIST
    for wrong in ({"groupConfigList": [{"groupName": "half-g"}, {"groupName": "x", "retryMaxTimes": "7"}]}, {}):
        refused = client.call(code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, {}, json.dumps(wrong).encode())
        assert refused.code == ResponseCode.SYSTEM_ERROR
    assert client.call(code.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "half-g"}).code == 26


@pytest.mark.parametrize("value", ['"\\ud800"', '{"a":["x\\udfff"]}', "1e400", "NaN", "-Infinity"])
def test_what_no_file_can_say_is_refused(client: ClassicClient, value: str) -> None:
    """Fields that are not known are kept as they are: what they hold must be such that it can be written."""
    group = f'{{"groupName":"unsaid","later":{value}}}'
    many = f'{{"groupConfigList":[{group}]}}'
    topics = f'{{"topicConfigList":[{{"topicName":"unsaid-topic","later":{value}}}]}}'
    for request, body in (
        (code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, group),
        (code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, many),
        (code.UPDATE_AND_CREATE_TOPIC_LIST, topics),
    ):
        refused = client.call(request, {}, body.encode())
        assert refused.code == ResponseCode.SYSTEM_ERROR
        assert "incident" not in str(refused.remark)
        assert "no JSON object" in str(refused.remark)
    assert client.call(code.GET_SUBSCRIPTIONGROUP_CONFIG, {"group": "unsaid"}).code == 26


def test_how_far_in_time_a_group_is(client: ClassicClient) -> None:
    make_topic(client, "spans")
    before = time.time_ns() // 1_000_000
    for number in range(3):
        assert client.send("spans", b"%d" % number, 0).code == 0
    asked = {"topic": "spans", "group": "spans-g"}
    client.ask(code.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, json.dumps({"groupName": "spans-g"}).encode())
    assert client.commit("spans-g", "spans", 2).code == 0
    spans = json.loads(client.ask(code.QUERY_CONSUME_TIME_SPAN, asked).body)["consumeTimeSpanSet"]
    by_queue = {one["messageQueue"]["queueId"]: one for one in spans}
    full, empty = by_queue[0], by_queue[1]
    assert before <= full["minTimeStamp"] <= full["consumeTimeStamp"] <= full["maxTimeStamp"]
    assert 0 <= full["delayTime"] < 1_000_000
    assert re.fullmatch(r"\d{4}-\d\d-\d\d#\d\d:\d\d:\d\d:\d{3}", full["maxTimeStampStr"])
    assert int(full["maxTimeStampStr"][-3:]) == full["maxTimeStamp"] % 1000
    assert (empty["minTimeStamp"], empty["maxTimeStamp"], empty["consumeTimeStamp"], empty["delayTime"]) == (0, 0, 0, 0)
    assert client.commit("spans-g", "spans", 3).code == 0
    spans = json.loads(client.ask(code.QUERY_CONSUME_TIME_SPAN, asked).body)["consumeTimeSpanSet"]
    assert all(one["delayTime"] == 0 for one in spans)
    unknown = client.call(code.QUERY_CONSUME_TIME_SPAN, asked | {"topic": "nowhere"})
    assert unknown.code == ResponseCode.TOPIC_NOT_EXIST


def test_what_a_group_subscribes_and_which_groups_pop(connect: Connect) -> None:
    client = connect("subscribes")
    client.heartbeat(consumes={"sub-g": {"sub": "A || B"}})
    asked = {"group": "sub-g", "topic": "sub"}
    said = json.loads(client.ask(code.QUERY_SUBSCRIPTION_BY_CONSUMER, asked).body)
    assert (said["group"], said["topic"], said["subscriptionData"]["subString"]) == ("sub-g", "sub", "A || B")
    said = json.loads(client.ask(code.QUERY_SUBSCRIPTION_BY_CONSUMER, asked | {"topic": "other"}).body)
    assert said == {"group": "sub-g", "topic": "other"}
    mode = {"consumerGroup": "sub-g", "topic": "sub", "mode": "POP", "popShareQueueNum": 0}
    client.ask(code.SET_MESSAGE_REQUEST_MODE, {}, json.dumps(mode).encode())
    table = json.loads(client.ask(code.GET_ALL_MESSAGE_REQUEST_MODE).body)["messageRequestModeMap"]
    assert table["sub"] == {"sub-g": mode}
    client.ask(code.SET_MESSAGE_REQUEST_MODE, {}, json.dumps(mode | {"mode": "PULL"}).encode())
    table = json.loads(client.ask(code.GET_ALL_MESSAGE_REQUEST_MODE).body)["messageRequestModeMap"]
    assert table["sub"] == {"sub-g": mode | {"mode": "PULL"}}


def test_a_slave_is_told_how_far_timers_are(client: ClassicClient) -> None:
    body = client.ask(code.GET_TIMER_CHECK_POINT).body
    read_ms, _, offset, master_offset, *version = struct.unpack(">7q", body)
    assert read_ms % 1000 == 0
    assert 0 <= offset == master_offset
    assert version == [0, 0, 0]
    counts = json.loads(client.ask(code.GET_TIMER_METRICS).body)
    assert counts["timingCount"] == {}
    assert set(counts["dataVersion"]) == {"counter", "stateVersion", "timestamp"}


def test_a_message_that_waits_is_recalled(client: ClassicClient) -> None:
    make_topic(client, "recalled")
    due = str(time.time_ns() // 1_000_000 + 3_600_000)
    sent = client.send("recalled", b"late", TIMER_DELIVER_MS=due, UNIQ_KEY="7F0000017B8B4E0E2F2A6F4CBE4C0001")
    assert sent.code == 0
    handle = sent.fields["recallHandle"]
    version, topic, broker, when, key = base64.urlsafe_b64decode(handle).decode().split(" ")
    assert (version, topic, broker, key) == ("v1", "recalled", "broker-a", "7F0000017B8B4E0E2F2A6F4CBE4C0001")
    assert abs(int(when) - int(due)) <= 1_000
    asked = {"topic": "recalled", "recallHandle": handle, "producerGroup": "producers"}
    assert client.ask(code.RECALL_MESSAGE, asked).fields["msgId"] == key
    assert client.call(code.RECALL_MESSAGE, asked | {"recallHandle": "nonsense"}).code == ResponseCode.MESSAGE_ILLEGAL
    assert "recallHandle" not in client.send("recalled", b"now").fields


@pytest.mark.parametrize("unserved", sorted(REASONS))
def test_what_has_no_meaning_here_is_refused_by_name(client: ClassicClient, unserved: RequestCode) -> None:
    refused = client.call(unserved, {})
    assert refused.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert refused.remark.startswith(f" request type {int(unserved)} not supported: {unserved.name}: ")


def test_every_code_is_served_or_refused_with_a_reason(client: ClassicClient) -> None:
    unexplained = []
    for one in RequestCode:
        answer = client.call(one, {})
        if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED and one.name not in (answer.remark or ""):
            unexplained.append(one.name)
    assert unexplained == []
