"""One life of a real store process under load: opened, written, read, and killed from outside at any moment.

The process tells what it sees over a pipe, one JSON list per line, each line shorter than a pipe's atomic write:

    ["opened", log_min, log_max, bounds]         recovery is done
    ["ack", value, topic, queue id, queue offset, physical offset, size, crc]
    ["fail", value]                               refused: not stored
    ["poll", consumer, topic, queue id, first offset, [[offset, value], …]]
    ["bounds", log_min, log_max, bounds]          bounds: [[topic, queue id, first, next], …]
    ["closed"], ["audited"]
    ["rebuilding"]                                something has to be restored
    ["adopted", queues, messages added by the store], ["refused", text], ["died", operation]
    ["broken", text]                              anything unexpected
"""

import asyncio
import json
import logging
import os
import random
import signal
import sys
import traceback
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import uvloop

from tandemmq.store.broker.reading import is_whole
from tandemmq.store.format.message import Message
from tandemmq.store.log.errors import NotWritable, QueueNotReady, StoreClosed
from tandemmq.store.log.message_store import MessageStore
from tandemmq.store.log.segments.commit_log import Appended
from tests.faults.adopting import DeadlyDisk, adopt_for_ever
from tests.faults.checker import Queue
from tests.faults.compiled_sends import CompiledSends
from tests.faults.harness import QUEUES, TOPICS, QuickClock, audit, batch, message, read_queue, small_config

QUICK, SLOW = 0.002, 0.2
SLOW_FROM = 100
"""Messages of one producer."""


@dataclass(frozen=True)
class Adopting:
    """The store takes over rebuilt files all the time; it dies at operation ``kill_at`` of the disk in it, if not 0.

    ``behind``: when the operation is done, not before; ``from_swap``: see `DeadlyDisk`.
    """

    kill_at: int
    behind: bool
    can_exchange: bool
    from_swap: bool


@dataclass(frozen=True)
class Life:
    """What one process does. ``number`` is its place in the row of lives; with ``seed`` it decides everything."""

    root: Path
    number: int
    seed: int
    sync: bool = True
    clock_begin: float = 0.0
    clock_back_ms: int = 0
    hour: float = 1.0
    audit_to: Path | None = None
    close_after: float | None = None
    adopting: Adopting | None = None


class LifeClock(QuickClock):
    """A quick clock that may have been set back before this life began."""

    def __init__(self, life: Life) -> None:
        super().__init__(life.hour, life.clock_begin)
        self._back = life.clock_back_ms

    def now_ms(self) -> int:
        return super().now_ms() - self._back


