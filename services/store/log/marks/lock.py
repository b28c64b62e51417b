"""The lock of a store directory: taken before anything else is touched (trap T2).

The same lock as RocketMQ's (`record_lock`), on the file ``lock``, which then holds the four letters ``lock``. A Java
broker and a TandemMQ store therefore keep each other out.
"""

import os
from pathlib import Path

from tandemmq.common.files.record_lock import NAME, take_record_lock
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.errors import StoreLocked

# POSIX record locks do not keep a process out of its own directory; this does.
_held: set[tuple[int, int]] = set()


class StoreLock:
    """An exclusive lock on a store directory, held until `release`."""

    def __init__(self, root: Path, disk: Disk) -> None:
        """Take the lock.

        Raises:
            StoreLocked: another process holds it.
        """
        self.path = root / NAME
        self._fd = disk.open(self.path, os.O_RDWR | os.O_CREAT)
        stat = os.fstat(self._fd)
        self._identity = (stat.st_dev, stat.st_ino)
        try:
            if self._identity in _held:
                raise BlockingIOError("held by this very process")
            take_record_lock(self._fd)
        except OSError as error:
            if self._identity not in _held:  # closing any descriptor of the file would drop the holder's lock
                os.close(self._fd)
            raise StoreLocked(
                f"The store directory {root} is in use by another process.",
                remedy="Stop the other broker, or give this one another storePathRootDir.",
            ) from error
        _held.add(self._identity)
        try:
            disk.pwrite(self._fd, b"lock", 0)
            disk.sync(self._fd)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Give the lock back. The file stays, as RocketMQ leaves it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            _held.discard(self._identity)


def mark_of(root: Path) -> str:
    """Inode and ctime (ns) of a directory's lock file: the same wherever it is mounted, and of no other directory."""
    stat = os.stat(root / NAME)
    return f"{stat.st_ino}-{stat.st_ctime_ns}"
