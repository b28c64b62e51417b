"""A disk that remembers what is durable, and can say what may be left of it when the power goes.

Of every file it keeps the content of its last sync, of every directory the names of its last sync. An image of a power
cut takes, per page of 4 KiB that has changed since, the synced or the present content at will: pages reach a disk in
any order, or not at all (torn and reordered writes). Per directory it takes the synced or the present names. A file
that was never synced may be empty.
"""

import os
import random
import threading
from pathlib import Path

from tandemmq.store.log.edges.disk import LocalDisk

PAGE = 4096


class PowerDisk(LocalDisk):
    """The real disk, watched. ``root`` must exist and be empty."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._content: dict[int, bytes] = {}  # by inode
        self._names: dict[Path, dict[str, int]] = {}  # by directory: name and inode, 0 for a directory
        self._keep: dict[int, int] = {}  # by inode: a descriptor, so that its number is not used again
        self.remember_all()

    def remember_all(self) -> None:
        """Everything there is now is durable: the state after a clean start of the machine."""
        with self._lock:
            for directory, _, files in os.walk(self._root):
                self._names[Path(directory)] = self._listing(Path(directory))
                for name in files:
                    inode, data = self._read(Path(directory, name))
                    self._content[inode] = data

    @staticmethod
    def _read(path: Path) -> tuple[int, bytes]:
        """Inode and content of a file; 0 and nothing if a thread of the store has just given it another name."""
        try:
            with path.open("rb") as file:
                return os.fstat(file.fileno()).st_ino, file.read()
        except (FileNotFoundError, IsADirectoryError):
            return 0, b""

    @staticmethod
    def _listing(directory: Path) -> dict[str, int]:
        return {
            entry.name: 0 if entry.is_dir() else entry.inode()
            for entry in os.scandir(directory)
            if entry.name != "lock"
        }

    def open(self, path: Path, flags: int) -> int:
        fd = super().open(path, flags)
        with self._lock:
            inode = os.fstat(fd).st_ino
            if inode not in self._keep:
                self._keep[inode] = os.dup(fd)
        return fd

    def sync(self, fd: int) -> None:
        with self._lock:
            size = os.fstat(fd).st_size
            self._content[os.fstat(fd).st_ino] = os.pread(fd, size, 0)
        super().sync(fd)

    def sync_dir(self, path: Path) -> None:
        super().sync_dir(path)
        with self._lock:
            self._names[path] = self._listing(path)

    def image(self, target: Path, chance: random.Random) -> None:
        """Write what may be left after a power cut now to ``target``."""
        with self._lock:
            self._image(self._root, target, chance)

    def _image(self, directory: Path, target: Path, chance: random.Random) -> None:
        target.mkdir(parents=True, exist_ok=True)
        present, synced = self._listing(directory), self._names.get(directory, {})
        for name, inode in (present if chance.random() < 0.5 else synced).items():
            path = directory / name
            if inode == 0:
                if path.is_dir():
                    self._image(path, target / name, chance)
                continue
            found, data = self._read(path)
            synced_data = self._content.get(inode, b"")
            now = data if found == inode else synced_data
            if inode not in self._content and chance.random() < 0.25:
                now = b""
            (target / name).write_bytes(self._mixture(synced_data, now, chance))

    @staticmethod
    def _mixture(synced: bytes, now: bytes, chance: random.Random) -> bytes:
        if synced == now:
            return now
        share = chance.choice((0.0, 0.5, 1.0))
        size = max(len(synced), len(now))
        synced, mixed = synced.ljust(size, b"\0"), bytearray(now.ljust(size, b"\0"))
        for at in range(0, size, PAGE):
            if chance.random() >= share:
                mixed[at : at + PAGE] = synced[at : at + PAGE]
        return bytes(mixed)

    def forget(self) -> None:
        """Close what was kept open."""
        while self._keep:
            os.close(self._keep.popitem()[1])
