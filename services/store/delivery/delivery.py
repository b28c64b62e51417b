"""Delivery as one thing: the parts, put together; what fronts call (`port.DeliveryPort`) is passed on to them."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from tandemmq.store.broker.acknowledgement import Acknowledgement
from tandemmq.store.broker.broker import Broker
from tandemmq.store.delivery.clock import DeliveryClock
from tandemmq.store.delivery.delays.timer_check import TimerCheck
from tandemmq.store.delivery.errors import NotDelivering
from tandemmq.store.delivery.figures.waiting_figures import WaitingKeeper
from tandemmq.store.delivery.journal.facts import Place
from tandemmq.store.delivery.journal.follower import JournalFollower
from tandemmq.store.delivery.journal.journal import Journal
from tandemmq.store.delivery.ledger.ledger import Ledger
from tandemmq.store.delivery.ledger.ways import Way, Ways
from tandemmq.store.delivery.lifecycle import Lifecycle, MasterService
from tandemmq.store.delivery.members.groups import GroupTable
from tandemmq.store.delivery.members.queue_locks import QueueLocks
from tandemmq.store.delivery.members.sessions import Sessions
from tandemmq.store.delivery.port import Batch, Ending, Outcome, Room, Wish
from tandemmq.store.delivery.transactions.transactions import Transactions
from tandemmq.store.format.host import Host
from tandemmq.store.log.message_store import MessageStore

Part = TypeVar("Part")

_BEGIN_SECONDS = 5.0
"""A call waits so long for a store that is about to deliver; then its caller is told to come again."""


class Receives(Protocol):
    """The part that gives out messages and takes their acknowledgements; each call as in `port.DeliveryPort`."""

    async def receive(self, wish: Wish, room: Room | None = None) -> Batch:
        """See `port.DeliveryPort`."""
        ...

    async def acknowledge(
        self, group: str, topic: str, handles: Sequence[str], *, in_time: bool = False
    ) -> list[Outcome]:
        """See `port.DeliveryPort`."""
        ...

    def receive_at_once(self, wish: Wish, calls: int = 1) -> Sequence[Batch]:
        """See `port.AtOncePort`."""
        ...

    def acknowledge_at_once(
        self, group: str, topic: str, handles: Sequence[str], *, in_time: bool = False
    ) -> list[Outcome] | None:
        """See `port.AtOncePort`."""
        ...

    async def change_invisible(self, group: str, topic: str, handle: str, invisible_ms: int) -> str:
        """See `port.DeliveryPort`."""
        ...

    async def forward(self, group: str, topic: str, handle: str) -> None:
        """See `port.DeliveryPort`."""
        ...

    async def give_back(self, group: str, topic: str, handle: str) -> None:
        """See `port.DeliveryPort`."""
        ...

    async def send_back(self, group: str, physical_offset: int, delay_level: int, max_reconsume_times: int) -> None:
        """See `port.DeliveryPort`."""
        ...

    def gone(self, group: str, client_id: str) -> None:
        """See `port.DeliveryPort`."""
        ...

    def drain(self) -> None:
        """The store stops: end every wait, and every later one, with StoreStopping."""
        ...


class MovesCursors(Protocol):
    """The part that commits and resets; each call as in `port.DeliveryPort`."""

    async def commit(
        self, group: str, topic: str, queue: int, offset: int, *, alone: bool = False, back: bool = False
    ) -> None:
        """See `port.DeliveryPort`."""
        ...

    async def reset(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        """See `port.DeliveryPort`."""
        ...


class Recalls(Protocol):
    """The part that keeps what waits for its time."""

    async def recall(self, topic: str, handle: str, born_host: Host) -> str:
        """See `port.DeliveryPort`."""
        ...


class Delivery:
    """All of delivery over an open store. Parts are set where it is put together (`assembly`), before `start`."""

    def __init__(
        self,
        broker: Broker,
        groups: GroupTable,
        ledger: Ledger,
        journal: Journal,
        clock: DeliveryClock,
        life: Lifecycle,
    ) -> None:
        self.broker = broker
        self.groups = groups
        self.ledger = ledger
        self.journal = journal
        self.clock = clock
        self._life = life
        self.always: list[MasterService] = []
        """What runs on masters and slaves, from `start` to `stop`."""
        self.sessions = Sessions(broker.store.timers)
        """The clients that are there; fronts register them."""
        self.ways = Ways(broker.store.timers, journal, self.sessions)
        """In which ways groups consume."""
        self.locks = QueueLocks(broker.store.timers.time)
        """Queues that ordered classic consumers have locked."""
        self.receiving: Receives | None = None
        self.cursors: MovesCursors | None = None
        self.delays: Recalls | None = None
        self.timer_check: Callable[[], TimerCheck] = TimerCheck
        """How far timers are delivered."""
        self.transactions: Transactions | None = None
        self.follower: JournalFollower | None = None
        """Reads the journal."""
        self.waiting: WaitingKeeper | None = None
        """What operators see of what waits for its time."""

    @property
    def store(self) -> MessageStore:
        """The store whose messages are delivered."""
        return self.broker.store

    @property
    def acknowledgement(self) -> Acknowledgement:
        """What disk and replicas are waited for with."""
        return self.broker.acknowledgement

    @property
    def services(self) -> list[MasterService]:
        """What runs while this store is the master; add to it before `start`."""
        return self._life.services

    @property
    def delivering(self) -> bool:
        """Whether messages are given out now: this store is the master, and its journal is read."""
        return self._life.delivering

    @property
    def opening(self) -> bool:
        """Whether this store is the master, and has yet to find out how far groups are: the ledger is not whole."""
        return self._life.opening

    async def known(self) -> None:
        """Wait until the ledger is whole; on a slave it is what the master's journal says. Raises NotDelivering."""
        if self.opening:
            await self.begun()

    async def ready(self) -> None:
        """Wait until messages are given out: for ever on a slave."""
        await self._life.ready()

    async def begun(self) -> None:
        """Wait for a master that has just started and reads its journal. Raises NotDelivering."""
        if not self.delivering:
            await self._life.begun(_BEGIN_SECONDS)
        if not self.delivering:
            raise NotDelivering.at_present(self.broker.store.replica.elsewhere)

    def start(self) -> None:
        """Begin to follow the store's role; call when the store is open and started."""
        for part in self.always:
            part.start()
        self._life.start()

    def drain(self) -> None:
        """End receives that wait, with StoreStopping; call as soon as the store is to stop."""
        if self.receiving is not None:
            self.receiving.drain()

    async def stop(self) -> None:
        """End all of it; call before the store is closed."""
        await self._life.stop()
        for part in reversed(self.always):
            await part.stop()

    # -- what fronts call -------------------------------------------------------------------------------------------

    async def receive(self, wish: Wish, room: Room | None = None) -> Batch:
        """See `port.DeliveryPort`."""
        receives = await self._there(self.receiving)
        batch = await receives.receive(wish, room)
        self.ways.seen(wish.group, Way.ACKNOWLEDGES)
        return batch

    async def acknowledge(
        self, group: str, topic: str, handles: Sequence[str], *, in_time: bool = False
    ) -> list[Outcome]:
        """See `port.DeliveryPort`."""
        return await (await self._there(self.receiving)).acknowledge(group, topic, handles, in_time=in_time)

    def receive_at_once(self, wish: Wish, calls: int = 1) -> Sequence[Batch]:
        """See `port.AtOncePort`."""
        if not self.delivering or self.receiving is None:
            return ()
        batches = self.receiving.receive_at_once(wish, calls)
        if batches:
            self.ways.seen(wish.group, Way.ACKNOWLEDGES)
        return batches

    def acknowledge_at_once(
        self, group: str, topic: str, handles: Sequence[str], *, in_time: bool = False
    ) -> list[Outcome] | None:
        """See `port.AtOncePort`."""
        if not self.delivering or self.receiving is None:
            return None
        return self.receiving.acknowledge_at_once(group, topic, handles, in_time=in_time)

    async def change_invisible(self, group: str, topic: str, handle: str, invisible_ms: int) -> str:
        """See `port.DeliveryPort`."""
        return await (await self._there(self.receiving)).change_invisible(group, topic, handle, invisible_ms)

    async def forward(self, group: str, topic: str, handle: str) -> None:
        """See `port.DeliveryPort`."""
        await (await self._there(self.receiving)).forward(group, topic, handle)

    async def give_back(self, group: str, topic: str, handle: str) -> None:
        """See `port.DeliveryPort`."""
        await (await self._there(self.receiving)).give_back(group, topic, handle)

    async def send_back(self, group: str, physical_offset: int, delay_level: int, max_reconsume_times: int) -> None:
        """See `port.DeliveryPort`."""
        await (await self._there(self.receiving)).send_back(group, physical_offset, delay_level, max_reconsume_times)

    async def commit(
        self, group: str, topic: str, queue: int, offset: int, *, alone: bool = False, back: bool = False
    ) -> None:
        """See `port.DeliveryPort`, and `Cursors.commit` for `back`."""
        await (await self._there(self.cursors)).commit(group, topic, queue, offset, alone=alone, back=back)
        self.ways.seen(group, Way.COMMITS)

    async def position(self, group: str, topic: str, queue: int) -> int | None:
        """The offset below which the group has dealt with all; None where it has never been. Raises NotDelivering."""
        await self._there(self.cursors)
        progress = self.ledger.progress(Place(group, topic, queue))
        return None if progress is None else progress.cursor

    async def reset(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        """See `port.DeliveryPort`."""
        await (await self._there(self.cursors)).reset(group, topic, offsets)

    async def end_transaction(self, group: str, handle: str, ending: Ending, *, checked: bool = False) -> None:
        """See `port.DeliveryPort`."""
        await (await self._there(self.transactions)).end_transaction(group, handle, ending, checked=checked)

    async def recall(self, topic: str, handle: str, born_host: Host) -> str:
        """See `port.DeliveryPort`."""
        return await (await self._there(self.delays)).recall(topic, handle, born_host)

    def gone(self, group: str, client_id: str) -> None:
        """See `port.DeliveryPort`. Nothing where this store does not deliver."""
        if self.delivering and self.receiving is not None:
            self.receiving.gone(group, client_id)

    async def _there(self, part: Part | None) -> Part:
        """The part, once this store delivers: a master that has just started reads its journal first."""
        if part is None:
            raise NotDelivering("This part of delivery is not there in this store.")
        await self.begun()
        return part
