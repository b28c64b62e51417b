"""What is compared of captured answers, and of ours. See `test_captures`."""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

from tandemmq.client import Record, decode_records
from tandemmq.common.documents import java_json
from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tests.contract.remoting.classic_client import Answer, document

OURS_ALONE = {"IS_SUPPORT_HEART_BEAT_V2", "IS_SUB_CHANGE"}
OF_5_ALONE = {"topicSysFlag", "groupSysFlag", "forbiddenType", "offsetDelta", "recallHandle", "batchUniqId"}
OF_ALL = {
    RequestCode.GET_BROKER_RUNTIME_INFO, RequestCode.GET_ALL_TOPIC_CONFIG, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    RequestCode.GET_BROKER_CONSUME_STATS, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER,
}  # fmt: skip
"""Requests whose answers tell of the whole broker: compared is which fields there are."""
OF_THEIRS = re.compile("commitLogDiskRatio_.*|scheduleMessageOffset_.*|timer.*|mappingDataVersion|dataVersion")
"""Fields of such an answer that only some brokers have."""
NUMBERS = ("queueId", "queueOffset", "nextBeginOffset", "minOffset", "maxOffset", "offset")
PULLS = {RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE}
SENDS = {RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE}
OF_TIME = {
    (RequestCode.SEND_REPLY_MESSAGE_V2, "queueOffset"),
    *((code, name) for code in PULLS for name in ("maxOffset", "nextBeginOffset")),
    (RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, "offset"),
}
"""Numbers that depend on when something was asked, and on what others have sent before."""
VARIABLE = {
    "UNIQ_KEY", "CLUSTER", "TRACE_ON", "MSG_REGION", "WAIT", "DELAY", "REAL_TOPIC", "REAL_QID", "__transactionId__",
    "TIMER_OUT_MS", "TIMER_ENQUEUE_MS", "TIMER_DEQUEUE_MS", "TIMER_DELAY_MS", "TIMER_DELAY_SEC", "TIMER_DELIVER_MS",
    "ORIGIN_MESSAGE_ID", "POP_CK", "1ST_POP_TIME", "TRANSACTION_CHECK_TIMES", "TRAN_PREPARED_QUEUE_OFFSET",
}  # fmt: skip
"""Properties that are not the sender's own, or say how to send: RocketMQ 4 does not store WAIT either.

What was delayed loses its delay when it is delivered, or it would be delayed again as a dead letter.
"""
VARIABLE_KEYS = {
    "masterCommitLogMaxOffset",
    "clientAddr",
    "physicOffset",
    "physicSize",
    "lastUpdateTimestamp",
    "remoteIP",
}
"""In bodies: addresses of clients, places and sizes in the log, which our longer properties change, times."""


def is_put_aside(request: dict[str, Any]) -> bool:
    """Whether it sends a half message or one for later: these are numbered together, over all topics and scenarios."""
    return request["code"] in SENDS and any(
        mark in request["extFields"]["i"] for mark in ("TRAN_MSG\1true", "DELAY\1", "TIMER_")
    )


def compare(request: dict[str, Any], theirs: dict[str, Any], ours: Answer) -> None:
    """Everything that must be equal."""
    code, said = request["code"], (request["extFields"], theirs["extFields"], theirs["remark"], ours)
    if code == RequestCode.QUERY_CONSUMER_OFFSET and ours.fields.get("offset") == "0" and theirs["code"]:
        return  # RocketMQ 5 does not say where to begin in a queue without messages
    if code in PULLS and ours.code == ResponseCode.PULL_RETRY_IMMEDIATELY:
        return  # what the filter does not want was there before what it wants
    if code in SENDS and theirs["code"] == ResponseCode.MESSAGE_ILLEGAL and "TIMER_" in request["extFields"]["i"]:
        return  # RocketMQ waits for three days at most
    if code == RequestCode.UPDATE_BROKER_CONFIG:
        return  # settings are changed in broker.conf
    assert ours.code == theirs["code"], said
    fields = theirs["extFields"] or {}
    optional = OURS_ALONE | OF_5_ALONE
    if is_put_aside(request) and "transactionId" not in fields:
        optional = optional | {"transactionId"}  # RocketMQ 4 does not say it of a half message either
    assert set(fields) - optional == set(ours.fields) - optional, said
    for name in NUMBERS:
        if name in fields and (code, name) not in OF_TIME and not (name == "queueOffset" and is_put_aside(request)):
            assert ours.fields[name] == fields[name], (name, *said)
    if code in PULLS or code in (RequestCode.QUERY_CONSUMER_OFFSET, RequestCode.GET_CONSUMER_LIST_BY_GROUP):
        assert ours.remark == (theirs["remark"] or ""), said
    if not (code in PULLS and ours.code == ResponseCode.PULL_OFFSET_MOVED):
        compare_bodies(code, base64.b64decode(theirs["body"]), ours, said)


def compare_bodies(code: int, body: bytes, ours: Answer, said: object) -> None:
    """What must be equal in them."""
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
    elif code in OF_ALL:
        missing = {*names_in(body)} - {*names_in(ours.body)}
        assert not {name for name in missing if not OF_THEIRS.fullmatch(name)}
    elif code == RequestCode.GET_CONSUME_STATS:
        assert queues_of(ours.body) == queues_of(body), said
    elif b":{{" in body:  # a map whose keys are objects: Java's tools read it in this form alone
        assert entries(ours.body) == entries(body), said
    elif body.startswith(b"{") and code != RequestCode.GET_ALL_PRODUCER_INFO:  # which has those of all scenarios
        assert plain(java_json.loads(ours.body)) == plain(java_json.loads(body)), said


def entries(body: bytes) -> tuple[list[bytes], bytes]:
    """Those of a map whose keys are queues, in an order of their own; and the body without them."""
    entry = rb"\{[^{}]*\}:(?:\{[^{}]*\}|-?[0-9]+),?"
    body = re.sub(rb'"lastUpdateTimestamp":[0-9]+', b"", body)
    return sorted(one.rstrip(b",") for one in re.findall(entry, body)), re.sub(entry, b"", body)


def names_in(body: bytes) -> Iterator[str]:
    """Names of a document's fields, and of the fields of entries of its tables."""
    document = java_json.loads(re.sub(rb'(?<="consumeStatsList":)\[.*\]', b"[]", body))
    for name, value in document.items():
        yield name
        if name == "table":
            yield from value
        elif isinstance(value, dict):
            yield from (inner for entry in value.values() if isinstance(entry, dict) for inner in entry)


def queues_of(body: bytes) -> dict[bytes, tuple[int, int]]:
    """By queue: where it ends, and how far the group is."""
    found = {queue: json.loads(place) for queue, place in re.findall(rb"(\{[^{}]*\}):(\{[^{}]*\})", body)}
    return {queue: (place["brokerOffset"], place["consumerOffset"]) for queue, place in found.items()}


def plain(value: Any) -> Any:
    """A body without what is variable in it."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if name not in VARIABLE_KEYS}
    return [plain(one) for one in value] if isinstance(value, list) else value


def essence(record: Record) -> tuple[object, ...]:
    """What is the same of a message at every broker."""
    where = record.topic, record.queue_id, record.queue_offset
    return *where, record.flag, record.body, record.reconsume_times, given(record)


def given(record: Record) -> dict[str, str]:
    return {name: value for name, value in record.properties.items() if name not in VARIABLE}
