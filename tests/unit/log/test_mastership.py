"""The epoch file: roles and fences that outlive a restart, and never a guess."""

import errno
from pathlib import Path

import pytest

from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.errors import UnusableDirectory, WrongRole
from tandemmq.store.log.replica.mastership import EpochStart, Mastership


def of(root: Path, role: BrokerRole = BrokerRole.SLAVE) -> Mastership:
    return Mastership(root, LocalDisk(), role)


def test_without_a_file_the_settings_count(tmp_path: Path) -> None:
    mastership = of(tmp_path)
    assert (mastership.role, mastership.epoch, mastership.fenced_by) == (BrokerRole.SLAVE, 1, 0)
    assert not mastership.overrides
    assert list(tmp_path.iterdir()) == []


def test_promotion_and_fences_outlive_a_restart(tmp_path: Path) -> None:
    of(tmp_path).promote(BrokerRole.SYNC_MASTER, 0, 1_000)
    again = of(tmp_path)
    assert (again.role, again.epochs) == (BrokerRole.SYNC_MASTER, (EpochStart(1, 0), EpochStart(2, 1_000)))
    assert again.fence(7)
    assert not again.fence(6)
    third = of(tmp_path)
    assert third.fenced_by == 7
    with pytest.raises(WrongRole, match="not newer than 7"):
        third.promote(BrokerRole.SYNC_MASTER, 7, 2_000)
    third.promote(BrokerRole.ASYNC_MASTER, 8, 2_000)
    assert of(tmp_path).fenced_by == 0


def test_a_slave_follows_ever_newer_masters(tmp_path: Path) -> None:
    mastership = of(tmp_path)
    mastership.follow(0, 0)
    mastership.follow(3, 500)
    assert of(tmp_path).epochs == (EpochStart(1, 0), EpochStart(3, 500))
    with pytest.raises(WrongRole, match="old master"):
        of(tmp_path).follow(2, 500)
    with pytest.raises(WrongRole, match="older than this store"):
        of(tmp_path).demote(2)


@pytest.mark.parametrize("epoch", [(1 << 63) - 1, (1 << 32) + 2])
def test_an_epoch_from_nowhere_is_not_believed(tmp_path: Path, epoch: int) -> None:
    mastership = of(tmp_path)
    for take in (
        lambda: mastership.fence(epoch),
        lambda: mastership.follow(epoch, 0),
        lambda: mastership.promote(BrokerRole.SYNC_MASTER, epoch, 0),
    ):
        with pytest.raises(WrongRole, match="not believed"):
            take()
    assert (mastership.epochs, mastership.fenced_by, mastership.role) == ((EpochStart(1, 0),), 0, BrokerRole.SLAVE)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"{}", b'{"version": 1}', b"\xff\x00", b"[1]"])
def test_a_file_that_cannot_be_read_is_no_guess(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tandem.epoch").write_bytes(content)
    with pytest.raises(UnusableDirectory, match="tandem.epoch"):
        of(tmp_path)


def test_any_changed_byte_is_noticed(tmp_path: Path) -> None:
    of(tmp_path).promote(BrokerRole.SYNC_MASTER, 0, 1_000)
    path = tmp_path / "tandem.epoch"
    good = path.read_bytes()
    for at in range(len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        try:
            found = of(tmp_path)
        except UnusableDirectory:
            continue
        assert found.epochs == (EpochStart(1, 0), EpochStart(2, 1_000)), good[at : at + 1]


def test_what_cannot_be_written_does_not_count(tmp_path: Path) -> None:
    class FullDisk(LocalDisk):
        def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
            raise OSError(errno.ENOSPC, "full")

    mastership = Mastership(tmp_path, FullDisk(), BrokerRole.SLAVE)
    with pytest.raises(OSError, match="full"):
        mastership.promote(BrokerRole.SYNC_MASTER, 0, 1_000)
    assert (mastership.role, mastership.epoch) == (BrokerRole.SLAVE, 1)
    assert of(tmp_path).role is BrokerRole.SLAVE
