"""A reset by admin while classic consumers run: they are told where to go on, and do not undo it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.common.wire.remoting.codes import RequestCode
from tests.admin_process import AdminProcess, lone_node, running
from tests.contract.remoting.classic_client import ClassicClient, records
from tests.faults.pair import Node
from tests.faults.pair_process import until

PATIENCE = 60


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node that serves classic clients at a free port."""
    node = lone_node(tmp_path_factory.mktemp("classic") / "alpha", store={"remotingMode": "ON", "listenPort": 0})
    with running(node):
        yield node


@pytest.fixture
def client(node: Node) -> Iterator[ClassicClient]:
    """A classic client of its store."""
    (event,) = (one for one in node.store.events() if one["event"] == "listening for classic clients")
    with ClassicClient(int(event["remoting"].rpartition(":")[2]), "classic") as client:
        yield client


@pytest.mark.slow
def test_a_classic_consumer_goes_on_where_a_reset_says(node: Node, client: ClassicClient, tmp_path: Path) -> None:
    for number in range(5):
        client.send("orders", b"%d" % number)
    client.heartbeat(consumes={"billing": {"orders": "*"}})
    assert len(records(client.pull("billing", "orders", 0))) == 5
    client.pull("billing", "orders", 5, commit=5)
    with AdminProcess(tmp_path / "admin", {"one": node}) as admin:

        def lag() -> int:
            listed = admin.stub.ListGroups(pb.ListGroupsRequest(match="billing"), timeout=PATIENCE).groups
            return listed[0].lag if listed and listed[0].topics == ["orders"] else -1

        until(lambda: lag() == 0, PATIENCE, "metasync has heard of the commit")
        held = client.begin_pull("billing", "orders", 5, commit=5, suspend=PATIENCE * 1000)
        reset = pb.ResetOffsetsRequest(group="billing", topic="orders", earliest=True)
        admin.stub.ResetOffsets(reset, timeout=PATIENCE)
        told = client.next_asked(RequestCode.RESET_CONSUMER_CLIENT_OFFSET)
        assert (told.fields["group"], told.fields["topic"]) == ("billing", "orders")
        assert b'"queueId":0' in told.body
        assert told.body.endswith(b":0}}")
        assert not held.done(), "the consumer drops what it brings"
        assert len(records(client.pull("billing", "orders", 0, commit=0))) == 5
        assert lag() == 5, "nothing that was committed before has undone it"
        client.pull("billing", "orders", 5, commit=5)
        until(lambda: lag() == 0, PATIENCE, "what is committed from now on counts")
