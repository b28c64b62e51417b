"""Peers that mean no good, at both ends of the HA connection, beside a healthy pair that must go on."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from bench.process import memory_mb
from tests.faults.harness import SEED
from tests.faults.hostile import ATTACKS, REPORT, Attack, crowd, dial, drain
from tests.faults.hostile_masters import CONDUCTS, HostileMaster
from tests.faults.pair import PATIENT, Node, Pair
from tests.faults.pair_checks import assert_logs_equal, missing_on
from tests.faults.pair_load import Ledger, load
from tests.faults.pair_process import ServiceProcess, free_port, until
from tests.faults.proxy import Proxy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FILE_SIZE = 128 * 1024
CROWD = 1_000
LOG_SIZE = 1_000_000
"""Bytes of log that a service may write about all of it."""


class Weight:
    """Memory and descriptors of a process, now and later; the files of a store that grows do not count."""

    def __init__(self, process: ServiceProcess) -> None:
        self.process = psutil.Process(process.pid)
        self.descriptors = self._descriptors()
        self.memory = self._private()

    def _descriptors(self) -> int:
        number = 0
        for descriptor in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                target = str(descriptor.readlink())
                number += target.endswith("(deleted)") or not target.rpartition("/")[2].isdigit()
        return number

    def _private(self) -> float:
        """In MiB, without the pages of files."""
        return memory_mb(self.process.pid)[1]

    def assert_as_before(self, memory_mib: int = 48) -> None:
        """The descriptors are those of before; memory has grown by no more than that."""
        until(
            lambda: self._descriptors() <= self.descriptors + 4,
            60,
            lambda: f"{self._descriptors()} descriptors, {self.descriptors} before",
        )
        grown = self._private() - self.memory
        assert grown < memory_mib, f"{grown:.0f} MiB more"


def more(ledger: Ledger, number: int, seconds: float = 90.0) -> None:
    """Waits until so many more are told PUT_OK."""
    before = len(ledger.of())
    until(lambda: len(ledger.of()) >= before + number, seconds, lambda: f"{number} more; told so far {ledger.count()}")


def whole(pair: Pair, ledger: Ledger) -> None:
    """At rest: level, the logs equal, everything acknowledged on the slave, and nobody has died."""
    assert all(process.starts == 1 and process.running for _, process in pair.processes())
    pair.heal()
    end = pair.master.role().max_offset
    assert_logs_equal(pair.master.root, pair.slave.root, end, begin=0)
    assert not missing_on(pair.slave.root, FILE_SIZE, ledger.of())


def attacked(master: Node, attacks: tuple[Attack, ...], rounds: int) -> None:
    """Every attack so often, a few at a time."""
    failed: list[str] = []

    def one_row(number: int) -> None:
        chance = random.Random(f"{SEED} {number}")
        order = [attack for attack in attacks for _ in range(rounds)]
        chance.shuffle(order)
        for attack in order:
            try:
                attack(master.ha_address, chance)
            except (OSError, AssertionError) as error:
                failed.append(f"{attack.__name__}: {error!r}")

    rows = [threading.Thread(target=one_row, args=(number,)) for number in range(3)]
    for row in rows:
        row.start()
    for row in rows:
        row.join()
    assert not failed, failed[:5]


def test_a_master_under_attack(tmp_path: Path) -> None:
    """The healthy slave is served throughout: every send that is told PUT_OK is on it, and none has to wait in vain."""
    with Pair(tmp_path, store=PATIENT, replicator={"haMaxConnections": 2_000}) as pair:
        with load(pair.master.address("store"), pair.slave.root, FILE_SIZE, SEED, producers=2) as ledger:
            more(ledger, 200)
            attacked(pair.master, ATTACKS, 1)  # what is made once is made now
            weight = Weight(pair.master.replicator)
            attacked(pair.master, ATTACKS, 3)
            more(ledger, 200)
            weight.assert_as_before()
        assert set(ledger.count()) == {"PUT_OK"}, ledger.count()
        assert pair.master.replicator.log.stat().st_size < LOG_SIZE, "each attack is told of"
        whole(pair, ledger)


def test_a_slave_that_comes_back_at_once_for_ever(tmp_path: Path) -> None:
    """RocketMQ 4.9 does, when it is refused: no loop of log lines, and no harm to the others."""
    with Pair(tmp_path, store=PATIENT) as pair:
        with load(pair.master.address("store"), pair.slave.root, FILE_SIZE, SEED, producers=1) as ledger:
            more(ledger, 50)
            size, refusals, begun = pair.master.replicator.log.stat().st_size, 0, time.monotonic()
            while refusals <= 100 or time.monotonic() - begun < 3:
                with dial(pair.master.ha_address) as connection, suppress(ConnectionError):
                    connection.sendall(REPORT.pack(1 << 40))
                    refusals += drain(connection, 60) == 0
            more(ledger, 50)
        assert pair.master.replicator.log.stat().st_size - size < LOG_SIZE / 50
        assert set(ledger.count()) == {"PUT_OK"}, ledger.count()
        whole(pair, ledger)


def test_a_second_replicator_of_one_store(tmp_path: Path) -> None:
    """Started by mistake: the store has one link, and the first keeps it."""
    with Pair(tmp_path, store=PATIENT) as pair:
        first = pair.master.replicator
        settings = {**first.settings, "grpcPort": free_port(), "haListenPort": free_port()}
        second = ServiceProcess("replicator", tmp_path / "second", settings)
        try:
            with load(pair.master.address("store"), pair.slave.root, FILE_SIZE, SEED, producers=1) as ledger:
                more(ledger, 50)
                second.launch()
                until(lambda: any(line["event"] == "peer is away" for line in second.events()), 60, "it tries")
                more(ledger, 100)
            assert set(ledger.count()) == {"PUT_OK"}, ledger.count()
            assert not any(line["event"] == "peer is there" for line in second.events())
        finally:
            second.kill()
        whole(pair, ledger)


def test_a_thousand_connections(tmp_path: Path) -> None:
    """Silent ones, ones that have asked and read nothing: the healthy slave goes on; when they go, all is as before."""
    with Pair(
        tmp_path, store=PATIENT, replicator={"haMaxConnections": 2_000, "haHousekeepingInterval": 60_000}
    ) as pair:
        with load(pair.master.address("store"), pair.slave.root, FILE_SIZE, SEED, producers=2) as ledger:
            more(ledger, 100)
            weight = Weight(pair.master.replicator)
            with crowd(pair.master.ha_address, CROWD, random.Random(SEED)) as connections:
                assert len(connections) == CROWD
                more(ledger, 300)
            more(ledger, 100)
            weight.assert_as_before()
        assert set(ledger.count()) == {"PUT_OK"}, ledger.count()
        whole(pair, ledger)


def test_more_connections_than_are_allowed(tmp_path: Path) -> None:
    """haMaxConnections: more are turned away; the slave that is there stays."""
    with Pair(tmp_path, store=PATIENT, replicator={"haMaxConnections": 10}) as pair:
        with load(pair.master.address("store"), pair.slave.root, FILE_SIZE, SEED, producers=1) as ledger:
            more(ledger, 50)
            with crowd(pair.master.ha_address, 100, random.Random(SEED)):
                more(ledger, 100)
        assert set(ledger.count()) == {"PUT_OK"}, ledger.count()
        whole(pair, ledger)


def test_peers_that_are_not_allowed(tmp_path: Path) -> None:
    """haAllowedPeers: this machine is none of them, so the slave never gets in."""
    pair = Pair(tmp_path, replicator={"haAllowedPeers": "192.0.2.0/24"})
    try:
        for node in pair.nodes:
            node.start()
        until(lambda: pair.follower().reconnects > 3, 60, pair.describe)
        assert not pair.following()
    finally:
        pair.close()


@contextmanager
def pair_and_proxy(directory: Path) -> Iterator[tuple[Pair, Proxy]]:
    """A pair whose HA connection leads through a proxy, which can lead elsewhere."""
    with ExitStack() as stack:
        proxies: list[Proxy] = []

        def through(address: str) -> str:
            proxies.append(stack.enter_context(Proxy(address)))
            return proxies[0].address

        yield stack.enter_context(Pair(directory, ha_through=through)), proxies[0]


def test_a_slave_meets_hostile_masters(tmp_path: Path) -> None:
    """Not a byte of theirs gets into its log; led back to its own master it goes on."""
    with pair_and_proxy(tmp_path) as (pair, proxy):
        with load(pair.master.address("store"), pair.slave.root, FILE_SIZE, SEED, producers=2) as ledger:
            more(ledger, 300)
            weights: list[Weight] = []
            for turn in range(2):
                for conduct in CONDUCTS:
                    with HostileMaster(conduct, SEED + turn) as hostile:
                        proxy.target = hostile.address
                        proxy.reset()
                        until(hostile.met.is_set, 60, lambda: f"it comes; {pair.describe()}")
                        proxy.target = pair.master.ha_address
                        proxy.reset()
                    more(ledger, 20)
                if not weights:
                    weights = [Weight(pair.slave.replicator), Weight(pair.slave.store)]
            for weight in weights:
                weight.assert_as_before()
        whole(pair, ledger)


def test_an_empty_slave_meets_hostile_masters(tmp_path: Path) -> None:
    """Its process lives, and frames that cannot be are refused; what looks like a log it would have to believe."""
    believed = {"other_file_size", "another_log", "oversized", "truncated", "wrong_offset"}
    nobody = {"haMasterReplicatorAddress": "127.0.0.1:1"}
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy("127.0.0.1:1"))
        pair = Pair(tmp_path, ha_through=proxy.address, slave_replicator=nobody)
        stack.callback(pair.close)
        pair.slave.start()
        for conduct in CONDUCTS:
            if conduct.__name__ in believed:
                continue
            with HostileMaster(conduct, SEED) as hostile:
                proxy.target = hostile.address
                proxy.reset()
                until(hostile.met.is_set, 60, pair.describe)
            assert pair.slave.store.running
            assert pair.slave.replicator.running
        assert pair.slave.role().max_offset <= 1
