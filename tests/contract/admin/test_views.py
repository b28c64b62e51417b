"""Groups at work as admin shows them, what waits, what was just made, and resets while consumers run."""

from collections.abc import Iterator

import grpc
import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.client import StoreClient
from tandemmq.delivery.v1 import delivery_pb2, operations_pb2
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.metadata.v1 import metadata_pb2
from tests.admin_process import AdminProcess, refused
from tests.contract.test_delivery import acknowledge, receive_all, told
from tests.faults.pair import Node
from tests.faults.pair_process import until

pytestmark = pytest.mark.xdist_group("calm admin")

PATIENCE = 60


@pytest.fixture(scope="module")
def node(calm_node: Node) -> Node:
    """Shared with other modules."""
    return calm_node


@pytest.fixture(scope="module")
def admin(calm_admin: AdminProcess) -> AdminProcess:
    """The same."""
    return calm_admin


@pytest.fixture(scope="module")
def delivery(node: Node) -> Iterator[DeliveryStub]:
    with grpc.insecure_channel(node.address("store")) as channel:
        yield DeliveryStub(channel)


@pytest.fixture
def client(node: Node) -> Iterator[StoreClient]:
    with node.client() as client:
        yield client


def get(admin: AdminProcess, name: str) -> pb.Group:
    return admin.stub.GetGroup(pb.GetGroupRequest(group=name), timeout=PATIENCE).groups[0]


def wait_known(admin: AdminProcess, group: str, topic: str) -> None:
    """Until metasync has heard from the store of the group's offsets in a topic."""

    def known() -> bool:
        listed = admin.stub.ListGroups(pb.ListGroupsRequest(match=group), timeout=PATIENCE).groups
        return any(one.config.name == group and one.topics == [topic] for one in listed)

    until(known, PATIENCE, f"{group} is known in {topic}")


def test_a_group_at_work_is_shown_with_members(
    admin: AdminProcess, delivery: DeliveryStub, client: StoreClient
) -> None:
    for _ in range(4):
        client.send("worked", b"x", queue_id=0)
    assert receive_all(delivery, "workers", "worked", 3)
    beat = delivery_pb2.HeartbeatRequest(client_id="w1", language="GO", version="5.1")
    beat.memberships.add(group="workers").subscriptions["worked"].expression = "*"
    delivery.Heartbeat(beat, timeout=PATIENCE)
    wait_known(admin, "workers", "worked")
    view = get(admin, "workers").view
    assert [(one.topic, one.in_flight, one.ready) for one in view.topics] == [("worked", 3, 1)]
    assert [(one.client_id, one.language, one.version) for one in view.members] == [("w1", "GO", "5.1")]

    def listed() -> operations_pb2.GroupView:
        (group,) = admin.stub.ListGroups(pb.ListGroupsRequest(match="workers"), timeout=PATIENCE).groups
        return group.view

    assert (listed().consumers, len(listed().members)) == (1, 0)
    assert listed().topics[0].in_flight == 3


def test_what_waits_is_shown_by_broker(admin: AdminProcess, client: StoreClient) -> None:
    client.send("later", b"x", properties={"TIMER_DELAY_SEC": "3600"})
    client.send("halves", b"x", properties={"TRAN_MSG": "true"})

    def waiting() -> operations_pb2.ViewWaitingResponse:
        answer = admin.stub.GetWaiting(pb.GetWaitingRequest(), timeout=PATIENCE)
        assert not answer.problems
        (broker,) = answer.brokers
        assert broker.broker == "alpha"
        return broker.waiting

    until(lambda: waiting().timers >= 1 and waiting().half_messages >= 1, PATIENCE, "both wait")
    with refused("INVALID_ARGUMENT", "limit"):
        admin.stub.GetWaiting(pb.GetWaitingRequest(limit=-1), timeout=PATIENCE)


