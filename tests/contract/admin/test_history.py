"""GetHistory: what admin has collected in the last hour of a node, a topic and a group."""

import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
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


def test_what_nobody_knows_has_no_series(calm_node: Node, calm_admin: AdminProcess) -> None:
    assert not history(calm_admin, pb.GetHistoryRequest(topic="NeverHeardOf")).series


def test_something_must_be_asked_for(calm_node: Node, calm_admin: AdminProcess) -> None:
    with refused("INVALID_ARGUMENT", "nothing is asked for"):
        history(calm_admin, pb.GetHistoryRequest())
