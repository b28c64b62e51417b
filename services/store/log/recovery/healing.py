"""Putting damaged stretches of the log right, in place, with bytes that a peer has of them; and looking for them.

A stretch is trusted again in this order, so that a process killed anywhere in between leaves all of it damaged:

1. All of its bytes are gathered and checked: whole valid records at exactly these places, from start to end.
   What does not fit is refused, and nothing is changed.
2. They are written and synced, but for records that are valid here, then read again with checksums.
3. The records get the queue units and index entries that are missing, and a checkpoint makes those durable.
4. ``tandem.damage`` no longer names the stretch.

Bytes that a killed process had written already are found valid by the next try.
"""

import asyncio
import logging
import mmap
import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.format.record import BLANK_SIZE
from tandemmq.store.format.record_fields import size_at
from tandemmq.store.format.sysflag import is_indexed_by_key
from tandemmq.store.format.walker import REASONS, Stop, Walk, WalkRow
from tandemmq.store.log.dispatch import Dispatcher
from tandemmq.store.log.edges.threads import in_thread
from tandemmq.store.log.errors import RepairRefused, StoreClosed, disk_error
from tandemmq.store.log.marks.checkpointer import Checkpointer
from tandemmq.store.log.marks.running_flags import Reason, RunningFlags
from tandemmq.store.log.parts import StoreParts
from tandemmq.store.log.queues.queue_repairs import QueueRepairs
from tandemmq.store.log.recovery.damage import DamagedRange
from tandemmq.store.log.recovery.rebuild import Rebuild
from tandemmq.store.log.recovery.restoring import Restoring
from tandemmq.store.log.segments.examining import Examined, examine, within_record
from tandemmq.store.log.segments.mapped_file import MappedFile
from tandemmq.store.log.segments.scan import LogScan

log = logging.getLogger(__name__)

_ROWS = 8_192
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Healed:
    """What a stretch holds again. ``replaced_bytes``: of records that were not valid, from first to last difference."""

    records: int
    replaced_bytes: int


