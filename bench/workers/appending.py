"""Append to the mapping alone: no network, no dispatch, no flush; pages resident."""

import asyncio
import mmap
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from bench import payloads
from bench.model import Sample
from bench.store import encoded_request
from bench.store import message as sent_message
from tandemmq.store.broker.send import Sender, SendRules
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.compiled_core import compiled_core
from tandemmq.store.format.host import Host
from tandemmq.store.format.message import Message
from tandemmq.store.format.message_id import UniqueIdGenerator
from tandemmq.store.log.config import StoreConfig
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import EncodedBatch
from tandemmq.store.settings import CoreChoice
from tandemmq.store.v1 import store_pb2

_FILE_SIZE = 128 << 20
_MESSAGES = 64 * 1024
_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE of Linux 5.14
_HOST = Host("127.0.0.1", 10911)


def measure(directory: Path, rounds: int) -> dict[str, list[Sample]]:
    """CPU microseconds a message, for each way in and for a bare copy."""
    return asyncio.run(_measured(directory, rounds))


async def _measured(directory: Path, rounds: int) -> dict[str, list[Sample]]:
    """In one turn of a loop: what a store does after an append has no turn."""
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
    core = _Core(directory / "core")
    if core.is_there:
        ways["single, core"] = (payloads.BATCH, core.send)
        ways["encoded, by 64, core"] = (payloads.BATCH, core.send_batch)
    samples: dict[str, list[Sample]] = {way: [] for way in ways}
    for _, step in ways.values():
        step()
    for _ in range(rounds):
        for way, (messages, step) in ways.items():
            log.resume_at(0, 0)
            core.log.resume_at(0, 0)
            copy.at = 0
            samples[way].append(_timed(step, messages))
    return samples


class _Copy:
    """A slice store of a record's bytes, one after the other: the least that an append can be."""

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


class _Core:
    """Requests of Send and SendBatch through the compiled core: from their bytes to those of their answers.

    In turns of 64 messages.
    """

    def __init__(self, directory: Path) -> None:
        config = StoreConfig(directory, mapped_file_size_commit_log=_FILE_SIZE, compiled_walker="always")
        store = MessageStore.open(config)
        topics = cast(Any, {payloads.TOPIC: TopicConfig(payloads.TOPIC, 8, 8)})
        new_id = UniqueIdGenerator(b"\x7f\0\0\1", 1, 1).next
        sender = Sender(store, topics, cast(Any, None), SendRules(_HOST), store.clock, new_id)  # nothing of it waits
        traffic = SimpleNamespace(sent=lambda topic, messages, size: None)
        parts = SimpleNamespace(store=store, sender=sender, topics=topics, traffic=traffic)
        self._ends: list[Callable[[], None]] = []
        core = compiled_core(cast(Any, parts), self._ends.append, CoreChoice.AUTO, "bench")
        self._single, self._batch = core.send, core.batch
        self._request = store_pb2.SendRequest(message=sent_message()).SerializeToString()
        self._batch_request = encoded_request(payloads.BATCH)
        self.log = store.commit_log
        file = self.log.files.last
        assert file is not None
        _populate(file.map)
        store.append(Message(payloads.TOPIC, 0, b"first", born_host=_HOST, store_host=_HOST))

    @property
    def is_there(self) -> bool:
        """Whether it is built."""
        return self._single is not None

    def send(self) -> None:
        """Send 64 messages, one by one."""
        assert self._single is not None
        answer, request, peer = self._single.answer, self._request, _HOST.packed
        for _ in range(payloads.BATCH):
            if answer(request, peer) is None:
                raise AssertionError("the core does not take it")
        self._end_turn()

    def send_batch(self) -> None:
        """Send a batch."""
        assert self._batch is not None
        if self._batch.answer(self._batch_request, _HOST.packed) is None:
            raise AssertionError("the core does not take it")
        self._end_turn()

    def _end_turn(self) -> None:
        for end in self._ends:
            end()
        self._ends.clear()


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
