"""One half of a pair is RocketMQ: its slave follows our master, and our slave follows its master, byte for byte."""

import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.peers.rocketmq_names import NameServer
from tandemmq.client import Outgoing, StoreClient
from tandemmq.store.format import properties as property_names
from tandemmq.store.format.message_id import decode_offset_id
from tests.faults.pair import FOLLOWING, QUICK, Node
from tests.faults.pair_checks import assert_logs_equal
from tests.faults.pair_load import Told
from tests.faults.pair_process import free_port, until
from tests.faults.test_pair_history import FILE_SIZE, expire
from tests.interop.messages import Contents, Sent, Source, contents_at, properties_of, send_to_ours, send_to_rocketmq
from tests.interop.ours import CONFIG, config_of, contents_of, with_store
from tests.interop.remoting import Refused, Remoting
from tests.interop.rocketmq import ALONE, VERSIONS, RocketMQ, need_rocketmq

pytestmark = [
    pytest.mark.interop,
    ALONE,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.parametrize("version", VERSIONS),
]

SECONDS = 120.0
"""A slave of RocketMQ 4 says its first word five seconds after it has connected."""

HEARTBEATS = {"haSendHeartbeatInterval": 1_000, "haHousekeepingInterval": 20_000}


def behind(master: RocketMQ) -> dict[str, object]:
    """Settings of a replicator that follows it; that of another node on this machine is not asked who it is."""
    return {
        "haMasterAddress": f"127.0.0.1:{master.server.port + 1}",
        "haMasterReplicatorAddress": f"127.0.0.1:{free_port()}",
    }


@contextmanager
def our_node(directory: Path, role: str, **replicator: object) -> Iterator[Node]:
    """Our store and replicator, without metasync."""
    node = Node(
        directory,
        1 if role == "SLAVE" else 0,
        role,
        store={"mappedFileSizeCommitLog": CONFIG["mapped_file_size_commit_log"], "slaveTimeout": 40_000},
        replicator={**QUICK, **HEARTBEATS, **replicator},
    )
    del node.processes["metasync"], node.processes["store"].settings["metasyncAddress"]
    try:
        node.start()
        yield node
    finally:
        node.close()


def java_slave(version: str, root: Path, master: Node, names: NameServer) -> RocketMQ:
    """RocketMQ as a slave of ours. We do not speak its language of topics: it is given ours as a file."""
    (root / "config").mkdir(parents=True)
    shutil.copy(master.root / "config" / "topics.json", root / "config" / "topics.json")
    settings = {"brokerRole": "SLAVE", "brokerId": 1, "namesrvAddr": names.address, "slaveReadEnable": "true"}
    return RocketMQ(version, root, **settings, haSendHeartbeatInterval=1_000)


@contextmanager
def names_of(master: Node) -> Iterator[NameServer]:
    """A name server that leads slaves to `master`: RocketMQ 5.3.2 forgets the haMasterAddress of its settings."""
    names = NameServer(master.ha_address)
    names.start()
    try:
        yield names
    finally:
        names.stop()


def java_end(remoting: Remoting) -> int:
    """Where RocketMQ's log ends; -1 while it cannot say, as a slave without a single file."""
    try:
        return int(remoting.runtime()["commitLogMaxOffset"])
    except Refused:
        return -1


def wait_java_level(node: Node, remoting: Remoting) -> int:
    """Waits until RocketMQ's slave has all that our master has, and the master counts on it; the end of the log.

    The master may write meanwhile, as its journal of deliveries.
    """
    end = -1

    def level() -> bool:
        nonlocal end
        end = node.role().max_offset
        return java_end(remoting) == end and counted_end(node) == end

    until(level, SECONDS, lambda: f"{java_end(remoting)} of {end}; {node.status()}")
    return end


def counted_end(node: Node) -> int:
    """How far our master says that enough slaves have its log; -1 while there are not enough."""
    status = node.status()
    return status.replicated_offset if status is not None and status.in_sync else -1


def contents_at_ours(root: Path) -> Contents:
    """What is in our store, whose process has ended."""
    seen: list[Contents] = []
    with_store(config_of(root), lambda store: seen.append(contents_of(store)))
    return seen[0]


def test_a_slave_of_rocketmq_follows_our_master(tmp_path: Path, version: str) -> None:
    """From an empty slave on, with the slave killed once, and with every late message told PUT_OK: it acks in time."""
    need_rocketmq(version)
    with (
        our_node(tmp_path / "ours", "SYNC_MASTER") as node,
        names_of(node) as names,
        StoreClient(node.address("store")) as client,
    ):
        sent = list(send_before(client, 600))
        slave = java_slave(version, tmp_path / "theirs", node, names)
        slave.start()
        try:
            with slave.connect() as remoting:
                wait_java_level(node, remoting)
                sent += send_to_ours(client, Source(2), 1_500)
                end = wait_java_level(node, remoting)
            assert_logs_equal(node.root, slave.root, end, begin=0)
            slave.kill()
            until(lambda: connected(node) == 0, SECONDS, lambda: f"the master sees that it is gone: {node.status()}")
            sent += send_before(client, 300, seed=3)
            slave.start()
            with slave.connect() as remoting:
                wait_java_level(node, remoting)
                sent += send_to_ours(client, Source(4), 600)
                end = wait_java_level(node, remoting)
                theirs = contents_of_java(remoting, sent)
        finally:
            slave.kill()
        node.stop()
    assert_logs_equal(node.root, slave.root, end, begin=0)
    ours = contents_at_ours(node.root)
    ours.hold_all(sent)
    theirs.be_the_same_as(Contents({name: ours.queues[name] for name in theirs.queues}))


