"""A slave becomes the master by hand; the old one is fenced, and becomes a slave: nothing acknowledged is lost."""

import random
import shutil
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from tandemmq.client import ClientError, RequestFailed
from tandemmq.replication.v1 import replication_pb2
from tandemmq.store.v1.replica_log_pb2 import BrokerRole
from tests.faults.harness import SEED
from tests.faults.pair import FOLLOWING, REFUSED, Node, Pair
from tests.faults.pair_checks import assert_logs_equal, missing_on
from tests.faults.pair_load import PUT_OK, Ledger, Told, load, outgoing
from tests.faults.pair_process import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FILE_SIZE = 128 * 1024
Promoted = replication_pb2.PromoteResponse


def promote(node: Node, **more: Any) -> Promoted:
    """Turns a slave into a SYNC_MASTER."""
    request = replication_pb2.PromoteRequest(role=BrokerRole.SYNC_MASTER, **more)
    return node.replication().Promote(request, timeout=60)


def follow(node: Node, master: Node) -> None:
    """Makes a node the slave of another."""
    request = replication_pb2.FollowRequest(
        ha_master_address=master.ha_address, replicator_address=master.address("replicator")
    )
    node.replication().Follow(request, timeout=60)


def send_without_waiting(node: Node, value: str) -> Told:
    """One message to a master that has no slave."""
    message = outgoing("orders", value)
    with node.client() as client:
        one = client.send(message.topic, message.body, tag=message.tag, keys=message.keys, no_wait=True)
    return Told(value, message.topic, one.queue_id, one.queue_offset, one.physical_offset, one.status)


def refusal(call: Callable[[], object]) -> str:
    """What a call is refused with."""
    with pytest.raises((grpc.RpcError, ClientError)) as refused:
        call()
    return str(refused.value)


def some_load(pair: Pair, number: int) -> Ledger:
    """So many messages, told PUT_OK, and no more under way; the slave knows who follows its master.

    It is told within a second of its first connection. A promotion before that is refused, as it must be.
    """
    with load(pair.master.address("store"), pair.slave.root, FILE_SIZE, SEED) as ledger:
        until(lambda: len(ledger.of()) >= number, 60, lambda: f"{ledger.count()}")
    until(lambda: list(pair.slave.role().group.members), 60, "the slave is told of the master's group")
    return ledger


def exchanged(pair: Pair) -> None:
    """From here on the pair's master is the node that was the slave."""
    pair.master, pair.slave = pair.slave, pair.master


def test_promotion_after_the_masters_death(tmp_path: Path) -> None:
    """Killed under load: its slave has all that was told PUT_OK, and is promoted; the old master follows it."""
    with Pair(tmp_path) as pair:
        with load(pair.master.address("store"), pair.slave.root, FILE_SIZE, SEED) as ledger:
            until(lambda: len(ledger.of()) >= 500, 60, lambda: f"{ledger.count()}")
            pair.master.kill()
        acknowledged = ledger.of()
        assert not missing_on(pair.slave.root, FILE_SIZE, acknowledged)
        before = pair.slave.role()
        assert refusal(lambda: promote(pair.slave)), "the old master's death is not taken for granted"
        promoted = promote(pair.slave, old_master_is_gone=True)
        assert promoted.steps
        assert promoted.state.identity.role == BrokerRole.SYNC_MASTER
        assert promoted.state.identity.epoch > before.identity.epoch
        assert promoted.state.max_offset <= before.max_offset

        old, new = pair.nodes
        told = [send_without_waiting(new, f"new-{number}") for number in range(20)]
        assert all(one.status == PUT_OK for one in told)
        new.store.kill()
        new.start()  # the role outlives the configuration
        until(lambda: new.status() is not None, 60, "the new master answers")
        assert new.role().identity.role == BrokerRole.SYNC_MASTER
        assert not missing_on(new.root, FILE_SIZE, [*acknowledged, *told])

        old.start()
        epoch = promoted.state.identity.epoch
        until(lambda: old.role().identity.fenced_by_epoch == epoch, 60, "the new master fences the old one")
        assert "SERVICE_NOT_AVAILABLE" in refused_message(old)
        old.store.kill()
        old.store.start()
        assert "SERVICE_NOT_AVAILABLE" in refused_message(old), "the fence outlives a restart"
        back_as_slave(old, new)
        exchanged(pair)
        pair.wait_level()
        end = new.role().max_offset
        assert_logs_equal(new.root, old.root, end, begin=0)
        with load(new.address("store"), old.root, FILE_SIZE, SEED, name="again") as ledger:
            until(lambda: len(ledger.of()) >= 200, 60, lambda: f"{ledger.count()} {pair.describe()}")
        pair.wait_level()
        assert not missing_on(old.root, FILE_SIZE, [*acknowledged, *told, *ledger.of()])


