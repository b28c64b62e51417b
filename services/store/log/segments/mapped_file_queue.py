"""The files of a commit log, in order (RocketMQ: ``MappedFileQueue``).

Knows names, sizes and order, not contents. The next file is made ahead of need by a thread, so that rolling costs
nothing; where it is not ready in time it is made on the spot.
"""

import logging
import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from operator import attrgetter
from pathlib import Path

from tandemmq.common.files.file_system import LocalFileSystem
from tandemmq.common.files.replacing import make_dirs
from tandemmq.common.processes.started_pool import started_pool
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.errors import FileSizeMismatch, ForeignFile, MisplacedDirectory
from tandemmq.store.log.segments.mapped_file import NAME_DIGITS, MappedFile, file_name

log = logging.getLogger(__name__)
_NAME = attrgetter("name")


def list_files(directory: Path, size: int, setting: str, *, derived: bool = False) -> list[int]:
    """List the start offsets of the numbered files of ``directory``, in order, after checking every name and size.

    Leftovers of our own (``.tmp``, a last file of zero bytes) do not count; nothing is changed here. Where files are
    ``derived``, none of zero bytes counts: a power cut leaves such a file where it was not synced yet.

    Raises:
        ForeignFile: a name that is no number; MisplacedDirectory: a directory with the name of a file.
        FileSizeMismatch: a file with another size than ``setting`` says.
    """
    starts: list[int] = []
    empty: list[int] = []
    for entry in entries_of(directory):
        name, path = entry.name, entry.path
        of_a_file = name.isascii() and name.isdigit() and len(name) == NAME_DIGITS
        if of_a_file and entry.is_dir():
            raise MisplacedDirectory(
                f"{path} is a directory, where a file of the store belongs.",
                remedy="Move it away, and restore the file if there was one.",
            )
        if entry.is_dir() or name.endswith(".tmp"):
            continue
        if not of_a_file:
            raise ForeignFile(
                f"{path} is not a store file: names are {NAME_DIGITS} digits.", remedy="Move it out of the directory."
            )
        start, length = int(name), entry.stat().st_size
        if length == 0:
            empty.append(start)
            continue
        if length != size or start % size:
            raise FileSizeMismatch(
                f"{path} has {length:,} bytes, but {setting} is {size:,}.",
                remedy=f"Set {setting} to the size this store was written with; if only this file differs, it was cut: "
                "restore it from a replica or a back-up.",
            )
        starts.append(start)
    if not derived and empty and starts and empty[0] < starts[-1]:
        raise FileSizeMismatch(
            f"{directory / file_name(empty[0])} is empty although later files exist.",
            remedy="Restore it from a replica or a back-up, or remove it: its messages are then reported as damaged.",
        )
    return starts


def remove_leftovers(directory: Path, disk: Disk) -> None:
    """Remove what a crash while creating a file leaves behind: ``.tmp`` files and empty files."""
    for entry in entries_of(directory):
        if entry.name.endswith(".tmp") or (entry.is_file() and entry.stat().st_size == 0):
            disk.unlink(Path(entry.path))


def entries_of(directory: Path | str) -> list[os.DirEntry[str]]:
    """What lies in a directory, by name; nothing where there is none."""
    try:
        with os.scandir(directory) as entries:
            return sorted(entries, key=_NAME)
    except (FileNotFoundError, NotADirectoryError):
        return []


