"""Our whole node is the slave of a RocketMQ master: log and tables together, through rolled files and kills of both.

When that master is gone for good, our node is promoted, and has its messages, topics, groups and positions.
"""

import signal
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from tandemmq.metadata.v1 import metadata_pb2 as pb
from tandemmq.metadata.v1.metadata_pb2_grpc import MetadataStub
from tests.faults.pair import QUICK, Node
from tests.faults.pair_checks import assert_logs_equal
from tests.faults.pair_process import free_port, until
from tests.faults.test_pair_history import FILE_SIZE
from tests.faults.test_pair_promotion import promote
from tests.interop.messages import Contents, Sent, Source, contents_at, send_to_rocketmq
from tests.interop.ours import CONFIG
from tests.interop.remoting import Remoting
from tests.interop.rocketmq import ALONE, VERSIONS, RocketMQ, need_rocketmq
from tests.interop.test_java_master_tables import commit, make_group, make_topic
from tests.interop.test_java_pair import HEARTBEATS, behind, contents_at_ours, contents_of_java, wait_our_level

pytestmark = [pytest.mark.interop, ALONE, pytest.mark.slow, pytest.mark.timeout(900)]

SECONDS = 120.0
QUERY_OFFSET = 14


class OurSlave:
    """A node of three processes that follows a RocketMQ master, and answers classic clients."""

    def __init__(self, directory: Path, master: RocketMQ) -> None:
        self.classic_port = free_port()
        classic = {"remotingMode": "on", "listenPort": self.classic_port}
        tables = {"metasyncRemotingMasterAddress": f"127.0.0.1:{master.server.port}"}
        size = {"mappedFileSizeCommitLog": CONFIG["mapped_file_size_commit_log"]}
        self.node = Node(
            directory, 1, "SLAVE", store=size | classic, replicator=QUICK | HEARTBEATS | behind(master), metasync=tables
        )

    def kill_and_start(self, name: str) -> None:
        """One of its processes."""
        process = self.node.processes[name]
        assert process.process is not None
        process.process.send_signal(signal.SIGKILL)
        process.process.wait(SECONDS)
        process.start()

    def tables(self) -> tuple[int, int, int]:
        """Queues of topic T, retries of group G, its position in queue 0; -1 for what is not there."""
        with grpc.insecure_channel(self.node.address("metasync")) as channel:
            stub = MetadataStub(channel)

            def pages(table: "pb.Table.ValueType") -> list[pb.TablePage]:
                return list(stub.GetTable(pb.GetTableRequest(table=table), timeout=60, wait_for_ready=True))

            topics = [one.write_queues for page in pages(pb.TOPICS) for one in page.topics if one.name == "T"]
            groups = [
                one.retry_max_times for page in pages(pb.SUBSCRIPTION_GROUPS) for one in page.groups if one.name == "G"
            ]
            offsets = [
                one.offsets[0]
                for page in pages(pb.CONSUMER_OFFSETS)
                for one in page.consumer_offsets
                if (one.topic, one.group) == ("T", "G")
            ]
        queues, retries, position = ((found or [-1])[0] for found in (topics, groups, offsets))
        return queues, retries, position


def has(look: Callable[[], object], expected: object) -> None:
    until(lambda: look() == expected, SECONDS, lambda: f"{look()}, not {expected}")


@pytest.mark.parametrize("version", VERSIONS)
def test_log_and_tables_of_a_java_master_through_kills_of_both(version: str, tmp_path: Path) -> None:
    need_rocketmq(version)
    settings = {"brokerRole": "ASYNC_MASTER", "flushConsumerOffsetInterval": 200, "haSendHeartbeatInterval": 1_000}
    master = RocketMQ(version, tmp_path / "theirs", **settings, brokerName="pair")
    master.start()
    slave = OurSlave(tmp_path / "ours", master)
    node, sent, source = slave.node, list[Sent](), Source(1)
    try:
        with master.connect() as remoting:
            make_topic(remoting, "T", 3)
            make_group(remoting, "G", 7)
            sent += send_to_rocketmq(remoting, source, 600)  # its history, before anybody follows
            for body in (b"1", b"2", b"3"):
                remoting.send("T", 0, body, b"")
            commit(remoting, 2)
            node.start()
            assert wait_our_level(node, remoting) > 2 * FILE_SIZE
            has(slave.tables, (3, 7, 2))
            for name in ("store", "metasync", "replicator"):
                slave.kill_and_start(name)
                sent += send_to_rocketmq(remoting, source, 100)
                wait_our_level(node, remoting)
            node.kill()  # while it is away the master goes on for some files
            sent += send_to_rocketmq(remoting, source, 400)
            make_topic(remoting, "T", 5)
            commit(remoting, 3)
            node.start()
            end = wait_our_level(node, remoting)
            has(slave.tables, (5, 7, 3))
        assert_logs_equal(master.root, node.root, end, begin=0)

        master.kill()
        master.start()
        with master.connect() as remoting:
            sent += send_to_rocketmq(remoting, source, 200)
            make_group(remoting, "G", 9)
            commit(remoting, 1)
            end = wait_our_level(node, remoting)
            has(slave.tables, (5, 9, 1))
            theirs = contents_of_java(remoting, sent)
        master.kill()
        # Nobody but RocketMQ knew what its master had, and nobody can ask it.
        promote(node, old_master_is_gone=True, accept_loss=True)
        with Remoting(slave.classic_port) as ours:
            answer = ours.ask(QUERY_OFFSET, {"consumerGroup": "G", "topic": "T", "queueId": 0})
            assert int(answer.fields["offset"]) == 1
            assert [record.body for record in ours.pull_all("T", 0)] == [b"1", b"2", b"3"]
            assert ours.topics()["T"]["writeQueueNums"] == 5
            theirs.be_the_same_as(contents_at(ours, sorted({(one.topic, one.queue_id) for one in sent})))
        node.stop()
    finally:
        node.close()
        master.kill()
    assert_logs_equal(master.root, node.root, end, begin=0)
    mine: Contents = contents_at_ours(node.root)
    mine.hold_all(sent)
