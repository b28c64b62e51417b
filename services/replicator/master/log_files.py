"""The store's log files, for reading: descriptors by offset. The pages are those that the store's process has mapped.

A file that retention removes stays readable for whoever holds its `OpenLogFile`, and only so long.
"""

import os
from collections import OrderedDict
from pathlib import Path

from tandemmq.replicator.master.transfer import TransferRefused

_MOST_OPEN = 64
_NAME_DIGITS = 20


class Unreadable(TransferRefused):
    """A log file is missing, shorter than the store said, or cannot be read."""

    reason = "unreadable"
    remedy = (
        "is storePathRootDir the directory of the store that this replicator belongs to? Where a log file is missing, "
        "put it back or promote the slave: no slave gets past the gap"
    )


class OpenLogFile:
    """One open file; closed when nobody holds it any more."""

    __slots__ = ("base", "descriptor", "path")

    def __init__(self, path: Path, base: int) -> None:
        self.path = path
        self.base = base
        """Offset of its first byte."""
        self.descriptor = -1
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)

    def read(self, offset: int, size: int) -> bytes:
        """Exactly `size` bytes of the log. Raises Unreadable."""
        parts, position = [], offset - self.base
        while size:
            try:
                part = os.pread(self.descriptor, size, position)
            except OSError as error:
                raise Unreadable(f"{self.path}: {error.strerror}") from error
            if not part:
                raise Unreadable(f"{self.path} ends at byte {position}")
            parts.append(part)
            position += len(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def resident(self, offset: int, size: int) -> bool:
        """Whether the first and the last page of a stretch are in memory; True where the system cannot tell."""
        position, probe = offset - self.base, bytearray(1)
        try:
            for at in (position, position + size - 1):
                os.preadv(self.descriptor, [probe], at, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True


class OpenLogFiles:
    """Finds the file of an offset and keeps the last ones open."""

    def __init__(self, store_directory: Path) -> None:
        self._directory = store_directory / "commitlog"
        self._open: OrderedDict[int, OpenLogFile] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def at(self, offset: int, file_size: int) -> OpenLogFile:
        """The file in which the byte at `offset` lies. Raises Unreadable."""
        base = offset - offset % file_size
        file = self._open.get(base)
        if file is not None:
            self._open.move_to_end(base)
            return file
        path = self._directory / f"{base:0{_NAME_DIGITS}}"
        try:
            file = OpenLogFile(path, base)
        except OSError as error:
            raise Unreadable(f"{path}: {error.strerror}") from error
        self._open[base] = file
        if len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)
        return file

    def identity(self) -> tuple[int, int]:
        """Says whether it is still the same directory; (0, 0) for none."""
        try:
            found = self._directory.stat()
        except OSError:
            return (0, 0)
        return (found.st_dev, found.st_ino)

    def forget_below(self, min_offset: int) -> None:
        """Lets go of files that retention has removed, so that their space becomes free."""
        for base in [base for base in self._open if base < min_offset]:
            del self._open[base]

    def forget_all(self) -> None:
        """Lets go of everything: the store was started anew and may have other files."""
        self._open.clear()
