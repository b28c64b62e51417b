"""A cluster of one RocketMQ broker and one of ours, under one name server: clients see one cluster."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.contract.store_process import StoreProcess
from tests.faults.pair_process import free_broker_port, until
from tests.interop.classic.java_names import JavaNames
from tests.interop.classic.programs import command_of
from tests.interop.classic.test_java_routes import SteadyClient
from tests.interop.remoting import Remoting
from tests.interop.rocketmq import ALONE, RocketMQ, need_rocketmq
from tests.names_process import GET_ROUTE, NamesProcess

pytestmark = [pytest.mark.interop, ALONE, pytest.mark.slow, pytest.mark.timeout(900)]

SECONDS = 300
PAIRS = [("ours", "4.9.7"), ("ours", "5.3.2"), ("4.9.7", "4.9.7"), ("5.3.3", "5.3.2")]
"""Whose name server, and of which version broker and client are."""
UPDATE_TOPIC = 17
HALVES = "RMQ_SYS_TRANS_HALF_TOPIC"


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
def cluster(tmp_path: Path, names: str, version: str, *topics: str) -> Iterator[tuple[RocketMQ, StoreProcess]]:
    """The RocketMQ broker `java` and ours, `ours`, both registered, and topics that both have."""
    with ExitStack() as stack:
        often = {"transactionTimeOut": 1_000, "transactionCheckInterval": 1_000}
        common = {"namesrvAddr": names, "brokerIP1": "127.0.0.1"}
        java = RocketMQ(version, tmp_path / "java", **common, **often, brokerName="java")
        stack.callback(java.kill)
        java.start()
        own = {"remoting_mode": "on", "listen_port": free_broker_port(), "broker_name": "ours"}
        own |= {"broker_ip1": "127.0.0.1", "namesrv_addr": names, "broker_cluster_name": "interop"}
        own |= {"transaction_time_out": 1_000, "transaction_check_interval": 1_000}
        ours = stack.enter_context(StoreProcess(tmp_path / "ours", **own))
        for topic in topics:
            for port in ports_of(java, ours):
                make_topic(port, topic)
            until_routed(names, topic, b'"java"', b'"ours"')
        yield java, ours


def ports_of(java: RocketMQ, ours: StoreProcess) -> tuple[int, int]:
    """Where both serve classic clients."""
    return java.server.port, int(str(ours.settings["listen_port"]))


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


def stored(port: int, topic: str, queues: int = 2) -> int:
    """Messages of a topic on one broker."""
    with Remoting(port) as remoting:
        return sum(remoting.bounds(topic, queue)[1] for queue in range(queues))


def run(version: str, home: Path, names: str, feature: str, topic: str) -> None:
    """Runs one feature of RocketMQ's client; fails with what it said."""
    options = ["-Duser.home=" + str(home), "-Drocketmq.client.logUseSlf4j=true"]
    command = [*command_of(version, *options), names, feature, topic, f"{topic}-group"]
    done = subprocess.run(command, env=os.environ.copy(), capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4_000:]


@pytest.mark.parametrize(("whose", "version"), PAIRS)
def test_consumers_share_the_queues_of_both(whose: str, version: str, tmp_path: Path) -> None:
    """Two consumers of RocketMQ's client, of which one leaves, while messages are sent all the time."""
    need_rocketmq(version)
    with name_server(whose, tmp_path / "names") as names, cluster(tmp_path, names, version, "shared") as brokers:
        run(version, tmp_path, names, "rebalance", "shared")
        assert all(stored(port, "shared") > 0 for port in ports_of(*brokers))


@pytest.mark.parametrize(("whose", "version"), PAIRS[1:3])
def test_features_that_take_more_than_one_broker(whose: str, version: str, tmp_path: Path) -> None:
    """Queues locked, answers found, transactions checked and messages given to all, by both brokers for one client."""
    need_rocketmq(version)
    features = ["orderly", "broadcast", "request", "transaction"]
    with name_server(whose, tmp_path / "names") as names, cluster(tmp_path, names, version, *features) as brokers:
        for feature in features:
            run(version, tmp_path, names, feature, feature)
            place = (HALVES, 1) if feature == "transaction" else (feature, 2)
            assert all(stored(port, *place) > 0 for port in ports_of(*brokers)), feature


@pytest.mark.parametrize(("whose", "version"), PAIRS[:1] + PAIRS[3:])
def test_each_broker_is_killed_and_comes_back(whose: str, version: str, tmp_path: Path) -> None:
    """Producer and consumers go on with the other one, and share the queues of both again: nothing sent is missed."""
    need_rocketmq(version)
    with (
        name_server(whose, tmp_path / "names") as names,
        cluster(tmp_path, names, version, "steady") as (java, ours),
        SteadyClient(version, names, tmp_path) as steady,
    ):

        def is_sent_to(port: int) -> None:
            before = stored(port, "steady")
            until(lambda: stored(port, "steady") > before, SECONDS, "nothing is sent to the broker that came back")

        steady.goes_on()
        ours.stop(signal.SIGKILL)
        steady.goes_on()
        ours.start()
        is_sent_to(ports_of(java, ours)[1])
        java.kill()
        steady.goes_on()
        java.start()
        is_sent_to(java.server.port)
        steady.end()
