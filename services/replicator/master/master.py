"""The master side: accepts slaves, sends them the log, counts who has what."""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable

from tandemmq.common.errors import Kind, TandemError
from tandemmq.common.identity.tls import tls_context
from tandemmq.common.log_output import get_log
from tandemmq.common.processes.started_pool import started_pool
from tandemmq.common.timers import LoopTimers, Timers, first_of
from tandemmq.replicator.log_view import LogView
from tandemmq.replicator.master.connection import Events, Shared, SlaveConnection
from tandemmq.replicator.master.listener import Listener, Peer, Peers
from tandemmq.replicator.master.log_files import OpenLogFiles
from tandemmq.replicator.master.replicas import ReplicaRules, Replicas
from tandemmq.replicator.master.roster import Roster
from tandemmq.replicator.master.transfer import LogCut, TransferRefused, TransferRules
from tandemmq.replicator.metrics import MasterNow, ReplicaNow, ReplicatorMetrics
from tandemmq.replicator.settings import ReplicatorSettings
from tandemmq.store.v1.replica_log_pb2 import BrokerRole, ReplicaGroup

log = get_log(__name__)

_DISK_THREADS = 4
_COMPLAINT_SECONDS = 10.0
"""The same complaint about the same peer is not logged more often."""
_INTRODUCTION_SECONDS = 60.0
"""How long an introduction waits for its connection."""
_REMEMBER_AGAIN_SECONDS = 0.5
_NOTING_SECONDS = 1.0
"""How long a slave that asks for the group waits for the store; see `join.JOIN_SECONDS` for its patience."""
_MOST_WAITING = 10_000
"""Introductions and complaints that are remembered."""


Remember = Callable[[ReplicaGroup], Awaitable[object]]
"""Has the store note the group. Raises OwnStoreUnreachable, StoreRefuses, StoreFailed."""


