"""A disk on which one chosen operation fails, once or from then on."""

import mmap
import os
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tandemmq.store.log.edges.disk import DiskUsage, LocalDisk

KINDS = ("open", "allocate", "truncate", "pwrite", "sync", "sync_dir", "rename", "unlink", "map")


@dataclass(frozen=True)
class Fault:
    """The ``number``-th operation of a kind fails with ``code``; ``lasting``: all later ones of that kind too."""

    kind: str
    number: int
    code: int
    lasting: bool = False


class FaultyDisk(LocalDisk):
    """The real disk, but for one fault. Counts operations by kind; safe to be called from several threads."""

    def __init__(self, fault: Fault | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self.failed_on: list[str] = []
        self.log_sync_failed = False
        self._fault = fault
        self._lock = threading.Lock()

    def repair(self) -> None:
        """From now on all is well."""
        self._fault = None

    def _pass(self, kind: str, path: Path | int) -> None:
        with self._lock:
            self.counts[kind] += 1
            fault, count = self._fault, self.counts[kind]
            if fault is None or fault.kind != kind:
                return
            if count < fault.number or (count > fault.number and not fault.lasting):
                return
            name = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else str(path)
            self.failed_on.append(name)
            if kind == "sync" and "/commitlog/" in name and not name.endswith(".tmp"):
                self.log_sync_failed = True
        raise OSError(fault.code, f"made to fail: {os.strerror(fault.code)}", name)

    def open(self, path: Path, flags: int) -> int:
        self._pass("open", path)
        return super().open(path, flags)

    def allocate(self, fd: int, offset: int, length: int) -> None:
        self._pass("allocate", fd)
        super().allocate(fd, offset, length)

    def truncate(self, fd: int, length: int) -> None:
        self._pass("truncate", fd)
        super().truncate(fd, length)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> None:
        try:
            self._pass("pwrite", fd)
        except OSError:
            super().pwrite(fd, data[: len(data) // 2], offset)  # half of it got there
            raise
        super().pwrite(fd, data, offset)

    def sync(self, fd: int) -> None:
        self._pass("sync", fd)
        super().sync(fd)

    def sync_dir(self, path: Path) -> None:
        self._pass("sync_dir", path)
        super().sync_dir(path)

    def rename(self, source: Path, target: Path) -> None:
        self._pass("rename", source)
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        self._pass("unlink", path)
        super().unlink(path)

    def map(self, fd: int, length: int) -> mmap.mmap:
        self._pass("map", fd)
        return super().map(fd, length)

    def usage(self, path: Path) -> DiskUsage:
        """There is always room, so that a full disk shows only where an operation says so."""
        return DiskUsage(total=1 << 40, used=0, free=1 << 40)
