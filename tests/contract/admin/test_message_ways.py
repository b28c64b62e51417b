"""TraceMessage and `tandem message trace`: the way of a message out of traces that real clients sent."""

import json
import subprocess
import sys
from typing import Any

import grpc
import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tests import captured_traces as captured
from tests.admin_process import AdminProcess

DEADLINE = 60
TRACES = "RMQ_SYS_TRACE_TOPIC"


def trace(admin: AdminProcess, key: str, **more: Any) -> pb.MessageTrace:
    return admin.stub.TraceMessage(pb.TraceMessageRequest(key=key, **more), timeout=DEADLINE)


def told(answer: pb.MessageTrace) -> list[tuple[str, str, str, int]]:
    return [(pb.TraceStepKind.Name(step.kind), step.group, step.status, step.retry_times) for step in answer.steps]


def tandem(admin: AdminProcess, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tandemmq.cli.main", "message", "trace", *words, "--address", admin.address]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)


@pytest.fixture(scope="module")
def traced(admin: AdminProcess) -> AdminProcess:
    """An admin whose broker has the traces of 4.9.7, with some damage among them, and one of the messages."""
    for body, keys in [*captured.KEYED, (captured.SENT_4_9_7[:50], ["key-plain"])]:
        admin.stub.SendMessage(pb.SendMessageRequest(topic=TRACES, body=body, keys=keys), timeout=DEADLINE)
    properties = {"UNIQ_KEY": captured.PLAIN_4_9_7}
    request = pb.SendMessageRequest(topic="topic-t", body=b"plain", keys=["key-plain"], properties=properties)
    admin.stub.SendMessage(request, timeout=DEADLINE)
    return admin


PLAIN = [
    ("PUBLISHED", "group-t_producers", "success", 0),
    ("CONSUMED", "group-t", "failed", 0),
    ("CONSUMED", "group-t", "success", 1),
]


@pytest.mark.parametrize("key", ["key-plain", captured.PLAIN_4_9_7])
def test_the_way_of_a_message_by_key_and_by_id(traced: AdminProcess, key: str) -> None:
    answer = trace(traced, key)
    assert told(answer) == PLAIN
    first = answer.steps[0]
    assert (first.topic, first.cost_ms, first.store_host) == ("topic-t", 37, "127.0.0.1:12308")
    assert (first.time_ms, list(first.keys), first.tag) == (1795546483687, ["key-plain"], "A")
    assert first.client.startswith("127.0.0.1:")
    assert {step.message_id for step in answer.steps} == {captured.PLAIN_4_9_7}
    (found,) = answer.messages
    assert (found.message.topic, found.message.body, found.body_bytes) == ("topic-t", b"", 5)
    assert (answer.unreadable, answer.more) == (1 if key == "key-plain" else 0, False)


def test_copies_at_groups_that_only_clients_have_told_of(traced: AdminProcess) -> None:
    """A client tells of a consumption seconds before it commits how far its group has come."""
    properties = {"UNIQ_KEY": captured.DECIDED_4_9_7}
    for topic in ("%RETRY%group-t", "%RETRY%of-others"):
        request = pb.SendMessageRequest(topic=topic, body=b"decided", properties=properties)
        traced.stub.SendMessage(request, timeout=DEADLINE)
    original = pb.SendMessageRequest(topic="topic-t", body=b"decided", keys=["key-decided"], properties=properties)
    traced.stub.SendMessage(original, timeout=DEADLINE)
    answer = trace(traced, captured.DECIDED_4_9_7)
    assert [one.message.topic for one in answer.messages] == ["topic-t", "%RETRY%group-t"]


def test_the_way_of_a_transaction(traced: AdminProcess) -> None:
    answer = trace(traced, captured.DECIDED_4_9_7)
    assert told(answer) == [
        ("PUBLISHED", "group-t_deciding", "success", 0),
        ("TRANSACTION_ENDED", "group-t_deciding", "COMMIT_MESSAGE", 0),
        ("CONSUMED", "group-t", "success", 0),
    ]
    assert answer.steps[0].message_type == "half"


def test_a_message_that_nobody_told_of(traced: AdminProcess) -> None:
    request = pb.SendMessageRequest(topic="untold", body=b"x", keys=["k-untold"])
    receipt = traced.stub.SendMessage(request, timeout=DEADLINE).receipt
    for answer in (
        trace(traced, "k-untold", topic="untold"),
        trace(traced, receipt.unique_key, topic="untold"),
        trace(traced, receipt.message_id),
    ):
        assert not answer.steps
        assert [one.message.message_id for one in answer.messages] == [receipt.message_id]
    for key, more, words in (
        ("k-untold", {}, "name its topic"),
        ("nothing", {"topic": "untold"}, "topic untold has no such message"),
        ("nothing", {"topic": "no-topic"}, "topic no-topic has no such message"),
        (" ", {}, "key is missing"),
    ):
        with pytest.raises(grpc.RpcError) as refused:
            trace(traced, key, **more)
        assert words in str(refused.value.details())


@pytest.mark.slow
def test_the_command(traced: AdminProcess) -> None:
    done = tandem(traced, "key-plain")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("stored ")
    assert "topic-t queue" in lines[0]
    assert [word for word in ("published", "group-t_producers", "37 ms", "consumed, try 2", "failed") if word not in
            done.stdout] == []  # fmt: skip
    assert "1 entries of traces cannot be read" in done.stderr
    document = json.loads(tandem(traced, "key-plain", "--json").stdout)
    assert [step["status"] for step in document["steps"]] == ["success", "failed", "success"]
    assert [one["message"]["topic"] for one in document["messages"]] == ["topic-t"]
    unknown = tandem(traced, "nothing")
    assert (unknown.returncode, "no client has told of nothing" in unknown.stderr) == (1, True)
