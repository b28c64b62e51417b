"""Three nodes: who may take over, that no two masters acknowledge, and what a slave has heard of."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest
from typer.testing import CliRunner

from tandemmq.cli.main import app
from tandemmq.client import ClientError
from tandemmq.store.v1.replica_log_pb2 import BrokerRole
from tandemmq.store.v1.store_pb2 import SendStatus
from tests.faults.pair import FOLLOWING, REFUSED, Node, Pair, slave_of
from tests.faults.pair_checks import missing_on
from tests.faults.pair_load import PUT_OK, Told, outgoing
from tests.faults.pair_process import until
from tests.faults.proxy import Proxy
from tests.faults.test_pair_promotion import follow, promote, refusal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FILE_SIZE = 128 * 1024


class Three(NamedTuple):
    """Master a, slaves b and c; b reaches a's replicator and HA port through proxies."""

    a: Node
    b: Node
    c: Node
    cut: Callable[[], None]
    """Cuts b off from a."""


@contextmanager
def three(directory: Path) -> Iterator[Three]:
    """All follow, and both slaves count."""
    with ExitStack() as stack:
        a = Node(directory / "a", 0, "SYNC_MASTER", store={"slaveTimeout": 3_000})
        stack.callback(a.close)
        a.start()
        far = "127.0.0.2"  # a slave is known by the address and port that it comes from
        ha, replicator = (stack.enter_context(Proxy(to, far)) for to in (a.ha_address, a.address("replicator")))
        through = {"haMasterReplicatorAddress": replicator.address}
        b = slave_of(a, directory / "b", 1, ha_through=ha.address, replicator=through, host=far)
        c = slave_of(a, directory / "c", 2)
        for node in (b, c):
            stack.callback(node.close)
            node.start()
        until(lambda: in_sync(a) == 2, 60, lambda: f"both count: {a.status()} {b.status()} {c.status()}")
        until(lambda: all(members(one) == ["1", "2"] for one in (b, c)), 60, lambda: f"{b.role()} {c.role()}")

        def cut() -> None:
            for proxy in (ha, replicator):
                proxy.partition()

        yield Three(a, b, c, cut)


def in_sync(node: Node) -> int:
    """Slaves that a master counts."""
    status = node.status()
    return -1 if status is None else status.in_sync


def members(node: Node) -> list[str]:
    """Whom a node knows as slaves of its master that count."""
    return sorted(one.identity for one in node.role().group.members if not one.joining)


def send(node: Node, value: str) -> Told:
    """One message that waits for slaves."""
    message = outgoing("orders", value)
    with node.client() as client:
        one = client.send(message.topic, message.body, tag=message.tag, keys=message.keys)
    return Told(value, message.topic, one.queue_id, one.queue_offset, one.physical_offset, one.status)


def acknowledged(node: Node, number: int, name: str) -> list[Told]:
    """So many messages, each told PUT_OK."""
    told = [send(node, f"{name}-{turn}") for turn in range(number)]
    assert {one.status for one in told} == {PUT_OK}
    return told


def answers_ok(node: Node) -> bool:
    """Whether a message is told PUT_OK now."""
    try:
        return send(node, "probe").status == PUT_OK
    except ClientError:
        return False


def test_no_two_masters_acknowledge(tmp_path: Path) -> None:
    """b is cut off from a and promoted: c promises first, so a's messages are not acknowledged any more."""
    with three(tmp_path) as it:
        before = acknowledged(it.a, 10, "before")  # by one of the two slaves: the other may still be on its way
        until(lambda: it.b.role().max_offset == it.a.role().max_offset, 60, "b has all there was")
        it.cut()
        until(lambda: in_sync(it.a) == 1, 60, "a has noticed")
        promoted = promote(it.b, old_master_is_gone=True)
        assert promoted.state.identity.epoch == 2
        until(lambda: not answers_ok(it.a), 60, "a acknowledges nothing any more")
        for _ in range(5):
            assert not answers_ok(it.a)
        until(lambda: it.a.role().identity.fenced_by_epoch == 2, 60, "c, which promised, has fenced a")
        follow(it.c, it.b)
        until(lambda: answers_ok(it.b), 60, lambda: f"{it.c.status()} {it.b.status()}")
        after = acknowledged(it.b, 10, "after")
        for node in (it.b, it.c):
            assert not missing_on(node.root, FILE_SIZE, [*before, *after])


def test_a_slave_that_is_not_asked_holds_the_promotion_up(tmp_path: Path) -> None:
    """What a told PUT_OK while b was cut off is on c only: b is not promoted without c, nor with it."""
    with three(tmp_path) as it:
        acknowledged(it.a, 5, "before")
        it.cut()
        until(lambda: in_sync(it.a) == 1, 60, "a has noticed")
        told = acknowledged(it.a, 10, "meanwhile")
        it.c.replicator.kill()
        assert "slave 2 at" in refusal(lambda: promote(it.b, old_master_is_gone=True))
        assert it.b.role().identity.fenced_by_epoch == 0, "nothing has changed"
        it.c.replicator.start()
        until(lambda: in_sync(it.a) == 1, 60, "c follows again")
        it.a.kill()
        assert "bytes more" in refusal(lambda: promote(it.b, old_master_is_gone=True))
        promoted = promote(it.c, old_master_is_gone=True)
        assert promoted.state.identity.role == BrokerRole.SYNC_MASTER
        assert not missing_on(it.c.root, FILE_SIZE, told)