def test_what_was_just_made_can_be_used(admin: AdminProcess, delivery: DeliveryStub, client: StoreClient) -> None:
    """Each at its first try, and not once the store has followed its metasync."""
    for number in range(5):
        topic = metadata_pb2.TopicConfig(name=f"fresh-{number}", read_queues=8, write_queues=8)
        admin.stub.PutTopic(pb.PutTopicRequest(config=topic, create_only=True), timeout=PATIENCE)
        client.send(f"fresh-{number}", b"x", queue_id=7)
        group = metadata_pb2.SubscriptionGroupConfig(name=f"once-{number}", retry_max_times=0)
        admin.stub.PutGroup(pb.PutGroupRequest(config=group, create_only=True), timeout=PATIENCE)
        (one,) = receive_all(delivery, f"once-{number}", f"fresh-{number}", 1)
        change = delivery_pb2.InvisibleChange(handle=one.handle, invisible_ms=0)
        request = delivery_pb2.ChangeInvisibleRequest(group=f"once-{number}", topic=f"fresh-{number}", changes=[change])
        delivery.ChangeInvisible(request, timeout=PATIENCE)
        again = delivery_pb2.ReceiveRequest(group=f"once-{number}", topic=f"fresh-{number}")
        assert not delivery.Receive(again, timeout=PATIENCE).messages, "retryMaxTimes is 0 from the first receive on"


def test_a_reset_calls_back_what_is_held(admin: AdminProcess, delivery: DeliveryStub, client: StoreClient) -> None:
    """Consumers run, and hold messages: what they hold comes again, and their handles count no more."""
    for number in range(6):
        client.send("reset", b"%d" % number, queue_id=0)
    done = receive_all(delivery, "resetting", "reset", 3)
    acknowledge(delivery, "resetting", "reset", *(one.handle for one in done))
    held = receive_all(delivery, "resetting", "reset", 3)
    wait_known(admin, "resetting", "reset")
    reset = pb.ResetOffsetsRequest(group="resetting", topic="reset", earliest=True)
    admin.stub.ResetOffsets(reset, timeout=PATIENCE)
    again = receive_all(delivery, "resetting", "reset", 6)
    assert {one.delivery_number for one in again} == {1}
    outcomes = acknowledge(delivery, "resetting", "reset", *(one.handle for one in held))
    assert {told(one) for one in outcomes} == {("FAILED_PRECONDITION", "INVALID_RECEIPT_HANDLE")}
    outcomes = acknowledge(delivery, "resetting", "reset", *(one.handle for one in again))
    assert not any(one.HasField("refusal") for one in outcomes)
    until(lambda: get(admin, "resetting").lag == 0, PATIENCE, "all is dealt with")


def test_a_reset_to_the_end_skips_what_is_held(
    admin: AdminProcess, delivery: DeliveryStub, client: StoreClient
) -> None:
    for _ in range(3):
        client.send("skipped", b"x", queue_id=0)
    held = receive_all(delivery, "skipping", "skipped", 2)
    wait_known(admin, "skipping", "skipped")
    reset = pb.ResetOffsetsRequest(group="skipping", topic="skipped", latest=True)
    admin.stub.ResetOffsets(reset, timeout=PATIENCE)
    until(lambda: not any(one.lag for one in get(admin, "skipping").view.topics), PATIENCE, "nothing is left")
    client.send("skipped", b"new", queue_id=0)
    assert len(receive_all(delivery, "skipping", "skipped", 1)) == 1
    acknowledge(delivery, "skipping", "skipped", *(one.handle for one in held))
    assert not get(admin, "skipping").view.commits, "a reset is no commit"


def test_members_hear_of_a_reset(admin: AdminProcess, delivery: DeliveryStub, client: StoreClient) -> None:
    client.send("told", b"x", queue_id=0)
    receive_all(delivery, "hearing", "told", 1)
    wait_known(admin, "hearing", "told")
    first = delivery_pb2.HeartbeatRequest(client_id="ear")
    first.memberships.add(group="hearing").subscriptions["told"].expression = "*"
    stay = StayOpen(first)
    commands = delivery.Attend(stay, timeout=PATIENCE)
    assert next(commands).HasField("welcome")
    admin.stub.ResetOffsets(pb.ResetOffsetsRequest(group="hearing", topic="told", earliest=True), timeout=PATIENCE)
    reset = next(one for one in commands if one.HasField("offsets_reset")).offsets_reset
    assert (reset.group, reset.topic) == ("hearing", "told")
    commands.cancel()


class StayOpen:
    """Requests of a stream: one, and then none until the stream is cancelled."""

    def __init__(self, first: delivery_pb2.HeartbeatRequest) -> None:
        import threading

        self._first: delivery_pb2.HeartbeatRequest | None = first
        self._never = threading.Event()

    def __iter__(self) -> "StayOpen":
        return self

    def __next__(self) -> delivery_pb2.HeartbeatRequest:
        first, self._first = self._first, None
        if first is None:
            self._never.wait(PATIENCE)
            raise StopIteration
        return first
