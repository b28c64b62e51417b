"""Tail: each message once and in its queue's order, whatever happens to the store; a slow reader harms nobody."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.client import Outgoing, StoreClient
from tandemmq.replication.v1 import replication_pb2
from tandemmq.store.v1.replica_log_pb2 import BrokerRole
from tests.admin_process import AdminProcess
from tests.faults.pair import Node, Pair
from tests.faults.pair_process import until

DEADLINE = 60.0


class Tail:
    """A tail that is read in a thread."""

    def __init__(self, admin: AdminProcess, **fields: Any) -> None:
        self.found: list[pb.FoundMessage] = []
        self.error: grpc.RpcError | None = None
        self._call = admin.stub.Tail(pb.TailRequest(with_bodies=True, **fields))
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        try:
            for one in self._call:
                self.found.append(one)
        except grpc.RpcError as error:
            self.error = error

    def bodies(self) -> list[bytes]:
        return [one.message.body for one in self.found]

    def wait(self, count: int) -> list[bytes]:
        until(lambda: len(self.found) >= count, DEADLINE, lambda: f"{count} messages, there are {len(self.found)}")
        return self.bodies()

    def close(self) -> None:
        self._call.cancel()
        self._thread.join(60)
        assert not self._thread.is_alive()


@contextmanager
def tailing(admin: AdminProcess, **fields: Any) -> Iterator[Tail]:
    tail = Tail(admin, **fields)
    try:
        yield tail
    finally:
        tail.close()


def touch(client: StoreClient, tail: Tail, topic: str) -> int:
    """Messages until the tail has begun, for it begins at the end; gives how many of them it shows."""
    number = -1
    deadline = time.monotonic() + DEADLINE
    while not tail.found:
        assert time.monotonic() < deadline, "the tail does not begin"
        number += 1
        client.send(topic, b"touch %d" % number, queue_id=0)
        time.sleep(0.02)
    until(lambda: tail.found[-1].message.body == b"touch %d" % number, DEADLINE, "the tail has begun")
    return len(tail.found)


def refusal(admin: AdminProcess, **fields: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as raised:
        next(admin.stub.Tail(pb.TailRequest(**fields), timeout=DEADLINE))
    return raised.value.code()


def test_messages_of_all_queues_arrive_once_and_in_order(admin: AdminProcess, node: Node) -> None:
    admin.put_topics(["t-all"])
    with node.client() as client, tailing(admin, topic="t-all") as tail:
        begun = touch(client, tail, "t-all")
        for number in range(400):
            client.send("t-all", b"%d" % number, queue_id=number % 4)
        tail.wait(begun + 400)
        for queue in range(4):
            mine = [int(one.message.body) for one in tail.found[begun:] if one.message.queue_id == queue]
            assert mine == list(range(queue, 400, 4))
        assert {one.broker for one in tail.found} == {"alpha"}


def test_the_last_of_each_queue_come_first(admin: AdminProcess, node: Node) -> None:
    with node.client() as client:
        for number in range(20):
            client.send("t-last", b"%d" % number, queue_id=number % 4)
        with tailing(admin, topic="t-last", last=2) as tail:
            assert sorted(map(int, tail.wait(8))) == list(range(12, 20))
            client.send("t-last", b"20", queue_id=3)
            assert tail.wait(9)[-1] == b"20"
        with tailing(admin, topic="t-last", last=1000, queue_ids=[1]) as tail:
            assert tail.wait(5) == [b"1", b"5", b"9", b"13", b"17"]
        with tailing(admin, topic="t-last", last=1000) as tail:
            tail.wait(21)


def test_only_wanted_tags(admin: AdminProcess, node: Node) -> None:
    with node.client() as client:
        for number in range(30):
            client.send("t-tags", b"%d" % number, tag="ABC"[number % 3], queue_id=0)
        with tailing(admin, topic="t-tags", tags="A || C", last=30) as tail:
            assert tail.wait(20) == [b"%d" % number for number in range(30) if number % 3 != 1]


def test_queues_that_come_into_being_are_followed_from_their_begin(admin: AdminProcess, node: Node) -> None:
    admin.put_topics(["t-new"], queues=1)
    with node.client() as client, tailing(admin, topic="t-new") as tail:
        begun = touch(client, tail, "t-new")
        admin.put_topics(["t-new"], queues=6)

        def sent() -> bool:
            with suppress(Exception):  # until the store has heard of it
                return bool(client.send("t-new", b"new", queue_id=5).message_id)
            return False

        until(sent, DEADLINE, "a sixth queue")
        assert tail.wait(begun + 1)[-1] == b"new"


def test_what_cannot_be_tailed(admin: AdminProcess) -> None:
    assert refusal(admin, topic="") == grpc.StatusCode.INVALID_ARGUMENT
    assert refusal(admin, topic="t-no-such") == grpc.StatusCode.NOT_FOUND
    admin.put_topics(["t-few"])
    assert refusal(admin, topic="t-few", queue_ids=[9]) == grpc.StatusCode.NOT_FOUND
    assert refusal(admin, topic="t-few", last=-1) == grpc.StatusCode.INVALID_ARGUMENT
    assert refusal(admin, topic="t-few", broker="zeta") == grpc.StatusCode.NOT_FOUND


@pytest.mark.slow
def test_a_killed_store_goes_on_where_it_was(admin: AdminProcess, node: Node) -> None:
    """kill -9 while messages come in: all that was acknowledged is shown, once, in order."""
    admin.put_topics(["t-killed"])
    acknowledged: list[bytes] = []
    with tailing(admin, topic="t-killed") as tail:
        with node.client() as client:
            begun = touch(client, tail, "t-killed")
        for life in range(3):
            with node.client() as client:
                for number in range(50):
                    body = b"%d-%d" % (life, number)
                    client.send("t-killed", body, queue_id=number % 4)
                    acknowledged.append(body)
            node.processes["store"].kill()
            node.processes["store"].start()
        with node.client() as client:
            client.send("t-killed", b"end", queue_id=0)
        until(lambda: b"end" in tail.bodies(), DEADLINE, "the tail goes on")
        tail.wait(begun + len(acknowledged) + 1)
        shown = [one.message for one in tail.found[begun:]]
        assert len({(one.queue_id, one.queue_offset) for one in shown}) == len(shown), "none twice"
        assert sorted(one.body for one in shown) == sorted([*acknowledged, b"end"])
        for queue in range(4):
            offsets = [one.queue_offset for one in shown if one.queue_id == queue]
            assert offsets == sorted(offsets)
        assert tail.error is None


@pytest.mark.slow
def test_a_slow_reader_makes_admin_neither_large_nor_deaf(admin: AdminProcess, node: Node) -> None:
    with node.client() as client:
        for _ in range(20):
            client.send_batch([_message("t-slow") for _ in range(40)])  # 32 MB in all
    before = admin_memory(admin)
    slow = admin.stub.Tail(pb.TailRequest(topic="t-slow", last=10_000, with_bodies=True))
    first = next(slow)
    assert len(first.message.body) == 40_000
    with node.client() as client, tailing(admin, topic="t-slow") as quick:
        touch(client, quick, "t-slow")
    time.sleep(1)  # for what it might read ahead
    assert admin_memory(admin) - before < 16 << 20
    count = 1
    for _ in slow:
        count += 1
        if count == 800:
            break
    slow.cancel()


def _message(topic: str) -> Outgoing:
    return Outgoing(topic, b"x" * 40_000)


def admin_memory(admin: AdminProcess) -> int:
    """Resident bytes."""
    assert admin.process is not None
    return int(Path(f"/proc/{admin.process.pid}/statm").read_text().split()[1]) * 4096


@pytest.mark.slow
def test_it_ends_at_once_when_admin_is_stopped(node: Node, tmp_path: Path) -> None:
    with AdminProcess(tmp_path / "admin", {"one": node}, shutdown_grace_ms=600_000) as admin:
        with node.client() as client:
            client.send("t-stopped", b"x")
        tail = Tail(admin, topic="t-stopped", last=1)
        tail.wait(1)
        assert admin.process is not None
        admin.process.send_signal(signal.SIGTERM)
        assert admin.process.wait(60) == 0, "it does not wait for the tail's end"
        tail.close()
    assert tail.error is not None
    assert tail.error.code() == grpc.StatusCode.UNAVAILABLE


@pytest.mark.slow
@pytest.mark.serial
def test_a_slave_that_takes_over_goes_on(tmp_path: Path) -> None:
    with (
        Pair(tmp_path, role="SYNC_MASTER") as pair,
        AdminProcess(tmp_path / "admin", {"a": pair.master, "b": pair.slave}) as admin,
    ):
        pair.wait_level()
        admin.put_topics(["t"])
        with tailing(admin, topic="t") as tail:
            with pair.master.client() as client:
                begun = touch(client, tail, "t")
                for number in range(50):
                    client.send("t", b"%d" % number, queue_id=0)
            tail.wait(begun + 50)
            pair.wait_level()
            until(lambda: pair.slave_knows("t"), DEADLINE, "the slave has the topic")
            for process in pair.master.processes.values():
                process.kill()
            request = replication_pb2.PromoteRequest(role=BrokerRole.ASYNC_MASTER, old_master_is_gone=True)
            pair.slave.replication().Promote(request, timeout=DEADLINE)
            with pair.slave.client() as client:
                for number in range(50, 100):
                    client.send("t", b"%d" % number, queue_id=0)
            tail.wait(begun + 100)
            assert [int(body) for body in tail.bodies()[begun:]] == list(range(100))
