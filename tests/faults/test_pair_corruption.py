"""Bytes that change between master and slave: flipped bits, random blocks, frames out of order. None of it counts."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tandemmq.store.format.record import decode_record
from tandemmq.store.v1.store_pb2 import SendStatus
from tests.faults.harness import SEED
from tests.faults.pair import FOLLOWING, Pair
from tests.faults.pair_checks import assert_logs_equal, missing_on
from tests.faults.pair_load import PUT_OK, Told, outgoing
from tests.faults.pair_process import until
from tests.faults.test_pair_history import fill
from tests.faults.test_pair_network import FILE_SIZE, more, pair_and_proxy, under_load, whole
from tests.faults.wire_damage import HEAD, Change, Flips, doubled, one_pair, random_bodies, swapped, truncated

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FLIPS = int(os.environ.get("TANDEM_TEST_FLIPS", "12"))
CHECKED = slice(HEAD + 88, HEAD + 88 + 4)
"""In a frame of one record of an IPv4 producer: the body's first bytes."""


def ends(pair: Pair, reason: str) -> int:
    """How often the slave's replicator said that following ended for a reason."""
    return sum(event.get("reason") == reason for event in pair.slave.replicator.events())


@pytest.mark.parametrize("within", [CHECKED, None], ids=["in bodies", "anywhere"])
def test_one_bit_flipped_in_many_frames(tmp_path: Path, within: slice | None) -> None:
    """What was told PUT_OK is intact on the slave, also where only its files are left.

    RocketMQ's checksum is that of the body; with enabledAppendPropCRC it is that of the whole record.
    """
    whole_records = "true" if within is None else "false"
    with pair_and_proxy(tmp_path, slave_timeout=60_000, enabledAppendPropCRC=whole_records) as (pair, proxy):
        flips = Flips(random.Random(SEED), 0.25, within)
        told: list[Told] = []
        proxy.down.change = flips
        with pair.master.client(timeout=120) as client:
            number = 0
            while flips.flipped < FLIPS:
                value = f"flip-{number}"
                message = outgoing("orders", value)
                one = client.send(message.topic, message.body, tag=message.tag)
                if one.status == PUT_OK:
                    told.append(
                        Told(value, message.topic, one.queue_id, one.queue_offset, one.physical_offset, one.status)
                    )
                number += 1
        assert len(told) >= FLIPS
        pair.master.kill()
        pair.slave.kill()
        assert not missing_on(pair.slave.root, FILE_SIZE, told)
        for place in [each.physical_offset for each in told]:
            path = pair.slave.root / "commitlog" / f"{place - place % FILE_SIZE:020}"
            decode_record(path.read_bytes(), place % FILE_SIZE)


def test_under_load_with_flipped_bits_the_logs_are_equal_in_the_end(tmp_path: Path) -> None:
    with pair_and_proxy(tmp_path, slave_timeout=2_000, enabledAppendPropCRC="true") as (pair, proxy):
        flips = Flips(random.Random(SEED), 0.02)
        with under_load(pair) as ledger:
            more(ledger, 100)
            proxy.down.change = flips
            until(lambda: flips.flipped >= 10, 120, "bits are flipped")
            proxy.calm()
            more(ledger, 100)
        whole(pair, ledger)
        assert ends(pair, "corrupt") > 0


@pytest.mark.parametrize("kind", [swapped, doubled, truncated, random_bodies])
def test_frames_out_of_order_doubled_cut_or_of_random_bytes(
    tmp_path: Path, kind: Callable[[random.Random], Change]
) -> None:
    with pair_and_proxy(tmp_path, slave_timeout=1_000, enabledAppendPropCRC="true") as (pair, proxy):
        with under_load(pair) as ledger:
            more(ledger, 50)
            reached = proxy.accepted
            proxy.down.change = kind(random.Random(SEED))
            until(lambda: proxy.accepted > reached + 10, 120, "the slave dials again and again")
            proxy.calm()
            more(ledger, 100)
        whole(pair, ledger)


