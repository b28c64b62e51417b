"""Raw records, as a pull answers them (`PullResponse.records`) and as they lie in a commit log."""

from collections.abc import Iterator

from tandemmq.client.errors import DamagedMessage
from tandemmq.store.format.record import CorruptRecord, Record, decode_record


def decode_records(data: bytes | memoryview, *, verify: bool = True) -> list[Record]:
    """The records that `data` is made of, one after the other.

    `verify`: compare the checksum of every body; a store does not, when it reads.

        >>> [record.body for record in decode_records(response.records)]

    Raises:
        CorruptRecord: the bytes are not whole records, or a checksum does not fit; `error.at` says where.
    """
    return list(iter_records(data, verify=verify))


def iter_records(data: bytes | memoryview, *, verify: bool = True) -> Iterator[Record]:
    """As `decode_records`, one by one."""
    at, end = 0, len(data)
    while at < end:
        record = decode_record(data, at, verify)
        yield record
        at += record.size


def one_record(data: bytes) -> Record:
    """The record that an answer has. Raises DamagedMessage."""
    try:
        return decode_record(data)
    except CorruptRecord as error:
        raise DamagedMessage(error.reason) from error


def sorted_records(data: bytes, *, verify: bool = True) -> tuple[list[Record], list[Record]]:
    """The records of an answer: those that are intact, and those whose checksum does not fit.

    Raises DamagedMessage: the lengths are damaged too, so that nobody knows where the next record begins.
    """
    try:
        return decode_records(data, verify=verify), []
    except CorruptRecord:
        pass
    intact: list[Record] = []
    damaged: list[Record] = []
    at = 0
    try:
        for record in iter_records(data, verify=False):
            (intact if _is_intact(data, at) else damaged).append(record)
            at += record.size
    except CorruptRecord as error:
        raise DamagedMessage(error.reason) from error
    return intact, damaged


def _is_intact(data: bytes, at: int) -> bool:
    try:
        decode_record(data, at)
    except CorruptRecord:
        return False
    return True
