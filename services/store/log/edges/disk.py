"""The disk as the store sees it: every side effect on files goes through here, so that tests can make each one fail."""

import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tandemmq.common.files.exchange import exchange
from tandemmq.common.files.file_system import FileSystem, LocalFileSystem
from tandemmq.common.files.replacing import create_file


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Room on the partition that holds a path, in bytes."""

    total: int
    used: int
    free: int

    @property
    def used_percent(self) -> int:
        """Used share, rounded up to a whole percent.

        As RocketMQ's ``UtilAll.getDiskPartitionSpaceUsedPercent`` sees it.
        """
        available = self.used + self.free
        return 0 if available == 0 else -(-100 * self.used // available)


class Disk(FileSystem, Protocol):
    """What the store asks of a file system. Every method may raise ``OSError``."""

    def allocate(self, fd: int, offset: int, length: int) -> None:
        """Reserve blocks, so that writing there cannot run out of room (``posix_fallocate``)."""
        ...

    def exchange(self, one: Path, other: Path) -> None:
        """Let two names change places atomically; see `tandemmq.common.files.exchange` where the system cannot."""
        ...

    def unlink(self, path: Path) -> None:
        """Remove a file."""
        ...

    def map(self, fd: int, length: int) -> mmap.mmap:
        """Map a file for reading and writing, shared with the file."""
        ...

    def usage(self, path: Path) -> DiskUsage:
        """Room on the partition of ``path``."""
        ...


class LocalDisk(LocalFileSystem):
    """The real file system."""

    def allocate(self, fd: int, offset: int, length: int) -> None:
        """Reserve blocks; see `Disk`."""
        os.posix_fallocate(fd, offset, length)

    def exchange(self, one: Path, other: Path) -> None:
        """Exchange; see `Disk`."""
        exchange(one, other)

    def unlink(self, path: Path) -> None:
        """Remove; see `Disk`."""
        os.unlink(path)

    def map(self, fd: int, length: int) -> mmap.mmap:
        """Map; see `Disk`."""
        return mmap.mmap(fd, length)

    def usage(self, path: Path) -> DiskUsage:
        """Room on the partition; see `Disk`."""
        stat = os.statvfs(path)
        block = stat.f_frsize
        return DiskUsage(
            total=stat.f_blocks * block, used=(stat.f_blocks - stat.f_bfree) * block, free=stat.f_bavail * block
        )


def map_fresh(disk: Disk, path: Path, data: bytes) -> tuple[int, mmap.mmap]:
    """Put a new small file in the place of ``path``, and map it; gives the descriptor too. Raises OSError."""

    def fill(fd: int) -> None:
        disk.truncate(fd, 0)
        disk.allocate(fd, 0, len(data))
        disk.pwrite(fd, data, 0)

    create_file(disk, path, path.with_name(path.name + ".tmp"), fill)
    fd = disk.open(path, os.O_RDWR)
    try:
        return fd, disk.map(fd, len(data))
    except BaseException:
        os.close(fd)
        raise


_ZEROS = bytes(1 << 20)


def is_zero(data: bytes) -> bool:
    """Whether ``data`` is zeros all through, at the speed of memory (``strip`` takes ten times as long)."""
    whole, rest = divmod(len(data), len(_ZEROS))
    view = memoryview(data)
    return data[len(data) - rest :] == _ZEROS[:rest] and all(
        view[at * len(_ZEROS) : (at + 1) * len(_ZEROS)].tobytes() == _ZEROS for at in range(whole)
    )


def data_stretches(fd: int, begin: int, end: int) -> list[tuple[int, int]]:
    """Stretches of a file in ``[begin, end)`` that may hold bytes other than zero.

    Leaves out holes and reserved blocks that were never written, which makes looking beyond the end of a log cheap.
    A list and no generator: reading a stretch brings its neighbours into memory, which then would count as data
    too.
    """
    found: list[tuple[int, int]] = []
    while begin < end:
        try:
            start = os.lseek(fd, begin, os.SEEK_DATA)
        except OSError:  # ENXIO: nothing but a hole up to the end of the file
            break
        if start >= end:
            break
        begin = min(os.lseek(fd, start, os.SEEK_HOLE), end)
        found.append((start, begin))
    return found
