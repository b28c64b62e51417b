"""Raw records, as a pull answers them (`PullResponse.records`) and as they lie in a commit log."""

from collections.abc import Iterator

from tandemmq.store.format.record import Record, decode_record


def decode_records(data: bytes | memoryview, *, verify: bool = True) -> list[Record]:
    """The records that `data` is made of, one behind the other.

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
