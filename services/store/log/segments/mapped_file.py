"""One memory-mapped file of fixed size, named by the offset of its first byte.

Blocks are reserved when the file is made (``posix_fallocate``), so a full disk is an error at creation and never a
SIGBUS while writing. A new file gets its name only when it is complete: a crash leaves a ``.tmp``, which the next
start removes.
"""

import ctypes
import errno
import mmap
import os
from contextlib import suppress
from pathlib import Path

from tandemmq.common.files.replacing import create_file
from tandemmq.store.log.edges.disk import Disk, data_stretches
from tandemmq.store.log.errors import disk_errors

NAME_DIGITS = 20
_MADV_POPULATE_WRITE = 23  # Linux 5.14; older kernels refuse it, which only costs the first touch
_libc = ctypes.CDLL(None, use_errno=True)


def file_name(start: int) -> str:
    """Name of the file that begins at byte ``start``: twenty decimal digits (``UtilAll.offset2FileName``)."""
    return f"{start:0{NAME_DIGITS}d}"


class MappedFile:
    """A mapping of one file. Not closed by hand: the pages go when the last reader lets go of the mapping."""

    __slots__ = ("_disk", "fd", "map", "path", "size", "start")

    def __init__(self, disk: Disk, path: Path, size: int, start: int) -> None:
        """Map an existing file of exactly ``size`` bytes; ``start`` is the offset of its first byte."""
        self._disk = disk
        self.path = path
        self.size = size
        self.start = start
        self.fd = disk.open(path, os.O_RDWR)
        try:
            self.map: mmap.mmap = disk.map(self.fd, size)
        except BaseException:
            os.close(self.fd)
            self.fd = -1
            raise

    @classmethod
    def create(cls, disk: Disk, path: Path, size: int, start: int, *, durable: bool = True) -> "MappedFile":
        """Make a zero-filled file with all its blocks reserved, and map it. ``durable``: see `create_file`.

        Raises:
            DiskFull: the blocks cannot be had.
            DiskFailed: the disk refused otherwise. Either way nothing is left that a later try would stumble over.
        """
        with disk_errors(f"Cannot create {path} with {size:,} bytes"):
            temporary = path.with_name(path.name + ".tmp")
            create_file(disk, path, temporary, lambda fd: disk.allocate(fd, 0, size), durable=durable)
            return cls(disk, path, size, start)

    def __del__(self) -> None:
        """Give the descriptor back when nobody uses the file any more."""
        if getattr(self, "fd", -1) >= 0:
            os.close(self.fd)
            self.fd = -1

    @property
    def end(self) -> int:
        """Offset after the last byte of the file."""
        return self.start + self.size

    def sync(self) -> None:
        """Make everything written so far durable. Blocks, without holding the interpreter's lock."""
        self._disk.sync(self.fd)

    def populate(self, begin: int, length: int) -> None:
        """Make pages resident and writable ahead of use, so that appends do not pay for page faults. Best effort."""
        begin -= begin % mmap.PAGESIZE
        length = min(length, self.size - begin)
        if length > 0:
            anchor = ctypes.c_char.from_buffer(self.map)
            address = ctypes.addressof(anchor) + begin
            _libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(length), _MADV_POPULATE_WRITE)

    def write(self, at: int, data: bytes | memoryview) -> None:
        """Write at a position by a system call instead of through the mapping, which shows it at once all the same.

        Cheaper where the pages are new: the kernel need not zero them first. Raises OSError.
        """
        self._disk.pwrite(self.fd, data, at)

    def expect_reads_in_place(self, yes: bool) -> None:
        """Whether a page fault should bring in its page only. Else it reads ahead, and makes pages nobody has written.

        Best effort.
        """
        with suppress(OSError):
            self.map.madvise(mmap.MADV_RANDOM if yes else mmap.MADV_NORMAL)

    def put_back_if_deleted(self) -> bool:
        """Give the file its name again if another process has deleted it; True if so.

        A RocketMQ broker that is started on a directory in use deletes what it takes for an unused log file before
        it looks at the lock (trap T2); what is written to that file later would be gone with the last descriptor.
        The content moves to a new file. Only for the thread that writes to the mapping.

        Raises:
            OSError: there is another file in its place, or the disk refused.
        """
        if os.fstat(self.fd).st_nlink:
            return False
        if self.path.exists():
            raise OSError(errno.ESTALE, "another process has replaced the file", str(self.path))

        def fill(fd: int) -> None:
            self._disk.allocate(fd, 0, self.size)
            for begin, end in data_stretches(self.fd, 0, self.size):
                self._disk.pwrite(fd, self.map[begin:end], begin)

        create_file(self._disk, self.path, self.path.with_name(self.path.name + ".tmp"), fill)
        again = MappedFile(self._disk, self.path, self.size, self.start)
        self.fd, again.fd = again.fd, self.fd  # `again` closes the old one
        self.map = again.map
        return True

    def remove(self) -> None:
        """Take the file's name away; the blocks are freed when the last reader is done."""
        self._disk.unlink(self.path)