class Healing:
    """The repairs of one store's log, one at a time."""

    def __init__(
        self,
        parts: StoreParts,
        flags: RunningFlags,
        dispatcher: Dispatcher,
        checkpointer: Checkpointer,
        restoring: Restoring,
        repairs: QueueRepairs,
    ) -> None:
        """Do nothing before `heal`."""
        self._parts = parts
        self._flags = flags
        self._dispatcher = dispatcher
        self._checkpointer = checkpointer
        self._restoring = restoring
        self._repairs = repairs
        self._task: asyncio.Task[Healed] | None = None
        self._stopped = False

    async def stop(self) -> None:
        """Begin no more; what is under way counts as damaged still."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def heal(self, begin: int, end: int, source: str, chunks: AsyncIterator[bytes]) -> Healed:
        """Replace the bytes of a damaged stretch by those in ``chunks``.

        Raises:
            RepairRefused: it is not damaged, the bytes do not mend it, or nothing can be repaired at present. Nothing
                was changed.
            NotWritable, FlushFailed: the disk refused; the stretch counts as damaged still.
            StoreClosed: the store is being shut down; likewise.
        """
        await self._restoring.looked()
        damage = self._check(begin, end)
        self._task = task = asyncio.create_task(self._heal(damage, chunks), name="repair of the log")
        try:
            healed = await task
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait([task])
            if self._stopped:
                raise StoreClosed("The store is being shut down; the log is damaged still.") from None
            raise
        except OSError as error:
            raise disk_error(error, f"The log cannot be repaired at offset {begin:,}") from error
        self._parts.observer.repaired(healed.records, end - begin)
        log.warning(
            "Healed the commit log at offsets %d-%d with bytes from %s: %d records, %d bytes were replaced",
            begin, end, source, healed.records, healed.replaced_bytes,
        )  # fmt: skip
        return healed

    def _check(self, begin: int, end: int) -> DamagedRange:
        """The damage that is to be healed. Raises RepairRefused, StoreClosed."""
        if self._stopped:
            raise StoreClosed("The store is being shut down.")
        if self._flags.holds(Reason.FLUSH_FAILED):
            raise RepairRefused(f"Nothing is repaired: {self._flags.why}.")
        busy = self._task is not None and not self._task.done()
        if busy or self._restoring.running or not self._checkpointer.complete:
            raise RepairRefused(
                "Another stretch is being repaired, or queues and index are.", remedy="Try again when that is over."
            )
        for known in self._parts.damage.ranges:
            if (known.begin, known.end, known.kind) == (begin, end, "rot"):
                if end > self._dispatcher.position:
                    raise RepairRefused("The damage has not been read around yet.", remedy="Try again in a moment.")
                return known
        raise RepairRefused(f"Log offsets {begin:,}-{end:,} are not known as a damaged stretch.")

    async def _heal(self, damage: DamagedRange, chunks: AsyncIterator[bytes]) -> Healed:
        with self._room(damage.end - damage.begin) as data:
            await _gather(data, chunks)
            healed = await in_thread(self._write_all, damage, data)
        await self._trust(damage)
        return healed

    @contextmanager
    def _room(self, size: int) -> Iterator[mmap.mmap]:
        """Memory for a stretch, which may be a whole file's: on disk, without a name. Raises OSError."""
        with tempfile.TemporaryFile(dir=self._parts.config.store_path_root_dir) as file:
            self._parts.disk.allocate(file.fileno(), 0, size)
            with self._parts.disk.map(file.fileno(), size) as room:
                yield room

    # -- looking ------------------------------------------------------------------------------------------------------

    async def examine(self, begin: int, end: int, *, seek: bool = False, most: int = 0, note: bool = False) -> Examined:
        """Walk a stretch of the log again with checksums, in a thread; see `examining.examine`.

        With ``note`` rot is remembered, and read around from now on; a ``begin`` within a record, as somebody who does
        not know better may ask for, is no rot. Raises OSError.
        """
        self._dispatcher.catch_up()  # a message that somebody was told of is looked at
        limit = self._dispatcher.position
        look = partial(examine, self._parts, begin, min(end, limit), limit=limit, seek=seek, fresh=seek, most=most)
        found = await in_thread(look)
        damage = found.damage
        if not note or damage is None or damage.kind != "rot":
            return found
        if damage.begin != begin or not await in_thread(partial(within_record, self._parts, begin)):
            self._parts.note_damage(damage)
        return found

    # -- checking and writing, in a thread --------------------------------------------------------------------------

    def _write_all(self, damage: DamagedRange, data: mmap.mmap) -> Healed:
        """Raises RepairRefused, OSError."""
        stretches: list[tuple[MappedFile, int, int]] = []
        at = damage.begin
        while at < damage.end:
            file = self._parts.files.find(at)
            if file is None:
                raise RepairRefused(f"The log file of offset {at:,} is gone.")
            stretches.append((file, at, min(file.end, damage.end)))
            at = stretches[-1][2]
        records = 0
        for file, begin, end in stretches:  # all of them before the first byte is written
            for row in self._records(data, damage.begin, file, begin, end):
                own = self._record_here(file, row.position)
                if own is not None and own.position != row.position + row.size - file.start:
                    raise RepairRefused(f"Another record is valid here at log offset {row.position:,}.")
                records += 1
        replaced = sum(self._write(data, damage.begin, *stretch) for stretch in stretches)
        return Healed(records, replaced)

    def _records(self, data: ReadBuffer, base: int, file: MappedFile, begin: int, end: int) -> Iterator[WalkRow]:
        """The records that are to fill ``[begin, end)`` of a file; in ``data`` they lie ``base`` lower.

        Raises RepairRefused at the first byte that is neither a record's nor the blank's at the end of the file.
        """
        at = begin
        while at < end:
            walk = self._walk(data, at - base, end - base, base)
            yield from walk.rows()
            at = base + walk.position
            if walk.stop == Stop.BLANK and end == file.end:
                size = size_at(data, at - base)
                if BLANK_SIZE <= size == end - at:
                    return
            elif walk.stop == Stop.ROWS_FULL or at == end:
                continue
            raise RepairRefused(f"What came for log offset {at:,} does not mend it: {_why(walk.stop)}.")

    def _record_here(self, file: MappedFile, offset: int) -> Walk | None:
        """The one record that is valid at an offset of our own log; None if there is none."""
        at = offset - file.start
        walk = self._walk(file.map, at, file.size, file.start, most=1)
        return walk if walk.count else None

    def _write(self, data: mmap.mmap, base: int, file: MappedFile, begin: int, end: int) -> int:
        """Write what differs, sync, and read it again; gives the bytes that were replaced."""
        for row in self._records(data, base, file, begin, end):
            if self._record_here(file, row.position) is not None:  # stays, whatever the peer has
                here = row.position - file.start
                data[row.position - base : row.position - base + row.size] = file.map[here : here + row.size]
        replaced = 0
        fd = self._parts.disk.open(file.path, os.O_RDWR)  # its own: what the flush thread must hear of, it hears
        try:
            for at in range(begin, end, _PIECE):
                stop = min(at + _PIECE, end)
                wanted, here = data[at - base : stop - base], at - file.start
                first, behind = _differing(wanted, file.map[here : here + len(wanted)])
                if first < behind:
                    self._parts.disk.pwrite(fd, wanted[first:behind], here + first)
                    replaced += behind - first
            self._parts.disk.sync(fd)
        finally:
            os.close(fd)
        for _ in self._records(file.map, file.start, file, begin, end):
            pass
        return replaced

    def _walk(self, data: ReadBuffer, begin: int, end: int, base: int, most: int = _ROWS) -> Walk:
        return self._parts.walkers.best.walk(data, begin, end, base, check_crc=True, limit=most)

    # -- trusting ---------------------------------------------------------------------------------------------------

    async def _trust(self, damage: DamagedRange) -> None:
        """Let the stretch be read again, with queue units and index entries. Raises RepairRefused, FlushFailed."""
        parts = self._parts
        parts.damage.begin_healing(damage)
        try:
            await Rebuild(parts, damage.end).restore_stretch(damage.begin)
            self._repairs.search_again()
            if await self._lacks_entries(damage.begin, damage.end):
                await self._restoring.index_anew()
            else:
                await self._checkpointer.take()
            if not self._checkpointer.complete:
                raise RepairRefused("The index could not be made anew.", remedy="The store's log says why.")
            parts.damage.healed()
        except BaseException:
            parts.damage.healing_failed(damage)
            raise

    async def _lacks_entries(self, begin: int, end: int) -> bool:
        """Whether the index does not find each record of a stretch by each of its keys."""
        index = self._parts.index
        if index is None:
            return False
        scan = LogScan(
            self._parts.files, self._parts.walkers.best, self._parts.damage, check_crc=False, delay_levels=(), rows=256
        )
        for step in scan.steps(begin, end):
            for row in step.walk.rows() if step.walk is not None else ():
                keys = [*([row.unique_key] if row.unique_key else []), *row.keys]
                for key in keys if is_indexed_by_key(row.sys_flag) else ():
                    if row.position not in index.query(row.topic, key, row.store_timestamp, row.store_timestamp):
                        return True
            await asyncio.sleep(0)
        return False


async def _gather(room: mmap.mmap, chunks: AsyncIterator[bytes]) -> None:
    """Ends when there is no more room. Raises RepairRefused unless exactly as many bytes come as there is room for."""
    at = 0
    async for chunk in chunks:
        if at + len(chunk) > len(room):
            raise RepairRefused("More bytes came than are damaged.")
        room[at : at + len(chunk)] = chunk
        at += len(chunk)
        if at == len(room):
            return
    raise RepairRefused(f"Of {len(room):,} bytes {at:,} came.")


def _why(stop: Stop) -> str:
    return "the blank does not end with its file" if stop == Stop.BLANK else REASONS.get(stop, stop.name)


def _differing(wanted: bytes, present: bytes) -> tuple[int, int]:
    """From the first to after the last byte that differs; both 0 where none does."""
    if wanted == present:
        return 0, 0
    first = next(at for at, (one, other) in enumerate(zip(wanted, present, strict=True)) if one != other)
    last = next(at for at in range(len(wanted) - 1, -1, -1) if wanted[at] != present[at])
    return first, last + 1
