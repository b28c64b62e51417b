"""Waiting for replicas (RocketMQ: ``GroupTransferService``).

The replicator says below which offset enough replicas have everything; one comparison completes every send below that
offset. Whether it is enough is decided there, from what the slaves acknowledge; here are the waiters, their deadlines,
and what a send is told. All methods run on the event loop.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from tandemmq.common.errors import Kind
from tandemmq.common.timers import Timers
from tandemmq.store.broker.errors import BrokerError
from tandemmq.store.log.edges.offset_waiters import OffsetWaiters


class PutStatus(IntEnum):
    """RocketMQ's ``PutMessageStatus`` of a message that is stored; the numbers are those of the contract."""

    PUT_OK = 1
    FLUSH_DISK_TIMEOUT = 2
    FLUSH_SLAVE_TIMEOUT = 3
    SLAVE_NOT_AVAILABLE = 4


class InSyncReplicasNotEnough(BrokerError):
    """Fewer replicas are in sync than minInSyncReplicas asks for; the message was not stored."""

    kind = Kind.FEW_REPLICAS
    remedy = "Bring slaves back, or lower minInSyncReplicas; sends with WAIT=false are taken."


@dataclass(frozen=True, slots=True)
class ReplicationRules:
    """What a synchronous master asks of its replicas.

    ``slave_timeout_ms``: patience of a send. ``fall_behind_max``: bytes by which replicas may lag for a send to wait
    for them. ``min_in_sync``: replicas, the master included, without which nothing is stored.
    """

    slave_timeout_ms: int = 3_000
    fall_behind_max: int = 256 << 20
    min_in_sync: int = 1


class ReplicaState(NamedTuple):
    """One replica as the replicator told it."""

    identity: str
    address: str
    acked_offset: int
    in_sync: bool


class GroupTransfer:
    """The sends that wait for replicas, and what is known of the replicas."""

    def __init__(self, rules: ReplicationRules, timers: Timers) -> None:
        """Begin without a replicator."""
        self._rules = rules
        self._waiters = OffsetWaiters(timers)
        self.linked = False
        self.enough = False
        self.replicated_offset = 0
        self.in_sync = 0
        self.replicas: Sequence[ReplicaState] = ()

    def __len__(self) -> int:
        """Sends that wait."""
        return len(self._waiters)

    # -- told by the replicator -------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A replicator has come; it says soon what it knows."""
        self.linked = True

    def progress(self, enough: bool, replicated_offset: int, in_sync: int) -> None:
        """Take what the replicator says, and complete every send that enough replicas have."""
        self.enough, self.in_sync, self.replicated_offset = enough, in_sync, replicated_offset
        if enough:
            self._waiters.reached(replicated_offset)

    def end(self) -> None:
        """The replicator is gone: nothing is known any more. Sends that wait do so until their deadline."""
        self.linked = self.enough = False
        self.in_sync = self.replicated_offset = 0
        self.replicas = ()

    # -- asked by sends ---------------------------------------------------------------------------------------------

    @property
    def too_few(self) -> bool:
        """Whether messages that wait for replicas are to be refused."""
        return 1 + self.in_sync < self._rules.min_in_sync

    def check(self) -> None:
        """Refuse a message before it is stored. Raises InSyncReplicasNotEnough."""
        if self.too_few:
            raise InSyncReplicasNotEnough(
                f"{1 + self.in_sync} replicas are in sync, this one included; "
                f"minInSyncReplicas is {self._rules.min_in_sync}. Nothing was stored."
            )

    def when_replicated(self, end_offset: int, told: Callable[[PutStatus], None]) -> None:
        """Tell a send up to ``end_offset`` its status: at once where that is certain, else when it is."""
        behind = end_offset - self.replicated_offset
        if not self.enough or behind >= self._rules.fall_behind_max:
            told(PutStatus.SLAVE_NOT_AVAILABLE)
        elif behind <= 0:
            told(PutStatus.PUT_OK)
        else:
            seconds = self._rules.slave_timeout_ms / 1000
            self._waiters.add(end_offset, lambda there: told(_of_replicas(there)), seconds)


def _of_replicas(there: bool) -> PutStatus:
    return PutStatus.PUT_OK if there else PutStatus.FLUSH_SLAVE_TIMEOUT
