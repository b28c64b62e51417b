"""Classic consumers: who is there, who is told, locks, messages sent back, positions that are reset."""

import json

from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.store.format import properties as names
from tests.contract.remoting.classic_client import Answer, ClassicClient, document, records, send_header
from tests.contract.remoting.conftest import Connect
from tests.contract.rocketmq5.answering_consumer import STACK, AnsweringConsumer
from tests.contract.rocketmq5.v2_client import V2Client
from tests.contract.store_process import StoreProcess


def consumers(client: ClassicClient, group: str) -> Answer:
    """GET_CONSUMER_LIST_BY_GROUP."""
    return client.call(RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": group})


def test_all_consumers_of_a_group_hear_who_comes_and_goes(connect: Connect) -> None:
    first, second = connect("one"), connect("two")
    said = first.heartbeat(consumes={"members": {"members-topic": "*"}})
    assert said.fields["IS_SUPPORT_HEART_BEAT_V2"] == "false"
    assert first.next_asked(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED).fields == {"consumerGroup": "members"}
    assert document(consumers(first, "members")) == {"consumerIdList": ["one"]}
    second.heartbeat(consumes={"members": {"members-topic": "*"}})
    for client in (first, second):
        client.next_asked(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED)
    assert document(consumers(first, "members")) == {"consumerIdList": ["one", "two"]}
    second.close()
    first.next_asked(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED)
    assert document(consumers(first, "members")) == {"consumerIdList": ["one"]}
    first.ask(RequestCode.UNREGISTER_CLIENT, {"clientID": "one", "consumerGroup": "members"})
    nobody = consumers(first, "members")
    assert (nobody.code, nobody.remark) == (ResponseCode.SYSTEM_ERROR, "no consumer for this group, members")


def test_a_repeated_heartbeat_tells_nobody_and_another_subscription_does(client: ClassicClient) -> None:
    client.heartbeat(consumes={"repeats": {"t": "A"}})
    client.next_asked(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED)
    client.heartbeat(consumes={"repeats": {"t": "A"}})
    assert client.asked.empty()
    client.heartbeat(consumes={"repeats": {"t": "B"}})
    client.next_asked(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED)


def test_a_heartbeat_that_makes_no_sense_is_refused(client: ClassicClient) -> None:
    for body in (b"", b"[1]", b"{}", b'{"clientID": 5}', b'{"clientID":"c","consumerDataSet":[{"groupName":7}]}'):
        assert client.call(RequestCode.HEART_BEAT, {}, body).code == ResponseCode.SYSTEM_ERROR
    assert client.send("after-bad-heartbeats").code == 0


def test_the_subscription_of_the_heartbeat_filters_pulls(client: ClassicClient) -> None:
    for tag in "ABA":
        client.send("subscribed", tag.encode(), TAGS=tag)
    client.heartbeat(consumes={"subscribers": {"subscribed": "A"}})
    found = records(client.pull("subscribers", "subscribed", 0, expression=None))
    assert [one.body for one in found] == [b"A", b"A"]
    everything = records(client.pull("unheard-of", "subscribed", 0, expression=None))
    assert [one.body for one in everything] == [b"A", b"B", b"A"], "a client filters tags itself"
    unknown = client.pull("unheard-of", "subscribed", 0, expression=None, kind="SQL92")
    assert unknown.code == ResponseCode.SUBSCRIPTION_NOT_EXIST


def test_filters_are_checked_when_a_client_asks(client: ClassicClient) -> None:
    def check(expression: str) -> int:
        data = {"topic": "t", "subString": expression, "expressionType": "SQL92"}
        body = {"clientId": "c", "group": "g", "subscriptionData": data}
        return client.call(RequestCode.CHECK_CLIENT_CONFIG, {}, json.dumps(body).encode()).code

    assert (check("a > 1"), check("a >")) == (ResponseCode.SUCCESS, ResponseCode.SUBSCRIPTION_PARSE_FAILED)


def lock(client: ClassicClient, code: int, queues: list[int]) -> Answer:
    """LOCK_BATCH_MQ or UNLOCK_BATCH_MQ."""
    named = [{"topic": "locked", "brokerName": "broker-a", "queueId": queue} for queue in queues]
    body = {"clientId": client.client_id, "consumerGroup": "lockers", "mqSet": named}
    return client.ask(code, None, json.dumps(body).encode())


def test_queues_are_locked_by_one_client_at_a_time(connect: Connect) -> None:
    first, second = connect("first"), connect("second")

    def locked(client: ClassicClient, *queues: int) -> list[int]:
        answer = document(lock(client, RequestCode.LOCK_BATCH_MQ, list(queues)))["lockOKMQSet"]
        assert all(one["brokerName"] == "broker-a" and one["topic"] == "locked" for one in answer)
        return sorted(one["queueId"] for one in answer)

    assert locked(first, 0, 1) == [0, 1]
    assert locked(second, 1, 2) == [2]
    assert locked(first, 0, 1, 2) == [0, 1], "again its own"
    lock(second, RequestCode.UNLOCK_BATCH_MQ, [0, 1])
    assert locked(second, 0, 1) == [], "only the holder gives back"
    lock(first, RequestCode.UNLOCK_BATCH_MQ, [1])
    assert locked(second, 0, 1) == [1]


def send_back(client: ClassicClient, group: str, offset: int, level: int, most: int = 16) -> Answer:
    """CONSUMER_SEND_MSG_BACK."""
    fields = {"group": group, "offset": offset, "delayLevel": level, "originMsgId": "x", "originTopic": "t"}
    fields |= {"unitMode": False, "maxReconsumeTimes": most}
    return client.call(RequestCode.CONSUMER_SEND_MSG_BACK, fields)


def test_a_message_that_is_sent_back_comes_again_and_at_last_is_a_dead_letter(client: ClassicClient) -> None:
    client.heartbeat(consumes={"failing": {"fails": "*"}})
    client.send("fails", b"x", UNIQ_KEY="FAILS")
    (first,) = records(client.pull("failing", "fails", 0))
    assert send_back(client, "failing", first.physical_offset, 1, 1).code == 0
    (again,) = records(client.pull("failing", "%RETRY%failing", 0, suspend=60_000))
    assert (again.reconsume_times, again.properties[names.RETRY_TOPIC], again.body) == (1, "fails", b"x")
    assert send_back(client, "failing", again.physical_offset, 1, 1).code == 0
    (dead,) = records(client.pull("undertaker", "%DLQ%failing", 0))
    assert (dead.body, dead.properties[names.RETRY_TOPIC]) == (b"x", "fails")
    assert send_back(client, "failing", 7, 1).code == ResponseCode.SYSTEM_ERROR, "nothing begins there"


def test_what_is_sent_back_is_told_by_topic_and_group(client: ClassicClient) -> None:
    stats = {"statsName": "SNDBCK_PUT_NUMS", "statsKey": "t@gives-back"}
    client.heartbeat(consumes={"gives-back": {"t": "*"}})
    client.send("t", b"x")
    assert client.call(RequestCode.VIEW_BROKER_STATS_DATA, stats).code == ResponseCode.SYSTEM_ERROR
    (given,) = records(client.pull("gives-back", "t", 0))
    assert send_back(client, "gives-back", given.physical_offset, 1).code == 0
    assert send_back(client, "gives-back", 7, 1).code == ResponseCode.SYSTEM_ERROR
    told = json.loads(client.ask(RequestCode.VIEW_BROKER_STATS_DATA, stats).body)
    assert {window: (one["sum"], one["avgpt"]) for window, one in told.items()} == {
        "statsMinute": (1, 1.0), "statsHour": (1, 1.0), "statsDay": (1, 1.0),
    }  # fmt: skip


def retried(client: ClassicClient, group: str, times: int, most: int, **given: str) -> Answer:
    """A send to a group's retry topic, as ordered consumers do it."""
    header = send_header(f"%RETRY%{group}", 0, "CLIENT_INNER_PRODUCER", {"RETRY_TOPIC": "ordered", **given})
    return client.call(RequestCode.SEND_MESSAGE_V2, header | {"j": times, "l": most}, b"given up")


def test_a_retry_that_a_consumer_sends_itself(client: ClassicClient) -> None:
    client.heartbeat(consumes={"lockers": {"ordered": "*"}})
    lock(client, RequestCode.LOCK_BATCH_MQ, [9])
    assert retried(client, "lockers", 0, 2).code == 0
    (again,) = records(client.pull("lockers", "%RETRY%lockers", 0))
    assert again.body == b"given up"
    assert retried(client, "lockers", 2, 2, DELAY="5").code == 0
    (dead,) = records(client.pull("undertaker", "%DLQ%lockers", 0))
    assert (dead.reconsume_times, dead.properties[names.DLQ_ORIGIN_TOPIC]) == (2, "ordered")
    assert names.DELAY not in dead.properties


def test_what_tools_ask_consumers_is_passed_on(connect: Connect) -> None:
    tool, consumer = connect("tool"), connect("asked")
    consumer.heartbeat(consumes={"asked": {"asked-topic": "*"}})
    consumer.answer = lambda request: request.answer(body=b'{"said":"%d"}' % request.code)
    where = {"consumerGroup": "asked", "clientId": "asked", "jstackEnable": "false"}
    assert tool.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, where).body == b'{"said":"307"}'
    sent = tool.send("asked-topic", b"look at this")
    given = {"consumerGroup": "asked", "clientId": "asked", "msgId": sent.fields["msgId"]}
    assert tool.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, given).body == b'{"said":"309"}'
    asked = consumer.next_asked(RequestCode.CONSUME_MESSAGE_DIRECTLY)
    assert asked.fields["brokerName"] == "broker-a"
    assert b"look at this" in asked.body
    absent = tool.call(RequestCode.GET_CONSUMER_RUNNING_INFO, where | {"clientId": "nobody"})
    assert (absent.code, absent.remark) == (ResponseCode.SYSTEM_ERROR, "The Consumer <asked> <nobody> not online")


