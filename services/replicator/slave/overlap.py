"""The end of our own log, read from its files to be compared with what the master has there."""

import os
from dataclasses import dataclass
from pathlib import Path

from tandemmq.replicator.slave.slave_errors import LocalLogUnreadable

OVERLAP_SIZE = 64 << 10
"""How much of the log's end is compared, in bytes."""


@dataclass(frozen=True, slots=True)
class LocalLog:
    """What our store has, at the moment when a connection begins. Offsets are bytes since the log began."""

    min_offset: int
    max_offset: int
    flushed_offset: int
    file_size: int
    epoch: int = 0
    promised: int = 0
    """An epoch that no older master is followed after; 0: none was promised."""

    @property
    def empty(self) -> bool:
        """Whether there is no byte yet."""
        return self.max_offset == 0

    def overlap_begin(self, *, one_file: bool = False) -> int:
        """Where the comparison begins; `max_offset` if there is nothing to compare.

        Never 0: asked for that, a RocketMQ master sends its last file. `one_file`: not before the file that holds the
        last byte, for a master that may no longer have the one before it.
        """
        begin = max(self.max_offset - OVERLAP_SIZE, self.min_offset, 1)
        if one_file:
            last = max(self.max_offset - 1, 0)
            begin = max(begin, last - last % self.file_size)
        return min(begin, self.max_offset)


def read_log(directory: Path, file_size: int, begin: int, end: int) -> bytes:
    """The bytes [begin, end) of the log whose files lie in `directory`. Raises LocalLogUnreadable."""
    parts = []
    while begin < end:
        start = begin - begin % file_size
        stop = min(end, start + file_size)
        parts.append(_read(directory / f"{start:020d}", begin - start, stop - begin))
        begin = stop
    return b"".join(parts)


def _read(path: Path, position: int, size: int) -> bytes:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = os.pread(file, size, position)
        finally:
            os.close(file)
    except OSError as error:
        raise LocalLogUnreadable(f"cannot read {path}: {error.strerror}") from error
    if len(data) != size:
        raise LocalLogUnreadable(f"{path} ends at {position + len(data)}, the store says it has {position + size}")
    return data
