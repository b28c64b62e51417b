"""A master's log as bytes, and slaves that take it in pieces."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tandemmq.common.timers import Timers
from tandemmq.store.format.host import Host
from tandemmq.store.format.record import Message
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.message_store import MessageStore

HOST = Host.parse("127.0.0.1:10911")
FILE_SIZE = 32 * 1024


def config(root: Path, role: str = "ASYNC_MASTER", **settings: Any) -> StoreConfig:
    small: dict[str, Any] = {
        "mapped_file_size_commit_log": FILE_SIZE,
        "mapped_file_size_consume_queue": 2_000,
        "max_hash_slot_num": 50,
        "max_index_num": 500,
        "prefault_bytes": 0,
        "sync_flush_timeout": 60_000,  # a busy disk is no failure
        "compiled_walker": "never",
    }
    return StoreConfig(root, role, **(small | settings))


def opened(root: Path, role: str = "ASYNC_MASTER", *, timers: Timers | None = None, **settings: Any) -> MessageStore:
    store = MessageStore.open(config(root, role, **settings), timers=timers)
    store.start()
    return store


def message(number: int, size: int = 100) -> Message:
    properties = f"KEYS\x01key{number}\x02UNIQ_KEY\x01{number:032X}\x02".encode()
    body = hashlib.sha256(str(number).encode()).digest() * (size // 32 + 1)
    return Message(f"Topic{number % 3}", number % 2, body[:size], properties, 0, 0, 1, HOST, HOST)


async def master_log(root: Path, sizes: Sequence[int], **settings: Any) -> bytes:
    """What a master with messages of these sizes has in its log, blanks and all."""
    store = opened(root, **settings)
    for number, size in enumerate(sizes):
        store.append(message(number, size))
    end = store.commit_log.max_offset
    log = b"".join(file.map[: min(file.size, end - file.start)] for file in store.commit_log.files)
    await store.close()
    return log


def log_of(store: MessageStore) -> bytes:
    end = store.commit_log.max_offset
    return b"".join(file.map[: min(file.size, end - file.start)] for file in store.commit_log.files)


def derived(root: Path) -> dict[str, bytes]:
    """Queue and index files, by name. Index files are named by the time; their order counts."""
    queues = {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted((root / "consumequeue").rglob("*"))
        if path.is_file()
    }
    index = {f"index/{at}": path.read_bytes() for at, path in enumerate(sorted((root / "index").iterdir()))}
    return queues | index
