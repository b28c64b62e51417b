"""The kernels of the batch writer."""

import cython
from cython.cimports.libc.stdint import int64_t, uint64_t
from cython.cimports.libc.string import memcpy
from cython.cimports.tandemmq.store.format.compiled.arrays import longs_to_fill
from cython.cimports.tandemmq.store.format.compiled.memory import (
    crc31,
    crc_is_at,
    int_at,
    put_int,
    put_long,
    put_short,
    short_at,
    word_at,
)
from cython.cimports.tandemmq.store.format.compiled.text import find_byte

from tandemmq.store.format import batch
from tandemmq.store.format.crc import crc_address
from tandemmq.store.format.record import CRC_PROPERTY_SIZE, MAX_PROPERTIES

if [LEAST, CRC_SIZE, LONGEST_PROPERTIES] != [batch.LEAST_SIZE, CRC_PROPERTY_SIZE, MAX_PROPERTIES]:
    raise ImportError("the compiled batch writer was made for another layout of records")
crc_is_at(crc_address())


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def size_up(blob: cython.pointer(Blob)) -> cython.int:
    """Find number and total size of the records; 0, or why there are none."""
    at: At = blob.at
    too_long: cython.bint = False
    size: int64_t
    body_size: int64_t
    stored: int64_t
    blob.count = blob.total = 0
    while at < blob.end:
        if blob.end - at < LEAST:
            return MALFORMED
        size = int_at(at)
        body_size = int_at(at + 16)
        if size < LEAST or size > blob.end - at or body_size < 0 or body_size > size - LEAST:
            return MALFORMED
        stored = short_at(at + 20 + body_size)
        if stored < 0 or LEAST + body_size + stored != size:
            return MALFORMED
        if blob.append_crc:
            if stored > 0 and at[size - 1] != 2:
                stored += 1
            stored += CRC_SIZE
            too_long = too_long or stored > LONGEST_PROPERTIES
        blob.total += blob.fixed + body_size + stored
        blob.count += 1
        at += size
    return TOO_LONG if too_long else 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def is_looked_into(word: uint64_t) -> cython.bint:
    """Whether a property begins as those do that a broker has to look into: WAIT, DELAY, TIMER_D…, TRAN_MSG."""
    five: uint64_t = 0xFFFFFFFFFF
    six: uint64_t = 0xFFFFFFFFFFFF
    seven: uint64_t = 0xFFFFFFFFFFFFFF
    return (
        word & five == cython.cast(uint64_t, 0x0154494157)
        or word & six == cython.cast(uint64_t, 0x0159414C4544)
        or word & seven == cython.cast(uint64_t, 0x445F52454D4954)
        or word == cython.cast(uint64_t, 0x47534D5F4E415254)
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def is_plain(blob: cython.pointer(Blob), longest_body: int64_t) -> cython.bint:
    """Whether a measured blob has no body above the limit, none of the names above, and no zero byte at an end."""
    at: At = blob.at
    name: At
    stop: At
    body_size: int64_t
    word: uint64_t
    while at < blob.end:
        body_size = int_at(at + 16)
        if body_size > longest_body:
            return False
        name = at + LEAST + body_size
        at += int_at(at)
        if name < at and (at - 1)[0] == 0:
            return False  # recovery would take the record for one whose last page is missing
        while name < at:
            stop = find_byte(name, at, blob.end, 2)
            if stop - name >= SHORTEST_NAME:
                # Eight bytes may be read: before a property there are the 22 of the piece's own head.
                if blob.end - name >= 8:
                    word = word_at(name)
                else:
                    word = word_at(stop - 8) >> cython.cast(uint64_t, 8 * (8 - (stop - name)))
                if is_looked_into(word):
                    return False
            name = stop + 1
    return True


@cython.cfunc
@cython.inline
def blob_at(address: cython.size_t, length: int64_t, fixed: int64_t, append_crc: cython.bint) -> Blob:
    """A batch body at an address."""
    blob: Blob
    blob.at = cython.cast(At, address)
    blob.end = blob.at + length
    blob.fixed, blob.append_crc = fixed, append_crc
    blob.count = blob.total = 0
    return blob


def measure(address: cython.size_t, length: int64_t, fixed: int64_t, append_crc: cython.bint) -> tuple[int, int]:
    """Number and total size of the records, or (MALFORMED or TOO_LONG, 0)."""
    blob: Blob = blob_at(address, length, fixed, append_crc)
    fault: cython.int
    with cython.nogil:
        fault = size_up(cython.address(blob))
    if fault:
        return fault, 0
    return blob.count, blob.total


def measure_plain(
    address: cython.size_t, length: int64_t, fixed: int64_t, append_crc: cython.bint, longest_body: int64_t
) -> tuple[int, int]:
    """As measure; a number of at most 0 too for a blob that is not plain."""
    blob: Blob = blob_at(address, length, fixed, append_crc)
    fits: cython.bint
    with cython.nogil:
        fits = size_up(cython.address(blob)) == 0 and is_plain(cython.address(blob), longest_body)
    if not fits:
        return 0, 0
    return blob.count, blob.total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def lay_out(blob: cython.pointer(Blob), to: To, shared: cython.pointer(Shared), offsets: cython.pointer(int64_t)) -> cython.void:  # fmt: skip # noqa: E501
    """Lay out the records of a measured blob."""
    at: At = blob.at
    number: int64_t = 0
    body_size: int64_t
    properties_size: int64_t
    stored: int64_t
    size: int64_t
    value: int64_t
    digit: cython.int
    separator: cython.bint
    begin: To
    while at < blob.end:
        body_size = int_at(at + 16)
        properties_size = short_at(at + 20 + body_size)
        separator = blob.append_crc and properties_size > 0 and at[21 + body_size + properties_size] != 2
        stored = properties_size + (CRC_SIZE if blob.append_crc else 0) + separator
        size = shared.head_size + body_size + shared.topic_size + 2 + stored
        begin = to
        memcpy(begin, shared.head, shared.head_size)
        put_int(begin, size)
        put_int(begin + 8, crc31(at + 20, body_size))
        put_int(begin + 16, int_at(at + 12))
        put_long(begin + 20, shared.queue_offset + number)
        put_long(begin + 28, shared.physical_offset)
        put_int(begin + shared.head_size - 4, body_size)
        to += shared.head_size
        memcpy(to, at + 20, body_size)
        to += body_size
        memcpy(to, shared.topic, shared.topic_size)
        to += shared.topic_size
        put_short(to, stored)
        memcpy(to + 2, at + 22 + body_size, properties_size)
        to += 2 + properties_size
        if blob.append_crc:
            if separator:
                to[0] = 2
                to += 1
            memcpy(to, shared.crc_name, 9)
            value = crc31(begin, size - CRC_SIZE)
            for digit in range(10):
                to[9 + digit] = cython.cast(cython.uchar, 48 + value % 10)
                value //= 10
            to[19] = 2
            to += CRC_SIZE
        offsets[number] = shared.physical_offset
        shared.physical_offset += size
        number += 1
        at += LEAST + body_size + properties_size


def write(
    address: cython.size_t,
    length: int64_t,
    target: cython.size_t,
    common: bytes,
    head_size: int64_t,
    queue_offset: int64_t,
    physical_offset: int64_t,
    append_crc: cython.bint,
    offsets: object,
) -> None:
    """Lay out the records of a measured blob at ``target``.

    ``common`` is what all share: the head, the topic with its length, and the name of the checksum with its 01.
    ``offsets`` has room for the physical offset of each.
    """
    blob: Blob = blob_at(address, length, 0, append_crc)
    shared: Shared
    shared.head = common
    shared.head_size = head_size
    shared.topic = shared.head + head_size
    shared.topic_size = len(common) - head_size - 9
    shared.crc_name = shared.topic + shared.topic_size
    shared.queue_offset, shared.physical_offset = queue_offset, physical_offset
    placed: cython.pointer(int64_t) = longs_to_fill(offsets)
    with cython.nogil:
        lay_out(cython.address(blob), cython.cast(To, target), cython.address(shared), placed)
