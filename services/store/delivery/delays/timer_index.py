"""The timers of a store, by time, on disk: made from the queue of `rmq_sys_wheel_timer`, and made anew when in doubt.

One file an hour; an hour that is near is split into minutes, a crowded minute into seconds, a crowded second into
milliseconds, so that what is due next can be read without reading what is due later. Files only grow, in the order of
queue offsets. A checkpoint names them with their sizes: what lies beyond that, or is not named, does not count.
"""

import os
import zlib
from bisect import bisect_left, insort
from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import Path

from tandemmq.common.files.replacing import make_dirs, write_atomically
from tandemmq.common.log_output import get_log
from tandemmq.store.delivery.delays.timer_checkpoint import BadCheckpoint, TimerCheckpoint
from tandemmq.store.delivery.delays.timer_entry import (
    ENTRY_SIZE,
    HOUR_MS,
    BadEntries,
    TimerEntry,
    pack_entries,
    unpack_entries,
)
from tandemmq.store.delivery.delays.timer_slot import Slot, hour_of, parents_of, slot_of_name
from tandemmq.store.delivery.journal.facts import TimersDone
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.edges.file_cache import FileCache

log = get_log(__name__)

CROWDED = 16_384
"""A slot with more entries is split before it is read, if it can be."""
PIECE = 2_048
"""Entries that are read or split at a time: some 2 ms."""
_OPEN_FILES = 128
_CHECKPOINT = "checkpoint"
_LAST_OFFSET = (1 << 63) - 1
_GONE = ".gone"


class _File:
    """A slot's file, as far as it counts."""

    __slots__ = ("crc", "first_offset", "first_physical", "last_offset", "size")

    def __init__(self) -> None:
        self.size = 0
        self.crc = 0
        self.first_offset = -1
        self.first_physical = -1
        self.last_offset = -1


