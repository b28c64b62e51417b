"""The index file: from the hash of ``topic#key`` to physical offsets, a hash table with chains.

    0                 header, 40 bytes
    40                slots × int: number of the newest entry of the slot's chain, 0 = empty
    40 + 4·slots      entries × 20 bytes; entry 0 is never used

    header  0   long  beginTimestamp   store time (ms) of the first entry
            8   long  endTimestamp     … of the last
            16  long  beginPhyOffset   physical offset of the first entry
            24  long  endPhyOffset     … of the last
            32  int   hashSlotCount    slots in use
            36  int   indexCount       number of the NEXT entry; starts at 1

    entry   0   int   key hash (see java.index_hash)
            4   long  physical offset of the record
            12  int   whole seconds from beginTimestamp to the record's store time
            16  int   number of the previous entry of the chain, 0 = none

The slot of a hash is hash mod slots. Entries are numbered 1 to entries - 1, so a file holds entries - 1 of them.
Source: IndexFile, IndexHeader.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from tandemmq.store.format.buffers import ReadBuffer, WriteBuffer
from tandemmq.store.format.errors import FormatError

HEADER_SIZE = 40
SLOT_SIZE = 4
ENTRY_SIZE = 20
ENTRY_PHYSICAL_AT, ENTRY_SECONDS_AT, ENTRY_PREVIOUS_AT = 4, 12, 16
ENTRY_FIELDS = [("hash", ">i4"), ("physical", ">i8"), ("seconds", ">i4"), ("previous", ">i4")]
"""An entry as NumPy's data types are described."""
_HEADER = Struct(">qqqqii")
_SLOT = Struct(">i")
_ENTRY = Struct(">iqii")
_MAX_INT = 0x7FFFFFFF
_SECOND = 1000
Suspect = Callable[[int, str], None]


def _ignore(number: int, reason: str) -> None:
    """Tell nobody."""


class CorruptIndexHeader(FormatError):
    """Too short to be an index file."""


@dataclass(slots=True)
class IndexHeader:
    """The first 40 bytes of an index file."""

    begin_timestamp: int = 0
    end_timestamp: int = 0
    begin_physical_offset: int = 0
    end_physical_offset: int = 0
    hash_slot_count: int = 0
    index_count: int = 1

    def pack(self) -> bytes:
        """The 40 bytes."""
        return _HEADER.pack(
            self.begin_timestamp,
            self.end_timestamp,
            self.begin_physical_offset,
            self.end_physical_offset,
            self.hash_slot_count,
            self.index_count,
        )

    @classmethod
    def unpack(cls, buffer: ReadBuffer) -> "IndexHeader":
        """From the start of ``buffer``. A count of 0 or less is read as 1: a new file is all zero."""
        if len(buffer) < HEADER_SIZE:
            raise CorruptIndexHeader(f"{len(buffer)} bytes are fewer than the {HEADER_SIZE} of an index header")
        header = cls(*_HEADER.unpack_from(buffer))
        header.index_count = max(header.index_count, 1)
        return header


def file_size(slots: int, entries: int) -> int:
    """Length of an index file: 420,000,040 with RocketMQ's defaults (5,000,000 slots, 20,000,000 entries)."""
    return HEADER_SIZE + SLOT_SIZE * slots + ENTRY_SIZE * entries


class IndexEntry(NamedTuple):
    """One entry."""

    key_hash: int
    physical_offset: int
    seconds: int
    previous: int


_NO_ENTRY = IndexEntry(0, 0, 0, 0)


def entry_position(slots: int, number: int) -> int:
    """Position of entry ``number`` in the file."""
    return HEADER_SIZE + SLOT_SIZE * slots + ENTRY_SIZE * number


def read_entry(buffer: ReadBuffer, slots: int, number: int) -> IndexEntry:
    """Entry ``number``, as it stands there."""
    return IndexEntry._make(_ENTRY.unpack_from(buffer, entry_position(slots, number)))


def read_slot(buffer: ReadBuffer, slot: int) -> int:
    """Number of the newest entry in a slot's chain, as it stands there."""
    number: int = _SLOT.unpack_from(buffer, HEADER_SIZE + SLOT_SIZE * slot)[0]
    return number


