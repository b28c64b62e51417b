"""A broker whose delayed messages are delivered, by timers that a test moves on."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandemmq.store.broker.postponing import DelayRules
from tandemmq.store.broker.send import NewMessage
from tandemmq.store.delivery.delays.counts import DelayCounts
from tandemmq.store.delivery.delays.delays import Delays
from tandemmq.store.delivery.delays.levels import Levels
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.journal.journal_format import JOURNAL_TOPIC
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.format.message import Message
from tandemmq.store.format.properties import encode
from tandemmq.store.format.record import Record, decode_record
from tandemmq.store.format.unit import DELAY_LEVELS_MS
from tandemmq.store.log.edges.disk import LocalDisk
from tests.journal_record import decode_record_body
from tests.manual_timers import ManualTimers
from tests.unit.broker.broker_kit import HOST, Kit, SetClock, broker

BEGIN = 1_760_000_000_000


class WallClock(SetClock):
    """A wall clock that goes as the timers do, until it is set."""

    def __init__(self, timers: ManualTimers, begin: int = BEGIN) -> None:
        self._timers = timers
        self.ahead_ms = begin - round(timers.now * 1_000)

    def now_ms(self) -> int:
        return int(self._timers.now * 1_000 + 1e-6) + self.ahead_ms


@dataclass
class DelayKit:
    """A broker and what delivers its delayed messages."""

    kit: Kit
    timers: ManualTimers
    wall: WallClock
    journal: Journal
    delays: Delays
    extra: list[object] = field(default_factory=list)

    @property
    def levels(self) -> Levels:
        return self.delays.levels

    @property
    def counts(self) -> DelayCounts:
        return self.delays.counts

    async def send(self, body: bytes = b"x", *, topic: str = "orders", queue_id: int = 0, **properties: str) -> Record:
        """Sends a message; gives its record as it waits."""
        receipt = await self.kit.broker.send(NewMessage(topic, HOST, body, dict(properties), queue_id))
        data = self.kit.store.read_record(receipt.place.physical_offset)
        assert data is not None
        return decode_record(data)

    def append(self, topic: str, body: bytes, **given: str) -> None:
        """What a Java broker writes to its own topics."""
        self.kit.store.append(Message(topic, 0, body, encode(given), born_host=HOST, store_host=HOST))

    async def pass_time(self, seconds: float) -> None:
        self.kit.store.catch_up()
        await self.timers.advance(seconds)
        self.kit.store.catch_up()

    def found(self, topic: str = "orders", queue_id: int = 0) -> list[Record]:
        """The records of a queue."""
        return read_queue(self.kit, topic, queue_id)

    def bodies(self, topic: str = "orders", queue_id: int = 0) -> list[bytes]:
        return [record.body for record in self.found(topic, queue_id)]


def read_queue(kit: Kit, topic: str, queue_id: int) -> list[Record]:
    queue = kit.store.queue(topic, queue_id)
    found = []
    for offset in range(queue.min_offset, queue.max_offset) if queue is not None else ():
        unit = queue.unit(offset) if queue is not None else None
        data = kit.store.read_record(unit.physical_offset, unit.size) if unit is not None else None
        if data is not None:
            found.append(decode_record(data))
    return found


@asynccontextmanager
async def delaying(
    root: Path,
    *,
    now: int = BEGIN,
    delays_ms: Sequence[int] = DELAY_LEVELS_MS,
    starts: bool = True,
    **settings: Any,
) -> AsyncIterator[DelayKit]:
    """The store opened at a wall clock time, with its journal read. `starts`: delivery begins at once."""
    timers = ManualTimers()
    wall = WallClock(timers, now)
    async with broker(root, clock=wall, timers=timers, message_delay_levels=tuple(delays_ms), **settings) as kit:
        ledger = Ledger()
        for record in read_queue(kit, JOURNAL_TOPIC, 0):
            for fact in decode_record_body(record.body).facts:
                ledger.apply(fact)
        journal = Journal(kit.store, ledger, kit.broker.acknowledgement, HOST)
        journal.begin(1, len(read_queue(kit, JOURNAL_TOPIC, 0)))
        rules = DelayRules(tuple(delays_ms))
        delays = Delays(kit.broker, journal, wall, LocalDisk(), HOST, rules)
        delays.follower.start()
        if starts:
            delays.start()
        try:
            yield DelayKit(kit, timers, wall, journal, delays)
        finally:
            await delays.stop()
            await delays.follower.stop()
            journal.close()
