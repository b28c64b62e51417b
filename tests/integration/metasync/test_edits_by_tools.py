"""Tables that metasync keeps are changed by tools through the store's remoting port."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tandemmq.common.wire.remoting.codes import RequestCode, ResponseCode
from tandemmq.metadata.v1 import metadata_pb2 as pb
from tests.contract.remoting.classic_client import ClassicClient
from tests.contract.remoting.conftest import port_of
from tests.contract.remoting.test_administration import make_group, make_topic
from tests.contract.store_process import StoreProcess
from tests.integration.metasync.test_with_store import Node
from tests.metasync_process import MetasyncProcess, wait_until

pytestmark = pytest.mark.timeout(300)
code = RequestCode


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path / "node", "ASYNC_MASTER")
    made.store.settings |= {"remoting_mode": "on", "listen_port": 0, "broker_name": "broker-a"}
    try:
        made.start()
        yield made
    finally:
        made.kill()


def client_of(store: StoreProcess) -> ClassicClient:
    return ClassicClient(port_of(store))


def topic_of(metasync: MetasyncProcess, name: str) -> pb.TopicConfig:
    return next(one for page in metasync.whole(pb.TOPICS) for one in page.topics if one.name == name)


def group_of(metasync: MetasyncProcess, name: str) -> pb.SubscriptionGroupConfig:
    return next(one for page in metasync.whole(pb.SUBSCRIPTION_GROUPS) for one in page.groups if one.name == name)


@pytest.mark.slow
def test_topics_and_groups_are_metasyncs_at_once_and_stay(node: Node) -> None:
    with client_of(node.store) as client:
        make_topic(client, "tooled", read=2, write=3, perm=6)
        many = [{"topicName": f"listed{at}", "readQueueNums": 1, "writeQueueNums": 1} for at in range(2)]
        client.ask(code.UPDATE_AND_CREATE_TOPIC_LIST, {}, json.dumps({"topicConfigList": many}).encode())
        make_group(client, "tooled-g", retryMaxTimes=7)
        made = topic_of(node.metasync, "tooled")
        assert (made.read_queues, made.write_queues) == (2, 3)
        assert {"tooled", "listed0", "listed1"} <= node.metasync.names()
        assert group_of(node.metasync, "tooled-g").retry_max_times == 7
        make_topic(client, "tooled", read=4, write=4, perm=4)
        assert json.loads(client.ask(code.GET_TOPIC_CONFIG, {"topic": "tooled"}).body)["perm"] == 4
        assert topic_of(node.metasync, "tooled").read_queues == 4
        client.ask(code.DELETE_TOPIC_IN_BROKER, {"topic": "listed0"})
        client.ask(code.DELETE_SUBSCRIPTIONGROUP, {"groupName": "tooled-g", "cleanOffset": "true"})
        assert client.call(code.GET_TOPIC_CONFIG, {"topic": "listed0"}).code == ResponseCode.TOPIC_NOT_EXIST
    assert "listed0" not in node.metasync.names()
    assert "tooled-g" not in node.metasync.names(pb.SUBSCRIPTION_GROUPS)
    node.metasync.restart(signal.SIGKILL)
    node.store.restart(signal.SIGKILL)
    assert {"tooled", "listed1"} <= node.metasync.names()
    with client_of(node.store) as client:
        wait_until(
            lambda: client.call(code.GET_TOPIC_CONFIG, {"topic": "listed0"}).code == ResponseCode.TOPIC_NOT_EXIST,
            "deleted for good",
        )
        assert json.loads(client.ask(code.GET_TOPIC_CONFIG, {"topic": "tooled"}).body)["perm"] == 4


@pytest.mark.slow
def test_nothing_changes_while_metasync_is_away(node: Node) -> None:
    with client_of(node.store) as client:
        make_topic(client, "before")
        node.metasync.stop(signal.SIGKILL)
        refused = client.call(
            code.UPDATE_AND_CREATE_TOPIC,
            {
                "topic": "meanwhile",
                "defaultTopic": "TBW102",
                "topicFilterType": "SINGLE_TAG",
                "readQueueNums": 1,
                "writeQueueNums": 1,
                "perm": 6,
                "order": "false",
            },
        )
        assert (refused.code, "metasync at " in refused.remark) == (ResponseCode.SERVICE_NOT_AVAILABLE, True)
        deleted = client.call(code.DELETE_TOPIC_IN_BROKER, {"topic": "before"})
        assert deleted.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert client.call(code.GET_TOPIC_CONFIG, {"topic": "meanwhile"}).code == ResponseCode.TOPIC_NOT_EXIST
        assert client.call(code.GET_TOPIC_CONFIG, {"topic": "before"}).code == ResponseCode.SUCCESS
        node.metasync.start()
        assert "before" in node.metasync.names()
        make_topic(client, "meanwhile")
        assert "meanwhile" in node.metasync.names()


@pytest.mark.slow
def test_a_slave_s_store_makes_changes_at_the_master_s_metasync(node: Node, tmp_path: Path) -> None:
    slave = Node(tmp_path / "slave", "SLAVE")
    slave.store.settings |= {"remoting_mode": "on", "listen_port": 0, "broker_name": "broker-a"}
    slave.metasync.settings["metasync_master_address"] = node.metasync.address
    try:
        slave.start()
        with client_of(slave.store) as client:
            make_topic(client, "led", read=2, write=3, perm=6)
            assert topic_of(node.metasync, "led").write_queues == 3
            wait_until(lambda: "led" in slave.metasync.names(), "copied from the master's")
            client.ask(code.DELETE_TOPIC_IN_BROKER, {"topic": "led"})
            assert "led" not in node.metasync.names()
    finally:
        slave.kill()
