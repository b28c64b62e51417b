"""A campaign against the HA connection: bytes change, come twice, come late or not at all; and processes are killed.

    python -m tests.faults.soak --wire [--minutes 60] [--seed 7]

Each round is a pair of its own. At its end the master is killed for good and the slave promoted: what was told PUT_OK
is there, and intact. Records have checksums of all of their bytes (enabledAppendPropCRC), since any bit may change.
"""

import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tandemmq.replication.v1.replication_pb2 import PromoteRequest
from tandemmq.store.v1.replica_log_pb2 import BrokerRole
from tests.faults.pair_checks import assert_logs_equal, missing_on
from tests.faults.pair_process import until
from tests.faults.test_pair_network import FILE_SIZE, more, pair_and_proxy, under_load

HEAD = 12
"""Bytes of a frame's header."""
Change = Callable[[bytes], bytes]


class Flips:
    """Flips one bit in some of the pieces that pass, at places that chance chooses."""

    def __init__(self, chance: random.Random, share: float = 0.05, within: slice | None = None) -> None:
        """`within`: in frames of whole records only, and only there."""
        self.chance = chance
        self.share = share
        self.within = within
        self.flipped = 0

    def __call__(self, data: bytes) -> bytes:
        places = range(len(data))
        if self.within is not None:
            places = places[self.within] if is_one_record(data) else places[:0]
        if not places or self.chance.random() >= self.share:
            return data
        changed = bytearray(data)
        changed[self.chance.choice(places)] ^= 1 << self.chance.randrange(8)
        self.flipped += 1
        return bytes(changed)


def is_one_record(data: bytes) -> bool:
    """Whether these are one frame that begins with a record."""
    return int.from_bytes(data[8:HEAD], "big") == len(data) - HEAD and data[HEAD + 4 : HEAD + 8] == b"\xda\xa3\x20\xa7"


def swapped(chance: random.Random) -> Change:
    """Now and then a piece comes after the next one."""
    held: list[bytes] = []

    def change(data: bytes) -> bytes:
        if held:
            return data + held.pop()
        if chance.random() < 0.1:
            held.append(data)
            return b""
        return data

    return change


def doubled(chance: random.Random) -> Change:
    """Now and then a piece comes twice."""
    return lambda data: data + data if chance.random() < 0.1 else data


def truncated(chance: random.Random) -> Change:
    """Now and then a piece loses its end."""
    return lambda data: data[: chance.randrange(len(data))] if chance.random() < 0.1 else data


def random_bodies(chance: random.Random) -> Change:
    """Whatever the frames say of themselves holds; their bytes are noise."""
    return lambda data: data[:HEAD] + chance.randbytes(len(data) - HEAD) if chance.random() < 0.2 else data


KINDS: tuple[Callable[[random.Random], Change], ...] = (Flips, swapped, doubled, truncated, random_bodies)


def one_pair(directory: Path, seed: int, turns: int = 8) -> Mapping[str, int]:
    """One round; how many messages were told what. Raises AssertionError."""
    chance = random.Random(seed)
    with pair_and_proxy(directory, slave_timeout=1_000, enabledAppendPropCRC="true") as (pair, proxy):
        with under_load(pair) as ledger:
            more(ledger, 30)
            for _ in range(turns):
                reached, told = proxy.accepted, len(ledger.of())
                proxy.down.change = chance.choice(KINDS)(random.Random(chance.random()))
                until(
                    lambda reached=reached, told=told: proxy.accepted > reached + 3 or len(ledger.of()) > told + 200,  # type: ignore[misc]
                    120,
                    "the slave dials again, or nothing was touched",
                )
                if chance.random() < 0.3:
                    process = chance.choice([pair.slave.store, pair.slave.replicator])
                    process.kill()
                    process.start()
                proxy.calm()
                more(ledger, 20)
        pair.wait_level()
        assert_logs_equal(pair.master.root, pair.slave.root, pair.master.role().max_offset, begin=0)
        pair.master.kill()
        # Behind a proxy nobody can tell that the connection is this slave's, so it counts as one more.
        request = PromoteRequest(role=BrokerRole.SYNC_MASTER, old_master_is_gone=True, accept_loss=True)
        pair.slave.replication().Promote(request, timeout=60)
        missing = missing_on(pair.slave.root, FILE_SIZE, ledger.of())
        assert not missing, missing[:5]
        return ledger.count()


def soak(seed: int, minutes: float) -> int:
    """Rounds until the time is over, each with the next seed; raises at the first broken promise."""
    deadline = time.monotonic() + minutes * 60
    while time.monotonic() < deadline:
        sys.stdout.write(f"wire seed {seed}: ")
        sys.stdout.flush()
        with tempfile.TemporaryDirectory() as directory:
            sys.stdout.write(f"{one_pair(Path(directory), seed)}\n")
        seed += 1
    return 0
