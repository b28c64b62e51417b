"""Whether a record that lies where it belongs is also what was written there: whether its checksum fits.

For records that are given out one by one: the glance costs one checksum, and only what fails it is decoded.
"""

from struct import Struct

from tandemmq.store.format.crc import crc31
from tandemmq.store.format.record import CorruptRecord, decode_record
from tandemmq.store.format.sysflag import BORN_HOST_V6, HOSTS_V6, STORE_HOST_V6

_HEAD = Struct(">8xI24xI44xI")
"""BODYCRC; SYSFLAG; BODYLENGTH with two IPv4 hosts."""
_PLACED = Struct(">I4xI8xq8xI44xI")
"""TOTALSIZE, BODYCRC, QUEUEOFFSET, SYSFLAG, and BODYLENGTH as above."""


def split_intact(data: bytes) -> list[tuple[int, bytes]] | None:
    """Queue offset and bytes of each of the records that follow one another in `data`; None where one has a flaw."""
    found: list[tuple[int, bytes]] = []
    at, end, unpack = 0, len(data), _PLACED.unpack_from
    while at < end:
        total, checksum, offset, flags, size = unpack(data, at)
        record = data[at : at + total]
        at_once = not flags & HOSTS_V6 and record[-1]
        body = record[_HEAD.size : _HEAD.size + size] if at_once else b""
        if not (at_once and (not size or crc31(body) == checksum)) and flaw_of(record):
            return None
        found.append((offset, record))
        at += total
    return found


def flaw_of(record: bytes) -> str:
    """What is wrong with the bytes of one record, in words; empty where nothing is. As strict as `decode_record`."""
    if _looks_intact(record):
        return ""
    try:
        decode_record(record)
    except CorruptRecord as error:
        return error.reason
    return ""


def _looks_intact(record: bytes) -> bool:
    """Whether the body fits its checksum, and the record does not end in zeros. Never raises for a record's head."""
    checksum, flags, size = _HEAD.unpack_from(record)
    at = _HEAD.size
    if flags & HOSTS_V6:
        at += 12 * (flags & BORN_HOST_V6 != 0) + 12 * (flags & STORE_HOST_V6 != 0)
        size = int.from_bytes(record[at - 4 : at], "big")
    if not record[-1]:
        return False
    return not size or crc31(memoryview(record)[at : at + size]) == checksum