class TimerIndex:
    """The files of one store."""

    def __init__(self, directory: Path, disk: Disk, rules: tuple[int, int] = (0, 0)) -> None:
        """`rules`: what the times of entries depend on; an index that was made by others is made anew."""
        self._directory = directory
        self._disk = disk
        self._rules = rules
        self._cache = FileCache(disk, _OPEN_FILES)
        self._files: dict[Slot, _File] = {}
        self._order: list[Slot] = []
        self._split: set[Slot] = set()  # slots that have no file of their own any more: their parts have
        self._unfinished: dict[Slot, set[Slot]] = {}  # slots that are being split, and their parts so far
        self._dirty: set[Slot] = set()
        self._gone: list[str] = []  # files that may be removed when a checkpoint does not name them
        self.generation = 0
        """Greater each time the index is made anew."""
        self.indexed = 0
        """All records of the queue below this offset are here, but for those that were dropped."""
        self.physical = 0
        """Log offset after the last of these."""
        self.dropped = (0, 0)
        """(when, offset): no entry after this was dropped."""

    # -- life -------------------------------------------------------------------------------------------------------

    def load(self) -> bool:
        """Begin with what the last checkpoint names; False, and with nothing, where that cannot be trusted.

        Raises OSError.
        """
        make_dirs(self._disk, self._directory)
        try:
            self._load(TimerCheckpoint.decode((self._directory / _CHECKPOINT).read_bytes()))
            return True
        except FileNotFoundError as error:
            log.info("the index of timers is made from the log", missing=error.filename)
        except (BadCheckpoint, BadEntries) as error:
            log.warning("the index of timers is made anew from the log", reason=str(error))
        self.clear()
        return False

    def _load(self, known: TimerCheckpoint) -> None:
        if known.rules != self._rules:
            raise BadCheckpoint("it was made by other rules")
        for name, (size, crc) in known.files.items():
            slot = slot_of_name(name)
            if slot is None or size <= 0 or size % ENTRY_SIZE:
                raise BadCheckpoint(f"it names {name} with {size} bytes")
            path = self._directory / name
            if path.stat().st_size < size:
                raise BadEntries(f"{name} has fewer than {size} bytes")
            file = self._files[slot] = _File()
            file.size, file.crc = size, crc
            (first,) = unpack_entries(self._pread(slot, 0, ENTRY_SIZE), slot.hour)
            (last,) = unpack_entries(self._pread(slot, size - ENTRY_SIZE, ENTRY_SIZE), slot.hour)
            if not (slot.start <= first.when < slot.end and slot.start <= last.when < slot.end):
                raise BadEntries(f"{name} has entries of other times")
            file.first_offset, file.first_physical, file.last_offset = first.offset, first.physical, last.offset
            self._split.update(parents_of(slot))
        self._order = sorted(self._files)
        if any(slot in self._split for slot in self._files):
            raise BadCheckpoint("it names a slot and its parts")
        self.indexed, self.physical, self.dropped = known.indexed, known.physical, known.dropped
        for path in self._directory.iterdir():
            if path.name not in known.files and path.name != _CHECKPOINT:
                self._disk.unlink(path)

    def clear(self) -> None:
        """Know nothing any more; what is on disk goes. Raises OSError."""
        self._cache.close()
        self.generation += 1
        self._files.clear()
        self._order.clear()
        self._split.clear()
        self._unfinished.clear()
        self._dirty.clear()
        self._gone.clear()
        self.indexed, self.physical, self.dropped = 0, 0, (0, 0)
        checkpoint = self._directory / _CHECKPOINT
        if checkpoint.exists():  # first: without it the others do not count
            self._disk.unlink(checkpoint)
        for path in self._directory.iterdir():
            self._disk.unlink(path)

    def close(self) -> None:
        """Close the files."""
        self._cache.close()

    # -- questions --------------------------------------------------------------------------------------------------

    @property
    def entries(self) -> int:
        """Entries on disk, those that were delivered a moment ago among them."""
        parts = self._parts()
        return sum(file.size for slot, file in self._files.items() if slot not in parts) // ENTRY_SIZE

    def _parts(self) -> set[Slot]:
        """Files that do not count yet, since what is in them is in another one too."""
        return {part for parts in self._unfinished.values() for part in parts}

    @property
    def oldest_physical(self) -> int | None:
        """Log offset below which no record has a timer; None without timers."""
        return min((file.first_physical for file in self._files.values()), default=None)

    def smallest_pending(self, done: TimersDone | None, *, exactly: bool) -> int:
        """Queue offset below which all timers are delivered.

        `exactly`: files of which some are delivered are read; else the first entry of such a file counts as pending.
        Raises BadEntries, OSError.
        """
        least = self.indexed
        for slot, file in self._files.items():
            if file.first_offset >= least:
                continue
            if done is None or slot.start > done.due:
                least = file.first_offset
            elif slot.end > done.due or file.last_offset >= done.indexed:
                least = min(least, self._first_pending(slot, done) if exactly else file.first_offset)
        return least

    def _first_pending(self, slot: Slot, done: TimersDone) -> int:
        reading = SlotReading(self, slot)
        while piece := reading.piece():
            for entry in piece:
                if entry.offset >= done.indexed or (entry.when, entry.offset) > (done.due, done.offset):
                    return entry.offset
        return _LAST_OFFSET

    def first_from(self, least: int, begin: int, last: int) -> int:
        """The smallest queue offset, not below `least`, in the slots of the times from `begin` to `last`.

        `indexed` where there is none. Raises BadEntries, OSError.
        """
        found = self.indexed
        for slot, file in self._files.items():
            if slot.end > begin and slot.start <= last and file.first_offset < found and file.last_offset >= least:
                found = min(found, self._entry(slot, self._below(slot, least)).offset)
        return found

    def entry_of(self, offset: int) -> TimerEntry | None:
        """The entry with a queue offset; None where there is none, or none any more. Raises BadEntries, OSError."""
        for slot, file in self._files.items():
            if file.first_offset <= offset <= file.last_offset:
                entry = self._entry(slot, self._below(slot, offset))
                if entry.offset == offset:
                    return entry
        return None

    def next_slot(self, time: int) -> Slot | None:
        """The first slot that ends after a time. One that is being split stands before its parts."""
        at = bisect_left(self._order, Slot(time - HOUR_MS, 0))
        return next((slot for slot in islice(self._order, at, None) if slot.end > time), None)

    def size(self, slot: Slot) -> int:
        """Entries of a slot."""
        file = self._files.get(slot)
        return 0 if file is None else file.size // ENTRY_SIZE

    def slots(self) -> Iterator[tuple[Slot, int]]:
        """All slots with their entries, in order of time; nothing may be changed while one goes through them."""
        return ((slot, self.size(slot)) for slot in self._order)

    # -- reading ----------------------------------------------------------------------------------------------------

    def bounds(self, slot: Slot) -> tuple[int, int]:
        """Size and checksum of a slot's bytes."""
        file = self._files.get(slot)
        return (0, 0) if file is None else (file.size, file.crc)

    def pread(self, slot: Slot, begin: int, length: int) -> bytes:
        """Bytes of a slot's file. Raises BadEntries, OSError."""
        return self._pread(slot, begin, length)

    def _pread(self, slot: Slot, begin: int, length: int) -> bytes:
        data = os.pread(self._cache.get(str(self._directory / slot.name)), length, begin)
        if len(data) < length:
            raise BadEntries(f"{slot.name} ends before its size")
        return data

    # -- writing ----------------------------------------------------------------------------------------------------

    def add(self, entries: list[TimerEntry], indexed: int, physical: int) -> None:
        """Take entries of records below queue offset `indexed`, in their order. Raises OSError: none was taken."""
        by_slot: dict[Slot, list[TimerEntry]] = {}
        for entry in entries:
            by_slot.setdefault(self._slot_of(entry.when), []).append(entry)
        self._append(by_slot)
        self.indexed, self.physical = indexed, physical

    def _slot_of(self, when: int) -> Slot:
        slot = hour_of(when)
        while slot in self._split:
            slot = slot.within(when)
        return slot

    def _append(self, by_slot: dict[Slot, list[TimerEntry]]) -> None:
        packed: dict[Slot, bytes] = {}
        for slot, entries in by_slot.items():
            file = self._files.get(slot)
            path = self._directory / slot.name
            if file is None:
                os.close(self._disk.open(path, os.O_RDWR | os.O_CREAT))
            packed[slot] = data = pack_entries(entries)
            self._disk.pwrite(self._cache.get(str(path)), data, 0 if file is None else file.size)
        for slot, entries in by_slot.items():
            file = self._files.get(slot)
            if file is None:
                file = self._files[slot] = _File()
                insort(self._order, slot)
                if slot.name in self._gone:
                    self._gone.remove(slot.name)
            if not file.size:
                file.first_offset, file.first_physical = entries[0].offset, entries[0].physical
            file.crc = zlib.crc32(packed[slot], file.crc)
            file.size += len(packed[slot])
            file.last_offset = entries[-1].offset
            self._dirty.add(slot)

    def split(self, slot: Slot) -> Generator[list[TimerEntry], None, None]:
        """Move the entries of a slot to the slots of the next level, a piece at a time; gives each piece.

        What is added meanwhile goes to the slot, and is moved with it. Whoever stops in the middle leaves the slot as
        it was. Raises BadEntries: the index must be made anew. OSError.
        """
        parts = self._unfinished[slot] = set()
        try:
            reading = SlotReading(self, slot)
            while piece := reading.piece():
                by_slot: dict[Slot, list[TimerEntry]] = {}
                for entry in piece:
                    by_slot.setdefault(slot.within(entry.when), []).append(entry)
                parts |= by_slot.keys()
                self._append(by_slot)
                if reading.at_end:  # in the same turn: nothing is added in between
                    self._remove(slot)
                    self._split.add(slot)
                    del self._unfinished[slot]
                yield piece
        finally:
            if self._unfinished.get(slot) is parts:
                del self._unfinished[slot]
                for part in parts & self._files.keys():
                    self._remove(part)

    def split_empty(self, slot: Slot) -> None:
        """Let what comes for a slot go to its parts, where nothing has come yet."""
        if slot not in self._files:
            self._split.add(slot)

    def _remove(self, slot: Slot) -> None:
        del self._files[slot]
        self._order.remove(slot)
        self._dirty.discard(slot)
        self._cache.forget(str(self._directory / slot.name))
        self._gone.append(slot.name)

    def drop(self, indexed: int, when: int, offset: int) -> None:
        """Forget slots whose entries are all done: below queue offset `indexed`, up to time and offset."""
        for slot in list(self._order):
            if slot.end > when:
                break
            if self._files[slot].last_offset < indexed:
                self._remove(slot)
                self.dropped = max(self.dropped, (slot.end - 1, _LAST_OFFSET))
        needed = {parent for slot in self._files for parent in parents_of(slot)}
        self._split = {slot for slot in self._split if slot.end > when or slot in needed}

    def cut(self, indexed: int, physical: int) -> None:
        """The queue ends at that offset now: forget what lay after. Raises BadEntries, OSError."""
        for slot in list(self._order):
            file = self._files[slot]
            if file.last_offset < indexed:
                continue
            left = self._below(slot, indexed)
            if left == 0:
                self._remove(slot)
            else:
                file.size = left * ENTRY_SIZE
                file.crc = zlib.crc32(self.pread(slot, 0, file.size))
                file.last_offset = self._entry(slot, left - 1).offset
        self.indexed, self.physical = min(self.indexed, indexed), physical

    def _below(self, slot: Slot, offset: int) -> int:
        """How many entries of a slot lie below a queue offset."""
        return bisect_left(range(self.size(slot)), offset, key=lambda at: self._entry(slot, at).offset)

    def _entry(self, slot: Slot, at: int) -> TimerEntry:
        (entry,) = unpack_entries(self._pread(slot, at * ENTRY_SIZE, ENTRY_SIZE), slot.hour)
        return entry

    # -- checkpoint -------------------------------------------------------------------------------------------------

    def checkpoint(self) -> "PendingCheckpoint":
        """What is to be made durable now: `PendingCheckpoint.write`, which may run in a thread, then `written`."""
        parts = self._parts()
        files = {slot.name: (file.size, file.crc) for slot, file in self._files.items() if slot not in parts}
        known = TimerCheckpoint(self._rules, self.indexed, self.physical, self.dropped, files)
        dirty, self._dirty = self._dirty - parts, self._dirty & parts
        gone, self._gone = self._gone, []
        return PendingCheckpoint(
            self._directory, self._disk, known, [slot.name for slot in dirty], gone, self.generation
        )

    def written(self, pending: "PendingCheckpoint") -> list[Path]:
        """It is on disk: what it does not name is put aside; the files to be removed, which may be done in a thread.

        Raises OSError.
        """
        here = {slot.name for slot in self._files}
        aside = []
        for name in pending.gone:
            path = self._directory / name
            if name not in here and path.exists():
                aside.append(path.with_name(name + _GONE))
                self._disk.rename(path, aside[-1])
        return aside

    def remove(self, aside: list[Path]) -> None:
        """Remove files that were put aside; in a thread. Raises OSError."""
        for path in aside:
            self._disk.unlink(path)

    def not_written(self, pending: "PendingCheckpoint") -> None:
        """A checkpoint could not be written: its files are still to be made durable, or to go."""
        self._dirty |= {slot for slot in self._files if slot.name in pending.dirty}
        self._gone += [name for name in pending.gone if name not in self._gone]


