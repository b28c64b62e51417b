"""A slave of RocketMQ copies topics, groups and positions from our master, which it finds by the name server."""

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.documents import java_json
from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import free_port
from tests.interop.remoting import Remoting
from tests.interop.rocketmq import ALONE, VERSIONS, RocketMQ, need_rocketmq
from tests.names_process import NamesProcess

pytestmark = [pytest.mark.interop, ALONE, pytest.mark.slow, pytest.mark.timeout(600)]

QUERY_OFFSET, UPDATE_OFFSET, UPDATE_TOPIC, UPDATE_GROUP = 14, 15, 17, 200
PATIENCE = 240.0
"""A slave of RocketMQ 5 copies once a minute."""


def until(found: Callable[[], Any], expected: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while (now := found()) != expected:
        assert time.monotonic() < deadline, f"{what}: {now}"
        time.sleep(0.2)


def table(root: Path, file: str, key: str) -> dict[str, Any]:
    """A table of the slave, as it stands in its file."""
    try:
        found = java_json.loads((root / "config" / file).read_bytes()).get(key, {})
    except (FileNotFoundError, ValueError):
        return {}
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_a_java_slave_copies_the_tables_of_our_master(version: str, tmp_path: Path) -> None:
    need_rocketmq(version)
    port = free_port()
    ours = {"remoting_mode": "on", "listen_port": port, "broker_name": "pair", "broker_cluster_name": "interop"}
    with (
        NamesProcess(tmp_path / "names") as names,
        StoreProcess(tmp_path / "ours", namesrv_addr=names.address, broker_ip1="127.0.0.1", **ours) as master,
    ):
        names.until_route("TBW102", {"pair": {"0": f"127.0.0.1:{port}"}})
        root = tmp_path / "theirs"
        (root / "config").mkdir(parents=True)
        (root / "config/consumerOffset.json").write_text('{"offsetTable":{"T@G":{0:9}}}')  # copied in an earlier life
        settings = {"brokerRole": "SLAVE", "brokerId": 1, "namesrvAddr": names.address, "brokerName": "pair"}
        slave = RocketMQ(version, root, **settings)
        slave.start()
        try:
            with Remoting(port) as remoting:
                numbers = {"readQueueNums": 2, "writeQueueNums": 3, "perm": 6, "topicSysFlag": 0, "order": "false"}
                topic = {"topic": "T", "defaultTopic": "TBW102", **numbers, "topicFilterType": "SINGLE_TAG"}
                remoting.ask(UPDATE_TOPIC, topic)
                remoting.ask(UPDATE_GROUP, body=json.dumps({"groupName": "G", "retryMaxTimes": 7}).encode())
                remoting.send("T", 0, b"1", b"")
                position = {"consumerGroup": "G", "topic": "T", "queueId": 0, "commitOffset": 1}
                remoting.ask(UPDATE_OFFSET, position)
            master.restart(signal.SIGKILL)
            until(
                lambda: table(root, "topics.json", "topicConfigTable").get("T", {}).get("writeQueueNums"), 3, "topics"
            )
            until(
                lambda: (
                    table(root, "subscriptionGroup.json", "subscriptionGroupTable").get("G", {}).get("retryMaxTimes")
                ),
                7,
                "groups",
            )
            until(lambda: table(root, "consumerOffset.json", "offsetTable").get("T@G"), {"0": 1}, "one that went back")
            with Remoting(port) as remoting:
                assert remoting.ask(QUERY_OFFSET, position).fields == {"offset": "1"}
            names.until_route("TBW102", {"pair": {"0": f"127.0.0.1:{port}", "1": f"127.0.0.1:{slave.server.port}"}})
            assert names.route("T") == {"pair": {"0": f"127.0.0.1:{port}", "1": f"127.0.0.1:{slave.server.port}"}}
        finally:
            slave.kill()
