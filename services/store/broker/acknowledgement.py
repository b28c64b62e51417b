"""What a stored message is acknowledged with: disk and replicas, waited for side by side.

RocketMQ: ``handleDiskFlush`` and ``handleHA``. What replicas say wins over what the disk says.
"""

import asyncio
from collections.abc import Callable
from enum import Enum

from tandemmq.common.attributes import group_attributes
from tandemmq.common.settings.broker_role import BrokerRole
from tandemmq.store.broker.group_transfer import GroupTransfer, PutStatus
from tandemmq.store.log.edges.offset_waiters import settling
from tandemmq.store.log.message_store import MessageStore


class Durability(Enum):
    """What an acknowledgement of a consumer waits for; the values are those of a group's attribute `ackDurability`."""

    AS_SENDS = ""
    """What a send waits for, as the store is set up."""
    PAGE_CACHE = group_attributes.PAGE_CACHE
    """Nothing: it survives a kill of the store, and no power cut."""
    DISK = group_attributes.DISK
    REPLICAS = group_attributes.REPLICAS
    """Enough replicas have it, and the disk where sends wait for that."""


class Acknowledgement:
    """Knows what the store's role and settings promise, and waits for it."""

    def __init__(self, store: MessageStore, transfer: GroupTransfer) -> None:
        """Follow the role of the store, which may change while it runs."""
        self._store = store
        self.transfer = transfer
        self._flushes = store.config.sync_flush
        self._replicates = False
        self._owes_replicas = False
        """Whether what this store has taken as a master waits for replicas: also when it has become a slave since."""
        self.waits = False
        """Whether a send has anything to wait for at all."""
        store.replica.mastership.changed.listen(self.role_changed)
        self.role_changed()

    def role_changed(self) -> None:
        """Read the role anew."""
        role = self._store.replica.mastership.role
        self._replicates = role is BrokerRole.SYNC_MASTER
        if role is not BrokerRole.SLAVE:
            self._owes_replicas = self._replicates
        self.waits = self._flushes or self._owes_replicas

    @property
    def refuses(self) -> bool:
        """Whether messages that wait for replicas are refused at present."""
        return self._replicates and self.transfer.too_few

    def check(self) -> None:
        """Refuse a message that waits for replicas, before it is stored. Raises InSyncReplicasNotEnough."""
        if self._replicates:
            self.transfer.check()

    def when_safe(self, end_offset: int, told: Callable[[PutStatus], None], *, wait: bool) -> None:
        """Tell the status of messages up to a log offset when disk and replicas have answered; now if nobody waits."""
        if not (wait and self.waits):
            if self._flushes:
                self._store.flush_soon(end_offset)
            told(PutStatus.PUT_OK)
        elif not self._owes_replicas:
            self._store.when_flushed(end_offset, lambda flushed: told(_of_disk(flushed)))
        elif not self._flushes:
            self.transfer.when_replicated(end_offset, told)
        else:
            both = _DiskAndReplicas(told)
            self._store.when_flushed(end_offset, both.on_disk)
            self.transfer.when_replicated(end_offset, both.on_replicas)

    def at_the_end_of_the_turn(self, wait: Callable[[], None]) -> None:
        """Call at the end of this turn of the loop, when all of its messages are stored; `when_safe` is for then.

        What they wait for begins at the end of the turn, too.
        """
        self._store.timers.call_soon(wait)
        if self._flushes:
            self._store.flush_next()

    async def status_by(self, end_offset: int, durability: Durability) -> PutStatus:
        """As `status`, for who wants more, or less, than a send waits for."""
        future: asyncio.Future[PutStatus] = asyncio.get_running_loop().create_future()
        told = settling(future)
        if durability is Durability.DISK:
            self._store.when_flushed(end_offset, lambda flushed: told(_of_disk(flushed)))
        elif durability is Durability.REPLICAS:
            both = _DiskAndReplicas(told)
            if self._flushes:
                self._store.when_flushed(end_offset, both.on_disk)
            else:
                both.on_disk(True)
            self.transfer.when_replicated(end_offset, both.on_replicas)
        else:
            self.when_safe(end_offset, told, wait=durability is Durability.AS_SENDS)
        return await future

    async def status(self, end_offset: int, wait: bool) -> PutStatus:
        """As `when_safe`; it suspends only where there is something to wait for."""
        future: asyncio.Future[PutStatus] = asyncio.get_running_loop().create_future()
        self.when_safe(end_offset, settling(future), wait=wait)
        return await future


class _DiskAndReplicas:
    """Two answers as one: what replicas say wins over what the disk says."""

    def __init__(self, told: Callable[[PutStatus], None]) -> None:
        self._told = told
        self._disk: PutStatus | None = None
        self._replicas: PutStatus | None = None

    def on_disk(self, flushed: bool) -> None:
        self._disk = _of_disk(flushed)
        self._tell()

    def on_replicas(self, status: PutStatus) -> None:
        self._replicas = status
        self._tell()

    def _tell(self) -> None:
        if self._disk is not None and self._replicas is not None:
            self._told(self._disk if self._replicas is PutStatus.PUT_OK else self._replicas)


def _of_disk(flushed: bool) -> PutStatus:
    return PutStatus.PUT_OK if flushed else PutStatus.FLUSH_DISK_TIMEOUT
