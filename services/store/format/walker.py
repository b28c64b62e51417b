"""Walking a commit log file: what recovery, dispatch, rebuild and audit do with it.

A walker checks one record after the other and collects what consume queues and index need. There are two with the same
results: the readable one (python_walker.py), which needs nothing, and the compiled one (package compiled), 20 times
faster, a part of the compiled core.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple, Protocol

from tandemmq.store.format.buffers import ReadBuffer, WriteBuffer
from tandemmq.store.format.unit import UNIT_SIZE, impossible_units, place_of, unpack_units

DEFAULT_LIMIT = 65536


class Stop(IntEnum):
    """Why a walk stopped where it did. Checks are made in the order of the comments; the first that fails counts."""

    END = 0
    """1. Reached ``end``, or fewer than 4 bytes before it."""
    BLANK = 1
    """5. The end-of-file blank: go on with the next file."""
    ROWS_FULL = 2
    """2. ``limit`` records collected: call again from ``position``."""
    ZERO = 3
    """4. Eight zero bytes: nothing was written here."""
    BAD_MAGIC = 4
    """6. Neither a record nor a blank."""
    BAD_SIZE = 5
    """7. TOTALSIZE below the least. 9. The lengths inside do not add up to TOTALSIZE."""
    BAD_CRC = 6
    """11. The checksum of the body (or the record) is wrong, or the last text ends in a zero byte (torn)."""
    BAD_POSITION = 7
    """10. PHYSICALOFFSET is not where the record stands: an old one, left behind by a truncation (trap T1)."""
    INCOMPLETE = 8
    """3. Fewer than 8 bytes before ``end``. 8. TOTALSIZE runs beyond ``end``."""


class CrcProperty(IntEnum):
    """What `Walker.verify` asks of the whole-record checksum at the end of the properties."""

    IGNORED = 0
    """Nothing."""
    FITS_IF_THERE = 1
    """A record that ends with it must fit it, also where bytes of its name have changed.

    One without it has no zero byte in its topic and properties: where bytes were lost or doubled in there, those of the
    next record or frame stand at the end, which begin with zeros.
    """
    REQUIRED = 2
    """Every record has it, and fits it."""


REASONS = {
    Stop.END: "the file ends inside a record",
    Stop.ZERO: "zeros where a record should be",
    Stop.BAD_MAGIC: "no record begins here",
    Stop.BAD_SIZE: "a record's lengths disagree",
    Stop.BAD_CRC: "a record fails its checksum",
    Stop.BAD_POSITION: "a record names another offset than its own",
    Stop.INCOMPLETE: "a record runs beyond the end of its file",
}
"""What is wrong, in words, where a walk stopped at bytes that should be a record."""


@dataclass(slots=True)
class UnitRun:
    """Records of one queue with consecutive queue offsets, ready to be written into its consume queue."""

    topic: str
    queue_id: int
    first_queue_offset: int
    count: int
    units: bytes
    """20·count bytes: consume queue units first_queue_offset, first_queue_offset + 1, …"""
    first_physical: int
    last_end_physical: int
    """Physical offset after the last record."""
    last_store_timestamp: int

    def without(self, count: int) -> "UnitRun | None":
        """The run without its first ``count`` units; None where nothing is left."""
        if count <= 0:
            return self
        if count >= self.count:
            return None
        units = self.units[count * UNIT_SIZE :]
        return replace(
            self,
            first_queue_offset=self.first_queue_offset + count,
            count=self.count - count,
            units=units,
            first_physical=place_of(units),
        )

    def possible(self) -> "UnitRun | None":
        """The run without the units at its beginning whose queue offsets cannot be; None where nothing is left."""
        return self.without(impossible_units(self.first_queue_offset, self.units))

    def one_by_one(self) -> "Iterator[UnitRun]":
        """Each unit as a run of its own."""
        for number, unit in enumerate(unpack_units(self.units)):
            yield replace(
                self,
                first_queue_offset=self.first_queue_offset + number,
                count=1,
                units=self.units[number * UNIT_SIZE : (number + 1) * UNIT_SIZE],
                first_physical=unit.physical_offset,
                last_end_physical=unit.end,
            )


class WalkRow(NamedTuple):
    """What a walk knows of one record."""

    position: int
    """Physical offset."""
    size: int
    queue_id: int
    queue_offset: int
    sys_flag: int
    store_timestamp: int
    born_timestamp: int
    tags_code: int
    topic: str
    unique_key: str | None
    keys: list[str]


class Walk(Protocol):
    """The outcome of a walk. It may hold on to the buffer: drop it before closing an mmap."""

    @property
    def position(self) -> int:
        """Index in the buffer where the walk stopped: after the last good record."""

    @property
    def stop(self) -> Stop:
        """Why it stopped there."""

    @property
    def count(self) -> int:
        """Good records."""

    @property
    def first_store_timestamp(self) -> int:
        """Of the first record; 0 without records, as for the next two."""

    @property
    def last_store_timestamp(self) -> int:
        """Of the last record."""

    @property
    def max_store_timestamp(self) -> int:
        """The highest."""

    @property
    def last_offset(self) -> int:
        """Physical offset of the last record, -1 without records."""

    def runs(self) -> list[UnitRun]:
        """Units by topic and queue, split where queue offsets are not consecutive, in order of first appearance.

        Prepared and rolled-back records are left out: they are in no queue.
        """

    def index_into(
        self,
        index_buffer: WriteBuffer,
        slots: int,
        entries: int,
        from_row: int = 0,
        from_key: int = 0,
        skip_below: int = 0,
    ) -> tuple[int, int]:
        """Put the keys of the records, from key ``from_key`` of row ``from_row`` on, into an index file.

        Per record UNIQ_KEY, then each piece of KEYS; none of a rollback, none of records before the physical offset
        ``skip_below``. Stops when the file is full and returns (row, key) to go on with in the next file; (count, 0)
        when all is done. Source: IndexService.buildIndex.
        """

    def rows(self) -> list[WalkRow]:
        """The records one by one, for people and tests."""


class Walker(Protocol):
    """Walks log files. Not safe for several threads at once."""

    def walk(
        self,
        buffer: ReadBuffer,
        begin: int,
        end: int,
        base: int,
        *,
        check_crc: bool,
        limit: int = DEFAULT_LIMIT,
        delay_levels: Sequence[int] = (),
        force_crc_property: bool = False,
    ) -> Walk:
        """Walk the records in ``buffer[begin:end]``, bytes of one log file whose first byte is at physical ``base``.

        ``check_crc``: compare the body checksum (of bodies that are not empty), or with ``force_crc_property`` the
        whole-record checksum, which then must be there. ``delay_levels``: ms of the levels 1, 2, … (see
        unit.record_tags_code). Source: CommitLog.checkMessageAndReturnSize.
        """

    def verify(
        self,
        buffer: ReadBuffer,
        begin: int,
        end: int,
        base: int,
        *,
        crc_property: CrcProperty = CrcProperty.IGNORED,
    ) -> tuple[int, Stop]:
        """As a `walk` with ``check_crc`` and no limit, but nothing is collected: where it stops, and why."""

    def resync(self, buffer: ReadBuffer, begin: int, end: int, base: int) -> int:
        """The first index >= ``begin`` where a whole valid record stands (with checksum and PHYSICALOFFSET), or -1."""


def python_walker() -> Walker:
    """The readable walker."""
    from tandemmq.store.format.python_walker import PythonWalker

    return PythonWalker()


def compiled_walker() -> Walker:
    """The fast walker. ImportError if the compiled core or ISA-L's CRC function are not to be had here."""
    from tandemmq.store.format.compiled.walker import CompiledWalker

    return CompiledWalker()
