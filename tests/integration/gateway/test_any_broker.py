"""Receives that name no broker, through a gateway before two stores: whichever has a message gives it, at once."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tests.contract.gateway_process import GatewayProcess
from tests.contract.rocketmq5.v2_client import V2Client, duration, message
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BROKERS = ("broker-a", "broker-b")
LONG = 60.0
SHORT = 2.0
GROUP = "anywhere"


class TwoStores:
    """Two stores, each a broker, and a gateway. Messages are sent to one of the stores itself."""

    def __init__(self, stack: ExitStack, directory: Path, **gateway: object) -> None:
        self.stores = {name: stack.enter_context(StoreProcess(directory / name, broker_name=name)) for name in BROKERS}
        listed = {name: [store.internal] for name, store in self.stores.items()}
        self.gateway = stack.enter_context(GatewayProcess(directory / "gateway", listed, **gateway))
        self.client = stack.enter_context(V2Client(self.gateway.address))
        self.direct = {name: stack.enter_context(V2Client(store.address)) for name, store in self.stores.items()}
        self.workers = stack.enter_context(ThreadPoolExecutor(4))
        until(lambda: self.route("ready") == {*BROKERS}, LONG, "both brokers are linked")

    def route(self, topic: str) -> set[str]:
        return {one.broker.name for one in self.client.route(topic).message_queues}

    def begun(self, topic: str) -> str:
        """A topic that the group consumes from its beginning, at both."""
        assert self.route(topic) == {*BROKERS}
        self.look(topic)
        return topic

    def look(self, topic: str) -> None:
        """Nothing is there at either broker; what the gateway was asked before has got there since."""
        for name in BROKERS:
            queue = pb.MessageQueue(topic=pb.Resource(name=topic), id=-1, broker=pb.Broker(name=name))
            assert self.client.receive(GROUP, topic, wait=0, message_queue=queue) == []

    def poll(self, topic: str) -> Any:
        """A receive that waits already."""
        call = self.client.begin_receive(
            GROUP, topic, LONG, long_polling_timeout=duration(LONG / 2), invisible_duration=duration(30)
        )
        call.initial_metadata()
        for _ in range(3):  # it looks at both brokers first
            self.look(topic)
        return call

    def send(self, broker: str, topic: str, body: bytes) -> None:
        assert self.direct[broker].send(message(topic, body)).status.code == pb.OK


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoStores]:
    with ExitStack() as stack:
        yield TwoStores(stack, tmp_path_factory.mktemp("two"))


@contextmanager
def hanging(store: StoreProcess) -> Iterator[None]:
    """The process is there, and does nothing."""
    assert store.process is not None
    os.kill(store.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(store.process.pid, signal.SIGCONT)


def given_by(call: Any) -> list[Any]:
    return [part.message for part in call if part.HasField("message")]


def seen(messages: list[Any]) -> list[tuple[bytes, int]]:
    """Bodies, and how often each was given out."""
    return sorted((one.body, one.system_properties.delivery_attempt) for one in messages)


def test_a_receive_waits_at_all_brokers(two: TwoStores) -> None:
    topic = two.begun("waited")
    for number, broker in enumerate((*BROKERS, *BROKERS[::-1])):  # whichever the gateway begins with
        poll = two.poll(topic)
        two.send(broker, topic, b"%d" % number)
        given = given_by(poll)
        assert seen(given) == [(b"%d" % number, 1)]
        assert two.client.acknowledge(GROUP, *given).status.code == pb.OK


def test_what_a_second_broker_gives_is_there_again_and_was_not_counted(two: TwoStores) -> None:
    topic = two.begun("at-once")
    for number in range(20):
        poll = two.poll(topic)
        sent = [two.workers.submit(two.send, broker, topic, b"%d" % number) for broker in BROKERS]
        given = given_by(poll)
        for one in sent:
            one.result()
        while len(given) < 2:
            given += two.client.receive(GROUP, topic, LONG)
        assert seen(given) == [(b"%d" % number, 1)] * 2
        assert two.client.acknowledge(GROUP, *given).status.code == pb.OK


def test_what_is_ready_at_any_broker_comes_without_waiting(two: TwoStores) -> None:
    topic = two.begun("ready-ones")
    for number in range(8):
        two.send(BROKERS[number % 2], topic, b"%d" % number)
    first = two.client.receive(GROUP, topic, wait=0)
    second = two.client.receive(GROUP, topic, wait=0)
    assert seen([*first, *second]) == [(b"%d" % number, 1) for number in range(8)]


def test_both_brokers_have_their_turn(two: TwoStores) -> None:
    topic = two.begun("in-turn")
    for number in range(12):
        for broker in BROKERS:
            two.send(broker, topic, broker.encode() + b"%d" % number)
    given = [two.client.receive(GROUP, topic, wait=0, batch_size=1)[0].body[:8] for _ in range(12)]
    assert {name: given.count(name.encode()) for name in BROKERS} == {"broker-a": 6, "broker-b": 6}


def test_a_client_that_hangs_up_waits_nowhere(two: TwoStores) -> None:
    topic = two.begun("hung-up")
    two.poll(topic).cancel()
    two.look(topic)
    for broker in BROKERS:
        two.send(broker, topic, broker.encode())
    given = two.client.take(GROUP, topic, 2)
    assert seen(given) == [(b"broker-a", 1), (b"broker-b", 1)]


@pytest.mark.parametrize("broker", BROKERS)
def test_a_broker_that_hangs_costs_its_messages_only(two: TwoStores, broker: str) -> None:
    topic = two.begun(f"beside-{broker}")
    other = next(name for name in BROKERS if name != broker)
    two.send(broker, topic, b"lies")
    with hanging(two.stores[broker]):
        for number in range(2):  # whichever the gateway begins with
            two.send(other, topic, b"%d" % number)
            parts = two.client.parts(
                GROUP, topic, SHORT + 3, long_polling_timeout=duration(SHORT), invisible_duration=duration(30)
            )
            assert seen(given_by(parts)) == [(b"%d" % number, 1)]
        parts = two.client.parts(
            GROUP, topic, SHORT + 3, long_polling_timeout=duration(SHORT), invisible_duration=duration(30)
        )
        assert [one.status.code for one in parts if one.HasField("status")] == [pb.MESSAGE_NOT_FOUND]
    assert [body for body, _ in seen(two.client.take(GROUP, topic, 1))] == [b"lies"]


def test_brokers_without_the_topic_are_not_asked(tmp_path: Path) -> None:
    with ExitStack() as stack:
        two = TwoStores(stack, tmp_path, auto_create_topic_enable="true")
        made = "only-there"
        listed = {name: [store.internal] for name, store in two.stores.items()}
        strict = stack.enter_context(GatewayProcess(tmp_path / "strict", listed, auto_create_topic_enable="false"))
        client = stack.enter_context(V2Client(strict.address))
        two.direct["broker-b"].route(made)
        until(lambda: brokers_of(client, made) == {"broker-b"}, LONG, "its route is known")
        assert client.receive(GROUP, made, wait=SHORT) == []
        two.send("broker-b", made, b"there")
        assert seen(client.receive(GROUP, made, wait=LONG)) == [(b"there", 1)]


def brokers_of(client: V2Client, topic: str) -> set[str]:
    try:
        return {one.broker.name for one in client.route(topic).message_queues}
    except grpc.RpcError:
        return set()
