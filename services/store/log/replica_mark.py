"""The file ``tandem.replica``: which stretch of a slave's log is being written at this moment (ours).

A master appends record by record, each one's first eight bytes last, so that a process killed in between leaves no half
record that looks whole. A slave copies stretches of any length that begin and end anywhere. So it says first where it
is going to write and afterwards that it has: after a kill the next start zeroes the stretch, of which nothing was
acknowledged, and the master sends it again.

The mark lies in a mapping and is never synced: while the machine runs, the page cache holds it and the log alike. After
a reboot it may be older or newer than the log on disk; it names the boot it belongs to, and does not count then.
Checksums tell what is torn, as on a master. 32 bytes, big-endian::

    0   16  boot id of the kernel (/proc/sys/kernel/random/boot_id)
    16   8  begin of the stretch, log offset
    24   8  its length; 0: nothing is being written

The length is written last, and alone tells that something is being written; eight bytes are stored at once.
"""

import mmap
import os
import struct
from pathlib import Path

from tandemmq.store.log.disk import Disk
from tandemmq.store.log.mapped_file_queue import MappedFileQueue

NAME = "tandem.replica"
_NUMBER = struct.Struct(">q")
_BEGIN, _LENGTH, _SIZE = 16, 24, 32
_NOTHING = bytes(8)


def boot_id() -> bytes:
    """16 bytes that change with each start of the machine; zeros where the kernel does not tell."""
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        return bytes.fromhex(text.strip().replace("-", ""))
    except (OSError, ValueError):
        return bytes(_BEGIN)


class ReplicaMark:
    """Says where a slave writes. Made when the first replica bytes come."""

    def __init__(self, root: Path, disk: Disk) -> None:
        """Open or make the file. Raises OSError."""
        self._fd = disk.open(root / NAME, os.O_RDWR | os.O_CREAT)
        try:
            disk.allocate(self._fd, 0, mmap.PAGESIZE)
            self._map = disk.map(self._fd, mmap.PAGESIZE)
        except BaseException:
            os.close(self._fd)
            raise
        self._map[_LENGTH:_SIZE] = _NOTHING
        self._map[:_BEGIN] = boot_id()

    def begin(self, begin: int, end: int) -> None:
        """The stretch ``[begin, end)`` is about to be written."""
        self._map[_BEGIN:_LENGTH] = _NUMBER.pack(begin)
        self._map[_LENGTH:_SIZE] = _NUMBER.pack(end - begin)

    def done(self) -> None:
        """It is written."""
        self._map[_LENGTH:_SIZE] = _NOTHING

    def close(self) -> None:
        """Let go of the file."""
        self._map.close()
        os.close(self._fd)


def unfinished(root: Path) -> tuple[int, int] | None:
    """The stretch that a killed slave was writing since the machine was started; None where there is none."""
    try:
        data = (root / NAME).read_bytes()[:_SIZE]
    except FileNotFoundError:
        return None
    if len(data) < _SIZE or data[:_BEGIN] != boot_id() or not any(data[:_BEGIN]):
        return None
    begin, length = _NUMBER.unpack_from(data, _BEGIN)[0], _NUMBER.unpack_from(data, _LENGTH)[0]
    return (begin, begin + length) if begin >= 0 and length > 0 else None


def zero_unfinished(root: Path, files: MappedFileQueue) -> None:
    """Zero the stretch that a killed slave was writing, before anything is read from the log."""
    stretch = unfinished(root)
    if stretch is None:
        return
    at, end = stretch
    while at < end:
        file = files.find(at)
        if file is None:
            return  # the next file was not made any more
        stop = min(end, file.end)
        file.map[at - file.start : stop - file.start] = bytes(stop - at)
        at = stop