class MappedFileQueue:
    """The mapped files of one directory, oldest first. Appending and removing happen on one thread only."""

    def __init__(self, directory: Path, file_size: int, disk: Disk) -> None:
        """Open every file of ``directory``; see `list_files` for what is refused."""
        self.directory = directory
        self.file_size = file_size
        self._disk = disk
        starts = list_files(directory, file_size, "mappedFileSizeCommitLog")
        make_dirs(disk, directory)
        remove_leftovers(directory, disk)
        disk.sync_dir(directory)  # what a killed process has created or removed here is not durable yet
        self.files = [MappedFile(disk, directory / file_name(start), file_size, start) for start in starts]
        self._starts = starts
        self._maker = started_pool(1, "tandem-file-maker")
        self._next: Future[MappedFile] | None = None
        self._next_start = -1

    def __iter__(self) -> Iterator[MappedFile]:
        """Iterate over the files, oldest first."""
        return iter(self.files)

    @property
    def writes_are_plain(self) -> bool:
        """Whether a write to a file is the system's own `pwrite`, and nothing besides."""
        return getattr(self._disk.pwrite, "__func__", None) is LocalFileSystem.pwrite

    @property
    def syncs_are_plain(self) -> bool:
        """The same of a sync and `fdatasync`."""
        return getattr(self._disk.sync, "__func__", None) is LocalFileSystem.sync

    @property
    def last(self) -> MappedFile | None:
        """The newest file."""
        return self.files[-1] if self.files else None

    def find(self, offset: int) -> MappedFile | None:
        """The file that holds the byte at ``offset``, or None where the log has none (expired, or a gap)."""
        at = bisect_right(self._starts, offset) - 1
        if at < 0:
            return None
        file = self.files[at] if at < len(self.files) else None
        if file is None or offset < file.start:  # asked from another thread while an old file goes
            file = next((file for file in tuple(self.files) if file.start <= offset < file.end), None)
        return file if file is not None and offset < file.end else None

    def first_from(self, offset: int) -> MappedFile | None:
        """The oldest file that begins at or after ``offset``."""
        return next((file for file in tuple(self.files) if file.start >= offset), None)

    def roll(self, start: int) -> MappedFile:
        """Add the file that begins at ``start``: the one made ahead, or one made now.

        Raises:
            DiskFull: there is no room for it.
        """
        file: MappedFile | None = None
        if self._next is not None and self._next_start == start:
            try:
                file = self._next.result()
                if not os.fstat(file.fd).st_nlink:  # see MappedFile.put_back_if_deleted
                    file = None
            except Exception as error:  # noqa: BLE001 - full then, or deleted by another process: it may work now
                log.warning("The next log file could not be made ahead: %s", error)
            finally:
                self._next = None
        if file is None:
            file = MappedFile.create(self._disk, self.directory / file_name(start), self.file_size, start)
        self.files.append(file)
        self._starts.append(start)
        return file

    def make_ahead(self, prefault: int) -> None:
        """Begin to make the file after the newest one, with its first ``prefault`` bytes resident."""
        last = self.last
        if last is None or (self._next is not None and self._next_start == last.end):
            return
        start = last.end

        def make() -> MappedFile:
            file = MappedFile.create(self._disk, self.directory / file_name(start), self.file_size, start)
            file.populate(0, prefault)
            return file

        self._next_start = start
        self._next = self._maker.submit(make)

    def ensure_ahead(self) -> None:
        """Have the file after the newest one, if need be by making it now. Raises DiskFull."""
        last = self.last
        if last is None:
            return
        if self._next is not None and self._next_start == last.end and self._next.exception() is None:
            return
        made: Future[MappedFile] = Future()
        made.set_result(MappedFile.create(self._disk, self.directory / file_name(last.end), self.file_size, last.end))
        self._next, self._next_start = made, last.end

    def populate(self, file: MappedFile, begin: int, length: int) -> None:
        """Make a stretch of ``file`` resident, in the background."""
        self._maker.submit(file.populate, begin, length)

    def drop_first(self) -> MappedFile:
        """Forget and remove the oldest file."""
        self.files[0].remove()
        return self.forget_first()

    def forget_first(self) -> MappedFile:
        """Forget the oldest file; whoever reads it at the moment may go on."""
        self._starts.pop(0)
        return self.files.pop(0)

    def drop_last(self) -> MappedFile:
        """Forget the newest file and give it back; its name stays."""
        self._starts.pop()
        return self.files.pop()

    def start_anew(self, start: int) -> None:
        """Remove every file, for a log that holds nothing yet and begins at ``start``. Raises OSError."""
        self._drop_made_ahead()
        while self.files:
            self.drop_first()
        self._disk.sync_dir(self.directory)
        log.info("The log begins at offset %d", start)

    def put_back_deleted(self, files: Iterable[MappedFile]) -> None:
        """Give those of ``files`` their names again that another process has deleted.

        Raises:
            OSError: see `MappedFile.put_back_if_deleted`.
        """
        for file in files:
            if file.put_back_if_deleted():
                log.critical("%s was deleted by another process while in use; it has been put back", file.path)

    def close(self) -> None:
        """Stop the maker and remove a file that was made ahead and never used."""
        self._drop_made_ahead()
        self._maker.shutdown(wait=True)

    def _drop_made_ahead(self) -> None:
        if self._next is not None and self._next.exception() is None:
            try:
                self._next.result().remove()
            except OSError as error:  # the next start removes it: it lies after the end of the log
                log.warning("An unused log file stays behind: %s", error)
        self._next = None
