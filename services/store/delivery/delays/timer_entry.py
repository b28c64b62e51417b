"""One timer as the index knows it: when something is to be done with it, and where its record lies. No I/O.

    offset   field                 type     24 bytes, big-endian
    0        time within the hour  uint     ms; bit 31: a recall, bit 30: stored again (rolled)
    4        queue offset          ulong    in `rmq_sys_wheel_timer`, queue 0
    12       physical offset       ulong
    20       mark                  uint     CRC-32 of real topic, +, UNIQ_KEY

Entries of a file ascend in queue offset. The hour is that of the file (`timer_slot`).
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tandemmq.store.format import properties
from tandemmq.store.format.record import Record

ENTRY_SIZE = 24
HOUR_MS = 3_600_000
LAST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999: no time lies after it."""

ROLL_TIMES = "TIMER_ROLL_TIMES"
DELETE_KEY = "TIMER_DEL_UNIQKEY"

_ENTRY = struct.Struct(">IQQI")
_RECALL, _ROLLED = 1 << 31, 1 << 30
_TIME = _ROLLED - 1


class TimerEntry(NamedTuple):
    """A timer. They are delivered in the order of these fields.

    `when`: the time in ms at which it is due, or is to be stored again before its file expires. `mark` is the same for
    a message, the same message stored again, and its recall.
    """

    when: int
    offset: int
    physical: int
    mark: int
    recall: bool = False
    rolled: bool = False


class BadEntries(ValueError):
    """The bytes are no entries of this hour, in order: the file is damaged."""


def pack_entries(entries: Iterable[TimerEntry]) -> bytes:
    """The bytes of entries; each is written relative to its own hour."""
    pack = _ENTRY.pack
    return b"".join(
        pack(when % HOUR_MS | (_RECALL if recall else 0) | (_ROLLED if rolled else 0), offset, physical, mark)
        for when, offset, physical, mark, recall, rolled in entries
    )


def unpack_entries(data: bytes, hour: int, after: int = -1) -> Iterator[TimerEntry]:
    """The entries of a file's bytes; `hour`: when its hour begins, in ms. They lie after queue offset `after`.

    Raises BadEntries.
    """
    if len(data) % ENTRY_SIZE:
        raise BadEntries(f"{len(data)} bytes are no whole number of entries")
    for time, offset, physical, mark in _ENTRY.iter_unpack(data):
        within = time & _TIME
        if within >= HOUR_MS or offset <= after:
            raise BadEntries(f"an entry says {within} ms and queue offset {offset}, after {after}")
        after = offset
        yield TimerEntry(hour + within, offset, physical, mark, bool(time & _RECALL), bool(time & _ROLLED))


def due_of(record: Record, precision_ms: int) -> int:
    """When a waiting message is to be delivered.

    TIMER_DELIVER_MS, if it lies in the step that TIMER_OUT_MS names: that is what Java goes by, and what Java brokers
    have written may have no other. Then the end of the step: nothing is delivered early. A record without any time is
    due when it was stored.
    """
    given = record.properties
    deliver, out = _number(given.get(properties.TIMER_DELIVER_MS)), _number(given.get(properties.TIMER_OUT_MS))
    if out is None:
        due = record.store_timestamp if deliver is None else deliver
    elif deliver is not None and out < deliver <= out + precision_ms:
        due = deliver
    else:
        due = out + precision_ms
    return min(max(due, 0), LAST_MS)


def roll_times(record: Record) -> int:
    """How often the message was stored again."""
    return max(_number(record.properties.get(ROLL_TIMES)) or 0, 0)


def entry_of(record: Record, precision_ms: int, roll_after_ms: int) -> TimerEntry:
    """The entry of a record. It is stored again when it has lain so long and is not due."""
    when = min(due_of(record, precision_ms), max(record.store_timestamp, 0) + roll_after_ms, LAST_MS)
    recalled = recalled_key(record)
    key = record.properties.get(properties.UNIQ_KEY, "") if recalled is None else recalled
    mark = mark_of(record.properties.get(properties.REAL_TOPIC, ""), key)
    return TimerEntry(
        when, record.queue_offset, record.physical_offset, mark, recalled is not None, roll_times(record) > 0
    )


def mark_of(topic: str, unique_key: str) -> int:
    """A number by which records that speak of the same message find each other."""
    return zlib.crc32(f"{topic}+{unique_key}".encode(errors="replace"))


def recalled_key(record: Record) -> str | None:
    """The UNIQ_KEY that a recall names; None if the record is none. RocketMQ 5.3 writes `<topic>+<key>`."""
    text = record.properties.get(DELETE_KEY)
    if text is None:
        return None
    return text.removeprefix(record.properties.get(properties.REAL_TOPIC, "") + "+")


def _number(text: str | None) -> int | None:
    """A time in a property, if it is one."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= 19):
        return None
    return int(text)
