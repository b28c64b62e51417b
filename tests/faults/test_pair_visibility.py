"""Consumers of a SYNC_MASTER see only what its slave has too: so no number is ever seen with two contents."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tandemmq.store.v1.store_pb2 import SendReceipt, SendStatus
from tests.faults.pair import PATIENT, REFUSED, Node, Pair
from tests.faults.pair_process import until
from tests.faults.test_pair_promotion import begin_anew, exchanged, follow, follower_state, promote

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ALONE = SendStatus.SLAVE_NOT_AVAILABLE


def send(node: Node, body: bytes, *, no_wait: bool = False) -> SendReceipt:
    with node.client() as client:
        return client.send("orders", body, keys=["k"], queue_id=0, no_wait=no_wait)


def seen(node: Node, offset: int = 0, wait_seconds: float = 0) -> list[bytes]:
    """The bodies that a consumer gets from an offset on; nobody who asks in another way has seen more before."""
    with node.client() as client:
        found = {one.body for one in client.query("orders", key="k")}
        end = client.offsets("orders", 0)[0].max_offset
        bodies = [one.body for one in client.pull("orders", 0, offset, wait_seconds=wait_seconds).records]
        if offset == 0:
            assert found <= {*bodies}
            assert end <= len(bodies)
        return bodies


def no_slave(node: Node) -> bool:
    status = node.status()
    return status is not None and not status.in_sync


@contextmanager
def cut_off(pair: Pair) -> Iterator[None]:
    """The slave follows no more, for the length of the block."""
    pair.slave.replicator.kill()
    until(lambda: no_slave(pair.master), 60, lambda: f"the master notices: {pair.master.status()}")
    yield
    pair.heal()


@pytest.mark.parametrize("flush", ["ASYNC_FLUSH", "SYNC_FLUSH"])
def test_what_no_replica_has_is_seen_when_one_has_it(tmp_path: Path, flush: str) -> None:
    with Pair(tmp_path, store={**PATIENT, "flushDiskType": flush}) as pair:
        master = pair.master
        assert send(master, b"0").status == SendStatus.PUT_OK
        assert seen(master) == [b"0"], "at once, whoever has the receipt"
        answers: list[list[bytes]] = []
        with cut_off(pair):
            assert send(master, b"1").status == ALONE
            assert send(master, b"2", no_wait=True).status == SendStatus.PUT_OK
            assert seen(master) == [b"0"]
            master.store.kill()
            master.start()
            assert seen(master) in ([b"0"], []), "a start shows no more than was confirmed"
            waiting = threading.Thread(target=lambda: answers.append(seen(master, 1, 300)))
            waiting.start()
        waiting.join()
        assert answers[0][0] == b"1", "who waits is woken"
        until(lambda: seen(master) == [b"0", b"1", b"2"], 60, "all of it is seen")


def test_what_was_seen_stays_readable_over_a_clean_restart_without_replicas(tmp_path: Path) -> None:
    with Pair(tmp_path, store=PATIENT) as pair:
        master = pair.master
        for number in range(20):
            send(master, b"%d" % number)
        before = seen(master)
        assert len(before) == 20
        pair.slave.kill()
        for _ in range(2):
            master.stop()
            master.start()
            assert seen(master) == before
        send(master, b"new")
        assert seen(master) == before
        master.stop()
        master.start()
        assert seen(master) == before


def test_a_number_is_never_seen_with_two_contents(tmp_path: Path) -> None:
    """The old master had given it to a message of its own; the new one gives it to another, and only that is seen."""
    with Pair(tmp_path, store=PATIENT) as pair:
        old, new = pair.nodes
        assert send(old, b"both").status == SendStatus.PUT_OK
        pair.wait_level()
        until(lambda: new.role().group.members, 60, "the slave knows its master's group")
        pair.slave.replicator.kill()
        until(lambda: no_slave(old), 60, lambda: f"the master notices: {old.status()}")
        lost = send(old, b"of the old one")
        assert (lost.status, lost.queue_offset) == (ALONE, 1)
        assert seen(old) == [b"both"]
        old.kill()
        new.start()
        until(lambda: new.status() is not None, 60, "it answers")
        assert seen(new) == [b"both"]
        promote(new, old_master_is_gone=True)
        assert seen(new) == [b"both"], "a promotion confirms what is there"
        assert send(new, b"of the new one").queue_offset == 1

        old.start()
        assert b"of the old one" not in seen(old)
        until(lambda: old.role().identity.fenced_by_epoch, 60, "the new master fences the old one")
        assert b"of the old one" not in seen(old)
        follow(old, new)
        until(lambda: follower_state(old) == REFUSED, 60, lambda: f"it is refused: {old.status()}")
        assert b"of the old one" not in seen(old), "a slave that is refused shows nothing that it must give up"
        old.store.kill()
        old.store.start()
        assert b"of the old one" not in seen(old)
        begin_anew(old, new)
        exchanged(pair)
        until(lambda: seen(new) == [b"both", b"of the new one"], 60, "it has a replica, and is seen")
        pair.wait_level()
        until(lambda: seen(old) == [b"both", b"of the new one"], 60, "the slave shows the same")


def test_consumers_that_want_everything_get_it(tmp_path: Path) -> None:
    with Pair(tmp_path, store={**PATIENT, "readUnCommitted": "true"}) as pair, cut_off(pair):
        assert send(pair.master, b"0").status == ALONE
        assert seen(pair.master) == [b"0"]
