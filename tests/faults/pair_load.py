"""Producers on a master, and the ledger of what they were told; acknowledgements are checked at once on the slave."""

import os
import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tandemmq.client import ClientError, Outgoing, StoreClient
from tandemmq.store.format.record import CorruptRecord, Record, decode_record
from tandemmq.store.v1.store_pb2 import SendStatus
from tests.faults.harness import TOPICS, body_of, keys_of, value_of

PUT_OK = SendStatus.PUT_OK


class Told(NamedTuple):
    """A message that was acknowledged, with whatever status."""

    value: str
    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    status: "SendStatus.ValueType"


class LogFiles:
    """The files of a log, read beside its store: what is in the page cache is there, whoever was killed."""

    def __init__(self, root: Path, file_size: int) -> None:
        self._directory = root / "commitlog"
        self._file_size = file_size
        self._open: dict[int, int] = {}

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of the log; fewer where it ends. Not across files."""
        start = offset - offset % self._file_size
        if start not in self._open:
            try:
                self._open[start] = os.open(self._directory / f"{start:020}", os.O_RDONLY)
            except FileNotFoundError:
                return b""
            if len(self._open) > 32:
                os.close(self._open.pop(next(iter(self._open))))  # the one that was opened first
        return os.pread(self._open[start], size, offset - start)

    def record(self, offset: int) -> Record | None:
        """The record that begins there; None if none does."""
        size = int.from_bytes(self.read(offset, 4), "big")
        try:
            return decode_record(self.read(offset, size)) if 0 < size <= self._file_size else None
        except CorruptRecord:
            return None

    def close(self) -> None:
        """Close the files."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()


def differs(told: Told, record: Record | None) -> str:
    """What is wrong with a record that should be the acknowledged message; empty if nothing is."""
    if record is None:
        return f"{told} is not there"
    found = (record.topic, record.queue_id, record.queue_offset, record.physical_offset)
    if found != (told.topic, told.queue_id, told.queue_offset, told.physical_offset):
        return f"{told} is {found}"
    return "" if value_of(record.body) == told.value else f"{told} has another body"


@dataclass
class Ledger:
    """Everything that producers were told. Threads add to it."""

    told: list[Told] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    broken: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, status: "SendStatus.ValueType" = PUT_OK) -> list[Told]:
        """The messages with that status."""
        with self.lock:
            return [one for one in self.told if one.status == status]

    def count(self) -> Mapping[str, int]:
        """Messages by status."""
        with self.lock:
            return Counter(SendStatus.Name(one.status) for one in self.told)


class Producer(threading.Thread):
    """Sends mixed messages, one way after the other, until told to stop; goes on when the store was away.

    `slave`: files in which each message told PUT_OK is looked for at once.
    """

    def __init__(self, address: str, name: str, ledger: Ledger, slave: LogFiles | None, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.enough = threading.Event()
        self._address = address
        self._ledger = ledger
        self._slave = slave
        self._random = random.Random(f"{seed} {name}")
        self._ending = threading.Event()
        self._number = 0

    def end(self) -> None:
        """No more after the call that is under way."""
        self._ending.set()

    def run(self) -> None:
        try:
            with StoreClient(self._address, timeout=30) as client:
                while not self._ending.is_set():
                    self._turn(client)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self._ledger.broken.append(f"{self.name}: {error!r}")
        finally:
            self.enough.set()
            if self._slave is not None:
                self._slave.close()

    def _turn(self, client: StoreClient) -> None:
        try:
            told = list(self._send(client))
            self._take(told)
            if all(one.status != PUT_OK for one in told):
                self._ending.wait(0.02)  # a slave that is behind must not be left behind for ever
        except ClientError as error:
            with self._ledger.lock:
                if error.status:
                    self._ledger.refused[error.status] += 1
                else:
                    self._ledger.unanswered += 1
            self._ending.wait(0.02)

    def _take(self, told: list[Told]) -> None:
        wrong = (
            [differs(one, self._slave.record(one.physical_offset)) for one in told if one.status == PUT_OK]
            if (self._slave is not None)
            else []
        )
        with self._ledger.lock:
            self._ledger.told += told
            self._ledger.broken += [f"at the acknowledgement: {what}" for what in wrong if what]
        self.enough.set()

    def _send(self, client: StoreClient) -> Iterator[Told]:
        topic = self._random.choice(TOPICS)
        way = self._random.randrange(3)
        values = [f"{self.name}-{self._number + at}" for at in range(1 if way == 0 else self._random.randrange(2, 12))]
        self._number += len(values)
        messages = [outgoing(topic, value) for value in values]
        if way == 2:
            receipt = client.send_encoded(messages)
            if receipt.count:
                for at, value in enumerate(values):
                    where = receipt.first_queue_offset + at, receipt.physical_offsets[at]
                    yield Told(value, topic, receipt.queue_id, *where, receipt.status)
            return
        if way == 1:
            receipts = client.send_batch(messages)
        else:
            receipts = [client.send(topic, body_of(values[0]), tag=messages[0].tag, keys=messages[0].keys)]
        for value, one in zip(values, receipts, strict=True):
            if one.message_id:
                yield Told(value, topic, one.queue_id, one.queue_offset, one.physical_offset, one.status)


def outgoing(topic: str, value: str) -> Outgoing:
    """The one message that belongs to a value."""
    return Outgoing(topic, body_of(value), tag=f"T{len(value) % 3}", keys=keys_of(value))


@contextmanager
def load(
    address: str,
    slave_root: Path | None,
    file_size: int,
    seed: int,
    *,
    producers: int = 3,
    name: str = "p",
    check: bool = True,
) -> Iterator[Ledger]:
    """Producers at work for the time of the block; at its end they have stopped, and (`check`) nothing was wrong."""
    ledger = Ledger()
    threads = []
    for at in range(producers):
        files = LogFiles(slave_root, file_size) if slave_root is not None else None
        threads.append(Producer(address, f"{name}{at}", ledger, files, seed))
    for thread in threads:
        thread.start()
    try:
        yield ledger
    finally:
        for thread in threads:
            thread.end()
        for thread in threads:
            thread.join(90)
        if any(thread.is_alive() for thread in threads):
            ledger.broken.append("a producer hangs")
    assert not check or not ledger.broken, ledger.broken[:5]
