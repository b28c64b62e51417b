"""Rot in one node's log is mended with the other's bytes; where that cannot be, it stays reported."""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from tandemmq.client import Consumer
from tandemmq.replication.v1 import healing_pb2
from tandemmq.replication.v1.healing_pb2_grpc import HealingStub
from tandemmq.store.v1 import log_repair_pb2, replica_log_pb2
from tandemmq.store.v1.log_repair_pb2_grpc import LogRepairStub
from tests.faults.harness import SEED, value_of
from tests.faults.pair import Node, Pair, slave_of, stopped
from tests.faults.pair_checks import assert_logs_equal, assert_queues_equal
from tests.faults.pair_load import Told
from tests.faults.pair_process import until
from tests.faults.test_pair_history import fill

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FILE_SIZE = 128 * 1024
MAGIC = 5
"""Into a record: a byte without which it is none, whatever its body."""
BODY = 88
"""Into a record of IPv4 hosts: the first byte of its body."""
STORE_TIMESTAMP = 56 + 7
"""Last byte of the time in a record: no checksum covers it."""
SECONDS = 90.0


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    """A pair with messages in several files, level."""
    with Pair(tmp_path, store={"verifyWholeLogOnStart": "true"}) as pair:
        yield pair


def flip(node: Node, told: Told, at: int = MAGIC) -> None:
    """One bit of a message's record, in the file: also under a store that runs."""
    offset = told.physical_offset
    with (node.root / "commitlog" / f"{offset - offset % FILE_SIZE:020d}").open("r+b") as file:
        file.seek(offset % FILE_SIZE + at)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 4]))


def healing_stub(node: Node) -> HealingStub:
    return HealingStub(node._channel("replicator"))


def repair_stub(node: Node) -> LogRepairStub:
    return LogRepairStub(node._channel("internal"))


def damage(node: Node) -> list[tuple[int, int]]:
    """What the store says is damaged."""
    answer = repair_stub(node).GetDamage(log_repair_pb2.GetDamageRequest(), timeout=60, wait_for_ready=True)
    return [(one.begin, one.end) for one in answer.stretches]


def notice(node: Node, told: Told) -> None:
    """A look at the record, as a scrub has, notes its rot."""
    request = log_repair_pb2.ExamineRequest(begin=told.physical_offset, end=told.physical_offset + 1_000, note=True)
    assert repair_stub(node).Examine(request, timeout=60).problem.startswith("rot")


def notice_or_mended(node: Node, told: Told) -> None:
    """As `notice`, where its peer or its scrub may have looked before, and it may be mended already."""
    request = log_repair_pb2.ExamineRequest(begin=told.physical_offset, end=told.physical_offset + 1_000, note=True)
    repair_stub(node).Examine(request, timeout=60)


def complains(node: Node, words: str) -> None:
    """Waits until the replicator says why damage stays."""
    until(
        lambda: any(words in str(line.get("problem")) for line in node.replicator.events()),
        SECONDS,
        lambda: f"the replicator says {words!r}: {node.replicator.log.read_text()[-3000:]}",
    )


def restarted(node: Node) -> None:
    """The store alone, cleanly, reading all of its log at its start."""
    assert node.store.stop() == 0
    node.store.start()


def assert_equal_in_the_end(pair: Pair) -> None:
    end = pair.master.role().max_offset
    with stopped(pair):
        assert_logs_equal(pair.master.root, pair.slave.root, end)
        assert_queues_equal(pair.master.root, pair.slave.root)


@pytest.mark.parametrize("which", ["slave", "master"])
def test_rot_is_mended_while_it_runs_and_after_a_stop(pair: Pair, which: str) -> None:
    told = fill(pair.master, 3_000, "rot")
    pair.wait_level()
    node: Node = getattr(pair, which)
    for one in (told[300], told[301], told[1_500]):
        flip(node, one)
        notice(node, one)
    until(lambda: not damage(node), SECONDS, lambda: f"rot is mended while it runs; {pair.describe()}")
    assert node.store.stop() == 0
    for one in (told[20], told[900], told[901]):
        flip(node, one)
    node.store.start()
    assert any(line["event"].startswith("Damage in the commit log: rot") for line in node.store.events())
    until(lambda: not damage(node), SECONDS, lambda: f"rot is mended after a start; {pair.describe()}")
    with node.client() as client:
        for one in (told[20], told[900], told[1_500]):
            found = client.pull(one.topic, one.queue_id, one.queue_offset, max_messages=1)
            assert [record.physical_offset for record in found.records] == [one.physical_offset]
    assert any(line["event"].startswith("Healed the commit log") for line in node.store.events())
    pair.wait_following()
    assert_equal_in_the_end(pair)


