"""At RocketMQ's own name server routes follow promotions and clean stops of ours; its running clients go on."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from tandemmq.node.v1 import node_pb2
from tandemmq.node.v1.node_pb2_grpc import NodeStub
from tests.contract.remoting.classic_client import ClassicClient
from tests.contract.remoting.test_administration import make_topic
from tests.contract.store_process import StoreProcess
from tests.faults.pair import Pair
from tests.faults.pair_process import free_port, until
from tests.faults.test_pair_promotion import back_as_slave, promote, some_load
from tests.interop.classic.java_names import JavaNames
from tests.interop.classic.programs import command_of
from tests.interop.rocketmq import ALONE, RocketMQ, need_rocketmq

pytestmark = [pytest.mark.interop, ALONE, pytest.mark.slow, pytest.mark.timeout(900)]

VERSIONS = [("4.9.7", "4.9.7"), ("5.3.3", "5.3.2")]
"""Of name server and client; name servers of 5.3.2 were not published."""
SECONDS = 120.0


@contextmanager
def java_names(version: str, home: Path) -> Iterator[JavaNames]:
    names = JavaNames(version, home)
    try:
        names.start()
        yield names
    finally:
        names.kill()


class SteadyClient:
    """RocketMQ's client, which sends and consumes until it is told to end."""

    def __init__(self, version: str, names: str, home: Path) -> None:
        command = [*command_of(version, f"-Duser.home={home}"), names, "steady", "steady", "steady-group"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._said: list[str] = []
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        self._said.extend(line.strip() for line in self._process.stdout)

    @property
    def sent(self) -> int:
        """Messages whose sends it was told to be good."""
        return max((int(line.split()[1]) for line in list(self._said) if line.startswith("SENT ")), default=0)

    def goes_on(self) -> None:
        """Waits until it has sent some more."""
        enough = self.sent + 40
        until(lambda: self.sent >= enough, SECONDS, lambda: "\n".join(self._said)[-4_000:])

    def end(self) -> int:
        """It has consumed all that it has sent; how many sends have failed."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        assert self._process.wait(SECONDS * 2) == 0, "\n".join(self._said)[-4_000:]
        self._reading.join(SECONDS)
        (failed,) = [line for line in self._said if line.startswith("FAILED ")]
        return int(failed.split()[1])

    def __enter__(self) -> "SteadyClient":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reading.join(SECONDS)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.mark.parametrize(("of_names", "of_client"), VERSIONS)
def test_a_running_client_follows_a_promotion(of_names: str, of_client: str, tmp_path: Path) -> None:
    """The master is killed and its slave promoted: id 0 moves. The old master comes back, and is the slave."""
    ports = free_port(), free_port()
    addresses = [f"127.0.0.1:{port}" for port in ports]
    with java_names(of_names, tmp_path / "names") as names:
        classic = {"remotingMode": "on", "listenPort": ports[0], "namesrvAddr": names.address, "slaveTimeout": 20_000}
        with Pair(tmp_path, store=classic, slave_store={"listenPort": ports[1]}) as pair:
            with ClassicClient(ports[0]) as client:
                make_topic(client, "steady", read=4, write=4)
            names.until_route("steady", {"pair": {"0": addresses[0], "1": addresses[1]}})
            some_load(pair, 10)
            with SteadyClient(of_client, names.address, tmp_path) as steady:
                steady.goes_on()
                pair.master.kill()
                names.until_route("steady", {"pair": {"1": addresses[1]}})
                promote(pair.slave, old_master_is_gone=True)
                names.until_route("steady", {"pair": {"0": addresses[1]}})
                pair.master.start()
                until(lambda: pair.master.role().identity.fenced_by_epoch > 0, SECONDS, "the old master is fenced")
                assert names.route("steady") == {"pair": {"0": addresses[1]}}, "a fenced master is not told of"
                back_as_slave(pair.master, pair.slave)  # the kill may have left it what the slave never had
                names.until_route("steady", {"pair": {"0": addresses[1], "1": addresses[0]}})
                steady.goes_on()  # a SYNC_MASTER has a slave again
                steady.end()


@pytest.mark.parametrize(("of_names", "of_client"), VERSIONS)
def test_a_clean_stop_costs_a_running_client_nothing(of_names: str, of_client: str, tmp_path: Path) -> None:
    """One of two masters stops and comes back, twice: no send fails beyond the client's own retries."""
    ports = {"one": free_port(), "two": free_port()}
    route = {name: {"0": f"127.0.0.1:{port}"} for name, port in ports.items()}
    with java_names(of_names, tmp_path / "names") as names:
        common = {"remoting_mode": "on", "namesrv_addr": names.address, "broker_ip1": "127.0.0.1"}
        stores = [
            StoreProcess(tmp_path / name, broker_name=name, listen_port=port, **common) for name, port in ports.items()
        ]
        with stores[0], stores[1]:
            for port in ports.values():
                with ClassicClient(port) as client:
                    make_topic(client, "steady", read=4, write=4)
            names.until_route("steady", route)
            with SteadyClient(of_client, names.address, tmp_path) as steady:
                steady.goes_on()
                for _ in range(2):
                    assert stores[1].stop() == 0
                    assert names.route("steady") == {"one": route["one"]}, "a store that has ended is unregistered"
                    steady.goes_on()
                    stores[1].start()
                    names.until_route("steady", route)
                    steady.goes_on()
                assert steady.end() == 0


def problems_of(store: StoreProcess) -> str:
    """What it says to be wrong with its surroundings."""
    with grpc.insecure_channel(store.address) as channel:
        said = NodeStub(channel).Describe(node_pb2.DescribeRequest(), timeout=60, wait_for_ready=True)
    return "; ".join(said.problems)


@pytest.mark.parametrize("of_broker", ["4.9.7", "5.3.2"])
def test_two_live_masters_of_one_name_do_not_take_turns(of_broker: str, tmp_path: Path) -> None:
    """RocketMQ's broker registers again and again: it keeps the place, ours says so, and has it when that one ends.

    A name server of 5.x does not take it back: its stateVersion is 0, and ours the epoch.
    """
    need_rocketmq(of_broker)
    with java_names("4.9.7", tmp_path / "names") as names:
        settings = {"namesrvAddr": names.address, "brokerName": "same", "brokerIP1": "127.0.0.1"}
        java = RocketMQ(of_broker, tmp_path / "java", **settings, registerNameServerPeriod=10_000)
        own = {"remoting_mode": "on", "listen_port": free_port(), "broker_name": "same", "broker_ip1": "127.0.0.1"}
        own |= {"namesrv_addr": names.address, "broker_cluster_name": "interop", "register_name_server_period": 10_000}
        theirs, ours = (
            {"same": {"0": f"127.0.0.1:{java.server.port}"}},
            {"same": {"0": f"127.0.0.1:{own['listen_port']}"}},
        )
        try:
            java.start()
            names.until_route("TBW102", theirs)
            with StoreProcess(tmp_path / "ours", **own) as store:
                until(lambda: "is registered as master of same" in problems_of(store), SECONDS, "it sees the other one")
                names.until_route("TBW102", ours)
                names.until_route("TBW102", theirs)
                until(lambda: "two live masters" in problems_of(store), SECONDS, lambda: problems_of(store))
                assert names.route("TBW102") == theirs
                java.stop()
                names.until_route("TBW102", ours)
                until(lambda: not problems_of(store), SECONDS, lambda: problems_of(store))
        finally:
            java.kill()
