"""A log that lies wholly after the checkpoint, and its recovery."""

import asyncio
import time
from pathlib import Path

from bench import payloads
from bench.model import Sample
from tandemmq.store.format.host import Host
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import EncodedBatch

_HOST = Host("127.0.0.1", 10911)
_QUEUES = 4


def fill(root: Path, megabytes: int) -> int:
    """Append so much without dispatching or closing: what a kill -9 leaves at its worst. Gives the log's end.

    The log itself is synced, so that recovery is measured and not the disk.
    """
    log = MessageStore.open(StoreConfig(root, compiled_walker="always")).commit_log
    blob = payloads.encoded_batch(256)
    number = 0
    while log.max_offset < megabytes << 20:
        log.append_batch(EncodedBatch(payloads.TOPIC, number % _QUEUES, blob, _HOST, _HOST, born_timestamp=1))
        number += 1
    for file in log.files:
        file.sync()
    return log.max_offset


def recover(root: Path) -> Sample:
    """Open as the service does, until every consume queue unit and index entry is there."""
    return asyncio.run(_recover(root))


async def _recover(root: Path) -> Sample:
    begun, cpu = time.perf_counter(), time.process_time()
    store = await asyncio.to_thread(MessageStore.open, StoreConfig(root))
    opened = time.perf_counter() - begun
    store.start()
    await store.rebuilt()
    while store.dispatched_offset < store.commit_log.max_offset:  # noqa: ASYNC110 - the store tells nobody
        await asyncio.sleep(0.001)
    seconds = time.perf_counter() - begun
    size = store.commit_log.max_offset
    queued = sum(queue.max_offset for queue in store.queues())
    indexed = sum(count - 1 for _, count in store.index_counts())
    return {
        "seconds": seconds,
        "open_s": opened,
        "cpu_s": time.process_time() - cpu,
        "gb_s": size / seconds / 1e9,
        "units": queued,
        "index_entries": indexed,
    }
