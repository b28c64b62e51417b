"""GetHistory: what admin has collected in the last hour of a node, a topic and a group."""

import grpc
import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tandemmq.store.v1 import store_pb2
from tandemmq.store.v1.store_pb2_grpc import StoreStub
from tests.admin_process import AdminProcess, refused
from tests.faults.pair import Node
from tests.faults.pair_process import until

pytestmark = pytest.mark.xdist_group("calm admin")

PATIENCE = 60


def history(admin: AdminProcess, request: pb.GetHistoryRequest) -> pb.GetHistoryResponse:
    return admin.stub.GetHistory(request, timeout=PATIENCE)


def test_a_node_has_its_disk_from_the_first_round_on(calm_node: Node, calm_admin: AdminProcess) -> None:
    name = calm_admin.stub.GetCluster(pb.GetClusterRequest(), timeout=PATIENCE).nodes[0].name
    request = pb.GetHistoryRequest(node=name)
    until(lambda: history(calm_admin, request).last_ms > 0, PATIENCE, "the first round")
    told = history(calm_admin, request)
    assert told.step_ms == 15_000
    disk = next(one for one in told.series if one.measure == "disk_used")
    assert all(value > 0 for value in disk.values)


def test_what_a_store_tells_of_sends_and_topics(calm_node: Node) -> None:
    """What bytes and send times of the history are made of."""
    with grpc.insecure_channel(calm_node.address("store")) as channel:
        stub = StoreStub(channel)
        before = stub.GetLog(store_pb2.GetLogRequest(), timeout=PATIENCE).send_times
        with calm_node.client() as client:
            sent = [client.send("h-bytes", b"x" * 1000) for _ in range(5)]
        after = stub.GetLog(store_pb2.GetLogRequest(), timeout=PATIENCE).send_times
        (topic,) = stub.ListQueues(store_pb2.ListQueuesRequest(topic="h-bytes"), timeout=PATIENCE).topics
    assert len(after.calls) == len(after.bounds_ms) + 1
    assert sum(after.calls) - sum(before.calls) >= len(sent)
    assert after.sum_ms > before.sum_ms
    assert 5 * 1000 < topic.taken_bytes < 5 * 2000


def test_what_nobody_knows_has_no_series(calm_node: Node, calm_admin: AdminProcess) -> None:
    assert not history(calm_admin, pb.GetHistoryRequest(topic="NeverHeardOf")).series


def test_something_must_be_asked_for(calm_node: Node, calm_admin: AdminProcess) -> None:
    with refused("INVALID_ARGUMENT", "nothing is asked for"):
        history(calm_admin, pb.GetHistoryRequest())
