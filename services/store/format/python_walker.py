"""The walker to read: one record after the other with struct. The compiled one must agree with it in everything."""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from tandemmq.store.format import properties as props
from tandemmq.store.format.buffers import ReadBuffer, WriteBuffer
from tandemmq.store.format.crc import crc31
from tandemmq.store.format.index_layout import put_key
from tandemmq.store.format.java import decode_utf8, index_hash, index_key
from tandemmq.store.format.record import (
    BLANK_SIZE,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    MAX_PROPERTIES,
    MAX_TOPIC,
    MIN_RECORD_SIZE,
    meant_crc_property,
    verify_crc_property,
)
from tandemmq.store.format.sysflag import BORN_HOST_V6, STORE_HOST_V6, is_indexed_by_key, is_indexed_in_queue
from tandemmq.store.format.unit import pack_unit, record_tags_code
from tandemmq.store.format.walker import DEFAULT_LIMIT, CrcProperty, Stop, UnitRun, WalkRow

_LEAST_TO_LOOK_AT = 4
_PREFIX = Struct(">iIIiiqqiq")  # TOTALSIZE to BORNTIMESTAMP
_LONG = Struct(">q")
_INT = Struct(">i")
_MORE_FOR_V6 = 12
_FIXED = 84
"""Position of BODYLENGTH with IPv4 hosts."""


class _Row(NamedTuple):
    position: int  # physical
    size: int
    queue_id: int
    queue_offset: int
    sys_flag: int
    store_timestamp: int
    born_timestamp: int
    tags_code: int
    topic: bytes
    unique_key: str | None
    keys: list[str]


class _Parts(NamedTuple):
    """A whole record, and where in it the topic begins and ends, and the properties begin."""

    record: memoryview
    topic_at: int
    topic_end: int
    properties_at: int


class _Run:
    """A UnitRun being collected."""

    __slots__ = ("first", "last", "units")

    def __init__(self, first: _Row) -> None:
        self.first = self.last = first
        self.units: list[bytes] = []

    def add(self, row: _Row) -> None:
        self.last = row
        self.units.append(pack_unit(row.position, row.size, row.tags_code))

    def finish(self) -> UnitRun:
        first, last = self.first, self.last
        return UnitRun(
            decode_utf8(first.topic),
            first.queue_id,
            first.queue_offset,
            len(self.units),
            b"".join(self.units),
            first.position,
            last.position + last.size,
            last.store_timestamp,
        )


class PythonWalk:
    """See walker.Walk. Holds nothing of the buffer."""

    def __init__(self, position: int, stop: Stop, rows: list[_Row]) -> None:
        self.position = position
        self.stop = stop
        self.count = len(rows)
        self.first_store_timestamp = rows[0].store_timestamp if rows else 0
        self.last_store_timestamp = rows[-1].store_timestamp if rows else 0
        self.max_store_timestamp = max((row.store_timestamp for row in rows), default=0)
        self.last_offset = rows[-1].position if rows else -1
        self._rows = rows

    def runs(self) -> list[UnitRun]:
        """See the protocol."""
        runs: list[_Run] = []
        current: dict[tuple[bytes, int], _Run] = {}
        for row in self._rows:
            if not is_indexed_in_queue(row.sys_flag):
                continue
            queue = row.topic, row.queue_id
            run = current.get(queue)
            if run is None or row.queue_offset != run.last.queue_offset + 1:
                run = current[queue] = _Run(row)
                runs.append(run)
            run.add(row)
        return [run.finish() for run in runs]

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
        for number in range(from_row, self.count):
            row = self._rows[number]
            if is_indexed_by_key(row.sys_flag) and row.position >= skip_below:
                topic = decode_utf8(row.topic)
                keys = row.keys if row.unique_key is None else [row.unique_key, *row.keys]
                for at in range(from_key, len(keys)):
                    key_hash = index_hash(index_key(topic, keys[at]))
                    if not put_key(index_buffer, slots, entries, key_hash, row.position, row.store_timestamp):
                        return number, at
            from_key = 0
        return self.count, 0

    def rows(self) -> list[WalkRow]:
        """See the protocol."""
        return [WalkRow(*row[:8], decode_utf8(row.topic), row.unique_key, row.keys) for row in self._rows]


class PythonWalker:
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
    ) -> PythonWalk:
        """See the protocol."""
        rows: list[_Row] = []
        position = begin
        with memoryview(buffer) as view:
            while True:
                if end - position < _LEAST_TO_LOOK_AT:
                    stop = Stop.END
                elif len(rows) >= limit:
                    stop = Stop.ROWS_FULL
                else:
                    found = _check(view, position, end, base, check_crc, force_crc_property, delay_levels)
                    if isinstance(found, _Row):
                        rows.append(found)
                        position += found.size
                        continue
                    stop = found
                return PythonWalk(position, stop, rows)

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
        position = begin
        with memoryview(buffer) as view:
            while end - position >= _LEAST_TO_LOOK_AT:
                found = _parts(view, position, end, base, True, False)
                if isinstance(found, Stop):
                    return position, found
                if not _all_fits(found, crc_property):
                    return position, Stop.BAD_CRC
                position += len(found.record)
        return position, Stop.END

    def resync(self, buffer: ReadBuffer, begin: int, end: int, base: int) -> int:
        """See the protocol."""
        with memoryview(buffer) as view:
            data = bytes(view[begin:end])
            magics = [MAGIC_V1.to_bytes(4, "big"), MAGIC_V2.to_bytes(4, "big")]
            common = magics[0][:3]
            at = data.find(common, _INT.size)
            while at >= 0:
                position = begin + at - _INT.size
                is_magic = data[at : at + 4] in magics
                if is_magic and not isinstance(_parts(view, position, end, base, True, False), Stop):
                    return position
                at = data.find(common, at + 1)
        return -1


