"""The unit of a consume queue: where a record is, and what a tag filter needs.

    0   long  physical offset of the record in the commit log
    8   int   TOTALSIZE of the record
    12  long  tags code

20 bytes. Unit n of a queue stands at byte 20·n of the queue and is its queue offset n. Source: ConsumeQueue.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from operator import add
from struct import Struct
from typing import NamedTuple

from tandemmq.common import topic_names
from tandemmq.store.format import properties
from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.format.java import tags_code
from tandemmq.store.format.record_encoder import MIN_RECORD_SIZE

_UNIT = Struct(">qiq")
_PLACE = Struct(">q")
UNIT_SIZE = _UNIT.size
TAGS_CODE_AT = 12
UNIT_FIELDS = [("physical", ">i8"), ("size", ">i4"), ("tags", ">i8")]
"""A unit as NumPy's data types are described."""

SCHEDULE_TOPIC = topic_names.SCHEDULE_TOPIC
"""The topic in which delayed messages wait; its units hold the delivery time instead of a tags code."""

DELAY_LEVELS_MS = tuple(
    1000 * seconds
    for seconds in (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
)
"""RocketMQ's levels 1 to 18 where the setting messageDelayLevel says nothing else."""

_MAX_INT = 0x7FFFFFFF
_LONGEST_NAME = 255
"""Bytes of a name that Linux's file systems allow; a topic has 32,767 at most."""


class Unit(NamedTuple):
    """One unit."""

    physical_offset: int
    size: int
    tags_code: int

    @property
    def end(self) -> int:
        """Log offset after the record."""
        return self.physical_offset + self.size


_unit_of = partial(tuple.__new__, Unit)
"""As `Unit._make`, which is Python and takes four times as long."""
_BLANK = Unit(0, _MAX_INT, 0)
BLANK_UNIT = _UNIT.pack(*_BLANK)
"""Fills the places before the first unit of a queue that does not start at 0. Source: ConsumeQueue.fillPreBlank."""


def count_below(units: bytes, limit: int) -> int:
    """How many units there are up to the last message that ends at or below log offset ``limit``; 0 for none."""
    for at in range(len(units) - UNIT_SIZE, -1, -UNIT_SIZE):
        offset, size, _ = _UNIT.unpack_from(units, at)
        if 0 < size < _MAX_INT and offset + size <= limit:
            return at // UNIT_SIZE + 1
    return 0


def place_of(units: ReadBuffer, number: int = 0) -> int:
    """Log offset of the record of the ``number``-th of ``units``."""
    place: int = _PLACE.unpack_from(units, number * UNIT_SIZE)[0]
    return place


def bytes_of_records(units: bytes) -> int:
    """What the records of whole ``units`` take in the log."""
    return sum(size for _, size, _ in _UNIT.iter_unpack(_whole(units)))


def pack_unit(physical_offset: int, size: int, tags_code: int) -> bytes:
    """The 20 bytes of a unit."""
    return _UNIT.pack(physical_offset, size, tags_code)


def unpack_units(buffer: ReadBuffer) -> list[Unit]:
    """All whole units in ``buffer``; a rest shorter than a unit is left out."""
    return list(map(_unit_of, _UNIT.iter_unpack(_whole(buffer))))


def lie_together(units: bytes) -> bool:
    """Whether the records of whole units lie one after the other in the log; not if there are none."""
    if not units:
        return False
    places, sizes, _ = zip(*_UNIT.iter_unpack(units), strict=True)
    return tuple(map(add, places[:-1], sizes)) == places[1:]


def _whole(units: ReadBuffer) -> memoryview:
    """Without a rest that is shorter than a unit."""
    return memoryview(units)[: len(units) - len(units) % UNIT_SIZE]


def is_blank(unit: Unit) -> bool:
    """A fill unit: no message, never to be read, counted or taken for a position (trap T5 of the Java store)."""
    return unit == _BLANK


def is_empty(unit: Unit) -> bool:
    """A unit that was never written (size 0), or cannot be one (negative offset or size)."""
    return unit.size <= 0 or unit.physical_offset < 0


def is_possible(queue_offset: int, physical_offset: int) -> bool:
    """Whether a record at ``physical_offset`` can have this queue offset: the log has room for those before it.

    No checksum covers QUEUEOFFSET, and one flipped bit must not make a queue a billion units longer.
    """
    return 0 <= queue_offset * MIN_RECORD_SIZE <= physical_offset


def impossible_units(first: int, units: ReadBuffer) -> int:
    """How many of the ``units`` of a run that begins with queue offset ``first`` are not possible: the first ones.

    Records are longer than offsets count, so after one that is possible all are. It is asked of every record, since
    where a run begins depends on how the log was walked.
    """
    low, high = 0, len(units) // UNIT_SIZE
    if high and is_possible(first, place_of(units)):
        return 0  # the usual case
    while low < high:
        middle = (low + high) // 2
        if is_possible(first + middle, place_of(units, middle)):
            high = middle
        else:
            low = middle + 1
    return low


def is_queue_name(topic: str, queue_id: int) -> bool:
    """Whether a queue can have the directory ``<topic>/<queue id>``.

    No checksum covers TOPIC and QUEUEID, and a flipped bit must neither lead out of the store nor leave there what the
    next start refuses. A topic that was no UTF-8 has U+FFFD in its name, which is not that of any record.
    """
    return queue_id >= 0 and _is_directory_name(topic)


@lru_cache(maxsize=16384)
def _is_directory_name(name: str) -> bool:
    if name in ("", ".", "..") or "/" in name or "\0" in name or "\ufffd" in name:
        return False
    return len(name.encode(errors="replace")) <= _LONGEST_NAME


def delay_level(text: str | None) -> int:
    """The level in a DELAY property; 0 if it is missing or no positive Java int (Java would fail on a non-number)."""
    digits = (text or "").removeprefix("+").lstrip("0")
    if len(digits) > 10 or not (digits.isascii() and digits.isdigit()):
        return 0
    level = int(digits)
    return level if level <= _MAX_INT else 0


def record_tags_code(
    topic: str, props: Mapping[str, str], store_timestamp: int, delay_levels: Sequence[int] = ()
) -> int:
    """The tags code of a record: the hash of its TAGS, or the delivery time (ms) if it waits in SCHEDULE_TOPIC.

    ``delay_levels``: the delays in ms of levels 1, 2, …; a higher level counts as the highest. Without any level known
    there is no delivery time. Source: CommitLog.checkMessageAndReturnSize.
    """
    if topic == SCHEDULE_TOPIC:
        level = min(delay_level(props.get(properties.DELAY)), len(delay_levels))
        if level > 0:
            time = store_timestamp + delay_levels[level - 1]
            # Java's long wraps; only a damaged timestamp gets there.
            return (time + (1 << 63)) % (1 << 64) - (1 << 63)
    return tags_code(props.get(properties.TAGS))