class Worker:
    """The load of one life."""

    def __init__(self, life: Life, pipe: int) -> None:
        self._life = life
        self._pipe = pipe
        self._random = random.Random(life.seed)
        self._closing = False
        config = small_config(life.root, sync=life.sync, file_reserved_time=1, clean_resource_interval=5)
        self._disk: DeadlyDisk | None = None
        if life.adopting is not None:
            how = life.adopting
            self._disk = DeadlyDisk(how.kill_at, how.behind, how.can_exchange, how.from_swap)
            self._disk.tell = self.tell
        self._store = MessageStore.open(config, clock=LifeClock(life), disk=self._disk)

    def tell(self, *what: Any) -> None:
        os.write(self._pipe, json.dumps(what, separators=(",", ":")).encode() + b"\n")

    async def run(self) -> None:
        store, life = self._store, self._life
        store.start()
        self._compiled = CompiledSends(store)
        self.tell_bounds("opened")
        if store.rebuilding:
            self.tell("rebuilding")
        if life.audit_to is not None:
            found = await audit(store)
            life.audit_to.write_text(json.dumps(asdict(found) | {"queues": [*found.queues.items()]}, default=asdict))
            self.tell("audited")
            if self._random.random() < 0.5:
                await store.close()
                self.tell("closed")
            return
        tasks = [asyncio.create_task(self.produce(f"c{life.number}-p{number}")) for number in range(3)]
        tasks += [asyncio.create_task(self.consume(f"c{life.number}-g{number}", number)) for number in range(2)]
        if self._disk is not None:
            chance = random.Random(life.seed + 1)
            tasks.append(asyncio.create_task(adopt_for_ever(store, self._disk, chance, self.tell, TOPICS)))
        if life.close_after is not None:
            await asyncio.sleep(life.close_after)
            self._closing = True
            await store.close()
            self.tell("closed")
            return
        await asyncio.gather(*tasks)

    # -- producers ----------------------------------------------------------------------------------------------------

    async def produce(self, producer: str) -> None:
        number = 0
        while not self._closing:
            count = self._random.choice((1, 1, 1, 1, 1, 2, 5, 20))
            values = [f"{producer}-{number + at}" for at in range(count)]
            number += count
            await self.send(values)
            await asyncio.sleep(self._random.random() * self.longest_pause(number))

    def longest_pause(self, sent: int) -> float:
        """Seconds between two sends. Lives that wait for a step of an adoption go on slowly, as audits read it all."""
        return SLOW if self._life.adopting is not None and sent > SLOW_FROM else QUICK

    async def send(self, values: list[str]) -> None:
        try:
            placed = self.append(values)
        except (NotWritable, QueueNotReady, StoreClosed):
            for value in values:
                self.tell("fail", value)
            return
        # What the acknowledgement covers, as it stands in the log now.
        crcs = [self.crc(appended) for _, appended in placed]
        if self._life.sync and not await self._store.wait_flushed(placed[-1][1].end_offset):
            return
        for value, (queue, appended), crc in zip(values, placed, crcs, strict=True):
            place = (appended.queue_offset, appended.physical_offset, appended.size, crc)
            self.tell("ack", value, *queue, *place)

    def crc(self, appended: Appended) -> int:
        data = self._store.read_record(appended.physical_offset, appended.size)
        assert data is not None, f"what was just appended cannot be read: {appended}"
        return zlib.crc32(data)

    def append(self, values: list[str]) -> list[tuple[Queue, Appended]]:
        if len(values) > 1 and self._random.random() < 0.5:
            queue = self._random.choice(QUEUES)
            done = self._store.append_batch(batch(queue, values))
            ends = [*done.physical_offsets[1:], done.end_offset]
            return [
                (queue, Appended(at, end - at, done.first_queue_offset + n, done.store_timestamp, done.end_offset))
                for n, (at, end) in enumerate(zip(done.physical_offsets, ends, strict=True))
            ]
        queues = [self._random.choice(QUEUES) for _ in values]
        messages = [message(queue, value) for queue, value in zip(queues, values, strict=True)]
        if len(messages) == 1:
            return [(queues[0], self.append_one(queues[0], values[0], messages[0]))]
        return list(zip(queues, self._store.append_messages(messages), strict=True))

    def append_one(self, queue: Queue, value: str, one: Message) -> Appended:
        """One way or the other: what the core has begun, Python goes on with, and the other way round."""
        return self._compiled.append(queue, value) if self._random.random() < 0.5 else self._store.append(one)

    # -- consumers ----------------------------------------------------------------------------------------------------

    async def consume(self, consumer: str, number: int) -> None:
        """Read every queue on and on: the first consumer from its beginning, the second from where it ends now."""
        next_offset: dict[Queue, int] = {}
        while not self._closing:
            for name in QUEUES:
                queue = self._store.queue(*name)
                if queue is None or not is_whole(self._store, queue):
                    continue
                offset = next_offset.get(name, queue.max_offset if number else queue.min_offset)
                offset = max(offset, queue.min_offset)
                seen = [(at, value) for at, value, _, _ in read_queue(self._store, name, offset, 20)]
                if seen:
                    self.tell("poll", consumer, *name, queue.min_offset, seen)
                    next_offset[name] = seen[-1][0] + 1
            self.tell_bounds("bounds")
            await asyncio.sleep(0.001 + self._random.random() * 0.004)

    def tell_bounds(self, kind: str) -> None:
        log = self._store.commit_log
        end = self._store.confirm_offset if self._life.sync else log.max_offset
        bounds = [
            (queue.topic, queue.queue_id, queue.min_offset, queue.max_offset)
            for queue in self._store.queues()
            if is_whole(self._store, queue)
        ]
        self.tell(kind, log.min_offset, end, bounds)


class ErrorTeller(logging.Handler):
    """What the store logs as an error is told too: nothing here gives it a reason to."""

    def __init__(self, pipe: int) -> None:
        super().__init__(logging.ERROR)
        self._pipe = pipe

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + "".join(traceback.format_exception(*record.exc_info))
        os.write(self._pipe, json.dumps(["broken", text[-3000:]]).encode() + b"\n")


def live(life: Life, pipe: int) -> None:
    """Be the process of ``life``; never returns."""
    code = 0
    logging.basicConfig(handlers=[ErrorTeller(pipe)], level=logging.ERROR, force=True)
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(Worker(life, pipe).run())
    except OSError as error:
        code = 3
        if error.errno != 5:  # EIO is what a cut disk says
            broken(pipe)
    except Exception:  # noqa: BLE001 - whatever it is, it is told
        code = 2
        broken(pipe)
    finally:
        os._exit(code)


def broken(pipe: int) -> None:
    text = traceback.format_exc()
    os.write(pipe, json.dumps(["broken", text[-3000:]]).encode() + b"\n")


def spawn(life: Life, closing: Iterable[int] = ()) -> tuple[int, int]:
    """Fork a process for ``life``; gives its id and the end of the pipe to read from.

    The caller must have imported everything and have no threads: a fork then costs a millisecond.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        for fd in closing:
            os.close(fd)
        sys.stderr.flush()
        live(life, writing)
    os.close(writing)
    return pid, reading
