"""What a producer is told, by the state of the replicas: every status, with both ways to flush."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tandemmq.client import RequestFailed, StoreClient
from tandemmq.replication.v1.replication_pb2 import ReplicaStatus
from tandemmq.store.v1.store_pb2 import SendReceipt, SendStatus
from tests.faults.hostile import REPORT, dial
from tests.faults.pair import PATIENT, Node, Pair
from tests.faults.pair_load import outgoing
from tests.faults.pair_process import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SLAVE_TIMEOUT = 700
LONG = 300_000
"""A send that waited for a slave would take so long; the clients here give up after 60 s."""
FLUSH = pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])


def send(client: StoreClient, value: str, *, no_wait: bool = False) -> SendReceipt:
    """One message."""
    message = outgoing("orders", value)
    return client.send(message.topic, message.body, tag=message.tag, keys=message.keys, no_wait=no_wait)


@contextmanager
def alone(directory: Path, role: str = "SYNC_MASTER", **settings: object) -> Iterator[Node]:
    """A master without a slave; `settings` are the store's, those of the replicator among them."""
    replicas = {name: value for name, value in settings.items() if "nSyncReplicas" in name}
    replicas["haHousekeepingInterval"] = 120_000  # a mute slave stays a slave
    own = {"slaveTimeout": SLAVE_TIMEOUT, "readUnCommitted": "true", **settings}  # to see that it is stored
    node = Node(directory / "a", 0, role, store=own, replicator=replicas)
    try:
        node.start()
        until(lambda: linked(node), 60, lambda: f"the link: {node.status()}")
        yield node
    finally:
        node.close()


def said(node: Node) -> list[str]:
    """The events that its store has logged since it started."""
    return [line["event"] for line in node.store.events()]


def linked(node: Node) -> bool:
    """Whether the replicator knows its store."""
    status = node.status()
    return status is not None and status.identity.file_size > 0


def accepts(address: str) -> bool:
    """Whether somebody listens there."""
    try:
        with dial(address):
            return True
    except ConnectionRefusedError:
        return False


@contextmanager
def mute_slave(node: Node) -> Iterator[socket.socket]:
    """A slave that asks for everything from the end on, takes it, and never acks anything but that."""
    until(lambda: accepts(node.ha_address), 60, "the master's side has begun")
    with dial(node.ha_address) as connection:
        connection.sendall(REPORT.pack(node.role().max_offset))
        ending = threading.Event()

        def take() -> None:
            while not ending.is_set():
                try:
                    if not connection.recv(1 << 16):
                        return
                except OSError:
                    return

        thread = threading.Thread(target=take)
        thread.start()
        until(lambda: getattr(node.status(), "in_sync", 0) == 1, 60, lambda: f"it counts: {node.status()}")
        yield connection
        ending.set()
        connection.shutdown(socket.SHUT_RDWR)
        thread.join()


@FLUSH
def test_without_a_slave(tmp_path: Path, flush: str) -> None:
    """SLAVE_NOT_AVAILABLE, at once, and stored. WAIT=false is told PUT_OK."""
    with alone(tmp_path, flushDiskType=flush, slaveTimeout=LONG) as node, node.client() as client:
        receipt = send(client, "m-0")
        assert receipt.status == SendStatus.SLAVE_NOT_AVAILABLE
        assert client.view(receipt.message_id).physical_offset == receipt.physical_offset
        assert send(client, "m-1", no_wait=True).status == SendStatus.PUT_OK
        message = outgoing("orders", "m-2")
        receipt = client.send(message.topic, message.body, properties={"WAIT": "false"})
        assert receipt.status == SendStatus.PUT_OK


