"""How often a message came to its groups: by key, at its group, after it moved; and what waits for its time."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.client import StoreClient
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.delivery.v1 import operations_pb2 as operations
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.metadata.v1 import metadata_pb2
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tests.admin_process import AdminProcess
from tests.contract.admin.test_views import wait_known
from tests.contract.test_delivery import acknowledge, receive_all
from tests.faults.pair import Node
from tests.faults.pair_process import until

pytestmark = pytest.mark.xdist_group("calm admin")

PATIENCE = 60
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def admin(calm_admin: AdminProcess) -> AdminProcess:
    """Shared with other modules."""
    return calm_admin


@pytest.fixture(scope="module")
def delivery(calm_node: Node) -> Iterator[DeliveryStub]:
    with grpc.insecure_channel(calm_node.address("store")) as channel:
        yield DeliveryStub(channel)


@pytest.fixture
def client(calm_node: Node) -> Iterator[StoreClient]:
    with calm_node.client() as client:
        yield client


def find(admin: AdminProcess, **fields: Any) -> list[pb.FoundMessage]:
    return list(admin.stub.FindMessages(pb.FindMessagesRequest(**fields), timeout=PATIENCE).messages)


def found_by_key(admin: AdminProcess, topic: str, key: str) -> list[pb.FoundMessage]:
    """When the index has it."""
    until(lambda: bool(find(admin, topic=topic, key=key)), PATIENCE, f"{key} is found in {topic}")
    return find(admin, topic=topic, key=key)


def tandem(admin: AdminProcess, *words: str) -> str:
    command = [sys.executable, "-m", "tandemmq.cli.main", *words, "--address", admin.address]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout


def fail(delivery: DeliveryStub, group: str, topic: str, wait_ms: int) -> delivery_pb2.ReceivedMessage:
    (one,) = receive_all(delivery, group, topic, 1)
    change = delivery_pb2.InvisibleChange(handle=one.handle, invisible_ms=wait_ms)
    request = delivery_pb2.ChangeInvisibleRequest(group=group, topic=topic, changes=[change])
    delivery.ChangeInvisible(request, timeout=PATIENCE)
    return one


@pytest.mark.slow
def test_a_failing_message_is_found_by_its_key_and_at_its_group_with_its_attempts(
    admin: AdminProcess, delivery: DeliveryStub, client: StoreClient
) -> None:
    client.send("s-fails", b"broken", keys=["order-7"], queue_id=0)
    fail(delivery, "s-failers", "s-fails", 0)
    last = fail(delivery, "s-failers", "s-fails", HOUR_MS)
    (found,) = found_by_key(admin, "s-fails", "order-7")
    (standing,) = found.standings
    assert (standing.group, standing.deliveries, standing.state) == ("s-failers", 2, operations.PUT_OFF)
    for way in ({"message_id": found.message.message_id}, {"topic": "s-fails", "place": pb.QueuePlace(queue_id=0)}):
        assert [one.deliveries for one in find(admin, **way)[0].standings] == [2]
    assert "group s-failers: came 2 times, put off, comes again in" in tandem(
        admin, "message", "find", "s-fails", "--key", "order-7"
    )
    wait_known(admin, "s-failers", "s-fails")
    details = admin.stub.GetGroup(pb.GetGroupRequest(group="s-failers"), timeout=PATIENCE)
    (failing,) = details.failing
    assert (failing.broker, failing.standing.place.topic, failing.standing.deliveries) == ("alpha", "s-fails", 2)
    assert "fails on" in tandem(admin, "group", "show", "s-failers")
    (shown,) = json.loads(tandem(admin, "group", "show", "s-failers", "--json"))["failing"]
    assert (shown["standing"]["state"], shown["standing"]["deliveries"]) == ("PUT_OFF", 2)
    acknowledge(delivery, "s-failers", "s-fails", last.handle)
    assert not find(admin, topic="s-fails", key="order-7")[0].standings


def test_the_way_of_a_message_ends_with_its_dead_letter(
    admin: AdminProcess, delivery: DeliveryStub, client: StoreClient
) -> None:
    client.send("s-dies", b"broken", keys=["order-8"], queue_id=0)
    (one,) = receive_all(delivery, "s-buriers", "s-dies", 1)
    assert [each.standings[0].state for each in found_by_key(admin, "s-dies", "order-8")] == [operations.HELD]
    request = delivery_pb2.ForwardToDeadLettersRequest(group="s-buriers", topic="s-dies", handles=[one.handle])
    delivery.ForwardToDeadLetters(request, timeout=PATIENCE)

    def topics() -> list[str]:
        trace = admin.stub.TraceMessage(pb.TraceMessageRequest(key="order-8", topic="s-dies"), timeout=PATIENCE)
        return [each.message.topic for each in trace.messages]

    until(lambda: topics() == ["s-dies", "%DLQ%s-buriers"], PATIENCE, "the dead letter is found")
    assert "%DLQ%s-buriers" in tandem(admin, "message", "trace", "order-8", "--topic", "s-dies")


def test_of_a_copy_too_it_is_told_who_has_consumed_it(
    admin: AdminProcess, calm_node: Node, delivery: DeliveryStub, client: StoreClient
) -> None:
    client.send("s-copied", b"broken", keys=["order-9"], queue_id=0)
    (one,) = receive_all(delivery, "s-copiers", "s-copied", 1)
    request = delivery_pb2.ForwardToDeadLettersRequest(group="s-copiers", topic="s-copied", handles=[one.handle])
    delivery.ForwardToDeadLetters(request, timeout=PATIENCE)
    commit = metadata_pb2.OffsetCommit(topic="%DLQ%s-copiers", group="s-menders", queue_id=0, offset=1)
    told: list[list[str]] = []
    with grpc.insecure_channel(calm_node.address("metasync")) as channel:
        metasync = MetadataStub(channel)

        def consumed() -> bool:  # metasync hears of the topic a moment later
            metasync.CommitOffsets(metadata_pb2.CommitOffsetsRequest(commits=[commit]), timeout=PATIENCE)
            trace = admin.stub.TraceMessage(pb.TraceMessageRequest(key="order-9", topic="s-copied"), timeout=PATIENCE)
            told[:] = [list(each.consumed_by) for each in trace.messages if each.message.topic == commit.topic]
            return told == [["s-menders"]]

        until(consumed, 20, lambda: f"it is told of the copy: {told}")


@pytest.mark.parametrize("delay", [{"DELAY": "18"}, {"TIMER_DELAY_MS": str(HOUR_MS)}], ids=["level", "timer"])
def test_a_message_that_waits_for_its_time_is_found_by_key(
    admin: AdminProcess, client: StoreClient, delay: dict[str, str]
) -> None:
    key = f"later-{next(iter(delay))}"
    receipt = client.send("s-later", b"later", keys=[key], properties=delay)
    (found,) = found_by_key(admin, "s-later", key)
    assert (found.is_waiting, found.body_bytes, found.message.unique_key) == (True, 5, receipt.unique_key)
    assert bool(found.due_ms) == ("DELAY" not in delay)
    assert [one.is_waiting for one in find(admin, topic="s-later", unique_key=receipt.unique_key)] == [True]
    assert "waits: it is put into its topic" in tandem(admin, "message", "find", "s-later", "--key", key)


@pytest.mark.parametrize("delay", [{"DELAY": "1"}, {"TIMER_DELAY_MS": "1"}], ids=["level", "timer"])
def test_once_it_is_delivered_it_is_found_once(admin: AdminProcess, client: StoreClient, delay: dict[str, str]) -> None:
    key = f"soon-{next(iter(delay))}"
    client.send("s-soon", b"soon", keys=[key], properties=delay)
    until(
        lambda: [one.is_waiting for one in find(admin, topic="s-soon", key=key)] == [False], PATIENCE, "it is delivered"
    )
