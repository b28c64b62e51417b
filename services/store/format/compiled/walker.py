"""The Python side of the compiled walker."""

from array import array
from collections.abc import Iterator, Sequence
from functools import lru_cache
from struct import Struct

from tandemmq.store.format.buffers import ReadBuffer, WriteBuffer
from tandemmq.store.format.compiled import index_kernel, walk_kernel
from tandemmq.store.format.compiled import walk_layout as layout
from tandemmq.store.format.compiled.addresses import address_of
from tandemmq.store.format.index_layout import file_size
from tandemmq.store.format.java import decode_utf8
from tandemmq.store.format.properties import KEY_SEPARATOR
from tandemmq.store.format.record import MIN_RECORD_SIZE
from tandemmq.store.format.unit import UNIT_SIZE
from tandemmq.store.format.walker import DEFAULT_LIMIT, CrcProperty, Stop, UnitRun, WalkRow

_STOPS = list(Stop)
_RESULT = Struct(f"{layout.RESULT_WIDTH}q").unpack_from
_ROW, _GROUP, _RUN = (Struct(f"{width}q") for width in (layout.ROW_WIDTH, layout.GROUP_WIDTH, layout.RUN_WIDTH))
_TEXT_SIZE = (1 << layout.TEXT_SIZE_BITS) - 1


@lru_cache(maxsize=16)
def _delays(levels: tuple[int, ...]) -> "array[int]":
    return array("q", levels)


class CompiledWalk:
    """See walker.Walk. Reads topics and keys from the buffer when asked, and keeps it open till then."""

    def __init__(self, buffer: ReadBuffer, address: int, keep: object, memory: bytes, room: int) -> None:
        """``address`` is that of the buffer, as long as ``keep`` lives; ``memory`` what the kernel has filled."""
        (
            self.position,
            stop,
            self.count,
            self._group_count,
            self._run_count,
            self.first_store_timestamp,
            self.last_store_timestamp,
            self.max_store_timestamp,
            last_offset,
        ) = _RESULT(memory)
        self.stop = _STOPS[stop]
        self.last_offset: int = last_offset if self.count else -1
        self._address, self._keep = address, keep
        self._buffer = buffer
        self._memory, self._room = memory, room

    def runs(self) -> list[UnitRun]:
        """See the protocol."""
        if not self._run_count:
            return []
        units = walk_kernel.fill_units(self._memory, self._room)
        texts: dict[int, str] = {}
        found: list[UnitRun] = []
        begin = 0
        runs = self._part(layout.runs_begin(self._room), self._run_count, _RUN)
        for topic_at, size, queue_id, first_offset, count, first_physical, last_end, last_time, _ in runs:
            topic = texts.get(topic_at)
            if topic is None:
                topic = texts[topic_at] = self._text(topic_at, size)
            end = begin + count * UNIT_SIZE
            piece = units[begin:end]
            found.append(UnitRun(topic, queue_id, first_offset, count, piece, first_physical, last_end, last_time))
            begin = end
        return found

    def index_into(
        self,
        index_buffer: WriteBuffer,
        slots: int,
        entries: int,
        from_row: int = 0,
        from_key: int = 0,
        skip_below: int = 0,
    ) -> tuple[int, int]:
        """See the protocol."""
        if slots <= 0 or entries <= 0 or len(index_buffer) < file_size(slots, entries):
            raise ValueError(f"{len(index_buffer)} bytes are no index file of {slots} slots and {entries} entries")
        address, _keep = address_of(index_buffer)
        return index_kernel.index_rows(
            self._address,
            self._memory,
            self._room,
            address,
            slots,
            entries,
            from_row,
            from_key,
            skip_below,
        )

    def rows(self) -> list[WalkRow]:
        """See the protocol."""
        found = []
        groups = list(self._part(layout.groups_begin(self._room), self._group_count, _GROUP))
        for row in self._part(layout.RESULT_WIDTH, self.count, _ROW):
            topic_at, topic_size = groups[row[layout.GROUP]][: layout.TOPIC_SIZE + 1]
            unique, keys = row[layout.UNIQUE], row[layout.KEYS]
            texts = self._packed_text(keys).split(KEY_SEPARATOR)
            found.append(
                WalkRow._make(
                    (
                        *row[: layout.TAGS + 1],
                        self._text(topic_at, topic_size),
                        self._packed_text(unique) if unique else None,
                        [key for key in texts if key],
                    )
                )
            )
        return found

    @property
    def memory(self) -> tuple[int, bytes, int]:
        """For kernels: the address of the log's bytes, what the walk has filled (see walk_layout), and its room.

        Good while the walk itself is kept.
        """
        return self._address, self._memory, self._room

    def _part(self, begin: int, rows: int, shape: Struct) -> Iterator[tuple[int, ...]]:
        return shape.iter_unpack(memoryview(self._memory)[begin * 8 : begin * 8 + rows * shape.size])

    def _text(self, at: int, size: int) -> str:
        return decode_utf8(bytes(self._buffer[at : at + size]))

    def _packed_text(self, packed: int) -> str:
        return self._text(packed >> layout.TEXT_SIZE_BITS, packed & _TEXT_SIZE)


class CompiledWalker:
    """See walker.Walker."""

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
    ) -> CompiledWalk:
        """See the protocol."""
        _check_range(buffer, begin, end)
        address, keep = address_of(buffer)
        # No more records than bytes for them.
        room = max(min(limit, (end - begin) // MIN_RECORD_SIZE), 0) + 1
        memory = walk_kernel.walk(
            address,
            begin,
            end,
            len(buffer),
            base,
            check_crc,
            force_crc_property,
            limit,
            _delays(tuple(delay_levels)),
            room,
        )
        return CompiledWalk(buffer, address, keep, memory, room)

    def verify(
        self,
        buffer: ReadBuffer,
        begin: int,
        end: int,
        base: int,
        *,
        crc_property: CrcProperty = CrcProperty.IGNORED,
    ) -> tuple[int, Stop]:
        """See the protocol."""
        _check_range(buffer, begin, end)
        address, _keep = address_of(buffer)
        position, stop = walk_kernel.verify(address, begin, end, base, crc_property)
        return position, _STOPS[stop]

    def resync(self, buffer: ReadBuffer, begin: int, end: int, base: int) -> int:
        """See the protocol."""
        _check_range(buffer, begin, end)
        address, _keep = address_of(buffer)
        return walk_kernel.resync(address, begin, end, base)


def _check_range(buffer: ReadBuffer, begin: int, end: int) -> None:
    if begin < 0 or end > len(buffer):
        raise ValueError(f"{begin} to {end} is not inside of {len(buffer)} bytes")
