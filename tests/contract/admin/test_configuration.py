"""The settings of a node's services."""

import signal
from pathlib import Path

import pytest

from tandemmq.admin.v1 import admin_pb2 as pb
from tests.admin_process import AdminProcess, lone_node, refused
from tests.faults.pair import Node

pytestmark = pytest.mark.xdist_group("calm admin")


@pytest.fixture(scope="module")
def node(calm_node: Node) -> Node:
    """Shared with other modules."""
    return calm_node


@pytest.fixture(scope="module")
def admin(calm_admin: AdminProcess) -> AdminProcess:
    """The same."""
    return calm_admin


def test_every_service_with_defaults_and_origins(admin: AdminProcess, node: Node) -> None:
    answer = admin.stub.GetConfiguration(pb.GetConfigurationRequest(node="one"), timeout=60)
    assert [one.service for one in answer.services] == ["store", "replicator", "metasync"]
    assert not answer.missing
    store = {one.name: one for one in answer.services[0].settings}
    assert store["maxMessageSize"].value == str(48 * 1024)
    assert store["maxMessageSize"].default_value == str(4 << 20)
    assert store["maxMessageSize"].origin == "file"
    assert node.store.config.name in store["maxMessageSize"].place
    assert store["deleteWhen"].origin == "default"
    assert store["deleteWhen"].doc


def test_one_service(admin: AdminProcess) -> None:
    answer = admin.stub.GetConfiguration(pb.GetConfigurationRequest(node="one", service="metasync"), timeout=60)
    assert [one.service for one in answer.services] == ["metasync"]
    with refused("INVALID_ARGUMENT", "there is no service 'broker': known are store, replicator, metasync"):
        admin.stub.GetConfiguration(pb.GetConfigurationRequest(node="one", service="broker"))
    with refused("NOT_FOUND", "there is no node 'two': known are one"):
        admin.stub.GetConfiguration(pb.GetConfigurationRequest(node="two"))


@pytest.mark.slow
def test_a_service_that_does_not_answer_is_named(tmp_path: Path) -> None:
    node = lone_node(tmp_path / "alpha")
    try:
        node.metasync.start()
        with AdminProcess(tmp_path / "admin", {"one": node}) as admin:
            answer = admin.stub.GetConfiguration(pb.GetConfigurationRequest(node="one"), timeout=60)
            assert [one.service for one in answer.services] == ["metasync"]
            assert [(one.service, one.address, one.answers) for one in answer.missing] == [
                ("store", node.address("store"), False),
                ("replicator", node.address("replicator"), False),
            ]
            assert all(one.reason for one in answer.missing)
            assert admin.stop(signal.SIGTERM) == 0
    finally:
        node.close()
