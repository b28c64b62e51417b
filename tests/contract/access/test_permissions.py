"""Permissions about topics and groups, what stays open, and a file that changes under running services."""

import os
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from tandemmq.admin.v1 import admin_pb2
from tandemmq.admin.v1.admin_pb2_grpc import AdminStub
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tandemmq.store.v1 import message_pb2, store_pb2
from tandemmq.store.v1.store_pb2_grpc import StoreStub
from tests.access_users import access_text, credentials
from tests.contract.access.conftest import Guarded
from tests.faults.pair_process import until

pytestmark = pytest.mark.xdist_group("access")


@pytest.fixture(scope="module")
def stub(guarded: Guarded) -> Iterator[StoreStub]:
    """The store's."""
    with grpc.insecure_channel(guarded.address("store")) as channel:
        yield StoreStub(channel)


@pytest.fixture(scope="module")
def metadata(guarded: Guarded) -> Iterator[MetadataStub]:
    """The metasync's."""
    with grpc.insecure_channel(guarded.address("metasync")) as channel:
        yield MetadataStub(channel)


@contextmanager
def denied(words: str, code: grpc.StatusCode = grpc.StatusCode.PERMISSION_DENIED) -> Iterator[None]:
    with pytest.raises(grpc.RpcError) as raised:
        yield
    call = cast(Any, raised.value)
    assert call.code() is code, call.details()
    assert words in call.details()


def message(topic: str) -> message_pb2.Message:
    return message_pb2.Message(topic=topic, queue_id=0, body=b"x")


def batch(*topics: str) -> store_pb2.SendBatchRequest:
    return store_pb2.SendBatchRequest(messages=[message(topic) for topic in topics])


def stored(stub: StoreStub, topic: str) -> int:
    """Messages of queue 0."""
    offsets = stub.GetOffsets(store_pb2.GetOffsetsRequest(topic=topic), metadata=credentials("viewer"))
    return sum(queue.max_offset for queue in offsets.queues if queue.queue_id == 0)


def test_one_foreign_topic_refuses_a_whole_batch(stub: StoreStub) -> None:
    producer = credentials("producer")
    stub.SendBatch(batch("mine-batch"), metadata=producer)
    with denied("user producer may not PUBLISH to topic foreign (an administrator can give it"):
        stub.SendBatch(batch("mine-batch", "foreign", "mine-batch"), metadata=producer)
    encoded = store_pb2.SendBatchRequest(batches=[message_pb2.EncodedBatch(topic="foreign", messages=b"")])
    with denied("PUBLISH to topic foreign"):
        stub.SendBatch(encoded, metadata=producer)
    with denied("PUBLISH to topic foreign"):
        stub.Send(store_pb2.SendRequest(message=message("foreign")), metadata=producer)
    assert stored(stub, "mine-batch") == 1


def test_a_foreign_topic_ends_a_send_stream_and_what_came_before_is_answered(stub: StoreStub) -> None:
    requests = iter([batch("mine-stream"), batch("mine-stream", "foreign"), batch("mine-stream")])
    answers = stub.SendStream(requests, metadata=credentials("producer"))
    assert next(answers).receipts.receipts[0].queue_offset == 0
    with denied("PUBLISH to topic foreign"):
        next(answers)
    assert stored(stub, "mine-stream") == 1


def test_a_consumer_reads_its_topics_as_its_groups(stub: StoreStub, metadata: MetadataStub) -> None:
    consumer = credentials("consumer")
    stub.Send(store_pb2.SendRequest(message=message("mine-read")), metadata=credentials("producer"))
    stub.Send(store_pb2.SendRequest(message=message("foreign")), metadata=credentials("services"))
    assert stub.Pull(store_pb2.PullRequest(topic="mine-read", consumer_group="mine-g"), metadata=consumer).count == 1
    with denied("consumer may not SUBSCRIBE to topic foreign"):
        stub.Pull(store_pb2.PullRequest(topic="foreign"), metadata=consumer)
    with denied("SUBSCRIBE to topic foreign"):
        stub.ListQueues(store_pb2.ListQueuesRequest(topic="foreign"), metadata=consumer)
    with denied("SUBSCRIBE to topic foreign"):
        subscription = store_pb2.PullStreamRequest(subscribe=store_pb2.PullRequest(topic="foreign"))
        next(stub.PullStream(iter([subscription]), metadata=consumer))
    for topic, group, words in (
        ("foreign", "mine-g", "SUBSCRIBE to topic foreign"),
        ("mine-read", "theirs", "use group theirs"),
    ):
        commit = metadata_pb2.OffsetCommit(topic=topic, group=group, offset=1)
        with denied(words):
            metadata.CommitOffsets(metadata_pb2.CommitOffsetsRequest(commits=[commit]), metadata=consumer)
    query = metadata_pb2.OffsetQuery(group="theirs")
    with denied("use group theirs"):
        metadata.QueryOffsets(metadata_pb2.QueryOffsetsRequest(queries=[query]), metadata=consumer)


