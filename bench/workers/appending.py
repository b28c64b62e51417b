"""Append to the mapping alone: no network, no dispatch, no flush; pages resident."""

import mmap
import time
from collections.abc import Callable
from pathlib import Path

from bench import payloads
from bench.model import Sample
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import EncodedBatch

_FILE_SIZE = 128 << 20
_MESSAGES = 64 * 1024
_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE of Linux 5.14
_HOST = Host("127.0.0.1", 10911)


def measure(directory: Path, rounds: int) -> dict[str, list[Sample]]:
    """CPU microseconds a message, for each way in and for a bare copy."""
    config = StoreConfig(directory / "store", mapped_file_size_commit_log=_FILE_SIZE, compiled_walker="always")
    store = MessageStore.open(config)
    log = store.commit_log
    file = log.files.last
    assert file is not None
    _populate(file.map)
    message = Message(payloads.TOPIC, 0, payloads.body(), payloads.PROPERTIES, born_host=_HOST, store_host=_HOST)
    many = [message] * payloads.BATCH
    batch = EncodedBatch(payloads.TOPIC, 0, payloads.encoded_batch(), _HOST, _HOST)
    ways: dict[str, tuple[int, Callable[[], object]]] = {
        "single": (1, lambda: log.append(message)),
        "messages, by 64": (payloads.BATCH, lambda: log.append_messages(many)),
        "encoded, by 64": (payloads.BATCH, lambda: log.append_batch(batch)),
    }
    copy = _Copy(file.map, log.append(message).size)
    ways["bare copy"] = (1, copy.step)
    samples: dict[str, list[Sample]] = {way: [] for way in ways}
    for _, step in ways.values():
        step()
    for _ in range(rounds):
        for way, (messages, step) in ways.items():
            log.resume_at(0, 0)
            copy.at = 0
            samples[way].append(_timed(step, messages))
    return samples


class _Copy:
    """A slice store of a record's bytes, one behind the other: the least that an append can be."""

    def __init__(self, target: mmap.mmap, size: int) -> None:
        self._target = target
        self._data = target[:size]
        self._size = size
        self.at = 0

    def step(self) -> None:
        """Copy once."""
        end = self.at + self._size
        self._target[self.at : end] = self._data
        self.at = end


def _timed(step: Callable[[], object], messages: int) -> Sample:
    calls = _MESSAGES // messages
    begun = time.thread_time()
    for _ in range(calls):
        step()
    return {"us": (time.thread_time() - begun) / (calls * messages) * 1e6}


def _populate(memory: mmap.mmap) -> None:
    try:
        memory.madvise(_POPULATE_WRITE)
    except OSError:
        for at in range(0, len(memory), 4096):
            memory[at] = 0
