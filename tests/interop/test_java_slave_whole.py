"""A slave of RocketMQ on our whole node, under load: log and tables, through rolled files and kills of both."""

import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tandemmq.common.documents import java_json
from tests.faults.harness import SEED
from tests.faults.pair import QUICK, Node
from tests.faults.pair_checks import assert_logs_equal, missing_on
from tests.faults.pair_load import Ledger, load
from tests.faults.pair_process import free_broker_port, until
from tests.faults.test_pair_history import FILE_SIZE
from tests.interop.messages import Contents
from tests.interop.ours import CONFIG
from tests.interop.remoting import Remoting
from tests.interop.rocketmq import ALONE, VERSIONS, RocketMQ, need_rocketmq
from tests.interop.test_java_master_tables import commit, make_group, make_topic
from tests.interop.test_java_pair import HEARTBEATS, contents_at_ours, contents_of_java, wait_java_level
from tests.names_process import NamesProcess

pytestmark = [pytest.mark.interop, ALONE, pytest.mark.slow, pytest.mark.timeout(1_500)]

SECONDS = 240.0
"""A slave of RocketMQ 5 copies tables once a minute, and asks the name server for its master every ten seconds."""

SLAVE = "slave"
VICTIMS = [
    ("store",),
    ("replicator",),
    ("metasync",),
    (SLAVE,),
    ("store", SLAVE),
    (SLAVE, "replicator"),
    ("store", "replicator", "metasync"),
]
"""Who is killed at once, in some order."""


class OurMaster:
    """A node of three processes that serves classic clients, and registers at a name server."""

    def __init__(self, directory: Path, names: str) -> None:
        self.port = free_broker_port()
        classic = {"remotingMode": "on", "listenPort": self.port, "namesrvAddr": names}
        size = {"mappedFileSizeCommitLog": CONFIG["mapped_file_size_commit_log"]}
        self.node = Node(
            directory, 0, "SYNC_MASTER", store=size | classic | {"slaveTimeout": 1_500}, replicator=QUICK | HEARTBEATS
        )
        self.node.store.settings["haListenPort"] = self.node.ports["ha"]  # as every service reads one file

    def kill(self, *services: str) -> None:
        """Some of its processes, all at once."""
        for name in services:
            process = self.node.processes[name].process
            assert process is not None
            process.send_signal(signal.SIGKILL)
        for name in services:
            self.node.processes[name].kill()


def java_slave(version: str, directory: Path, names: str) -> RocketMQ:
    """RocketMQ as a slave of the broker `pair`, which it finds by a name server."""
    settings = {"brokerRole": "SLAVE", "brokerId": 1, "namesrvAddr": names, "slaveReadEnable": "true"}
    settings |= {"brokerName": "pair", "brokerClusterName": "faults", "registerNameServerPeriod": 10_000}
    return RocketMQ(version, directory / "theirs", **settings, haSendHeartbeatInterval=1_000)


def table(root: Path, file: str, key: str) -> dict[str, Any]:
    """A table of RocketMQ's slave, as it stands in its file."""
    try:
        found = java_json.loads((root / "config" / file).read_bytes()).get(key, {})
    except (FileNotFoundError, ValueError):
        return {}
    assert isinstance(found, dict)
    return found


def tables_of(root: Path) -> tuple[Any, Any, Any]:
    """Queues of topic T, retries of group G, its position in queue 0; None for what is not there."""
    topic = table(root, "topics.json", "topicConfigTable").get("T", {})
    group = table(root, "subscriptionGroup.json", "subscriptionGroupTable").get("G", {})
    position = table(root, "consumerOffset.json", "offsetTable").get("T@G", {})
    return topic.get("writeQueueNums"), group.get("retryMaxTimes"), position.get("0")


def has(look: Callable[[], object], expected: object) -> None:
    until(lambda: look() == expected, SECONDS, lambda: f"{look()}, not {expected}")


def acknowledged_again(ledger: Ledger, what: str, describe: Callable[[], str]) -> None:
    """Waits until producers hear that the slave has their messages."""
    before = len(ledger.of())
    until(lambda: len(ledger.of()) > before + 20, SECONDS, lambda: f"no PUT_OK after {what}: {describe()}")


def change_tables(port: int, number: int) -> None:
    """Topic T, group G and its position get the numbers of this turn."""
    with Remoting(port) as remoting:
        make_topic(remoting, "T", number)
        make_group(remoting, "G", number)
        remoting.send("T", 0, b"one", b"")
        commit(remoting, number)


@contextmanager
def killed_in_turn(version: str, directory: Path) -> Iterator[tuple[OurMaster, RocketMQ, Ledger]]:
    """A pair under load whose processes are killed in turn; at its end all messages and tables are told."""
    turns = random.Random(f"java slave {SEED}").sample(VICTIMS, len(VICTIMS))
    with NamesProcess(directory / "names") as names:
        master, slave = OurMaster(directory / "ours", names.address), java_slave(version, directory, names.address)

        def describe() -> str:
            return f"{master.node.status()} {master.node.role()}\n{slave.log()[-3_000:]}"

        try:
            master.node.start()
            slave.start()
            address = master.node.address("store")
            with load(address, slave.root, FILE_SIZE, SEED, producers=1) as ledger:  # PUT_OK: it is in the slave's file
                acknowledged_again(ledger, "the start", describe)
                for number, victims in enumerate(turns, 1):
                    change_tables(master.port, number)
                    if SLAVE in victims:
                        slave.kill()
                    master.kill(*(name for name in victims if name != SLAVE))
                    master.node.start()
                    if SLAVE in victims:
                        slave.start()
                    acknowledged_again(ledger, f"a kill of {victims}", describe)
            yield master, slave, ledger
        finally:
            slave.kill()
            master.node.close()


@pytest.mark.parametrize("version", VERSIONS)
def test_log_and_tables_reach_a_java_slave_through_kills_of_both(version: str, tmp_path: Path) -> None:
    need_rocketmq(version)
    with killed_in_turn(version, tmp_path) as (master, slave, ledger), slave.connect() as remoting:
        end = wait_java_level(master.node, remoting)
        has(lambda: tables_of(slave.root), (len(VICTIMS),) * 3)
        theirs = contents_of_java(remoting, ledger.told)
    assert_logs_equal(master.node.root, slave.root, end, begin=0)
    assert end > 10 * FILE_SIZE
    for root in (master.node.root, slave.root):
        assert not missing_on(root, FILE_SIZE, ledger.told)
    ours = contents_at_ours(master.node.root)
    theirs.be_the_same_as(Contents({name: ours.queues[name] for name in theirs.queues}))