def refused_message(node: Node) -> str:
    """RocketMQ's name for the refusal of a message."""
    message = outgoing("orders", "nobody")
    with node.client() as client, pytest.raises(RequestFailed) as refused:
        client.send(message.topic, message.body)
    return refused.value.status


@pytest.mark.parametrize("new_messages", [5, 400], ids=["shorter", "longer"])
def test_an_old_master_with_a_tail_of_its_own(tmp_path: Path, new_messages: int) -> None:
    """It has what nobody was promised: it is refused as a slave, keeps its bytes, and begins anew when told to."""
    with Pair(tmp_path) as pair:
        acknowledged = some_load(pair, 200).of()
        pair.wait_level()
        old, new = pair.nodes
        until(lambda: new.role().group.members, 60, "the slave knows its master's group")
        new.replicator.kill()
        tail = [send_without_waiting(old, f"tail-{number}") for number in range(50)]
        old.kill()
        new.start()
        until(lambda: new.status() is not None, 60, "it answers")
        promote(new, old_master_is_gone=True)
        told = [send_without_waiting(new, f"new-{number}") for number in range(new_messages)]
        old.start()
        until(lambda: old.role().identity.fenced_by_epoch, 60, "the new master fences the old one")
        follow(old, new)
        until(lambda: follower_state(old) == REFUSED, 60, lambda: f"it is refused: {old.status()}")
        assert not missing_on(old.root, FILE_SIZE, [*acknowledged, *tail])
        begin_anew(old, new)
        exchanged(pair)
        pair.wait_following()
        pair.wait_level()
        assert_logs_equal(new.root, old.root, new.role().max_offset, begin=0)
        assert not missing_on(old.root, FILE_SIZE, [*acknowledged, *told])


def follower_state(node: Node) -> int:
    """How a node follows; 0 if it does not answer."""
    status = node.status()
    return 0 if status is None else status.follower.state


def begin_anew(old: Node, new: Node) -> None:
    """The old master's directory is given up; it becomes a slave of the new one."""
    old.stop()
    shutil.rmtree(old.root)
    old.store.settings |= {"brokerRole": "SLAVE", "brokerId": 1}
    old.metasync.settings |= {"brokerRole": "SLAVE", "metasyncMasterAddress": new.address("metasync")}
    old.replicator.settings |= {
        "brokerId": 1,
        "haMasterAddress": new.ha_address,
        "haMasterReplicatorAddress": new.address("replicator"),
    }
    old.start()
    until(lambda: follower_state(old) == FOLLOWING, 60, lambda: f"it follows: {old.status()}")


def back_as_slave(old: Node, new: Node) -> None:
    """`tandem follow`: as it is, where its log has nothing that the new master lacks; else from an empty directory."""
    until(lambda: old.status() is not None, 60, "the old master answers")
    follow(old, new)
    states = (FOLLOWING, REFUSED)
    until(lambda: follower_state(old) in states, 60, lambda: f"it follows, or refuses to: {old.status()}")
    if follower_state(old) == REFUSED:
        begin_anew(old, new)


def test_promotion_of_a_level_slave_with_the_master_alive(tmp_path: Path) -> None:
    """The planned way: the old master is fenced by the promotion itself, and its log is continued, not replaced."""
    with Pair(tmp_path) as pair:
        ledger = some_load(pair, 300)
        pair.wait_level()
        old, new = pair.nodes
        promoted = promote(new)
        assert promoted.state.identity.epoch == new.role().identity.epoch
        assert old.role().identity.fenced_by_epoch == promoted.state.identity.epoch
        assert "SERVICE_NOT_AVAILABLE" in refused_message(old)
        follow(old, new)
        exchanged(pair)
        pair.wait_following()
        with load(new.address("store"), old.root, FILE_SIZE, SEED, name="again") as again:
            until(lambda: len(again.of()) >= 200, 60, lambda: f"{again.count()} {pair.describe()}")
        pair.wait_level()
        assert_logs_equal(new.root, old.root, new.role().max_offset, begin=0)
        assert not missing_on(old.root, FILE_SIZE, [*ledger.of(), *again.of()])


