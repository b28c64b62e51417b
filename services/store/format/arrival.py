"""What has arrived of a log that comes in stretches of any length: which part of it is whole and right.

A slave may acknowledge whole, checked records only. What lies after the last of them is either the first part of a
record, or of the blank that ends a file, and is waited for; or it can never become one, and is refused at once: a
changed length must not make a slave wait for bytes that its master does not have.
"""

from struct import Struct
from typing import NamedTuple

from tandemmq.store.format.buffers import ReadBuffer
from tandemmq.store.format.record import (
    BLANK_SIZE,
    MAGIC_V1,
    MAX_PROPERTIES,
    MAX_TOPIC,
    MIN_RECORD_SIZE,
    PROPERTIES_LENGTH_SIZE,
)
from tandemmq.store.format.record_fields import PLACED_SIZE, SYS_FLAG_AT, has_blank_magic, physical_offset_at
from tandemmq.store.format.sysflag import BORN_HOST_V6, STORE_HOST_V6
from tandemmq.store.format.walker import REASONS, CrcProperty, Stop, Walker

_INT = Struct(">i")
_FIXED = 88
"""Where the body begins with IPv4 hosts."""
_MORE_FOR_V6 = 12


class Arrived(NamedTuple):
    """What is in the first ``end`` bytes of a log file."""

    whole: int
    """After the last whole, right record; the file's size where a blank ends it and all of it is there."""
    problem: str = ""
    """Why the bytes from there on are no record, in words; empty while they may become one."""
    stop: Stop = Stop.END
    """What the walker said."""
    filler: bool = False
    """The problem is in bytes that nobody reads: a blank ends the file, and not only zeros lie after it.

    A RocketMQ with transientStorePoolEnable leaves what its buffer held; else such bytes were changed on the way.
    """


def check_arrived(
    walker: Walker,
    buffer: ReadBuffer,
    begin: int,
    end: int,
    *,
    base: int,
    file_size: int,
    largest: int,
    crc_property: CrcProperty = CrcProperty.IGNORED,
) -> Arrived:
    """Check the records in ``buffer[begin:end]``, bytes of a log file of ``file_size`` that begins at ``base``.

    ``begin`` is a record's; ``end`` may lie anywhere. ``largest``: bytes that a record may have.
    """
    whole, stop = walker.verify(buffer, begin, end, base, crc_property=crc_property)
    if whole == file_size:
        return Arrived(whole)
    if stop not in (Stop.END, Stop.INCOMPLETE, Stop.BLANK):
        return Arrived(whole, REASONS[stop], stop)
    with memoryview(buffer) as view, view[whole:end] as head:
        problem = why_no_beginning(head, base + whole, file_size - whole, largest)
    if problem or end < file_size:
        return Arrived(whole, problem, stop)
    if stop is Stop.BLANK:
        filled = bytes(buffer[whole + BLANK_SIZE : end])
        if filled == bytes(len(filled)):
            return Arrived(file_size)
        return Arrived(whole, "what fills the end of the file are not zeros", stop, filler=True)
    return Arrived(whole, REASONS[Stop.INCOMPLETE], Stop.INCOMPLETE)


def why_no_beginning(head: memoryview, physical: int, room: int, largest: int) -> str:
    """Why ``head`` cannot be the first part of a record at log offset ``physical``, nor of a blank; empty if it can.

    ``room``: bytes from there to the end of the file; ``largest``: bytes that a record may have.
    """
    arrived = len(head)
    if arrived < _INT.size:
        return ""
    (size,) = _INT.unpack_from(head)
    if arrived >= BLANK_SIZE and has_blank_magic(head):
        return "" if size == room else f"the file's end of {room:,} bytes is said to have {size:,}"
    if not MIN_RECORD_SIZE <= size <= min(largest, room - BLANK_SIZE):
        if size == room and arrived < BLANK_SIZE:
            return ""
        return f"a record cannot have {size:,} bytes there"
    if arrived >= PLACED_SIZE and physical_offset_at(head) != physical:
        return REASONS[Stop.BAD_POSITION]
    return "" if _lengths_may_fit(head, size) else REASONS[Stop.BAD_SIZE]


def _lengths_may_fit(head: memoryview, size: int) -> bool:
    """Whether the lengths inside that have arrived leave room for the rest, and where all have, add up to ``size``."""
    arrived = len(head)
    if arrived < SYS_FLAG_AT + _INT.size:
        return True
    (sys_flag,) = _INT.unpack_from(head, SYS_FLAG_AT)
    body_at = _FIXED + sum(_MORE_FOR_V6 for host in (BORN_HOST_V6, STORE_HOST_V6) if sys_flag & host)
    if arrived < body_at:
        return True
    (body_size,) = _INT.unpack_from(head, body_at - _INT.size)
    width = 1 if int.from_bytes(head[4:8], "big") == MAGIC_V1 else 2
    topic_at = body_at + body_size + width
    if body_size < 0 or topic_at + PROPERTIES_LENGTH_SIZE > size:
        return False
    if arrived < topic_at:
        return True
    topic_size = int.from_bytes(head[topic_at - width : topic_at], "big")
    properties_at = topic_at + topic_size + PROPERTIES_LENGTH_SIZE
    if topic_size > MAX_TOPIC or properties_at > size:
        return False
    if arrived < properties_at:
        return True
    properties_size = int.from_bytes(head[properties_at - PROPERTIES_LENGTH_SIZE : properties_at], "big")
    return properties_size <= MAX_PROPERTIES and properties_at + properties_size == size
