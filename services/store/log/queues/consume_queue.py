"""One consume queue: the physical offset of every message of one topic and queue id (RocketMQ: ``ConsumeQueue``).

Unit *n* of 20 bytes stands at byte ``20 n`` of the queue, which is cut into files of equal size; the position of a
unit is the message's queue offset, so a queue can be written, checked and rebuilt in any order. Written with
``pwrite`` into files of full length whose blocks are reserved step by step: a full disk is an error of the call,
and a thousand idle queues cost little.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from tandemmq.common.files.replacing import create_file
from tandemmq.store.format.record import Record
from tandemmq.store.format.sysflag import is_indexed_in_queue
from tandemmq.store.format.unit import (
    BLANK_UNIT,
    UNIT_SIZE,
    Unit,
    impossible_units,
    is_blank,
    is_empty,
    place_of,
    unpack_units,
)
from tandemmq.store.log.edges.disk import Disk, data_stretches, is_zero
from tandemmq.store.log.edges.file_cache import FileCache
from tandemmq.store.log.observer import NullObserver, Observer
from tandemmq.store.log.queues.unsynced import Unsynced
from tandemmq.store.log.replica.confirmed import Confirmed
from tandemmq.store.log.segments.mapped_file import file_name
from tandemmq.store.log.segments.mapped_file_queue import list_files, remove_leftovers

log = logging.getLogger(__name__)

_STEP = 64 * 1024  # blocks are reserved in steps of so many bytes
_PAGE = 4096
_LOOK_BACK = 8  # so many units are asked where a single one might be wrong
_IN_FLIGHT = 64  # so many units at the end of a queue are looked at first for what is not confirmed yet
_PIECE = 4_096  # so many units are looked at at once for where a gap begins
_BLANKS_MAX = 1_000  # no further is a message looked for after blanks, to tell whether what is before may be seen


class ConsumeQueue:
    """Offsets, reads, writes and waiters of one queue. Offsets are queue offsets (units), not bytes."""

    def __init__(
        self,
        directory: Path,
        file_size: int,
        disk: Disk,
        cache: FileCache,
        confirmed: Confirmed | None = None,
        observer: Observer | None = None,
    ) -> None:
        """Describe the queue in ``directory`` (``<topic>/<queueId>``); `load` or the first write makes it real.

        ``confirmed`` limits `readable_end`; ``observer`` is told of messages with a wrong number.
        """
        self._observer = observer or NullObserver()
        self._confirmed = confirmed or Confirmed()
        self.directory = directory
        self._prefix = f"{directory}/"
        self._named = -1, ""
        self.topic = directory.parent.name
        self.queue_id = int(directory.name)
        self.units_per_file = file_size // UNIT_SIZE
        self._file_size = self.units_per_file * UNIT_SIZE
        self._disk = disk
        self._cache = cache
        self._starts: list[int] = []
        self._reserved = 0
        self.min_offset = 0
        self.max_offset = 0
        self.last_end = 0  # log offset after the last unit's record
        self.rebuilding = False
        self.dirty_bytes = 0
        self._dirty_files: set[int] = set()
        self._dirty_directories: set[Path] = set()  # with names that are not durable
        self.corrected_for = 0
        """Where the log began when the first readable offset was looked for; see `correct_min_offset`."""
        self.kept_from = 0
        """Messages before this offset are older than their topic keeps them; see `TopicRetention`."""
        self._waiters: dict[asyncio.Future[None], int] = {}

    # -- files ------------------------------------------------------------------------------------------------------

    def load(self, *, read_only: bool = False) -> None:
        """Look at the files; positions are found later (`recover_end`, `correct_min_offset`).

        Raises:
            FileSizeMismatch, ForeignFile: see `list_files`.
        """
        self._starts = list_files(self.directory, self._file_size, "mappedFileSizeConsumeQueue", derived=True)
        if not read_only:
            remove_leftovers(self.directory, self._disk)

    @property
    def files(self) -> list[Path]:
        """Paths of the queue's files, oldest first."""
        return [self._path(start) for start in self._starts]

    @property
    def first_offset_on_disk(self) -> int:
        """Queue offset of the first unit of the oldest file."""
        return self._starts[0] // UNIT_SIZE if self._starts else 0

    @property
    def has_missing_file(self) -> bool:
        """Whether a file between the first and the last is gone."""
        return any(b - a != self._file_size for a, b in zip(self._starts, self._starts[1:], strict=False))

    def _path(self, start: int) -> Path:
        return self.directory / file_name(start)

    def _name(self, start: int) -> str:
        """The path as text, for the file cache; that of the last one asked for is kept."""
        if start != self._named[0]:
            self._named = start, self._prefix + file_name(start)
        return self._named[1]

    def _ensure_file(self, start: int) -> None:
        """Have a file. The loop does not wait for the disk: file and names are synced before a checkpoint counts."""
        if self._starts and (start == self._starts[-1] or start in self._starts):
            return
        self._dirty_directories.add(self.directory)
        if not self.directory.is_dir():
            self.mark_names()
            self.directory.mkdir(parents=True, exist_ok=True)
        path = self._path(start)
        create_file(
            self._disk,
            path,
            path.with_name(path.name + ".tmp"),
            lambda fd: self._disk.truncate(fd, self._file_size),
            durable=False,
        )
        self._dirty_files.add(start)
        self._cache.forget(self._name(start))  # one of that name may have been there, and gone
        self._starts.append(start)
        self._starts.sort()
        self._reserved = 0

    # -- read -------------------------------------------------------------------------------------------------------

    def read(self, offset: int, count: int) -> list[Unit]:
        """Give up to ``count`` units from ``offset``; fewer at the end of the queue or of a file."""
        count = min(count, self.max_offset - offset)
        return [] if count <= 0 or offset < 0 else unpack_units(self.read_bytes(offset, count))

    def read_bytes(self, offset: int, count: int) -> bytes:
        """Give the bytes of up to ``count`` units from ``offset``, whatever they hold.

        Not beyond the end of the file.
        """
        position = offset * UNIT_SIZE
        start = position - position % self._file_size
        if start not in self._starts:
            return b""
        length = min(count * UNIT_SIZE, start + self._file_size - position)
        return os.pread(self._cache.get(self._name(start)), length, position - start)

    def unit(self, offset: int) -> Unit | None:
        """Give the unit at ``offset`` as it lies on disk, below the end of the queue or not.

        None where there is no file.
        """
        data = self.read_bytes(offset, 1)
        return unpack_units(data)[0] if len(data) == UNIT_SIZE else None

    # -- write ------------------------------------------------------------------------------------------------------

    def append_run(self, first: int, units: bytes, last_end: int) -> int:
        """Append units with consecutive offsets from ``first``; what the queue has already is left alone.

        A gap before ``first`` (the queue begins there, or its records were lost) is filled with blank units, which
        readers skip; units never move from their place (trap T19). A number that cannot be true is left out, and so is
        one that is `misnumbered`, as soon as that is known. Gives the number of units added.
        """
        count = len(units) // UNIT_SIZE
        end = first + count
        if (impossible := impossible_units(first, units)) == count:
            return 0
        if impossible:
            units, first = units[impossible * UNIT_SIZE :], first + impossible
        physical = place_of(units)
        if first < self.max_offset:
            self.take_back(first, physical)
            self._tell_taken(first, units)
        elif len(units) == UNIT_SIZE and self.misnumbered(self.max_offset, first, physical):
            self.end_at(self.max_offset + 1)
            return 0
        if end <= self.max_offset:
            return 0
        if first < self.max_offset:
            units = units[(self.max_offset - first) * UNIT_SIZE :]
            first = self.max_offset
        if first > self.max_offset:
            self._fill_gap(first)
        self.put(first, units)
        self.max_offset = end
        self.last_end = last_end
        if self._waiters:
            self.wake()
        return end - first

    def misnumbered(self, expected: int, number: int, physical: int) -> bool:
        """Whether the record at log offset ``physical`` says a ``number`` that is too high; that is told then.

        No checksum covers QUEUEOFFSET. It is where the queue's unit of the ``expected`` number knows the record.
        """
        unit = self._message_at(expected) if number > expected else None
        if unit is None or unit.physical_offset != physical:
            return False
        self.tell_misnumbered(number, physical, f"it is {expected}")
        return True

    def take_back(self, first: int, physical: int) -> bool:
        """End before the last unit if its number was too high, as the record at log offset ``physical`` shows.

        That comes after it in the log, and is number ``first``, in the gap that the last one has made: numbers only
        rise. Without that, all that come after it would be hidden until the queue has come so far. True if it was so.
        """
        number = self.max_offset - 1
        if first > number or not 0 < self.last_end <= physical:
            return False
        gap = self._gap_before(number, min(first, number - 1))
        known = self._message_at(first) if first < gap else None
        if gap == number or (first < gap and (known is None or known.physical_offset != physical)):
            return False
        odd = self.unit(number)
        self.tell_misnumbered(number, 0 if odd is None else odd.physical_offset, f"the next one is {first}")
        self.go_back(max(gap, first))
        return True

    def _gap_before(self, number: int, least: int) -> int:
        """Where the blanks and places without a file begin that lie right before ``number``, not below ``least``."""
        while number > least:
            begin = max(least, (number - 1) // self.units_per_file * self.units_per_file, number - _PIECE)
            units = self.read_bytes(begin, number - begin)
            if units and units != BLANK_UNIT * (number - begin):
                while units.endswith(BLANK_UNIT):
                    units, number = units[:-UNIT_SIZE], number - 1
                break
            number = begin
        return number

    def go_back(self, end: int) -> None:
        """End at ``end``; what lies after that is cleared."""
        self.end_at(end)
        self.min_offset = min(self.min_offset, end)
        self.clear_beyond_end()
        if self.first_offset_on_disk > end:
            self._drop_first_file()

    def tell_misnumbered(self, number: int, physical: int, why: str) -> None:
        """Say that a message has a number that is not its own, so that it is not served."""
        log.error(
            "The message at log offset %d says that it is number %d of queue %d of topic %s, but %s: it is damaged",
            physical, number, self.queue_id, self.topic, why,
        )  # fmt: skip
        self._observer.found("message", 1)

    def tell_changed(self, number: int, record: Record) -> None:
        """Say that the record of message ``number`` names another queue by now, or is in none."""
        says = f"of queue {record.queue_id} of topic {record.topic}"
        log.error(
            "Message %d of queue %d of topic %s is damaged: its record at log offset %d says that it is %s",
            number, self.queue_id, self.topic, record.physical_offset,
            says if is_indexed_in_queue(record.sys_flag) else "in no queue",
        )  # fmt: skip
        self._observer.found("message", 1)

    def _tell_taken(self, first: int, units: bytes) -> None:
        """Say that records are not served whose numbers others have that come before them in the log."""
        have = self.read_bytes(first, max(0, min(len(units) // UNIT_SIZE, self.max_offset - first)))
        if units.startswith(have):
            return  # the usual case: they are dispatched once more
        taken = [
            (there.physical_offset, here.physical_offset)
            for there, here in zip(unpack_units(have), unpack_units(units[: len(have)]), strict=True)
            if there.physical_offset < here.physical_offset and not (is_blank(there) or is_empty(there))
        ]
        if taken:
            log.error(
                "%d records from log offset %d on are not served: queue %d of topic %s has their numbers for others, "
                "from log offset %d on", len(taken), taken[0][1], self.queue_id, self.topic, taken[0][0],
            )  # fmt: skip
            self._observer.found("message", len(taken))

    def _fill_gap(self, first: int) -> None:
        start = self.max_offset
        if not self._starts or self.min_offset == start:
            self.min_offset = first  # nothing before it can be read: there was nothing, or it has expired
        if not self._starts:
            start = first - first % self.units_per_file
        self.put(start, BLANK_UNIT * (first - start))

    def put(self, offset: int, units: bytes) -> None:
        """Write units at their place, without moving the end of the queue: rebuilds do this anywhere below it.

        In a new oldest file they are the first, so blanks fill what lies before them, as in a gap: units that were
        never written may be messages.
        """
        position, size = offset * UNIT_SIZE, self._file_size
        start = position - position % size
        if not self._starts or start < self._starts[0]:
            self._put_into(start, start, BLANK_UNIT * ((position - start) // UNIT_SIZE))
        while position + len(units) > start + size:
            rest = start + size - position
            self._put_into(start, position, units[:rest])
            units = units[rest:]
            position = start = start + size
        if units:
            self._put_into(start, position, units)

    def _put_into(self, start: int, position: int, units: bytes) -> None:
        """Write units of one file."""
        if not self._starts or start != self._starts[-1]:
            self._ensure_file(start)
        fd = self._cache.get(self._name(start))
        end = position + len(units)
        if end > self._reserved:
            self._reserve(fd, start, position, len(units))
        self._disk.pwrite(fd, units, position - start)
        self._dirty_files.add(start)
        self.dirty_bytes += len(units)

    def _reserve(self, fd: int, start: int, position: int, length: int) -> None:
        """Reserve blocks ahead of the write position, at the end of the queue only."""
        at = max(self._reserved - start, 0) or (position - start) // _PAGE * _PAGE
        stop = min((position - start + length) // _STEP * _STEP + _STEP, self._file_size)
        self._disk.allocate(fd, at, stop - at)
        self._reserved = start + stop

    # -- ends -------------------------------------------------------------------------------------------------------

    def recover_end(self, limit: int) -> None:
        """Find the end of the queue: after its last unit whose record lies below log offset ``limit``.

        Blanks do not count as messages (trap T5), an empty unit never does (trap T6). Binary search: below the end
        every unit points below ``limit`` or is blank, from the end on it is empty or points at or above it.
        """
        self.max_offset, self.last_end = self.first_offset_on_disk, 0
        for start in reversed(self._starts):
            low, high = start // UNIT_SIZE, start // UNIT_SIZE + self.units_per_file
            first = low
            while low < high:
                middle = (low + high) // 2
                unit = self.unit(middle)
                if unit is not None and not is_empty(unit) and 0 <= unit.physical_offset < limit:
                    low = middle + 1
                else:
                    high = middle
            if low > first:
                self._end_at(low)
                return

    def _end_at(self, offset: int) -> None:
        self.max_offset = offset
        while offset > self.first_offset_on_disk:
            unit = self.unit(offset - 1)
            if unit is not None and not is_blank(unit) and unit.size > 0:
                self.last_end = unit.physical_offset + unit.size
                return
            offset -= 1
        self.max_offset = self.first_offset_on_disk  # nothing but pre-fill: an empty queue

    def end_at(self, offset: int) -> None:
        """Set the end of the queue, known from elsewhere (a manifest that is current)."""
        self.max_offset = offset
        self.kept_from = min(self.kept_from, offset)  # whatever gets these numbers next is younger
        unit = self.unit(offset - 1) if offset > 0 else None
        self.last_end = unit.physical_offset + unit.size if unit is not None and not is_blank(unit) else 0

    def end_not_before(self, offset: int) -> None:
        """Let the queue go on at ``offset`` at least; what it lacks before that is not there to be read."""
        if self.max_offset < offset:
            if self.min_offset == self.max_offset:
                self.min_offset = offset
            self.max_offset, self.last_end = offset, 0

    def clear_beyond_end(self) -> bool:
        """Zero whatever lies after the end of the queue, so that it can never come back (trap T1).

        True if there was any.
        """
        end = self.max_offset * UNIT_SIZE
        found = False
        for start in [start for start in self._starts if start >= max(end, 1) and start != self._starts[0]]:
            self._disk.unlink(self._path(start))
            self._cache.forget(self._name(start))
            self._starts.remove(start)
            found = True
        if self._starts:
            start = self._starts[-1]
            found |= self._zero(start, max(end - start, 0))
        self._reserved = 0
        return found

    def _zero(self, start: int, begin: int) -> bool:
        fd, found = self._cache.get(self._name(start)), False
        for first, stop in data_stretches(fd, begin, self._file_size):
            if not is_zero(os.pread(fd, stop - first, first)):
                self._disk.pwrite(fd, bytes(stop - first), first)
                self._dirty_files.add(start)
                found = True
        return found

    def correct_min_offset(self, log_min: int, *, compared: bool = False) -> None:
        """Set the first readable offset: the first unit that is no blank and points at or above ``log_min``.

        A queue whose messages have all expired is empty, but keeps counting where it stood. Unless the queue has been
        ``compared`` with the log, a unit that was never written counts as readable: it may be wrong, and readers see to
        it. One that points below ``log_min`` counts for nothing where one before it does not.
        """
        self.corrected_for = log_min
        if not self._starts:
            self.min_offset = self.max_offset
            return
        low, high = max(self.min_offset, self.first_offset_on_disk), self.max_offset
        if low < high and (first := self._message_at(low)) is not None and first.physical_offset >= log_min:
            self.min_offset = low  # the usual case
            return
        low = self._search(low, high, high, lambda unit: unit.physical_offset >= log_min)
        low = self._not_misled(low, log_min)
        while low < self.max_offset and self._message_at(low) is None:
            unit = self.unit(low)
            if not compared and unit is not None and not is_blank(unit):
                break
            low += 1
        self.min_offset = min(low, self.max_offset)
        if compared:
            self._blank_head()

    def _blank_head(self) -> None:
        """Put blanks where nothing was ever written before the first readable unit: a power cut may have taken them.

        They would count as readable again at a start that compares nothing.
        """
        begin = self.first_offset_on_disk
        units = self.read_bytes(begin, self.min_offset - begin) if begin < self.min_offset else b""
        never_written = bytes(UNIT_SIZE)
        for at in range(0, len(units), UNIT_SIZE) if never_written in units else ():
            if units[at : at + UNIT_SIZE] == never_written:
                self.put(begin + at // UNIT_SIZE, BLANK_UNIT)

    def _not_misled(self, offset: int, log_min: int) -> int:
        """Go back from where a search has ended, as far as units shortly before it are readable."""
        least = max(self.min_offset, self.first_offset_on_disk)
        number = offset
        while number > max(offset - _LOOK_BACK, least):
            number -= 1
            unit = self._message_at(number)
            if unit is not None and unit.physical_offset >= log_min:
                offset = number
        return offset

    @property
    def readable_begin(self) -> int:
        """Offset of the first message that readers may see: the first there is of those that their topic keeps."""
        return max(self.min_offset, min(self.kept_from, self.max_offset))

    @property
    def readable_end(self) -> int:
        """Offset after the last message that readers may see: the end of the queue, or before what is unconfirmed."""
        limit, end = self._confirmed.limit, self.max_offset
        if 0 < self.last_end <= limit or end == self.min_offset:
            return end
        begin = max(self.min_offset, end - _IN_FLIGHT)
        units = self.read_bytes(begin, end - begin)
        if len(units) == (end - begin) * UNIT_SIZE and (count := self._confirmed.count(units)):
            return begin + count
        return self._search(self.min_offset, end, _BLANKS_MAX, lambda unit: unit.end > limit)

    def _search(self, low: int, high: int, most: int, reached: Callable[[Unit], bool]) -> int:
        """The first offset in a range with a message of which ``reached`` is true, as of all after it; else ``high``.

        Blanks lie before the first message, and where damage in the log has taken some: up to ``most`` units after a
        blank are looked at for the message that follows.
        """
        while low < high:
            middle = probe = (low + high) // 2
            unit: Unit | None = None
            while probe < min(high, middle + most) and (unit := self._message_at(probe)) is None:
                probe += 1
            if unit is None or reached(unit):
                high = middle
            else:
                low = probe + 1
        return low

    def _message_at(self, offset: int) -> Unit | None:
        """The unit at ``offset`` if it stands for a message: neither blank nor empty."""
        unit = self.unit(offset)
        return None if unit is None or is_blank(unit) or is_empty(unit) else unit

    def drop_files_below(self, log_min: int) -> list[Path]:
        """Remove leading files whose messages are all gone from the log; never the last file. Gives the removed paths.

        None of a queue that is being rebuilt: what looks empty may be about to be restored.
        """
        removed: list[Path] = []
        while len(self._starts) > 1 and not self.rebuilding:
            start = self._starts[0]
            offsets = range((start + self._file_size) // UNIT_SIZE - 1, start // UNIT_SIZE - 1, -1)
            messages = filter(None, map(self._message_at, offsets))
            if any(unit.physical_offset >= log_min for unit in islice(messages, _LOOK_BACK)):
                break  # the last one would say so, but it may be wrong
            removed.append(self._drop_first_file())
        return removed

    def _drop_first_file(self) -> Path:
        path = self._path(self._starts[0])
        self._disk.unlink(path)
        self._cache.forget(str(path))
        self._dirty_files.discard(self._starts.pop(0))
        return path

    def take_over(self, fresh: "ConsumeQueue", log_min: int) -> None:
        """Go on with the files of another queue, whose directory has been put in the place of this one's.

        Those who wait stay, and are woken where the other has what they wait for. ``log_min`` is where the log begins.
        """
        for start in self._starts:
            self._cache.forget(self._name(start))
        self._starts, self._dirty_files, self._reserved = fresh._starts, fresh._dirty_files, 0
        if fresh._dirty_directories:
            self.mark_names()
        self.min_offset, self.max_offset, self.last_end = fresh.min_offset, fresh.max_offset, fresh.last_end
        self.dirty_bytes, self.rebuilding = fresh.dirty_bytes, False
        self.correct_min_offset(log_min)
        self.wake()

    # -- flush and waiters ------------------------------------------------------------------------------------------

    def take_dirty(self) -> Unsynced:
        """Give what was written and made since the last call; the caller syncs it."""
        files = [self._path(start) for start in self._dirty_files if start in self._starts]
        taken = Unsynced(files, list(self._dirty_directories))
        self._dirty_files.clear()
        self._dirty_directories.clear()
        self.dirty_bytes = 0
        return taken

    @property
    def is_dirty(self) -> bool:
        """Whether anything was written or made that has not been handed out for syncing."""
        return bool(self._dirty_files or self._dirty_directories)

    def mark_dirty(self, taken: Unsynced | None = None) -> None:
        """Let what was ``taken`` be synced again, all by default: at start-up it may be in the page cache only."""
        self._dirty_files.update(self._starts if taken is None else (int(path.name) for path in taken.files))
        if taken is None:
            self.mark_names()
        else:
            self._dirty_directories.update(taken.directories)

    def mark_names(self) -> None:
        """Let the names of files and directories be synced: a process that was killed may not have come to that."""
        topic = self.directory.parent
        self._dirty_directories.update((self.directory, topic, topic.parent))

    def wait_beyond(self, offset: int) -> "asyncio.Future[None]":
        """Give a future that is done when there is a message to read at ``offset``. Cancel it to stop waiting."""
        future = asyncio.get_running_loop().create_future()
        self._waiters[future] = offset
        future.add_done_callback(self._waiters.pop)  # woken, or not waiting any more
        if self.max_offset > offset:
            self.wake()
        return future

    def wake(self) -> None:
        """Tell those who wait for what may be read by now; where more is there, look again when it is confirmed."""
        end = self.readable_end
        for future, offset in self._waiters.items():
            if end > offset and not future.done():
                future.set_result(None)
        if end < self.max_offset:
            self._confirmed.hold(self)