def test_who_finds_a_message_hears_of_groups_that_it_may_use_or_view(guarded: Guarded, stub: StoreStub) -> None:
    topic = "mine-standings"
    stub.Send(store_pb2.SendRequest(message=message(topic)), metadata=credentials("producer"))
    with grpc.insecure_channel(guarded.address("store")) as channel:
        for user, group in (("consumer", "mine-g"), ("services", "theirs")):
            request = delivery_pb2.ReceiveRequest(group=group, topic=topic, max_messages=1, wait_ms=60_000)
            assert DeliveryStub(channel).Receive(request, metadata=credentials(user)).messages
    find = admin_pb2.FindMessagesRequest(topic=topic, place=admin_pb2.QueuePlace(queue_id=0))
    told = {}
    with grpc.insecure_channel(guarded.address("admin")) as channel:

        def groups(user: str) -> list[str]:
            (one,) = AdminStub(channel).FindMessages(find, metadata=credentials(user)).messages
            return [standing.group for standing in one.standings]

        until(lambda: bool(groups("services")), 60, "admin knows the master")
        for user in ("consumer", "reader", "services"):
            told[user] = groups(user)
    assert told == {"consumer": ["mine-g"], "reader": [], "services": ["mine-g", "theirs"]}


def test_a_consumer_keeps_what_it_could_not_consume(stub: StoreStub) -> None:
    consumer = credentials("consumer")
    for topic in ("%RETRY%mine-g", "%DLQ%mine-g"):
        stub.Send(store_pb2.SendRequest(message=message(topic)), metadata=consumer)
        assert stub.Pull(store_pb2.PullRequest(topic=topic), metadata=consumer).count == 1
        with denied("PUBLISH to topic %RETRY%theirs"):
            stub.Send(store_pb2.SendRequest(message=message("%RETRY%theirs")), metadata=consumer)


def test_a_message_id_tells_nothing_to_who_may_not_read_everything(stub: StoreStub) -> None:
    receipt = stub.Send(store_pb2.SendRequest(message=message("mine-view")), metadata=credentials("producer")).receipt
    answers = set()
    for message_id in (receipt.message_id, receipt.message_id[:-1] + "1", "nonsense"):
        with pytest.raises(grpc.RpcError) as refused:
            stub.ViewMessage(store_pb2.ViewMessageRequest(message_id=message_id), metadata=credentials("consumer"))
        call = cast(Any, refused.value)
        answers.add((call.code(), call.details()))
    assert len(answers) == 1
    found = stub.ViewMessage(
        store_pb2.ViewMessageRequest(message_id=receipt.message_id), metadata=credentials("reader")
    )
    assert found.record


@pytest.mark.parametrize("port", ["store", "internal", "replicator", "metasync", "admin"])
def test_health_and_reflection_are_open(guarded: Guarded, port: str) -> None:
    with grpc.insecure_channel(guarded.address(port)) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        answer = health.Check(health_pb2.HealthCheckRequest(), timeout=60)
        assert answer.status in (health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING)
        assert "grpc.health.v1.Health" in ProtoReflectionDescriptorDatabase(channel).get_services()


