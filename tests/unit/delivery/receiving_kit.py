"""Receiving over a real store, with timers and clocks that the test moves."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tandemmq.store.broker.postponing import DelayRules
from tandemmq.store.broker.topics import TopicConfig
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.members.groups import GroupConfig
from tandemmq.store.delivery.members.sessions import Sessions
from tandemmq.store.delivery.port import Batch, Connected, GivenMessage, Outcome, Wish
from tandemmq.store.delivery.receiving.receive_rules import ReceiveRules
from tandemmq.store.delivery.receiving.receiving import Receiving
from tandemmq.store.format.record import Record, decode_record
from tandemmq.store.log.event import Event
from tests.manual_timers import ManualTimers
from tests.unit.broker.broker_kit import HOST, Kit, broker

GROUP, TOPIC = "workers", "orders"
INVISIBLE_MS = 30_000


@dataclass
class TimerClock:
    """The delivery clock, which goes with the timers."""

    timers: ManualTimers
    begin: int = 1_760_000_000_000

    def now_ms(self) -> int:
        return self.begin + round(self.timers.time() * 1000)


@dataclass
class Groups:
    """A table of groups in memory."""

    known: dict[str, GroupConfig] = field(default_factory=dict)
    changed: Event = field(default_factory=Event)

    def get(self, name: str) -> GroupConfig | None:
        return self.known.get(name)

    def all(self) -> Iterable[GroupConfig]:
        return list(self.known.values())

    async def add(self, groups: Iterable[GroupConfig]) -> None:
        for group in groups:
            self.known.setdefault(group.name, group)

    def put(self, name: str = GROUP, **settings: Any) -> None:
        self.known[name] = replace(GroupConfig(name), **settings)


@dataclass
class Scene:
    """A store in which messages are received."""

    kit: Kit
    ledger: Ledger
    journal: Journal
    timers: ManualTimers
    clock: TimerClock
    groups: Groups
    sessions: Sessions
    receiving: Receiving

    def topic(self, name: str = TOPIC, queues: int = 1) -> None:
        self.kit.topics._entries[name] = TopicConfig(name, queues, queues)

    def send(self, *bodies: str, queue: int = 0, topic: str = TOPIC, **properties: str) -> list[int]:
        return [self.kit.send(topic, body.encode(), queue, **properties) for body in bodies]

    async def receive(self, most: int = 32, **wanted: Any) -> Batch:
        """What is there for a group, without a wait unless told otherwise."""
        return await self.receiving.receive(
            Wish(**{"group": GROUP, "topic": TOPIC, "most": most, "invisible_ms": INVISIBLE_MS, **wanted})
        )

    async def take(self, most: int = 32, connected: Connected = lambda: True, **wanted: Any) -> list[GivenMessage]:
        """As `receive`, and the answer is sent."""
        batch = await self.receive(most, **wanted)
        batch.sent(connected)
        return list(batch.messages)

    async def acknowledge(
        self, messages: Sequence[GivenMessage], *, in_time: bool = False, **other: str
    ) -> list[Outcome]:
        names = {"group": GROUP, "topic": TOPIC, **other}
        handles = [one.handle for one in messages]
        return await self.receiving.acknowledge(names["group"], names["topic"], handles, in_time=in_time)

    async def retry_after(self, message: GivenMessage, invisible_ms: int) -> str:
        return await self.receiving.change_invisible(GROUP, TOPIC, message.handle, invisible_ms)

    def cursor(self, queue: int = 0, topic: str = TOPIC) -> int:
        progress = self.ledger.progress(Place(GROUP, topic, queue))
        assert progress is not None
        return progress.cursor

    def records(self, topic: str, queue: int = 0) -> list[Record]:
        found = self.kit.pull(topic, queue).records
        records, at = [], 0
        while at < len(found):
            records.append(decode_record(found, at))
            at += records[-1].size
        return records


@asynccontextmanager
async def scene(
    root: Path, rules: ReceiveRules | None = None, delays: DelayRules | None = None, **settings: Any
) -> AsyncIterator[Scene]:
    """A new store that delivers, with one topic of one queue."""
    async with broker(root, **settings) as kit:
        timers = ManualTimers()
        clock, ledger, groups, sessions = TimerClock(timers), Ledger(), Groups(), Sessions(timers)
        journal = Journal(kit.store, ledger, kit.broker.acknowledgement, HOST)
        receiving = Receiving(
            kit.broker, journal, clock, groups, sessions, HOST, rules, timers=timers, delays=delays, wall=clock
        )
        made = Scene(kit, ledger, journal, timers, clock, groups, sessions, receiving)
        made.topic()
        journal.begin(1, 0)
        receiving.start()
        try:
            yield made
        finally:
            receiving.drain()
            await receiving.stop()
            journal.close()


def bodies(messages: Sequence[GivenMessage]) -> list[str]:
    return [decode_record(one.record).body.decode() for one in messages]


def numbers(messages: Sequence[GivenMessage]) -> list[int]:
    return [one.number for one in messages]
