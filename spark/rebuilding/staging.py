"""The directory that a rebuild works in, beside the store's own: what is planned, what is done, what is ready.

    plan.json               what is to be done; written first
    scan/<range>.json       what one range of the log has, with keys/<range>.hash, .physical, .time
    queues.json, index.json what follows from the scan: bounds of the queues, files of the index
    built/<file>.<part>.json, built/queues.<group>.json
    consumequeue/…, index/… the files themselves
    tandem.rebuilt          the manifest; written last (see tandemmq.store.format.staged)

Documents are sealed with a checksum and renamed into place, so one that stands there is whole: a rebuild that was
killed goes on with what is done (`resume`). One job at a time works in a staging directory: it holds a lock on it.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tandemmq.common.documents.sealed import seal, unseal
from tandemmq.common.files.file_system import LOCAL, UNSYNCED, FileSystem
from tandemmq.common.files.replacing import write_atomically
from tandemmq.spark.errors import StagingMismatch

NAME = "tandem.rebuild"
PLAN = "plan.json"
_LOCK = "lock"
_WORK = ("scan", "keys", "built", PLAN, "queues.json", "index.json")
_OTHERS = (_LOCK, "consumequeue", "index", "tandem.rebuilt", "tandem.adopted", "tandem.tail")


class StagingDirectory:
    """One staging directory."""

    def __init__(self, path: Path) -> None:
        """Nothing is touched yet."""
        self.path = path
        self.queues = path / "consumequeue"
        self.index = path / "index"
        self.keys = path / "keys"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the directory if need be, and keep other jobs out of it meanwhile. Raises StagingMismatch."""
        self.path.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise StagingMismatch(
                f"Another job works in {self.path}.", remedy="Wait for it, or name another staging directory."
            ) from error
        try:
            yield
        finally:
            os.close(fd)

    def clear(self) -> None:
        """Begin anew: remove all but the lock. Raises StagingMismatch for a directory that is no staging directory."""
        names = {entry.name for entry in self.path.iterdir()}
        strangers = {name for name in names if not name.endswith(".tmp")} - {*_WORK, *_OTHERS}
        if strangers:
            raise StagingMismatch(
                f"{self.path} holds other things than a rebuild: {', '.join(sorted(strangers)[:3])}.",
                remedy="Name a directory of its own.",
            )
        (self.path / PLAN).unlink(missing_ok=True)  # first: what is half removed is not to be gone on with
        for entry in self.path.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry.name != _LOCK:
                entry.unlink()

    def clear_work(self) -> None:
        """Remove everything that only the job needs, but for the lock; what is rebuilt and its manifest stay."""
        for name in _WORK:
            entry = self.path / name
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink(missing_ok=True)

    def write(self, name: str, document: dict[str, Any]) -> None:
        """Put a document in its place at once; not synced, as nothing is resumed after a power cut. Raises OSError."""
        self._put(UNSYNCED, name, seal(document))

    def write_whole(self, name: str, data: bytes) -> None:
        """Put a file in its place at once, synced. Raises OSError."""
        self._put(LOCAL, name, data)

    def _put(self, files: FileSystem, name: str, data: bytes) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(files, path, data, path.with_name(f"{path.name}.{os.getpid()}.tmp"))

    def read(self, name: str) -> dict[str, Any] | None:
        """A document; None if it is not there, or not whole."""
        try:
            return unseal((self.path / name).read_bytes())
        except (FileNotFoundError, ValueError):
            return None

    def forget(self, documents: str) -> None:
        """Remove the documents that a pattern finds, so that what they say is done is done again. Raises OSError."""
        for path in self.path.glob(documents):
            path.unlink(missing_ok=True)

    def count(self, kind: str) -> int:
        """Documents of a kind (``scan``, ``built``): how much of a phase is done."""
        try:
            return sum(name.endswith(".json") for name in os.listdir(self.path / kind))
        except FileNotFoundError:
            return 0

    def sync_directories(self) -> None:
        """Make the names of all rebuilt files durable. Raises OSError."""
        for top in (self.queues, self.index):
            for directory, _, _ in os.walk(top):
                LOCAL.sync_dir(Path(directory))
        LOCAL.sync_dir(self.path)


def sync_file(path: Path) -> None:
    """Make what was written to a file durable, by whomever. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fdatasync(fd)
    finally:
        os.close(fd)
