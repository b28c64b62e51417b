"""Comparing index files with the keys of the log.

A file is looked at by itself first: its header, the order of its entries, whether the chains lead to all of them. Then
each range of the log takes from all files the entries whose records begin in it, and compares them with its keys.
"""

import mmap
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tandemmq.spark.auditing.audit_findings import FindingPlace, Findings
from tandemmq.spark.auditing.audit_kernels import DISORDER, IMPOSSIBLE, UNREACHABLE, look_at_entries
from tandemmq.spark.errors import BadJobOption
from tandemmq.spark.reading.layout import DEFAULT_ENTRIES, DEFAULT_SLOTS
from tandemmq.spark.rebuilding.keys_spill import Keys
from tandemmq.store.format import index_layout
from tandemmq.store.format.index_layout import ENTRY_SIZE, HEADER_SIZE, SLOT_SIZE, IndexHeader

Longs = NDArray[np.int64]

_ENTRY = np.dtype(index_layout.ENTRY_FIELDS)
_USUAL_RATIO = 4  # entries per slot, with RocketMQ's defaults and whoever scales both
_MAX_INT = 0x7FFFFFFF
_HASH_BITS = 31
_PIECE = 1 << 20
_EVERYTHING: Final = 1 << 62


@dataclass(slots=True)
class AuditedIndexFile:
    """One index file, and what a look at it has found. ``entries``: how many; times are ms, offsets log offsets.

    ``lowest``, ``highest``: of the entries' physical offsets. ``sorted``: whether entries are in the order of the log.
    """

    path: Path
    entries: int = 0
    begin_timestamp: int = 0
    end_timestamp: int = 0
    lowest: int = 0
    highest: int = -1
    slots_used: int = 0
    sorted: bool = True
    findings: Findings = field(default_factory=Findings)

    @property
    def name(self) -> str:
        """Of the file."""
        return self.path.name

    def document(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {
            "path": str(self.path), "entries": self.entries, "begin_timestamp": self.begin_timestamp,
            "end_timestamp": self.end_timestamp, "lowest": self.lowest, "highest": self.highest,
            "slots_used": self.slots_used, "sorted": self.sorted, "findings": self.findings.document(),
        }  # fmt: skip

    @classmethod
    def read(cls, document: dict[str, Any]) -> "AuditedIndexFile":
        """The inverse of `document`."""
        return cls(
            **{**document, "path": Path(document["path"]), "findings": Findings.read(document["findings"])}
        )  # fmt: skip


def index_paths(root: Path) -> list[Path]:
    """The index files of a store, oldest first: names that are numbers."""
    try:
        names = [name for name in os.listdir(root / "index") if name.isascii() and name.isdigit()]
    except FileNotFoundError:
        return []
    return [root / "index" / name for name in sorted(names, key=lambda name: (int(name), name))]


def find_index_layout(paths: Sequence[Path], slots: int | None, entries: int | None) -> tuple[int, int]:
    """Slots and entries of the index files: settings that stand in no file, but can be told from the entries.

    Raises:
        BadJobOption: they cannot be told, or what is given does not fit.
        OSError: a file cannot be read.
    """
    if not paths:
        return slots or DEFAULT_SLOTS, entries or DEFAULT_ENTRIES
    size = max(path.stat().st_size for path in paths)
    if slots and not entries:
        entries = (size - HEADER_SIZE - SLOT_SIZE * slots) // ENTRY_SIZE
    if entries and not slots:
        slots = (size - HEADER_SIZE - ENTRY_SIZE * entries) // SLOT_SIZE
    if slots and entries:
        if slots > 0 and entries > 1 and index_layout.file_size(slots, entries) == size:
            return slots, entries
        raise BadJobOption(
            f"With {slots:,} slots and {entries:,} entries an index file has "
            f"{index_layout.file_size(slots, entries):,} bytes; these have {size:,}.",
            remedy="Name both as in the store's settings, maxHashSlotNum and maxIndexNum, or leave them away.",
        )
    found = {told for path in paths if path.stat().st_size == size for told in _possible_layouts(path, size)}
    usual = (size - HEADER_SIZE) // (SLOT_SIZE + ENTRY_SIZE * _USUAL_RATIO)
    if not found or (usual, usual * _USUAL_RATIO) in found:
        return usual, (size - HEADER_SIZE - SLOT_SIZE * usual) // ENTRY_SIZE
    if len(found) > 1:
        raise BadJobOption(
            f"How many slots the index files of {size:,} bytes have cannot be told from them.",
            remedy="Name them as in the store's settings: maxHashSlotNum and maxIndexNum.",
        )
    return found.pop()


def _possible_layouts(path: Path, size: int) -> list[tuple[int, int]]:
    """Where the first and the last entry are what the header says of them, and the last is at the head of its chain."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as buffer:
        header = IndexHeader.unpack(buffer)
        count = header.index_count
        words, rest = divmod(size - HEADER_SIZE, SLOT_SIZE)
        if count < 2 or rest:
            return []
        least = words % (ENTRY_SIZE // SLOT_SIZE) or ENTRY_SIZE // SLOT_SIZE
        most = words - (ENTRY_SIZE // SLOT_SIZE) * max(count, 2)
        number = (most - least) // (ENTRY_SIZE // SLOT_SIZE) + 1
        if number < 1:
            return []
        first = index_layout.entry_position(least, 1) + index_layout.ENTRY_PHYSICAL_AT
        begins, ends = (
            np.ndarray((number,), ">i8", buffer, at, (ENTRY_SIZE,)) for at in (first, first + ENTRY_SIZE * (count - 2))
        )
        fits = (begins == header.begin_physical_offset) & (ends == header.end_physical_offset)
        found = []
        for at in np.flatnonzero(fits).tolist():
            slots = least + at * (ENTRY_SIZE // SLOT_SIZE)
            hashed = index_layout.read_entry(buffer, slots, count - 1).key_hash
            if hashed >= 0 and index_layout.read_slot(buffer, hashed % slots) == count - 1:
                found.append((slots, (size - HEADER_SIZE - SLOT_SIZE * slots) // ENTRY_SIZE))
        del begins, ends, fits
        return found


def look_at_file(path: Path, slots: int, entries: int, limit: int, *, live: bool) -> AuditedIndexFile:
    """Look at one index file by itself. ``live``: a broker writes into it. Raises OSError."""
    found = AuditedIndexFile(path, findings=Findings(limit))
    size = path.stat().st_size
    if size != index_layout.file_size(slots, entries):
        told = f"{size:,} bytes instead of {index_layout.file_size(slots, entries):,}"
        found.findings.add("index-file", FindingPlace(file=path.name, told=told))
        return found
    with path.open("rb") as file:
        buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    header = IndexHeader.unpack(buffer)
    if header.index_count > entries:
        told = f"it counts {header.index_count - 1:,} entries, and has room for {entries - 1:,}"
        found.findings.add("index-header", FindingPlace(file=path.name, told=told))
    count = min(header.index_count, entries)
    found.entries = count - 1
    found.begin_timestamp, found.end_timestamp = header.begin_timestamp, header.end_timestamp
    result, places = look_at_entries(buffer, slots, count, limit, live=live)
    found.slots_used, found.lowest, found.highest = result[3:]
    found.sorted = not result[DISORDER]
    for kind, row in (("entry-unreachable", UNREACHABLE), ("entry-impossible", IMPOSSIBLE), ("entry-order", DISORDER)):
        numbers = places[row, : min(limit, result[row])].tolist()
        for number in numbers:
            physical = index_layout.read_entry(buffer, slots, number).physical_offset
            place = FindingPlace(physical_offset=physical, file=path.name, told=f"entry {number:,}")
            found.findings.add(kind, place)
        found.findings.count(kind, result[row] - len(numbers))
    if not live and found.entries:
        for told in _wrong_in_header(header, found, buffer, slots):
            found.findings.add("index-header", FindingPlace(file=path.name, told=told))
    return found


def _wrong_in_header(header: IndexHeader, found: AuditedIndexFile, buffer: mmap.mmap, slots: int) -> Iterator[str]:
    first, last = (index_layout.read_entry(buffer, slots, number) for number in (1, found.entries))
    if header.hash_slot_count != found.slots_used:
        yield f"it counts {header.hash_slot_count:,} slots in use, there are {found.slots_used:,}"
    if header.begin_physical_offset != first.physical_offset:
        yield f"it begins at {header.begin_physical_offset:,}, its first entry at {first.physical_offset:,}"
    if header.end_physical_offset != last.physical_offset:
        yield f"it ends at {header.end_physical_offset:,}, its last entry at {last.physical_offset:,}"


@dataclass(slots=True)
class Entries:
    """Entries of records in a part of the log, in the order of the log.

    ``begin``: the file's beginTimestamp; ``exact``: whether the time counts from there (a file's first entry may count
    from another, see trap T8).
    """

    hash: Longs
    physical: Longs
    seconds: Longs
    begin: Longs
    exact: NDArray[np.bool_]

    def part(self, low: int, high: int) -> "Entries":
        """Entries number ``low`` to ``high`` - 1."""
        cut = slice(low, high)
        return Entries(self.hash[cut], self.physical[cut], self.seconds[cut], self.begin[cut], self.exact[cut])


def entries_between(files: Iterable[AuditedIndexFile], slots: int, begin: int, end: int) -> Entries:
    """The entries of all files whose physical offset is in [begin, end). Raises OSError."""
    parts: list[tuple[Any, ...]] = []
    for file in files:
        if not file.entries or file.highest < begin or file.lowest >= end:
            continue
        for first, view in _views(file, slots, begin, end):
            exact = np.ones(len(view), bool)
            exact[: max(0, 2 - first)] = False
            hashes, physical, seconds = (view[name].astype(np.int64) for name in ("hash", "physical", "seconds"))
            begun = np.full(len(view), file.begin_timestamp, np.int64)
            inside = (physical >= begin) & (physical < end)
            columns = (hashes, physical, seconds, begun, exact)
            parts.append(columns if inside.all() else tuple(column[inside] for column in columns))
    if not parts:
        nothing = np.empty(0, np.int64)
        return Entries(nothing, nothing, nothing, nothing, np.empty(0, bool))
    found = [np.concatenate(column) for column in zip(*parts, strict=True)]
    if (np.diff(found[1]) < 0).any():
        order = np.argsort(found[1], kind="stable")
        found = [column[order] for column in found]
    return Entries(*found)


def count_between(files: Iterable[AuditedIndexFile], slots: int, begin: int, end: int = _EVERYTHING) -> int:
    """How many entries have a physical offset in [begin, end). Raises OSError."""
    number = 0
    for file in files:
        if not file.entries or file.highest < begin or file.lowest >= end:
            continue
        for _, view in _views(file, slots, begin, end):
            if file.sorted:
                number += len(view)
            else:
                number += int(np.count_nonzero((view["physical"] >= begin) & (view["physical"] < end)))
    return number


def _views(file: AuditedIndexFile, slots: int, begin: int, end: int) -> Iterator[tuple[int, Any]]:
    """Pieces of a file that hold all its entries in [begin, end), with the number of the first; copies nothing."""
    base = HEADER_SIZE + SLOT_SIZE * slots + ENTRY_SIZE
    view = np.memmap(file.path, _ENTRY, "r", base, (file.entries,))
    low, high = 0, file.entries
    if file.sorted:
        low = bisect_left(view["physical"], begin)
        high = bisect_left(view["physical"], end, lo=low)
    for at in range(low, high, _PIECE):
        yield at + 1, view[at : min(at + _PIECE, high)]


class KeyComparer:
    """Takes the keys of one range's walks, in their order, and compares them with the range's entries.

    ``seen``: entries within stretches of records, right or wrong. `rest` gives the others.
    """

    def __init__(self, entries: Entries, findings: Findings) -> None:
        self._entries = entries
        self._findings = findings
        self._at = 0
        self.seen = 0
        self._unseen: list[tuple[int, int]] = []

    def put(self, keys: Keys, begin: int, end: int) -> int:
        """Compare the keys of the records that lie in the log at [begin, end); gives how many are not right."""
        low, high = (int(at) for at in np.searchsorted(self._entries.physical, (begin, end)))
        if low > self._at:
            self._unseen.append((self._at, low))
        self._at = max(self._at, high)
        entries = self._entries.part(low, high)
        self.seen += high - low
        hashes, physical, times = keys
        same = len(hashes) == high - low and bool((physical == entries.physical).all())
        wrong = 0
        if not (same and bool((hashes == entries.hash).all())):
            wrong = self._differences(hashes, physical, entries, begin, end)
        return wrong + self._times(physical, times, entries)

    def rest(self) -> Longs:
        """Physical offsets of the entries that lie in no stretch of records."""
        pieces = [self._entries.physical[low:high] for low, high in [*self._unseen, (self._at, None)]]
        return np.concatenate(pieces)

    def _times(self, physical: Longs, times: Longs, entries: Entries) -> int:
        if not len(physical) or not len(entries.hash):
            return 0
        if len(physical) == len(entries.physical) and bool((physical == entries.physical).all()):
            at = np.arange(len(physical))
        else:
            at = np.minimum(np.searchsorted(physical, entries.physical), len(physical) - 1)
        since = times[at] - entries.begin
        seconds = np.clip(np.where(entries.begin > 0, since // 1000, 0), 0, _MAX_INT)
        wrong = (seconds != entries.seconds) & (physical[at] == entries.physical) & entries.exact
        number = int(np.count_nonzero(wrong))
        if number:
            places = np.flatnonzero(wrong)[: self._findings.limit].tolist()
            for one in places:
                off = int(entries.seconds[one] - seconds[one])
                place = FindingPlace(physical_offset=int(entries.physical[one]), told=f"{off:+,} s")
                self._findings.add("entry-time", place)
            self._findings.count("entry-time", number - len(places))
        return number

    def _differences(self, hashes: NDArray[np.int32], physical: Longs, entries: Entries, begin: int, end: int) -> int:
        """Compare as sets, since a missing one shifts all after it. Gives how many differ."""
        wanted = (physical - begin) << _HASH_BITS | hashes
        known = np.isin(entries.physical, physical)
        stray = self._unknown(entries.physical[~known])
        there = (entries.physical[known] - begin) << _HASH_BITS | (entries.hash[known] & _MAX_INT)
        both = np.unique(np.concatenate((wanted, there)))
        in_log, in_index = _counts(both, wanted), _counts(both, there)
        lacking, over = np.maximum(in_log - in_index, 0), np.maximum(in_index - in_log, 0)
        twice = np.where(in_log > 0, over, 0)
        record, of_record = np.unique(both >> _HASH_BITS, return_inverse=True)
        missing, strange, double = (
            np.bincount(of_record, weights=one, minlength=len(record)).astype(np.int64)
            for one in (lacking, over - twice, twice)
        )
        wrong = np.minimum(missing, strange)
        places = np.append(record + begin, end)
        places[0] = begin  # so that neighbouring stretches of several walks join
        self._tell("entry-wrong", wrong, places)
        self._tell("entry-missing", missing - wrong, places)
        self._tell("entry-extra", strange - wrong, places)
        self._tell("entry-twice", double, places)
        return stray + int((missing + strange - wrong + double).sum())

    def _unknown(self, physical: Longs) -> int:
        """Entries between the records, or of records without keys; gives how many."""
        for one in physical[: self._findings.limit].tolist():
            self._findings.add("entry-extra", FindingPlace(physical_offset=one))
        self._findings.count("entry-extra", max(0, len(physical) - self._findings.limit))
        return len(physical)

    def _tell(self, kind: str, number: Longs, places: Longs) -> None:
        """``number`` per record; ``places``: where each begins, and the end."""
        if not number.any():
            return
        edges = np.flatnonzero(np.diff((number > 0).astype(np.int8), prepend=0, append=0))
        told = 0
        for low, high in edges[: 2 * self._findings.limit].reshape(-1, 2).tolist():
            count = int(number[low:high].sum())
            begin, end = int(places[low]), int(places[high])
            self._findings.add(kind, FindingPlace(physical_offset=begin, physical_end=end, count=count))
            told += count
        self._findings.count(kind, int(number.sum()) - told)


def _counts(of: Longs, values: Longs) -> Longs:
    """How often each of ``of``, which is sorted, is in ``values``."""
    return np.bincount(np.searchsorted(of, values), minlength=len(of))
