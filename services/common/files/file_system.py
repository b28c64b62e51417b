"""The calls that writing a file takes, handed in so that tests can make each one fail."""

import os
from pathlib import Path
from typing import Protocol


class FileSystem(Protocol):
    """What is asked of a file system to write a file. Every method may raise ``OSError``."""

    def open(self, path: Path, flags: int) -> int:
        """Open ``path``; gives a file descriptor."""
        ...

    def truncate(self, fd: int, length: int) -> None:
        """Set the length of a file without reserving blocks."""
        ...

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        """Write all of ``data`` at ``offset``."""
        ...

    def sync(self, fd: int) -> None:
        """Make what was written to this file durable (``fdatasync``; includes dirty pages of mappings)."""
        ...

    def sync_dir(self, path: Path) -> None:
        """Make the names in a directory durable (trap T24)."""
        ...

    def rename(self, source: Path, target: Path) -> None:
        """Rename atomically."""
        ...


class LocalFileSystem:
    """The real one."""

    mode = 0o644
    """Of new files, less what the umask takes."""

    def __init__(self, mode: int | None = None) -> None:
        if mode is not None:
            self.mode = mode

    def open(self, path: Path, flags: int) -> int:
        """Open ``path``; see `FileSystem`."""
        return os.open(path, flags | os.O_CLOEXEC, self.mode)

    def truncate(self, fd: int, length: int) -> None:
        """Set the length; see `FileSystem`."""
        os.ftruncate(fd, length)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        """Write all of ``data``; see `FileSystem`."""
        written = os.pwrite(fd, data, offset)
        while written < len(data):
            written += os.pwrite(fd, memoryview(data)[written:], offset + written)

    def sync(self, fd: int) -> None:
        """Flush a file; see `FileSystem`."""
        os.fdatasync(fd)

    def sync_dir(self, path: Path) -> None:
        """Flush a directory; see `FileSystem`."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def rename(self, source: Path, target: Path) -> None:
        """Rename; see `FileSystem`."""
        os.rename(source, target)


class UnsyncedFileSystem(LocalFileSystem):
    """Syncs nothing: for files that a power cut may take, since they are made again."""

    def sync(self, fd: int) -> None:
        """Not done."""

    def sync_dir(self, path: Path) -> None:
        """Not done."""


LOCAL = LocalFileSystem()
UNSYNCED = UnsyncedFileSystem()
