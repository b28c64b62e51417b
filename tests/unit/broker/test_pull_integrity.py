"""A unit that points at another message than its own is not believed: what a consumer gets is of its own queue."""

from pathlib import Path

import pytest

from tandemmq.store.format.unit import UNIT_SIZE
from tests.unit.broker.broker_kit import broker, records


@pytest.mark.parametrize(
    ("topic", "queue_id", "offset"),
    [("Alpha", 0, 1), ("Alpha", 1, 0), ("Gamma", 0, 0)],
    ids=["offset", "queue", "topic"],
)
async def test_a_unit_of_another_message_is_passed_over(tmp_path: Path, topic: str, queue_id: int, offset: int) -> None:
    """Bit rot, or a unit that outlived a cut of the log: the record is whole, but it is not this one."""
    async with broker(tmp_path) as kit:
        for number in range(3):
            kit.send("Alpha", b"%d" % number, 0)
        kit.send("Alpha", b"0", 1)
        kit.send("Gamma", b"0", 0)
        await kit.dispatched()
        other, queue = kit.store.queue(topic, queue_id), kit.store.queue("Alpha", 0)
        assert other is not None
        assert queue is not None
        queue.put(0, other.read_bytes(offset, 1)[:UNIT_SIZE])
        pulled = kit.pull("Alpha")
        assert [record.queue_offset for record in records(pulled)] == [1, 2]
        assert {record.topic for record in records(pulled)} == {"Alpha"}
        assert pulled.next_offset == 3
