"""Reading the end of the log from its files."""

from pathlib import Path

import pytest

from tandemmq.replicator.slave.overlap import read_log
from tandemmq.replicator.slave.slave_errors import LocalLogUnreadable


def make_files(directory: Path, log: bytes, file_size: int) -> None:
    for begin in range(0, len(log), file_size):
        (directory / f"{begin:020d}").write_bytes(log[begin : begin + file_size].ljust(file_size, b"\0"))


@pytest.mark.parametrize(("begin", "end"), [(0, 10), (5, 25), (10, 20), (9, 11), (3, 3), (0, 25)])
def test_bytes_come_from_as_many_files_as_they_lie_in(tmp_path: Path, begin: int, end: int) -> None:
    log = bytes(range(25))
    make_files(tmp_path, log, 10)
    assert read_log(tmp_path, 10, begin, end) == log[begin:end]


def test_a_missing_or_short_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / f"{0:020d}").write_bytes(b"short")
    with pytest.raises(LocalLogUnreadable, match="ends at 5, the store says it has 8"):
        read_log(tmp_path, 10, 0, 8)
    with pytest.raises(LocalLogUnreadable, match="No such file"):
        read_log(tmp_path, 10, 12, 15)
