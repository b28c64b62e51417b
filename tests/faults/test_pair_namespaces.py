"""Partitions between two hosts of a kind (network namespaces): packets are lost, and nobody is told."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tandemmq.store.v1.store_pb2 import SendStatus
from tests.faults.harness import SEED
from tests.faults.pair import FOLLOWING, GIVES_UP_SOON, Pair
from tests.faults.pair_checks import assert_logs_equal, missing_on
from tests.faults.pair_load import load
from tests.faults.pair_namespaces import Network, Side, network
from tests.faults.pair_process import until

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.timeout(600)]

FILE_SIZE = 128 * 1024


@pytest.fixture(scope="module")
def net() -> Iterator[Network]:
    """Two hosts."""
    with network() as net:
        yield net


@pytest.mark.parametrize("lost", [("a", "b"), ("a",), ("b",)], ids=["both ways", "from master", "from slave"])
def test_a_partition(tmp_path: Path, net: Network, lost: tuple[Side, ...]) -> None:
    """No PUT_OK for what the slave lacks; both sides give the connection up; it heals by itself, three times over."""
    hosts, prefixes = (net.addresses["a"], net.addresses["b"]), (net.prefix("a"), net.prefix("b"))
    store = {"slaveTimeout": 400}
    with Pair(tmp_path, store=store, replicator=GIVES_UP_SOON, hosts=hosts, prefixes=prefixes) as pair:
        with load(pair.master.address("store"), pair.slave.root, FILE_SIZE, SEED, producers=2) as ledger:
            for _ in range(3):
                before = len(ledger.of())
                until(lambda: len(ledger.of()) >= before + 100, 60, pair.describe)  # noqa: B023
                timeouts = len(ledger.of(SendStatus.FLUSH_SLAVE_TIMEOUT))
                for side in lost:
                    net.cut(side)
                until(lambda: len(ledger.of(SendStatus.FLUSH_SLAVE_TIMEOUT)) > timeouts, 60, pair.describe)  # noqa: B023
                until(lambda: pair.follower().state != FOLLOWING, 60, pair.describe)
                net.mend()
        pair.heal()
        assert_logs_equal(pair.master.root, pair.slave.root, pair.master.role().max_offset, begin=0)
        assert not missing_on(pair.slave.root, FILE_SIZE, ledger.of())
