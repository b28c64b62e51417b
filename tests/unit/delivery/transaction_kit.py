"""Transactions over a real store in a temporary directory, with a clock and timers that the test moves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandemmq.store.broker.preparing import HALF_TOPIC
from tandemmq.store.broker.send import NewMessage
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.members.sessions import CheckTransaction, Command, Member, Sessions
from tandemmq.store.delivery.port import Ending
from tandemmq.store.delivery.transactions.checking import TransactionRules
from tandemmq.store.delivery.transactions.half_log import HalfLog
from tandemmq.store.delivery.transactions.half_message import OP_TOPIC
from tandemmq.store.delivery.transactions.handle import TransactionHandle
from tandemmq.store.delivery.transactions.transactions import Transactions
from tandemmq.store.format.record import Record
from tests.manual_timers import ManualTimers
from tests.unit.broker.broker_kit import HOST, Kit, SetClock, broker, records

COMMIT, ROLLBACK, UNKNOWN = Ending.COMMIT, Ending.ROLLBACK, Ending.UNKNOWN


class OneClock(SetClock):
    """The clock of the store, of sends and of delivery, which the timers move."""

    def __init__(self, timers: ManualTimers) -> None:
        super().__init__()
        self._timers = timers

    def now_ms(self) -> int:
        return self.now + round(self._timers.now * 1000)


@dataclass
class Producer:
    """A producer's connection; what it is asked is kept."""

    open: bool = True
    asked: list[CheckTransaction] = field(default_factory=list)

    def ask(self, command: Command) -> bool:
        assert isinstance(command, CheckTransaction)
        if self.open:
            self.asked.append(command)
        return self.open

    def __call__(self) -> list[str]:
        """The transactions that it was asked about since the last call."""
        asked, self.asked = [one.transaction_id for one in self.asked], []
        return asked


@dataclass
class Scene:
    """All of it, in use."""

    kit: Kit
    transactions: Transactions
    journal: Journal
    sessions: Sessions
    timers: ManualTimers
    clock: OneClock

    async def half(self, key: str, topic: str = "orders", body: bytes = b"", **properties: str) -> str:
        """Sends a half message and gives its handle."""
        given = {"TRAN_MSG": "true", "PGROUP": "g", "UNIQ_KEY": key, **properties}
        receipt = await self.kit.broker.send(NewMessage(topic, HOST, body or key.encode(), given, queue_id=1))
        place = receipt.place
        return str(TransactionHandle(receipt.ready.unique_key, place.queue_offset, place.physical_offset))

    async def end(self, handle: str, ending: Ending = COMMIT, group: str = "g") -> None:
        await self.transactions.end_transaction(group, handle, ending)

    def delivered(self, topic: str = "orders", queue: int = 1) -> list[Record]:
        """The messages that consumers of a topic find."""
        self.kit.store.catch_up()
        return [] if self.kit.store.queue(topic, queue) is None else records(self.kit.pull(topic, queue))

    def bodies(self, topic: str = "orders", queue: int = 1) -> list[bytes]:
        return [record.body for record in self.delivered(topic, queue)]

    def pending(self) -> list[str]:
        self.kit.store.catch_up()
        return [one.transaction_id for one in self.transactions.pending()]

    def producer(self, group: str = "g", name: str = "p") -> Producer:
        producer = Producer()
        self.sessions.register(Member(name, group, producer, producer=True))
        return producer

    def heard(self, *names: str) -> None:
        """Producers are there still."""
        for member in self.sessions.members("g"):
            self.sessions.heard_of(member)

    def saved(self) -> tuple[int, int]:
        """Positions of both topics in the ledger."""
        found = [self.journal.ledger.progress(Place("CID_RMQ_SYS_TRANS", one, 0)) for one in (HALF_TOPIC, OP_TOPIC)]
        half, op = (0 if one is None else one.cursor for one in found)
        return half, op

    async def advance(self, seconds: float) -> None:
        """Let time pass, and producers be heard of."""
        while seconds > 0:
            step = min(seconds, 20)
            self.heard()
            await self.timers.advance(step)
            seconds -= step


class Positions:
    """What a journal would have kept from one life of a store to the next."""

    def __init__(self) -> None:
        self.ledger = Ledger()


@asynccontextmanager
async def scene(
    root: Path,
    positions: Positions | None = None,
    rules: TransactionRules | None = None,
    timers: ManualTimers | None = None,
    **settings: Any,
) -> AsyncIterator[Scene]:
    """A store whose transactions are read and can be ended; closed cleanly at the end."""
    timers = timers or ManualTimers()
    clock = OneClock(timers)
    ledger = (positions or Positions()).ledger
    async with broker(root, timers=timers, clock=clock, **settings) as kit:
        sessions = Sessions(timers)
        journal = Journal(kit.store, ledger, kit.broker.acknowledgement, HOST)
        journal.open = True
        half_log = HalfLog(kit.store, journal, HOST, clock)
        transactions = Transactions(
            half_log, kit.broker.acknowledgement, sessions, rules or TransactionRules(), kit.traffic
        )
        transactions.start()
        await timers.advance(0)
        try:
            yield Scene(kit, transactions, journal, sessions, timers, clock)
        finally:
            await transactions.stop()
            journal.close()