def is_serving_master(node: Node) -> bool:
    """A master that may acknowledge: one that was fenced, as by a later promotion, keeps its role and takes nothing."""
    identity = node.role().identity
    return identity.role == BrokerRole.SYNC_MASTER and identity.fenced_by_epoch <= identity.epoch


def test_two_promotions_at_once(tmp_path: Path) -> None:
    """b and c are both asked while a is dead: one at most, and afterwards one."""
    with three(tmp_path) as it:
        told = acknowledged(it.a, 10, "before")
        until(lambda: it.b.role().max_offset == it.c.role().max_offset, 60, "both have all")
        it.a.kill()
        masters: list[Node] = []

        def attempt(node: Node) -> str:
            try:
                promote(node, old_master_is_gone=True)
            except grpc.RpcError as error:
                return str(error)
            return ""

        with ThreadPoolExecutor(2) as pool:
            for _ in range(4):
                refused = list(pool.map(attempt, (it.b, it.c)))
                masters = [one for one in (it.b, it.c) if is_serving_master(one)]
                assert len(masters) <= 1, refused
        if not masters:
            assert attempt(it.b) == ""
            masters = [it.b]
        assert not missing_on(masters[0].root, FILE_SIZE, told)


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
def test_an_empty_slave_is_not_promoted(tmp_path: Path, restarted: bool) -> None:
    """Seeded anew and its master dead: it knows that there was something."""
    with Pair(tmp_path) as pair:
        acknowledged(pair.master, 30, "before")
        pair.wait_level()
        pair.slave.stop()
        pair.master.kill()
        done = CliRunner().invoke(app, ["reseed", "--data", str(pair.slave.root)])
        assert done.exit_code == 0, done.output
        pair.slave.start()
        if restarted:
            pair.slave.replicator.kill()
            pair.slave.replicator.start()
        until(lambda: pair.slave.status() is not None, 60, "it answers")
        told = refusal(lambda: promote(pair.slave, old_master_is_gone=True))
        assert "never came here" in told or "that only they have" in told, told
        assert pair.slave.role().identity.role == BrokerRole.SLAVE
        promote(pair.slave, old_master_is_gone=True, accept_loss=True)


def test_a_slave_that_never_heard_of_a_master_is_not_promoted(tmp_path: Path) -> None:
    """A new directory knows nothing: that is not the same as nothing to lose."""
    node = Node(tmp_path / "b", 1, "SLAVE", replicator={"haMasterAddress": "127.0.0.1:1"})
    try:
        node.start()
        until(lambda: node.status() is not None, 60, "it answers")
        assert "does not know what the master" in refusal(lambda: promote(node, old_master_is_gone=True))
    finally:
        node.close()


def test_whom_a_node_follows_outlives_its_replicator(tmp_path: Path) -> None:
    """An old master that was told to follow the new one does so after a restart; its settings name nobody."""
    with Pair(tmp_path) as pair:
        acknowledged(pair.master, 10, "before")
        pair.wait_level()
        old, new = pair.nodes
        promote(new)
        follow(old, new)
        until(lambda: follower_state(old) == FOLLOWING, 60, lambda: f"{old.status()}")
        for name in ("replicator", "store"):
            old.processes[name].kill()
            old.processes[name].start()
            until(lambda: follower_state(old) == FOLLOWING, 60, lambda: f"{old.status()} {old.replicator.events()}")
        until(lambda: answers_ok(new), 60, "it counts again")


def test_a_slave_without_a_master_says_so(tmp_path: Path) -> None:
    """No haMasterAddress: REFUSED with words, not a ValueError."""
    node = Node(tmp_path / "b", 1, "SLAVE")
    try:
        node.start()
        until(lambda: follower_state(node) == REFUSED, 60, lambda: f"{node.status()}")
        status = node.status()
        assert status is not None
        assert "nobody to follow" in status.follower.problem
    finally:
        node.close()


def follower_state(node: Node) -> int:
    """How a node follows; 0 if it does not answer."""
    status = node.status()
    return 0 if status is None else status.follower.state


def test_a_killed_replicator_leaves_no_traceback(tmp_path: Path) -> None:
    """The store goes on, and its log has no failure of ours."""
    with Pair(tmp_path) as pair:
        for _ in range(5):
            acknowledged(pair.master, 3, "more")
            for node in pair.nodes:
                node.replicator.process.kill()  # type: ignore[union-attr]  # not waited for: messages are under way
                assert send(pair.master, "meanwhile").status in SendStatus.values()
                node.replicator.kill()
            pair.heal()
        for node in pair.nodes:
            text = node.store.log.read_text()
            assert "Traceback" not in text, text[-3000:]
            assert "UsageError" not in text, text[-3000:]
