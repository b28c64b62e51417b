"""RocketMQ 5 clients that know the addresses of both nodes of a pair are led to the master, whichever they ask."""

from pathlib import Path

import pytest

from tandemmq.rocketmq5.v2 import resources_pb2 as pb
from tests.contract.rocketmq5.v2_client import V2Client, message
from tests.faults.pair import Node, Pair

pytestmark = pytest.mark.slow


def addresses(*nodes: Node) -> pb.Endpoints:
    """A list as a client has it."""
    return pb.Endpoints(scheme=pb.IPv4, addresses=[pb.Address(host=one.host, port=one.ports["store"]) for one in nodes])


def led_to(node: Node, asked: pb.Endpoints, topic: str) -> list[pb.Endpoints]:
    """The endpoints that a node tells of in a route and in an assignment."""
    with V2Client(node.address("store")) as client:
        route = client.route(topic, endpoints=asked)
        assert route.status.code == pb.OK
        names = {"topic": pb.Resource(name=topic), "group": pb.Resource(name="g")}
        assigned = client.ask("QueryAssignment", endpoints=asked, **names)  # type: ignore[arg-type]
        assert len(route.message_queues) == 4
        return [route.message_queues[0].broker.endpoints, assigned.assignments[0].message_queue.broker.endpoints]


def test_both_nodes_name_the_master(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        master, slave = pair.master, pair.slave
        for asked in (addresses(slave, master), addresses(master, slave)):
            for node in (slave, master):  # the slave knows nothing of this topic: its master makes it
                assert led_to(node, asked, "both") == [addresses(master)] * 2
        elsewhere = pb.Endpoints(scheme=pb.IPv4, addresses=[pb.Address(host="192.0.2.1", port=1)])
        assert led_to(slave, elsewhere, "both") == [elsewhere] * 2
        with V2Client(slave.address("store")) as client:
            assert client.send(message("both")).status.code == pb.TOO_MANY_REQUESTS
        with V2Client(master.address("store")) as client:
            assert client.send(message("both")).status.code == pb.OK
