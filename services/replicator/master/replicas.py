"""The replicas of a master: who is connected, how far each is, and what of it a synchronous send may count on.

A replica is an identity (the broker id it introduced itself with, else its address), however many connections it has;
the best ack of them counts. No I/O and no clock.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tandemmq.replicator.master.lag import GrowthHistory
from tandemmq.replicator.master.transfer import Transfer
from tandemmq.store.v1.replica_log_pb2 import Replica as ReplicaMessage
from tandemmq.store.v1.replica_log_pb2 import ReplicationProgress

_ACKS_WITHIN = 2.0
"""Seconds: a slave acks what it has got at once."""
_REMEMBERED_SECONDS = 3_600.0
"""How long a replica that has left is shown."""
_LIST_SECONDS = 1.0
"""How often the list of replicas is told although nobody came or went."""


@dataclass(frozen=True, slots=True)
class ReplicaRules:
    """What the settings say of acknowledging; see `ReplicatorSettings`."""

    in_sync_replicas: int = 2
    min_in_sync_replicas: int = 1
    all_ack: bool = False
    auto: bool = False
    max_gap: int = 256 << 20

    def needed(self, in_sync: int) -> int:
        """Slaves that must have a message, while `in_sync` of them are in sync."""
        if self.all_ack:
            return max(in_sync, self.least)
        if self.auto:
            return max(min(self.in_sync_replicas, in_sync + 1), self.min_in_sync_replicas) - 1
        return self.in_sync_replicas - 1

    @property
    def least(self) -> int:
        """Slaves that certainly have an acknowledged message, however few are in sync."""
        return (self.min_in_sync_replicas if self.all_ack or self.auto else self.in_sync_replicas) - 1


class ReplicaProgress(NamedTuple):
    """What the store is told of all replicas together."""

    enough: bool
    replicated_offset: int
    in_sync: int


@dataclass(slots=True)
class SlaveReplica:
    """One slave."""

    identity: str
    address: str
    connections: dict[int, Transfer] = field(default_factory=dict)
    acked_offset: int = 0
    acked_at: float = 0.0
    left_at: float = 0.0
    in_sync: bool = False

    @property
    def heard_at(self) -> float:
        """When it was last heard of; asked on the metrics thread too."""
        return max((one.heard_at for one in tuple(self.connections.values())), default=self.left_at)

    @property
    def connected(self) -> bool:
        """Whether it has a connection on which it has reported."""
        return bool(self.connections)

    @property
    def sent_offset(self) -> int:
        """After the last byte sent to it."""
        return max((one.next_offset for one in self.connections.values()), default=self.acked_offset)


class Replicas:
    """The table. Connections are told apart by a number that the caller gives."""

    def __init__(self, rules: ReplicaRules) -> None:
        self._rules = rules
        self._known: dict[str, SlaveReplica] = {}
        self._by_connection: dict[int, SlaveReplica] = {}
        self._connected: list[SlaveReplica] = []
        self._max_offset = 0
        self._steady_until = 0
        """As long as the log ends before this, growth alone changes nobody's being in sync."""
        self._counted: frozenset[str] | None = None
        self._least = 0
        self.growth = GrowthHistory()
        self.membership = 0
        """Changes whenever somebody comes, goes, gets a name, or falls out of sync."""
        self.progress = self._count()

    def __iter__(self) -> Iterator[SlaveReplica]:
        return iter(list(self._known.values()))

    # -- events: each tells whether `progress` is another one now -----------------------------------------------------

    def joined(self, connection: int, transfer: Transfer, identity: str, address: str, now: float) -> bool:
        """A connection has made its first report, or one that had is now known under another identity."""
        before = self._by_connection.get(connection)
        if before is not None:
            if before.identity == identity:
                return False
            self._drop(connection, before, now)
        replica = self._known.get(identity)
        if replica is None:
            replica = self._known[identity] = SlaveReplica(identity, address)
        replica.address = address
        replica.connections[connection] = transfer
        replica.acked_at = now
        replica.acked_offset = _best(replica)
        self._by_connection[connection] = replica
        self._forget_old(now)
        return self._changed()

    def acked(self, connection: int, now: float) -> bool:
        """A connection's transfer has a new acked offset."""
        replica = self._by_connection[connection]
        replica.acked_at = now
        acked = replica.connections[connection].acked_offset
        if acked <= replica.acked_offset:
            return False
        replica.acked_offset = acked
        return self._recount()

    def left(self, connection: int, now: float) -> bool:
        """A connection has ended; nothing happens if it had never reported."""
        replica = self._by_connection.pop(connection, None)
        if replica is None:
            return False
        self._drop(connection, replica, now)
        return self._changed()

    def log_grew(self, max_offset: int, now: float) -> bool:
        """The log ends at `max_offset` now."""
        if max_offset == self._max_offset:
            return False
        before, self._max_offset = self._max_offset, max_offset
        self.growth.grew(max_offset, now)
        if before < max_offset < self._steady_until and self._connected:
            return False
        return self._recount()

    def count_only(self, identities: frozenset[str], least: int) -> bool:
        """Only these replicas count (before the first such word: all), and at least so many must have a message."""
        self._counted, self._least = identities, least
        return self._changed()

    def acknowledged_end(self) -> int:
        """The greatest end that the log is known to have had and that enough replicas have acknowledged; 0 if none."""
        return self.growth.end_within(self.progress.replicated_offset) if self.progress.enough else 0

    # -- counting -----------------------------------------------------------------------------------------------------

    def lag_bytes(self, replica: SlaveReplica) -> int:
        """What it does not have yet."""
        return max(self._max_offset - replica.acked_offset, 0)

    def lag_seconds(self, replica: SlaveReplica, now: float) -> float:
        """Age of the oldest byte that it does not have; 0 when it has all."""
        return self.growth.age(replica.acked_offset, now)

    def silent_seconds(self, replica: SlaveReplica, now: float) -> float:
        """How long nothing has come from it that was due; 0 if it speaks as it should, or is not connected."""
        connections = list(replica.connections.values())  # metrics ask on their own thread
        if not connections:
            return 0.0
        lacks = min(self.lag_seconds(replica, now), now - replica.acked_at)
        if lacks > _ACKS_WITHIN:
            return lacks
        overdue = all(now - one.heard_at > 2 * one.report_seconds for one in connections)
        return now - replica.heard_at if overdue else 0.0

    def _drop(self, connection: int, replica: SlaveReplica, now: float) -> None:
        del replica.connections[connection]
        if replica.connections:
            replica.acked_offset = _best(replica)
        else:
            replica.left_at = now
            replica.in_sync = False

    def _forget_old(self, now: float) -> None:
        for replica in list(self._known.values()):
            if not replica.connected and now - replica.left_at > _REMEMBERED_SECONDS:
                del self._known[replica.identity]

    def _changed(self) -> bool:
        connected = [replica for replica in self._known.values() if replica.connected]
        self._connected = [one for one in connected if self._counted is None or one.identity in self._counted]
        for replica in connected:
            replica.in_sync &= self._counted is None or replica.identity in self._counted
        self.membership += 1
        return self._recount()

    def _recount(self) -> bool:
        before, self.progress = self.progress, self._count()
        return before != self.progress

    def _count(self) -> ReplicaProgress:
        end, gap, in_sync, changed = self._max_offset, self._rules.max_gap, 0, False
        steady_until = None
        for replica in self._connected:
            close = end - replica.acked_offset < gap
            changed |= close != replica.in_sync
            replica.in_sync = close
            if close:
                in_sync += 1
                until = replica.acked_offset + gap
                steady_until = until if steady_until is None else min(steady_until, until)
        self.membership += changed
        needed = max(self._rules.needed(in_sync), self._least)
        self._steady_until = 0 if needed == 0 else steady_until if steady_until is not None else end + gap
        if needed == 0:
            return ReplicaProgress(True, end, in_sync)
        if len(self._connected) < needed:
            return ReplicaProgress(False, 0, in_sync)
        acks = sorted((replica.acked_offset for replica in self._connected), reverse=True)
        return ReplicaProgress(True, min(acks[needed - 1], end), in_sync)


class ProgressTeller:
    """Makes the messages for the store: only when something in them is new, the list of replicas less often."""

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._told: ReplicaProgress | None = None
        self._listed: tuple[int, float] | None = None

    def begin(self) -> None:
        """A new link: nothing was told yet."""
        self._told = self._listed = None

    def message(self, now: float) -> ReplicationProgress | None:
        """What is to be told; None: nothing new. The list comes with it when it is new, old, or nobody is in sync."""
        progress, membership = self._replicas.progress, self._replicas.membership
        listed = self._listed
        fresh = listed is not None and listed[0] == membership and now - listed[1] < _LIST_SECONDS
        if progress == self._told and fresh:
            return None
        self._told = progress
        message = ReplicationProgress(
            enough=progress.enough, replicated_offset=progress.replicated_offset, in_sync=progress.in_sync
        )
        if not fresh or not progress.in_sync:
            self._listed = (membership, now)
            message.replicas.extend(
                ReplicaMessage(
                    identity=one.identity, address=one.address, acked_offset=one.acked_offset, in_sync=one.in_sync
                )
                for one in self._replicas
                if one.connected
            )
        return message


def _best(replica: SlaveReplica) -> int:
    return max(one.acked_offset for one in replica.connections.values())
