"""The slave's disk is full: its master goes on and says so; the slave heals by itself when there is room."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tandemmq.store.v1.store_pb2 import SendStatus
from tests.faults.harness import SEED
from tests.faults.pair import Pair
from tests.faults.pair_checks import assert_logs_equal, missing_on
from tests.faults.pair_load import load
from tests.faults.pair_process import until

pytestmark = [pytest.mark.slow, pytest.mark.root, pytest.mark.timeout(600)]

FILE_SIZE = 128 * 1024
_libc = ctypes.CDLL(None, use_errno=True)
_REMOUNT = 32


def _mount(path: Path, mib: int, flags: int = 0) -> int:
    return int(_libc.mount(b"tmpfs", str(path).encode(), b"tmpfs", flags, f"size={mib}m".encode()))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk for the slave."""
    if os.geteuid() != 0:
        pytest.skip("filling a disk needs root: a small tmpfs is mounted")
    path = tmp_path / "b" / "store"
    path.mkdir(parents=True)
    if _mount(path, 64) != 0:
        pytest.skip(f"a tmpfs cannot be mounted here: {os.strerror(ctypes.get_errno())}")
    try:
        yield path
    finally:
        _libc.umount2(str(path).encode(), 2)  # MNT_DETACH


def fill(path: Path) -> None:
    """Takes all the room that there is."""
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))


def test_the_slaves_disk_is_full(tmp_path: Path, small_disk: Path) -> None:
    ratios = {"diskMaxUsedSpaceRatio": 95, "diskSpaceCleanForciblyRatio": 85, "diskSpaceWarningLevelRatio": 100}
    store = {"slaveTimeout": 700, "cleanFileForciblyEnable": "false"}
    with Pair(tmp_path, store=store, slave_store=ratios) as pair:
        with load(pair.master.address("store"), pair.slave.root, FILE_SIZE, SEED, producers=2) as ledger:
            until(lambda: len(ledger.of()) > 300, 60, "load")
            fill(small_disk / "filler")
            bad = SendStatus.FLUSH_SLAVE_TIMEOUT, SendStatus.SLAVE_NOT_AVAILABLE
            until(lambda: any(ledger.of(status) for status in bad), 60, lambda: f"the slave is full: {ledger.count()}")
            told = len(ledger.told)
            until(lambda: len(ledger.told) > told + 20, 60, "the master goes on")
            (small_disk / "filler").unlink()
            assert _mount(small_disk, 2_000, _REMOUNT) == 0
            told = len(ledger.of())
            until(lambda: len(ledger.of()) > told + 100, 60, lambda: f"it heals by itself: {pair.describe()}")
        assert all(process.starts == 1 and process.running for _, process in pair.processes())
        pair.heal()
        assert_logs_equal(pair.master.root, pair.slave.root, pair.master.role().max_offset, begin=0)
        assert not missing_on(pair.slave.root, FILE_SIZE, ledger.of())
