"""The fields of a walk's records as columns: NumPy arrays laid out as Arrow wants them."""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tandemmq.store.format.compiled import column_kernel as kernels
from tandemmq.store.format.compiled import walk_layout as layout
from tandemmq.store.format.compiled.addresses import address_of
from tandemmq.store.format.compiled.walker import CompiledWalk
from tandemmq.store.format.record import MIN_RECORD_SIZE

Longs = NDArray[np.int64]
Ints = NDArray[np.int32]
Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]

_TEXT_SIZE = (1 << layout.TEXT_SIZE_BITS) - 1
_LEAST_PAIR = 4  # bytes of a pair with the 02 after it


@dataclass(frozen=True, slots=True)
class Spans:
    """Where a field of some records stands: index in the buffer, and bytes (-1: the record has no such field)."""

    at: Longs
    size: Longs

    @property
    def present(self) -> Flags:
        """Which records have it."""
        return self.size >= 0


@dataclass(frozen=True, slots=True)
class Texts:
    """Byte strings in a row: string n is ``data[offsets[n]:offsets[n + 1]]``; one more offset than strings."""

    offsets: Ints
    data: Bytes

    @property
    def is_ascii(self) -> bool:
        """Whether all bytes are ASCII, so that they need no decoding."""
        return int(self.data.max(initial=0)) < 0x80

    def pieces(self) -> list[bytes]:
        """The strings one by one: slow."""
        data, ends = self.data.tobytes(), self.offsets.tolist()
        return [data[begin:end] for begin, end in itertools.pairwise(ends)]


@dataclass(frozen=True, slots=True)
class TextLists:
    """A list of byte strings per record: those of record n are ``items[lists[n]:lists[n + 1]]``."""

    lists: Ints
    items: Texts


@dataclass(frozen=True, slots=True)
class TextMaps:
    """Pairs per record: those of record n are ``maps[n]`` to ``maps[n + 1]`` of both columns."""

    maps: Ints
    names: Texts
    values: Texts