def test_metrics_are_open_and_count_refusals(guarded: Guarded, stub: StoreStub) -> None:
    with denied("no credentials", grpc.StatusCode.UNAUTHENTICATED):
        stub.GetLog(store_pb2.GetLogRequest())
    listening = next(event for event in guarded.node.store.events() if event["event"] == "listening")
    with urllib.request.urlopen(f"http://127.0.0.1:{listening['metrics_port']}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    lines = [line for line in text.splitlines() if line.startswith("tandem_access_") and "_created" not in line]
    assert len(lines) == 4
    counted = next(line for line in lines if 'reason="unauthenticated"' in line)
    assert float(counted.split()[-1]) >= 1
    assert next(line for line in lines if line.startswith("tandem_access_file_good")).endswith(" 1.0")


def test_no_secret_is_in_a_log(guarded: Guarded) -> None:
    for process in guarded.node.processes.values():
        text = process.log.read_text()
        assert "the secret" not in text
        assert credentials("producer")[0][1].split()[1] not in text


# -- these change the file, and put it back ---------------------------------------------------------------------------


@contextmanager
def rewritten(guarded: Guarded, text: str) -> Iterator[None]:
    """The access file says something else for a while; the services are not restarted."""
    replace(guarded, text)
    try:
        yield
    finally:
        replace(guarded, access_text())


def replace(guarded: Guarded, text: str) -> None:
    new = guarded.access.with_name("new.toml")
    new.write_text(text)
    os.replace(new, guarded.access)


def code_of(call: Callable[[], object]) -> grpc.StatusCode:
    try:
        call()
    except grpc.RpcError as error:
        return cast(grpc.StatusCode, cast(Any, error).code())
    return grpc.StatusCode.OK


def test_the_file_is_followed_without_a_restart(guarded: Guarded, stub: StoreStub) -> None:
    def send() -> object:
        return stub.Send(store_pb2.SendRequest(message=message("mine")), metadata=credentials("late"))

    assert code_of(send) is grpc.StatusCode.UNAUTHENTICATED
    with rewritten(guarded, access_text(late=["producer"])):
        until(lambda: code_of(send) is grpc.StatusCode.OK, 60, "the new user is known")
        replace(guarded, access_text(late=["consumer"]))
        until(lambda: code_of(send) is grpc.StatusCode.PERMISSION_DENIED, 60, "the permission is gone")
    until(lambda: code_of(send) is grpc.StatusCode.UNAUTHENTICATED, 60, "the user is gone")


def test_who_is_removed_loses_a_running_pull_stream(guarded: Guarded, stub: StoreStub) -> None:
    with rewritten(guarded, access_text(late=["consumer"])):

        def offsets() -> object:
            return stub.GetOffsets(store_pb2.GetOffsetsRequest(topic="mine-running"), metadata=credentials("late"))

        until(lambda: code_of(offsets) is not grpc.StatusCode.UNAUTHENTICATED, 60, "the new user is known")
        stub.Send(store_pb2.SendRequest(message=message("mine-running")), metadata=credentials("producer"))
        requests = EndlessRequests(store_pb2.PullStreamRequest(subscribe=store_pb2.PullRequest(topic="mine-running")))
        stream = stub.PullStream(requests, metadata=credentials("late"), timeout=110)
        assert next(stream).count == 1
        replace(guarded, access_text())
        until(lambda: code_of(offsets) is grpc.StatusCode.UNAUTHENTICATED, 60, "the user is gone")
        stub.Send(store_pb2.SendRequest(message=message("mine-running")), metadata=credentials("producer"))
        with denied("user late was removed", grpc.StatusCode.UNAUTHENTICATED):
            next(stream)


class EndlessRequests:
    """One request, and a stream that stays open until the call ends."""

    def __init__(self, request: store_pb2.PullStreamRequest) -> None:
        import threading

        self._requests = [request]
        self._over = threading.Event()

    def __iter__(self) -> "EndlessRequests":
        return self

    def __next__(self) -> store_pb2.PullStreamRequest:
        if self._requests:
            return self._requests.pop()
        self._over.wait(110)
        raise StopIteration


def test_a_broken_file_keeps_the_old_one_and_is_complained_of_once(guarded: Guarded, stub: StoreStub) -> None:
    def complaints() -> list[dict[str, Any]]:
        return [one for one in guarded.node.store.events() if "cannot be used" in one["event"]]

    before = len(complaints())
    broken = access_text(late=["producer"]) + "[users.broken]\nroels = []\n"
    with rewritten(guarded, broken):
        until(lambda: len(complaints()) >= before + 2, 60, "both servers of the store say so")
        assert "did you mean roles?" in complaints()[-1]["problem"]
        late = credentials("late")
        assert code_of(lambda: stub.Send(store_pb2.SendRequest(message=message("mine")), metadata=late)) is (
            grpc.StatusCode.UNAUTHENTICATED
        )
        stub.Send(store_pb2.SendRequest(message=message("mine")), metadata=credentials("producer"))
        replace(guarded, access_text(late=["producer"]))
        until(
            lambda: (
                code_of(lambda: stub.Send(store_pb2.SendRequest(message=message("mine")), metadata=late))
                is grpc.StatusCode.OK
            ),
            60,
            "the mended file is followed",
        )
    said = [one for one in complaints()[before:] if one["logger"] == complaints()[-1]["logger"]]
    assert len(said) == 2, "once by each server of the process: the one for callers, and the internal one"
