"""A disk and log files for those who only look."""

import mmap
import os
from collections.abc import Iterator
from pathlib import Path

from tandemmq.store.log.edges.disk import LocalDisk
from tandemmq.store.log.segments.mapped_file import MappedFile
from tandemmq.store.log.segments.mapped_file_queue import list_files


class ReadOnlyDisk(LocalDisk):
    """A disk that opens and maps for reading, whatever is asked."""

    def open(self, path: Path, flags: int) -> int:
        """Open for reading."""
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def map(self, fd: int, length: int) -> mmap.mmap:
        """Map for reading."""
        return mmap.mmap(fd, length, access=mmap.ACCESS_READ)


class ReadOnlyFiles:
    """The commit log's files, mapped for reading one at a time."""

    def __init__(self, directory: Path, size: int) -> None:
        """Find the files; see `list_files` for what is refused."""
        self._directory, self._size = directory, size
        self._starts = list_files(directory, size, "mappedFileSizeCommitLog")
        self._disk = ReadOnlyDisk()
        self._mapped: dict[int, MappedFile] = {}

    def __iter__(self) -> Iterator[MappedFile]:
        """Iterate over the files, oldest first."""
        return (self._file(start) for start in self._starts)

    def _file(self, start: int) -> MappedFile:
        if start not in self._mapped:
            self._mapped.clear()
            self._mapped[start] = MappedFile(self._disk, self._directory / f"{start:020d}", self._size, start)
        return self._mapped[start]

    @property
    def last(self) -> MappedFile | None:
        """The newest file."""
        return self._file(self._starts[-1]) if self._starts else None

    def find(self, offset: int) -> MappedFile | None:
        """The file that holds ``offset``."""
        start = offset - offset % self._size
        return self._file(start) if start in self._starts else None

    def first_from(self, offset: int) -> MappedFile | None:
        """The oldest file at or after ``offset``."""
        return next((self._file(start) for start in self._starts if start >= offset), None)
