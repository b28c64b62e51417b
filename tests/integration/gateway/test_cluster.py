"""Two pairs and two gateways: a gateway is killed, a broker is down, a slave is promoted."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import grpc
import pytest

from tandemmq.gateway.choosing import chosen
from tandemmq.replication.v1.replication_pb2 import PromoteRequest
from tandemmq.rocketmq5.v2 import calls_pb2
from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tandemmq.store.v1.replica_log_pb2 import BrokerRole
from tests.contract.gateway_process import GatewayProcess
from tests.contract.rocketmq5.v2_client import V2Client, duration, message
from tests.faults.pair import Pair
from tests.faults.pair_process import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BROKERS = ("broker-a", "broker-b")
PATIENCE = 60.0


class Cluster:
    """Two pairs, by name, and two gateways."""

    def __init__(self, pairs: dict[str, Pair], gateways: list[GatewayProcess]) -> None:
        self.pairs = pairs
        self.gateways = gateways

    def client(self, at: int = 0) -> V2Client:
        """A client of one gateway."""
        return V2Client(self.gateways[at].address)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        pairs = {}
        for name in BROKERS:
            own = {"brokerName": name}
            pairs[name] = stack.enter_context(Pair(directory / name, store={**own, **QUICK}, replicator=own))
        listed = {name: [node.address("internal") for node in pair.nodes] for name, pair in pairs.items()}
        gateways = [GatewayProcess(directory / f"gateway-{at}", listed) for at in range(2)]
        for gateway in gateways:
            stack.enter_context(gateway)
        found = Cluster(pairs, gateways)
        with found.client() as client:
            until(lambda: brokers_of(client, "ready") == {*BROKERS}, PATIENCE, "both brokers are linked")
        yield found


QUICK = {"transactionTimeOut": 1_000, "transactionCheckInterval": 1_000}


def brokers_of(client: V2Client, topic: str) -> set[str]:
    """The brokers that a route names."""
    return {one.broker.name for one in client.route(topic).message_queues}


def at(broker: str, topic: str) -> pb.MessageQueue:
    """Any queue of a broker."""
    return pb.MessageQueue(topic=pb.Resource(name=topic), id=-1, broker=pb.Broker(name=broker))


def take_all(client: V2Client, group: str, topic: str, count: int, **fields: Any) -> list[Any]:
    """So many messages of both brokers."""
    found: list[Any] = []
    deadline = time.monotonic() + PATIENCE
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} of {count} messages came"
        for broker in BROKERS:
            found += client.receive(group, topic, wait=0.2, message_queue=at(broker, topic), **fields)
    return found


def bodies(messages: list[Any]) -> list[bytes]:
    return sorted(one.body for one in messages)


@contextmanager
def down(pair: Pair) -> Iterator[None]:
    """Both nodes of a pair are killed, and started again afterwards."""
    for node in pair.nodes:
        node.kill()
    try:
        yield
    finally:
        pair.heal()


def test_queues_of_both_are_one_route_and_topics_are_made_on_each(cluster: Cluster) -> None:
    with cluster.client() as client, cluster.client(1) as other:
        queues = client.route("spread").message_queues
        assert sorted((one.broker.name, one.id) for one in queues) == [
            (name, number) for name in BROKERS for number in range(4)
        ]
        assert brokers_of(other, "spread") == {*BROKERS}
        assignment = client.ask(
            "QueryAssignment",
            topic=pb.Resource(name="spread"),
            group=pb.Resource(name="all"),
            endpoints=client.endpoints,
        )
        assert [one.message_queue.broker.name for one in assignment.assignments] == [*BROKERS]


def test_messages_spread_and_each_handle_finds_its_broker_through_any_gateway(cluster: Cluster) -> None:
    with cluster.client() as client, cluster.client(1) as other:
        client.route("parted")
        for broker in BROKERS:
            client.receive("all", "parted", wait=0, message_queue=at(broker, "parted"))
        sent = [client.send(message("parted", b"%03d" % number)).entries[0] for number in range(60)]
        assert {one.status.code for one in sent} == {pb.OK}
        each = {broker: client.receive("all", "parted", message_queue=at(broker, "parted")) for broker in BROKERS}
        assert min(map(len, each.values())) > 5
        given = [*each[BROKERS[0]], *each[BROKERS[1]]]
        given += take_all(client, "all", "parted", 60 - len(given))
        assert bodies(given) == [b"%03d" % number for number in range(60)]
        answer = other.acknowledge("all", *given)  # one request for handles of both brokers, at another gateway
        assert [one.status.code for one in answer.entries] == [pb.OK] * 60


def test_a_message_group_stays_at_its_broker(cluster: Cluster) -> None:
    with cluster.client() as client, cluster.client(1) as other:
        client.route("ordered")
        for broker in BROKERS:
            client.receive("keeper", "ordered", wait=0, message_queue=at(broker, "ordered"))
        groups = [f"order-{number}" for number in range(6)]
        for number in range(5):
            for name in groups:
                sender = (client, other)[number % 2]
                sent = sender.send(message("ordered", b"%d" % number, pb.FIFO, message_group=name))
                assert sent.status.code == pb.OK
        for broker in BROKERS:
            mine = [name for name in groups if chosen(name, BROKERS) == broker]
            given = client.take("keeper", "ordered", 5 * len(mine), message_queue=at(broker, "ordered")) if mine else []
            assert {one.system_properties.message_group for one in given} == set(mine)
            for name in mine:
                own = [one.body for one in given if one.system_properties.message_group == name]
                assert own == [b"%d" % number for number in range(5)]


def test_a_killed_gateway_causes_no_redelivery_of_what_its_clients_hold(cluster: Cluster) -> None:
    with cluster.client() as client, cluster.client(1) as other:
        client.route("held")
        for broker in BROKERS:
            client.receive("holders", "held", wait=0, message_queue=at(broker, "held"))
        for number in range(20):
            client.send(message("held", b"%02d" % number))
        client.stream().say(client.consumer(pb.PUSH_CONSUMER, "holders", "held"))
        given = take_all(client, "holders", "held", 10, batch_size=5, auto_renew=True, invisible=None)
        waiting = client.begin_receive("empty", "held", message_queue=at("broker-a", "held"), batch_size=1)
        waiting.initial_metadata()
        cluster.gateways[0].stop(signal.SIGKILL)
        other.headers = client.headers  # the same client, which comes back through the other gateway
        rest = take_all(other, "holders", "held", 20 - len(given))
        assert bodies([*given, *rest]) == [b"%02d" % number for number in range(20)]
        for broker in BROKERS:
            assert other.receive("holders", "held", wait=1, message_queue=at(broker, "held")) == []
        answer = other.acknowledge("holders", *given, *rest)
        assert {one.status.code for one in answer.entries} == {pb.OK}
    cluster.gateways[0].start()


def test_a_transaction_is_asked_about_and_ended_through_any_gateway(cluster: Cluster) -> None:
    with cluster.client() as client, cluster.client(1) as other:
        for broker in BROKERS:
            client.receive("buyers", "sales", wait=0, message_queue=at(broker, "sales"))
        stream = other.stream()
        stream.say(other.producer("sales"))
        stream.next("settings")
        sent = {}
        for number in range(4):
            half = message("sales", b"%d" % number, pb.TRANSACTION, orphaned_transaction_recovery_duration=duration(1))
            sent[client.send(half).entries[0].transaction_id] = number
        asked: set[str] = set()
        while len(asked) < 4:
            command = stream.next("recover_orphaned_transaction_command").recover_orphaned_transaction_command
            asked.add(command.transaction_id)
            ended = client.ask(
                "EndTransaction",
                topic=pb.Resource(name="sales"),
                transaction_id=command.transaction_id,
                message_id=command.message.system_properties.message_id,
                resolution=calls_pb2.COMMIT,
                source=calls_pb2.SOURCE_SERVER_CHECK,
            )
            assert ended.status.code == pb.OK
        assert asked == set(sent)
        assert bodies(take_all(client, "buyers", "sales", 4)) == [b"0", b"1", b"2", b"3"]


def test_a_broker_that_is_down_costs_its_queues_only(cluster: Cluster) -> None:
    with cluster.client() as client:
        client.route("partly")
        for broker in BROKERS:
            client.receive("some", "partly", wait=0, message_queue=at(broker, "partly"))
        lost = next(name for name in map(str, range(100)) if chosen(name, BROKERS) == "broker-b")
        kept = next(name for name in map(str, range(100)) if chosen(name, BROKERS) == "broker-a")
        with down(cluster.pairs["broker-b"]):
            assert {client.send(message("partly")).status.code for _ in range(20)} == {pb.OK}, "from the first on"
            until(lambda: brokers_of(client, "partly") == {"broker-a"}, PATIENCE, "the route forgets the broker")
            assert client.send(message("partly", b"kept", pb.FIFO, message_group=kept)).status.code == pb.OK
            refused = client.send(message("partly", b"lost", pb.FIFO, message_group=lost))
            assert refused.status.code == pb.HA_NOT_AVAILABLE
            assert "broker-b" in refused.status.message
            assert client.receive("some", "partly", wait=0.5, message_queue=at("broker-b", "partly")) == []
            assert len(client.take("some", "partly", 21, message_queue=at("broker-a", "partly"))) == 21
        until(lambda: brokers_of(client, "partly") == {*BROKERS}, PATIENCE, "the broker is back")
        sent = client.send(message("partly", b"lost", pb.FIFO, message_group=lost))
        assert sent.status.code == pb.OK


def test_a_promotion_is_followed_without_an_error(cluster: Cluster) -> None:
    """The master is killed, its slave promoted: sends wait for it, and nothing that was acknowledged is lost."""
    pair = cluster.pairs["broker-a"]
    group = next(name for name in map(str, range(100)) if chosen(name, BROKERS) == "broker-a")
    with cluster.client() as client:
        client.route("moved")
        client.receive("movers", "moved", wait=0, message_queue=at("broker-a", "moved"))
        for number in range(5):
            assert client.send(message("moved", b"%d" % number, pb.FIFO, message_group=group)).status.code == pb.OK
        held = client.receive("movers", "moved", batch_size=1, message_queue=at("broker-a", "moved"))
        pair.wait_level()
        pair.master.kill()
        request = PromoteRequest(role=BrokerRole.ASYNC_MASTER, old_master_is_gone=True)
        pair.slave.replication().Promote(request, timeout=PATIENCE)
        until(lambda: brokers_of(client, "moved") == {*BROKERS}, PATIENCE, "the new master is found")
        for number in range(5, 8):
            sent = client.send(message("moved", b"%d" % number, pb.FIFO, message_group=group), seconds=PATIENCE)
            assert sent.status.code == pb.OK, sent
        assert client.acknowledge("movers", *held).entries[0].status.code == pb.OK
        rest = client.take("movers", "moved", 7, message_queue=at("broker-a", "moved"))
        assert bodies([*held, *rest]) == [b"%d" % number for number in range(8)]


def test_a_send_is_held_while_a_promotion_goes_on(cluster: Cluster) -> None:
    """Three tries of 3 s, as clients make them, hide six seconds without a master; the message is stored once."""
    pair = cluster.pairs["broker-b"]
    group = next(name for name in map(str, range(100)) if chosen(name, BROKERS) == "broker-b")
    with cluster.client() as client:
        client.route("held-back")
        client.receive("holders", "held-back", wait=0, message_queue=at("broker-b", "held-back"))
        assert client.send(message("held-back", b"before", pb.FIFO, message_group=group)).status.code == pb.OK
        pair.wait_level()
        pair.master.kill()
        request = PromoteRequest(role=BrokerRole.ASYNC_MASTER, old_master_is_gone=True)
        later = threading.Timer(6, pair.slave.replication().Promote, [request], {"timeout": PATIENCE})
        later.start()
        held = message("held-back", b"held", pb.FIFO, message_group=group)
        codes = [code for _ in range(3) if (code := tried(client, held)) is not None]
        later.join()
        assert pb.OK in codes, codes
        assert {*codes} == {pb.OK}, "no try is refused"
        found = client.take("holders", "held-back", 2, message_queue=at("broker-b", "held-back"))
        assert bodies(found) == [b"before", b"held"]
        assert client.receive("holders", "held-back", wait=1, message_queue=at("broker-b", "held-back")) == []


def tried(client: V2Client, sent: Any) -> int | None:
    """The code of one try of 3 s; None where the time is over."""
    try:
        return int(client.send(sent, seconds=3).status.code)
    except grpc.RpcError as error:
        if cast(Any, error).code() != grpc.StatusCode.DEADLINE_EXCEEDED:
            raise
        return None


def test_a_gateway_that_is_stopped_ends_polls_and_asks_clients_to_connect_anew(cluster: Cluster) -> None:
    with cluster.client(1) as client:
        stream = client.stream()
        stream.say(client.consumer(pb.PUSH_CONSUMER, "polling", "polled"))
        stream.next("settings")
        client.route("polled")
        call = client.begin_receive(
            "polling", "polled", message_queue=at("broker-b", "polled"), long_polling_timeout=duration(25),
            invisible_duration=duration(30),
        )  # fmt: skip
        call.initial_metadata()
        assert cluster.gateways[1].stop() == 0
        assert [part.status.code for part in call if part.HasField("status")] == [pb.MESSAGE_NOT_FOUND]
        assert stream.next("reconnect_endpoints_command").reconnect_endpoints_command.nonce
        with pytest.raises(grpc.RpcError):
            client.route("polled")