def test_promotion_under_load_loses_nothing(tmp_path: Path) -> None:
    """With producers at work: what the old master acknowledged with PUT_OK is on the new one, at its place."""
    with Pair(tmp_path) as pair:
        old, new = pair.nodes
        with load(old.address("store"), new.root, FILE_SIZE, SEED) as ledger:
            until(lambda: len(ledger.of()) >= 300, 60, lambda: f"{ledger.count()}")
            try:
                promote(new)
            except grpc.RpcError:  # it may say that it has not everything: then nothing has changed
                assert new.role().identity.role == BrokerRole.SLAVE
            else:
                until(lambda: ledger.refused, 60, "the old master takes no more")
                assert new.role().identity.role == BrokerRole.SYNC_MASTER
        assert not missing_on(new.root, FILE_SIZE, ledger.of())


@pytest.mark.parametrize("victim", ["store", "replicator"])
def test_killed_in_the_middle_of_a_promotion(tmp_path: Path, victim: str) -> None:
    """At any moment: afterwards it is a slave or a master, nothing between; asked again it is promoted."""
    chance = random.Random(f"{SEED} {victim}")
    with Pair(tmp_path) as pair:
        acknowledged = some_load(pair, 300).of()
        pair.master.kill()
        new, epoch = pair.slave, pair.slave.role().identity.epoch
        for _ in range(5):
            asking = threading.Thread(target=promote_or_fail, args=(new,))
            asking.start()
            time.sleep(chance.random() * 0.06)
            new.processes[victim].kill()
            asking.join()
            new.start()
            until(lambda: new.status() is not None, 60, "it answers")
            identity = new.role().identity
            if identity.role == BrokerRole.SLAVE:
                assert identity.epoch == epoch
            else:
                assert identity.epoch > epoch  # each attempt asks for a greater one
            assert not missing_on(new.root, FILE_SIZE, acknowledged)
        if new.role().identity.role == BrokerRole.SLAVE:
            until(lambda: promoted(new), 60, "the store that was started again is found by its replicator")
        assert new.role().identity.epoch > epoch
        assert send_without_waiting(new, "first").status == PUT_OK
        assert not missing_on(new.root, FILE_SIZE, acknowledged)


def promoted(node: Node) -> bool:
    """Promotes; False while the replicator does not reach its store."""
    try:
        promote(node, old_master_is_gone=True)
    except grpc.RpcError as error:
        if getattr(error, "code", lambda: None)() is not grpc.StatusCode.UNAVAILABLE:
            raise
        return False
    return True


def promote_or_fail(node: Node) -> None:
    """A promotion that somebody may cut short."""
    with suppress(grpc.RpcError):
        promote(node, old_master_is_gone=True)


def test_a_slave_that_lacks_acknowledged_messages_is_not_promoted(tmp_path: Path) -> None:
    """The master lives and has more than its slave: refused, and told how much; nothing has changed."""
    with Pair(tmp_path) as pair:
        some_load(pair, 100)
        pair.wait_level()
        pair.slave.replicator.kill()
        for number in range(50):
            send_without_waiting(pair.master, f"more-{number}")
        pair.slave.replicator.settings["haMasterAddress"] = "127.0.0.1:1"  # it cannot catch up
        pair.slave.replicator.start()
        until(lambda: pair.slave.status() is not None, 60, "the slave answers")
        assert refusal(lambda: promote(pair.slave))
        assert pair.slave.role().identity.role == BrokerRole.SLAVE
        assert pair.master.role().identity.role == BrokerRole.SYNC_MASTER
        assert not pair.master.role().identity.fenced_by_epoch
        assert send_without_waiting(pair.master, "still").status == PUT_OK


def test_a_master_is_not_promoted(tmp_path: Path) -> None:
    with Pair(tmp_path) as pair:
        assert refusal(lambda: promote(pair.master))
        assert refusal(lambda: follow(pair.master, pair.slave)), "a master that serves does not become a slave"
