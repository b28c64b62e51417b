"""The Python side of the compiled walker."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tandemmq.store.format.buffers import ReadBuffer, WriteBuffer
from tandemmq.store.format.compiled import index as index_kernels
from tandemmq.store.format.compiled import walk as kernels
from tandemmq.store.format.compiled.memory import address_of
from tandemmq.store.format.index_layout import file_size
from tandemmq.store.format.java import decode_utf8
from tandemmq.store.format.properties import KEY_SEPARATOR
from tandemmq.store.format.record import MIN_RECORD_SIZE
from tandemmq.store.format.unit import UNIT_SIZE
from tandemmq.store.format.walker import DEFAULT_LIMIT, Stop, UnitRun, WalkRow

_Longs = NDArray[np.int64]
_TEXT_SIZE = (1 << kernels.TEXT_SIZE_BITS) - 1


class CompiledWalk:
    """See walker.Walk. Reads topics and keys from the buffer when asked, and keeps it open till then."""

    def __init__(self, buffer: ReadBuffer, result: _Longs, rows: _Longs, groups: _Longs, runs: _Longs) -> None:
        values = result.tolist()
        self.position: int = values[kernels.POSITION]
        self.stop = Stop(values[kernels.STOP])
        self.count: int = values[kernels.ROWS]
        self.first_store_timestamp: int = values[kernels.FIRST_STORED]
        self.last_store_timestamp: int = values[kernels.LAST_STORED]
        self.max_store_timestamp: int = values[kernels.MAX_STORED]
        self.last_offset: int = values[kernels.LAST_PHYSICAL] if self.count else -1
        self._address, self._keep = address_of(buffer)
        self._buffer = buffer
        self._rows = rows
        self._groups = groups[: values[kernels.GROUPS]]
        self._runs = runs[: values[kernels.RUNS]]

    def runs(self) -> list[UnitRun]:
        """See the protocol."""
        runs = self._runs
        sizes = runs[:, kernels.COUNT] * UNIT_SIZE
        ends = np.cumsum(sizes)
        units = bytearray(int(ends[-1]) if len(ends) else 0)
        if not units:
            return []
        address, _keep = address_of(units)
        kernels.fill_units(self._rows, self.count, address + ends - sizes)
        texts: dict[int, str] = {}
        found: list[UnitRun] = []
        begin = 0
        for (group, first_offset, count, first_physical, last_end, last_time), end in zip(
            runs.tolist(), ends.tolist(), strict=True
        ):
            topic_at, topic_size, queue_id = self._groups[group, : kernels.GROUP_QUEUE + 1].tolist()
            topic = texts.get(group)
            if topic is None:
                topic = texts[group] = self._text(topic_at, topic_size)
            piece = bytes(memoryview(units)[begin:end])
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
        row, key = index_kernels.index_rows(
            self._address,
            self._rows,
            self.count,
            self._groups,
            address,
            slots,
            entries,
            from_row,
            from_key,
            skip_below,
        )
        return int(row), int(key)

    def rows(self) -> list[WalkRow]:
        """See the protocol."""
        found = []
        for row in self._rows[: self.count].tolist():
            topic_at, topic_size = self._groups[row[kernels.GROUP], : kernels.TOPIC_SIZE + 1].tolist()
            unique, keys = row[kernels.UNIQUE], row[kernels.KEYS]
            texts = self._packed_text(keys).split(KEY_SEPARATOR)
            found.append(
                WalkRow._make(
                    (
                        *row[: kernels.TAGS + 1],
                        self._text(topic_at, topic_size),
                        self._packed_text(unique) if unique else None,
                        [key for key in texts if key],
                    )
                )
            )
        return found

    def _text(self, at: int, size: int) -> str:
        return decode_utf8(bytes(self._buffer[at : at + size]))

    def _packed_text(self, packed: int) -> str:
        return self._text(packed >> kernels.TEXT_SIZE_BITS, packed & _TEXT_SIZE)


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
        address, _keep = address_of(buffer)
        # No more records than bytes for them; memory that is not written to costs nothing.
        room = max(min(limit, (end - begin) // MIN_RECORD_SIZE), 0) + 1
        rows = np.empty((room, kernels.ROW_WIDTH), np.int64)
        groups = np.empty((room, kernels.GROUP_WIDTH), np.int64)
        runs = np.empty((room, kernels.RUN_WIDTH), np.int64)
        table = np.zeros(1 << (2 * room).bit_length(), np.int32)
        result = np.zeros(kernels.RESULT_WIDTH, np.int64)
        delays = np.array(delay_levels, np.int64)
        kernels.walk(
            address,
            begin,
            end,
            len(buffer),
            base,
            check_crc,
            force_crc_property,
            limit,
            delays,
            rows,
            groups,
            table,
            runs,
            result,
        )
        return CompiledWalk(buffer, result, rows, groups, runs)

    def resync(self, buffer: ReadBuffer, begin: int, end: int, base: int) -> int:
        """See the protocol."""
        _check_range(buffer, begin, end)
        address, _keep = address_of(buffer)
        return int(kernels.resync(address, begin, end, base))


def _check_range(buffer: ReadBuffer, begin: int, end: int) -> None:
    if begin < 0 or end > len(buffer):
        raise ValueError(f"{begin} to {end} is not inside of {len(buffer)} bytes")
