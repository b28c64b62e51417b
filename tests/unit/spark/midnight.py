"""A log around a midnight, for the exports: both ways must make the same of it."""

import json
from pathlib import Path

from tandemmq.store.format.record import Message, encode_record
from tests.unit.format.logs import V4

NEW_YEAR = 1_767_225_600_000  # 2026-01-01 in UTC


def midnight_log() -> bytes:
    """Six messages 1 ms apart, from 2 ms before midnight on.

    One topic has a name that directories do not like; one record is rotten.
    """
    data = b""
    for number, topic in enumerate(["orders", "%RETRY%g/1", "orders", "orders", "orders", "rest"]):
        message = Message(topic, 0, b"body %d" % number, b"KEYS\x01k\x02", born_host=V4, store_host=V4)
        data += encode_record(message, number, len(data), NEW_YEAR - 2 + number)
    return data.replace(b"body 4", b"rotten")


def keep(store: Path, **hours: str) -> None:
    """Gives topics of a store a retention of their own."""
    entries = {name: {"topicName": name, "attributes": {"reserve.time": value}} for name, value in hours.items()}
    (store / "config").mkdir(exist_ok=True)
    (store / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": entries}))
