"""What a broker looks like after sends, to compare two of them."""

from collections.abc import Callable
from typing import Any

import pytest

from tandemmq.common.grpc_transport import Direct
from tandemmq.store.compiled_core import short_way
from tandemmq.store.format.record import Record, decode_record, split_records
from tests.unit.broker.broker_kit import Kit

Way = Callable[[Any], Direct]
"""What is around the core, of a DirectSend, DirectSendBatch or DirectSendMessage."""


def itself(sends: Any) -> Direct:
    """The way in Python."""
    direct: Direct = sends
    return direct


around_the_core = pytest.mark.parametrize("way", [short_way, itself], ids=["compiled", "python"])


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
