"""Reading a range of the log as batches: what a task of the data source does."""

import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tandemmq.common.errors import Kind
from tandemmq.spark.errors import SparkJobError
from tandemmq.spark.reading.log_files import LogFile
from tandemmq.spark.reading.ranges import LogRange
from tandemmq.spark.reading.scan import ReadRange, ScanWanted
from tandemmq.spark.reading.walking import RangeWalker, walker
from tandemmq.spark.source.record_batches import record_batches, stretch_batch
from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.format.compiled.record_columns import RecordColumns, renumbered
from tandemmq.store.format.record_fields import physical_offset_at

_ROWS = 1 << 15
_PROOFS = (16 << 20, 64 << 20)
"""Bytes before a range that are looked at to prove where its first record begins."""

_PROOF = 8 << 20
"""Bytes of records without a gap that are proof: more than any record has."""


class BadRecords(SparkJobError):
    """Bytes that should be records are none."""

    kind = Kind.DAMAGED


def read_range(task: ReadRange, wanted: ScanWanted) -> Iterator[pa.RecordBatch]:
    """The batches of the records that begin in the range, then those of what is damaged in it. Raises OSError."""
    log_range = proven(task.range, check_crc=task.check_crc, last=task.last and task.limit is None)
    if log_range is None:
        return
    limit = sys.maxsize if task.limit is None else task.limit
    with RangeWalker(log_range, check_crc=task.check_crc, rows=_ROWS) as walking:
        for walk in walking.walks():
            columns = RecordColumns(walk)
            last = columns.all_rows()[-1:]
            # Only a record that is alone in its walk may reach beyond the range.
            if int(columns.physical_offset(last)[0] + columns.size(last)[0]) <= limit:
                yield from record_batches(columns, wanted)
        if task.damaged:
            yield from _damage(walking, task, wanted, limit)


def _damage(walking: RangeWalker, task: ReadRange, wanted: ScanWanted, limit: int) -> Iterator[pa.RecordBatch]:
    result, file = walking.result, walking.range.file
    stretches = [(damage.begin, damage.end) for damage in result.damage]
    if result.torn_at >= 0 and not (task.last and task.limit is None):
        stretches.append((result.torn_at, file.end))
    for begin, end in stretches:
        if begin < limit:
            at, stop = begin - file.start, min(end, limit) - file.start
            # A store that is writing may have finished since what looked damaged when a record after it was found.
            while (walk := walker().walk(walking.buffer, at, stop, file.start, check_crc=task.check_crc)).count:
                yield from record_batches(RecordColumns(walk), wanted)
                at = walk.position
            yield from damaged_batches(walking.buffer, file.start, at, stop, wanted)


def damaged_batches(
    buffer: ReadBuffer, base: int, begin: int, end: int, wanted: ScanWanted
) -> Iterator[pa.RecordBatch]:
    """Batches of ``buffer[begin:end]``, which holds no valid record, as invalid rows.

    What has the lengths of a record is a row with all its columns, where it stands; the rest is one row.
    """
    while begin < end:
        # Where the place is wrong, not the checksum, the records count as standing where the first one says.
        named = physical_offset_at(buffer, begin)
        walk = walker().walk(buffer, begin, end, named - begin, check_crc=False, limit=_ROWS)
        if not walk.count:
            stretch = stretch_batch(base + begin, base + end, wanted)
            if stretch is not None:
                yield stretch
            return
        columns = RecordColumns(walk)
        sizes = columns.size(columns.all_rows())
        places = base + begin + np.cumsum(sizes) - sizes
        yield from record_batches(RecordColumns(walk, places), wanted, valid=False)
        begin = walk.position


def batches_of_records(
    records: bytes | bytearray | memoryview, wanted: ScanWanted, *, check_crc: bool = True, damaged: bool = True
) -> Iterator[pa.RecordBatch]:
    """Batches of whole records one after the other, picked out of a log: what a store sends.

    A record with a wrong checksum is an invalid row, or none where ``damaged`` is False. Raises BadRecords if lengths
    are wrong, since then nobody knows where the next record begins.
    """
    buffer, offsets = renumbered(records)
    position = done = 0
    while position < len(buffer):
        walk = walker().walk(buffer, position, len(buffer), 0, check_crc=check_crc, limit=_ROWS)
        valid = walk.count > 0
        if not valid:
            walk = walker().walk(buffer, position, len(buffer), 0, check_crc=False, limit=1)
            if not walk.count:
                break
        if valid or damaged:
            columns = RecordColumns(walk, offsets[done : done + walk.count])
            yield from record_batches(columns, wanted, valid=valid)
        done += walk.count
        position = walk.position
    if position < len(records):
        raise BadRecords(f"Of {len(records):,} bytes that should be records, none begins at {position:,}.")


def proven(log_range: LogRange, *, check_crc: bool = True, last: bool = False) -> LogRange | None:
    """The same range with its first record proven to be one, and not part of another's body.

    Where records end in the range, it begins there; None if they end before it. ``last``: nothing needs to be told of a
    range in which no record begins: None.

    A range inside a file begins anywhere, and what looks like its first record may be a message that somebody sent as
    the body of another. A row of records without a gap that begins further before the range than any record is long can
    be no body; where there is none, the file is walked from its beginning.
    """
    if log_range.exact:
        return log_range
    if last and not _begins_in(log_range, check_crc):
        return None
    start = log_range.file.start
    for distance in (*_PROOFS, log_range.begin - start):
        low = max(start, log_range.begin - distance)
        first = low == start
        before = replace(log_range, begin=low, end=log_range.begin, exact=first)
        # Checksums are compared only where there is damage to find: a gap in the row is seen without.
        with RangeWalker(before, check_crc=check_crc and first, rows=_ROWS) as walking:
            for _walk in walking.walks():
                pass
        result = walking.result
        unbroken = result.first >= 0 and not result.damage and result.torn_at < 0
        if first or (unbroken and log_range.begin - result.first >= _PROOF):
            begin = result.next
            return replace(log_range, begin=begin, exact=True) if 0 <= begin < log_range.end else None
    return None


def has_record(file: LogFile) -> bool:
    """Whether a valid record stands anywhere in the file."""
    return _begins_in(LogRange(0, file, file.start, file.end, False), True)


def _begins_in(log_range: LogRange, check_crc: bool) -> bool:
    with RangeWalker(log_range, check_crc=check_crc, rows=1) as walking:
        return next(walking.walks(), None) is not None