def _check(
    view: memoryview,
    position: int,
    end: int,
    base: int,
    check_crc: bool,
    force_crc_property: bool,
    delay_levels: Sequence[int],
) -> _Row | Stop:
    """The record at ``position``, or why there is none."""
    parts = _parts(view, position, end, base, check_crc, force_crc_property)
    if isinstance(parts, Stop):
        return parts
    record, topic_at, topic_end, properties_at = parts
    size, _, _, queue_id, _, queue_offset, physical, sys_flag, born_timestamp = _PREFIX.unpack_from(record)
    topic = bytes(record[topic_at:topic_end])
    found = props.decode(record[properties_at:])
    (store_timestamp,) = _LONG.unpack_from(record, 56 + (_MORE_FOR_V6 if sys_flag & BORN_HOST_V6 else 0))
    return _Row(
        physical,
        size,
        queue_id,
        queue_offset,
        sys_flag,
        store_timestamp,
        born_timestamp,
        record_tags_code(decode_utf8(topic), found, store_timestamp, delay_levels),
        topic,
        found.get(props.UNIQ_KEY),
        [key for key in found.get(props.KEYS, "").split(props.KEY_SEPARATOR) if key],
    )


def _parts(
    view: memoryview, position: int, end: int, base: int, check_crc: bool, force_crc_property: bool
) -> _Parts | Stop:
    """The record at ``position``, or why there is none. The order of the checks is that of the comments in Stop."""
    if end - position < BLANK_SIZE:
        return Stop.INCOMPLETE
    (size,) = _INT.unpack_from(view, position)
    magic = int.from_bytes(view[position + 4 : position + 8], "big")
    if size == 0 and magic == 0:
        return Stop.ZERO
    if magic == MAGIC_BLANK:
        return Stop.BLANK
    if magic not in (MAGIC_V1, MAGIC_V2):
        return Stop.BAD_MAGIC
    if size < MIN_RECORD_SIZE:
        return Stop.BAD_SIZE
    if position + size > end:
        return Stop.INCOMPLETE
    record = view[position : position + size]
    _, _, body_crc, _, _, _, physical, sys_flag, _ = _PREFIX.unpack_from(record)
    born_more = _MORE_FOR_V6 if sys_flag & BORN_HOST_V6 else 0
    body_at = _FIXED + born_more + (_MORE_FOR_V6 if sys_flag & STORE_HOST_V6 else 0) + 4
    spans = _spans(record, body_at, 1 if magic == MAGIC_V1 else 2)
    if spans is None:
        return Stop.BAD_SIZE
    topic_at, topic_end, properties_at = spans
    if physical != base + position:
        return Stop.BAD_POSITION
    if check_crc:
        if force_crc_property:
            if not verify_crc_property(record):
                return Stop.BAD_CRC
        else:
            (body_size,) = _INT.unpack_from(record, body_at - 4)
            if body_size > 0 and crc31(record[body_at : body_at + body_size]) != body_crc:
                return Stop.BAD_CRC
            last = size - 1 if properties_at < size else topic_end - 1
            if last >= topic_at and record[last] == 0:
                return Stop.BAD_CRC  # no text ends in a zero byte: the end of the record never reached the disk
    return _Parts(record, topic_at, topic_end, properties_at)


def _all_fits(parts: _Parts, crc_property: CrcProperty) -> bool:
    record, topic_at, topic_end, properties_at = parts
    if crc_property is CrcProperty.IGNORED:
        return True
    if crc_property is CrcProperty.REQUIRED or meant_crc_property(record):
        return bool(verify_crc_property(record))
    return 0 not in bytes(record[topic_at:topic_end]) and 0 not in bytes(record[properties_at:])


def _spans(record: memoryview, body_at: int, length_size: int) -> tuple[int, int, int] | None:
    """Where topic begins, topic ends and properties begin, if the lengths add up to that of the record."""
    size = len(record)
    if body_at > size:
        return None
    (body_size,) = _INT.unpack_from(record, body_at - 4)
    topic_at = body_at + body_size + length_size
    if body_size < 0 or topic_at > size:
        return None
    topic_size = int.from_bytes(record[topic_at - length_size : topic_at], "big")
    topic_end = topic_at + topic_size
    if topic_size > MAX_TOPIC or topic_end + 2 > size:
        return None
    properties_size = int.from_bytes(record[topic_end : topic_end + 2], "big")
    if properties_size > MAX_PROPERTIES or topic_end + 2 + properties_size != size:
        return None
    return topic_at, topic_end, topic_end + 2
