"""The staging ring: a file, mapped here and by our store, through which replica bytes pass without being copied.

The socket is read straight into it, frame headers and bodies as they come. The store is told where the bodies lie, and
copies them into its log; with its ack their place is free. While the store keeps up, the ring begins anew at
position 0 each time: its pages stay in the processor's cache, and few of them ever reach the disk.
"""

import contextlib
import mmap
import os
import uuid
from collections import deque
from pathlib import Path

from tandemmq.replicator.slave.slave_errors import StagingFailed

RING_SIZE = 16 << 20
READ_SIZE = 1 << 20
"""Most bytes that one read takes: a turn's work, small enough for the processor's cache."""
LEAST_READ = 64 << 10
"""With less room than this, reading pauses: tiny reads are dear."""

_NAME = "tandem.staging"


class Ring:
    """Where bytes lie that were received and are not in the log yet. Counts bytes, does no I/O.

    A turn is: `room`, then `received`, then `settle`. All of a turn's bytes are done with by then, but for the bodies
    that the store must fetch.
    """

    __slots__ = ("_free_from", "_held", "_next", "read_size", "size")

    def __init__(self, size: int = RING_SIZE, read_size: int = READ_SIZE) -> None:
        self.size = size
        self.read_size = read_size
        self._next = 0
        """Where the next byte goes, counted on over all rounds."""
        self._free_from = 0
        """Everything before this count is free again."""
        self._held: deque[tuple[int, int]] = deque()
        """For each turn that brought bodies: the log offset after them, and the count after the turn."""

    @property
    def held(self) -> int:
        """Bytes that are not free."""
        return self._next - self._free_from

    def room(self) -> tuple[int, int]:
        """Position and size of the stretch that the next read may fill; size 0 when the ring is full."""
        if self._free_from == self._next:
            self._free_from = self._next = 0
        position = self._next % self.size
        return position, min(self.size - self.held, self.size - position, self.read_size)

    def received(self, size: int) -> int:
        """A read filled so many bytes of `room`; gives their position."""
        position = self._next % self.size
        self._next += size
        return position

    def settle(self, log_end: int | None) -> None:
        """The turn is over. `log_end` is the log offset after its bodies; None if none is for the store."""
        if log_end is not None:
            self._held.append((log_end, self._next))
        elif self._held:
            self._held[-1] = (self._held[-1][0], self._next)
        else:
            self._free_from = self._next

    def free(self, log_offset: int) -> None:
        """The store has everything below an offset of the log."""
        held = self._held
        while held and held[0][0] <= log_offset:
            self._free_from = held.popleft()[1]


class StagingFile:
    """The ring's file, mapped. Has its name until the store has opened it."""

    def __init__(self, directory: Path, size: int = RING_SIZE) -> None:
        """Makes the file in the store's directory, with all its blocks. Raises StagingFailed."""
        self.name = f"{_NAME}.{uuid.uuid4().hex}"
        self.size = size
        self._path: Path | None = directory / self.name
        try:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(file, 0, size)  # a full disk must be an error here, not a signal at the first write
                self._map = mmap.mmap(file, size)
            finally:
                os.close(file)
        except OSError as error:
            self.unlink()
            raise StagingFailed(f"cannot make {directory / self.name}: {error.strerror}") from error
        self.view = memoryview(self._map)

    def unlink(self) -> None:
        """Takes the name away; whoever has the file open keeps it."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None

    def close(self) -> None:
        """Unmaps and unlinks. Nothing may be received any more."""
        self.unlink()
        self.view.release()
        with contextlib.suppress(BufferError):  # an error's traceback may still show a slice; then its end is the map's
            self._map.close()


def remove_leftovers(directory: Path) -> None:
    """Removes the files of replicators that were killed. Only for the one who has the store's link."""
    for path in directory.glob(f"{_NAME}.*"):
        path.unlink(missing_ok=True)
