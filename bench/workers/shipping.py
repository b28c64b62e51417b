"""A log to be replicated, and the limit: its files by sendfile over loopback, received straight into a mapping."""

import asyncio
import mmap
import os
import resource
import socket
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
_BLOB = 1 << 20
_CHUNK = 1 << 20
"""Of a sendfile and of a receive."""


def fill(root: Path, megabytes: int, body: int) -> dict[str, int]:
    """A store with about so much log of messages of `body` bytes, closed cleanly. Gives its end and its messages."""
    return asyncio.run(_fill(root, megabytes << 20, body))


async def _fill(root: Path, size: int, body: int) -> dict[str, int]:
    store = MessageStore.open(StoreConfig(root, compiled_walker="always"))
    store.start()
    count = max(_BLOB // body, 1)
    blob = payloads.encoded_batch(count, body)
    number = 0
    while store.commit_log.max_offset < size:
        store.append_batch(EncodedBatch(payloads.TOPIC, number % _QUEUES, blob, _HOST, _HOST, born_timestamp=1))
        number += 1
        await asyncio.sleep(0)
    end = store.commit_log.max_offset
    await store.close()
    return {"end": end, "messages": number * count}


def ship(root: Path, end: int, target: Path, *, warm: bool) -> Sample:
    """Send the log's files below `end` to another process, which puts them into a mapping of the file `target`.

    `warm`: all pages of the mapping are there before. CPU is told of each side.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        ready, told = os.pipe()
        child = os.fork()
        if not child:
            with socket.create_connection(server.getsockname()) as connection:
                os.read(ready, 1)
                _send(root, end, connection)
                connection.recv(1)
            os._exit(0)
        connection, _ = server.accept()
    with connection, _mapping(target, end, warm=warm) as mapping:
        before, begun = _cpu(resource.RUSAGE_SELF), time.perf_counter()
        os.write(told, b"!")
        _receive(connection, mapping, end)
        seconds = time.perf_counter() - begun
        receiver = _cpu(resource.RUSAGE_SELF) - before
        connection.sendall(b"!")
        os.waitpid(child, 0)
    target.unlink()
    gigabytes = end / 1e9
    sender = _cpu(resource.RUSAGE_CHILDREN)
    return {
        "gb_s": gigabytes / seconds,
        "cpu_s_gb": (sender + receiver) / gigabytes,
        "master_gb": sender / gigabytes,
        "slave_gb": receiver / gigabytes,
    }


def _cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _send(root: Path, end: int, connection: socket.socket) -> None:
    for path in sorted((root / "commitlog").iterdir()):
        base, size = int(path.name), path.stat().st_size
        with path.open("rb") as file:
            position, stop = 0, min(size, end - base)
            while position < stop:
                count = min(_CHUNK, stop - position)
                position += os.sendfile(connection.fileno(), file.fileno(), position, count)


def _mapping(target: Path, size: int, *, warm: bool) -> mmap.mmap:
    with target.open("wb+") as file:
        os.posix_fallocate(file.fileno(), 0, size)
        mapping = mmap.mmap(file.fileno(), size)
    if warm:
        mapping.madvise(23)  # MADV_POPULATE_WRITE, which the module does not name
    return mapping


def _receive(connection: socket.socket, mapping: mmap.mmap, end: int) -> None:
    with memoryview(mapping) as view:
        position = 0
        while position < end:
            received = connection.recv_into(view[position : position + _CHUNK])
            if not received:
                raise ConnectionError("the sender has gone")
            position += received