@FLUSH
def test_without_the_sidecar(tmp_path: Path, flush: str) -> None:
    """A store whose replicator is gone knows of no slaves: SLAVE_NOT_AVAILABLE at once, whether it came or went."""
    store = {"flushDiskType": flush, "slaveTimeout": LONG}
    with Pair(tmp_path, store=store) as pair, pair.master.client() as client:
        assert send(client, "m-0").status == SendStatus.PUT_OK
        pair.master.replicator.kill()

        until(lambda: "replicator unlinked" in said(pair.master), 60, "the store sees that its replicator is gone")
        assert send(client, "m-1").status == SendStatus.SLAVE_NOT_AVAILABLE
        pair.heal()
        assert send(client, "m-2").status == SendStatus.PUT_OK


@FLUSH
def test_with_a_mute_slave(tmp_path: Path, flush: str) -> None:
    """FLUSH_SLAVE_TIMEOUT, when slaveTimeout is over and not before; WAIT=false does not wait."""
    with alone(tmp_path, flushDiskType=flush) as node, node.client() as client:
        assert send(client, "m-0", no_wait=True).status == SendStatus.PUT_OK
        with mute_slave(node):
            begun = time.monotonic()
            receipt = send(client, "m-1")
            assert receipt.status == SendStatus.FLUSH_SLAVE_TIMEOUT
            assert (time.monotonic() - begun) * 1000 > SLAVE_TIMEOUT - 1, "timers count from the turn that sets them"
            assert client.view(receipt.message_id).physical_offset == receipt.physical_offset
            assert send(client, "m-2", no_wait=True).status == SendStatus.PUT_OK


def test_many_wait_side_by_side(tmp_path: Path) -> None:
    """A hundred sends at a mute slave take slaveTimeout together, not one after the other (RocketMQ #1227)."""
    with alone(tmp_path) as node, node.client() as client:
        assert send(client, "m-0", no_wait=True).status == SendStatus.PUT_OK
        with mute_slave(node):
            statuses: list[int] = []
            threads = [
                threading.Thread(target=lambda at=at: statuses.append(send(client, f"w-{at}").status))
                for at in range(100)
            ]
            begun = time.monotonic()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert time.monotonic() - begun < 70 * SLAVE_TIMEOUT / 1000
            assert set(statuses) == {SendStatus.FLUSH_SLAVE_TIMEOUT}


def test_a_late_ack_is_in_time_for_those_who_still_wait(tmp_path: Path) -> None:
    """An ack that comes within slaveTimeout ends the wait with PUT_OK."""
    with alone(tmp_path, slaveTimeout=50_000) as node, node.client() as client:
        assert send(client, "m-0", no_wait=True).status == SendStatus.PUT_OK
        with mute_slave(node) as connection:
            told: list[int] = []
            before = node.role().max_offset
            sender = threading.Thread(target=lambda: told.append(send(client, "m-1").status))
            sender.start()
            until(lambda: node.role().max_offset > before, 60, "it is appended")
            end = node.role().max_offset
            until(lambda: any(one.sent_offset >= end for one in replicas(node)), 60, "it is sent")
            assert not told
            connection.sendall(REPORT.pack(end))
            sender.join(60)
            assert told == [SendStatus.PUT_OK]


def replicas(node: Node) -> list[ReplicaStatus]:
    """What the master knows of its slaves."""
    status = node.status()
    return [] if status is None else list(status.replicas)


def test_too_few_in_sync_refuses_before_anything_is_stored(tmp_path: Path) -> None:
    with alone(tmp_path, inSyncReplicas=2, minInSyncReplicas=2) as node, node.client() as client:
        end = node.role().max_offset
        with pytest.raises(RequestFailed) as refused:
            send(client, "m-0")
        assert refused.value.status == "IN_SYNC_REPLICAS_NOT_ENOUGH"
        assert node.role().max_offset == end


