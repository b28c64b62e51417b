"""Index keys on their way from the scan of the log to the index files.

One range of the log leaves three files of equal length, in the order of the log and of this machine's byte order:
``<n>.hash`` (int32), ``<n>.physical`` (int64, log offset of the record) and ``<n>.time`` (int64, store time in ms).
"""

import os
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Keys = tuple[Ints, Longs, Longs]
_PARTS = (("hash", np.int32), ("physical", np.int64), ("time", np.int64))


class SpillWriter:
    """Writes the keys of one range; a context manager. The files have their names when all is in them.

    So a task that was given up, and works on all the same, does not spoil those of the one that took its place.
    """

    def __init__(self, directory: Path, number: int) -> None:
        """Begin anew, whatever an earlier attempt has left."""
        self.count = 0
        self._paths = [directory / f"{number}.{name}" for name, _ in _PARTS]
        self._open = ExitStack()
        self._files: list[BinaryIO] = [
            self._open.enter_context(self._temporary(path).open("wb")) for path in self._paths
        ]

    @staticmethod
    def _temporary(path: Path) -> Path:
        return path.with_name(f"{path.name}.{os.getpid()}.tmp")

    def __enter__(self) -> "SpillWriter":
        """The writer."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the files, and give them their names unless something went wrong. Raises OSError."""
        try:
            self._open.close()
        except OSError as full:  # a full disk may show only here
            kind = kind or type(full)
            raise
        finally:
            for path in self._paths:
                if kind is None:
                    self._temporary(path).rename(path)
                else:
                    self._temporary(path).unlink(missing_ok=True)

    def add(self, keys: Keys) -> None:
        """Append keys. Raises OSError."""
        parts: tuple[Ints | Longs, ...] = keys
        for file, part in zip(self._files, parts, strict=True):
            file.write(part.tobytes())
        self.count += len(keys[0])


def read_keys(directory: Path, number: int, first: int, count: int) -> Keys:
    """Keys ``first`` to ``first`` + ``count`` - 1 of a range, mapped from its files. Raises OSError."""
    if not count:
        return np.empty(0, np.int32), np.empty(0, np.int64), np.empty(0, np.int64)
    hashes, physical, times = (
        np.memmap(directory / f"{number}.{name}", kind, "r", first * np.dtype(kind).itemsize, (count,))
        for name, kind in _PARTS
    )
    return hashes, physical, times
