"""Our metasync is the slave of a RocketMQ master: it copies its tables over the remoting port, and outlives kills."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tandemmq.metadata.v1 import metadata_pb2 as pb
from tests.interop.remoting import Remoting
from tests.interop.rocketmq import ALONE, VERSIONS, RocketMQ, need_rocketmq
from tests.metasync_process import MetasyncProcess

pytestmark = [pytest.mark.interop, ALONE, pytest.mark.slow, pytest.mark.timeout(600)]

UPDATE_OFFSET, UPDATE_TOPIC, DELETE_TOPIC, UPDATE_GROUP, SET_MODE = 15, 17, 215, 200, 401
PATIENCE = 120.0


def until(found: Callable[[], Any], expected: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while (now := found()) != expected:
        assert time.monotonic() < deadline, f"{what}: {now}"
        time.sleep(0.1)


def make_topic(remoting: Remoting, name: str, queues: int) -> None:
    numbers = {"readQueueNums": queues, "writeQueueNums": queues, "perm": 6, "topicSysFlag": 0, "order": "false"}
    topic = {"topic": name, "defaultTopic": "TBW102", **numbers, "topicFilterType": "SINGLE_TAG"}
    remoting.ask(UPDATE_TOPIC, topic)


def make_group(remoting: Remoting, name: str, retries: int) -> None:
    remoting.ask(UPDATE_GROUP, body=json.dumps({"groupName": name, "retryMaxTimes": retries}).encode())


def commit(remoting: Remoting, offset: int) -> None:
    remoting.ask(UPDATE_OFFSET, {"consumerGroup": "G", "topic": "T", "queueId": 0, "commitOffset": offset})


def queues_of(slave: MetasyncProcess, name: str) -> int:
    """Of a topic as the slave has it; 0 for one that it does not have."""
    topics = (one for page in slave.whole(pb.TOPICS) for one in page.topics)
    return next((one.write_queues for one in topics if one.name == name), 0)


def retries_of(slave: MetasyncProcess, name: str) -> int:
    groups = (one for page in slave.whole(pb.SUBSCRIPTION_GROUPS) for one in page.groups)
    return next((one.retry_max_times for one in groups if one.name == name), -2)


def offset_of(slave: MetasyncProcess) -> int:
    found = (one for page in slave.whole(pb.CONSUMER_OFFSETS) for one in page.consumer_offsets)
    return next((one.offsets[0] for one in found if (one.topic, one.group) == ("T", "G")), -1)


def modes_of(slave: MetasyncProcess) -> Any:
    """What the slave's store is told of request modes; None: the master keeps none."""
    with slave.stub() as stub:
        answer = stub.GetRequestModes(pb.GetRequestModesRequest())
    return json.loads(answer.document_json)["messageRequestModeMap"] if answer.HasField("document_json") else None


def problems_of(slave: MetasyncProcess) -> list[str]:
    return [table.problem for table in slave.status().tables if table.problem]


def delays_of(slave: MetasyncProcess) -> dict[int, int]:
    return {one.level: one.offset for page in slave.whole(pb.DELAY_OFFSETS) for one in page.delay_offsets}


@pytest.mark.parametrize("version", VERSIONS)
def test_our_slave_copies_the_tables_of_a_java_master(version: str, tmp_path: Path) -> None:
    need_rocketmq(version)
    # A kill -9 of RocketMQ loses the commits of the last seconds: it shall have none.
    java = RocketMQ(version, tmp_path / "theirs", brokerName="pair", flushConsumerOffsetInterval=200)
    java.start()
    address = f"127.0.0.1:{java.server.port}"
    slave = MetasyncProcess(tmp_path / "ours", broker_role="SLAVE", metasync_remoting_master_address=address)
    try:
        with java.connect() as remoting:
            make_topic(remoting, "T", 3)
            make_topic(remoting, "gone", 1)
            make_group(remoting, "G", 7)
            for body in (b"1", b"2", b"3"):
                remoting.send("T", 0, body, b"")
            remoting.send("T", 0, b"late", b"DELAY\x011\x02")
            commit(remoting, 2)
            with slave:
                until(lambda: queues_of(slave, "T"), 3, "a topic")
                until(lambda: retries_of(slave, "G"), 7, "a group")
                until(lambda: offset_of(slave), 2, "a position")
                until(lambda: delays_of(slave).get(1), 1, "a delay level")
                commit(remoting, 3)
                until(lambda: offset_of(slave), 3, "a position that is further")
                commit(remoting, 1)
                until(lambda: offset_of(slave), 1, "a position that was reset")
                status = slave.status()
                assert (status.role, status.master_address) == (pb.SLAVE, address)
                assert problems_of(slave) == []
                if version.startswith("4"):
                    assert modes_of(slave) is None
                else:
                    mode = {"topic": "T", "consumerGroup": "G", "mode": "POP", "popShareQueueNum": 2}
                    remoting.ask(SET_MODE, body=json.dumps(mode).encode())
                    assert modes_of(slave) == {"T": {"G": mode}}
                version_before = slave.table_status(pb.CONSUMER_OFFSETS).version
                cycles = slave.table_status(pb.TOPICS).taken_over
                time.sleep(1.0)  # ten cycles in which nothing happens
                assert slave.table_status(pb.CONSUMER_OFFSETS).version == version_before
                assert slave.table_status(pb.TOPICS).taken_over == cycles

                slave.restart(9)  # type: ignore[arg-type]
                assert (queues_of(slave, "T"), retries_of(slave, "G"), offset_of(slave)) == (3, 7, 1)
                make_topic(remoting, "T", 5)
                remoting.ask(DELETE_TOPIC, {"topic": "gone"})
                commit(remoting, 2)
                until(lambda: queues_of(slave, "T"), 5, "a topic that has changed")
                until(lambda: queues_of(slave, "gone"), 0, "a topic that is gone")
                until(lambda: offset_of(slave), 2, "a position after a kill of the slave")

        with slave:
            time.sleep(1.0)
            java.kill()
            until(lambda: bool(slave.table_status(pb.TOPICS).problem), True, "a master that is away")
            assert (queues_of(slave, "T"), offset_of(slave)) == (5, 2)
            java.start()
            with java.connect() as remoting:
                until(lambda: slave.table_status(pb.TOPICS).problem, "", "a master that is back")
                commit(remoting, 3)
                make_topic(remoting, "later", 2)
            until(lambda: queues_of(slave, "later"), 2, "a topic after a kill of the master")
            until(lambda: (problems_of(slave), offset_of(slave)), ([], 3), "a position after a kill of the master")
    finally:
        java.kill()