class Master:
    """Everything between the log and the slaves. `progressed` is called when the store should be told something."""

    def __init__(
        self,
        settings: ReplicatorSettings,
        view: LogView,
        metrics: ReplicatorMetrics,
        progressed: Callable[[], None],
        remember: Remember,
        known: ReplicaGroup | None = None,
        timers: Timers | None = None,
    ) -> None:
        """`remember` has the store note the group of slaves; `known` is what it had noted before."""
        self._settings = settings
        self._view = view
        self._metrics = metrics
        self._progressed = progressed
        self._timers = timers or LoopTimers()
        self._listener = Listener(settings.ha_listen_host, settings.ha_listen_port, self._accepted, self._timers)
        self._peers = Peers(settings.ha_allowed_peers)
        self._files = OpenLogFiles(settings.store_path_root_dir)
        self._executor = started_pool(_DISK_THREADS, "ha-disk")
        self._shared: Shared | None = None
        self._events = Events(self._begun, self._acked, self._closed)
        self._connections: dict[int, SlaveConnection] = {}
        self._last_number = 0
        self._introduced: dict[Peer, tuple[str, float]] = {}
        self._complaints: dict[tuple[str, str], tuple[float, int]] = {}
        self._was_linked = True
        self._log_then: tuple[object, ...] = ()
        self.mastership = view.mastership
        """What it serves; after a change there is to be another `Master`."""
        rules = replica_rules(settings)
        needed = 0 if view.identity.role == BrokerRole.ASYNC_MASTER else rules.least
        self.roster = Roster(view.identity.epoch, needed, known)
        """Whose acknowledgements count."""
        self._stores: dict[str, tuple[str, str]] = {}
        """Store id and replicator's address of those who introduced themselves, by identity."""
        self._departed: dict[str, int] = {}
        """Where the log ended when a member that had not introduced itself was seen to have no connection."""
        self._remember = remember
        self._remembering: asyncio.Task[None] | None = None
        self.replicas = Replicas(rules)

    @property
    def port(self) -> int:
        """Where slaves are accepted, once started."""
        return self._listener.port

    @property
    def connections(self) -> int:
        """Connections of slaves, those included that have not reported yet."""
        return len(self._connections)

    def start(self) -> None:
        """Accept slaves. Raises CannotListen, UnreadableCertificate."""
        self.replicas.log_grew(self._view.max_offset, self._timers.time())
        self.group_changed()
        self._log_then = self._log_identity()
        self._shared = Shared(
            self._view,
            self._files,
            transfer_rules(self._settings),
            self._metrics,
            self._executor,
            self._timers,
            self._tls(),
        )
        self._listener.open()
        log.info("accepting slaves", address=f"{self._settings.ha_listen_host}:{self.port}")

    def stop(self) -> None:
        """Accept nobody any more and let go of everybody."""
        self._listener.close()
        if self._remembering is not None:
            self._remembering.cancel()
        for connection in list(self._connections.values()):
            connection.close()
        self._executor.shutdown(wait=False)
        self._files.forget_all()

    def log_changed(self) -> None:
        """The store has spoken, or the link to it has ended. Whoever can get more bytes gets them before this ends."""
        if not self._view.linked:
            self._was_linked = False
            return
        if not self._was_linked:
            self._was_linked = True
            self._relinked()
        for connection in list(self._connections.values()):
            connection.log_changed()
        self._files.forget_below(self._view.min_offset)
        if self.replicas.log_grew(self._view.max_offset, self._timers.time()):
            self._progressed()

    def _relinked(self) -> None:
        """The store may have been started on another log meanwhile: seeded anew, or promoted."""
        self._files.forget_all()
        log_now = self._log_identity()
        if log_now != self._log_then:
            self._log_then = log_now
            for connection in list(self._connections.values()):
                connection.close(LogCut("the store came back with another log"))

    def _log_identity(self) -> tuple[object, ...]:
        """What stays the same as long as the log only grows at its end and loses old files."""
        identity = self._view.identity
        return (self._files.identity(), identity.file_size, identity.epoch)

    def introduce(
        self, peer: Peer, broker_id: int, store_id: str = "", address: str = "", report_seconds: float = 0.0
    ) -> tuple[str, bool]:
        """The slave with a connection from `peer` is the broker of that id (0: it has none).

        Gives its identity, and whether that connection was introduced for the first time. `store_id`, `address`: of
        its store, and where its replicator serves gRPC; empty if it did not say. `report_seconds`: so often it reports
        while it has everything; 0: as RocketMQ's slaves do.
        """
        now, identity = self._timers.time(), str(broker_id) if broker_id > 0 else peer[0]
        self._stores[identity] = (store_id, address)
        for connection in self._connections.values():
            if connection.peer == peer:
                usual = self._settings.ha_send_heartbeat_interval / 1000
                connection.transfer.report_seconds = report_seconds if report_seconds > 0 else usual
                if connection.introduced and connection.identity == identity:
                    return identity, False
                self._metrics.joins += 1
                connection.identity, connection.introduced, connection.listed = identity, True, False
                if connection.transfer.begun:
                    self._begun(connection)
                return identity, True
        self._metrics.joins += 1
        if len(self._introduced) >= _MOST_WAITING:
            self._introduced.clear()
            self._stores = {identity: self._stores[identity]}
        self._introduced[peer] = (identity, now)
        return identity, True

    def group_changed(self) -> None:
        """Count those who count now, and have the store note what is new."""
        if self._count_members():
            self._progressed()
        if self.roster.unnoted is not None and self._remembering is None:
            self._remembering = asyncio.create_task(self._have_it_noted(), name="replicator, noting the group")

    def _count_members(self) -> bool:
        """Whether anything has changed for those who wait."""
        self._note_departures()
        return self.replicas.count_only(self.roster.counted, self.roster.needed)

    async def noted(self) -> None:
        """Wait, for a moment at most, until the store has noted the group: then slaves can be told of it."""
        if self._remembering is not None:
            await first_of(self._timers, {self._remembering}, _NOTING_SECONDS)

    def _note_departures(self) -> None:
        """Members that did not introduce themselves and have no connection: what they had ends here at the most."""
        connected = {one.identity for one in self.replicas if one.connected}
        absent = self.roster.unnamed - connected
        self._departed = {one: self._departed.get(one, self._view.max_offset) for one in absent}

    def _let_go(self) -> None:
        """Those are members no more whose part enough others have."""
        progress = self.replicas.progress
        for identity, end in list(self._departed.items()):
            if progress.enough and progress.replicated_offset >= end and self.roster.gone(identity):
                del self._departed[identity]
                log.info("no replica any more: it did not introduce itself, and others have its part", replica=identity)
                self.group_changed()

    async def _have_it_noted(self) -> None:
        while (group := self.roster.unnoted) is not None:
            generation = group.generation
            try:
                await self._remember(group)
            except TandemError as error:
                log.warning("the store does not note the group of slaves", problem=error.explain())
                await self._timers.sleep(_REMEMBER_AGAIN_SECONDS)
                continue
            self.roster.noted(generation)
            self._count_members()
            self._progressed()
        self._remembering = None

    def now(self) -> MasterNow:
        """What the metrics show; called on the metrics thread, reads only."""
        now = self._timers.time()
        replicas = [
            ReplicaNow(
                one.identity,
                one.connected,
                one.in_sync,
                self.replicas.lag_bytes(one),
                self.replicas.lag_seconds(one, now),
                max(now - one.heard_at, 0.0),
                self.replicas.silent_seconds(one, now),
            )
            for one in self.replicas
        ]
        progress = self.replicas.progress
        return MasterNow(replicas, self.connections, progress.in_sync, progress.enough)

    # -- connections --------------------------------------------------------------------------------------------------

    def _accepted(self, connection: socket.socket, peer: Peer) -> None:
        assert self._shared is not None
        refused: TransferRefused | None = None
        if not self._peers.allow(peer[0]):
            refused = NotAllowed(f"{peer[0]} is not one of haAllowedPeers")
        elif not self._has_room():
            refused = TooMany(f"there are {len(self._connections)} connections already, see haMaxConnections")
        if refused is not None:
            connection.close()
            self._metrics.closed(refused.reason)
            self._complain(peer[0], refused)
            return
        self._metrics.connections_accepted += 1
        self._last_number += 1
        slave = SlaveConnection(self._last_number, connection, peer, self._shared, self._events)
        identity, at = self._introduced.pop(peer, ("", 0.0))
        if identity and self._timers.time() - at < _INTRODUCTION_SECONDS:
            slave.identity, slave.introduced = identity, True
        self._connections[slave.number] = slave
        slave.start()

    def _has_room(self) -> bool:
        """Whether one more connection is allowed; one that has never reported makes room for it."""
        if len(self._connections) < self._settings.ha_max_connections:
            return True
        silent = next((one for one in self._connections.values() if not one.transfer.begun), None)
        if silent is not None:
            silent.close(TooMany("a connection that had not reported yet made room for another, see haMaxConnections"))
        return silent is not None

    def _begun(self, slave: SlaveConnection) -> None:
        log.info("a slave follows", replica=slave.identity, address=slave.address, offset=slave.transfer.next_offset)
        if slave.transfer.acked_offset or not self._view.max_offset:
            self._list(slave)
        self.replicas.joined(slave.number, slave.transfer, slave.identity, slave.address, self._timers.time())
        self._note_departures()
        self._progressed()

    def _list(self, slave: SlaveConnection) -> None:
        """It follows: its log is ours, as far as it goes. Who is refused, or refuses to follow, never gets here."""
        slave.listed = True
        store_id, address = self._stores.get(slave.identity, ("", "")) if slave.introduced else ("", "")
        if self.roster.joined(slave.identity, store_id, address):
            self.group_changed()

    def _acked(self, slave: SlaveConnection) -> None:
        if not slave.listed:
            self._list(slave)
        if self.replicas.acked(slave.number, self._timers.time()):
            self._progressed()
        if self._departed:
            self._let_go()

    def _closed(self, slave: SlaveConnection, refused: TransferRefused | None) -> None:
        del self._connections[slave.number]
        if refused is not None:
            self._complain(slave.peer[0], refused)
        elif slave.transfer.begun:
            log.info("a slave has gone", replica=slave.identity, address=slave.address)
        self.replicas.left(slave.number, self._timers.time())
        self._note_departures()
        self._progressed()

    def _complain(self, host: str, refused: TransferRefused) -> None:
        """Slaves of RocketMQ come back at once and for ever; the log shall not tell of each time."""
        now, key = self._timers.time(), (host, refused.reason)
        at, times = self._complaints.get(key, (-_COMPLAINT_SECONDS, 0))
        if now - at < _COMPLAINT_SECONDS:
            self._complaints[key] = (at, times + 1)
            return
        if len(self._complaints) >= _MOST_WAITING:
            self._complaints.clear()
        self._complaints[key] = (now, 0)
        log.warning("slave refused", peer=host, reason=refused.reason, why=refused.explain(), more_since=times)

    def _tls(self) -> ssl.SSLContext | None:
        if not self._settings.ha_tls_enable:
            return None
        context = tls_context(self._settings)
        if context is None:
            raise NoCertificate("haTlsEnable needs tlsServerCertPath and tlsServerKeyPath on a master")
        return context


