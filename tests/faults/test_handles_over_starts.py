"""A receipt handle acknowledges its own message or none, however many starts, kills and masters it outlives."""

import shutil
import signal
from pathlib import Path

import grpc
import pytest

from tandemmq.client import StoreClient
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.replication.v1.replication_pb2 import PromoteRequest
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.receiving.handles import decode_handle
from tandemmq.store.v1.replica_log_pb2 import BrokerRole
from tests.contract.store_process import StoreProcess
from tests.faults.pair import Pair
from tests.faults.pair_process import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

GROUP, TOPIC = "workers", "orders"
INVISIBLE_MS = 3_600_000


def given(address: str, body: bytes) -> delivery_pb2.ReceivedMessage:
    """Send a message, and receive it."""
    with StoreClient(address) as client, grpc.insecure_channel(address) as channel:
        client.send(TOPIC, body, queue_id=0, no_wait=True)
        request = delivery_pb2.ReceiveRequest(group=GROUP, topic=TOPIC, wait_ms=30_000, invisible_ms=INVISIBLE_MS)
        [message] = DeliveryStub(channel).Receive(request, timeout=60).messages
    return message


def refused(address: str, message: delivery_pb2.ReceivedMessage) -> bool:
    """Acknowledge a message."""
    with grpc.insecure_channel(address) as channel:
        request = delivery_pb2.AcknowledgeRequest(group=GROUP, topic=TOPIC, handles=[message.handle])
        [outcome] = DeliveryStub(channel).Acknowledge(request, timeout=60).outcomes
    return outcome.HasField("refusal")


def named(message: delivery_pb2.ReceivedMessage) -> tuple[Place, int, int]:
    """What a handle says but for the start that gave it out: the place, the offset, the number of the delivery."""
    return decode_handle(message.handle, GROUP, TOPIC)[:3]


def test_a_message_is_lost_and_the_store_killed_twice_after_that(tmp_path: Path) -> None:
    """The directory goes back to an earlier kill: that is what a power cut leaves, with ASYNC_FLUSH."""
    with StoreProcess(tmp_path / "store") as store:
        assert not refused(store.address, given(store.address, b"first"))
        store.stop(signal.SIGKILL)
        shutil.copytree(store.directory, tmp_path / "before")
        lost = given(store.start().address, b"lost")
        store.stop(signal.SIGKILL)
        shutil.rmtree(store.directory)
        shutil.copytree(tmp_path / "before", store.directory)
        other = given(store.start().address, b"other")
        assert named(other) == named(lost)
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            assert refused(store.restart(number).address, lost)
        assert not refused(store.address, other)


def test_a_message_is_lost_with_its_master_and_the_new_one_is_killed_and_promoted_again(tmp_path: Path) -> None:
    with Pair(tmp_path, role="ASYNC_MASTER") as pair:
        assert not refused(pair.master.address("store"), given(pair.master.address("store"), b"first"))
        until(lambda: pair.slave_knows(TOPIC), 60, "the slave knows the topic")
        pair.wait_level()
        pair.slave.replicator.kill()
        lost = given(pair.master.address("store"), b"lost")
        pair.master.kill()
        pair.slave.start()
        request = PromoteRequest(role=BrokerRole.ASYNC_MASTER, old_master_is_gone=True, accept_loss=True)
        pair.slave.replication().Promote(request, timeout=60)
        address = pair.slave.address("store")
        other = given(address, b"other")
        assert named(other) == named(lost)
        for _ in range(2):
            assert refused(address, lost)
            pair.slave.kill()
            pair.slave.start()
        assert refused(address, lost)
        assert not refused(address, other)
