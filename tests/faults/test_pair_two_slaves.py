"""Two slaves: whom a send waits for, and that neither holds up the other."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest

from tandemmq.store.v1.replica_log_pb2 import BrokerRole
from tandemmq.store.v1.store_pb2 import SendStatus
from tests.faults.harness import SEED
from tests.faults.hostile import REPORT, dial
from tests.faults.pair import FOLLOWING, Node, Pair, slave_of
from tests.faults.pair_checks import assert_logs_equal, missing_on
from tests.faults.pair_load import PUT_OK, load, outgoing
from tests.faults.pair_process import until
from tests.faults.proxy import Proxy
from tests.faults.test_pair_promotion import follow, promote

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FILE_SIZE = 128 * 1024
PATIENT = (20_000, 60_000)
GIVES_UP_SOON = (5_000, 12_000)


class Three(NamedTuple):
    """A master, its slave, and another one behind a proxy."""

    pair: Pair
    other: Node
    proxy: Proxy

    def in_sync(self) -> int:
        """Slaves that the master counts."""
        status = self.pair.master.status()
        return -1 if status is None else status.in_sync

    def other_level(self) -> bool:
        """Whether the other slave has all."""
        return self.other.role().max_offset == self.pair.master.role().max_offset

    def send(self, value: str) -> int:
        """The status of one message."""
        message = outgoing("orders", value)
        with self.pair.master.client() as client:
            return client.send(message.topic, message.body, tag=message.tag, keys=message.keys).status


@contextmanager
def three(directory: Path, timing: tuple[int, int] = PATIENT, **settings: object) -> Iterator[Three]:
    """All of them linked; `settings` are store's and replicator's.

    `timing`: milliseconds after which a send, and then the connection of a slave that hangs, is given up.
    """
    with ExitStack() as stack:
        store = {"slaveTimeout": timing[0], **settings}
        settings["haHousekeepingInterval"] = timing[1]
        pair = stack.enter_context(Pair(directory, store=store, replicator=settings))
        far = "127.0.0.2"  # a slave is known by the address and port that it comes from
        proxy = stack.enter_context(Proxy(pair.master.ha_address, far))
        introducing = stack.enter_context(Proxy(pair.master.address("replicator"), far))
        other = slave_of(
            pair.master,
            directory / "c",
            2,
            store=store,
            replicator={**settings, "haMasterReplicatorAddress": introducing.address},
            ha_through=proxy.address,
            host=far,
        )
        stack.callback(other.close)
        other.start()
        result = Three(pair, other, proxy)
        until(lambda: result.in_sync() == 2, 60, lambda: f"two slaves: {pair.master.status()} {other.status()}")
        yield result


def test_one_of_two_is_enough(tmp_path: Path) -> None:
    """inSyncReplicas=2: a slave that hangs holds nobody up, and catches up when it is back."""
    with three(tmp_path) as it:
        # At an acknowledgement either of the two has the message, so nothing is looked for at that moment.
        with load(it.pair.master.address("store"), None, FILE_SIZE, SEED, producers=2) as ledger:
            until(lambda: len(ledger.of()) > 100, 60, "load")
            it.proxy.stall()
            before = len(ledger.of())
            until(lambda: len(ledger.of()) > before + 300, 60, lambda: f"{ledger.count()}")
            it.proxy.calm()
        assert set(ledger.count()) == {"PUT_OK"}, ledger.count()
        it.pair.wait_level()
        until(it.other_level, 60, lambda: f"{it.other.status()}")
        end = it.pair.master.role().max_offset
        assert_logs_equal(it.pair.master.root, it.other.root, end, begin=0)
        assert not missing_on(it.pair.slave.root, FILE_SIZE, ledger.of())


def test_both_are_wanted(tmp_path: Path) -> None:
    """inSyncReplicas=3: each must have the message; with one that hangs it is FLUSH_SLAVE_TIMEOUT."""
    with three(tmp_path, GIVES_UP_SOON, inSyncReplicas=3) as it:
        with load(it.pair.master.address("store"), it.other.root, FILE_SIZE, SEED, producers=2) as ledger:
            until(lambda: len(ledger.of()) > 100, 60, "load")
        assert set(ledger.count()) == {"PUT_OK"}, ledger.count()
        assert not missing_on(it.pair.slave.root, FILE_SIZE, ledger.of())
        it.proxy.stall()
        assert it.send("hangs") == SendStatus.FLUSH_SLAVE_TIMEOUT
        until(lambda: it.in_sync() == 1, 60, "the one that hangs is given up")
        assert it.send("gone") == SendStatus.SLAVE_NOT_AVAILABLE
        it.proxy.calm()
        until(lambda: it.in_sync() == 2, 60, lambda: f"{it.other.status()}")
        assert it.send("back") == PUT_OK


def test_everyone_in_sync_is_wanted(tmp_path: Path) -> None:
    """allAckInSyncStateSet: both have it while both are there; one that is gone is not waited for."""
    with three(tmp_path, GIVES_UP_SOON, allAckInSyncStateSet="true") as it:
        with load(it.pair.master.address("store"), it.other.root, FILE_SIZE, SEED, producers=2) as ledger:
            until(lambda: len(ledger.of()) > 100, 60, "load")
        assert not missing_on(it.pair.slave.root, FILE_SIZE, ledger.of())
        it.proxy.stall()
        assert it.send("hangs") == SendStatus.FLUSH_SLAVE_TIMEOUT
        until(lambda: it.in_sync() == 1, 60, "the one that hangs is given up")
        assert it.send("one-is-there") == PUT_OK


def test_the_slave_that_has_more_is_promoted(tmp_path: Path) -> None:
    """The master dies while one slave lags: that one is refused, the other becomes master, and is followed by it."""
    with three(tmp_path) as it:
        master, ahead, behind = it.pair.master, it.pair.slave, it.other
        with load(master.address("store"), None, FILE_SIZE, SEED, producers=2) as ledger:  # either has it at the ack
            until(lambda: len(ledger.of()) > 100, 60, "load")
            it.proxy.stall()
            before = len(ledger.of())
            until(lambda: len(ledger.of()) > before + 200, 60, lambda: f"{ledger.count()}")
            it.proxy.reset()
            master.kill()
        it.proxy.calm()
        assert behind.role().max_offset < ahead.role().max_offset
        with pytest.raises(grpc.RpcError) as refused:
            promote(behind, old_master_is_gone=True, other_slaves=[ahead.address("replicator")])
        assert "accept the loss" in str(refused.value)
        assert behind.role().identity.role == BrokerRole.SLAVE
        promote(ahead, old_master_is_gone=True, other_slaves=[behind.address("replicator")])
        follow(behind, ahead)
        until(lambda: behind.role().max_offset == ahead.role().max_offset, 60, lambda: f"{behind.status()}")
        with load(ahead.address("store"), behind.root, FILE_SIZE, SEED, producers=2, name="again") as again:
            until(lambda: len(again.of()) > 100, 60, lambda: f"{again.count()} {behind.status()}")
        until(lambda: behind.role().max_offset == ahead.role().max_offset, 60, lambda: f"{behind.status()}")
        assert_logs_equal(ahead.root, behind.root, ahead.role().max_offset, begin=0)
        for root in (ahead.root, behind.root):
            assert not missing_on(root, FILE_SIZE, [*ledger.of(), *again.of()])


def test_one_peer_with_many_connections_counts_once(tmp_path: Path) -> None:
    """inSyncReplicas=4 with one slave: five connections more from one address, all with an ack, are one replica."""
    replicator = {"inSyncReplicas": 4, "haHousekeepingInterval": 60_000}
    with Pair(tmp_path, store={"slaveTimeout": 700, "inSyncReplicas": 4}, replicator=replicator) as pair:
        end = pair.master.role().max_offset
        with ExitStack() as stack:
            connections: list[socket.socket] = [stack.enter_context(dial(pair.master.ha_address)) for _ in range(5)]
            for connection in connections:
                connection.sendall(REPORT.pack(end))
            until(lambda: replicas(pair) == 2, 60, lambda: f"{pair.master.status()}")
            message = outgoing("orders", "one")
            with pair.master.client() as client:
                assert client.send(message.topic, message.body).status == SendStatus.SLAVE_NOT_AVAILABLE
        until(lambda: pair.follower().state == FOLLOWING, 60, "the slave follows as before")


def replicas(pair: Pair) -> int:
    """Replicas that are connected, as the master counts them."""
    status = pair.master.status()
    return 0 if status is None else sum(one.connected for one in status.replicas)
