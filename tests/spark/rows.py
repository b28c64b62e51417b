"""Rows of the table as the readable code makes them, to compare with."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tandemmq.store.format.message_id import encode_offset_id
from tandemmq.store.format.record import CorruptRecord, Record, decode_record
from tandemmq.store.format.walker import Stop, python_walker

Row = dict[str, Any]
COLUMNS = (
    *("topic", "queue_id", "queue_offset", "physical_offset", "size", "store_timestamp", "born_timestamp"),
    *("born_host", "store_host", "keys", "tags", "unique_key", "properties", "body", "sys_flag", "reconsume_times"),
    *("message_id", "is_valid"),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(ms: int) -> datetime | None:
    """The time, None where no calendar has it."""
    try:
        return _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return None


def row_of(record: Record, at: int | None = None, *, valid: bool = True) -> Row:
    """The row of a record that stands at log offset ``at``; None: where it says."""
    place = record.physical_offset if at is None else at
    return {
        "topic": record.topic,
        "queue_id": record.queue_id,
        "queue_offset": record.queue_offset,
        "physical_offset": place,
        "size": record.size,
        "store_timestamp": moment(record.store_timestamp),
        "born_timestamp": moment(record.born_timestamp),
        "born_host": str(record.born_host),
        "store_host": str(record.store_host),
        "keys": record.keys,
        "tags": record.tags,
        "unique_key": record.unique_key,
        "properties": record.properties,
        "body": record.body,
        "sys_flag": record.sys_flag,
        "reconsume_times": record.reconsume_times,
        "message_id": encode_offset_id(record.store_host, place),
        "is_valid": valid,
    }


def stretch(begin: int, end: int) -> Row:
    """The row of log bytes that are no record."""
    return dict.fromkeys(COLUMNS) | {"physical_offset": begin, "size": end - begin, "is_valid": False}


def rows_of_log(directory: Path) -> list[Row]:
    """All rows of the log files in ``directory``, in log order, by the readable walker and decoder."""
    paths = sorted(path for path in directory.iterdir() if len(path.name) == 20 and path.stat().st_size)
    # A store makes its next file before it needs it: the log ends in the last file that has a record.
    last = max((path for path in paths if _has_record(path.read_bytes(), int(path.name))), default=paths[0])
    return [row for path in paths for row in rows_of_file(path.read_bytes(), int(path.name), last=path >= last)]


def _has_record(data: bytes, base: int) -> bool:
    walker = python_walker()
    return (
        walker.walk(data, 0, len(data), base, check_crc=True).count > 0 or walker.resync(data, 0, len(data), base) >= 0
    )


def rows_of_file(data: bytes, base: int, *, last: bool) -> list[Row]:
    """The rows of one file. ``last``: where nothing valid follows, the log ends."""
    walker = python_walker()
    rows: list[Row] = []
    position = 0
    while position < len(data):
        walk = walker.walk(data, position, len(data), base, check_crc=True)
        while position < walk.position:
            record = decode_record(data, position)
            rows.append(row_of(record))
            position += record.size
        if walk.stop is Stop.BLANK:
            break
        if walk.stop is Stop.ROWS_FULL:
            continue
        found = walker.resync(data, position + 1, len(data), base)
        if found < 0 and last:
            break
        end = found if found >= 0 else len(data)
        rows += damaged_rows(data, base, position, end)
        position = end
    return rows


def damaged_rows(data: bytes, base: int, begin: int, end: int) -> list[Row]:
    """The rows of bytes that hold no valid record."""
    rows: list[Row] = []
    while begin < end:
        try:
            record = decode_record(data[:end], begin, verify=False)
        except CorruptRecord:
            return [*rows, stretch(base + begin, base + end)]
        rows.append(row_of(record, base + begin, valid=False))
        begin += record.size
    return rows
