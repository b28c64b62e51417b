"""Transactions that are ended in the first moment of a store."""

from pathlib import Path

from tandemmq.store.broker.send import NewMessage
from tandemmq.store.delivery.port import Ending
from tests.unit.delivery.delivery_kit import HOST, delivering


async def test_who_ends_a_transaction_right_after_the_start_waits_until_half_messages_are_read(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        for number in range(1_000):
            half = {"TRAN_MSG": "true", "PGROUP": "senders", "UNIQ_KEY": f"T{number}"}
            await at.broker.send(NewMessage("orders", HOST, b"x", half, queue_id=0))
    async with delivering(tmp_path) as at:
        await at.delivery.end_transaction("senders", "T999", Ending.COMMIT)
        at.store.catch_up()
        queue = at.store.queue("orders", 0)
        assert queue is not None
        assert queue.max_offset == 1