def test_enough_in_sync_is_served_again(tmp_path: Path) -> None:
    """minInSyncReplicas=2: taken while the slave is there, refused while it is not."""
    settings = {"inSyncReplicas": 2, "minInSyncReplicas": 2}
    with Pair(tmp_path, store={**PATIENT, **settings}, replicator=settings) as pair, pair.master.client() as client:
        assert send(client, "m-0").status == SendStatus.PUT_OK
        pair.slave.replicator.kill()

        def refused() -> bool:
            try:
                send(client, "m-1")
            except RequestFailed as error:
                return error.status == "IN_SYNC_REPLICAS_NOT_ENOUGH"
            return False

        until(refused, 60, "sends are refused")
        pair.heal()
        assert send(client, "m-2").status == SendStatus.PUT_OK


def test_a_slave_that_is_too_far_behind_is_not_waited_for(tmp_path: Path) -> None:
    """haSlaveFallbehindMax: SLAVE_NOT_AVAILABLE at once."""
    with alone(tmp_path, slaveTimeout=LONG, haSlaveFallbehindMax=20_000) as node, node.client() as client:
        assert send(client, "m-0", no_wait=True).status == SendStatus.PUT_OK
        with mute_slave(node):
            for number in range(3):
                client.send("orders", bytes(8_000), keys=[f"m-{number}"], no_wait=True)
            assert send(client, "m-1").status == SendStatus.SLAVE_NOT_AVAILABLE


def test_fewer_replicas_are_asked_for_while_fewer_are_there(tmp_path: Path) -> None:
    """enableAutoInSyncReplicas: of three that are wanted, those that are in sync; down to minInSyncReplicas."""
    settings = {"inSyncReplicas": 3, "minInSyncReplicas": 1, "enableAutoInSyncReplicas": "true"}
    with Pair(tmp_path, store={**PATIENT, **settings}, replicator=settings) as pair, pair.master.client() as client:
        receipt = send(client, "m-0")
        assert receipt.status == SendStatus.PUT_OK
        assert pair.slave.role().max_offset > receipt.physical_offset, "the one that is there is waited for"
        pair.slave.kill()
        until(lambda: getattr(pair.master.status(), "in_sync", -1) == 0, 60, "it is missed")
        assert send(client, "m-1").status == SendStatus.PUT_OK


def test_an_asynchronous_master_waits_for_nobody(tmp_path: Path) -> None:
    with alone(tmp_path, "ASYNC_MASTER", slaveTimeout=LONG) as node, node.client() as client:
        assert send(client, "m-0").status == SendStatus.PUT_OK
        with mute_slave(node):
            assert send(client, "m-1").status == SendStatus.PUT_OK


def test_a_slave_refuses_messages_and_serves_them(tmp_path: Path) -> None:
    with (
        Pair(tmp_path, store=PATIENT) as pair,
        pair.master.client() as client,
        pair.slave.client() as reader,
    ):
        receipt = send(client, "m-0")
        assert receipt.status == SendStatus.PUT_OK
        with pytest.raises(RequestFailed) as refused:
            send(reader, "m-1")
        assert refused.value.status == "SERVICE_NOT_AVAILABLE"
        pair.wait_level()
        until(lambda: pair.slave_knows("orders"), 60, "the topic has come to the slave")
        until(lambda: reader.pull("orders", receipt.queue_id, 0).records, 60, "the slave serves the message")
        record = reader.pull("orders", receipt.queue_id, 0).records[0]
        assert (record.physical_offset, record.body) == (receipt.physical_offset, outgoing("orders", "m-0").body)


def test_a_flushed_ack_waits_for_the_slaves_disk(tmp_path: Path) -> None:
    """haSlaveAck=FLUSHED: PUT_OK says that the message is on the slave's disk."""
    with (
        Pair(tmp_path, store=PATIENT, slave_replicator={"haSlaveAck": "FLUSHED"}) as pair,
        pair.master.client() as client,
    ):
        for number in range(20):
            receipt = send(client, f"m-{number}")
            assert receipt.status == SendStatus.PUT_OK
            assert pair.slave.role().flushed_offset > receipt.physical_offset