@pytest.mark.parametrize("which", ["slave", "master"])
def test_rot_that_a_reader_meets_is_mended(pair: Pair, which: str) -> None:
    """No scrub and no start has seen it: after a pull our client has the store look, a group's receive looks itself."""
    told = fill(pair.master, 300, "met")
    pair.wait_level()
    node: Node = getattr(pair, which)
    pulled, received = told[30], told[151]
    flip(node, pulled, BODY)
    with node.client() as client:
        found = client.pull(pulled.topic, pulled.queue_id, pulled.queue_offset, max_messages=1)
        assert [record.physical_offset for record in found.damaged] == [pulled.physical_offset]
        until(lambda: not damage(node), SECONDS, lambda: f"what a pull has met is mended; {pair.describe()}")
        again = client.pull(pulled.topic, pulled.queue_id, pulled.queue_offset, max_messages=1)
        assert [record.physical_offset for record in again.records] == [pulled.physical_offset]
    if which == "master":
        flip(node, received, BODY)
        others = [one.value for one in told if one.topic == received.topic and one != received]
        with Consumer(node.address("store"), group="readers", topic=received.topic) as consumer:
            assert sorted(next_value(consumer) for _ in others) == sorted(others)
        until(lambda: not damage(node), SECONDS, lambda: f"what a group has met is mended; {pair.describe()}")
    wanted = 2 if which == "master" else 1
    until(lambda: healed(node) == wanted, SECONDS, lambda: f"{wanted} stretches are healed; {pair.describe()}")
    assert_equal_in_the_end(pair)


def healed(node: Node) -> int:
    return sum(line["event"].startswith("Healed the commit log") for line in node.store.events())


def next_value(consumer: Consumer) -> str:
    message = consumer.receive(60)
    assert message is not None
    message.ack()
    return value_of(message.body)


def test_what_is_rotten_at_both_stays_reported_until_one_is_good(pair: Pair) -> None:
    told = fill(pair.master, 1_000, "both")
    pair.wait_level()
    one = told[500]
    flip(pair.master, one)
    flip(pair.slave, one)
    notice(pair.slave, one)
    complains(pair.slave, "is not good at offset")
    place = damage(pair.slave)
    assert [begin for begin, _ in place] == [one.physical_offset]
    assert damage(pair.master) == place  # it has looked, and knows now
    flip(pair.master, one)  # as a back-up would bring it back
    restarted(pair.master)
    until(lambda: not damage(pair.slave), SECONDS, lambda: f"the slave is mended; {pair.describe()}")
    until(lambda: not damage(pair.master), SECONDS, lambda: f"the master knows that it is good; {pair.describe()}")
    assert_equal_in_the_end(pair)


def test_a_peer_that_differs_beside_the_damage_is_not_believed(pair: Pair) -> None:
    """It may have another history: a flipped bit that no checksum covers is all that anybody can see of that."""
    told = fill(pair.master, 1_000, "fork")
    pair.wait_level()
    one, before = told[500], told[498]
    flip(pair.slave, before, STORE_TIMESTAMP)
    flip(pair.slave, one)
    notice(pair.slave, one)
    complains(pair.slave, "its log is not ours at offsets")
    assert [begin for begin, _ in damage(pair.slave)] == [one.physical_offset]
    flip(pair.slave, before, STORE_TIMESTAMP)
    until(lambda: not damage(pair.slave), SECONDS, lambda: f"the slave is mended; {pair.describe()}")
    assert_equal_in_the_end(pair)


def test_bytes_are_given_to_nodes_of_the_same_log_only(pair: Pair) -> None:
    told = fill(pair.master, 200, "whose")
    pair.wait_level()
    identity = pair.slave.role().identity
    begin, end = told[0].physical_offset, told[0].physical_offset + 100_000_000

    def refused(node: Node, **changed: Any) -> grpc.StatusCode:
        fields: dict[str, Any] = {"begin": begin, "end": told[1].physical_offset, **changed}
        wanted = replica_log_pb2.LogIdentity()
        wanted.CopyFrom(identity)
        for name in [name for name in fields if name in wanted.DESCRIPTOR.fields_by_name]:
            setattr(wanted, name, fields.pop(name))
        with pytest.raises(grpc.RpcError) as failed:
            list(healing_stub(node).Fetch(healing_pb2.FetchRequest(identity=wanted, **fields), timeout=60))
        return failed.value.code()

    for node in pair.nodes:
        assert refused(node, epoch=7) is grpc.StatusCode.FAILED_PRECONDITION
        assert refused(node, broker_name="other") is grpc.StatusCode.FAILED_PRECONDITION
        assert refused(node, file_size=1) is grpc.StatusCode.FAILED_PRECONDITION
        assert refused(node, end=end) is grpc.StatusCode.OUT_OF_RANGE
        assert refused(node, begin=-1) is grpc.StatusCode.INVALID_ARGUMENT
        assert refused(node, begin=begin + 1) is grpc.StatusCode.FAILED_PRECONDITION
        assert refused(node, end=told[1].physical_offset - 1) is grpc.StatusCode.FAILED_PRECONDITION
        good = healing_pb2.FetchRequest(identity=identity, begin=begin, end=told[1].physical_offset)
        data = b"".join(one.data for one in healing_stub(node).Fetch(good, timeout=60))
        assert len(data) == told[1].physical_offset - begin