def _wrap(value: int) -> int:
    """As a Java long."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def put_key(
    buffer: WriteBuffer,
    slots: int,
    entries: int,
    key_hash: int,
    physical_offset: int,
    store_timestamp: int,
) -> bool:
    """Add an entry; False if the file is full. Source: IndexFile.putKey.

    The time difference is taken from the header's begin *before* a first entry sets it: in a file whose header was
    pre-set on rolling, the first entry appears later than it was (Java does so too, the files are to be the same).
    """
    header = IndexHeader.unpack(buffer)
    number = header.index_count
    if number >= entries:
        return False
    slot_at = HEADER_SIZE + SLOT_SIZE * (key_hash % slots)
    (previous,) = _SLOT.unpack_from(buffer, slot_at)
    if previous <= 0 or previous > number:
        previous = 0
    seconds = 0
    if header.begin_timestamp > 0:
        seconds = min(max(_wrap(store_timestamp - header.begin_timestamp) // _SECOND, 0), _MAX_INT)
    _ENTRY.pack_into(buffer, entry_position(slots, number), key_hash, physical_offset, seconds, previous)
    if number <= 1:
        header.begin_physical_offset = physical_offset
        header.begin_timestamp = store_timestamp
    if previous == 0:
        header.hash_slot_count += 1
    header.index_count = number + 1
    header.end_physical_offset = physical_offset
    header.end_timestamp = store_timestamp
    buffer[:HEADER_SIZE] = header.pack()
    # The slot comes last: whoever reads meanwhile finds a whole entry after it.
    _SLOT.pack_into(buffer, slot_at, number)
    return True


def find(
    buffer: ReadBuffer,
    slots: int,
    entries: int,
    key_hash: int,
    begin: int,
    end: int,
    limit: int | None = None,
    suspect: Suspect | None = None,
) -> Iterator[int]:
    """Physical offsets of entries with this hash and a store time that may lie in [begin, end] (ms), newest first.

    More than asked for may come: other keys with the same hash, and times around the range, which is widened by a
    second because the file keeps whole seconds only. The first entry of a file, and one that claims the very begin, may
    have another time altogether (trap T8). So the caller compares topic, key and time with the record (trap T9).
    The walk does not end at an early time, and only goes to lower numbers, so that no damage makes it turn in circles.
    What it meets that cannot be is told to ``suspect``: with an entry's number (0: the slot) and in words.
    """
    header = IndexHeader.unpack(buffer)
    if header.index_count <= 1:
        return
    last = min(header.index_count, entries - 1)
    left = entries if limit is None else limit
    slot = key_hash % slots
    number = read_slot(buffer, slot)
    suspect = suspect or _ignore
    if not 0 <= number <= last:
        suspect(0, f"slot {slot} names entry {number} of {last}")
    while 0 < number <= last and left > 0:
        stored_hash, physical_offset, seconds, previous = _ENTRY.unpack_from(buffer, entry_position(slots, number))
        if stored_hash % slots != slot or seconds < 0:
            suspect(number, f"it is in the chain of slot {slot}, with hash {stored_hash} and {seconds} seconds")
        elif stored_hash == key_hash:
            if not _is_between_neighbours(buffer, slots, number, last, physical_offset):
                suspect(number, f"its log offset {physical_offset} is not between those of its neighbours")
            time = header.begin_timestamp + seconds * _SECOND
            late_enough = time + _SECOND >= begin - _SECOND or seconds == _MAX_INT
            early_enough = time - _SECOND <= end or seconds == 0
            if number == 1 or (late_enough and early_enough):
                left -= 1
                yield physical_offset
        if not 0 <= previous < number:
            suspect(number, f"its predecessor is {previous}")
            return
        number = previous


def _is_between_neighbours(buffer: ReadBuffer, slots: int, number: int, last: int, physical_offset: int) -> bool:
    """Whether an offset is in the order of the log, as entries are."""
    if number > 1 and read_entry(buffer, slots, number - 1).physical_offset > physical_offset:
        return False
    # After the newest entry there is nothing, or zeros.
    return (
        number >= last
        or (after := read_entry(buffer, slots, number + 1)).physical_offset >= physical_offset
        or (after == _NO_ENTRY)
    )


def header_fits(buffer: ReadBuffer, slots: int, entries: int) -> bool:
    """Whether the header's ends are those of its first and last entries."""
    header = IndexHeader.unpack(buffer)
    last = header.index_count - 1
    if not 0 < last < entries:
        return last == 0
    first_offset, newest = read_entry(buffer, slots, 1).physical_offset, read_entry(buffer, slots, last)
    if (header.begin_physical_offset, header.end_physical_offset) != (first_offset, newest.physical_offset):
        return False
    seconds = max(header.end_timestamp - header.begin_timestamp, 0) // _SECOND
    # The first entry of a file counts from the end of the file before it.
    begun = header.begin_timestamp >= 0 and header.end_timestamp >= 0
    return begun and (last == 1 or min(seconds, _MAX_INT) == newest.seconds)


def entries_before(buffer: ReadBuffer, slots: int, entries: int, physical_offset: int) -> int:
    """Number of the first entry that is damaged, missing, or belongs to a record at or after ``physical_offset``.

    It is the indexCount of a file that keeps only the good ones before it: 1 if there are none. Intact is an entry that
    was written (not all zero), has no negative field, a previous number below its own, and a physical offset not below
    that of the entry before. Entries at and beyond the header's indexCount are missing.
    """
    count = min(IndexHeader.unpack(buffer).index_count, entries)
    before = 0
    for number in range(1, count):
        key_hash, physical, seconds, previous = read_entry(buffer, slots, number)
        if not before <= physical < physical_offset or key_hash < 0 or seconds < 0 or not 0 <= previous < number:
            return number
        if not (key_hash or physical or seconds or previous):
            return number
        before = physical
    return max(count, 1)


def rebuild_chains(buffer: WriteBuffer, slots: int, entries: int, count: int) -> int:
    """Link the entries 1 to ``count`` - 1 anew from their hashes, as adding them one by one would have.

    Writes the slots and the previous numbers; returns hashSlotCount. The header, and what stands after the last entry,
    are the caller's affair.
    """
    newest = [0] * slots
    for number in range(1, min(count, entries)):
        at = entry_position(slots, number)
        (key_hash,) = _SLOT.unpack_from(buffer, at)
        slot = key_hash % slots
        _SLOT.pack_into(buffer, at + ENTRY_PREVIOUS_AT, newest[slot])
        newest[slot] = number
    for slot, number in enumerate(newest):
        at = HEADER_SIZE + SLOT_SIZE * slot
        if _SLOT.unpack_from(buffer, at)[0] != number:  # spares the holes of a sparse file
            _SLOT.pack_into(buffer, at, number)
    return slots - newest.count(0)
