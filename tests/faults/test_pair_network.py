"""A bad network between master and slave: delays, partitions both and one way, resets in the middle of a frame."""

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from tandemmq.store.v1.store_pb2 import SendStatus
from tests.faults.harness import SEED
from tests.faults.pair import FOLLOWING, GIVES_UP_SOON, SMALL, Pair
from tests.faults.pair_checks import assert_logs_equal, missing_on
from tests.faults.pair_load import PUT_OK, Ledger, load, outgoing
from tests.faults.pair_process import until
from tests.faults.proxy import Proxy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FILE_SIZE = 128 * 1024
assert SMALL["mappedFileSizeCommitLog"] == FILE_SIZE


@contextmanager
def pair_and_proxy(
    directory: Path, slave_timeout: int = 400, replicator: Mapping[str, object] | None = None, **more_store: object
) -> Iterator[tuple[Pair, Proxy]]:
    """A pair whose HA connection leads through a proxy; sends wait so many milliseconds for the slave."""
    with ExitStack() as stack:
        proxies: list[Proxy] = []

        def through(address: str) -> str:
            proxies.append(stack.enter_context(Proxy(address)))
            return proxies[0].address

        store = {"slaveTimeout": slave_timeout, **more_store}
        yield stack.enter_context(Pair(directory, ha_through=through, store=store, replicator=replicator)), proxies[0]


def under_load(pair: Pair, producers: int = 2) -> AbstractContextManager[Ledger]:
    """Producers on the master; what is told PUT_OK is looked for on the slave at once."""
    return load(pair.master.address("store"), pair.slave.root, FILE_SIZE, SEED, producers=producers)


def more(ledger: Ledger, number: int, seconds: float = 90.0) -> None:
    """Waits until so many more are told PUT_OK."""
    before = len(ledger.of())
    until(lambda: len(ledger.of()) >= before + number, seconds, lambda: f"{number} more; told so far {ledger.count()}")


def whole(pair: Pair, ledger: Ledger) -> None:
    """At rest: level, the logs equal, everything acknowledged on the slave."""
    pair.heal()
    end = pair.master.role().max_offset
    assert_logs_equal(pair.master.root, pair.slave.root, end, begin=0)
    assert not missing_on(pair.slave.root, FILE_SIZE, ledger.of())


def test_a_partition_of_which_nobody_is_told(tmp_path: Path) -> None:
    """Sends get FLUSH_SLAVE_TIMEOUT, then SLAVE_NOT_AVAILABLE when the master has given the slave up."""
    with pair_and_proxy(tmp_path, replicator=GIVES_UP_SOON) as (pair, proxy):
        with under_load(pair) as ledger:
            more(ledger, 200)
            proxy.stall()
            until(lambda: ledger.of(SendStatus.FLUSH_SLAVE_TIMEOUT), 60, "a send waits in vain")
            until(lambda: ledger.of(SendStatus.SLAVE_NOT_AVAILABLE), 60, "the slave is given up")
            until(lambda: pair.follower().state != FOLLOWING, 60, "the slave gives its master up")
            proxy.calm()
            more(ledger, 200)
        whole(pair, ledger)


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_partition_one_way(tmp_path: Path, way: str) -> None:
    """Without acks (up), or without bytes (down): no PUT_OK for what the slave lacks; it heals by itself."""
    with pair_and_proxy(tmp_path, replicator=GIVES_UP_SOON) as (pair, proxy):
        with under_load(pair) as ledger:
            more(ledger, 100)
            getattr(proxy, way).stalled = True
            until(lambda: ledger.of(SendStatus.FLUSH_SLAVE_TIMEOUT), 60, "a send waits in vain")
            reached = proxy.accepted
            until(lambda: proxy.accepted > reached + 1, 60, "the slave dials again")
            proxy.calm()
            more(ledger, 200)
        whole(pair, ledger)


def test_a_short_stall_breaks_nothing(tmp_path: Path) -> None:
    """Shorter than the housekeeping interval: the connection stays."""
    with pair_and_proxy(tmp_path) as (pair, proxy):
        with under_load(pair) as ledger:
            more(ledger, 100)
            reached = proxy.accepted
            for _ in range(4):
                proxy.stall()
                time.sleep(0.5)
                proxy.calm()
                more(ledger, 50)
            assert proxy.accepted == reached
        whole(pair, ledger)


def test_delays_are_waited_for(tmp_path: Path) -> None:
    with pair_and_proxy(tmp_path, slave_timeout=20_000) as (pair, proxy):
        proxy.up.delay = proxy.down.delay = 0.06
        with pair.master.client() as client:
            for number in range(5):
                begun = time.monotonic()
                message = outgoing("orders", f"delay-{number}")
                assert client.send(message.topic, message.body, tag=message.tag).status == PUT_OK
                assert time.monotonic() - begun >= 0.12
        with under_load(pair, producers=3) as ledger:
            more(ledger, 200)
        assert set(ledger.count()) == {"PUT_OK"}
        whole(pair, ledger)


def test_a_narrow_way(tmp_path: Path) -> None:
    """The slave falls behind under load that nobody waits for, and catches up when there is room."""
    with pair_and_proxy(tmp_path) as (pair, proxy):
        proxy.down.rate, proxy.down.most = 20_000, 4_096  # half a minute for what is sent in less than a second
        with pair.master.client() as client:
            for number in range(40):
                client.send_batch([outgoing("orders", f"n{number}-{at}") for at in range(100)], no_wait=True)
        until(lambda: lag_of(pair) > 0, 20, lambda: f"it lags: {pair.master.status()}")
        proxy.calm()
        with under_load(pair) as ledger:
            more(ledger, 50)
        whole(pair, ledger)


def lag_of(pair: Pair) -> int:
    """By how many bytes the slave is behind, as the master sees it."""
    status = pair.master.status()
    return status.replicas[0].lag_bytes if status is not None and status.replicas else 0


def test_resets_in_the_middle_of_a_frame(tmp_path: Path) -> None:
    """Thirty times, at places that chance chooses, with frames cut into crumbs."""
    chance = random.Random(SEED)
    with pair_and_proxy(tmp_path) as (pair, proxy):
        with under_load(pair) as ledger:
            for _ in range(30):
                proxy.down.most = chance.choice([7, 13, 100, 1_000, 65_536])
                proxy.up.most = chance.choice([1, 3, 8, 4_096])
                reached = proxy.accepted
                proxy.reset_after(chance.choice([1, 11, 12, 13, chance.randrange(100), chance.randrange(20_000)]))
                until(lambda: proxy.accepted > reached, 60, "the slave dials again")  # noqa: B023
                more(ledger, 5)
            proxy.calm()
            more(ledger, 100)
        assert proxy.accepted > 30
        whole(pair, ledger)


def test_a_master_that_refuses_for_a_while(tmp_path: Path) -> None:
    """Connections are reset as soon as they are made: the slave tries with pauses, not in a loop."""
    with pair_and_proxy(tmp_path) as (pair, proxy):
        proxy.refuse = True
        proxy.reset()
        reached, begun = proxy.accepted, time.monotonic()
        until(lambda: proxy.accepted > reached + 5, 60, "the slave tries again")
        seconds = time.monotonic() - begun
        assert (proxy.accepted - reached) / seconds < 100, "a hot loop"
        proxy.calm()
        with under_load(pair) as ledger:
            more(ledger, 50)
        whole(pair, ledger)