@pytest.mark.timeout(900)
def test_store_and_replicators_are_killed_while_a_slave_is_mended(pair: Pair) -> None:
    random_ = random.Random(SEED)
    told = fill(pair.master, 3_000, "kills")
    pair.wait_level()
    for _ in range(int(os.environ.get("TANDEM_TEST_HEALING_KILLS", "4"))):
        rotten = random_.sample(told[:-50], 6)
        for one in rotten:
            flip(pair.slave, one)
        for one in rotten:
            notice_or_mended(pair.slave, one)
        time.sleep(random_.random() * 2.2)  # the replicator looks every two seconds
        victim = random_.choice([pair.slave.store, pair.slave.replicator, pair.master.replicator])
        victim.kill()
        pair.heal()
        until(lambda: not damage(pair.slave), 2 * SECONDS, lambda: f"the slave is mended; {pair.describe()}")
    pair.wait_following()
    assert_equal_in_the_end(pair)


def test_rot_in_the_end_of_a_log_that_looks_like_a_fork_is_found_and_mended(pair: Pair) -> None:
    """Nobody has noticed it but the comparison of the last 64 KiB, at the next connection."""
    told = fill(pair.master, 1_000, "end")
    pair.wait_level()
    pair.slave.replicator.kill()
    for one in (told[-40], told[-90]):
        flip(pair.slave, one)
    pair.slave.replicator.start()
    until(lambda: not damage(pair.slave) and pair.following(), SECONDS, lambda: f"it is mended: {pair.describe()}")
    assert_equal_in_the_end(pair)


def audited(node: Node, *options: str) -> list[dict[str, Any]]:
    """What `tandem audit --pair` says there, of each peer; its exit code fits."""
    command = [
        sys.executable,
        "-m",
        "tandemmq.cli.main",
        "audit",
        "--pair",
        "--address",
        node.address("replicator"),
        "--json",
    ]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert done.stdout, done.stderr
    peers: list[dict[str, Any]] = json.loads(done.stdout)["peers"]
    assert done.returncode == int(any(one["differences"] for one in peers))
    return peers


def test_an_audit_of_the_pair_finds_what_differs_and_has_it_mended(pair: Pair) -> None:
    told = fill(pair.master, 2_000, "audit")
    pair.wait_level()
    end = pair.master.role().max_offset
    for node, peer in ((pair.slave, pair.master), (pair.master, pair.slave)):
        (clean,) = audited(node)
        assert clean == {
            "peer": peer.address("replicator"),
            "begin_offset": 0,
            "end_offset": end,
            "differences": [],
        }
    uncovered, here, there = told[100], told[900], told[1_500]
    flip(pair.slave, uncovered, STORE_TIMESTAMP)
    flip(pair.slave, here)
    flip(pair.master, there)
    (found,) = audited(pair.slave, "--rate", "100")
    assert [(one["begin_offset"], one["here"], one["there"]) for one in found["differences"]] == [
        (uncovered.physical_offset, "VALID", "VALID"),
        (here.physical_offset, "DAMAGED", "VALID"),
        (there.physical_offset, "VALID", "DAMAGED"),
    ]
    assert [(one["topic"], one["queue_id"], one["queue_offset"]) for one in found["differences"]] == [
        (one.topic, one.queue_id, one.queue_offset) for one in (uncovered, here, there)
    ]
    assert damage(pair.slave) == damage(pair.master) == []  # it only looked
    assert len(audited(pair.slave, "--repair")[0]["differences"]) == 3
    until(lambda: not damage(pair.slave) and not damage(pair.master), SECONDS, lambda: f"mended; {pair.describe()}")
    (left,) = audited(pair.master, "--peer", pair.slave.address("replicator"))
    assert [one["begin_offset"] for one in left["differences"]] == [uncovered.physical_offset]
    flip(pair.slave, uncovered, STORE_TIMESTAMP)
    assert audited(pair.master)[0]["differences"] == []
    assert_equal_in_the_end(pair)


def test_with_three_nodes_a_master_is_mended_by_whoever_is_good(pair: Pair, tmp_path: Path) -> None:
    other = slave_of(pair.master, tmp_path / "c", 2)
    try:
        other.start()
        told = fill(pair.master, 1_000, "three")
        pair.wait_level()
        until(lambda: other.role().max_offset == pair.master.role().max_offset, SECONDS, "the other slave is level")
        one = told[500]
        flip(pair.slave, one)
        flip(pair.master, one)
        notice(pair.master, one)
        until(lambda: not damage(pair.master), SECONDS, lambda: f"the master is mended; {pair.describe()}")
        notice_or_mended(pair.slave, one)
        until(lambda: not damage(pair.slave), SECONDS, lambda: f"the slave is mended; {pair.describe()}")
    finally:
        other.close()
    assert_equal_in_the_end(pair)
