"""Comparing the index with the log, a piece at a time: the entries with the keys of walked records, then the chains."""

from array import array
from collections.abc import Iterator

from tandemmq.store.format import index_layout
from tandemmq.store.format.index_layout import ENTRY_SIZE, HEADER_SIZE, SLOT_SIZE, IndexHeader
from tandemmq.store.format.walker import Walk
from tandemmq.store.log.index.index import Index
from tandemmq.store.log.index.index_file import IndexFile
from tandemmq.store.log.recovery.damage import DamageList

_KEYS = 1_024
_ENTRIES = 500
_SLOTS = 20_000
_BEFORE_PREVIOUS = ENTRY_SIZE - SLOT_SIZE
_BEFORE_SECONDS = _BEFORE_PREVIOUS - SLOT_SIZE


class IndexMismatch(Exception):
    """The index is not what the log says: ``place``, and what is wrong with it."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


class EntryComparison:
    """Goes through the entries as the log is walked from its beginning."""

    def __init__(self, index: Index, damage: DamageList) -> None:
        """Begin at the oldest record that is walked."""
        self._index = index
        self._damage = damage
        self._file: IndexFile | None = None
        self._number = 0
        self.lost = False
        """Whether it was found wrong, and where it goes on is not known."""

    def take(self, walk: Walk) -> None:
        """Compare the keys of walked records, which follow those of the call before.

        Raises:
            IndexMismatch: an entry is not that of the next key, or missing.
        """
        row = key = 0
        if self._file is not None and self._file not in self._index.files:  # made anew, or expired: until the next pass
            self.lost = True
        while row < walk.count and not self.lost:
            row, key = self._take(walk, row, key)

    def _take(self, walk: Walk, row: int, key: int) -> tuple[int, int]:
        """Compare as many as the present file has, or as are looked at in one go."""
        file, number = self._place()
        header = None if file is None else file.header
        left = 0 if header is None else min(header.index_count - number, _KEYS)
        made = bytearray(index_layout.file_size(1, left + 2))
        # With a first entry in place the times are counted from the file's begin.
        begin = 0 if header is None else header.begin_timestamp
        made[:HEADER_SIZE] = IndexHeader(begin_timestamp=begin, index_count=2).pack()
        row, key = walk.index_into(made, 1, left + 2, row, key)
        count = IndexHeader.unpack(made).index_count - 2
        if count == 0 and row < walk.count and not self._goes_on():
            raise IndexMismatch("its end", "keys of the log are missing")
        if file is None or header is None or count == 0:
            return row, key
        for at in range(2, count + 2):
            number = self._past_damage(file, number)
            if number >= header.index_count:  # the rest was looked for in another file than it is in
                self.lost = True
                break
            wanted, there = index_layout.entry_position(1, at), index_layout.entry_position(file.slots, number)
            length = _BEFORE_PREVIOUS if number > 1 else _BEFORE_SECONDS
            if made[wanted : wanted + length] != file.file.map[there : there + length]:
                raise IndexMismatch(_entry(file, number), "it is not that of the key which the log has there")
            number += 1
        self._number = number
        return row, key

    def _place(self) -> tuple[IndexFile | None, int]:
        """The file and number of the next entry; no file where there is none yet."""
        if self._file is None and self._index.files:
            self._file, self._number = self._index.files[0], 1
        if self._file is not None:
            self._number = self._past_damage(self._file, self._number)
        return self._file, self._number

    def start_at(self, offset: int) -> None:
        """Go to the first entry of a record at or after log offset ``offset``."""
        for file in self._index.files:
            low, high = 1, file.header.index_count
            while low < high:
                middle = (low + high) // 2
                low, high = (middle + 1, high) if file.entry_offset(middle) < offset else (low, middle)
            self._file, self._number = file, low
            if low < file.header.index_count:
                return

    def _goes_on(self) -> bool:
        """Go to the next file, where this one has no more entries; False where there is none."""
        files, file = self._index.files, self._file
        if file is not None and self._number < file.header.index_count:
            return True
        at = 0 if file is None else files.index(file) + 1
        if at < len(files):
            self._file, self._number = files[at], 1
        return at < len(files)

    def _past_damage(self, file: IndexFile, number: int) -> int:
        """Leave out entries of records that have rotted since."""
        count = file.header.index_count
        while self._damage.ranges and number < count and self._damage.covering(file.entry_offset(number)) is not None:
            number += 1
        return number


def _entry(file: IndexFile, number: int) -> str:
    return f"file {file.file.path.name}, entry {number}"


def compare_chains(file: IndexFile) -> Iterator[None]:
    """Compare the slots and chains of a file with its entries' hashes, a piece at each step.

    Raises:
        IndexMismatch: a chain does not lead to all of its entries, in order.
    """
    data, slots, count = file.file.map, file.slots, file.header.index_count
    newest = array("i", bytes(4 * slots))
    for number in range(1, min(count, file.entries)):
        key_hash, _, _, previous = index_layout.read_entry(data, slots, number)
        slot = key_hash % slots
        if previous != newest[slot]:
            raise IndexMismatch(_entry(file, number), f"its predecessor is {previous} and should be {newest[slot]}")
        newest[slot] = number
        if number % _ENTRIES == 0:
            yield
    for begin in range(0, slots, _SLOTS):
        wanted = newest[begin : begin + _SLOTS]
        there = array("i", data[HEADER_SIZE + SLOT_SIZE * begin : HEADER_SIZE + SLOT_SIZE * (begin + len(wanted))])
        there.byteswap()
        for slot, (want, have) in enumerate(zip(wanted, there, strict=True), begin):
            number = have
            while count <= number < file.header.index_count:  # added since
                number = index_layout.read_entry(data, slots, number).previous
            if number != want:
                raise IndexMismatch(f"file {file.file.path.name}, slot {slot}", f"it names {have} instead of {want}")
        yield
    if not file.header_fits:
        raise IndexMismatch(f"file {file.file.path.name}", "its header is not that of its entries")