def test_a_slave_of_rocketmq_begins_where_our_log_begins(tmp_path: Path, version: str) -> None:
    """Our first files have expired: it takes all that there is, not only the last file as from a master of its own."""
    need_rocketmq(version)
    with our_node(tmp_path / "ours", "SYNC_MASTER") as node, names_of(node) as names:
        with StoreClient(node.address("store")) as client:
            list(send_before(client, 3_000))
        begin = expire(node, 3)
        slave = java_slave(version, tmp_path / "theirs", node, names)
        slave.start()
        try:
            with slave.connect() as remoting:
                end = wait_java_level(node, remoting)
                assert int(remoting.runtime()["commitLogMinOffset"]) == begin >= 3 * FILE_SIZE
        finally:
            slave.kill()
    assert assert_logs_equal(node.root, slave.root, end, begin=begin) > 3 * FILE_SIZE


def contents_of_java(remoting: Remoting, sent: Sequence[Sent | Told]) -> Contents:
    """What RocketMQ shows of the queues that were sent to, when it has dispatched the last message of each."""
    queues = sorted({(one.topic, one.queue_id) for one in sent})
    for queue in queues:
        last = max(one.queue_offset for one in sent if (one.topic, one.queue_id) == queue)
        until(lambda: remoting.bounds(*queue)[1] > last, SECONDS, lambda: f"{queue}: {remoting.bounds(*queue)}")  # noqa: B023
    return contents_at(remoting, queues)


def connected(node: Node) -> int:
    """Slaves that our master knows to be connected."""
    status = node.status()
    return sum(replica.connected for replica in status.replicas) if status is not None else -1


def send_before(client: StoreClient, number: int, seed: int = 1) -> Iterator[Sent]:
    """Messages for which nobody waits: there is no slave."""
    source = Source(seed)
    while number > 0:
        batch = source.many(20)
        for message, receipt in zip(batch, client.send_batch(batch, no_wait=True), strict=True):
            yield Sent(
                message.topic, receipt.queue_id, receipt.queue_offset, receipt.physical_offset, message.body,
                message.tag, tuple(message.keys), receipt.unique_key,
            )  # fmt: skip
        number -= 20


def test_our_slave_follows_a_master_of_rocketmq(tmp_path: Path, version: str) -> None:
    """It gets the whole history, acks what RocketMQ waits for, and goes on after a kill of each of its processes."""
    need_rocketmq(version)
    settings = {"brokerRole": "SYNC_MASTER", "inSyncReplicas": 2, "totalReplicas": 2, "slaveTimeout": 40_000}
    master = RocketMQ(version, tmp_path / "theirs", **settings, haSendHeartbeatInterval=1_000)
    master.start()
    try:
        with master.connect() as remoting:
            sent = list(send_before_slave(remoting, 600))
            with our_node(tmp_path / "ours", "SLAVE", **behind(master)) as node:
                wait_our_level(node, remoting)
                sent += send_to_rocketmq(remoting, Source(2), 800)  # raises unless each is acknowledged with success
                assert_logs_equal(master.root, node.root, wait_our_level(node, remoting), begin=0)
                for name in ("store", "replicator"):
                    process = node.processes[name]
                    assert process.process is not None
                    process.process.send_signal(signal.SIGKILL)
                    process.process.wait(120)
                    process.start()
                    wait_our_level(node, remoting)
                    sent += send_to_rocketmq(remoting, Source(3 + len(sent)), 200)
                end = wait_our_level(node, remoting)
                theirs = contents_of_java(remoting, sent)
                node.stop()
    finally:
        master.kill()
    assert_logs_equal(master.root, node.root, end, begin=0)
    ours = contents_at_ours(node.root)
    ours.hold_all(sent)
    theirs.be_the_same_as(Contents({name: ours.queues[name] for name in theirs.queues}))


def send_before_slave(remoting: Remoting, number: int) -> Iterator[Sent]:
    """Messages that RocketMQ takes although there is no slave: they say WAIT=false."""
    for message in Source(1).many(number):
        unique = f"W-{message.body[:10].hex()}"
        properties = {**message.properties, property_names.WAIT: "false", property_names.UNIQ_KEY: unique}
        message = Outgoing(message.topic, message.body, message.tag, message.keys, properties)
        fields = remoting.send(message.topic, number % 4, message.body, properties_of(message)).fields
        yield Sent(
            message.topic, int(fields["queueId"]), int(fields["queueOffset"]), decode_offset_id(fields["msgId"])[1],
            message.body, message.tag, tuple(message.keys), unique,
        )  # fmt: skip


def wait_our_level(node: Node, remoting: Remoting) -> int:
    """Waits until our slave follows and has all that RocketMQ's master has; the end of the log."""
    until(lambda: java_end(remoting) >= 0, SECONDS, "RocketMQ does not say where its log ends")
    end = java_end(remoting)

    def level() -> bool:
        status = node.status()
        return status is not None and status.follower.state == FOLLOWING and node.role().max_offset == end

    until(level, SECONDS, lambda: f"not at {end}: {node.role()} {node.status()}")
    return end
