"""Make a store of a given number of log files and queues."""

import asyncio
from pathlib import Path

from bench import payloads
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import EncodedBatch

_HOST = Host("127.0.0.1", 10911)
_QUEUES_PER_TOPIC = 8
_PIECE = 200  # messages of one blob


def grow(root: Path, file_megabytes: int, files: int, queues: int, queue_file: int) -> int:
    """One message to each queue, then bulk until there are enough log files; closed cleanly. Gives the log's end."""
    config = StoreConfig(
        root,
        mapped_file_size_commit_log=file_megabytes << 20,
        mapped_file_size_consume_queue=queue_file,
        max_hash_slot_num=500_000,
        max_index_num=2_000_000,
        compiled_walker="always",
    )
    return asyncio.run(_grow(config, files, queues))


async def _grow(config: StoreConfig, files: int, queues: int) -> int:
    store = MessageStore.open(config)
    store.start()
    for number in range(queues):
        topic = f"topic{number // _QUEUES_PER_TOPIC:05d}"
        queue = number % _QUEUES_PER_TOPIC
        store.append(Message(topic, queue, b"first", payloads.PROPERTIES, born_host=_HOST, store_host=_HOST))
        if number % 200 == 0:
            await asyncio.sleep(0)
    blob = payloads.encoded_batch(_PIECE)
    number = 0
    while len(store.commit_log.files.files) < files:
        topic = f"topic{number // _QUEUES_PER_TOPIC % (queues // _QUEUES_PER_TOPIC):05d}"
        store.append_batch(EncodedBatch(topic, number % _QUEUES_PER_TOPIC, blob, _HOST, _HOST, born_timestamp=1))
        number += 1
        await asyncio.sleep(0)
    end = store.commit_log.max_offset
    await store.close()
    return end
