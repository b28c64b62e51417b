"""A cluster of one RocketMQ broker and one of ours, under one name server: clients see one cluster."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import free_port
from tests.interop.classic.java_names import JavaNames
from tests.interop.classic.programs import command_of
from tests.interop.remoting import Remoting
from tests.interop.rocketmq import ALONE, RocketMQ, need_rocketmq
from tests.names_process import GET_ROUTE, NamesProcess

pytestmark = [pytest.mark.interop, ALONE, pytest.mark.slow, pytest.mark.timeout(900)]

SECONDS = 300
PAIRS = [("ours", "4.9.7"), ("ours", "5.3.2"), ("4.9.7", "4.9.7"), ("5.3.3", "5.3.2")]
"""Whose name server, and of which version broker and client are."""
UPDATE_TOPIC = 17


@contextmanager
def name_server(whose: str, home: Path) -> Iterator[str]:
    """Its address."""
    if whose == "ours":
        with NamesProcess(home) as names:
            yield names.address
        return
    java = JavaNames(whose, home)
    try:
        java.start()
        yield java.address
    finally:
        java.kill()


@contextmanager
def both(tmp_path: Path, names: str, version: str) -> Iterator[tuple[int, int]]:
    """Ports of the RocketMQ broker `java` and of ours, `ours`, both registered."""
    with ExitStack() as stack:
        java = RocketMQ(version, tmp_path / "java", namesrvAddr=names, brokerName="java", brokerIP1="127.0.0.1")
        stack.callback(java.kill)
        java.start()
        port = free_port()
        own = {"remoting_mode": "on", "listen_port": port, "broker_name": "ours", "broker_ip1": "127.0.0.1"}
        stack.enter_context(StoreProcess(tmp_path / "ours", namesrv_addr=names, broker_cluster_name="interop", **own))
        yield java.server.port, port


def make_topic(port: int, topic: str) -> None:
    """Two queues on one broker, which it registers before it answers."""
    numbers = {"readQueueNums": 2, "writeQueueNums": 2, "perm": 6, "topicSysFlag": 0}
    with Remoting(port) as remoting:
        remoting.ask(
            UPDATE_TOPIC,
            {"topic": topic, "defaultTopic": "TBW102", **numbers, "topicFilterType": "SINGLE_TAG", "order": "false"},
        )


def until_routed(names: str, topic: str, *brokers: bytes) -> None:
    """Waits until a name server has a topic on all of them: RocketMQ 5 registers it a moment later."""
    deadline = time.monotonic() + 60
    with Remoting(int(names.rpartition(":")[2])) as remoting:
        while not all(name in (body := remoting.call(GET_ROUTE, {"topic": topic}).body) for name in brokers):
            assert time.monotonic() < deadline, body
            time.sleep(0.05)


def stored(port: int, topic: str) -> int:
    """Messages of a topic on one broker."""
    with Remoting(port) as remoting:
        return sum(remoting.bounds(topic, queue)[1] for queue in range(2))


@pytest.mark.parametrize(("whose", "version"), PAIRS)
def test_consumers_share_the_queues_of_both(whose: str, version: str, tmp_path: Path) -> None:
    """Two consumers of RocketMQ's client, of which one leaves, while messages are sent all the time."""
    need_rocketmq(version)
    with name_server(whose, tmp_path / "names") as names, both(tmp_path, names, version) as (java, ours):
        for port in (java, ours):
            make_topic(port, "shared")
        until_routed(names, "shared", b'"java"', b'"ours"')
        home = ["-Duser.home=" + str(tmp_path), "-Drocketmq.client.logUseSlf4j=true"]
        command = [*command_of(version, *home), names, "rebalance", "shared", "together"]
        done = subprocess.run(
            command, env=os.environ.copy(), capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-4_000:]
        assert min(stored(java, "shared"), stored(ours, "shared")) > 0
