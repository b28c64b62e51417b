"""What a master without its slaves may not call done: it is noted, and whoever asked is told that it may be undone."""

import time
from pathlib import Path
from typing import Any

import pytest

from tandemmq.store.broker.send import NewMessage
from tandemmq.store.delivery.delays.recalls import recall_handle
from tandemmq.store.delivery.errors import NotSafe
from tandemmq.store.delivery.ledger.durable_cursors import DurableCursors
from tandemmq.store.delivery.port import Ending, Wish
from tandemmq.store.delivery.transactions.handle import TransactionHandle
from tests.unit.delivery.delivery_kit import HOST, DeliveringStore, delivering

ALONE: dict[str, Any] = {"broker_role": "SYNC_MASTER"}


async def received(at: DeliveringStore) -> str:
    """The handle of the one message that there is."""
    batch = await at.delivery.receive(Wish("workers", "orders", most=1, invisible_ms=600_000, wait_ms=60_000))
    batch.sent(lambda: True)
    [message] = batch.messages
    return message.handle


async def test_an_acknowledgement_that_is_repeated_after_a_start_waits_like_the_first(tmp_path: Path) -> None:
    async with delivering(tmp_path / "one") as at:
        await at.send("orders", 1)
        handle = await received(at)
        [outcome] = await at.delivery.acknowledge("workers", "orders", [handle])
        assert outcome.error is None
        left = at.killed(tmp_path / "two")
    async with delivering(left, **ALONE) as at:
        with pytest.raises(NotSafe):
            await at.delivery.acknowledge("workers", "orders", [handle])


async def test_positions_that_were_read_at_the_start_are_told_when_they_are_safe(tmp_path: Path) -> None:
    async with delivering(tmp_path / "one") as at:
        await at.send("orders", 1)
        await at.delivery.acknowledge("workers", "orders", [await received(at)])
        left = at.killed(tmp_path / "two")
    async with delivering(left, **ALONE) as at:
        assert at.delivery.ledger.places("workers")
        assert await DurableCursors(at.store, at.delivery.journal).take() is None


async def test_an_ending_that_is_repeated_after_a_start_waits_like_the_first(tmp_path: Path) -> None:
    async with delivering(tmp_path / "one") as at:
        half = NewMessage("orders", HOST, b"x", {"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": "a"}, queue_id=0)
        receipt = await at.broker.send(half)
        place = receipt.place
        handle = str(TransactionHandle("a", place.queue_offset, place.physical_offset))
        await at.delivery.end_transaction("p", handle, Ending.COMMIT)
        left = at.killed(tmp_path / "two")
    async with delivering(left, **ALONE) as at:
        with pytest.raises(NotSafe):
            await at.delivery.end_transaction("p", handle, Ending.COMMIT)


async def test_a_recall_is_done_when_it_is_safe(tmp_path: Path) -> None:
    async with delivering(tmp_path, **ALONE) as at:
        due = int(time.time() * 1000) + 3_600_000
        receipt = await at.broker.send(NewMessage("orders", HOST, b"x", {"TIMER_DELIVER_MS": str(due)}, queue_id=0))
        with pytest.raises(NotSafe):
            await at.delivery.recall("orders", recall_handle(receipt.ready), HOST)


async def test_a_message_is_sent_back_when_that_is_safe(tmp_path: Path) -> None:
    async with delivering(tmp_path) as at:
        receipt = await at.broker.send(NewMessage("orders", HOST, b"x", queue_id=0))
        at.store.catch_up()
        acknowledgement = at.broker.acknowledgement
        acknowledgement._owes_replicas = acknowledgement.waits = True  # from here on nobody has what is written
        for level in (0, -1):
            with pytest.raises(NotSafe):
                await at.delivery.send_back("workers", receipt.place.physical_offset, level, 0)
