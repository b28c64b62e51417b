"""What a person is told to do about an error of the operating system."""

import errno
import os

import pytest

from tandemmq.common.files.os_errors import cure_of
from tandemmq.store import __main__ as service
from tandemmq.store.log.errors import DiskFailed, DiskFull, disk_error
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.settings import StoreSettings


def error_of(number: int) -> OSError:
    return OSError(number, os.strerror(number), "/data")


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.EACCES, "chown"),
        (errno.EEXIST, "a file lies where a directory is wanted"),
        (errno.ENOTDIR, "a file lies where a directory is wanted"),
        (errno.ENOSPC, "free room on that disk"),
        (errno.EROFS, "mounted read-only"),
        (errno.EMFILE, "LimitNOFILE"),
    ],
)
def test_a_cure(number: int, said: str) -> None:
    assert said in (cure_of(error_of(number)) or "")


def test_where_nothing_general_helps() -> None:
    assert cure_of(error_of(errno.EIO)) is None


def test_what_the_store_says_of_a_directory_that_it_may_not_write() -> None:
    failed = disk_error(error_of(errno.EACCES), "The store in /data cannot be opened")
    assert isinstance(failed, DiskFailed)
    assert "Permission denied (/data)" in failed.message
    assert "chown" in failed.explain()
    assert "machine's log" in disk_error(error_of(errno.EIO), "x").explain()


def test_a_store_that_does_not_start_for_want_of_room_does_not_go_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    running = disk_error(error_of(errno.ENOSPC), "No room for the next file")
    assert isinstance(running, DiskFull)
    assert "goes on by itself" in running.explain()

    def fails(*_: object, **__: object) -> None:
        raise running

    monkeypatch.setattr(MessageStore, "open", fails)
    with pytest.raises(DiskFull) as raised:
        service._opened(StoreSettings(), StoreMetrics("c", "b"))
    assert "start the store again" in raised.value.explain()
    assert "by itself" not in raised.value.explain()
