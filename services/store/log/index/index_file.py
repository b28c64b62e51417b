"""One file of the hash index, mapped (RocketMQ: ``IndexFile``)."""

from collections.abc import Callable, Iterator
from pathlib import Path

from tandemmq.store.format import index_layout
from tandemmq.store.format.index_layout import IndexHeader
from tandemmq.store.format.walker import Walk
from tandemmq.store.log.edges.disk import Disk, data_stretches, is_zero
from tandemmq.store.log.segments.mapped_file import MappedFile
from tandemmq.store.log.segments.walkers import IndexTools

_CHUNK = 1 << 20


class IndexFile:
    """A mapped index file: header, slots, entries."""

    def __init__(self, file: MappedFile, slots: int, entries: int) -> None:
        """Wrap a mapped file that is laid out for so many ``slots`` and ``entries``."""
        self.file = file
        self.slots = slots
        self.entries = entries
        self.dirty = False

    @classmethod
    def open(cls, disk: Disk, path: Path, slots: int, entries: int) -> "IndexFile":
        """Map an existing file."""
        return cls(MappedFile(disk, path, index_layout.file_size(slots, entries), 0), slots, entries)

    @classmethod
    def create(cls, disk: Disk, path: Path, slots: int, entries: int, previous: IndexHeader | None) -> "IndexFile":
        """Make a file; it takes its first times and offsets from the end of the one before it, as RocketMQ's does.

        Nothing of it is durable yet.
        """
        size = index_layout.file_size(slots, entries)
        file = cls(MappedFile.create(disk, path, size, 0, durable=False), slots, entries)
        file.dirty = True
        if previous is not None:
            when, offset = previous.end_timestamp, previous.end_physical_offset
            file.set_header(IndexHeader(when, when, offset, offset))
        return file

    @property
    def header(self) -> IndexHeader:
        """The header as it is now."""
        return IndexHeader.unpack(self.packed_header)

    @property
    def packed_header(self) -> bytes:
        """The header's bytes."""
        return self.file.map[: index_layout.HEADER_SIZE]

    def set_header(self, header: IndexHeader) -> None:
        """Write the header."""
        self.file.map[: index_layout.HEADER_SIZE] = header.pack()
        self.dirty = True

    def put(self, walk: Walk, row: int, key: int, skip_below: int) -> tuple[int, int]:
        """Add the keys of walked records from ``(row, key)`` on, until all are in or the file is full.

        Gives where it stopped.
        """
        self.dirty = True
        return walk.index_into(self.file.map, self.slots, self.entries, row, key, skip_below)

    def find(self, key_hash: int, begin: int, end: int, suspect: index_layout.Suspect) -> Iterator[int]:
        """Physical offsets of entries with this hash whose time may lie in [begin, end], newest first."""
        return index_layout.find(
            self.file.map, self.slots, self.entries, key_hash, begin, end, suspect=suspect
        )  # fmt: skip

    @property
    def header_fits(self) -> bool:
        """Whether the header's ends are those of its first and last entries."""
        return index_layout.header_fits(self.file.map, self.slots, self.entries)

    def entry_offset(self, number: int) -> int:
        """Physical offset that entry ``number`` points at."""
        return index_layout.read_entry(self.file.map, self.slots, number).physical_offset

    def intact_before(self, physical_offset: int, tools: IndexTools) -> int:
        """Number of the first entry that is damaged or belongs to a record at or after ``physical_offset``."""
        return tools.entries_before(self.file.map, self.slots, self.entries, physical_offset)

    def cut(self, count: int, store_time: Callable[[int], int | None], tools: IndexTools) -> None:
        """Keep entries 1 … ``count`` - 1; zero what follows, and rebuild slots, chains and header from what is kept.

        ``store_time`` tells the store time of the record at a physical offset, where the log still has it.
        """
        self._zero_from(index_layout.entry_position(self.slots, count))
        header = self.header
        header.hash_slot_count = tools.rebuild_chains(self.file.map, self.slots, self.entries, count)
        header.index_count = count
        if count > 1:
            header.begin_physical_offset = self.entry_offset(1)
            header.begin_timestamp = store_time(header.begin_physical_offset) or header.begin_timestamp
            header.end_physical_offset = self.entry_offset(count - 1)
            header.end_timestamp = store_time(header.end_physical_offset) or header.end_timestamp
        self.set_header(header)

    def _zero_from(self, position: int) -> None:
        """Zero what lies after ``position``, leaving alone what was never written."""
        data = self.file.map
        for first, end in data_stretches(self.file.fd, position, self.file.size):
            for begin in range(first, end, _CHUNK):
                stop = min(begin + _CHUNK, end)
                if not is_zero(data[begin:stop]):
                    data[begin:stop] = bytes(stop - begin)

    def first_entry_of_last_record(self, count: int) -> int:
        """Number of the first entry that belongs to the same record as entry ``count`` - 1."""
        offset = self.entry_offset(count - 1)
        while count > 1 and self.entry_offset(count - 1) == offset:
            count -= 1
        return count
