"""Open file descriptors, the least recently used closed first.

Ten thousand queues must not need ten thousand descriptors.
"""

import os
from collections import OrderedDict
from pathlib import Path

from tandemmq.store.log.edges.disk import Disk


class FileCache:
    """Descriptors by path, opened on demand for reading and writing.

    The key is the path as text: a ``Path`` takes two microseconds to make and to hash, as long as the write itself.
    """

    def __init__(self, disk: Disk, capacity: int = 512) -> None:
        """Keep at most ``capacity`` files open."""
        self._disk = disk
        self._capacity = capacity
        self._open: OrderedDict[str, int] = OrderedDict()

    def get(self, path: str) -> int:
        """Give the descriptor of ``path``; valid until the next call."""
        fd = self._open.get(path)
        if fd is not None:
            self._open.move_to_end(path)
            return fd
        fd = self._open[path] = self._disk.open(Path(path), os.O_RDWR)
        if len(self._open) > self._capacity:
            _, oldest = self._open.popitem(last=False)
            os.close(oldest)
        return fd

    def forget(self, path: str) -> None:
        """Close ``path`` if it is open."""
        fd = self._open.pop(path, None)
        if fd is not None:
            os.close(fd)

    def close(self) -> None:
        """Close all."""
        while self._open:
            os.close(self._open.popitem()[1])
