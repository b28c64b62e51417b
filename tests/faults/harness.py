"""Small stores for fault tests: messages that prove themselves, settings under which everything rolls, and an audit."""

import asyncio
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tandemmq.store.format import properties, sysflag
from tandemmq.store.format.batch import encode_client_batch
from tandemmq.store.format.host import Host
from tandemmq.store.format.record import MAGIC_BLANK, CorruptRecord, Message, Record, decode_record
from tandemmq.store.format.unit import UNIT_SIZE, is_blank
from tandemmq.store.log.config import ASYNC_FLUSH, SYNC_FLUSH, StoreConfig
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import EncodedBatch
from tests.faults.checker import Audit, LogRecord, Queue, QueueView
from tests.quiet import wait_for_files_ahead
from tests.seed import SEED as SEED

HOST = Host("127.0.0.1", 10911)
TOPICS = ("orders", "payments", "a-rather-long-topic-name-for-a-change")
QUEUES = [(topic, queue_id) for topic in TOPICS for queue_id in range(2)]
FOREVER = 1 << 62
LOG_FILE = 64 * 1024
QUEUE_FILE = 100 * UNIT_SIZE
SLOTS, ENTRIES = 61, 200
ZEROS_OF_A_LENGTH = 3
"""So many bytes before zeros end a record may begin: its length begins with zeros."""
PATIENCE = 90.0
"""Seconds to wait for what must come: many times what it takes, for a machine that has other things to do."""
PATIENCE_MS = 60_000
"""A flush that takes so long counts as a failure of the disk; shorter than PATIENCE, or the store would be blamed."""

Result = TypeVar("Result")


def small_config(root: Path, *, sync: bool = True, **changes: Any) -> StoreConfig:
    """Settings under which a few hundred messages roll every kind of file, and timers fire within milliseconds."""
    config = StoreConfig(
        store_path_root_dir=root,
        mapped_file_size_commit_log=LOG_FILE,
        mapped_file_size_consume_queue=QUEUE_FILE,
        max_hash_slot_num=SLOTS,
        max_index_num=ENTRIES,
        flush_disk_type=SYNC_FLUSH if sync else ASYNC_FLUSH,
        flush_interval_commit_log=5,
        flush_consume_queue_least_pages=0,
        flush_interval_consume_queue=5,
        flush_consume_queue_thorough_interval=15,
        checkpoint_log_bytes=24 * 1024,
        prefault_bytes=16 * 1024,
        delete_when=tuple(range(24)),
        disk_max_used_space_ratio=101,
        disk_space_clean_forcibly_ratio=101,
        disk_space_warning_level_ratio=101,
        compiled_walker="never",
    )
    return replace(config, **changes)


class QuickClock:
    """A clock on which an hour passes in ``hour`` seconds: files expire while one looks on."""

    def __init__(self, hour: float = 3600.0, begin: float = 1_750_000_000.0) -> None:
        self._factor = 3600.0 / hour
        self._begin = begin

    def now_ms(self) -> int:
        return int((self._begin + (time.time() - self._begin) * self._factor) * 1000)


# -- messages that prove themselves -----------------------------------------------------------------------------------


