"""Files that are written as a whole: whatever fails, the old content or the new one is there, and nothing beside it."""

import errno
import os
from pathlib import Path

import pytest

from tandemmq.common.files.file_system import LOCAL, UNSYNCED, LocalFileSystem
from tandemmq.common.files.replacing import make_dirs, write_atomically

STEPS = ["open", "truncate", "pwrite", "sync", "rename", "sync_dir"]


class SeenFileSystem(LocalFileSystem):
    """Notes its calls, and fails one of them."""

    def __init__(self, failing: str = "") -> None:
        super().__init__()
        self.failing = failing
        self.calls: list[str] = []
        self.synced: list[Path] = []

    def _pass(self, name: str) -> None:
        self.calls.append(name)
        if name == self.failing:
            raise OSError(errno.EIO, "as the test wants it")

    def open(self, path: Path, flags: int) -> int:
        self._pass("open")
        return super().open(path, flags)

    def truncate(self, fd: int, length: int) -> None:
        self._pass("truncate")
        super().truncate(fd, length)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        self._pass("pwrite")
        super().pwrite(fd, data, offset)

    def sync(self, fd: int) -> None:
        self._pass("sync")
        super().sync(fd)

    def sync_dir(self, path: Path) -> None:
        self._pass("sync_dir")
        self.synced.append(path)
        super().sync_dir(path)

    def rename(self, source: Path, target: Path) -> None:
        self._pass("rename")
        super().rename(source, target)


@pytest.mark.parametrize("failing", STEPS)
def test_a_failure_leaves_the_old_content_or_the_new(tmp_path: Path, failing: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old and longer")
    with pytest.raises(OSError, match="as the test wants it"):
        write_atomically(SeenFileSystem(failing), path, b"new")
    assert path.read_bytes() == (b"new" if failing == "sync_dir" else b"old and longer")
    assert list(tmp_path.iterdir()) == [path]


def test_the_content_is_durable_before_its_name_and_the_name_before_the_return(tmp_path: Path) -> None:
    files = SeenFileSystem()
    write_atomically(files, tmp_path / "file", b"new")
    assert files.calls == STEPS
    assert files.synced == [tmp_path]
    assert (tmp_path / "file").read_bytes() == b"new"


def test_what_a_crash_left_under_the_temporary_name_is_no_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "file.tmp").write_bytes(b"a long half of something else")
    write_atomically(LOCAL, tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_writers_of_one_file_have_a_temporary_name_each(tmp_path: Path) -> None:
    (tmp_path / "file.tmp").write_bytes(b"of another process")
    write_atomically(UNSYNCED, tmp_path / "file", b"new", tmp_path / "file.1.tmp")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "file": b"new",
        "file.tmp": b"of another process",
    }


def test_a_file_for_its_owner_is_never_open_to_others(tmp_path: Path) -> None:
    files = LocalFileSystem(mode=0o600)
    fd = files.open(tmp_path / "secret", os.O_RDWR | os.O_CREAT)
    assert os.fstat(fd).st_mode & 0o777 == 0o600
    os.close(fd)


def test_unsynced_files_are_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int) -> None:
        raise AssertionError("synced")

    monkeypatch.setattr(os, "fsync", refuse)
    monkeypatch.setattr(os, "fdatasync", refuse)
    write_atomically(UNSYNCED, tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_each_new_directory_is_made_durable(tmp_path: Path) -> None:
    files = SeenFileSystem()
    make_dirs(files, tmp_path / "a" / "b")
    assert files.synced == [tmp_path, tmp_path / "a"]
    make_dirs(files, tmp_path / "a" / "b")
    assert files.synced == [tmp_path, tmp_path / "a"]
