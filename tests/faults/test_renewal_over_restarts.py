"""What living clients hold with renewal stays theirs over a kill, a stop, a promotion; what others held comes again."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
import pytest

from tandemmq.client import StoreClient
from tandemmq.delivery.v1 import delivery_pb2
from tandemmq.delivery.v1.delivery_pb2_grpc import DeliveryStub
from tandemmq.replication.v1.replication_pb2 import PromoteRequest
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.delivery.receiving.renewal import ARRIVED_SECONDS, RENEWED_MS
from tandemmq.store.v1.replica_log_pb2 import BrokerRole
from tests.contract.rocketmq5.v2_client import V2Client
from tests.contract.store_process import StoreProcess
from tests.faults.pair import Pair
from tests.faults.pair_process import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400), pytest.mark.xdist_group("renewal")]

GROUP = "workers"
NATIVE, FIVE, GONE = "native", "five", "gone"
"""Clients, each with a topic of its own: two that come back, and one that does not."""
LONGER_SECONDS = RENEWED_MS / 1_000 + 20
PATIENCE = 360.0


class ClientsThere:
    """The clients at one address, all members of the group for as long as they are there."""

    def __init__(self, address: str, *native: str) -> None:
        self._ends = ExitStack()
        channel = self._ends.enter_context(grpc.insecure_channel(address))
        self.delivery = DeliveryStub(channel)
        self.sender = self._ends.enter_context(StoreClient(address))
        self.five = self._ends.enter_context(V2Client(address, x_mq_client_id=FIVE))
        self._over = threading.Event()
        self._calls: list[Any] = [self.delivery.Attend(self._beats(name), timeout=300) for name in native]

    def _beats(self, name: str) -> Iterator[delivery_pb2.HeartbeatRequest]:
        yield delivery_pb2.HeartbeatRequest(client_id=name, memberships=[delivery_pb2.Membership(group=GROUP)])
        self._over.wait()

    def __enter__(self) -> Self:
        for call in self._calls:
            assert next(call).welcome.next_ms
        self.five.route(FIVE)
        stream = self.five.stream()
        stream.say(self.five.consumer(pb.PUSH_CONSUMER, GROUP, FIVE))
        stream.next("settings")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._ends.close()

    def receive(self, topic: str, wait_ms: int = 0, renew_for: str = "") -> list[delivery_pb2.ReceivedMessage]:
        """Messages of a topic, renewed for a client if one is named."""
        request = delivery_pb2.ReceiveRequest(
            group=GROUP, topic=topic, wait_ms=wait_ms, renew=bool(renew_for), client_id=renew_for
        )
        return list(self.delivery.Receive(request, timeout=60).messages)


def held_over(address: str, interrupted: Callable[[], str], arrival_seconds: float = ARRIVED_SECONDS + 2) -> list[int]:
    """Each client gets a message some seconds before the interruption, which gives the store's address after it.

    Gives the delivery numbers of the one whose client is gone.
    """
    with ClientsThere(address, NATIVE, GONE) as before:
        for topic in (NATIVE, FIVE, GONE):
            before.sender.send(topic, b"x")
        [native] = before.receive(NATIVE, 10_000, renew_for=NATIVE)
        gone = before.receive(GONE, 10_000, renew_for=GONE)
        [five] = before.five.receive(GROUP, FIVE, invisible=None, auto_renew=True)
        given = time.monotonic()
        time.sleep(arrival_seconds)
        address = interrupted()
    with ClientsThere(address, NATIVE) as after:
        while time.monotonic() < given + LONGER_SECONDS:
            gone += after.receive(GONE, wait_ms=2_000)
            assert after.receive(NATIVE) == []
            assert after.receive(FIVE) == []
        done = delivery_pb2.AcknowledgeRequest(group=GROUP, topic=NATIVE, handles=[native.handle])
        assert not after.delivery.Acknowledge(done, timeout=60).outcomes[0].HasField("refusal")
        assert after.five.acknowledge(GROUP, five).status.code == pb.OK
        assert [after.receive(topic) for topic in (NATIVE, FIVE, GONE)] == [[], [], []]
    return [one.delivery_number for one in gone]


def over_another_start(root: Path, number: signal.Signals) -> list[int]:
    """A store's own, by a kill or a stop."""
    with StoreProcess(root) as store:
        seconds = ARRIVED_SECONDS + 2 if number == signal.SIGKILL else 0  # a stop need not wait for that
        return held_over(store.address, lambda: store.restart(number).address, seconds)


def caught_by_a_kill(root: Path) -> list[int]:
    """What is on its way when the store is killed may not have arrived: its delivery numbers."""
    with StoreProcess(root) as store:
        with ClientsThere(store.address, NATIVE) as before:
            before.sender.send(NATIVE, b"x")
            [one] = before.receive(NATIVE, 10_000, renew_for=NATIVE)
            store.restart(signal.SIGKILL)
        with ClientsThere(store.address, NATIVE) as after:
            came = [one]

            def comes_again() -> bool:
                came.extend(after.receive(NATIVE, wait_ms=2_000))
                return len(came) > 1

            until(comes_again, 120, "it comes again")
        return [message.delivery_number for message in came]


def over_a_promotion(root: Path) -> list[int]:
    """The slave becomes the master."""
    with Pair(root) as pair:
        copied = pair.slave.root / "tandem.topics"

        def topics_are_there() -> bool:
            """They come by metasync; their queues may be there before."""
            table = copied.read_bytes() if copied.exists() else b""
            return all(topic.encode() in table for topic in (NATIVE, FIVE, GONE))

        def promoted() -> str:
            until(topics_are_there, 60, "the slave's store knows the topics")
            pair.wait_level()
            pair.master.kill()
            request = PromoteRequest(role=BrokerRole.ASYNC_MASTER, old_master_is_gone=True)
            pair.slave.replication().Promote(request, timeout=60)
            return pair.slave.address("store")

        return held_over(pair.master.address("store"), promoted)


SCENARIOS: dict[str, Callable[[Path], list[int]]] = {
    "kill": lambda root: over_another_start(root, signal.SIGKILL),
    "stop": lambda root: over_another_start(root, signal.SIGTERM),
    "caught": caught_by_a_kill,
    "promotion": over_a_promotion,
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[list[int]]]]:
    """All of them side by side: what they do is to wait, for more than a minute each."""
    root = tmp_path_factory.mktemp("renewal")
    with ThreadPoolExecutor(len(SCENARIOS)) as pool:
        yield {name: pool.submit(scenario, root / name) for name, scenario in SCENARIOS.items()}


@pytest.mark.parametrize("name", ["kill", "stop", "promotion"])
def test_what_living_clients_hold_stays_theirs(running: dict[str, Future[list[int]]], name: str) -> None:
    assert running[name].result(PATIENCE) == [1, 2]


def test_what_a_kill_catches_on_its_way_comes_again_though_its_client_lives(
    running: dict[str, Future[list[int]]],
) -> None:
    assert running["caught"].result(PATIENCE) == [1, 2]
