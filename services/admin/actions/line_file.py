"""A file that lines are added to, for good; when it has grown large enough it gets a number, and a new one is begun."""

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from tandemmq.common.files.file_system import LOCAL, FileSystem
from tandemmq.common.files.replacing import make_dirs
from tandemmq.common.log_output import get_log

log = get_log(__name__)

_SIZE_MAX = 4 << 20
_FILES_KEPT = 8


class LineFile:
    """`NAME`, before it `NAME.1`, and so on: eight files of 4 MiB at most. Any thread may add."""

    def __init__(self, path: Path, *, size_max: int = _SIZE_MAX, files: FileSystem = LOCAL) -> None:
        """The directory is made with the first line."""
        self.path = path
        self._files = files
        self._size_max = size_max
        self._lock = threading.Lock()

    def append(self, line: str) -> None:
        """Add a line; returns when it is on the disk. Raises OSError: then it is not in the file, not even in part."""
        data = line.encode("utf-8", "replace") + b"\n"
        with self._lock:
            make_dirs(self._files, self.path.parent)
            if self.path.exists() and self.path.stat().st_size >= self._size_max:
                self._rotate()
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
            try:
                self._write(fd, data)
            finally:
                os.close(fd)

    def _write(self, fd: int, data: bytes) -> None:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":  # cut by a kill or a full disk
            data = b"\n" + data
        if os.write(fd, data) != len(data):
            os.ftruncate(fd, size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        self._files.sync(fd)
        if not size:  # its name is new, and those of the files before it may be
            self._files.sync_dir(self.path.parent)

    def _rotate(self) -> None:
        for number in range(_FILES_KEPT - 1, 0, -1):
            if (newer := self._numbered(number - 1)).exists():
                newer.replace(self._numbered(number))

    def backwards(self) -> Iterator[str]:
        """Its lines, the last one first. A file that cannot be read ends it, with a line in the log."""
        for number in range(_FILES_KEPT):
            try:
                lines = self._numbered(number).read_bytes().splitlines()
            except FileNotFoundError:
                return
            except OSError as error:
                log.failure("file not readable", error, path=str(self._numbered(number)))
                return
            for line in reversed(lines):
                yield line.decode("utf-8", "replace")

    def _numbered(self, number: int) -> Path:
        return self.path if not number else self.path.with_name(f"{self.path.name}.{number}")
