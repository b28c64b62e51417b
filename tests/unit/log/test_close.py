"""After close a store touches nothing: the directory may be another store's by then."""

import asyncio
from pathlib import Path

import pytest

from tandemmq.store.format.host import Host
from tandemmq.store.format.record import Message
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.message_store import MessageStore
from tests.manual_timers import ManualTimers

HOST = Host.parse("127.0.0.1:10911")


async def test_a_dispatch_that_is_still_due_does_not_run_after_close(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A queue that could not be written is tried again later; not when the store has been closed meanwhile."""
    timers = ManualTimers()
    config = StoreConfig(tmp_path, mapped_file_size_commit_log=1 << 16, max_hash_slot_num=100, max_index_num=100)
    store = MessageStore.open(config, timers=timers)
    store.start()

    def failing(_: object) -> None:
        raise OSError("made to fail")

    monkeypatch.setattr(store._parts.queues, "append", failing)
    store.append(Message("Topic", 0, b"body", b"", 0, 0, 1, HOST, HOST))
    await asyncio.sleep(0)
    assert "made to fail" in store.why_not_writable
    await store.close()
    monkeypatch.undo()
    assert not list((tmp_path / "consumequeue").iterdir())
    await timers.advance(2)  # the retry is due by now
    assert not list((tmp_path / "consumequeue").iterdir())
    again = MessageStore.open(config)
    assert [(queue.topic, queue.max_offset) for queue in again.queues()] == [("Topic", 1)]
    again.start()
    await again.close()
