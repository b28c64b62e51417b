"""The batch writer in machine code."""

from collections.abc import Sequence
from struct import Struct
from typing import Any

import numpy as np

from tandemmq.store.format.batch import (
    LEAST_SIZE,
    MalformedBatch,
    check_hosts,
    check_room,
    decode_client_batch,
)
from tandemmq.store.format.buffers import WriteBuffer
from tandemmq.store.format.compiled.jit import helper, kernel
from tandemmq.store.format.compiled.memory import (
    address_of,
    byte_at,
    copy,
    int_at,
    put_byte,
    put_int,
    put_long,
    raw_long_at,
    short_at,
)
from tandemmq.store.format.compiled.records import crc31
from tandemmq.store.format.compiled.text import find_byte
from tandemmq.store.format.record import (
    CRC_PROPERTY_SIZE,
    HEADS,
    MAGIC_V1,
    MAGIC_V2,
    MAX_PROPERTIES,
    MAX_V1_TOPIC,
    PROPERTIES_LENGTH_SIZE,
    PropertiesOverflow,
    head_size,
    topic_field_size,
)
from tandemmq.store.format.sysflag import HOSTS_V6

_MALFORMED = -1
_TOO_LONG = -2
_CRC_NAME = b"__CRC32#\x01"
_LENGTH = Struct(">h")
# Names that make a batch one to look into, as little-endian numbers; the masks are as long as they are.
_WAIT, _FIVE = int.from_bytes(b"WAIT\x01", "little"), 0xFF_FFFF_FFFF
_DELAY, _SIX = int.from_bytes(b"DELAY\x01", "little"), 0xFFFF_FFFF_FFFF
_TIMER_D, _SEVEN = int.from_bytes(b"TIMER_D", "little"), 0xFF_FFFF_FFFF_FFFF
_TRAN_MSG = int.from_bytes(b"TRAN_MSG", "little")
_SHORTEST_NAME = 6  # "WAIT" 01 and one character


class CompiledBatchWriter:
    """See batch.BatchWriter."""

    def measure(
        self, blob: bytes | memoryview, topic_size: int, sys_flag: int, append_crc: bool = False
    ) -> tuple[int, int]:
        """See the protocol."""
        fixed = head_size(sys_flag) + topic_field_size(topic_size) + PROPERTIES_LENGTH_SIZE
        address, _keep = address_of(blob) if blob else (0, None)
        count, total = _measure(address, len(blob), fixed, append_crc)
        if count < 0:
            _explain(blob, count)
        return int(count), int(total)

    def measure_plain(
        self, blob: bytes, topic_size: int, sys_flag: int, append_crc: bool, longest_body: int
    ) -> tuple[int, int] | None:
        """See the protocol."""
        if topic_size > MAX_V1_TOPIC:
            return None
        fixed = head_size(sys_flag) + topic_field_size(topic_size) + PROPERTIES_LENGTH_SIZE
        address, _keep = address_of(blob)
        measured = _measure_plain(address, len(blob), fixed, append_crc, longest_body)
        return measured if measured[0] > 0 else None

    def write(
        self,
        blob: bytes | memoryview,
        dst: WriteBuffer,
        at: int,
        *,
        topic: bytes,
        queue_id: int,
        queue_offset: int,
        physical_offset: int,
        sys_flag: int,
        born_timestamp: int,
        born_host: bytes,
        store_timestamp: int,
        store_host: bytes,
        reconsume_times: int,
        append_crc: bool = False,
        measured: tuple[int, int] | None = None,
    ) -> Sequence[int]:
        """See the protocol."""
        check_hosts(sys_flag, born_host, store_host)
        count, total = measured or self.measure(blob, len(topic), sys_flag, append_crc)
        check_room(dst, at, total)
        if not count:
            return []
        short = len(topic) <= MAX_V1_TOPIC
        # The head of every record; size, checksum, flag, offsets and body length are filled in for each.
        head = HEADS[sys_flag & HOSTS_V6].pack(
            0,
            MAGIC_V1 if short else MAGIC_V2,
            0,
            queue_id,
            0,
            0,
            0,
            sys_flag,
            born_timestamp,
            born_host,
            store_timestamp,
            store_host,
            reconsume_times,
            0,
            0,
        )
        # One buffer for what all records share: head, topic with its length, name of the checksum.
        shared = head + (bytes((len(topic),)) if short else _LENGTH.pack(len(topic))) + topic + _CRC_NAME
        source, _keep_blob = address_of(blob)
        target, _keep_target = address_of(dst)  # not remembered: a file that is full would be kept with it
        common, _keep_shared = address_of(shared)
        offsets = np.empty(count, np.int64)
        topic_size = len(shared) - len(head) - len(_CRC_NAME)
        _write(
            source,
            len(blob),
            target + at,
            common,
            len(head),
            topic_size,
            queue_offset,
            physical_offset,
            append_crc,
            offsets,
        )
        placed: list[int] = offsets.tolist()
        return placed