def body_of(value: str) -> bytes:
    """The one body that belongs to a value: whoever reads it knows whether a byte has changed."""
    data = value.encode()
    size = zlib.crc32(data) % (1400 if zlib.crc32(data, 1) % 4 == 0 else 160)
    return data + b"|" + (data * (size // len(data) + 1))[:size]


def value_of(body: bytes) -> str:
    """The value in a body; empty where the body is not what `body_of` makes."""
    value, bar, _ = body.partition(b"|")
    return value.decode() if bar and body == body_of(value.decode(errors="replace")) else ""


def keys_of(value: str) -> list[str]:
    return [f"k{value}", *([f"shared{zlib.crc32(value.encode()) % 7}"] if len(value) % 2 else [])]


def named_properties_of(value: str) -> dict[str, str]:
    named = {properties.KEYS: " ".join(keys_of(value)), properties.UNIQ_KEY: f"u{value}"}
    return named | {properties.TAGS: f"T{zlib.crc32(value.encode()) % 3}"}


def properties_of(value: str) -> bytes:
    return properties.encode(named_properties_of(value))


def message(queue: Queue, value: str, **more: Any) -> Message:
    return Message(
        topic=queue[0],
        queue_id=queue[1],
        body=body_of(value),
        properties=properties_of(value),
        born_timestamp=1_750_000_000_000,
        born_host=HOST,
        store_host=HOST,
        **more,
    )


def batch(queue: Queue, values: list[str]) -> EncodedBatch:
    blob = encode_client_batch((0, body_of(value), properties_of(value)) for value in values)
    return EncodedBatch(queue[0], queue[1], blob, HOST, HOST, born_timestamp=1_750_000_000_000)


def value_parts(value: str) -> tuple[str, int]:
    """Producer and number: ``c3-p1-17`` was the seventeenth message of ``c3-p1``."""
    producer, _, number = value.rpartition("-")
    return producer, int(number) if number.isdigit() else -1


# -- reading everything -----------------------------------------------------------------------------------------------


def records_on_disk(root: Path, log_max: int = FOREVER) -> Iterator[tuple[int, bytes, Record]]:
    """Every record below ``log_max`` as (physical offset, bytes, record), read from the files without the store's help.

    Steps over what is no record, byte by byte if need be.
    """
    for path in sorted((root / "commitlog").iterdir()):
        if path.suffix == ".tmp":
            continue
        data, start, at = path.read_bytes(), int(path.name), 0
        while at + 8 <= len(data) and start + at < log_max:
            if int.from_bytes(data[at + 4 : at + 8], "big") == MAGIC_BLANK:
                break
            try:
                record = decode_record(data, at)
                if record.physical_offset != start + at:
                    raise CorruptRecord("another place", at)
            except CorruptRecord:
                zeros = data[at : at + 4096] == bytes(min(4096, len(data) - at))
                at += 4096 - ZEROS_OF_A_LENGTH if zeros else 1
                continue
            yield start + at, data[at : at + record.size], record
            at += record.size


_TRIES_OF_AUDIT = 100


async def settle(store: MessageStore) -> None:
    """Wait until all that is in the log is durable and dispatched, and no file is being made or rebuilt."""
    await within(store.rebuilt())
    end = store.commit_log.max_offset
    assert await within(store.wait_flushed(end)), store.why_not_writable
    await until(lambda: store.dispatched_offset >= end)
    wait_for_files_ahead(store)


async def audit(store: MessageStore) -> Audit:
    """Read all of a store three ways: the log's files, the consume queues, the index.

    Files that expire are removed by a thread: where some went meanwhile, all is read again.
    """
    await settle(store)
    found = audited(store)
    for _ in range(_TRIES_OF_AUDIT):
        files = [int(path.name) for path in store.config.commit_log_dir.iterdir() if path.name.isdigit()]
        if found.log_min == min(files, default=0):
            break
        await asyncio.sleep(0.01)
        await settle(store)
        found = audited(store)
    return found


def audited(store: MessageStore) -> Audit:
    """The same, of this moment."""
    root, log_min, log_max = store.config.store_path_root_dir, store.commit_log.min_offset, store.commit_log.max_offset
    records, missing = [], []
    for physical, data, record in records_on_disk(root, log_max):
        value = value_of(record.body)
        producer, number = value_parts(value)
        if sysflag.is_indexed_in_queue(record.sys_flag):
            queue = (record.topic, record.queue_id)
            crc = zlib.crc32(data)
            records.append(LogRecord(physical, len(data), crc, queue, record.queue_offset, value, producer, number))
        missing += missing_keys(store, physical, record)
    queues = {(queue.topic, queue.queue_id): view_of(store, (queue.topic, queue.queue_id)) for queue in store.queues()}
    return Audit(log_min, log_max, records, queues, missing)


def missing_keys(store: MessageStore, physical: int, record: Record) -> list[str]:
    """The keys of a record by which the index does not find it."""
    if not store.config.message_index_enable or not sysflag.is_indexed_by_key(record.sys_flag):
        return []
    keys = ([record.unique_key] if record.unique_key else []) + record.keys
    when = record.store_timestamp
    return [key for key in keys if physical not in store.query_index(record.topic, key, when, when)]


def view_of(store: MessageStore, name: Queue) -> QueueView:
    """A queue as a reader sees it."""
    queue = store.queue(*name)
    assert queue is not None
    view = QueueView(queue.min_offset, queue.max_offset)
    for offset, value, physical, size in read_queue(store, name, queue.min_offset):
        view.messages[offset] = value, physical, size
    return view


def read_queue(
    store: MessageStore, name: Queue, offset: int, count: int = 1 << 30
) -> Iterator[tuple[int, str, int, int]]:
    """Readable messages from ``offset`` on, as (offset, value, physical offset, size)."""
    queue = store.queue(*name)
    while queue is not None and offset < queue.max_offset and count > 0:
        units = queue.read(offset, min(count, 64))
        if not units:
            return
        for unit in units:
            data = None if is_blank(unit) or unit.size <= 0 else store.read_record(unit.physical_offset, unit.size)
            record = intact(data)
            if record is not None:
                assert (record.topic, record.queue_id, record.queue_offset) == (*name, offset), "another queue's record"
                yield offset, value_of(record.body), unit.physical_offset, unit.size
            offset += 1
        count -= len(units)


def intact(data: bytes | None) -> Record | None:
    """The record in ``data``. Old damage is not looked for at start: readers check what they get."""
    try:
        return None if data is None else decode_record(data)
    except CorruptRecord:
        return None


# -- waiting ----------------------------------------------------------------------------------------------------------


async def within(waiting: Awaitable[Result], seconds: float = PATIENCE) -> Result:
    return await asyncio.wait_for(waiting, seconds)


async def until(condition: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Wait for a condition; it is looked at each turn of the loop and then each millisecond."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this did not come true in time"
        await asyncio.sleep(0.001)
