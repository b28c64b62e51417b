"""A real RocketMQ master's byte stream, made once more by ours: the same frames at the same moments, byte by byte."""

import json
import struct
from functools import cache
from pathlib import Path

import pytest

from tandemmq.replicator.frames import ReportReader, encode_header
from tandemmq.replicator.master.transfer import Frame, Transfer, TransferRules
from tests.golden import golden_store

pytestmark = pytest.mark.golden

RULES = TransferRules(batch_size=32_768, from_last_file=True)
"""RocketMQ's."""
FILE_SIZE = 1 << 20


class Log:
    """A log that is just as long as the frame to come needs it."""

    min_offset = 0
    max_offset = 0
    file_size = FILE_SIZE


@cache
def golden_log() -> bytes:
    files: list[Path] = sorted((golden_store("ha") / "master/store/commitlog").iterdir())
    return b"".join(file.read_bytes() for file in files)


def reads() -> list[dict[str, int | str]]:
    found: list[dict[str, int | str]] = json.loads((golden_store("ha") / "ha-stream.json").read_text())["reads"]
    return [read for read in found if "length" in read]


def connections() -> list[int]:
    return sorted({int(read["conn"]) for read in reads()})


def test_there_are_two_connections() -> None:
    assert len(connections()) == 2


@pytest.mark.parametrize("number", [0, 1])
def test_the_same_bytes(number: int) -> None:
    """Reports go in as they were read; whenever Java had begun a frame, ours must be the same one."""
    directory = golden_store("ha")
    streams = {name: (directory / f"ha-{name}.bin").read_bytes() for name in ("master-to-slave", "slave-to-master")}
    own = [read for read in reads() if read["conn"] == connections()[number]]
    log, reports = Log(), ReportReader()
    transfer = Transfer(RULES, int(own[0]["t"]) / 1000 - 5.006)  # a slave of RocketMQ reports 5 s after it connected
    theirs, ours, ends_at = b"", b"", 0
    for read in own:
        now = int(read["t"]) / 1000
        stream = streams["master-to-slave" if read["dir"] == "s2c" else "slave-to-master"]
        data = stream[int(read["offset"]) : int(read["offset"]) + int(read["length"])]
        if read["dir"] == "c2s":
            offset = reports.feed(data)
            if offset is not None:
                log.max_offset = max(log.max_offset, offset)  # the master had what it had sent before
                transfer.report(offset, log, now)
            continue
        theirs += data
        while len(theirs) - ends_at >= 12:
            offset, size = struct.unpack_from(">qi", theirs, ends_at)
            log.max_offset = max(log.max_offset, offset + size)
            frame = transfer.plan(log, now if size else max(now, transfer.due(0.0) + 0.001))
            assert frame == Frame(offset, size)
            ours += encode_header(*frame) + golden_log()[offset : offset + size]
            ends_at += 12 + size
    assert ours[: len(theirs)] == theirs
    assert len(theirs) > 1_000