def _explain(blob: bytes | memoryview, fault: int) -> None:
    """Raise what is wrong with ``blob``: the readable decoder knows the words."""
    if fault == _TOO_LONG:
        raise PropertiesOverflow(f"properties have at most {MAX_PROPERTIES:,} bytes")
    decode_client_batch(blob)
    raise MalformedBatch("it does not consist of whole messages", 0)


@helper
def _size_up(blob: int, length: int, fixed: int, append_crc: bool) -> tuple[int, int]:
    """Number and total size of the records, or (_MALFORMED or _TOO_LONG, 0)."""
    count = total = 0
    too_long = False
    at, end = blob, blob + length
    while at < end:
        if end - at < LEAST_SIZE:
            return _MALFORMED, 0
        size = int_at(at)
        body_size = int_at(at + 16)
        if size < LEAST_SIZE or size > end - at or body_size < 0 or body_size > size - LEAST_SIZE:
            return _MALFORMED, 0
        properties_size = short_at(at + 20 + body_size)
        if properties_size < 0 or LEAST_SIZE + body_size + properties_size != size:
            return _MALFORMED, 0
        stored = properties_size
        if append_crc:
            stored += CRC_PROPERTY_SIZE
            if properties_size > 0 and byte_at(at + size - 1) != 2:
                stored += 1
            too_long = too_long or stored > MAX_PROPERTIES
        total += fixed + body_size + stored
        count += 1
        at += size
    if too_long:
        return _TOO_LONG, 0
    return count, total


@helper
def _is_plain(blob: int, length: int, longest_body: int) -> bool:
    """Whether a measured blob has no body above the limit, none of the names above, and no zero byte at an end."""
    at, end = blob, blob + length
    while at < end:
        size = int_at(at)
        body_size = int_at(at + 16)
        if body_size > longest_body:
            return False
        name = at + LEAST_SIZE + body_size
        at += size
        if name < at and byte_at(at - 1) == 0:
            return False  # recovery would take the record for one whose last page is missing
        while name < at:
            stop = find_byte(name, at, end, 2)
            if stop - name >= _SHORTEST_NAME:
                # Eight bytes may be read: before a property there are the 22 of the piece's own head.
                word = raw_long_at(name) if name + 8 <= end else raw_long_at(stop - 8) >> 8 * (8 - (stop - name))
                if word & _FIVE == _WAIT or word & _SIX == _DELAY or word & _SEVEN == _TIMER_D or word == _TRAN_MSG:
                    return False
            name = stop + 1
    return True


@kernel
def _measure(blob: int, length: int, fixed: int, append_crc: bool) -> tuple[int, int]:
    """See _size_up."""
    return _size_up(blob, length, fixed, append_crc)


@kernel
def _measure_plain(blob: int, length: int, fixed: int, append_crc: bool, longest_body: int) -> tuple[int, int]:
    """As _measure; a number of at most 0 too for a blob that is not plain."""
    measured = _size_up(blob, length, fixed, append_crc)
    if measured[0] > 0 and not _is_plain(blob, length, longest_body):
        return 0, 0
    return measured


@kernel
def _write(
    blob: int,
    length: int,
    target: int,
    shared: int,
    head_size: int,
    topic_size: int,
    queue_offset: int,
    physical_offset: int,
    append_crc: bool,
    offsets: Any,
) -> None:
    """Lay out the records of a measured blob at ``target``."""
    at, end, number = blob, blob + length, 0
    while at < end:
        body_size = int_at(at + 16)
        properties_size = short_at(at + 20 + body_size)
        separator = append_crc and properties_size > 0 and byte_at(at + 21 + body_size + properties_size) != 2
        stored = properties_size + (CRC_PROPERTY_SIZE if append_crc else 0) + (1 if separator else 0)
        size = head_size + body_size + topic_size + 2 + stored
        copy(target, shared, head_size)
        put_int(target, size)
        put_int(target + 8, crc31(at + 20, body_size))
        put_int(target + 16, int_at(at + 12))
        put_long(target + 20, queue_offset + number)
        put_long(target + 28, physical_offset)
        put_int(target + head_size - 4, body_size)
        to = target + head_size
        copy(to, at + 20, body_size)
        to += body_size
        copy(to, shared + head_size, topic_size)
        to += topic_size
        put_byte(to, stored >> 8)
        put_byte(to + 1, stored)
        copy(to + 2, at + 22 + body_size, properties_size)
        if append_crc:
            to += 2 + properties_size
            if separator:
                put_byte(to, 2)
                to += 1
            copy(to, shared + head_size + topic_size, 9)
            value = crc31(target, size - CRC_PROPERTY_SIZE)
            for digit in range(10):
                put_byte(to + 9 + digit, 48 + value % 10)
                value //= 10
            put_byte(to + 19, 2)
        offsets[number] = physical_offset
        physical_offset += size
        target += size
        number += 1
        at += LEAST_SIZE + body_size + properties_size