def test_a_slave_s_store_killed_while_bits_flip(tmp_path: Path) -> None:
    with pair_and_proxy(tmp_path, slave_timeout=1_000, enabledAppendPropCRC="true") as (pair, proxy):
        with under_load(pair) as ledger:
            proxy.down.change = Flips(random.Random(SEED))
            for _ in range(4):
                before = len(ledger.of())
                until(lambda before=before: len(ledger.of()) >= before + 30, 120, "some are told PUT_OK")  # type: ignore[misc]
                pair.slave.store.kill()
                pair.slave.store.start()
            proxy.calm()
            more(ledger, 50)
        whole(pair, ledger)


def spoil(root: Path, offset: int) -> None:
    """Flips a bit in the body of the record there."""
    path = root / "commitlog" / f"{offset - offset % FILE_SIZE:020}"
    with path.open("r+b") as file:
        file.seek(offset % FILE_SIZE + 90)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))


def test_what_is_damaged_in_the_master_s_log_is_damage_on_the_slave_too(tmp_path: Path) -> None:
    """The same on a second fetch, and the master says that it has it so: reported, read around, followed on."""
    with pair_and_proxy(tmp_path) as (pair, _):
        pair.slave.stop()
        told = fill(pair.master, 600, "rot")
        bad = [told[at].physical_offset for at in (100, 101, 300)]
        for offset in bad:
            spoil(pair.master.root, offset)
        pair.slave.start()
        pair.wait_level()
        end = pair.master.role().max_offset
        assert_logs_equal(pair.master.root, pair.slave.root, end, begin=0)
        events = pair.slave.store.events()
        damage = [event for event in events if "Damage that the master" in str(event)]
        assert len(damage) == 2, "two ranges: the first holds two records"
        assert pair.follower().state == FOLLOWING


def test_a_master_s_damage_is_not_believed_where_the_master_has_other_bytes(tmp_path: Path) -> None:
    """The same bit of the same record flips on every connection: never taken, never acknowledged."""
    with pair_and_proxy(tmp_path, slave_timeout=2_000) as (pair, proxy), pair.master.client() as client:
        message = outgoing("orders", "before")
        assert client.send(message.topic, message.body, tag=message.tag).status == PUT_OK

        def change(data: bytes) -> bytes:
            at = data.find(b"target:")
            return data if at < 0 else data[:at] + b"T" + data[at + 1 :]

        proxy.down.change = change
        end = pair.slave.role().max_offset
        sent = client.send("orders", b"target:" + b"x" * 500)
        assert sent.status != PUT_OK
        until(lambda: ends(pair, "corrupt") >= 1, 60, "it is said")
        reached = proxy.accepted
        until(lambda: proxy.accepted >= reached + 6, 60, "it is fetched again and again")
        assert pair.slave.role().max_offset == end
        follower = pair.follower()
        assert follower.state != FOLLOWING
        assert "no record" in follower.problem
        proxy.calm()
        pair.wait_level()
        assert client.send("orders", b"behind").status == SendStatus.PUT_OK


def test_a_master_that_cannot_be_asked_is_believed_when_the_same_bytes_come_three_times(tmp_path: Path) -> None:
    """As a RocketMQ master: nobody answers at port 8084."""
    with Pair(tmp_path) as pair:
        pair.slave.stop()
        told = fill(pair.master, 100, "rot")
        spoil(pair.master.root, told[50].physical_offset)
        del pair.slave.replicator.settings["haMasterReplicatorAddress"]
        shutil.rmtree(pair.slave.root)  # which has met a master that can be asked
        pair.slave.start()
        until(lambda: pair.slave.role().max_offset == pair.master.role().max_offset, 90, "the slave has everything")
        assert ends(pair, "corrupt") >= 1
        assert len([event for event in pair.slave.store.events() if "3 times" in str(event)]) == 1
        assert len([event for event in pair.slave.store.events() if "Damage that the master" in str(event)]) == 1


def test_a_round_of_the_campaign(tmp_path: Path) -> None:
    one_pair(tmp_path, SEED, turns=2)
