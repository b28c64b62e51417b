"""A real RocketMQ master's byte stream, replayed against our slave: the same log, the same acks."""

import json
import random
import struct
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tandemmq.replicator.slave.following import FollowRules
from tests.golden import golden_store
from tests.unit.replicator.following_kit import MemorySlave, cut

pytestmark = pytest.mark.golden


class Capture(NamedTuple):
    """One captured connection."""

    from_master: bytes
    reports: list[int]


@cache
def captures() -> list[Capture]:
    directory = golden_store("ha")
    streams = {name: (directory / f"ha-{name}.bin").read_bytes() for name in ("master-to-slave", "slave-to-master")}
    found = []
    reads = json.loads((directory / "ha-stream.json").read_text())["reads"]
    for connection in sorted({read["conn"] for read in reads}):
        parts = {"s2c": b"", "c2s": b""}
        for read in reads:
            if read["conn"] == connection and "length" in read:
                stream = streams["master-to-slave" if read["dir"] == "s2c" else "slave-to-master"]
                parts[read["dir"]] += stream[read["offset"] : read["offset"] + read["length"]]
        acks = struct.unpack(f">{len(parts['c2s']) // 8}q", parts["c2s"])
        found.append(Capture(parts["s2c"], list(dict.fromkeys(acks))))
    return found


@cache
def golden_log() -> bytes:
    files: list[Path] = sorted((golden_store("ha") / "slave/store/commitlog").iterdir())
    return b"".join(file.read_bytes() for file in files)


def whole_frames(stream: bytes) -> list[int]:
    """Where frames end."""
    ends, at = [], 0
    while at < len(stream):
        at += 12 + struct.unpack_from(">i", stream, at + 8)[0]
        ends.append(at)
    return ends


def test_frame_by_frame_the_acks_are_javas() -> None:
    log = b""
    for capture in captures():
        slave = MemorySlave(log, compare=0, rules=FollowRules(from_last_file=True))
        slave.take_all(cut(capture.from_master, whole_frames(capture.from_master)))
        assert slave.reports == capture.reports
        log = bytes(slave.log)
    assert log == golden_log()[: len(log)]
    assert not any(golden_log()[len(log) :])
    assert len(log) == 8_510_223


@pytest.mark.parametrize("seed", range(5))
def test_cut_at_random_the_log_is_the_same(seed: int) -> None:
    rnd = random.Random(seed)
    log = b""
    for capture in captures():
        slave = MemorySlave(log, compare=0, rules=FollowRules(from_last_file=True))
        size = len(capture.from_master)
        slave.take_all(cut(capture.from_master, {rnd.randrange(1, size) for _ in range(3000)}))
        log = bytes(slave.log)
    assert log == golden_log()[: len(log)]
    assert len(log) == 8_510_223


@pytest.mark.slow
def test_byte_by_byte_the_log_is_the_same() -> None:
    capture = captures()[0]
    stream = capture.from_master[: whole_frames(capture.from_master)[12]]
    slave = MemorySlave(rules=FollowRules(from_last_file=True))
    slave.take_all(stream[at : at + 1] for at in range(len(stream)))
    assert slave.log == golden_log()[: len(slave.log)]
    assert len(slave.log) > 300_000
