"""Building one index file from spilled keys: a part of its slots by each task.

Entries are numbered in the order of the log, which is known from the counts of the spills; which chain an entry joins
depends on its slot alone. So tasks that share the slots among them write one file without meeting, each byte as the
store's own `put_key` would have written it. The header comes last.
"""

import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tandemmq.spark.rebuilding.keys_spill import Keys, read_keys
from tandemmq.store.format import index_layout
from tandemmq.store.format.compiled.keys import put_entries
from tandemmq.store.format.index_layout import IndexHeader

_PIECE = 1 << 20
"""Keys of one call: bounds the memory of a task to what their mapping needs."""


@dataclass(frozen=True, slots=True)
class IndexFilePlan:
    """One index file: keys [first, first + count) of all keys of the log, counted from 0.

    ``previous``: physical offset and store time of the key before, which a file takes over at its birth; None for the
    first file.
    """

    name: str
    first: int
    count: int
    previous: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Spill:
    """The keys of one range: ``first`` is the number of its first among all keys of the log."""

    number: int
    first: int
    count: int


def plan_files(spills: Sequence[Spill], per_file: int, first_name: int) -> list[IndexFilePlan]:
    """The index files for all keys; each but the last is full. Names count up from ``first_name`` (17 digits)."""
    total = spills[-1].first + spills[-1].count if spills else 0
    return [
        IndexFilePlan(f"{first_name + number:017d}", first, min(per_file, total - first))
        for number, first in enumerate(range(0, total, per_file))
    ]


def pieces(spills: Iterable[Spill], directory: Path, first: int, count: int) -> Iterator[tuple[int, Keys]]:
    """Keys [first, first + count) in order, in pieces; each with the number of its first key. Raises OSError."""
    end = first + count
    for spill in spills:
        low, high = max(first, spill.first), min(end, spill.first + spill.count)
        for at in range(low, high, _PIECE):
            yield at, read_keys(directory, spill.number, at - spill.first, min(_PIECE, high - at))


def key_before(spills: Sequence[Spill], directory: Path, number: int) -> tuple[int, int]:
    """Physical offset and store time of the key before key ``number``."""
    ((_, keys),) = pieces(spills, directory, number - 1, 1)
    return int(keys[1][0]), int(keys[2][0])


def create_file(path: Path, size: int) -> None:
    """Make an index file of zeros with all its blocks: a full disk is an error here, not a fault in a mapping.

    Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
    try:
        os.posix_fallocate(fd, 0, size)
    finally:
        os.close(fd)


def build_part(
    path: Path,
    plan: IndexFilePlan,
    slots: int,
    entries: int,
    part: tuple[int, int],
    spills: Sequence[Spill],
    directory: Path,
) -> int:
    """Write the entries and slots of the slots [part[0], part[1]) into the file; gives how many slots are in use.

    Raises OSError, ValueError.
    """
    newest = np.zeros(part[1] - part[0], np.int32)
    with _mapped(path) as buffer:
        begin = plan.previous[1] if plan.previous is not None else 0
        for first, keys in pieces(spills, directory, plan.first, plan.count):
            number = first - plan.first + 1
            if number == 1:  # the first entry counts from what the file was born with; the others from the first
                head = keys[0][:1], keys[1][:1], keys[2][:1]
                _put(buffer, slots, entries, head, 1, begin, newest, part[0])
                begin = int(keys[2][0])
                keys = keys[0][1:], keys[1][1:], keys[2][1:]
                number = 2
            _put(buffer, slots, entries, keys, number, begin, newest, part[0])
        at = index_layout.HEADER_SIZE + index_layout.SLOT_SIZE * part[0]
        buffer[at : at + newest.nbytes] = newest.astype(">i4").tobytes()
    return int(np.count_nonzero(newest))


def finish_file(path: Path, plan: IndexFilePlan, used: int, spills: Sequence[Spill], directory: Path) -> IndexHeader:
    """Write the header of a file whose parts are all there; ``used``: slots in use. Raises OSError."""
    ((_, first),) = pieces(spills, directory, plan.first, 1)
    last_offset, last_time = key_before(spills, directory, plan.first + plan.count)
    header = IndexHeader(
        begin_timestamp=int(first[2][0]),
        end_timestamp=last_time,
        begin_physical_offset=int(first[1][0]),
        end_physical_offset=last_offset,
        hash_slot_count=used,
        index_count=plan.count + 1,
    )
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.pwrite(fd, header.pack(), 0)
    finally:
        os.close(fd)
    return header


def _put(
    buffer: mmap.mmap, slots: int, entries: int, keys: Keys, number: int, begin: int, newest: "np.ndarray", slot: int
) -> None:
    put_entries(
        buffer, slots, entries, keys, first_number=number, begin_timestamp=begin, newest=newest, first_slot=slot
    )


def _mapped(path: Path) -> mmap.mmap:
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return mmap.mmap(fd, 0)
    finally:
        os.close(fd)