class NotAllowed(TransferRefused):
    """The peer's address is not allowed."""

    reason = "not_allowed"


class TooMany(TransferRefused):
    """haMaxConnections is reached."""

    reason = "too_many"


class NoCertificate(TandemError):
    """A master with haTlsEnable has nothing to show."""

    kind = Kind.MISCONFIGURED


def transfer_rules(settings: ReplicatorSettings) -> TransferRules:
    """What the settings say of sending."""
    limit = settings.max_ha_transfer_byte_in_second if settings.ha_flow_control_enable else None
    return TransferRules(
        batch_size=settings.ha_transfer_batch_size,
        heartbeat=settings.ha_send_heartbeat_interval / 1000,
        housekeeping=settings.ha_housekeeping_interval / 1000,
        bytes_per_second=limit,
        from_last_file=settings.sync_from_last_file,
    )


def replica_rules(settings: ReplicatorSettings) -> ReplicaRules:
    """What the settings say of acknowledging."""
    return ReplicaRules(
        in_sync_replicas=settings.in_sync_replicas,
        min_in_sync_replicas=settings.min_in_sync_replicas,
        all_ack=settings.all_ack_in_sync_state_set,
        auto=settings.enable_auto_in_sync_replicas,
        max_gap=settings.ha_max_gap_not_in_sync,
    )
