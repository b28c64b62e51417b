"""What a broker looks like after sends, to compare two of them."""

from tandemmq.store.format.record import Record, decode_record, split_records
from tests.unit.broker.broker_kit import Kit


def changed_by_sends(kit: Kit) -> object:
    """All that a send changes."""
    log = kit.store.commit_log
    return log.max_offset, log.last_store_timestamp, dict(log.offsets), dict(kit.sender.turns)


def logged(kit: Kit) -> list[Record]:
    """The records of a log of one file."""
    log = kit.store.commit_log
    return [decode_record(one) for one in split_records(log.files.files[0].map[: log.max_offset])]


def comparable(record: Record) -> object:
    """All of a record; properties without order, which is that of a map, and no key that the store has made."""
    found = dict(record.properties)
    if found.get("UNIQ_KEY", "").startswith("0A000001"):
        found["UNIQ_KEY"] = "made"
    return (
        record.topic, record.queue_id, record.queue_offset, record.physical_offset, record.size, record.body,
        record.flag, record.sys_flag, record.born_timestamp, record.born_host, record.store_timestamp,
        record.store_host, record.reconsume_times, found,
    )  # fmt: skip