class RecordColumns:
    """Columns over the records of one walk.

    ``chosen`` in all methods: row numbers, int64, ascending and without doubles. What a method returns is copied out of
    the buffer, so it outlives it; spans point into it. Strings of one call must have fewer than 2 GiB together.
    """

    def __init__(self, walk: CompiledWalk, physical: Longs | None = None) -> None:
        """``physical``: the log offset of each record, where it is not what the walk takes for it."""
        self.count = walk.count
        self._walk = walk  # keeps buffer and memory alive
        self._address, memory, self._room = walk.memory
        self._memory = np.frombuffer(memory, np.int64, layout.RESULT_WIDTH + self._room * layout.ROW_AND_GROUP)
        self._rows = self._part(layout.RESULT_WIDTH, walk.count, layout.ROW_WIDTH)
        last = self._rows[-1] if walk.count else np.zeros(layout.ROW_WIDTH, np.int64)
        self._base = int(last[layout.PHYSICAL] + last[layout.SIZE]) - (walk.position if walk.count else 0)
        self._length = len(walk._buffer)
        self._physical = self._rows[:, layout.PHYSICAL] if physical is None else physical

    def all_rows(self) -> Longs:
        """All row numbers."""
        return np.arange(self.count, dtype=np.int64)

    # Numbers. One of each record would do, but whoever filters wants those of the chosen only.

    def physical_offset(self, chosen: Longs) -> Longs:
        """Log offsets."""
        return self._taken(self._physical, chosen)

    def size(self, chosen: Longs) -> Longs:
        """TOTALSIZE, bytes."""
        return self._numbers(layout.SIZE, chosen)

    def queue_id(self, chosen: Longs) -> Longs:
        """QUEUEID."""
        return self._numbers(layout.QUEUE_ID, chosen)

    def queue_offset(self, chosen: Longs) -> Longs:
        """QUEUEOFFSET."""
        return self._numbers(layout.QUEUE_OFFSET, chosen)

    def sys_flag(self, chosen: Longs) -> Longs:
        """SYSFLAG."""
        return self._numbers(layout.SYS_FLAG, chosen)

    def store_timestamp(self, chosen: Longs) -> Longs:
        """STORETIMESTAMP, ms."""
        return self._numbers(layout.STORE_TIME, chosen)

    def born_timestamp(self, chosen: Longs) -> Longs:
        """BORNTIMESTAMP, ms."""
        return self._numbers(layout.BORN_TIME, chosen)

    def reconsume_times(self, chosen: Longs) -> Ints:
        """RECONSUMETIMES."""
        target = np.empty(chosen.size, np.int32)
        kernels.reconsume_times(self._address, self._base, self._rows, chosen, target)
        return target

    # Spans.

    def group(self, chosen: Longs) -> Longs:
        """The group of each record: a number for its topic and queue, an index in `group_topics`."""
        return self._numbers(layout.GROUP, chosen)

    def group_topics(self) -> Spans:
        """The topic of each group."""
        count = int(self._memory[layout.GROUPS])
        groups = self._part(layout.groups_begin(self._room), count, layout.GROUP_WIDTH)
        return Spans(groups[:, layout.TOPIC_AT].copy(), groups[:, layout.TOPIC_SIZE].copy())

    def topic(self, chosen: Longs) -> Spans:
        """The topics."""
        topics, group = self.group_topics(), self.group(chosen)
        return Spans(topics.at[group], topics.size[group])

    def unique_key(self, chosen: Longs) -> Spans:
        """Values of UNIQ_KEY."""
        return self._packed(layout.UNIQUE, chosen)

    def keys(self, chosen: Longs) -> Spans:
        """Values of KEYS, unsplit."""
        return self._packed(layout.KEYS, chosen)

    def tags(self, chosen: Longs) -> Spans:
        """Values of TAGS."""
        return self._found(kernels.TAGS, chosen)

    def body(self, chosen: Longs) -> Spans:
        """Bodies as they are stored: compressed ones stay compressed."""
        return self._found(kernels.BODY, chosen)

    def properties(self, chosen: Longs) -> Spans:
        """Properties strings."""
        return self._found(kernels.PROPERTIES, chosen)

    # Bytes.

    def gather(self, spans: Spans) -> Texts:
        """The bytes of the spans; of a missing one, none."""
        offsets = np.empty(spans.at.size + 1, np.int32)
        data = _room(spans)
        address = data.ctypes.data
        kernels.gather(self._address, spans.at, spans.size, offsets, address)
        return Texts(offsets, data)

    def split_keys(self, spans: Spans) -> TextLists:
        """The pieces of `keys` between blanks; empty ones are left out."""
        data = _room(spans)
        lists = np.empty(spans.at.size + 1, np.int32)
        offsets = np.empty((data.size + spans.at.size) // 2 + 2, np.int32)
        address = data.ctypes.data
        pieces, size = kernels.split_keys(self._address, self._length, spans.at, spans.size, lists, offsets, address)
        return TextLists(lists, Texts(offsets[: pieces + 1], data[:size]))

    def split_properties(self, spans: Spans) -> TextMaps:
        """The pairs of `properties`, by the rules of properties.decode, but undecoded.

        The difference matters for malformed UTF-8 only: of two names that become equal by decoding, both are here.
        """
        names, values = _room(spans), _room(spans)
        most = (names.size + spans.at.size) // _LEAST_PAIR + 2
        longest = int(spans.size.max(initial=0)) // _LEAST_PAIR + 2
        maps = np.empty(spans.at.size + 1, np.int32)
        name_offsets, value_offsets = np.empty(most, np.int32), np.empty(most, np.int32)
        name_address, value_address = names.ctypes.data, values.ctypes.data
        pairs = kernels.split_properties(
            self._address,
            self._length,
            spans.at,
            spans.size,
            maps,
            name_offsets,
            name_address,
            value_offsets,
            value_address,
            np.empty((longest, kernels.SCRATCH_WIDTH), np.int64),
        )
        return TextMaps(
            maps,
            Texts(name_offsets[: pairs + 1], names[: name_offsets[pairs]]),
            Texts(value_offsets[: pairs + 1], values[: value_offsets[pairs]]),
        )

    def born_host(self, chosen: Longs) -> Texts:
        """The producer's ``ip:port``."""
        return self._hosts(chosen, store=False)

    def store_host(self, chosen: Longs) -> Texts:
        """The broker's ``ip:port``."""
        return self._hosts(chosen, store=True)

    def message_id(self, chosen: Longs) -> Texts:
        """Offset ids."""
        offsets = np.empty(chosen.size + 1, np.int32)
        data = np.empty(chosen.size * kernels.MESSAGE_ID_MAX, np.uint8)
        address = data.ctypes.data
        size = kernels.message_ids(
            self._address, self._base, self._rows, chosen, self.physical_offset(chosen), offsets, address
        )
        return Texts(offsets, data[:size])

    def _hosts(self, chosen: Longs, *, store: bool) -> Texts:
        offsets = np.empty(chosen.size + 1, np.int32)
        data = np.empty(chosen.size * kernels.HOST_TEXT_MAX, np.uint8)
        address = data.ctypes.data
        size = kernels.host_texts(self._address, self._base, self._rows, chosen, store, offsets, address)
        return Texts(offsets, data[:size])

    def _part(self, begin: int, rows: int, width: int) -> Longs:
        return self._memory[begin : begin + rows * width].reshape(rows, width)

    def _numbers(self, column: int, chosen: Longs) -> Longs:
        return self._taken(self._rows[:, column], chosen)

    def _taken(self, values: Longs, chosen: Longs) -> Longs:
        # A slice would keep the memory of the whole walk alive.
        return values.copy() if chosen.size == self.count else values[chosen]

    def _packed(self, column: int, chosen: Longs) -> Spans:
        packed = self._numbers(column, chosen)
        return Spans(packed >> layout.TEXT_SIZE_BITS, np.where(packed == 0, np.int64(-1), packed & _TEXT_SIZE))

    def _found(self, field: int, chosen: Longs) -> Spans:
        at, size = np.empty(chosen.size, np.int64), np.empty(chosen.size, np.int64)
        kernels.spans_of(self._address, self._base, self._length, self._rows, chosen, field, at, size)
        return Spans(at, size)


def renumbered(records: bytes | bytearray | memoryview) -> tuple[bytearray, Longs]:
    """A copy of records that stand one after the other, with the place in the copy as PHYSICALOFFSET; and the old ones.

    So a walk from base 0 finds records that were picked out of a log. The copy ends before what cannot be a record.
    """
    copy = bytearray(records)
    offsets = np.empty(len(copy) // MIN_RECORD_SIZE + 1, np.int64)
    address, keep = address_of(copy)
    count, end = kernels.renumber(address, len(copy), MIN_RECORD_SIZE, offsets)
    del keep  # a bytearray that somebody looks at cannot be cut
    del copy[end:]
    return copy, offsets[:count].copy()


def _room(spans: Spans) -> Bytes:
    """Memory for the bytes of the spans."""
    return np.empty(int(np.maximum(spans.size, 0).sum()), np.uint8)