class SlotReading:
    """Reads a slot from its beginning to its end, and says whether what it has read is what was written."""

    def __init__(self, index: TimerIndex, slot: Slot) -> None:
        self._index = index
        self._slot = slot
        self._at = 0
        self._crc = 0
        self._last = -1

    @property
    def at_end(self) -> bool:
        """Whether all that there is at present was read."""
        return self._at >= self._index.bounds(self._slot)[0]

    def piece(self) -> list[TimerEntry]:
        """The next entries, in order of queue offsets; none at the end.

        Raises BadEntries: the index must be made anew; at the end, also for what was given before. OSError.
        """
        slot = self._slot
        size, crc = self._index.bounds(slot)
        length = min(PIECE * ENTRY_SIZE, size - self._at)
        if length <= 0:
            return []
        data = self._index.pread(slot, self._at, length)
        self._at += length
        self._crc = zlib.crc32(data, self._crc)
        found = list(unpack_entries(data, slot.hour, self._last))
        self._last = found[-1].offset
        if any(not slot.start <= entry.when < slot.end for entry in found) or (self._at == size and self._crc != crc):
            raise BadEntries(f"{slot.name} is damaged")
        return found


class PendingCheckpoint:
    """A checkpoint on its way to the disk. It touches nothing of the index."""

    def __init__(
        self,
        directory: Path,
        disk: Disk,
        known: TimerCheckpoint,
        dirty: list[str],
        gone: list[str],
        generation: int,
    ) -> None:
        self._directory = directory
        self._disk = disk
        self._known = known
        self.dirty = dirty
        self.gone = gone
        self._generation = generation

    def is_of(self, index: TimerIndex) -> bool:
        """Whether the index was not made anew meanwhile."""
        return index.generation == self._generation

    def write(self) -> None:
        """Sync the files and write the checkpoint. Raises OSError."""
        for name in self.dirty:
            if name in self._known.files:
                fd = self._disk.open(self._directory / name, os.O_RDWR)
                try:
                    self._disk.sync(fd)
                finally:
                    os.close(fd)
        write_atomically(self._disk, self._directory / _CHECKPOINT, self._known.encode())