def test_a_tool_hears_how_far_consumers_say_that_they_are(connect: Connect) -> None:
    tool, one, two = connect("tool"), connect("one"), connect("two")
    asking = {"topic": "far", "group": "far"}
    absent = tool.call(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, asking)
    assert (absent.code, "No Any Consumer online" in absent.remark) == (ResponseCode.SYSTEM_ERROR, True)
    for consumer in (one, two):
        consumer.heartbeat(consumes={"far": {"far": "*"}})
    place = b'{"brokerName":"broker-a","queueId":1,"topic":"far"}'
    one.answer = lambda request: request.answer(body=b'{"consumerTable":{},"messageQueueTable":{%s:42}}' % place)
    two.answer = lambda request: request.answer(ResponseCode.SYSTEM_ERROR, remark="not now")
    told = tool.ask(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, asking)
    assert told.body == b'{"consumerTable":{"one":{%s:42}},"messageQueueTable":{}}' % place
    assert one.next_asked(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT).fields == asking
    assert two.next_asked(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT).fields == asking
    none = tool.ask(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, asking | {"clientAddr": "nobody"})
    assert none.body == b'{"consumerTable":{},"messageQueueTable":{}}'


def test_a_client_of_rocketmq_5_is_asked_in_its_own_words(connect: Connect, classic_store: StoreProcess) -> None:
    tool = connect("tool")
    with V2Client(classic_store.address) as client:
        client.route("asked-v5")
    with AnsweringConsumer(classic_store.address, "asked-v5", "asked-v5") as consumer:
        where = {"consumerGroup": "asked-v5", "clientId": consumer.alive(), "jstackEnable": "true"}
        assert json.loads(tool.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, where).body)["jstack"] == STACK
        for body, result in ((b"good", "CR_SUCCESS"), (b"bad", "CR_LATER")):
            sent = tool.send("asked-v5", body)
            given = where | {"msgId": sent.fields["msgId"]}
            answer = json.loads(tool.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, given).body)
            assert answer["consumeResult"] == result
        assert [one.body for one in consumer.tried] == [b"good", b"bad"]


def test_a_client_that_goes_while_it_is_asked(connect: Connect) -> None:
    tool, consumer = connect("tool"), connect("going")
    consumer.heartbeat(consumes={"going": {"t": "*"}})
    asked = tool.begin(RequestCode.GET_CONSUMER_RUNNING_INFO, {"consumerGroup": "going", "clientId": "going"})
    consumer.next_asked(RequestCode.GET_CONSUMER_RUNNING_INFO)
    consumer.close()
    answer = asked.result(60)
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "going" in answer.remark
