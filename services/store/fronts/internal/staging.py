"""The staging file: replica bytes lie there for the store to copy, so that they need not pass through messages."""

import contextlib
import mmap
import re
from pathlib import Path

from tandemmq.store.broker.errors import BadRequest

_NAME = re.compile(r"tandem\.staging[A-Za-z0-9.-]{0,64}")
_LARGEST = 1 << 30


class OpenStaging:
    """The staging file of one call of Receive, read-only. The replicator may remove its name once it is open."""

    def __init__(self, root: Path) -> None:
        """Files are looked for in ``root``, the store's directory; none is open yet."""
        self._root = root
        self._map: mmap.mmap | None = None
        self._view = memoryview(b"")

    def open(self, name: str, size: int) -> None:
        """Map a file. Raises BadRequest where it is none of ours, or smaller than it is said to be."""
        if not _NAME.fullmatch(name) or not 0 < size <= _LARGEST:
            raise BadRequest(f"{name!r} of {size:,} bytes is no staging file.")
        self.close()
        try:
            with (self._root / name).open("rb") as file:
                self._map = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise BadRequest(
                f"The staging file {self._root / name} cannot be read: {error}.",
                remedy="The replicator's storePathRootDir must be this store's.",
            ) from error
        self._view = memoryview(self._map)

    def view(self, position: int, size: int) -> memoryview:
        """Bytes of the file. Raises BadRequest for a place outside of it."""
        if position < 0 or size < 0 or position + size > len(self._view):
            raise BadRequest(f"The staging file has no bytes {position:,} to {position + size:,}.")
        return self._view[position : position + size]

    def close(self) -> None:
        """Let go of the file."""
        self._view.release()
        self._view = memoryview(b"")
        if self._map is not None:
            with contextlib.suppress(BufferError):  # the traceback of an error may still show a view; it ends with that
                self._map.close()
            self._map = None
