"""Our store on a directory: as a service process that is sent to, and opened in this process to be looked at."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tandemmq.store.format.record import decode_record
from tandemmq.store.format.unit import is_blank
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.parts import RecoveryReport
from tests.contract.store_process import StoreProcess
from tests.interop.messages import FOREVER, Contents, Queue, Sent

CONFIG = {
    "mapped_file_size_commit_log": 128 * 1024,
    "mapped_file_size_consume_queue": 4_000,
    "max_hash_slot_num": 500,
    "max_index_num": 2_000,
    "max_message_size": 48 * 1024,
}
"""Small files, so that there are many."""


def service(root: Path, **settings: object) -> StoreProcess:
    """Our store as a process of its own."""
    return StoreProcess(root, **{**CONFIG, "broker_ip1": "127.0.0.1", "file_reserved_time": 100_000, **settings})


def config_of(root: Path, *, append_crc: bool = False) -> StoreConfig:
    """The same sizes for a store in this process."""
    config = StoreConfig(root, prefault_bytes=0, file_reserved_time=100_000, enabled_append_prop_crc=append_crc)
    return replace(config, **CONFIG)  # type: ignore[arg-type]


def with_store(config: StoreConfig, work: Callable[[MessageStore], None]) -> RecoveryReport:
    """Opens a store, waits for rebuilds, does `work`, closes; gives what recovery reported."""

    async def once() -> RecoveryReport:
        store = MessageStore.open(config)
        store.start()
        try:
            await asyncio.wait_for(store.rebuilt(), 120)
            work(store)
        finally:
            await store.close()
        return store.recovery

    return asyncio.run(once())


def contents_of(store: MessageStore) -> Contents:
    """Every message of every queue, read through the queues."""
    queues: dict[tuple[str, int], Queue] = {}
    for queue in store.queues():
        records = {}
        for offset in range(queue.min_offset, queue.max_offset):
            unit = queue.unit(offset)
            assert unit is not None
            if is_blank(unit):
                continue
            data = store.read_record(unit.physical_offset, unit.size)
            if data is None and any(known.begin <= unit.physical_offset < known.end for known in store.damage):
                continue
            assert data is not None, f"{queue.topic}/{queue.queue_id} at {offset}: no record at {unit.physical_offset}"
            records[offset] = decode_record(data)
        queues[queue.topic, queue.queue_id] = Queue(queue.min_offset, queue.max_offset, records)
    return Contents(queues)


def inspect(root: Path, sent: list[Sent]) -> tuple[RecoveryReport, Contents]:
    """Opens the store, proves that every one of `sent` is there and found by all its keys; gives what is in it."""
    seen: list[Contents] = []
    hits: dict[tuple[str, str], set[int]] = {}

    def look(store: MessageStore) -> None:
        seen.append(contents_of(store))
        seen[0].hold_all(sent)
        for one in sent:
            record = store.read_record(one.physical_offset)
            assert record is not None
            assert decode_record(record).body == one.body
            for key in one.all_keys:
                if (one.topic, key) not in hits:
                    hits[one.topic, key] = set(store.query_index(one.topic, key, 0, FOREVER))
                assert one.physical_offset in hits[one.topic, key], (one.topic, key)

    report = with_store(config_of(root), look)
    return report, seen[0]
