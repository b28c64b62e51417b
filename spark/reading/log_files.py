"""The files of a commit log, found by their names and mapped for reading."""

import contextlib
import mmap
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from tandemmq.spark.errors import NotAStore, UnequalFiles

NAME_DIGITS = 20
_PIECE = 4 << 20


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file: ``start`` is the log offset of its first byte, ``size`` its length in bytes."""

    path: Path
    start: int
    size: int

    @property
    def end(self) -> int:
        """Log offset after its last byte."""
        return self.start + self.size


def log_directory(root: Path) -> Path:
    """The directory of the log's files, given a store's directory or that one itself. Raises NotAStore."""
    for directory in (root / "commitlog", root):
        if directory.is_dir() and any(map(_is_log_name, os.listdir(directory))):
            return directory
    raise NotAStore(f"{root} holds no commit log: no files named by {NAME_DIGITS} digits, no commitlog directory.")


def list_log_files(root: Path) -> list[LogFile]:
    """The files of the log in a store directory or a commitlog directory, oldest first; there may be holes between.

    An empty last file, which a crash may leave, is left out.

    Raises:
        NotAStore: there are none.
        UnequalFiles: sizes differ, or a name is no multiple of the size.
    """
    directory = log_directory(root)
    files = [
        LogFile(directory / name, int(name), (directory / name).stat().st_size)
        for name in sorted(os.listdir(directory))
        if _is_log_name(name)
    ]
    while files and not files[-1].size:
        files.pop()
    sizes = {file.size for file in files}
    if len(sizes) > 1:
        raise UnequalFiles(
            f"The files in {directory} have {len(sizes)} sizes ({min(sizes):,} to {max(sizes):,} bytes): one is cut.",
            remedy="Copy the log anew; all its files have the size mappedFileSizeCommitLog.",
        )
    for file in files:
        if file.start % file.size:
            raise UnequalFiles(
                f"{file.path} is named by an offset that is no multiple of its {file.size:,} bytes.",
                remedy="Give files the names they had in their store: the offset of their first byte.",
            )
    if not files:
        raise NotAStore(f"The commit log in {directory} is empty.")
    return files


def without_unused(files: Sequence[LogFile]) -> list[LogFile]:
    """Without the last files that nothing was written to: a store makes them ahead of use. At least one stays."""
    used = list(files)
    # Not after a hole: that a file before it is missing would not be told.
    while len(used) > 1 and used[-2].end == used[-1].start and _is_unused(used[-1]):
        used.pop()
    return used


def written_bytes(files: Sequence[LogFile]) -> int:
    """Bytes of a log's files, without those after its end, which a store reserves ahead of use. Raises OSError."""
    used = without_unused(files)
    return sum(file.size for file in used[:-1]) + _end_in(used[-1])


def _end_in(file: LogFile) -> int:
    """Where a file has its last byte that is not 0."""
    with MappedLogFile(file) as mapped:
        for begin, end in reversed(_pieces(mapped)):
            if not is_zero(mapped.map, begin, end):
                return begin + len(mapped.map[begin:end].rstrip(b"\0"))
    return 0


def _pieces(mapped: "MappedLogFile") -> list[tuple[int, int]]:
    """Positions of what is no hole, in pieces that are looked at at once."""
    return [
        (at, min(at + _PIECE, end))
        for begin, end in mapped.data_stretches(0, mapped.file.size)
        for at in range(begin, end, _PIECE)
    ]


def _is_unused(file: LogFile) -> bool:
    """A store has filled such a file with zeros, which all have to be looked at: on all cores."""
    with MappedLogFile(file) as mapped, ThreadPoolExecutor(os.cpu_count()) as pool:
        pieces = _pieces(mapped)
        # The first tells most often: where a file is used, records begin with its first byte.
        return not pieces or (
            is_zero(mapped.map, *pieces[0]) and all(pool.map(lambda piece: is_zero(mapped.map, *piece), pieces[1:]))
        )


def is_zero(buffer: mmap.mmap, begin: int, end: int) -> bool:
    """Whether the bytes [begin, end) of a mapping are zeros, without copying them."""
    words = np.frombuffer(buffer, np.uint64, (end - begin) // 8, begin)
    return not words.any() and not any(buffer[end - (end - begin) % 8 : end])


def identity_of(files: Sequence[LogFile]) -> list[list[Any]]:
    """What changes when anybody writes to the log: size, inode and time of each file."""
    found = []
    for file in files:
        stat = os.stat(file.path)
        found.append([file.start, stat.st_size, stat.st_ino, stat.st_mtime_ns])
    return found


def _is_log_name(name: str) -> bool:
    return len(name) == NAME_DIGITS and name.isascii() and name.isdigit()


class MappedLogFile:
    """A file of the log, mapped for reading; a context manager."""

    def __init__(self, file: LogFile) -> None:
        """Map it. Raises OSError."""
        self.file = file
        self._fd = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.map = mmap.mmap(self._fd, file.size, access=mmap.ACCESS_READ)
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> "MappedLogFile":
        """The file itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it; a walk that still holds on to the mapping keeps the memory, not the descriptor."""
        os.close(self._fd)
        with contextlib.suppress(BufferError):  # somebody still looks at the bytes
            self.map.close()

    def data_stretches(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Stretches of [begin, end), positions in the file, that are no holes: cheap to look for bytes in.

        A file is allocated whole before it is written, so what lies after the end of a log mostly is a hole.
        """
        while begin < end:
            try:
                start = os.lseek(self._fd, begin, os.SEEK_DATA)
            except OSError:  # ENXIO: nothing but a hole up to the end
                return
            if start >= end:
                return
            begin = min(os.lseek(self._fd, start, os.SEEK_HOLE), end)
            yield start, begin
