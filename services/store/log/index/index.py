"""The hash index: from topic and key to physical offsets (RocketMQ: ``IndexService``).

A row of files of equal size, filled one after the other in log order; a file's name is the local time of its
making. What an entry says is a hint: hashes collide and times are whole seconds, so the caller reads the records
and compares (traps T8, T9).
"""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tandemmq.common.files.replacing import make_dirs
from tandemmq.store.format import index_layout, java
from tandemmq.store.format.index_layout import IndexHeader
from tandemmq.store.format.walker import Walk
from tandemmq.store.log.edges.clock import Clock
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.errors import FileSizeMismatch, ForeignFile, NotWritable
from tandemmq.store.log.index.index_file import IndexFile
from tandemmq.store.log.segments.walkers import Walkers

NAME_DIGITS = 17
StoreTime = Callable[[int], int | None]


class Index:
    """The index files of one directory, oldest first, and the log offset up to which they are complete."""

    def __init__(self, directory: Path, slots: int, entries: int, disk: Disk, clock: Clock, walkers: Walkers) -> None:
        """Stand before an unread directory; `load` reads it."""
        self.directory = directory
        self.files: list[IndexFile] = []
        self.slots = slots
        self.entries = entries
        self._disk = disk
        self._clock = clock
        self._walkers = walkers
        self._names_dirty = False
        self.position = 0  # records below this log offset are indexed
        self.suspected: Callable[[str, str], None] = lambda place, reason: None
        """Called with a place that cannot be, and what is wrong with it, when a query meets one."""

    def load(self) -> None:
        """Map the files. Those of zero bytes are no more than names that have outlived a power cut: they go.

        Raises:
            FileSizeMismatch: a file was made for other numbers of slots and entries.
            ForeignFile: a name that is no number.
        """
        size = index_layout.file_size(self.slots, self.entries)
        paths, empty = list[Path](), list[Path]()
        for path in sorted(self.directory.iterdir()) if self.directory.is_dir() else ():
            if path.suffix == ".tmp":
                continue
            if not (path.name.isascii() and path.name.isdigit()):
                raise ForeignFile(f"{path} is no index file: their names are numbers.", remedy="Move it away.")
            if (length := path.stat().st_size) == 0:
                empty.append(path)
                continue
            if length != size:
                raise FileSizeMismatch(
                    f"{path} has {length:,} bytes; with maxHashSlotNum {self.slots:,} and maxIndexNum "
                    f"{self.entries:,} it would have {size:,}.",
                    remedy="Set both to what this store was written with, or remove the directory: it is rebuilt.",
                )
            paths.append(path)
        make_dirs(self._disk, self.directory)
        for leftover in (".old", ".rebuild"):
            if self.directory.suffix != leftover:
                shutil.rmtree(self.directory.with_name(self.directory.name + leftover), ignore_errors=True)
        for path in (*empty, *self.directory.glob("*.tmp")):
            self._disk.unlink(path)
        self.files = [IndexFile.open(self._disk, path, self.slots, self.entries) for path in paths]

    # -- write ------------------------------------------------------------------------------------------------------

    def put(self, walk: Walk, skip_below: int = 0) -> None:
        """Add the keys of walked records at or after ``skip_below``; rolls to a new file when one is full.

        All or nothing.

        Raises:
            DiskFull: the next file cannot be made; the index is as it was before.
        """
        before = (len(self.files), self.files[-1].packed_header if self.files else b"")
        try:
            self._put(walk, skip_below)
        except (OSError, NotWritable):
            self._restore(*before)
            raise

    def take(self, walk: Walk, end: int) -> None:
        """As `put`, of what it does not have yet; `position` is `end` then. See `Derived`."""
        self.put(walk, self.position)
        self.position = end

    def _put(self, walk: Walk, skip_below: int) -> None:
        row = key = 0
        while walk.count:
            if self.files:
                row, key = self.files[-1].put(walk, row, key, skip_below)
                if row >= walk.count:
                    return
            self._roll()

    def _restore(self, files: int, packed_header: bytes) -> None:
        while len(self.files) > files:
            self.drop_last()
        if packed_header:
            header = IndexHeader.unpack(packed_header)
            self.files[-1].cut(header.index_count, lambda _: None, self._walkers.index_tools(header.index_count))
            self.files[-1].set_header(header)

    def _roll(self) -> None:
        """Go on in a new file. The loop does not wait for the disk: see `take_dirty`."""
        previous = self.files[-1].header if self.files else None
        path = self.directory / self._new_name()
        self._names_dirty = True
        self.files.append(IndexFile.create(self._disk, path, self.slots, self.entries, previous))

    def _new_name(self) -> str:
        seconds, millis = divmod(self._clock.now_ms(), 1000)
        name = time.strftime("%Y%m%d%H%M%S", time.localtime(seconds)) + f"{millis:03d}"
        newest = int(self.files[-1].file.path.name) if self.files else 0
        return f"{max(int(name), newest + 1):0{NAME_DIGITS}d}"

    # -- read -------------------------------------------------------------------------------------------------------

    def query(self, topic: str, key: str, begin: int, end: int) -> Iterator[int]:
        """Physical offsets that may be records of ``topic`` with ``key``, stored in [begin, end] ms; newest first.

        Unverified: the caller compares topic, key and store time of each record.
        """
        key_hash = java.index_hash(java.index_key(topic, key))
        for file in reversed(self.files):
            header, name = file.header, file.file.path.name
            fits = file.header_fits
            if not fits:
                self.suspected(f"file {name}", "its header is not that of its entries")
            in_time = header.begin_timestamp - 1000 <= end and begin <= header.end_timestamp + 1000
            if in_time or not fits:
                yield from file.find(key_hash, begin, end, self._suspect_in(name))

    def _suspect_in(self, name: str) -> index_layout.Suspect:
        return lambda number, reason: self.suspected(f"file {name}, entry {number}", reason)

    # -- recovery and retention -------------------------------------------------------------------------------------

    def cut_before(self, physical_offset: int, store_time: StoreTime) -> int:
        """Keep the intact entries of records below ``physical_offset``; gives the log offset from which to index again.

        Unlike RocketMQ, which deletes the newest file after a crash (trap T7). The last record that is kept loses
        its entries too unless the cut is exactly at ``physical_offset``: some of its keys may be missing.
        """
        tools = self._walkers.index_tools(sum(file.header.index_count for file in self.files[-1:]))
        while self.files:
            file = self.files[-1]
            count = min(file.intact_before(physical_offset, tools), file.header.index_count)
            whole = count > 1 and count < file.header.index_count and file.entry_offset(count) >= physical_offset
            if count > 1 and not whole:
                count = file.first_entry_of_last_record(count)
                resume = file.entry_offset(count)
            else:
                resume = physical_offset
            if count > 1:
                file.cut(count, store_time, tools)
                return min(resume, physical_offset)
            self.drop_last()
            physical_offset = min(physical_offset, resume)
        return 0

    def begin_new_file(self) -> None:
        """Let the next entry go to a new file."""
        self._roll()

    def drop_last(self) -> None:
        """Remove the newest file."""
        self.files.pop().file.remove()

    def forget_files_below(self, log_min: int) -> list[IndexFile]:
        """Leave out the files whose records are all gone from the log; never the newest.

        Gives those files: their names are still to be taken away.
        """
        count = 0
        while count < len(self.files) - 1 and self.files[count].header.end_physical_offset < log_min:
            count += 1
        gone, self.files[:count] = self.files[:count], []
        return gone

    @property
    def replaced(self) -> Path:
        """Where the files lie that others have replaced."""
        return self.directory.with_name(self.directory.name + ".old")

    def replace_by(self, fresh: "Index") -> list[IndexFile]:
        """Take over the files of an index that was built beside this one; there must be nothing in `replaced`.

        Gives the files that were here; `remove_replaced` is to follow.
        """
        self._disk.rename(self.directory, self.replaced)
        self._disk.rename(fresh.directory, self.directory)
        replaced = self.files
        self.take_over(fresh)
        return replaced

    def remove_replaced(self, replaced: list[IndexFile]) -> None:
        """Make the exchange durable, and give up the files that were here before; blocks."""
        self._disk.sync_dir(self.directory.parent)
        shutil.rmtree(self.replaced, ignore_errors=True)
        replaced.clear()  # here, in a thread: only with the last reference their pages and blocks are freed

    def take_over(self, fresh: "Index") -> None:
        """Go on with the files of another index, whose directory has been put in the place of this one's."""
        for file in fresh.files:
            file.file.path = self.directory / file.file.path.name
        self.files, self.position = fresh.files, fresh.position
        self._names_dirty = self._names_dirty or fresh._names_dirty

    def sync(self) -> None:
        """Make files and names durable as they are; blocks. They count as dirty still: `put` may go on meanwhile."""
        for file in self.files:
            file.file.sync()
        self._disk.sync_dir(self.directory)

    def take_dirty(self) -> tuple[list[IndexFile], list[Path]]:
        """Give the files that were written, and the directory if it has new names; the caller syncs them."""
        files = [file for file in self.files if file.dirty]
        names = [self.directory] if self._names_dirty else []
        for file in files:
            file.dirty = False
        self._names_dirty = False
        return files, names

    def mark_dirty(self, files: Iterable[IndexFile] | None = None, names: Iterable[Path] | None = None) -> None:
        """Let these be synced again, all by default."""
        for file in self.files if files is None else files:
            file.dirty = True
        self._names_dirty = self._names_dirty or names is None or bool(list(names))

    def counts(self) -> list[tuple[str, int]]:
        """Name and next entry number of every file: what a manifest remembers."""
        return [(file.file.path.name, file.header.index_count) for file in self.files]
