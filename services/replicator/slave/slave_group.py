"""What a slave knows of its master's group: it introduces itself, is told, and has its store note it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import grpc

from tandemmq.common.errors import TandemError
from tandemmq.common.log_output import get_log
from tandemmq.common.timers import Timers
from tandemmq.replication.v1.replication_pb2 import JoinRequest, JoinResponse
from tandemmq.replicator.log_view import LogView
from tandemmq.replicator.settings import ReplicatorSettings
from tandemmq.replicator.slave.join import join_master
from tandemmq.replicator.slave.slave_errors import StoreGone
from tandemmq.store.v1.replica_log_pb2 import ReplicaGroup, RoleState

if TYPE_CHECKING:  # the generated code knows this class by its types only
    from tandemmq.store.v1.replica_log_pb2_grpc import ReplicaLogAsyncStub

log = get_log(__name__)

_STORE_SECONDS = 5.0
"""How long the store may take to write a small file."""
_ASK_SECONDS = 1.0
"""How often the master is asked what is new."""
_NOTE_END_SECONDS = 5.0
"""How often the end of the master's log is noted on disk while it grows; what our own log has is known anyway."""


def idle_report_seconds(settings: ReplicatorSettings) -> float:
    """So often a slave with everything reports to a master that knows it: soon one that hangs is seen."""
    return min(settings.ha_send_heartbeat_interval / 1000, 1.0)


class GroupOfSlave:
    """Belongs to a `Follower`. `state` is what our store said last."""

    def __init__(
        self, settings: ReplicatorSettings, view: LogView, grpc_port: Callable[[], int], timers: Timers
    ) -> None:
        self.state = RoleState()
        self._settings = settings
        self._timers = timers
        self._view = view
        self._grpc_port = grpc_port
        self._request = JoinRequest()
        self._address = ""
        self._end_noted = 0.0

    async def introduce(self, port: int, ha_master_address: str) -> JoinResponse | None:
        """Introduce the HA connection from our `port`; None where a master is followed that knows no introductions.

        Raises NotAMaster, NotIntroduced, UnreadableCertificate, UnreadableSecret.
        """
        settings, identity, state = self._settings, self._view.identity, self.state
        self._address = settings.master_replicator_address(ha_master_address)
        self._request = request = JoinRequest(
            connection_port=port,
            broker_id=settings.broker_id or identity.broker_id,
            broker_name=identity.broker_name or settings.broker_name,
            cluster_name=identity.cluster_name or settings.broker_cluster_name,
            epoch=max(state.identity.epoch, state.identity.fenced_by_epoch),
            file_size=state.identity.file_size,
            store_id=state.identity.store_id,
            replicator_port=self._grpc_port(),
            report_seconds=idle_report_seconds(settings),
        )
        for promise in state.promises:
            if promise.epoch == request.epoch:
                request.candidate, request.candidate_address = promise.store_id, promise.address
        response = await self._join()
        if response is None:  # whoever answers later is told what holds of this connection
            request.report_seconds = settings.ha_send_heartbeat_interval / 1000
        return response

    async def remember(self, stub: "ReplicaLogAsyncStub", group: ReplicaGroup) -> None:
        """Have our store note what is new, before anything relies on it. Raises StoreGone."""
        if not group.epoch:  # a master of an older release does not tell
            return
        known = self.state.group
        if not _is_news(group, known) and group.known_end <= known.known_end:
            return
        try:
            noted = await stub.Remember(group, timeout=_STORE_SECONDS)
        except grpc.RpcError as error:
            raise StoreGone(f"the store does not note who the master and its slaves are: {error.details()}") from error
        self.state.group.CopyFrom(noted)
        self._end_noted = self._timers.time()

    async def keep(self, stub: "ReplicaLogAsyncStub") -> None:
        """Ask the master for news, and tell it what our store has noted, until this is cancelled."""
        while True:
            before = self.state.group.generation
            try:
                response = await self._join()
                if response is not None and self._is_due(response.group):
                    await self.remember(stub, response.group)
            except TandemError as error:
                log.info("no news of the group", problem=error.explain())
            if self.state.group.generation == before:
                await self._timers.sleep(_ASK_SECONDS)

    def _is_due(self, group: ReplicaGroup) -> bool:
        """Whether it is to be noted now: it is written and synced each time, and the end grows all the time."""
        return _is_news(group, self.state.group) or self._timers.time() - self._end_noted >= _NOTE_END_SECONDS

    async def _join(self) -> JoinResponse | None:
        known = self.state.group
        self._request.group_epoch, self._request.group_generation = known.epoch, known.generation
        return await join_master(self._settings, self._address, self._request)


def _is_news(group: ReplicaGroup, known: ReplicaGroup) -> bool:
    """Whether anything but the end is another."""
    return (group.epoch, group.generation, list(group.members)) != (known.epoch, known.generation, list(known.members))
