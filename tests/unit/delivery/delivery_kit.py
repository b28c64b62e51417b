"""Delivery over a real store in a temporary directory, put together as the service does."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.store.assembly import make_broker, make_delivery, open_topics
from tandemmq.store.broker.broker import Broker
from tandemmq.store.broker.send import NewMessage
from tandemmq.store.delivery.delivery import Delivery
from tandemmq.store.delivery.journal.facts import Given, Moved, Place
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.ledger.offset_files import OffsetFiles
from tandemmq.store.delivery.opening import BaseKeeper
from tandemmq.store.format.host import Host
from tandemmq.store.log.edges.disk import Disk
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.metrics import StoreMetrics
from tandemmq.store.offsets_link import OffsetsLink
from tandemmq.store.settings import StoreSettings

_KEEP = (BaseKeeper, OffsetFiles, OffsetsLink)
HOST = Host.parse("127.0.0.1:10911")
PLACE = Place("workers", "orders", 0)
SMALL: dict[str, Any] = {
    "mapped_file_size_commit_log": 64 * 1024,
    "mapped_file_size_consume_queue": 2_000,
    "max_message_size": 16 * 1024,
    "max_hash_slot_num": 50,
    "max_index_num": 500,
    "prefault_bytes": 0,
    "sync_flush_timeout": 60_000,  # a busy disk is no failure
    "broker_ip1": "127.0.0.1",
}


@dataclass
class DeliveringStore:
    """A store with its broker and its deliveries."""

    root: Path
    store: MessageStore
    broker: Broker
    delivery: Delivery

    async def send(self, topic: str, messages: int, queue: int = 0, size: int = 20) -> None:
        """Store messages."""
        some = [NewMessage(topic, HOST, b"x" * size, queue_id=queue) for _ in range(messages)]
        await self.broker.append(some, [])

    def killed(self, root: Path) -> Path:
        """What a kill -9 would leave now, as a directory of its own."""
        shutil.copytree(self.root, root, ignore=shutil.ignore_patterns("*.tmp"))
        return root


@asynccontextmanager
async def delivering(
    root: Path, *, ready: bool = True, whole: bool = True, disk: Disk | None = None, **settings: Any
) -> AsyncIterator[DeliveringStore]:
    """An open store; closed cleanly at the end. Not `whole`: nothing gives out messages but the test."""
    if "broker_role" in settings:
        settings["broker_role"] = BrokerRole(settings["broker_role"])
    all_settings = StoreSettings(store_path_root_dir=root, **{**SMALL, **settings})
    store = MessageStore.open(all_settings.store_config(), disk=disk)
    topics, _ = open_topics(all_settings)
    broker = make_broker(all_settings, store, topics, StoreMetrics("cluster", "node"))
    delivery = make_delivery(all_settings, broker)
    if not whole:
        delivery.services[:] = [one for one in delivery.services if isinstance(one, _KEEP)]
    store.start()
    delivery.start()
    try:
        if ready:
            await delivery.ready()
        yield DeliveringStore(root, store, broker, delivery)
    finally:
        await delivery.stop()
        await store.close()


def state(ledger: Ledger, *, dues: bool = True) -> dict[Any, Any]:
    """All that a ledger knows, as something that can be compared."""
    places = {
        progress.place: (
            progress.cursor,
            progress.given,
            progress.resets,
            {at: (one.number, one.due if dues else 0, one.start) for at, one in progress.entries.items()},
            dict(progress.holdings),
        )
        for progress in ledger.all()
    }
    return {"places": places, "levels": dict(ledger.levels), "timers": ledger.timers}


def begin(delivery: Delivery, place: Place = PLACE, given: int = 10, due_in: int = 60_000) -> int:
    """Give out the first messages of a place; gives when they are due."""
    due = delivery.clock.now_ms() + due_in
    delivery.journal.note(Moved(place, 0, 0), Given(place, 0, given, due))
    return due
